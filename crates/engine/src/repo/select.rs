//! What of a repository is in the cell: the patterns of a lease, and what they match at this moment.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hotcell_contract::{covers_path, matches_or_holds, matches_path, may_match_below};
use rustix::fs::{AtFlags, FileType};

use super::Repository;
use super::unfinished::is_name;
use crate::lease::LeaseRefusal;

/// Copies are held in memory; whole directories are not copied.
const MAX_BYTES: usize = 64 << 20;
const MAX_FILES: usize = 10_000;
/// A socket carries no more fds than about 250, and a tree is one.
const MAX_TREES: usize = 100;
const MAX_DEPTH: usize = 64;

/// A file as it was when the run began.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// Relative to the repository.
    pub(crate) path: PathBuf,
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

/// By their paths in the repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Directories of which everything is shown, as it is.
    pub(crate) trees: Vec<PathBuf>,
    /// Single files, as they were.
    pub(crate) files: Vec<Snapshot>,
    /// Directories that may be changed, and the files in them.
    pub(crate) writable: Vec<(PathBuf, Vec<Snapshot>)>,
}

struct Walk<'a> {
    repo: &'a Repository,
    allow: &'a [&'a str],
    deny: &'a [&'a str],
    writable: &'a [&'a str],
    found: Selection,
    bytes: usize,
    files: usize,
}

/// Patterns and directories are without their `repo://`.
pub(crate) fn select(
    repo: &Repository,
    allow: &[&str],
    deny: &[&str],
    writable: &[&str],
) -> Result<Selection, LeaseRefusal> {
    let mut walk = Walk { repo, allow, deny, writable, found: Selection::default(), bytes: 0, files: 0 };
    for dir in writable {
        let mut files = vec![];
        walk.copy(Path::new(dir), 0, &mut files)?;
        walk.found.writable.push((PathBuf::from(dir), files));
    }
    walk.look(Path::new(""), 0)?;
    Ok(walk.found)
}

fn refused(path: &Path, why: impl ToString) -> LeaseRefusal {
    LeaseRefusal::Path { path: path.display().to_string(), why: why.to_string() }
}

impl Walk<'_> {
    fn is_allowed(&self, path: &str) -> bool {
        self.allow.iter().any(|pattern| matches_path(pattern, path)) && !self.is_denied(path)
    }

    /// What is in a denied directory is denied with it.
    fn is_denied(&self, path: &str) -> bool {
        self.deny.iter().any(|pattern| matches_or_holds(pattern, path))
    }

    /// All of it, and nothing of it denied: as a tree then, without a copy.
    fn is_whole(&self, dir: &str) -> bool {
        let below = if dir.is_empty() { "**".to_owned() } else { format!("{dir}/**") };
        self.allow.iter().any(|pattern| covers_path(pattern, &below))
            && !self.is_denied(dir)
            && !self.deny.iter().any(|pattern| may_match_below(pattern, dir))
    }

    fn look(&mut self, dir: &Path, depth: usize) -> Result<(), LeaseRefusal> {
        let name = dir.to_str().unwrap_or_default();
        if self.is_whole(name) {
            if self.found.trees.len() == MAX_TREES {
                return Err(refused(dir, format!("there are more than {MAX_TREES} directories: allow one above them")));
            }
            self.found.trees.push(dir.to_owned());
            return Ok(());
        }
        for (path, kind) in self.entries(dir, depth)? {
            // What is not UTF-8 is matched by no pattern.
            let Some(name) = path.to_str() else { continue };
            let is_writable = self.writable.contains(&name);
            match kind {
                FileType::RegularFile if self.is_allowed(name) => {
                    let file = self.snapshot(&path)?;
                    self.found.files.extend(file);
                }
                FileType::Directory if self.is_denied(name) || is_writable => {}
                FileType::Directory if self.allow.iter().any(|p| may_match_below(p, name)) => {
                    self.look(&path, depth + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// All that is allowed of a directory, as files.
    fn copy(&mut self, dir: &Path, depth: usize, files: &mut Vec<Snapshot>) -> Result<(), LeaseRefusal> {
        for (path, kind) in self.entries(dir, depth)? {
            match kind {
                // One that somebody has not finished is nobody's file yet.
                FileType::RegularFile if is_name(&path) => {}
                FileType::RegularFile if path.to_str().is_some_and(|name| self.is_allowed(name)) => {
                    files.extend(self.snapshot(&path)?);
                }
                FileType::Directory => self.copy(&path, depth + 1, files)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn entries(&self, dir: &Path, depth: usize) -> Result<Vec<(PathBuf, FileType)>, LeaseRefusal> {
        if depth > MAX_DEPTH {
            return Err(refused(dir, format!("it is more than {MAX_DEPTH} directories deep")));
        }
        let list = || -> io::Result<Vec<(PathBuf, FileType)>> {
            let fd = self.repo.directory(dir)?;
            let mut found = vec![];
            for entry in rustix::fs::Dir::read_from(&fd)? {
                let entry = entry?;
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                let Ok(stat) = rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                let path = dir.join(std::ffi::OsStr::from_bytes(name.to_bytes()));
                found.push((path, FileType::from_raw_mode(stat.st_mode)));
            }
            found.sort_by(|a, b| a.0.cmp(&b.0));
            Ok(found)
        };
        list().map_err(|e| refused(dir, e))
    }

    fn snapshot(&mut self, path: &Path) -> Result<Option<Snapshot>, LeaseRefusal> {
        // One that is gone since it was listed was never there.
        let Some((bytes, mode)) = self.repo.read(path).map_err(|e| refused(path, e))? else { return Ok(None) };
        self.bytes += bytes.len();
        self.files += 1;
        if self.bytes > MAX_BYTES || self.files > MAX_FILES {
            let why = format!(
                "what is allowed has more than {MAX_FILES} files or {} MiB: allow whole directories",
                MAX_BYTES >> 20
            );
            return Err(refused(path, why));
        }
        Ok(Some(Snapshot { path: path.to_owned(), mode, bytes }))
    }
}
