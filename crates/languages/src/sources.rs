//! What is to be run: one file that came by itself, or a directory.

use std::path::{Path, PathBuf};

/// A program of more files is no program that somebody wants to try.
pub const MAX_SOURCES: usize = 5_000;

/// Where the sources are, seen from the cell: everything is below /src.
#[derive(Clone, Debug)]
pub enum Sources {
    /// One file of this name.
    File(String),
    /// A directory of the host, and the file in it with which the program begins, relative to it.
    Directory { host: PathBuf, entry: Option<PathBuf> },
}

impl Sources {
    /// The files with one of `extensions` in the directory of the entry, or everywhere; as the cell names them.
    pub(crate) fn with(&self, extensions: &[String], everywhere: bool, entry: &Path) -> Option<Vec<PathBuf>> {
        match self {
            Sources::File(name) => Some(vec![Path::new("/src").join(name)]),
            Sources::Directory { host, .. } => {
                let mut found = vec![];
                let start = if everywhere { Path::new("") } else { entry.parent().unwrap_or(Path::new("")) };
                let complete = walk(host, start, extensions, everywhere, 32, &mut found);
                found.sort();
                complete.then(|| found.into_iter().map(|path| Path::new("/src").join(path)).collect())
            }
        }
    }
}

/// False when there are too many.
fn walk(root: &Path, at: &Path, extensions: &[String], deep: bool, depth: usize, found: &mut Vec<PathBuf>) -> bool {
    for entry in std::fs::read_dir(root.join(at)).into_iter().flatten().flatten() {
        let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
        let path = at.join(&name);
        let hidden = name.as_encoded_bytes().starts_with(b".") || name == "node_modules" || name == "target";
        if kind.is_dir() && deep && !hidden && depth > 0 {
            if !walk(root, &path, extensions, deep, depth - 1, found) {
                return false;
            }
        } else if kind.is_file()
            && path.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.iter().any(|known| known == e))
            && !name.as_encoded_bytes().ends_with(b"_test.go")
        {
            if found.len() == MAX_SOURCES {
                return false;
            }
            found.push(path);
        }
    }
    true
}
