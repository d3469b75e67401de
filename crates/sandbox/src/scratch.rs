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
}

/// A tree deeper than this is an attack on whoever walks it.
const MAX_DEPTH: usize = 64;

impl Scratch {
    /// The regular files of the working directory, by name, at most `most`; true when there were more.
    pub fn files(&self, most: usize) -> io::Result<(Vec<Found>, bool)> {
        let mut found = vec![];
        let work = open(self.dir.as_fd(), Path::new("work"), libc::O_RDONLY | libc::O_DIRECTORY)?;
        let complete = walk(work.as_fd(), Path::new(""), MAX_DEPTH, most, &mut found);
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((found, !complete))
    }

    /// One of them, for reading.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        // Looked at before it is opened: opening a FIFO or a device is an act already.
        let path = Path::new("work").join(path);
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

/// False when it had to stop. A directory that can't be read is passed over: its owner wanted it so.
fn walk(dir: BorrowedFd<'_>, at: &Path, depth: usize, most: usize, found: &mut Vec<Found>) -> bool {
    let Ok(entries) = rustix::fs::Dir::read_from(dir) else { return true };
    let mut complete = true;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let name = Path::new(OsStr::from_bytes(name.to_bytes()));
        let Ok(stat) = rustix::fs::statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) else { continue };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                if found.len() == most {
                    return false;
                }
                found.push(Found { path: at.join(name), bytes: stat.st_size as u64 });
            }
            FileType::Directory => {
                let Ok(below) = open(dir, name, libc::O_RDONLY | libc::O_DIRECTORY) else { continue };
                complete &= depth > 0 && walk(below.as_fd(), &at.join(name), depth - 1, most, found);
            }
            _ => {}
        }
    }
    complete
}

/// Whether any file of the scratch is at least so long.
pub(crate) fn has_file_of(scratch: BorrowedFd<'_>, bytes: u64) -> bool {
    let mut found = vec![];
    walk(scratch, Path::new(""), MAX_DEPTH, usize::MAX, &mut found);
    found.iter().any(|file| file.bytes >= bytes)
}
