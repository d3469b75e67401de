//! A directory of a cgroup file system: read, write, lock, remove; and which are mounted where.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::sys::files;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};

/// One group directory, by fd, with the parent it can be removed from.
pub(super) struct Dir {
    fd: OwnedFd,
    parent: Rc<OwnedFd>,
    name: CString,
}

/// How long a group may take to become empty after everything in it was killed.
const EMPTY_WITHIN: Duration = Duration::from_secs(5);
const SWEPT_WITHIN: Duration = Duration::from_millis(20);

pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

pub(super) fn open_at(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

pub(super) fn open_file(dir: BorrowedFd<'_>, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty())?)
}

pub(super) fn write(dir: BorrowedFd<'_>, name: &str, value: &str) -> io::Result<()> {
    let file = open_file(dir, name, OFlags::WRONLY)?;
    rustix::io::write(&file, value.as_bytes())?;
    Ok(())
}

pub(super) fn read(dir: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    let file = open_file(dir, name, OFlags::RDONLY)?;
    let mut buf = [0u8; 4096];
    let n = rustix::io::read(&file, &mut buf)?;
    Ok(String::from_utf8_lossy(&buf[..n]).into_owned())
}

/// The number behind `key ` in a file of such lines, or the whole file's when `key` is empty.
pub(super) fn number(dir: BorrowedFd<'_>, name: &str, key: &str) -> Option<u64> {
    let text = read(dir, name).ok()?;
    if key.is_empty() {
        return text.trim().parse().ok();
    }
    keyed(&text, key)
}

pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

impl Dir {
    /// Makes and locks a new group below `parent`; its name is not one that exists.
    pub(super) fn make(parent: &Rc<OwnedFd>, name: &CStr) -> io::Result<Dir> {
        // Nobody sweeps between the making and the locking.
        rustix::fs::flock(parent, FlockOperation::LockShared)?;
        let made = Dir::make_locked(parent, name);
        rustix::fs::flock(parent, FlockOperation::Unlock)?;
        made
    }

    fn make_locked(parent: &Rc<OwnedFd>, name: &CStr) -> io::Result<Dir> {
        rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755))?;
        let dir = Dir { fd: open_at(parent.as_fd(), name)?, parent: parent.clone(), name: name.to_owned() };
        rustix::fs::flock(&dir.fd, FlockOperation::NonBlockingLockExclusive)?;
        Ok(dir)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// rmdir, until the last task that was killed has left. A group that never empties stays, to be swept later.
    pub(super) fn remove(self) {
        remove(self.parent.as_fd(), &self.name, EMPTY_WITHIN);
    }
}

fn remove(parent: BorrowedFd<'_>, name: &CStr, within: Duration) {
    let until = Instant::now() + within;
    while let Err(rustix::io::Errno::BUSY) = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        if Instant::now() > until {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Removes each group below `base` that nobody holds the lock of, after `kill` was asked for it. Makers wait for us, so
/// that nobody is waited for here: what is busy still is the next sweeper's.
pub(super) fn sweep(base: BorrowedFd<'_>, kill: impl Fn(BorrowedFd<'_>)) {
    if rustix::fs::flock(base, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    sweep_locked(base, kill);
    let _ = rustix::fs::flock(base, FlockOperation::Unlock);
}

fn sweep_locked(base: BorrowedFd<'_>, kill: impl Fn(BorrowedFd<'_>)) {
    let Ok(entries) = rustix::fs::Dir::read_from(base) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if entry.file_type() != rustix::fs::FileType::Directory || name.to_bytes().starts_with(b".") {
            continue;
        }
        let Ok(fd) = open_at(base, name) else {
            continue;
        };
        if rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).is_ok() {
            kill(fd.as_fd());
            remove(base, name, SWEPT_WITHIN);
        }
    }
}

/// Where the hierarchies of this host are mounted.
#[derive(Default)]
pub(super) struct Mounts {
    pub(super) v2: Option<PathBuf>,
    /// By controller.
    pub(super) v1: BTreeMap<String, PathBuf>,
}

pub(super) fn mounts() -> io::Result<Mounts> {
    let mut found = Mounts::default();
    for line in files::read_proc("/proc/self/mountinfo")?.lines() {
        // ... root mountpoint options [optional]* - type source superoptions
        let Some((left, right)) = line.split_once(" - ") else {
            continue;
        };
        let (Some(point), mut right) = (left.split(' ').nth(4), right.split(' ')) else {
            continue;
        };
        match right.next() {
            Some("cgroup2") if found.v2.is_none() => found.v2 = Some(point.into()),
            Some("cgroup") => {
                for option in right.nth(1).unwrap_or_default().split(',') {
                    found.v1.entry(option.to_owned()).or_insert_with(|| point.into());
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// A name no other group of this process has had.
pub(super) fn fresh_name() -> CString {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("cell-{}-{n}", std::process::id());
    CString::new(name).unwrap_or_default()
}
