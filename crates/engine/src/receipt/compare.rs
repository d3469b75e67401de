//! Whether files are those that a receipt speaks of.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hotcell_contract::{ARTIFACT, Outcome, REPO, RESULT, Statement, Verdict};
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::asked::sha256;
use crate::keys::hex;

/// Something is not as the receipt says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// `artifact:PATH` or `result`.
    pub subject: String,
    pub what: String,
}

impl Mismatch {
    fn new(subject: impl Into<String>, what: impl Into<String>) -> Mismatch {
        Mismatch { subject: subject.into(), what: what.into() }
    }
}

/// Every file below `dir` is an artifact, and every artifact is there.
pub fn compare_artifacts(statement: &Statement, dir: &Path) -> io::Result<Vec<Mismatch>> {
    let mut wanted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for subject in &statement.subject {
        // What was changed in a repository is not in a directory of artifacts.
        if let Some(name) = subject.name.strip_prefix(ARTIFACT).filter(|name| !name.starts_with(REPO)) {
            wanted.entry(name).or_default().push(&subject.digest.sha256);
        }
    }
    let (mut found, mut unknown) = (vec![], vec![]);
    let mut dirs = vec![PathBuf::new()];
    while let Some(below) = dirs.pop() {
        for entry in fs::read_dir(dir.join(&below))? {
            let entry = entry?;
            let (path, kind) = (below.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() {
                dirs.push(path);
                continue;
            }
            match path.to_str() {
                Some(name) if kind.is_file() => found.push((name.to_owned(), hash_file(&dir.join(&path))?)),
                Some(name) => unknown.push(Mismatch::new(format!("{ARTIFACT}{name}"), "is no regular file")),
                // No artifact is called so: it is told in letters that stand for its bytes.
                None => {
                    let name = path.as_os_str().as_bytes().escape_ascii();
                    unknown.push(Mismatch::new(format!("{ARTIFACT}{name}"), "is not in the receipt"));
                }
            }
        }
    }
    // What is as it should be first: a forged receipt may have one name twice.
    found.retain(|(name, hash): &(String, String)| {
        let hashes = wanted.get_mut(name.as_str());
        hashes.is_none_or(|hashes| {
            let at = hashes.iter().position(|known| known == hash);
            at.map(|at| hashes.swap_remove(at)).is_none()
        })
    });
    for (name, _) in found {
        let what = match wanted.get_mut(name.as_str()).and_then(Vec::pop) {
            Some(_) => "is not what was signed: its sha256 is another",
            None => "is not in the receipt",
        };
        unknown.push(Mismatch::new(format!("{ARTIFACT}{name}"), what));
    }
    let missing = wanted.iter().flat_map(|(name, hashes)| hashes.iter().map(move |_| name));
    unknown.extend(missing.map(|name| Mismatch::new(format!("{ARTIFACT}{name}"), "is not there")));
    unknown.sort_by(|a, b| a.subject.cmp(&b.subject));
    Ok(unknown)
}

/// A link or a pipe that took the file's place since is not followed and not waited for.
fn hash_file(path: &Path) -> io::Result<String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(format!("{} is no regular file any more", path.display())));
    }
    let (mut hash, mut buf) = (Sha256::new(), vec![0u8; 64 * 1024]);
    loop {
        match file.read(&mut buf)? {
            0 => return Ok(hex(&hash.finalize())),
            n => hash.update(&buf[..n]),
        }
    }
}

/// The result is the one that was signed for, to the byte. Where it is not, what it says of the verdict is looked at.
pub fn compare_result(statement: &Statement, result: &[u8]) -> Vec<Mismatch> {
    let hash = sha256(result);
    let is_it = |subject: &hotcell_contract::Subject| subject.name == RESULT && subject.digest.sha256 == hash;
    if statement.subject.iter().any(is_it) {
        return vec![];
    }
    let Ok(outcome) = serde_json::from_slice::<Outcome>(result) else {
        return vec![Mismatch::new(RESULT, "is no result")];
    };
    let (said, signed) = (Verdict::of(&outcome), &statement.predicate.verdict);
    let what = match () {
        () if outcome.request_id != statement.predicate.request_id => "is that of another request",
        () if said.status != signed.status => "has another status",
        () if said != *signed => "has another verdict",
        () => "is not what was signed: its sha256 is another",
    };
    vec![Mismatch::new(RESULT, what)]
}
