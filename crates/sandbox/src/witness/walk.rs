//! A look-up of the caller's path, step by step, as the kernel will do it for the caller.
//!
//! The kernel can't be asked to do it whole: `/proc/self` is another for us, and a magic link is followed only where we
//! mean to. So every component is opened by its directory's fd, links are read, and nothing is opened but with O_PATH.

use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, Stat};

/// The kernel's own limit.
const MAX_LINKS: usize = 40;

/// Where a path ends.
pub(super) struct Place {
    /// The directory of the last name, or the nearest one that is there.
    pub(super) dir: OwnedFd,
    /// The last name, with those before it that are not there either.
    pub(super) name: Vec<u8>,
    /// What is there; nothing when it would have to be made.
    pub(super) file: Option<OwnedFd>,
    /// Reached by an open file of the caller's (a descriptor, a link in /proc/PID/fd), not by a name.
    pub(super) by_fd: bool,
}

/// Who looks, and from where.
pub(super) struct Walk<'a> {
    pub(super) pid: i32,
    pub(super) root: &'a OwnedFd,
    /// Device and inode of the cell's proc.
    pub(super) proc: (u64, u64),
}

/// Why there is no place.
pub(super) enum Lost {
    /// The kernel will refuse it by itself: too many links, not a directory, a name that ends nowhere.
    Refused,
    /// We may not look: the program is one that nobody may read.
    Blind,
}

fn opened(dir: &OwnedFd, name: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(dir, name, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty())
}

fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Without descriptors of our own left we see nothing.
fn short_of_fds(e: rustix::io::Errno) -> Lost {
    match e {
        rustix::io::Errno::MFILE | rustix::io::Errno::NFILE => Lost::Blind,
        _ => Lost::Refused,
    }
}

impl Walk<'_> {
    /// The working directory (`None`) or an open file of the caller's.
    pub(super) fn base(&self, dirfd: Option<i32>) -> Result<OwnedFd, Lost> {
        let path = match dirfd {
            None => format!("/proc/{}/cwd", self.pid),
            Some(fd) => format!("/proc/{}/fd/{fd}", self.pid),
        };
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|e| match e {
            rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => Lost::Blind,
            other => short_of_fds(other),
        })
    }

    /// From `start`, or from the root for an absolute path. `follow` is for a link in the last place.
    pub(super) fn locate(&self, start: OwnedFd, path: &[u8], follow: bool) -> Result<Place, Lost> {
        let refused = |_| Lost::Refused;
        let split = |path: &[u8]| -> Vec<Vec<u8>> {
            path.split(|b| *b == b'/').filter(|c| !c.is_empty() && *c != b".").map(<[u8]>::to_vec).collect()
        };
        let mut here =
            if path.first() == Some(&b'/') { self.root.try_clone().map_err(|_| Lost::Blind)? } else { start };
        let mut ahead: VecDeque<Vec<u8>> = split(path).into();
        let mut links = 0;
        while let Some(name) = ahead.pop_front() {
            let stat = rustix::fs::fstat(&here).map_err(refused)?;
            if name == b".." {
                let at_root = id(&stat) == id(&rustix::fs::fstat(self.root).map_err(refused)?);
                if !at_root {
                    here = opened(&here, b"..", OFlags::DIRECTORY).map_err(refused)?;
                }
                continue;
            }
            let in_proc = stat.st_dev == self.proc.0;
            let at_proc = id(&stat) == self.proc;
            if at_proc && (name == b"self" || name == b"thread-self") {
                let (process, thread) = self.own_ids().ok_or(Lost::Refused)?;
                if name == b"thread-self" {
                    ahead.push_front(thread.into());
                    ahead.push_front(b"task".to_vec());
                }
                ahead.push_front(process.into());
                continue;
            }
            let last = ahead.is_empty();
            let entry = match opened(&here, &name, OFlags::NOFOLLOW) {
                Ok(entry) => entry,
                // Above the last name this is an error for the caller, whatever he was about to do there.
                Err(rustix::io::Errno::NOENT) => {
                    let name = [vec![name], ahead.into()].concat().join(&b'/');
                    return Ok(Place { dir: here, name, file: None, by_fd: false });
                }
                Err(e) => return Err(short_of_fds(e)),
            };
            let is_link =
                FileType::from_raw_mode(rustix::fs::fstat(&entry).map_err(refused)?.st_mode) == FileType::Symlink;
            if !is_link || (last && !follow) {
                if last {
                    return Ok(Place { dir: here, name, file: Some(entry), by_fd: false });
                }
                here = entry;
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(Lost::Refused);
            }
            if in_proc && !at_proc {
                // A magic link: it leads to an open file, not to a name.
                let target = opened(&here, &name, OFlags::empty()).map_err(|e| match e {
                    rustix::io::Errno::ACCESS => Lost::Blind,
                    _ => Lost::Refused,
                })?;
                if last {
                    return Ok(Place { dir: here, name, file: Some(target), by_fd: true });
                }
                here = target;
                continue;
            }
            let target = rustix::fs::readlinkat(&entry, c"", Vec::new()).map_err(refused)?.into_bytes();
            if target.first() == Some(&b'/') {
                here = self.root.try_clone().map_err(|_| Lost::Blind)?;
            }
            for part in split(&target).into_iter().rev() {
                ahead.push_front(part);
            }
        }
        let file = here.try_clone().map_err(|_| Lost::Blind)?;
        Ok(Place { dir: here, name: vec![], file: Some(file), by_fd: false })
    }

    /// The caller's process and thread id, as the cell's own /proc names them.
    fn own_ids(&self) -> Option<(String, String)> {
        // The name in it may be any bytes.
        let status = std::fs::read(format!("/proc/{}/status", self.pid)).ok()?;
        let status = String::from_utf8_lossy(&status);
        let innermost =
            |key: &str| status.lines().find_map(|l| l.strip_prefix(key)?.split_whitespace().last().map(str::to_owned));
        Some((innermost("NStgid:")?, innermost("NSpid:")?))
    }
}

/// The name that the kernel has for an open file, from the root of its mounts.
pub(super) fn name_of(file: &OwnedFd) -> String {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()), Vec::new());
    link.map_or_else(|_| "?".into(), |name| name.to_string_lossy().into_owned())
}
