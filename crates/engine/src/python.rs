//! The real Python of this host: never a shim, which is a shell script that costs more than the interpreter.

use std::path::{Path, PathBuf};

/// An interpreter and the directories it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Python {
    pub(crate) binary: PathBuf,
    pub(crate) trees: Vec<PathBuf>,
}

/// The first `python3` of PATH that is one, with shims resolved to what they stand for.
pub(crate) fn find(path: &std::ffi::OsStr) -> Option<Python> {
    std::env::split_paths(path).filter(|dir| dir.is_absolute()).find_map(|dir| {
        let candidate = dir.join("python3");
        if dir.ends_with("shims") { pyenv(&dir) } else { accept(&candidate) }
    })
}

/// pyenv's own order of deciding: the environment, a file above the working directory, the global file.
fn pyenv(shims: &Path) -> Option<Python> {
    let root = shims.parent()?;
    let local = || {
        let here = std::env::current_dir().ok()?;
        here.ancestors().find_map(|dir| std::fs::read_to_string(dir.join(".python-version")).ok())
    };
    let versions = std::env::var("PYENV_VERSION")
        .ok()
        .or_else(local)
        .or_else(|| std::fs::read_to_string(root.join("version")).ok())?;
    versions
        .split([':', '\n', ' '])
        .map(str::trim)
        .filter(|version| !version.is_empty())
        .find_map(|version| accept(&root.join("versions").join(version).join("bin/python3")))
}

fn accept(candidate: &Path) -> Option<Python> {
    let real = candidate.canonicalize().ok()?;
    if !is_elf(&real) {
        return None;
    }
    let mut trees = vec![];
    // A virtual environment is its own directory and the installation that it was made from.
    let bin = candidate.parent()?;
    let binary = match bin.parent() {
        Some(prefix) if prefix.join("pyvenv.cfg").is_file() => {
            trees.push(prefix.to_owned());
            candidate.to_owned()
        }
        _ => real.clone(),
    };
    trees.extend(real.parent().and_then(Path::parent).map(Path::to_owned));
    // What is below /usr is in every cell.
    trees.retain(|tree| !tree.starts_with("/usr") && tree != Path::new("/"));
    Some(Python { binary, trees })
}

fn is_elf(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0u8; 4];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}
