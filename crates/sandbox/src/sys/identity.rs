//! Who a process is: users, groups, capabilities.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::check;
use super::process::{exit_now, prctl};

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;
const CAP_LAST_POSSIBLE: libc::c_ulong = 63;

/// The supplementary ones.
pub(crate) fn leave_groups() -> io::Result<()> {
    // SAFETY: an empty list is read through no pointer.
    check(unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) })?;
    Ok(())
}

/// Group list, gid and uid, all of them, in the order in which they can still be changed.
pub(crate) fn become_user(uid: u32, gid: u32, drop_groups: bool) -> io::Result<()> {
    if drop_groups {
        leave_groups()?;
    }
    set_ids(uid, uid, gid)
}

/// The same of one who acts as `uid` and is counted as `real`: the kernel counts by the real id, and all else goes by the
/// effective one.
pub(crate) fn become_user_counted_as(real: u32, uid: u32, gid: u32) -> io::Result<()> {
    leave_groups()?;
    set_ids(real, uid, gid)
}

fn set_ids(real: u32, uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: none takes a pointer. The raw calls change this thread only, which is the only one.
    unsafe {
        check(libc::syscall(libc::SYS_setresgid, gid, gid, gid))?;
        check(libc::syscall(libc::SYS_setresuid, real, uid, uid))?;
    }
    Ok(())
}

/// Changes the effective ids alone, with all capabilities kept: a change of them away from root switches them off.
pub(super) fn act_as((uid, gid): (u32, u32)) -> io::Result<()> {
    const SAME: libc::c_long = -1;
    // SAFETY: none takes a pointer. The raw calls change this thread only, which is the only one.
    unsafe {
        check(libc::syscall(libc::SYS_setresgid, SAME, gid, SAME))?;
        check(libc::syscall(libc::SYS_setresuid, SAME, uid, SAME))?;
    }
    let mut sets = capabilities()?;
    sets.iter_mut().for_each(|set| set.effective = set.permitted);
    set_capabilities(&sets)
}

/// Another open file of the same, as if `owner` had opened it: of some, what may be written is decided by who did.
pub(crate) fn reopen_for(owner: (u32, u32), fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    act_as(owner)?;
    let opened =
        rustix::fs::open(format!("/proc/self/fd/{}", fd.as_raw_fd()), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    if act_as((0, 0)).is_err() {
        exit_now(70);
    }
    Ok(opened?)
}

#[repr(C)]
struct CapHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Default, Clone, Copy, PartialEq)]
struct CapData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn capabilities() -> io::Result<[CapData; 2]> {
    let mut sets = [CapData::default(); 2];
    let header = CapHeader { version: CAPABILITY_VERSION_3, pid: 0 };
    // SAFETY: header and data are live structs of the layout that version 3 prescribes.
    check(unsafe { libc::syscall(libc::SYS_capget, &header, sets.as_mut_ptr()) })?;
    Ok(sets)
}

fn set_capabilities(sets: &[CapData; 2]) -> io::Result<()> {
    let header = CapHeader { version: CAPABILITY_VERSION_3, pid: 0 };
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_capset, &header, sets.as_ptr()) })?;
    Ok(())
}

/// Gives up all capabilities but `kept`, for good.
pub(crate) fn keep_capabilities(kept: &[u32]) -> io::Result<()> {
    let mut sets = capabilities()?;
    for (n, set) in sets.iter_mut().enumerate() {
        let mask = kept.iter().filter(|cap| **cap as usize / 32 == n).fold(0, |mask, cap| mask | 1 << (cap % 32));
        set.permitted &= mask;
        set.effective = set.permitted;
        set.inheritable = 0;
    }
    set_capabilities(&sets)
}

/// Empties the ambient, bounding, effective, permitted and inheritable sets, then asserts that they are.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    let none = [CapData::default(); 2];
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong)?;
    for cap in 0..=CAP_LAST_POSSIBLE {
        // EINVAL: past the last capability of this kernel.
        if prctl(libc::PR_CAPBSET_DROP, cap).is_err() {
            break;
        }
    }
    set_capabilities(&none)?;
    let left = capabilities()?;
    let bounding = (0..=CAP_LAST_POSSIBLE).any(|cap| matches!(prctl(libc::PR_CAPBSET_READ, cap), Ok(1)));
    if left != none || bounding {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    Ok(())
}
