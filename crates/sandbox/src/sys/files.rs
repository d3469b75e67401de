//! Files by directory fd: openat2, memory files, file-system usage.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::{check, owned};

/// openat2: nothing above `dir`, no link of any kind; the result is close-on-exec.
pub(crate) fn open_beneath(dir: BorrowedFd<'_>, path: &CStr, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: an all-zero open_how is a valid value of that plain C struct.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS | libc::RESOLVE_NO_SYMLINKS;
    // SAFETY: `path` is NUL-terminated, `how` is a live struct of the size given.
    owned(unsafe {
        libc::syscall(
            libc::SYS_openat2,
            dir.as_raw_fd(),
            path.as_ptr(),
            &how as *const libc::open_how,
            size_of::<libc::open_how>(),
        )
    })
}

/// A file of /proc, whose size nobody knows before it is read: in few reads, because each one makes the text anew.
pub(crate) fn read_proc(path: &str) -> io::Result<String> {
    let mut text = Vec::with_capacity(16 * 1024);
    std::io::Read::read_to_end(&mut std::fs::File::open(path)?, &mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What a file system holds and could hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) bytes_used: u64,
    pub(crate) bytes_free: u64,
    pub(crate) inodes_used: u64,
    pub(crate) inodes_free: u64,
}

pub(crate) fn usage(fd: BorrowedFd<'_>) -> io::Result<Usage> {
    // SAFETY: an all-zero statfs is valid, and the kernel fills the struct it is given.
    let st = unsafe {
        let mut st: libc::statfs = std::mem::zeroed();
        check(libc::fstatfs(fd.as_raw_fd(), &mut st).into())?;
        st
    };
    let block = st.f_bsize as u64;
    Ok(Usage {
        bytes_used: (st.f_blocks - st.f_bfree) * block,
        bytes_free: st.f_bavail * block,
        inodes_used: st.f_files - st.f_ffree,
        inodes_free: st.f_ffree,
    })
}

/// Copies `len` bytes at `offset` of `from` to the position of `to`, inside the kernel.
pub(crate) fn copy(from: BorrowedFd<'_>, mut offset: i64, to: BorrowedFd<'_>, len: u64) -> io::Result<()> {
    let end = offset + len as i64;
    while offset < end {
        // SAFETY: both fds are borrowed for the call and `offset` is a live i64.
        let n = check(unsafe {
            libc::sendfile(to.as_raw_fd(), from.as_raw_fd(), &mut offset, (end - offset) as usize) as libc::c_long
        })?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// The size of the terminal-free page; a power of two.
pub(crate) fn page_size() -> usize {
    // SAFETY: sysconf takes no pointers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}
