//! What is to be run: one file that came by itself, or a directory.

use std::path::{Path, PathBuf};

/// A program of more files is no program that somebody wants to try.
pub const MAX_SOURCES: usize = 5_000;

/// Where the sources are, seen from the cell: everything is below /src.
#[derive(Clone, Debug)]
pub enum Sources {
    /// Files that came by themselves; the program begins with the first.
    Files(Vec<String>),
    /// A directory of the host, and the file in it with which the program begins, relative to it.
    Directory { host: PathBuf, entry: Option<PathBuf> },
}

impl Sources {
    /// The files with one of `extensions` in the directory of the entry, or everywhere; as the cell names them.
    pub(crate) fn with(&self, extensions: &[String], everywhere: bool, entry: &Path) -> Option<Vec<PathBuf>> {
        match self {
            Sources::Files(names) => {
                let paths = names.iter().map(PathBuf::from).filter(|path| is_source(path, extensions));
                Some(paths.map(|path| Path::new("/src").join(path)).collect())
            }
            Sources::Directory { host, .. } => {
                let mut found = vec![];
                let start = if everywhere { Path::new("") } else { entry.parent().unwrap_or(Path::new("")) };
                let take = |path: &Path| is_source(path, extensions);
                let complete = walk(host, start, &take, everywhere, 32, &mut found);
                found.sort();
                complete.then(|| found.into_iter().map(|path| Path::new("/src").join(path)).collect())
            }
        }
    }
}

impl Sources {
    /// Every file, relative.
    pub(crate) fn all(&self) -> Option<Vec<PathBuf>> {
        match self {
            Sources::Files(names) => Some(names.iter().map(PathBuf::from).collect()),
            Sources::Directory { host, .. } => {
                let mut found = vec![];
                walk(host, Path::new(""), &|_| true, true, 32, &mut found).then_some(found)
            }
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Sources::Files(names) => names.iter().any(|known| known == name),
            Sources::Directory { host, .. } => host.join(name).is_file(),
        }
    }

    /// Whether a source of a directory has `text` in it; one that came by itself may.
    pub(crate) fn contain(&self, text: &str, extensions: &[String]) -> bool {
        let Sources::Directory { host, .. } = self else { return true };
        let has = |path: &PathBuf| {
            is_source(path, extensions)
                && std::fs::read(host.join(path)).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text))
        };
        self.all().is_some_and(|all| all.iter().any(has))
    }
}

/// A file of the directory, or a link to one: what leads out of it leads nowhere in a cell.
pub(crate) fn stays_inside(root: &Path, path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(&root.join(path)).zip(real(root)).is_some_and(|(file, root)| file.starts_with(root) && file.is_file())
}

fn is_source(path: &Path, extensions: &[String]) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.iter().any(|known| known == e))
        && !path.as_os_str().as_encoded_bytes().ends_with(b"_test.go")
}

/// False when there are too many.
fn walk(
    root: &Path,
    at: &Path,
    take: &dyn Fn(&Path) -> bool,
    deep: bool,
    depth: usize,
    found: &mut Vec<PathBuf>,
) -> bool {
    for entry in std::fs::read_dir(root.join(at)).into_iter().flatten().flatten() {
        let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
        let path = at.join(&name);
        let hidden = name.as_encoded_bytes().starts_with(b".") || name == "node_modules" || name == "target";
        if kind.is_dir() && deep && !hidden && depth > 0 {
            if !walk(root, &path, take, deep, depth - 1, found) {
                return false;
            }
        } else if (kind.is_file() || (kind.is_symlink() && stays_inside(root, &path))) && take(&path) {
            if found.len() == MAX_SOURCES {
                return false;
            }
            found.push(path);
        }
    }
    true
}
