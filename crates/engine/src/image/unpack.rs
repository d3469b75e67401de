//! The entries of a layer into a root: files, directories and links; what a whiteout names goes.
//!
//! Left out are owners (all belongs to whoever runs this), the bits that give a program another's rights, extended
//! attributes, devices and FIFOs. A symbolic link is kept as it is, and never followed. A file is always a new one.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::error::{ImageError, shown};
use super::layer::Room;
use super::root::{Root, each, make_directory, remove, replace};
use super::tar::{Entry, Kind, Stream, Tar};

const WHITEOUT: &[u8] = b".wh.";
/// What is in the directory goes, not the directory.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Removing a directory takes two fds a level.
const MAX_DEPTH: usize = 128;
const MAX_NAME: usize = 255;
const MAX_PATH: usize = 4095;

struct Unpacking<'a> {
    root: &'a Root,
    entries_left: &'a mut u64,
    left_out: u64,
    /// The paths that this layer has made, as keyed hashes: they may be many and long. Whiteouts are for the layers below.
    made: HashSet<u64>,
    key: RandomState,
    buffer: Vec<u8>,
}

/// Returns how many devices and FIFOs were left out.
pub(super) fn unpack<R: Stream>(tar: &mut Tar<R>, root: &Root, entries_left: &mut u64) -> Result<u64, ImageError> {
    let (made, key, buffer) = (HashSet::new(), RandomState::new(), vec![0; 128 << 10]);
    let mut to = Unpacking { root, entries_left, left_out: 0, made, key, buffer };
    while let Some(entry) = tar.next()? {
        to.spend(1)?;
        to.entry(&entry, tar)?;
    }
    Ok(to.left_out)
}

/// A path in the image, of names only.
fn clean(entry: &[u8], path: &[u8]) -> Result<PathBuf, ImageError> {
    let mut parts: Vec<&[u8]> = vec![];
    // One that begins with `/` begins at the image's root, like every other.
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err(ImageError::escape(entry, "it has `..` in it")),
            part if part.contains(&0) => return Err(unusable(entry, "has a zero byte in its name")),
            part if part.len() > MAX_NAME => return Err(unusable(entry, "has too long a name")),
            part => parts.push(part),
        }
    }
    let joined = parts.join(&b'/');
    if joined.len() > MAX_PATH || parts.len() > MAX_DEPTH {
        return Err(unusable(entry, "lies too deep"));
    }
    Ok(PathBuf::from(OsStr::from_bytes(&joined)))
}

fn unusable(entry: &[u8], why: &str) -> ImageError {
    ImageError::corrupt(format!("`{}` {why}", shown(entry)))
}

/// What the kernel said of an entry.
fn refused(entry: &[u8], error: Errno) -> ImageError {
    match error {
        Errno::LOOP | Errno::XDEV => ImageError::escape(entry, "it goes through a link"),
        Errno::NOTDIR => unusable(entry, "lies below what is no directory"),
        error => ImageError::Write { entry: shown(entry), error: error.into() },
    }
}

impl Unpacking<'_> {
    fn spend(&mut self, entries: u64) -> Result<(), ImageError> {
        let too_many = || ImageError::TooLarge { why: format!("it has more than {} entries", Room::WHOLE.entries) };
        *self.entries_left = self.entries_left.checked_sub(entries).ok_or_else(too_many)?;
        Ok(())
    }

    fn entry(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<(), ImageError> {
        let failed = |e| refused(&entry.name, e);
        let path = clean(&entry.name, &entry.name)?;
        let (Some(name), Some(above)) = (path.file_name(), path.parent()) else {
            return self.root_itself(entry);
        };
        if above.iter().any(|part| part.as_bytes().starts_with(WHITEOUT)) {
            return Err(ImageError::escape(&entry.name, "a whiteout is no directory"));
        }
        if let Some(gone) = name.as_bytes().strip_prefix(WHITEOUT) {
            return self.whiteout(entry, above, name, gone);
        }
        let (parent, made) = self.root.made_directory(above).map_err(failed)?;
        self.spend(made)?;
        self.remember(&path);
        match entry.kind {
            Kind::File => self.file(entry, content, &parent, name),
            Kind::Directory => make_directory(&parent, name, directory_mode(entry)).map(drop).map_err(failed),
            Kind::Symlink => {
                if entry.link.is_empty() || entry.link.contains(&0) || entry.link.len() > MAX_PATH {
                    return Err(unusable(&entry.name, "is a link to no path"));
                }
                let link = || rustix::fs::symlinkat(OsStr::from_bytes(&entry.link), &parent, name);
                replace(&parent, name, link).map_err(failed)
            }
            Kind::HardLink => self.hard_link(entry, &parent, name),
            // What was there before is gone all the same.
            Kind::Special => {
                self.left_out += 1;
                remove(&parent, name).map_err(failed)
            }
        }
    }

    /// It may say which mode it has, and never become anything else. Everybody in the cell must be able to come by.
    fn root_itself(&self, entry: &Entry) -> Result<(), ImageError> {
        if entry.kind != Kind::Directory {
            return Err(ImageError::escape(&entry.name, "it would replace the root itself"));
        }
        let mode = Mode::from_raw_mode(directory_mode(entry) | 0o755);
        rustix::fs::fchmod(self.root.fd(), mode).map_err(|e| refused(&entry.name, e))
    }

    fn file(
        &mut self,
        entry: &Entry,
        content: &mut dyn Read,
        parent: &OwnedFd,
        name: &OsStr,
    ) -> Result<(), ImageError> {
        let failed = |e| refused(&entry.name, e);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(parent, name, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(replace(parent, name, open).map_err(failed)?);
        loop {
            let read = content.read(&mut self.buffer)?;
            if read == 0 {
                break;
            }
            let written = file.write_all(&self.buffer[..read]);
            written.map_err(|error| ImageError::Write { entry: shown(&entry.name), error })?;
        }
        rustix::fs::fchmod(&file, Mode::from_raw_mode(entry.mode & 0o777 | 0o400)).map_err(failed)?;
        // Compiled files are compared to their sources by time.
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: entry.modified, tv_nsec: 0 },
        };
        rustix::fs::futimens(&file, &times).map_err(failed)
    }

    fn hard_link(&self, entry: &Entry, parent: &OwnedFd, name: &OsStr) -> Result<(), ImageError> {
        let failed = |e| match e {
            Errno::NOENT => {
                unusable(&entry.name, &format!("is a link to `{}`, which is not there", shown(&entry.link)))
            }
            e => refused(&entry.name, e),
        };
        let to = clean(&entry.name, &entry.link)?;
        let (Some(to_name), Some(above)) = (to.file_name(), to.parent()) else {
            return Err(ImageError::escape(&entry.name, "it is a link to the root itself"));
        };
        let from = self.root.directory(above).map_err(failed)?;
        let stat = rustix::fs::statat(&from, to_name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return Err(unusable(&entry.name, "is a hard link to a directory"));
        }
        // Without AT_SYMLINK_FOLLOW: of a symbolic link, the link itself.
        let link = || rustix::fs::linkat(&from, to_name, parent, name, AtFlags::empty());
        replace(parent, name, link).map_err(failed)
    }

    fn whiteout(&self, entry: &Entry, above: &Path, name: &OsStr, gone: &[u8]) -> Result<(), ImageError> {
        let failed = |e| refused(&entry.name, e);
        let dir = match self.root.directory(above) {
            Err(Errno::NOENT) => return Ok(()),
            dir => dir.map_err(failed)?,
        };
        if name.as_bytes() == OPAQUE {
            return each(&dir, |child| self.remove_below(&dir, child, &above.join(child))).map_err(failed);
        }
        if matches!(gone, b"" | b"." | b"..") || gone.starts_with(WHITEOUT) {
            return Err(ImageError::escape(&entry.name, "it is a whiteout of no name"));
        }
        let gone = OsStr::from_bytes(gone);
        self.remove_below(&dir, gone, &above.join(gone)).map_err(failed)
    }

    /// What the layers below have there.
    fn remove_below(&self, parent: &OwnedFd, name: &OsStr, path: &Path) -> rustix::io::Result<()> {
        if !self.made.contains(&self.key_of(path)) {
            return remove(parent, name);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(parent, name, flags, Mode::empty()) {
            Ok(dir) => each(&dir, |child| self.remove_below(&dir, child, &path.join(child))),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => Ok(()),
            Err(e) => Err(e),
        }
    }

    fn remember(&mut self, path: &Path) {
        for above in path.ancestors() {
            if !self.made.insert(self.key_of(above)) {
                break;
            }
        }
    }

    fn key_of(&self, path: &Path) -> u64 {
        self.key.hash_one(path.as_os_str().as_bytes())
    }
}

/// Whoever unpacked it can also remove it.
fn directory_mode(entry: &Entry) -> u32 {
    entry.mode & 0o1777 | 0o700
}
