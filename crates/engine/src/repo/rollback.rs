//! Taking a run back: content, mode and absence of every file it changed, verified by hash.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hotcell_contract::repo_path;
use sha2::{Digest, Sha256};

use super::Repository;
use super::changes::{Change, MANIFEST, Manifest};
use crate::keys::hex;

#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    #[error("there is no rollback pack in `{}`: {error}", path.display())]
    NoPack { path: PathBuf, error: io::Error },
    #[error("the rollback pack in `{}` is damaged: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("the repository `{}` cannot be used: {error}", path.display())]
    Repository { path: PathBuf, error: io::Error },
    #[error(
        "the tree has moved on: `{path}` is not as the run left it: look at it, and give --force to restore it nevertheless"
    )]
    MovedOn { path: String },
    #[error(
        "`{path}` could not be restored: {error}; the others before it were, and a second rollback goes on from there"
    )]
    Restore { path: String, error: io::Error },
}

/// What was done.
pub struct Restored {
    pub repository: PathBuf,
    pub(crate) intent_id: Option<String>,
    pub files: usize,
}

/// Restores what the run in `pack` changed. Nothing is touched before everything has been looked at.
pub(crate) fn rollback(pack: &Path, repository: Option<&Path>, force: bool) -> Result<Restored, RollbackError> {
    let damaged = |why: String| RollbackError::Damaged { path: pack.to_owned(), why };
    let no_pack = |error| RollbackError::NoPack { path: pack.to_owned(), error };
    let text = fs::read(pack.join(MANIFEST)).map_err(no_pack)?;
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
    let root = repository.unwrap_or(&manifest.repository);
    let unusable = |error| RollbackError::Repository { path: root.to_owned(), error };
    let repo = Repository::open(root).map_err(unusable)?;
    let _alone = repo.lock().map_err(unusable)?;
    let mut contents = vec![];
    for change in &manifest.changes {
        if !is_inside(&manifest, &change.path) {
            return Err(damaged(format!("`{}` is not in what was writable", change.path)));
        }
        contents.push(content(pack, change).map_err(damaged)?);
        // As before is as good: a rollback that was interrupted goes on. What is no file is not what the run left.
        let now = repo.state(Path::new(&change.path));
        if !force && !now.is_ok_and(|now| now == change.after || now == change.before) {
            return Err(RollbackError::MovedOn { path: change.path.clone() });
        }
    }
    for (change, content) in manifest.changes.iter().zip(&contents) {
        restore(&repo, change, content.as_deref())
            .map_err(|error| RollbackError::Restore { path: change.path.clone(), error })?;
    }
    for dir in manifest.writable.iter().filter(|dir| is_inside(&manifest, dir)) {
        repo.sweep(Path::new(dir));
    }
    // The deepest first; one that has something in it stays.
    for dir in manifest.directories.iter().rev().filter(|dir| is_inside(&manifest, dir)) {
        repo.remove_directory(Path::new(dir));
    }
    Ok(Restored { files: manifest.changes.len(), repository: repo.root, intent_id: manifest.intent_id })
}

fn is_inside(manifest: &Manifest, path: &str) -> bool {
    repo_path(&format!("repo://{path}"), false).is_some()
        && manifest.writable.iter().any(|dir| Path::new(path).starts_with(dir))
}

/// What was in the file, if there was one, by its hash.
fn content(pack: &Path, change: &Change) -> Result<Option<Vec<u8>>, String> {
    let Some(before) = &change.before else { return Ok(None) };
    if !hotcell_contract::is_hex(&before.sha256, 64) {
        return Err(format!("the hash of `{}` is none", change.path));
    }
    let bytes = fs::read(pack.join(&before.sha256)).map_err(|e| format!("the content of `{}`: {e}", change.path))?;
    if hex(&Sha256::digest(&bytes)) != before.sha256 {
        return Err(format!("the content of `{}` is not what it was", change.path));
    }
    Ok(Some(bytes))
}

fn restore(repo: &Repository, change: &Change, content: Option<&[u8]>) -> io::Result<()> {
    let path = Path::new(&change.path);
    match (&change.before, content) {
        (Some(before), Some(bytes)) => repo.write(path, bytes, before.mode, &|_| true)?,
        _ => match repo.remove(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        },
    }
    if repo.state(path)? != change.before {
        return Err(io::Error::other("it is not as it was"));
    }
    Ok(())
}
