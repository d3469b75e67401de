//! Artifacts: the regular files a program left in its working directory, copied out with their hashes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use hotcell_contract::{Artifact, SkippedCheck};
use hotcell_sandbox::Scratch;
use sha2::{Digest, Sha256};

/// More files than this are not artifacts but a flood.
const MAX_ARTIFACTS: usize = 10_000;

/// Copies regular files into `to`, which must not have one of that name yet, up to `budget` bytes in all: a sparse file
/// costs the program nothing and the host its full length. What is left out is said in the second list.
pub(crate) fn collect(
    scratch: &Scratch,
    to: &Path,
    wanted: &[String],
    mut budget: u64,
) -> (Vec<Artifact>, Vec<SkippedCheck>) {
    let (mut taken, mut skipped) = (vec![], vec![]);
    let mut skip = |name: &Path, reason: String| {
        skipped.push(SkippedCheck { check: format!("artifact {}", name.display()), reason });
    };
    let found = match scratch.files(MAX_ARTIFACTS) {
        Ok((found, more)) => {
            if more {
                skip(Path::new("*"), format!("there are more than {MAX_ARTIFACTS} files, or they lie too deep"));
            }
            found
        }
        Err(e) => {
            skip(Path::new("*"), format!("the working directory cannot be read: {e}"));
            vec![]
        }
    };
    let is_wanted = |path: &Path| wanted.is_empty() || wanted.iter().any(|glob| matches(glob, path));
    for glob in wanted.iter().filter(|glob| !found.iter().any(|file| matches(glob, &file.path))) {
        skip(Path::new(glob), "no file that the program left is called so".into());
    }
    for file in found.into_iter().filter(|file| is_wanted(&file.path)) {
        if file.bytes > budget {
            skip(&file.path, format!("its {} bytes are more than is left of the scratch's size", file.bytes));
            continue;
        }
        match scratch.open(&file.path).and_then(|from| copy(from, &to.join(&file.path))) {
            Ok((bytes, sha256)) => {
                budget -= bytes.min(budget);
                taken.push(Artifact { path: file.path.to_string_lossy().into_owned(), bytes, sha256 });
            }
            Err(e) => skip(&file.path, format!("it cannot be copied to {}: {e}", to.display())),
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

/// `*` and `?` stay inside one name, `**` goes through any number of directories.
fn matches(glob: &str, path: &Path) -> bool {
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    let names: Vec<&str> = names.iter().map(|name| name.as_ref()).collect();
    let parts: Vec<&str> = glob.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    // Reachable positions, so that no glob takes more than its length times the path's.
    let mut at: Vec<bool> = std::iter::once(true).chain(names.iter().map(|_| false)).collect();
    for part in parts {
        at = if part == "**" {
            at.iter()
                .scan(false, |seen, here| {
                    *seen |= here;
                    Some(*seen)
                })
                .collect()
        } else {
            let step = |n: usize| n > 0 && at[n - 1] && matches_name(part.as_bytes(), names[n - 1].as_bytes());
            (0..at.len()).map(step).collect()
        };
    }
    at.last().copied().unwrap_or(false)
}

fn matches_name(glob: &[u8], name: &[u8]) -> bool {
    let mut at: Vec<bool> = std::iter::once(true).chain(name.iter().map(|_| false)).collect();
    for letter in glob {
        at = match letter {
            b'*' => at
                .iter()
                .scan(false, |seen, here| {
                    *seen |= here;
                    Some(*seen)
                })
                .collect(),
            b'?' => (0..at.len()).map(|n| n > 0 && at[n - 1]).collect(),
            _ => (0..at.len()).map(|n| n > 0 && at[n - 1] && name[n - 1] == *letter).collect(),
        };
    }
    at.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_shells_do() {
        let yes = [("*.txt", "a.txt"), ("out/*", "out/a"), ("**/*.json", "a/b/c.json"), ("**", "a/b"), ("a?c", "abc")];
        let no =
            [("*.txt", "d/a.txt"), ("out/*", "out/a/b"), ("*.json", "a.jso"), ("a?c", "ac"), ("", "a"), ("a", "a/b")];
        assert!(yes.iter().all(|(glob, path)| matches(glob, Path::new(path))));
        assert!(!no.iter().any(|(glob, path)| matches(glob, Path::new(path))));
        assert!(matches("**/*.json", Path::new("c.json")));
        assert!(!matches(&"*a".repeat(2000), Path::new(&"a".repeat(1999))));
    }
}
