//! The end of the run: what the kernel counted, and the report.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::{State, judge_limits};
use crate::cgroup::Counters;
use crate::error::SandboxError;
use crate::report::{Applied, Detail, End, Kill, Kind, Report, Stage, Step, Usage};
use crate::scratch::{self, Scratch};

impl State<'_> {
    pub(super) fn finish(mut self) -> Result<Report, SandboxError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure.into());
        }
        let finished = Instant::now();
        let (Some(started), Some(counters)) = (self.started, self.gone) else {
            // Killed before it began: by the caller, or by the memory limit, which the set-up counts against too.
            return match self.killed {
                Some(Kill::Cancelled { signal, .. }) => Err(SandboxError::Cancelled { signal }),
                _ => Err(SandboxError::DiedInSetUp { oom_kills: self.gone.map_or(0, |c| c.oom_kills) }),
            };
        };
        let end = self.end_of(&counters)?;
        let ended = self.ended.unwrap_or(finished);
        self.stages.push(Stage { step: Step::Run, began: started, took: ended - started });
        self.stages.push(Stage { step: Step::Collect, began: ended, took: finished - ended });
        let (user, system) = match (counters.cpu_user_us, counters.cpu_system_us) {
            // Making a cell is the kernel's work.
            (Some(user), Some(system)) => {
                let before = self.cpu_before.as_micros() as u64;
                (user.saturating_sub(before.saturating_sub(system)), system.saturating_sub(before))
            }
            // Init could not tell when it was killed: then what was seen last.
            _ => {
                let seen = self.samples.cpu().as_micros() as u64;
                (self.rusage.user_us.max(seen.saturating_sub(self.rusage.system_us)), self.rusage.system_us)
            }
        };
        self.judge_counters(&counters);
        self.judge_times(ended - started, Duration::from_micros(user + system));
        self.note_weaknesses(&counters);
        let (peak, own_kernel) = (self.samples.processes_peak(), self.meters.own_kernel);
        Ok(Report {
            end,
            killed: self.killed,
            usage: Usage {
                wall: ended - started,
                cpu_user: Duration::from_micros(user),
                cpu_system: Duration::from_micros(system),
                memory_peak: self.memory_peak(&counters),
                // The cell's init is in the group and no process of the program's.
                processes_peak: counters.processes_peak.map(|n| n.saturating_sub(1)).filter(|_| !own_kernel).or(peak),
                scratch: self.samples.scratch_peak(),
                read_bytes: self.rusage.read_bytes,
                write_bytes: self.rusage.write_bytes,
            },
            violations: self.violations,
            violations_dropped: self.violations_dropped,
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
            enforced: self.enforced,
            degraded: self.degraded,
            stages: self.stages,
            scratch: self.scratch.map(|dir| Scratch { dir }),
        })
    }

    /// As init told it. It is the last to go and has a word for every end but its own: that is our doing, or the kernel's for
    /// want of memory, or somebody else's.
    fn end_of(&self, counters: &Counters) -> Result<End, SandboxError> {
        match self.end {
            Some(end) => Ok(end),
            None if self.killed.is_some() || counters.oom_kills > 0 => Ok(End::Killed),
            None => Err(SandboxError::KilledFromOutside),
        }
    }

    /// A program that has ended by itself may have had more time than it was given, when we came late.
    fn judge_times(&mut self, wall: Duration, cpu: Duration) {
        if self.killed.is_some() {
            return;
        }
        let limits = &self.spec.limits;
        let by_cpu = limits.cpu_time.map(|limit| (limit, cpu, Some("cpu time"), "cpu time, counted"));
        let all = [Some((limits.wall, wall, None, "wall clock")), by_cpu];
        for (limit, took, note, evidence) in all.into_iter().flatten().filter(|(limit, took, ..)| took >= limit) {
            let detail = Detail {
                limit: Some(limit.as_millis() as u64),
                observed: Some(took.as_millis() as u64),
                note: note.map(Into::into),
                ..Detail::default()
            };
            self.record_once(Kind::Timeout, detail, evidence);
        }
    }

    /// What the kernel counted while nobody looked.
    fn judge_counters(&mut self, counters: &Counters) {
        let limits = &self.spec.limits;
        if let Some((detail, evidence)) = self.samples.disk(self.scratch.as_ref(), limits) {
            self.record_once(Kind::Disk, detail, evidence);
        }
        // The kernel's signal for our limit, if nobody has sent it, or has set another one; then, a file as long as one may be.
        let is_the_kernels = self.witness.is_some() && !self.doubts_file_signal;
        if self.end == Some(End::Signaled(libc::SIGXFSZ)) && (is_the_kernels || self.has_full_file()) {
            let detail = Detail { limit: Some(self.spec.limits.file_size), ..Detail::default() };
            self.record_once(Kind::Disk, detail, "SIGXFSZ");
        }
        // What is refused to a kernel of its own the program has not asked for.
        let refused = if self.meters.own_kernel { 0 } else { counters.pids_refused };
        for (kind, detail, evidence) in judge_limits::counted(counters.oom_kills, refused, &self.spec.limits) {
            self.record_once(kind, detail, evidence);
        }
    }

    /// The group's peak has the scratch in it, as it was then: at most as it ever was.
    fn memory_peak(&self, counters: &Counters) -> u64 {
        let seen = self.samples.memory_peak();
        match counters.memory_peak {
            Some(peak) => peak.saturating_sub(self.samples.scratch_peak()).max(seen.min(peak)),
            None => seen.max(self.rusage.max_rss),
        }
    }

    /// What was weaker in this very run.
    fn note_weaknesses(&mut self, counters: &Counters) {
        if self.meters.own_kernel && counters.pids_refused > 0 {
            let what = format!("the cgroup refused the runtime's own kernel a task, {} times", counters.pids_refused);
            self.degraded.push(Applied::new("processes", what));
        }
        if self.unseen > 0 {
            let what = format!("{} calls of a program that nobody may read could not be looked at", self.unseen);
            self.degraded.push(Applied::new("witness", what));
        }
    }

    fn has_full_file(&self) -> bool {
        self.scratch.as_ref().is_some_and(|dir| scratch::has_file_of(dir.as_fd(), self.spec.limits.file_size))
    }
}
