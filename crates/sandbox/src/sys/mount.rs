//! Mounts: detached trees, their attributes, the old calls for tmpfs and proc, pivot_root.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::null;

use super::{check, owned};

pub(crate) use libc::{MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY};

pub(crate) const ATTR_RDONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(crate) const ATTR_NOSUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(crate) const ATTR_NODEV: u64 = libc::MOUNT_ATTR_NODEV;
pub(crate) const ATTR_NOEXEC: u64 = libc::MOUNT_ATTR_NOEXEC;

const OPEN_TREE_CLONE: libc::c_uint = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;

/// A detached copy of the mount at `path` below `dir`, with everything mounted under it when `recursive`.
pub(crate) fn clone_tree(dir: BorrowedFd<'_>, path: &CStr, recursive: bool) -> io::Result<OwnedFd> {
    let mut flags = OPEN_TREE_CLONE | libc::O_CLOEXEC as libc::c_uint | libc::AT_EMPTY_PATH as libc::c_uint;
    if recursive {
        flags |= libc::AT_RECURSIVE as libc::c_uint;
    }
    // SAFETY: `path` is NUL-terminated and the fd is borrowed for the call.
    owned(unsafe { libc::syscall(libc::SYS_open_tree, dir.as_raw_fd(), path.as_ptr(), flags) })
}

/// Sets attributes on a mount; with `recursive`, on everything below it too.
///
/// The mount is made private too: one that stays in the host's peer group would receive what the host mounts later.
pub(crate) fn set_attr(mount: BorrowedFd<'_>, set: u64, recursive: bool) -> io::Result<()> {
    let attr = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 };
    let mut flags = libc::AT_EMPTY_PATH;
    if recursive {
        flags |= libc::AT_RECURSIVE;
    }
    // SAFETY: the path is empty, `attr` is a live struct of the size given.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &attr as *const libc::mount_attr,
            size_of::<libc::mount_attr>(),
        )
    })?;
    Ok(())
}

/// Attaches a detached tree at `path` below `dir`.
pub(crate) fn attach(tree: BorrowedFd<'_>, dir: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    // SAFETY: both paths are NUL-terminated, both fds are borrowed for the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            dir.as_raw_fd(),
            path.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    })?;
    Ok(())
}

/// A new file system of type `kind` at `target`.
pub(crate) fn mount_new(kind: &CStr, target: &CStr, flags: libc::c_ulong, options: &CStr) -> io::Result<()> {
    // SAFETY: all four strings are NUL-terminated and outlive the call.
    let done = unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) };
    check(done.into())?;
    Ok(())
}

/// `from` again at `to`.
pub(crate) fn bind(from: &CStr, to: &CStr) -> io::Result<()> {
    // SAFETY: both strings are NUL-terminated; a bind reads no type and no data.
    check(unsafe { libc::mount(from.as_ptr(), to.as_ptr(), null(), libc::MS_BIND, null()) }.into())?;
    Ok(())
}

/// No mount event leaves or enters this namespace.
pub(crate) fn make_private() -> io::Result<()> {
    // SAFETY: "/" is a static string; a propagation change reads no other pointer.
    check(unsafe { libc::mount(null(), c"/".as_ptr(), null(), libc::MS_REC | libc::MS_PRIVATE, null()) }.into())?;
    Ok(())
}

/// The working directory becomes `/`; the old root is stacked upon it until it is detached.
pub(crate) fn pivot_here() -> io::Result<()> {
    // SAFETY: both strings are static.
    check(unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) })?;
    Ok(())
}

/// Detaches whatever is mounted at the working directory, with everything below it.
pub(crate) fn detach_here() -> io::Result<()> {
    // SAFETY: the string is static.
    check(unsafe { libc::umount2(c".".as_ptr(), libc::MNT_DETACH) }.into())?;
    Ok(())
}
