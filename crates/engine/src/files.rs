//! Files that somebody names: regular ones, read to their end, and never waited for.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opening a FIFO would wait for somebody to write, and a device may never end.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// All of it, when it is a regular file of at most so many bytes.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_open(&open_regular(path)?, most)
}

pub(crate) fn read_open(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it has more than {most} bytes"))),
        false => Ok(bytes),
    }
}

pub(crate) fn read_text(file: &File, most: u64) -> io::Result<String> {
    String::from_utf8(read_open(file, most)?).map_err(|_| io::Error::other("it is no text in UTF-8"))
}
