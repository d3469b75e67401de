//! The caller's own signals as something to poll: Ctrl-C and its like become a cancelled run.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::signal;

/// SIGINT, SIGTERM and SIGHUP of this process, blocked and readable instead.
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// For the main thread, before there are others: signals are blocked thread by thread.
    pub fn catch() -> io::Result<Signals> {
        // A copy of a terminal's input in the background then is an error, which ends the input.
        signal::ignore(libc::SIGTTIN);
        // A stopped supervisor would leave a running program without its clock and its witness.
        signal::ignore(libc::SIGTSTP);
        Ok(Signals { fd: signal::watch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])? })
    }

    pub(crate) fn take(&self) -> Option<i32> {
        signal::read(self.fd.as_fd())
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
