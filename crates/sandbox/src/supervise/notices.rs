//! Notifications of the run: looked at, put on record, answered.

use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::PollFlags;

use super::{MAX_PENDING, RETRY, State};
use crate::report::{Detail, Kill, Kind};
use crate::sys::seccomp::{self, Answer};
use crate::witness::{self, Seen};

impl State<'_> {
    pub(super) fn answer_one(&mut self, flags: PollFlags) {
        let (Some(listener), Some(witness)) = (&self.listener, &self.witness) else {
            return;
        };
        if !flags.contains(PollFlags::IN) {
            // Hung up: nobody with that filter is left. An error by itself is a lock that a signal kept from being taken.
            if flags.contains(PollFlags::HUP) {
                self.listener = None;
            }
            return;
        }
        let Ok(Some(call)) = seccomp::receive(listener.as_fd()) else {
            return;
        };
        let is_current = || witness::is_current(listener.as_fd(), &call);
        let seen = witness.look(&call, &is_current);
        if !is_current() {
            return;
        }
        // What the program was refused elsewhere before it called is older.
        self.hear_attempts();
        let answer = match seen {
            Seen::Nothing(answer) => answer,
            Seen::Blind(answer) => {
                self.unseen += 1;
                answer
            }
            Seen::Pending(_) if self.pending.len() >= MAX_PENDING => Answer::Errno(libc::EAGAIN),
            Seen::Pending(pending) => {
                self.pending.push((call, pending));
                self.retry_at = Some(Instant::now() + RETRY);
                return;
            }
            Seen::NewTask => self.count_task(call.pid),
            Seen::FileSignal => {
                self.doubts_file_signal = true;
                Answer::Continue
            }
            Seen::Attempt { kind, detail, answer } => {
                self.record(kind, *detail, "seccomp notification");
                answer
            }
        };
        // Whoever is being killed for it goes no further.
        if self.killed != Some(Kill::Violation)
            && let Some(listener) = &self.listener
        {
            let _ = seccomp::answer(listener.as_fd(), call.id, answer);
        }
    }

    /// Looks again at what was begun for the program and could not be finished at once.
    pub(super) fn retry_pending(&mut self) {
        let Some(listener) = &self.listener else { return self.pending.clear() };
        self.pending.retain_mut(|(call, pending)| {
            if !witness::is_current(listener.as_fd(), call) {
                return false;
            }
            match pending.retry() {
                Some(answer) => seccomp::answer(listener.as_fd(), call.id, answer).is_err(),
                None => true,
            }
        });
        self.retry_at = (!self.pending.is_empty()).then(|| Instant::now() + RETRY);
    }

    /// Counts a new thread where no group does. RLIMIT_NPROC holds the line; this is for the record.
    fn count_task(&mut self, pid: i32) -> Answer {
        let limit = self.spec.limits.processes;
        let Some(refused_at) = self.samples.new_task(&self.meters, limit) else {
            return Answer::Continue;
        };
        let detail = Detail { limit: Some(limit), observed: Some(refused_at), pid: Some(pid), ..Detail::default() };
        self.record_once(Kind::Processes, detail, "counted threads");
        Answer::Errno(libc::EAGAIN)
    }
}
