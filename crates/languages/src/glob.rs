//! Patterns of paths, as shells have them.

use std::path::Path;

/// `*` and `?` stay inside one name, `**` goes through any number of directories.
pub fn matches(glob: &str, path: &Path) -> bool {
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    let parts = glob.split('/').filter(|part| !part.is_empty() && *part != ".");
    // Which beginnings of the path are matched so far: no glob takes more than its length times the path's.
    let mut at = start(names.len());
    for part in parts {
        at = match part {
            "**" => from_here_on(&at),
            _ => next(&at, |n| matches_name(part.as_bytes(), names[n].as_bytes())),
        };
    }
    at.last().copied().unwrap_or(false)
}

fn matches_name(glob: &[u8], name: &[u8]) -> bool {
    let mut at = start(name.len());
    for letter in glob {
        at = match letter {
            b'*' => from_here_on(&at),
            b'?' => next(&at, |_| true),
            _ => next(&at, |n| name[n] == *letter),
        };
    }
    at.last().copied().unwrap_or(false)
}

fn start(len: usize) -> Vec<bool> {
    (0..=len).map(|n| n == 0).collect()
}

fn from_here_on(at: &[bool]) -> Vec<bool> {
    let first = at.iter().position(|here| *here).unwrap_or(at.len());
    (0..at.len()).map(|n| n >= first).collect()
}

fn next(at: &[bool], fits: impl Fn(usize) -> bool) -> Vec<bool> {
    (0..at.len()).map(|n| n > 0 && at[n - 1] && fits(n - 1)).collect()
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
