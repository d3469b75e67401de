//! What is due: the wall clock, the end of the grace, calls to look at again, samples.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::State;
use crate::report::{Detail, Kill, Kind};
use crate::sys::socket;
use crate::wire::{self, Failure};

/// A cell that is not ready by then never will be. Generous: on a crowded host a network namespace waits for the kernel to
/// clear away hundreds of old ones.
const SET_UP_WITHIN: Duration = Duration::from_secs(120);

impl State<'_> {
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if self.gone.is_some() {
            return None;
        }
        let wall = match (self.started, self.killed) {
            (Some(started), None) => started.checked_add(self.spec.limits.wall),
            (None, None) => Some(self.asked + SET_UP_WITHIN),
            _ => None,
        };
        let sample = self.next_sample().filter(|_| self.ended.is_none());
        [wall, self.kill_at, sample, self.retry_at].into_iter().flatten().min()
    }

    pub(super) fn check_clock(&mut self) {
        if self.gone.is_some() {
            return;
        }
        let now = Instant::now();
        if self.retry_at.is_some_and(|at| now >= at) {
            self.retry_pending();
        }
        if self.kill_at.is_some_and(|at| now >= at) {
            self.kill_at = None;
            self.kill_cell();
        }
        // Before the wall clock is judged: who watches is warned of a limit before it is met, however late this looks.
        if self.ended.is_none() && self.next_sample().is_some_and(|at| now >= at) {
            self.sample(now);
        }
        if self.killed.is_none() && self.ended.is_none() {
            match self.started {
                Some(started) if now.duration_since(started) >= self.spec.limits.wall => {
                    let detail = Detail { limit: Some(self.spec.limits.wall.as_millis() as u64), ..Detail::default() };
                    self.killed = Some(Kill::WallTime);
                    self.record(Kind::Timeout, detail, "wall clock");
                    self.terminate();
                }
                None if now.duration_since(self.asked) >= SET_UP_WITHIN => {
                    self.failure = Some(Failure {
                        step: "set the cell up in time".into(),
                        what: String::new(),
                        errno: libc::ETIMEDOUT,
                    });
                    self.kill_cell();
                    self.started = Some(now);
                }
                _ => {}
            }
        }
    }

    /// For the limits, or for an observer, whose sample is one for the limits first.
    fn next_sample(&self) -> Option<Instant> {
        [self.samples.next(), self.observation.next()].into_iter().flatten().min()
    }

    fn sample(&mut self, now: Instant) {
        let breaches = self.samples.take(now, &self.meters, self.scratch.as_ref(), &self.spec.limits);
        if self.samples.seem_too_many(self.spec.limits.processes)
            && let Some(cell) = &self.cell
        {
            let _ = socket::send(cell.as_fd(), &[wire::COUNT], &[]);
        }
        if self.observation.next().is_some_and(|at| now >= at) {
            self.observe(now);
        }
        for (kind, detail, evidence) in breaches {
            let kill = match kind {
                Kind::Timeout => Some(Kill::CpuTime),
                // An oom kill has been the kernel's own doing: the program may go on without that process.
                Kind::Memory if evidence.ends_with("sampled") => Some(Kill::Memory),
                _ => None,
            };
            if let (Some(kill), None) = (kill, self.killed) {
                self.killed = Some(kill);
                self.record_once(kind, detail, evidence);
                if kill == Kill::CpuTime { self.terminate() } else { self.kill_cell() }
            } else {
                self.record_once(kind, detail, evidence);
            }
        }
    }
}
