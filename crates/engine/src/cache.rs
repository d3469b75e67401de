//! Compiled programs, kept by what they were made from.
//!
//! One directory an entry, named by its key: `files/` and a `manifest` that says what belongs there. An entry appears
//! by a rename and is never changed. Everything here may be deleted at any moment: an entry that is not whole is none.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::product::{File, Product};

/// All entries together.
const MAX_BYTES: u64 = 4 << 30;
const MANIFEST: &str = "manifest";
const FILES: &str = "files";
const UNFINISHED: &str = ".new-";

pub(crate) struct Cache {
    dir: PathBuf,
    /// Changes with every start of the host.
    boot: String,
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
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        ours.then(|| Cache { dir: dir.to_owned(), boot })
    }

    /// A whole entry, or none. Large files are not read: they are shown to the cell from here.
    pub(crate) fn get(&self, key: &str) -> Option<Product> {
        let entry = self.dir.join(key);
        let manifest = fs::read_to_string(entry.join(MANIFEST)).ok()?;
        let (sum, rest) = manifest.split_once('\n')?;
        let (boot, lines) = rest.split_once('\n')?;
        if sum != hash(rest.as_bytes()) || lines.is_empty() {
            return None;
        }
        // Nothing is forced to the disk when it is kept, so what was there before a crash may be something else now.
        let again = boot != self.boot;
        let product = lines.lines().map(|line| kept(&entry, line, again)).collect::<Option<Product>>()?;
        let _ = if again { self.write_manifest(&entry, lines) } else { touch(&entry) };
        Some(product)
    }

    /// Under another name first: nobody reads half of it.
    fn write_manifest(&self, entry: &Path, lines: &str) -> io::Result<()> {
        let rest = format!("{}\n{lines}", self.boot);
        let new = entry.join(format!("{UNFINISHED}{}", uuid::Uuid::now_v7()));
        fs::write(&new, format!("{}\n{rest}", hash(rest.as_bytes())))?;
        fs::rename(&new, entry.join(MANIFEST))
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
        fs::set_permissions(new.join(FILES), fs::Permissions::from_mode(0o755))?;
        for file in product {
            let plain = file.path.components().all(|part| matches!(part, Component::Normal(_)));
            let name = file.path.to_str().filter(|name| plain && !name.contains('\n'));
            let name = name.ok_or_else(|| io::Error::other("a name that can't be kept"))?;
            let at = new.join(FILES).join(name);
            let dir = at.parent().unwrap_or(new);
            if !dir.is_dir() {
                fs::create_dir_all(dir)?;
                // Whatever the umask: the cell's own user must be able to come by.
                for above in dir.ancestors().take_while(|above| above.starts_with(new)) {
                    fs::set_permissions(above, fs::Permissions::from_mode(0o755))?;
                }
            }
            let mut out = OpenOptions::new().write(true).create_new(true).open(at)?;
            out.set_permissions(fs::Permissions::from_mode(file.mode))?;
            out.write_all(&file.bytes)?;
            let (time, sum) = (modified(&out.metadata()?), hash(&file.bytes));
            manifest += &format!("{:o} {} {time} {sum} {name}\n", file.mode, file.bytes.len());
        }
        self.write_manifest(new, &manifest)
    }

    /// Throws the longest unused out until there is room again; never `but`.
    fn shrink(&self, but: &str) {
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = vec![];
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let manifest = entry.path().join(MANIFEST);
            let text = fs::read_to_string(&manifest).unwrap_or_default();
            let bytes = text.lines().skip(2).filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok()).sum();
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

/// One file of an entry, if it is what the manifest says; to the last byte, when that is to be looked at.
fn kept(entry: &Path, line: &str, closely: bool) -> Option<File> {
    let mut words = line.splitn(5, ' ');
    let mode = u32::from_str_radix(words.next()?, 8).ok()?;
    let (size, time, sum) = (words.next()?.parse::<u64>().ok()?, words.next()?, words.next()?);
    let path = Path::new(words.next()?);
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let kept = entry.join(FILES).join(path);
    let meta = fs::symlink_metadata(&kept).ok().filter(|meta| meta.is_file())?;
    if meta.len() != size || modified(&meta) != time || (closely && fs::read(&kept).ok().map(|b| hash(&b))? != sum) {
        return None;
    }
    // Of a class it matters what is in it.
    let wanted = size < crate::product::LARGE as u64 || path.extension().is_some_and(|e| e == "class");
    let bytes = if wanted { fs::read(&kept).ok()? } else { vec![] };
    Some(File { path: path.to_owned(), mode, bytes, kept: Some(kept) })
}

fn modified(meta: &fs::Metadata) -> String {
    format!("{}.{:09}", meta.mtime(), meta.mtime_nsec())
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn own_id() -> u32 {
    fs::metadata("/proc/self").map_or(u32::MAX, |meta| meta.uid())
}
