//! Every system call that needs `unsafe`, each behind a function that cannot be misused from safe code.
//!
//! Nothing here knows what a cell is. The functions take borrowed fds and C strings, return `io::Result`,
//! and do not allocate between a `clone` and an `exec` unless their caller is single-threaded, which every
//! process of ours that forks is.
#![allow(unsafe_code)]

pub(crate) mod files;
pub(crate) mod identity;
pub(crate) mod mount;
pub(crate) mod process;
pub(crate) mod seccomp;
pub(crate) mod signal;
pub(crate) mod socket;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Turns the C convention (-1 and errno) into a `Result`.
fn check(ret: libc::c_long) -> io::Result<libc::c_long> {
    if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(ret) }
}

/// Takes ownership of an fd that a system call just returned.
fn owned(ret: libc::c_long) -> io::Result<OwnedFd> {
    let fd = check(ret)?;
    // SAFETY: the kernel has just returned `fd` as new and nothing else in this process knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
