//! Attempts that somebody else than the supervisor has refused, on their way to the record of the run.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::EventfdFlags;

use crate::report::{Detail, Kind, MAX_VIOLATIONS};
use crate::spec::OnViolation;

/// Puts attempts on the record of a run that is going, from any thread.
#[derive(Clone)]
pub struct Recorder {
    waiting: Arc<Mutex<Waiting>>,
    /// Readable when there are any.
    wake: Arc<OwnedFd>,
    on_violation: OnViolation,
}

/// What the supervisor has not taken yet; never more than a report lists.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) attempts: Vec<(Kind, Detail, &'static str)>,
    /// How many more there were.
    pub(crate) dropped: u64,
}

impl Recorder {
    pub(crate) fn new(on_violation: OnViolation) -> std::io::Result<Recorder> {
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Recorder { waiting: Arc::default(), wake: Arc::new(wake), on_violation })
    }

    /// What the program does after this call comes after it on the record, too. False: the run ends for it, and whoever
    /// waits for an answer is to get none.
    pub fn put(&self, kind: Kind, detail: Detail, evidence: &'static str) -> bool {
        let mut waiting = self.lock();
        if waiting.attempts.len() < MAX_VIOLATIONS {
            waiting.attempts.push((kind, detail, evidence));
        } else {
            waiting.dropped += 1;
        }
        drop(waiting);
        // A counter that is full is readable already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        self.on_violation != OnViolation::Kill
    }

    pub(crate) fn take(&self) -> Waiting {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Recorder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
