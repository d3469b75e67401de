//! Whether the program has more tasks than it may, where no cgroup counts them.
//!
//! Forks are not notified: a signal that arrives before the supervisor has taken the notification would make fork fail
//! with EINTR, which it never does otherwise, and shells take that for the end. So the kernel holds the line one task
//! above the limit, and a cell that stands there has passed it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use crate::spec::Limits;
use crate::sys::process;
use crate::tasks;

/// What the kernel allows: the program's, init, and the one too many that is the evidence.
pub(super) fn line(limits: &Limits) -> u64 {
    limits.processes.saturating_add(2)
}

/// How many tasks there are when the kernel refuses one more: never without that, because a walk through /proc counts
/// twice what is replaced meanwhile. And never by that alone: the caller's own limit may be what is met.
pub(super) fn too_many(limits: &Limits) -> Option<u64> {
    match process::spawn(&mut || process::exit_now(0)) {
        Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
        _ => return None,
    }
    let tasks = tasks::count(proc()?.as_fd());
    (tasks > limits.processes).then_some(tasks)
}

/// How many there are now, at least.
pub(super) fn at_once() -> Option<u64> {
    let (proc, mut seen) = (proc()?, vec![]);
    tasks::each(proc.as_fd(), |process| seen.push(process.clone()));
    Some(tasks::at_once(proc.as_fd(), &seen))
}

fn proc() -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(c"/proc", flags, Mode::empty()).ok()
}
