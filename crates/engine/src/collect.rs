//! Artifacts: the regular files a program left in its working directory, copied out with their hashes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hotcell_contract::{Artifact, SkippedCheck};
use hotcell_languages::matches;
use hotcell_sandbox::Scratch;
use sha2::{Digest, Sha256};

/// More files than this are not artifacts but a flood.
const MAX_ARTIFACTS: usize = 10_000;

/// Copies regular files into `to`, which must not have one of that name yet, up to `budget` bytes in all: a sparse file
/// costs the program nothing and the host its full length. What is left out is said in the second list, but for a file of `ours`.
pub(crate) fn collect(
    scratch: &Scratch,
    to: &Path,
    wanted: &[String],
    ours: Option<&str>,
    mut budget: u64,
) -> (Vec<Artifact>, Vec<SkippedCheck>) {
    let (mut taken, mut skipped) = (vec![], vec![]);
    let mut skip = |name: &Path, reason: String| {
        let name = name.to_str().map_or_else(|| name.as_os_str().as_bytes().escape_ascii().to_string(), str::to_owned);
        skipped.push(SkippedCheck { check: format!("artifact {name}"), reason });
    };
    let found = match scratch.files(MAX_ARTIFACTS) {
        Ok((found, unlisted)) => {
            if unlisted.more {
                skip(Path::new("*"), format!("there are more than {MAX_ARTIFACTS} files, or they lie too deep"));
            }
            if unlisted.unread {
                skip(Path::new("*"), "the program left a directory that may not be read".into());
            }
            found
        }
        Err(e) => {
            skip(Path::new("*"), format!("the working directory cannot be read: {e}"));
            vec![]
        }
    };
    let found: Vec<_> = found.into_iter().filter(|file| ours.is_none_or(|ours| file.path != Path::new(ours))).collect();
    let is_wanted = |path: &Path| wanted.is_empty() || wanted.iter().any(|glob| matches(glob, path));
    for glob in wanted.iter().filter(|glob| !found.iter().any(|file| matches(glob, &file.path))) {
        skip(Path::new(glob), "no file that the program left is called so".into());
    }
    for file in found.into_iter().filter(|file| is_wanted(&file.path)) {
        // Two such names could be one in the result.
        let Some(path) = file.path.to_str().map(str::to_owned) else {
            skip(&file.path, "its name is not UTF-8".into());
            continue;
        };
        if file.bytes > budget {
            skip(&file.path, format!("its {} bytes are more than is left of the scratch's size", file.bytes));
            continue;
        }
        match scratch.open(&file.path).and_then(|from| copy(from, &to.join(&file.path))) {
            Ok((bytes, sha256)) => {
                budget -= bytes.min(budget);
                taken.push(Artifact { path, bytes, sha256 });
            }
            Err(e) => skip(&file.path, format!("it cannot be copied: {e}")),
        }
    }
    (taken, skipped)
}

fn copy(mut from: File, to: &Path) -> io::Result<(u64, String)> {
    if let Some(dir) = to.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let mut out = OpenOptions::new().write(true).create_new(true).open(to)?;
    let (mut hash, mut total, mut buf) = (Sha256::new(), 0, vec![0u8; 64 * 1024]);
    loop {
        let n = from.read(&mut buf)?;
        if n == 0 {
            break;
        }
        out.write_all(&buf[..n])?;
        hash.update(&buf[..n]);
        total += n as u64;
    }
    Ok((total, hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}
