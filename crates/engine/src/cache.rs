//! Compiled programs, kept by what they were made from.
//!
//! One directory an entry, named by its key: `files/` and a `manifest` that says what belongs there. An entry appears
//! by a rename and is never changed. Everything here may be deleted at any moment: an entry that is not whole is none.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use crate::product::{File, Product};

/// All entries together.
const MAX_BYTES: u64 = 4 << 30;
const MANIFEST: &str = "manifest";
const FILES: &str = "files";
const UNFINISHED: &str = ".new-";

pub(crate) struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// `None` where it can't be had, or where somebody else could write into it.
    pub(crate) fn open(dir: &Path) -> Option<Cache> {
        if let Some(above) = dir.parent() {
            fs::create_dir_all(above).ok()?;
        }
        match DirBuilder::new().mode(0o700).create(dir) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return None,
            _ => {}
        }
        let meta = fs::symlink_metadata(dir).ok()?;
        // What lies here is executed in cells: nobody else may have put it here.
        let ours = meta.is_dir() && meta.uid() == own_id() && meta.mode() & 0o022 == 0;
        ours.then(|| Cache { dir: dir.to_owned() })
    }

    /// A whole entry, or none. Large files are not read: they are shown to the cell from here.
    pub(crate) fn get(&self, key: &str) -> Option<Product> {
        let entry = self.dir.join(key);
        let manifest = fs::read_to_string(entry.join(MANIFEST)).ok()?;
        let mut product = vec![];
        for line in manifest.lines() {
            let (mode, rest) = line.split_once(' ')?;
            let (size, path) = rest.split_once(' ')?;
            let (mode, size, path) = (u32::from_str_radix(mode, 8).ok()?, size.parse::<u64>().ok()?, Path::new(path));
            let kept = entry.join(FILES).join(path);
            if fs::symlink_metadata(&kept).ok().filter(|meta| meta.is_file())?.len() != size {
                return None;
            }
            let bytes = if size < crate::product::LARGE as u64 { fs::read(&kept).ok()? } else { vec![] };
            product.push(File { path: path.to_owned(), mode, bytes, kept: Some(kept) });
        }
        let _ = touch(&entry);
        Some(product)
    }

    /// The directory of an entry of which it does not matter whether it is whole.
    pub(crate) fn directory(&self, key: &str) -> Option<PathBuf> {
        let entry = self.dir.join(key);
        touch(&entry).ok()?;
        Some(entry.join(FILES)).filter(|files| files.is_dir())
    }

    /// Keeps a product, and remembers in it where. What can't be kept is not.
    pub(crate) fn put(&self, key: &str, product: &mut Product) -> io::Result<()> {
        let new = self.dir.join(format!("{UNFINISHED}{}", uuid::Uuid::now_v7()));
        let kept = self.write(&new, product).and_then(|()| {
            match fs::rename(&new, self.dir.join(key)) {
                // Somebody else was faster, or an entry that is not whole is in the way.
                Err(_) => {
                    let _ = fs::remove_dir_all(self.dir.join(key));
                    fs::rename(&new, self.dir.join(key))
                }
                done => done,
            }
        });
        if kept.is_err() {
            let _ = fs::remove_dir_all(&new);
            return kept;
        }
        for file in product {
            file.kept = Some(self.dir.join(key).join(FILES).join(&file.path));
        }
        self.shrink(key);
        Ok(())
    }

    fn write(&self, new: &Path, product: &Product) -> io::Result<()> {
        let mut manifest = String::new();
        fs::create_dir(new)?;
        fs::create_dir(new.join(FILES))?;
        for file in product {
            let plain = file.path.components().all(|part| matches!(part, Component::Normal(_)));
            let name = file.path.to_str().filter(|name| plain && !name.contains('\n'));
            let name = name.ok_or_else(|| io::Error::other("a name that can't be kept"))?;
            let at = new.join(FILES).join(name);
            fs::create_dir_all(at.parent().unwrap_or(new))?;
            let mut out = OpenOptions::new().write(true).create_new(true).mode(file.mode).open(at)?;
            out.write_all(&file.bytes)?;
            manifest += &format!("{:o} {} {name}\n", file.mode, file.bytes.len());
        }
        fs::write(new.join(MANIFEST), manifest)
    }

    /// Throws the longest unused out until there is room again; never `but`.
    fn shrink(&self, but: &str) {
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = vec![];
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let manifest = entry.path().join(MANIFEST);
            let text = fs::read_to_string(&manifest).unwrap_or_default();
            let bytes = text.lines().filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok()).sum();
            let used = manifest.metadata().or_else(|_| entry.metadata()).and_then(|meta| meta.modified());
            let Ok(used) = used else { continue };
            // One that nobody will finish any more.
            let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
            if unfinished && used.elapsed().is_ok_and(|age| age.as_secs() > 3600) {
                let _ = fs::remove_dir_all(entry.path());
            } else if !unfinished && entry.file_name() != but {
                entries.push((used, bytes, entry.path()));
            }
        }
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in entries {
            if total <= MAX_BYTES {
                break;
            }
            total -= bytes;
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Used now: the last to be thrown out.
fn touch(entry: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(entry.join(MANIFEST))?.set_modified(SystemTime::now())
}

fn own_id() -> u32 {
    fs::metadata("/proc/self").map_or(u32::MAX, |meta| meta.uid())
}
