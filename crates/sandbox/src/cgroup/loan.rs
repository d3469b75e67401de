//! Groups of a runtime's own, beside ours: it wants a place for them, and the limits are not there.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::dir;
use crate::sys::mount;

const PLACE: &str = "hotcell-oci";

/// A path in every hierarchy that is this process's alone, and gone with it.
pub(crate) struct Loan {
    path: String,
}

impl Loan {
    /// Removes what others have left, too: names are process ids, and theirs are dead.
    pub(crate) fn new() -> Loan {
        for place in places() {
            let left = std::fs::read_dir(place).into_iter().flatten().flatten();
            for entry in left.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                let owner = PathBuf::from("/proc").join(entry.file_name());
                if !owner.exists() {
                    let _ = std::fs::remove_dir(entry.path());
                }
            }
        }
        Loan { path: format!("/{PLACE}/{}", std::process::id()) }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        for place in places() {
            // Mostly the runtime has done so itself.
            let _ = std::fs::remove_dir(place.join(std::process::id().to_string()));
        }
    }
}

fn places() -> Vec<PathBuf> {
    let mounts = dir::mounts().unwrap_or_default();
    mounts.v1.into_values().chain(mounts.v2).map(|mount| mount.join(PLACE)).collect()
}

/// In this mount namespace, the v2 half of a hybrid host is not there. Covered, because what an unprivileged namespace has
/// inherited it cannot detach.
pub(crate) fn cover_second_kind() -> io::Result<()> {
    let mounts = dir::mounts()?;
    match mounts.v2 {
        Some(at) if !mounts.v1.is_empty() => {
            let at = CString::new(at.into_os_string().into_vec())?;
            mount::mount_new(c"tmpfs", &at, mount::MS_NOSUID | mount::MS_NODEV | mount::MS_NOEXEC, c"size=4k")
        }
        _ => Ok(()),
    }
}
