//! Roots that were made, by the digests of their images: `sha256-DIGEST/root`.
//!
//! One is made under another name, forced to the disk and renamed: what has its name is whole, and never changed. Who makes it
//! holds a lock; whoever else wants the same image waits, and takes it. What can be locked is being made by nobody.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::error::ImageError;
use super::root::Root;

const ROOT: &str = "root";
const ABOUT: &str = "about.json";
const PREFIX: &str = ".sha256-";

pub(super) struct Store {
    dir: PathBuf,
}

/// What the root itself does not say.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    pub(super) left_out: u64,
}

/// One that makes an entry. Its file goes with it, so that the store has images in it and nothing else.
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Gone, unless it was renamed.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Store {
    pub(super) fn open(dir: &Path) -> Result<Store, ImageError> {
        let found = || -> io::Result<PathBuf> {
            if let Some(above) = dir.parent() {
                fs::create_dir_all(above)?;
            }
            match DirBuilder::new().mode(0o700).create(dir) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                _ => {}
            }
            let meta = fs::symlink_metadata(dir)?;
            // An image may have directories that everybody may write to: nobody else may come near them.
            let ours = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0;
            let not_ours = "it must be a directory of yours that nobody else may enter: chmod 700 it";
            if ours { dir.canonicalize() } else { Err(io::Error::other(not_ours)) }
        };
        let dir = found().map_err(|error| ImageError::Store { path: dir.to_owned(), error })?;
        Ok(Store { dir })
    }

    fn error(&self, error: io::Error) -> ImageError {
        ImageError::Store { path: self.dir.clone(), error }
    }

    fn entry(&self, digest: &str) -> PathBuf {
        self.dir.join(format!("sha256-{digest}"))
    }

    fn unfinished(&self, digest: &str) -> PathBuf {
        self.dir.join(format!("{PREFIX}{digest}.new"))
    }

    pub(super) fn get(&self, digest: &str) -> Option<(PathBuf, About)> {
        let entry = self.entry(digest);
        let root = entry.join(ROOT);
        let about = serde_json::from_slice(&fs::read(entry.join(ABOUT)).ok()?).ok()?;
        fs::symlink_metadata(&root).is_ok_and(|meta| meta.is_dir()).then_some((root, about))
    }

    /// The root of an image, which `fill` makes where it is not there.
    pub(super) fn get_or_make(
        &self,
        digest: &str,
        fill: impl FnOnce(&Root) -> Result<About, ImageError>,
    ) -> Result<(PathBuf, About), ImageError> {
        if let Some(there) = self.get(digest) {
            return Ok(there);
        }
        let failed = |e| self.error(e);
        let _lock = self.lock(digest, FlockOperation::LockExclusive).map_err(failed)?;
        // Somebody else was faster.
        if let Some(there) = self.get(digest) {
            return Ok(there);
        }
        self.sweep();
        let new = Unfinished(self.unfinished(digest));
        let root = begin(&new.0).map_err(failed)?;
        let about = fill(&root)?;
        self.finish(&new.0, &root, digest, &about).map_err(failed)?;
        Ok((self.entry(digest).join(ROOT), about))
    }

    fn finish(&self, new: &Path, root: &Root, digest: &str, about: &About) -> io::Result<()> {
        fs::write(new.join(ABOUT), serde_json::to_vec(about)?)?;
        // One fsync a file would take minutes.
        rustix::fs::syncfs(root.fd())?;
        let entry = self.entry(digest);
        // Damaged by hand: it was not taken.
        if fs::symlink_metadata(&entry).is_ok() {
            fs::remove_dir_all(&entry)?;
        }
        fs::rename(new, &entry)?;
        File::open(&self.dir)?.sync_all()
    }

    /// A lock is one only while its file has its name.
    fn lock(&self, digest: &str, how: FlockOperation) -> io::Result<Lock> {
        let path = self.dir.join(format!("{PREFIX}{digest}.lock"));
        loop {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600);
            let file = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(&path)?;
            match rustix::fs::flock(&file, how) {
                Err(Errno::INTR) => continue,
                locked => locked?,
            }
            let ours = file.metadata()?;
            match fs::symlink_metadata(&path) {
                Ok(now) if (now.dev(), now.ino()) == (ours.dev(), ours.ino()) => return Ok(Lock { path, _file: file }),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Removes what others began and will not finish.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            let Some((digest, _)) = rest.and_then(|rest| rest.rsplit_once('.')) else { continue };
            if let Ok(_lock) = self.lock(digest, FlockOperation::NonBlockingLockExclusive) {
                let _ = fs::remove_dir_all(self.unfinished(digest));
            }
        }
    }
}

/// An empty root, in place of one that somebody left half-made.
fn begin(new: &Path) -> io::Result<Root> {
    match fs::remove_dir_all(new) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let root = new.join(ROOT);
    for dir in [new, &root] {
        fs::create_dir(dir)?;
        // Whatever the umask: the cell's own user must be able to come by.
        fs::set_permissions(dir, Permissions::from_mode(0o755))?;
    }
    Ok(Root::open(&root)?)
}
