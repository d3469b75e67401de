//! Loading a filter with a listener, receiving and answering notifications, reading the caller's memory.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::{check, owned};

pub(crate) use libc::sock_filter;

const SECCOMP_SET_MODE_FILTER: libc::c_ulong = 1;
const FLAG_NEW_LISTENER: libc::c_ulong = 1 << 3;
/// Since 5.19: once we have the notification, only a fatal signal interrupts the caller, so that a signal
/// handler (Go's preemption) can't make it ask again and again.
const FLAG_WAIT_KILLABLE: libc::c_ulong = 1 << 5;

const IOCTL_RECV: libc::c_ulong = 0xc050_2100;
const IOCTL_SEND: libc::c_ulong = 0xc018_2101;
const IOCTL_ID_VALID: libc::c_ulong = 0x4008_2102;
const IOCTL_SET_FLAGS: libc::c_ulong = 0x4008_2104;
const FD_SYNC_WAKE_UP: u64 = 1;
const RESP_FLAG_CONTINUE: u32 = 1;

/// Installs `program` on the calling thread, which must be the only one and have NO_NEW_PRIVS, and returns the
/// fd on which its notifications arrive.
pub(crate) fn install(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let prog = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr() as *mut sock_filter };
    let load = |flags: libc::c_ulong| {
        // SAFETY: `prog` points to a live slice of the length given; the kernel copies it.
        owned(unsafe {
            libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog as *const libc::sock_fprog)
        })
    };
    match load(FLAG_NEW_LISTENER | FLAG_WAIT_KILLABLE) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => load(FLAG_NEW_LISTENER),
        other => other,
    }
}

/// One call that is waiting for our answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notification {
    pub(crate) id: u64,
    pub(crate) pid: i32,
    pub(crate) nr: i32,
    pub(crate) arch: u32,
    pub(crate) args: [u64; 6],
}

pub(crate) enum Answer {
    /// Let the kernel do, and refuse, what it would without us.
    Continue,
    Errno(i32),
    /// Done by us for the caller.
    Value(i64),
}

/// Wakes the answered thread on our own CPU: a notification costs microseconds instead of tens of them.
pub(crate) fn wake_synchronously(listener: BorrowedFd<'_>) {
    // SAFETY: takes an integer. Kernels before 6.6 do not know it and are only slower.
    unsafe { libc::ioctl(listener.as_raw_fd(), IOCTL_SET_FLAGS, FD_SYNC_WAKE_UP) };
}

/// The next notification. `None`: the caller died before we came.
pub(crate) fn receive(listener: BorrowedFd<'_>) -> io::Result<Option<Notification>> {
    // SAFETY: the struct must be all zero when handed over, and the kernel fills it.
    let n = unsafe {
        let mut n: libc::seccomp_notif = std::mem::zeroed();
        if let Err(e) = check(libc::ioctl(listener.as_raw_fd(), IOCTL_RECV, &mut n).into()) {
            return match e.raw_os_error() {
                Some(libc::ENOENT | libc::EINTR) => Ok(None),
                _ => Err(e),
            };
        }
        n
    };
    Ok(Some(Notification { id: n.id, pid: n.pid as i32, nr: n.data.nr, arch: n.data.arch, args: n.data.args }))
}

/// Answers; that the caller is gone by now is no error.
pub(crate) fn answer(listener: BorrowedFd<'_>, id: u64, answer: Answer) -> io::Result<()> {
    let mut resp = match answer {
        Answer::Continue => libc::seccomp_notif_resp { id, val: 0, error: 0, flags: RESP_FLAG_CONTINUE },
        Answer::Value(val) => libc::seccomp_notif_resp { id, val, error: 0, flags: 0 },
        Answer::Errno(e) => libc::seccomp_notif_resp { id, val: 0, error: -e, flags: 0 },
    };
    loop {
        // SAFETY: the kernel reads the live struct.
        match check(unsafe { libc::ioctl(listener.as_raw_fd(), IOCTL_SEND, &mut resp) }.into()) {
            // A signal of ours while the kernel waited for its lock: an answer that is lost hangs the caller.
            Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
            Err(e) if e.raw_os_error() != Some(libc::ENOENT) => return Err(e),
            _ => return Ok(()),
        }
    }
}

/// Whether the thread that asked is still there, waiting: what was read by its pid before was its own.
pub(crate) fn still_waiting(listener: BorrowedFd<'_>, mut id: u64) -> bool {
    loop {
        // SAFETY: the kernel reads one u64.
        match check(unsafe { libc::ioctl(listener.as_raw_fd(), IOCTL_ID_VALID, &mut id) }.into()) {
            Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
            valid => return valid.is_ok(),
        }
    }
}

/// Reads memory of another process; fewer bytes than asked for where its mapping ends.
pub(crate) fn read_memory(pid: i32, address: u64, buf: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: buf.len() };
    // SAFETY: the local buffer is live; the remote address is only looked up in the other process.
    let n = check(unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) } as libc::c_long)?;
    Ok(n as usize)
}

/// Whether this kernel can send notifications at all.
pub(crate) fn supports_notifications() -> bool {
    let action: u32 = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the kernel reads one u32 (SECCOMP_GET_ACTION_AVAIL).
    unsafe { libc::syscall(libc::SYS_seccomp, 2, 0, &action as *const u32) == 0 }
}

/// The version of Landlock that is on, asked with LANDLOCK_CREATE_RULESET_VERSION.
pub(crate) fn landlock_abi() -> Option<u32> {
    // SAFETY: with that flag the attribute pointer must be null and the size 0.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, 1) };
    u32::try_from(abi).ok().filter(|abi| *abi > 0)
}
