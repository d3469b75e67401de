//! A root that is being made: a directory by fd. Every look-up is beneath it and through no link, so that nothing an archive
//! says can lead out of it, whatever the archive has put there before.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};

/// Of directories for which an archive has no entry.
const PLAIN: u32 = 0o755;

pub(super) struct Root {
    dir: OwnedFd,
}

impl Root {
    pub(super) fn open(path: &Path) -> Result<Root> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Root { dir: rustix::fs::open(path, flags, Mode::empty())? })
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.dir
    }

    pub(super) fn directory(&self, path: &Path) -> Result<OwnedFd> {
        directory(&self.dir, if path.as_os_str().is_empty() { Path::new(".") } else { path })
    }

    /// A directory, made with those above it where it is not there; and how many were made.
    pub(super) fn made_directory(&self, path: &Path) -> Result<(OwnedFd, u64)> {
        match self.directory(path) {
            Err(Errno::NOENT) => {}
            found => return found.map(|fd| (fd, 0)),
        }
        let (mut dir, mut made) = (self.directory(Path::new(""))?, 0);
        for part in path.components() {
            let Component::Normal(name) = part else { return Err(Errno::INVAL) };
            dir = match directory(&dir, Path::new(name)) {
                Err(Errno::NOENT) => {
                    made += 1;
                    make_directory(&dir, name, PLAIN)?
                }
                found => found?,
            };
        }
        Ok((dir, made))
    }
}

/// ELOOP where a link is on the way, or at its end.
fn directory(dir: &OwnedFd, path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve)
}

/// A directory of this mode, whatever the umask; one that is there gets it, and anything else there goes.
pub(super) fn make_directory(parent: &OwnedFd, name: &OsStr, mode: u32) -> Result<OwnedFd> {
    let make = || rustix::fs::mkdirat(parent, name, Mode::RWXU);
    let mut dir = match make() {
        Ok(()) | Err(Errno::EXIST) => directory(parent, Path::new(name)),
        Err(e) => return Err(e),
    };
    if matches!(dir, Err(Errno::LOOP | Errno::NOTDIR)) {
        remove(parent, name)?;
        make()?;
        dir = directory(parent, Path::new(name));
    }
    let dir = dir?;
    rustix::fs::fchmod(&dir, Mode::from_raw_mode(mode))?;
    Ok(dir)
}

/// Makes what must be new: nothing is ever written into what was there.
pub(super) fn replace<T>(parent: &OwnedFd, name: &OsStr, make: impl Fn() -> Result<T>) -> Result<T> {
    match make() {
        Err(Errno::EXIST) => {
            remove(parent, name)?;
            make()
        }
        made => made,
    }
}

/// With all that is in it; a link goes, not what it leads to.
pub(super) fn remove(parent: &OwnedFd, name: &OsStr) -> Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(e) => return Err(e),
    }
    let dir = directory(parent, Path::new(name))?;
    each(&dir, |child| remove(&dir, child))?;
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Calls for each name in a directory, which may be removed meanwhile.
pub(super) fn each(dir: &OwnedFd, mut with: impl FnMut(&OsStr) -> Result<()>) -> Result<()> {
    for entry in Dir::read_from(dir.as_fd())? {
        let entry = entry?;
        match entry.file_name().to_bytes() {
            b"." | b".." => {}
            name => with(OsStr::from_bytes(name))?,
        }
    }
    Ok(())
}
