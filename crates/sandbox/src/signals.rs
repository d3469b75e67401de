//! What calls a run off: the caller's own signals, as something to poll, or a word of the caller's for one run. And signals that
//! are meant for the program.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::event::{EventfdFlags, PollFd, PollFlags};

use crate::sys::signal;

/// Readable means: stop. Once, with SIGTERM and grace; a second time, at once.
pub trait Cancel: AsFd + Sync {
    /// Takes one wish, if there is any, by the signal that it stands for.
    fn take(&self) -> Option<i32>;
}

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT of this process, blocked and readable instead.
pub struct Signals {
    fd: OwnedFd,
    first: OnceLock<i32>,
}

impl Signals {
    /// For the main thread, before there are others: signals are blocked thread by thread.
    pub fn catch() -> io::Result<Signals> {
        // A copy of a terminal's input in the background then is an error, which ends the input.
        signal::ignore(libc::SIGTTIN);
        // A stopped supervisor would leave a running program without its clock and its witness.
        signal::ignore(libc::SIGTSTP);
        Ok(Signals {
            fd: signal::watch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT])?,
            first: OnceLock::new(),
        })
    }

    /// The first that was taken.
    pub fn first(&self) -> Option<i32> {
        self.first.get().copied()
    }
}

impl Cancel for Signals {
    fn take(&self) -> Option<i32> {
        let signal = signal::read(self.fd.as_fd())?;
        self.first.get_or_init(|| signal);
        Some(signal)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// SIGWINCH of this process: its terminal has another size.
pub struct Resized {
    fd: OwnedFd,
}

impl Resized {
    /// For the main thread, before there are others.
    pub fn catch() -> io::Result<Resized> {
        Ok(Resized { fd: signal::watch(&[libc::SIGWINCH])? })
    }

    /// False: it will never be heard of again.
    pub fn wait(&self) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        while let Err(e) = rustix::event::poll(&mut fds, None) {
            if e != rustix::io::Errno::INTR {
                return false;
            }
        }
        signal::read(self.fd.as_fd()).is_some()
    }
}

/// One run's own, for a process that has many: any thread may call it off.
pub struct Stop {
    fd: OwnedFd,
}

impl Stop {
    pub fn new() -> io::Result<Stop> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
        Ok(Stop { fd: rustix::event::eventfd(0, flags)? })
    }

    /// The first time the program may still end by itself, the second time it may not.
    pub fn now(&self) {
        // Full after 2^64 - 2 of them: it is readable then.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }
}

impl Cancel for Stop {
    fn take(&self) -> Option<i32> {
        rustix::io::read(&self.fd, &mut [0u8; 8]).ok().map(|_| libc::SIGTERM)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Signals for the program's main process, from any thread. Those that come before there is one wait for it.
pub struct Passed {
    fd: OwnedFd,
    waiting: Mutex<VecDeque<u8>>,
}

/// Who sends more than is heard repeats himself.
const MAX_PASSED: usize = 64;

impl Passed {
    pub fn new() -> io::Result<Passed> {
        let fd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Passed { fd, waiting: Mutex::default() })
    }

    pub fn send(&self, signal: u8) {
        let mut waiting = self.waiting();
        if waiting.len() < MAX_PASSED {
            waiting.push_back(signal);
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    pub(crate) fn take(&self) -> Vec<u8> {
        let _ = rustix::io::read(&self.fd, &mut [0u8; 8]);
        self.waiting().drain(..).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Passed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
