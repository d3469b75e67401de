//! A repository of the host's: what a lease shows of it, what a run changed, and how that is taken back.
//!
//! Every look-up is by the root's fd, beneath it, through no link. What may be changed is a copy in the cell's scratch: the
//! host takes the changes out of a dead cell and writes them itself, when the run has passed. So a program never writes
//! into the host, and a run that fails changes nothing.

mod changes;
mod rollback;
mod select;
mod unfinished;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, ResolveFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) use changes::Manifest;
pub(crate) use changes::{Changes, MANIFEST, changes};
pub(crate) use rollback::rollback;
pub use rollback::{Restored, RollbackError};
pub(crate) use select::{Selection, Snapshot, select};

use crate::keys::hex;

/// A directory by fd.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) root: PathBuf,
    dir: OwnedFd,
}

/// A file as it is or was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileState {
    pub(crate) sha256: String,
    /// Permissions.
    pub(crate) mode: u32,
    pub(crate) bytes: u64,
}

impl FileState {
    pub(crate) fn of(bytes: &[u8], mode: u32) -> FileState {
        FileState { sha256: hex(&Sha256::digest(bytes)), mode, bytes: bytes.len() as u64 }
    }
}

/// Who changes a repository does so in moments.
const LOCK_WITHIN: Duration = Duration::from_secs(30);

/// A file that is larger is not copied into cells or out of them.
const MAX_FILE: u64 = 64 << 20;

impl Repository {
    pub(crate) fn open(path: &Path) -> io::Result<Repository> {
        let root = path.canonicalize()?;
        let dir = rustix::fs::open(&root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Repository { root, dir })
    }

    /// Alone with the repository, among those of us who change it, until the fd is closed.
    pub(crate) fn lock(&self) -> io::Result<OwnedFd> {
        let fd = self.directory(Path::new(""))?;
        let until = Instant::now() + LOCK_WITHIN;
        loop {
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(fd),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(io::Error::other("somebody else is changing it")),
                Err(e) => return Err(e.into()),
            }
        }
    }

    fn beneath(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(rustix::fs::openat2(&self.dir, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, mode, resolve)?)
    }

    pub(crate) fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        self.beneath(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// A regular file and its permissions; `None` where there is nothing.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Option<(Vec<u8>, u32)>> {
        // Looked at before it is opened: opening a FIFO or a device is an act already.
        let looked = match self.beneath(path, OFlags::PATH, Mode::empty()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            looked => looked?,
        };
        if FileType::from_raw_mode(rustix::fs::fstat(&looked)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is no regular file"));
        }
        let file = File::from(self.beneath(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?);
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut bytes = vec![];
        file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(io::Error::other(format!("it has more than {MAX_FILE} bytes")));
        }
        Ok(Some((bytes, stat.st_mode & 0o7777)))
    }

    pub(crate) fn state(&self, path: &Path) -> io::Result<Option<FileState>> {
        Ok(self.read(path)?.map(|(bytes, mode)| FileState::of(&bytes, mode)))
    }

    /// Writes a file whole or not at all, over what was there. `may_make` says which directories may be new.
    pub(crate) fn write(
        &self,
        path: &Path,
        bytes: &[u8],
        mode: u32,
        may_make: &dyn Fn(&Path) -> bool,
    ) -> io::Result<()> {
        let (above, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
        let dir = self.make_directories(above, may_make)?;
        let owner = rustix::fs::fstat(&dir)?;
        let owner = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).unwrap_or(owner);
        let (staged, mut file) = unfinished::create(&dir)?;
        let mut written = || -> io::Result<()> {
            file.write_all(bytes)?;
            if rustix::process::geteuid().is_root() {
                let (uid, gid) = (rustix::fs::Uid::from_raw(owner.st_uid), rustix::fs::Gid::from_raw(owner.st_gid));
                rustix::fs::fchown(&file, Some(uid), Some(gid))?;
            }
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o7777))?;
            file.sync_all()?;
            Ok(rustix::fs::renameat(&dir, &staged, &dir, name)?)
        };
        written().inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&dir, &staged, AtFlags::empty());
        })
    }

    fn make_directories(&self, path: &Path, may_make: &dyn Fn(&Path) -> bool) -> io::Result<OwnedFd> {
        let mut at = PathBuf::new();
        for name in path.iter() {
            let above = self.directory(&at)?;
            at.push(name);
            if !may_make(&at) {
                continue;
            }
            match rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o755)) {
                Ok(()) if rustix::process::geteuid().is_root() => {
                    let owner = rustix::fs::fstat(&above)?;
                    let (uid, gid) = (rustix::fs::Uid::from_raw(owner.st_uid), rustix::fs::Gid::from_raw(owner.st_gid));
                    rustix::fs::fchown(self.directory(&at)?, Some(uid), Some(gid))?;
                }
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.directory(path)
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let dir = self.directory(path.parent().unwrap_or(Path::new("")))?;
        Ok(rustix::fs::unlinkat(&dir, path.file_name().unwrap_or_default(), AtFlags::empty())?)
    }

    /// If there is nothing in it.
    pub(crate) fn remove_directory(&self, path: &Path) {
        let above = self.directory(path.parent().unwrap_or(Path::new("")));
        let _ = above.and_then(|above| {
            Ok(rustix::fs::unlinkat(above, path.file_name().unwrap_or_default(), AtFlags::REMOVEDIR)?)
        });
    }
}
