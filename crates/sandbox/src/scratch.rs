//! What the program left in its scratch, taken out after its death, when nothing can move any more.
//!
//! Names and links are the program's own: every look-up is by directory fd, beneath it, through no link, and nothing
//! but a regular file is ever opened.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::sys::files;

/// The program's writable tree, by fd.
#[derive(Debug)]
pub struct Scratch {
    pub(crate) dir: OwnedFd,
}

/// A regular file below the working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub path: PathBuf,
    pub bytes: u64,
    /// Permissions, without set-id bits.
    pub mode: u32,
}

/// What there is besides the files that were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlisted {
    /// More than were asked for, or deeper ones.
    pub more: bool,
    /// Directories that could not be read.
    pub unread: bool,
}

/// The directory of the scratch that the program sees as the `n`th of `Spec::writable`.
pub(crate) fn writable_name(n: usize) -> String {
    format!("w{n}")
}

/// A tree deeper than this is an attack on whoever walks it.
const MAX_DEPTH: usize = 64;

impl Scratch {
    /// The regular files of the working directory, by name, at most `most`.
    pub fn files(&self, most: usize) -> io::Result<(Vec<Found>, Unlisted)> {
        self.look("work", most)
    }

    /// The same of the `n`th directory of `Spec::writable`; a directory that cannot be read is an error there, because what
    /// is in it would look as if it were gone.
    pub fn writable_files(&self, n: usize, most: usize) -> io::Result<(Vec<Found>, bool)> {
        match self.look(&writable_name(n), most)? {
            (_, Unlisted { unread: true, .. }) => Err(io::ErrorKind::PermissionDenied.into()),
            (found, unlisted) => Ok((found, unlisted.more)),
        }
    }

    fn look(&self, dir: &str, most: usize) -> io::Result<(Vec<Found>, Unlisted)> {
        let dir = open(self.dir.as_fd(), Path::new(dir), libc::O_RDONLY | libc::O_DIRECTORY)?;
        let mut walk = Walk { most, ..Walk::default() };
        walk.through(dir.as_fd(), Path::new(""), MAX_DEPTH);
        walk.found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((walk.found, walk.unlisted))
    }

    /// One of the working directory's, for reading.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        self.open_in("work", path)
    }

    /// One of the `n`th directory of `Spec::writable`.
    pub fn open_writable(&self, n: usize, path: &Path) -> io::Result<File> {
        self.open_in(&writable_name(n), path)
    }

    fn open_in(&self, dir: &str, path: &Path) -> io::Result<File> {
        // Looked at before it is opened: opening a FIFO or a device is an act already.
        let path = Path::new(dir).join(path);
        let looked = open(self.dir.as_fd(), &path, libc::O_PATH)?;
        if !is_regular(looked.as_fd())? {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let fd = open(self.dir.as_fd(), &path, libc::O_RDONLY | libc::O_NONBLOCK)?;
        if !is_regular(fd.as_fd())? {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(fd.into())
    }
}

fn open(dir: BorrowedFd<'_>, path: &Path, flags: i32) -> io::Result<OwnedFd> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    files::open_beneath(dir, &name, flags | libc::O_NOFOLLOW)
}

fn is_regular(fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode) == FileType::RegularFile)
}

#[derive(Default)]
struct Walk {
    most: usize,
    found: Vec<Found>,
    unlisted: Unlisted,
}

impl Walk {
    fn through(&mut self, dir: BorrowedFd<'_>, at: &Path, depth: usize) {
        let Ok(entries) = rustix::fs::Dir::read_from(dir) else {
            self.unlisted.unread = true;
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let name = Path::new(OsStr::from_bytes(name.to_bytes()));
            let Ok(stat) = rustix::fs::statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) else {
                self.unlisted.unread = true;
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile if self.found.len() == self.most => {
                    self.unlisted.more = true;
                    return;
                }
                FileType::RegularFile => {
                    let (bytes, mode) = (stat.st_size as u64, stat.st_mode & 0o777);
                    self.found.push(Found { path: at.join(name), bytes, mode });
                }
                FileType::Directory if depth == 0 => self.unlisted.more = true,
                FileType::Directory => match open(dir, name, libc::O_RDONLY | libc::O_DIRECTORY) {
                    Ok(below) => self.through(below.as_fd(), &at.join(name), depth - 1),
                    Err(_) => self.unlisted.unread = true,
                },
                _ => {}
            }
        }
    }
}

/// Whether any file of the scratch is at least so long.
pub(crate) fn has_file_of(scratch: BorrowedFd<'_>, bytes: u64) -> bool {
    let mut walk = Walk { most: usize::MAX, ..Walk::default() };
    walk.through(scratch, Path::new(""), MAX_DEPTH);
    walk.found.iter().any(|file| file.bytes >= bytes)
}
