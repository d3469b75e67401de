//! Signals: sent to a whole namespace, blocked and read, reset, ignored.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::{check, owned};

pub(crate) fn send(pid: super::process::Pid, signal: i32) {
    // SAFETY: takes no pointers. ESRCH: it is dead already.
    unsafe { libc::kill(pid, signal) };
}

/// kill(-1): everything in this pid namespace but PID 1, which the caller must be.
pub(crate) fn send_to_everyone_else(signal: i32) {
    // SAFETY: takes no pointers. ESRCH (nobody is left) is as good as success.
    unsafe {
        if libc::getpid() == 1 {
            libc::kill(-1, signal);
        }
    }
}

/// A blocked set of signals as something to poll and read.
pub(crate) fn watch(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        check(libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()).into())?;
        owned(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK).into())
    }
}

/// The number of one waiting signal, if there is one.
pub(crate) fn read(fd: BorrowedFd<'_>) -> Option<i32> {
    // SAFETY: an all-zero signalfd_siginfo is valid and the kernel writes at most its size.
    unsafe {
        let mut info: libc::signalfd_siginfo = std::mem::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        let n = libc::read(fd.as_raw_fd(), (&raw mut info).cast(), size);
        (n == size as isize).then_some(info.ssi_signo as i32)
    }
}

/// Default action for every signal, and for what is started from here, and none blocked.
pub(crate) fn reset() {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL is a valid handler for each signal; those that can't be changed say EINVAL.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    unblock();
}

pub(crate) fn unblock() {
    // SAFETY: the set is initialised before use.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// A read from a terminal in the background is an error instead of a stop.
pub(crate) fn ignore(signal: i32) {
    // SAFETY: SIG_IGN is a valid handler; the previous one is not needed.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}
