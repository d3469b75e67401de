//! Files of a repository that are being written: under a name of their own until they are whole, and locked for as long. One
//! that can be locked by somebody else belongs to nobody any more, and is swept.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use uuid::Uuid;

use super::Repository;

const PREFIX: &str = ".hotcell-";
/// No run has written deeper.
const MAX_DEPTH: usize = 64;

/// Whether a file of this name may be one that is not finished: the prefix and an id, as we write it.
pub(super) fn is_name(path: &Path) -> bool {
    let id = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(PREFIX));
    id.is_some_and(|id| Uuid::try_parse(id).is_ok_and(|known| known.get_version_num() == 7 && known.to_string() == id))
}

/// A new one.
pub(super) fn create(dir: &OwnedFd) -> io::Result<(String, File)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let name = format!("{PREFIX}{}", Uuid::now_v7());
        let file = File::from(rustix::fs::openat(dir, &name, flags, Mode::from_raw_mode(0o600))?);
        // Where a file system has no locks, nobody gets one to sweep with either.
        let _ = rustix::fs::flock(&file, FlockOperation::LockExclusive);
        // Swept before it was locked: that was nobody's fault.
        if rustix::fs::fstat(&file)?.st_nlink > 0 {
            return Ok((name, file));
        }
    }
}

impl Repository {
    /// Removes what was left unfinished in a directory and below: regular files of our own names, through no link. What can't
    /// be looked at stays.
    pub(crate) fn sweep(&self, dir: &Path) {
        self.sweep_below(dir, 0);
    }

    fn sweep_below(&self, dir: &Path, depth: usize) {
        let Ok(fd) = self.directory(dir) else { return };
        for entry in rustix::fs::Dir::read_from(&fd).into_iter().flatten().flatten() {
            let name = Path::new(std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()));
            if name == Path::new(".") || name == Path::new("..") {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if depth < MAX_DEPTH => self.sweep_below(&dir.join(name), depth + 1),
                FileType::RegularFile if is_name(name) => {
                    let _ = remove_abandoned(&fd, name);
                }
                _ => {}
            }
        }
    }
}

fn remove_abandoned(dir: &OwnedFd, name: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::RegularFile {
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        rustix::fs::unlinkat(dir, name, AtFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_we_give_are_ours() {
        let good = format!(".hotcell-{}", Uuid::now_v7());
        assert!(is_name(Path::new(&good)) && is_name(&Path::new("a/b").join(&good)));
        let id = "0190a2b4-0000-7000-8000-0123456789ab";
        assert!(is_name(Path::new(&format!(".hotcell-{id}"))));
        for name in [
            "",
            ".hotcell-",
            ".hotcell-events",
            ".hotcell-0190a2b4-0000-4000-8000-0123456789ab",
            ".hotcell-0190A2B4-0000-7000-8000-0123456789AB",
            ".hotcell-0190a2b4000070008000012345678 9ab",
            ".hotcell-0190a2b400007000800001234567 89ab",
            ".hotcell-{0190a2b4-0000-7000-8000-0123456789ab}",
            ".hotcell-0190a2b4-0000-7000-8000-0123456789ab~",
            "x.hotcell-0190a2b4-0000-7000-8000-0123456789ab",
        ] {
            assert!(!is_name(Path::new(name)), "{name}");
        }
    }
}
