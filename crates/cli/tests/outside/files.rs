//! Files of the tests' own.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

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

/// Copies one that is to be executed. Another process does it: what is open for writing here is so in every process that another
/// thread is about to start, and the kernel executes no file that anybody could write into.
#[track_caller]
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp").arg("--preserve=mode").args([from.as_ref(), to.as_ref()]).status();
    assert!(copied.expect("cp is installed").success(), "{} is not copied", from.as_ref().display());
}

/// Writes one that is to be executed, by another process for the same reason.
#[track_caller]
pub fn write_program(path: &Path, bytes: impl AsRef<[u8]>, mode: u32) {
    let mut writer = Command::new("sh");
    writer.args(["-c", "cat > \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().expect("sh is installed");
    // Its input ends with this statement.
    writer.stdin.take().expect("piped").write_all(bytes.as_ref()).expect("it is read");
    assert!(writer.wait().expect("it is our child").success(), "{} is not written", path.display());
    set_mode(path, mode);
}
