//! Names of files that a client gives: relative, plain, and not one inside another.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hotcell_contract::Bytes;

use crate::problem::{Problem, shown};

/// A project that people write by hand, and more.
const MAX_FILES: usize = 1000;
const MAX_NAME: usize = 512;
const MAX_DEPTH: usize = 32;
/// As file systems have it.
const MAX_PART: usize = 255;

/// The bytes of a field.
pub(crate) fn bytes_of(field: &str, given: &Bytes) -> Result<Vec<u8>, Problem> {
    match given {
        Bytes::Text(text) => Ok(text.clone().into_bytes()),
        Bytes::Base64(encoded) => {
            STANDARD.decode(&encoded.base64).map_err(|e| Problem::field(field, format!("`{field}` is not base64: {e}")))
        }
    }
}

/// Names and contents, each name looked at.
pub(crate) fn files_of(given: &BTreeMap<String, Bytes>) -> Result<Vec<(String, Vec<u8>)>, Problem> {
    if given.len() > MAX_FILES {
        let detail = format!("`files` has {} files: give {MAX_FILES} at most", given.len());
        return Err(Problem::field("files", detail));
    }
    for name in given.keys() {
        if let Some(why) = wrong(name) {
            let shown = shown(name);
            return Err(Problem::field("files", format!("`{shown}` is no name of a file here: {why}")));
        }
    }
    if let Some(name) = given.keys().find(|name| Path::new(name).ancestors().skip(1).any(|dir| is_named(given, dir))) {
        let detail = format!("`{name}` lies in what is a file too: give one of the two another name");
        return Err(Problem::field("files", detail));
    }
    given.iter().map(|(name, bytes)| Ok((name.clone(), bytes_of("files", bytes)?))).collect()
}

fn is_named(given: &BTreeMap<String, Bytes>, dir: &Path) -> bool {
    dir.to_str().is_some_and(|dir| given.contains_key(dir))
}

/// What is wrong with a name, if anything is.
fn wrong(name: &str) -> Option<&'static str> {
    let parts: Vec<&str> = name.split('/').collect();
    if name.is_empty() || name.len() > MAX_NAME {
        Some("give 1 to 512 bytes")
    } else if name.starts_with('/') {
        Some("it is absolute, give it relative to the program's directory")
    } else if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        Some("leave out empty parts, `.` and `..`")
    } else if name.contains(|c: char| c.is_control()) {
        Some("it has a control character in it")
    } else if parts.len() > MAX_DEPTH || parts.iter().any(|part| part.len() > MAX_PART) {
        Some("it lies deeper than 32 directories, or a part has more than 255 bytes")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused_and_plain_ones_are_not() {
        for bad in ["", "/etc/passwd", "../a", "a/../b", "a//b", "a/", "./a", "a\0b", "a\nb", &"x".repeat(256)] {
            assert!(wrong(bad).is_some(), "{bad:?}");
        }
        for good in ["main.py", "a/b/c.txt", "..a", "a..", "a b", "\u{e4}.py", ".hidden"] {
            assert!(wrong(good).is_none(), "{good:?}");
        }
    }

    #[test]
    fn a_file_is_no_directory() {
        let file = |name: &str| (name.to_owned(), Bytes::Text(String::new()));
        assert!(files_of(&BTreeMap::from([file("a"), file("a/b")])).is_err());
        assert!(files_of(&BTreeMap::from([file("a"), file("ab/c")])).is_ok());
    }
}
