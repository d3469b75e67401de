//! What the launcher and the cell say, and what follows from it.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use super::State;
use crate::error::SandboxError;
use crate::report::{Detail, End, Kind, Stage, Step};
use crate::sys::seccomp;
use crate::wire::{self, FromCell, FromLauncher, Took};
use crate::witness::Witness;

impl State<'_> {
    pub(super) fn hear_launcher(&mut self) -> Result<(), SandboxError> {
        let heard = hear(&self.run);
        let (message, fds) = match heard {
            Ok(Some(heard)) => heard,
            Ok(None) => return Err(SandboxError::LauncherDied),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return Err(SandboxError::LauncherDied),
            Err(error) => return Err(SandboxError::Io { what: "hear the launcher", error }),
        };
        match message {
            FromLauncher::Launched { meters, enforced, degraded, clone, cgroup, .. } => {
                self.meters.group = meters.into_iter().zip(fds).collect();
                (self.enforced, self.degraded) = (enforced, degraded);
                self.passed(Step::Clone, clone);
                self.passed(Step::Cgroup, cgroup);
            }
            FromLauncher::Failed(failure) => return Err(failure.into()),
            FromLauncher::Gone(counters) => {
                // What the cell said last is in its socket still.
                while self.cell.is_some() && self.hear_cell_now() {}
                self.gone = Some(counters);
                self.end_egress();
                self.cell = None;
                self.listener = None;
                self.input.close();
                if self.terminal.take().is_some() {
                    self.stdout.end_of_terminal();
                }
            }
        }
        Ok(())
    }

    pub(super) fn hear_cell(&mut self) {
        self.hear_cell_now();
    }

    /// Hears one message, if there is one.
    fn hear_cell_now(&mut self) -> bool {
        let Some(cell) = &self.cell else { return false };
        let (message, fds) = match hear(cell) {
            Ok(Some(heard)) => heard,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return false,
            _ => {
                self.cell = None;
                return false;
            }
        };
        self.understand(message, fds);
        true
    }

    fn understand(&mut self, message: FromCell, fds: Vec<OwnedFd>) {
        let mut fds = fds.into_iter();
        match message {
            FromCell::Starting { mounts, at_ns, set_up } => {
                mounts.into_iter().filter(|part| part.ns > 0).for_each(|part| self.passed(Step::Mounts, part));
                self.scratch = fds.next();
                self.meters.proc = fds.next();
                // A kernel of its own shows nothing but that.
                if let (Some(proc), Some(root)) = (&self.meters.proc, fds.next()) {
                    let device = self.scratch.as_ref().and_then(|dir| rustix::fs::fstat(dir).ok());
                    let device = device.map(|stat| stat.st_dev).filter(|_| self.spec.limits.scratch > 0);
                    let proc_id = rustix::fs::fstat(proc).map_or((0, 0), |stat| (stat.st_dev, stat.st_ino));
                    let network = self.spec.network;
                    self.witness = self.wake.try_clone().ok().map(|wake| Witness {
                        root,
                        scratch: device,
                        proc: proc_id,
                        network,
                        quiet: self.spec.quiet.clone(),
                        wake,
                    });
                }
                let now = Instant::now();
                let started = then(at_ns).max(self.asked);
                self.stages.push(Stage { step: Step::Exec, began: self.asked, took: started - self.asked });
                self.started = Some(started);
                // The group was the cell's before it was the program's; but it may be the program's already.
                let used = self.meters.cpu().unwrap_or_default();
                self.cpu_before = set_up.map_or(used, |set_up| used.min(set_up));
                self.samples.begin(now, self.cpu_before);
                self.listener = fds.next();
                if let Some(listener) = &self.listener {
                    seccomp::wake_synchronously(listener.as_fd());
                }
                self.begin_egress(fds.next());
                self.observation.begin(now);
            }
            FromCell::NotExecuted { errno } => self.end = Some(End::NotExecuted { errno }),
            FromCell::Failed(failure) => self.failure = Some(failure),
            FromCell::TooMany { tasks } => {
                let limit = Some(self.spec.limits.processes);
                let detail = Detail { limit, observed: Some(tasks), ..Detail::default() };
                self.record_once(Kind::Processes, detail, "the kernel refuses another process");
            }
            FromCell::Ended { status, usage, at_ns, tasks } => {
                self.ended = Some(then(at_ns).max(self.started.unwrap_or(self.asked)));
                self.rusage = usage;
                tasks.into_iter().for_each(|tasks| self.samples.were_at_once(tasks));
                if self.end.is_none() {
                    self.end = Some(match libc::WIFSIGNALED(status) {
                        true => End::Signaled(libc::WTERMSIG(status)),
                        false => End::Exited(libc::WEXITSTATUS(status)),
                    });
                }
            }
        }
    }

    /// By another process's account.
    fn passed(&mut self, step: Step, Took { began_ns, ns }: Took) {
        self.stages.push(Stage { step, began: then(began_ns), took: Duration::from_nanos(ns) });
    }
}

/// A moment of [`wire::now_ns`] that is past.
fn then(at_ns: u64) -> Instant {
    let (now, ago) = (Instant::now(), Duration::from_nanos(wire::now_ns().saturating_sub(at_ns)));
    now.checked_sub(ago).unwrap_or(now)
}

/// Without waiting. One that has closed with a word of ours unread, which came too late: the kernel tells of that first, and
/// once, and of what was said before only then.
fn hear<T: serde::de::DeserializeOwned>(from: &OwnedFd) -> std::io::Result<Option<(T, Vec<OwnedFd>)>> {
    match wire::receive(from, false) {
        Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => wire::receive(from, false),
        heard => heard,
    }
}
