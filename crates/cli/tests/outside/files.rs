//! Files of the tests' own.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Calls `each` for everything below `dir` that is not a directory, and follows no link.
pub fn walk(dir: &Path, each: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), each),
            _ => each(&entry.path()),
        }
    }
}

pub fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it is ours");
}
