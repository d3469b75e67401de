//! What a run changed in the directories that it may change: found in the dead cell, written down, and carried out.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hotcell_sandbox::Scratch;
use serde::{Deserialize, Serialize};

use super::unfinished::is_name;
use super::{FileState, MAX_FILE, Repository, Selection};

/// More files than this are not changes but a flood.
const MAX_CHANGES: usize = 10_000;

/// One file, before and after; `None` is absence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// Relative to the repository.
    pub(crate) path: String,
    pub(crate) before: Option<FileState>,
    pub(crate) after: Option<FileState>,
}

/// Everything that is needed to take a run back, with the contents in files named by their hashes beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) lease_id: String,
    pub(crate) run_id: String,
    pub(crate) intent_id: Option<String>,
    pub(crate) repository: PathBuf,
    /// The directories that were writable: no other is touched.
    pub(crate) writable: Vec<String>,
    pub(crate) changes: Vec<Change>,
    /// Directories that were not there before.
    pub(crate) directories: Vec<String>,
}

pub(crate) const MANIFEST: &str = "manifest.json";

#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) list: Vec<Change>,
    before: BTreeMap<String, Vec<u8>>,
    after: BTreeMap<String, Vec<u8>>,
}

/// Compares what is in the dead cell's scratch to what was put there. An error says why nothing can be taken over.
pub(crate) fn changes(
    selection: &Selection,
    scratch: &Scratch,
    is_denied: &dyn Fn(&str) -> bool,
) -> Result<Changes, String> {
    let (mut found, mut total) = (Changes::default(), 0u64);
    for (n, (dir, files)) in selection.writable.iter().enumerate() {
        let failed = |e: io::Error| format!("what the run left in `{}` cannot be read: {e}", dir.display());
        let (left, more) = scratch.writable_files(n, MAX_CHANGES).map_err(failed)?;
        if more {
            return Err(format!("the run left more than {MAX_CHANGES} files in `{}`, or too deep ones", dir.display()));
        }
        let mut gone: BTreeMap<PathBuf, &super::select::Snapshot> =
            files.iter().map(|file| (file.path.clone(), file)).collect();
        for file in left {
            let path = dir.join(&file.path);
            let Some(name) = path.to_str().map(str::to_owned) else {
                return Err(format!("the run left a name that is not UTF-8: `{}`", path.display()));
            };
            if is_denied(&name) {
                return Err(format!("the run made `{name}`, which the lease denies"));
            }
            if is_name(&path) {
                return Err(format!("the run made `{name}`, a name that unfinished files have"));
            }
            // A sparse file costs the program nothing, and the host its full length.
            total = total.saturating_add(file.bytes);
            if total > MAX_FILE {
                return Err(format!("the run left more than {} MiB", MAX_FILE >> 20));
            }
            let mut bytes = vec![];
            let read =
                scratch.open_writable(n, &file.path).and_then(|from| from.take(MAX_FILE).read_to_end(&mut bytes));
            read.map_err(failed)?;
            let after = FileState::of(&bytes, file.mode);
            let before = gone.remove(&path);
            if before.is_some_and(|before| before.mode & 0o777 == file.mode && before.bytes == bytes) {
                continue;
            }
            found.add(name, before.map(|file| (file.bytes.clone(), file.mode)), Some((bytes, after)));
        }
        for (path, file) in gone {
            found.add(path.to_string_lossy().into_owned(), Some((file.bytes.clone(), file.mode)), None);
        }
    }
    found.list.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

impl Changes {
    fn add(&mut self, path: String, before: Option<(Vec<u8>, u32)>, after: Option<(Vec<u8>, FileState)>) {
        let before = before.map(|(bytes, mode)| {
            let state = FileState::of(&bytes, mode);
            self.before.insert(state.sha256.clone(), bytes);
            state
        });
        let after = after.map(|(bytes, state)| {
            self.after.insert(path.clone(), bytes);
            state
        });
        self.list.push(Change { path, before, after });
    }

    /// The directories that will have to be made.
    pub(crate) fn new_directories(&self, repo: &Repository) -> Vec<String> {
        let new = self.list.iter().filter(|change| change.after.is_some());
        let above = new.flat_map(|change| Path::new(&change.path).ancestors().skip(1));
        let missing = above.filter(|dir| !dir.as_os_str().is_empty() && repo.directory(dir).is_err());
        let names: std::collections::BTreeSet<String> = missing.map(|dir| dir.display().to_string()).collect();
        names.into_iter().collect()
    }

    /// Writes the pack, whole, before anything is changed.
    pub(crate) fn pack(&self, manifest: &Manifest, to: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(to)?;
        for (sha256, bytes) in &self.before {
            write_synced(&to.join(sha256), bytes)?;
        }
        write_synced(&to.join(MANIFEST), &serde_json::to_vec_pretty(manifest)?)
    }

    /// Whether the repository is as it was when the run began.
    pub(crate) fn moved_on(&self, repo: &Repository) -> Result<Option<&str>, String> {
        for change in &self.list {
            let now = repo.state(Path::new(&change.path)).map_err(|e| format!("`{}`: {e}", change.path))?;
            if now != change.before {
                return Ok(Some(&change.path));
            }
        }
        Ok(None)
    }

    /// What is gone goes first: a directory may stand where a file was.
    /// Only directories that are on the list are made: one that is missing by now was taken away by somebody else.
    pub(crate) fn carry_out(&self, repo: &Repository, new_directories: &[String]) -> Result<(), String> {
        let may_make = |dir: &Path| new_directories.iter().any(|new| Path::new(new) == dir);
        let (gone, new): (Vec<&Change>, Vec<&Change>) = self.list.iter().partition(|change| change.after.is_none());
        for change in gone.into_iter().chain(new) {
            let path = Path::new(&change.path);
            let done = match (&change.after, self.after.get(&change.path)) {
                (Some(after), Some(bytes)) => repo.write(path, bytes, after.mode, &may_make),
                _ => repo.remove(path),
            };
            done.map_err(|e| format!("`{}`: {e}", change.path))?;
        }
        Ok(())
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()
}
