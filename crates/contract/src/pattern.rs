//! Patterns of leases and intents: what they match, and whether one of them allows nothing that another does not.
//!
//! The second question is why there is so little in them: `*` and `**`, and no escapes. A pattern is covered by another
//! when its wildcards are met by wildcards there, never by letters; that is never wrong, and sometimes too strict.

use std::borrow::Borrow;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Letter(char),
    /// Anything inside one name.
    Star,
    /// Anything at all.
    Stars,
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut found: Vec<Piece> = vec![];
    for letter in pattern.chars() {
        match (letter, found.last()) {
            ('*', Some(Piece::Star | Piece::Stars)) => {
                found.pop();
                found.push(Piece::Stars);
            }
            ('*', _) => found.push(Piece::Star),
            _ => found.push(Piece::Letter(letter)),
        }
    }
    found
}

/// `taken` says whether a piece of the inner pattern may be swallowed by a wildcard of the outer one.
fn covers_pieces(outer: &[Piece], inner: &[Piece], taken: impl Fn(Piece, Piece) -> bool) -> bool {
    // Which beginnings of the inner pattern are covered so far: never more steps than one length times the other.
    let mut at: Vec<bool> = (0..=inner.len()).map(|n| n == 0).collect();
    for piece in outer {
        let mut next = vec![false; at.len()];
        for n in 0..at.len() {
            next[n] = match piece {
                Piece::Letter(_) => n > 0 && at[n - 1] && inner[n - 1] == *piece,
                _ => at[n] || (n > 0 && next[n - 1] && taken(*piece, inner[n - 1])),
            };
        }
        at = next;
    }
    at.last().copied().unwrap_or(false)
}

/// Paths: `*` stays inside one name, `**` goes through any number of them. `dir/**` is what is in `dir`.
pub fn covers_path(outer: &str, inner: &str) -> bool {
    covers_pieces(&pieces(outer), &pieces(inner), |wildcard, piece| match wildcard {
        Piece::Stars => true,
        _ => !matches!(piece, Piece::Letter('/') | Piece::Stars),
    })
}

/// Words of a command: `*` is anything in a word; `**` as the last word is any number of words.
pub fn covers_words(outer: &[impl Borrow<str>], inner: &[impl Borrow<str>]) -> bool {
    let word = |outer: &str, inner: &str| covers_pieces(&pieces(outer), &pieces(inner), |_, _| true);
    match outer.split_last() {
        Some((last, words)) if last.borrow() == REST => {
            inner.len() >= words.len()
                && words.iter().zip(inner).all(|(o, i)| i.borrow() != REST && word(o.borrow(), i.borrow()))
        }
        _ => {
            outer.len() == inner.len()
                && outer.iter().zip(inner).all(|(o, i)| i.borrow() != REST && word(o.borrow(), i.borrow()))
        }
    }
}

/// Any number of words.
pub(crate) const REST: &str = "**";

/// Whether a command, whose words are only words, is matched: a star in it is a star.
pub fn matches_words(pattern: &[impl Borrow<str>], argv: &[impl Borrow<str>]) -> bool {
    let word = |pattern: &str, word: &str| {
        let letters: Vec<Piece> = word.chars().map(Piece::Letter).collect();
        covers_pieces(&pieces(pattern), &letters, |_, _| true)
    };
    let (words, rest) = match pattern.split_last() {
        Some((last, words)) if last.borrow() == REST => (words, true),
        _ => (pattern, false),
    };
    (if rest { argv.len() >= words.len() } else { argv.len() == words.len() })
        && words.iter().zip(argv).all(|(p, w)| word(p.borrow(), w.borrow()))
}

/// Whether a path, whose names are only names, is matched.
pub fn matches_path(pattern: &str, path: &str) -> bool {
    let letters: Vec<Piece> = path.chars().map(Piece::Letter).collect();
    covers_pieces(&pieces(pattern), &letters, |wildcard, piece| wildcard == Piece::Stars || piece != Piece::Letter('/'))
}

/// Whether a path, or a directory that it is in, is matched.
pub fn matches_or_holds(pattern: &str, path: &str) -> bool {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.into_iter().any(|end| matches_path(pattern, &path[..end]))
}

/// Whether any path below a directory could be matched; true when in doubt.
pub fn may_match_below(pattern: &str, dir: &str) -> bool {
    let fixed = pattern.split('*').next().unwrap_or_default();
    let below = format!("{dir}/");
    dir.is_empty()
        || fixed.starts_with(&below)
        || (fixed.len() < pattern.len() && below.starts_with(fixed))
        || pattern == dir
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_as_shells_do() {
        let yes = [("a/*", "a/b"), ("a/**", "a/b/c"), ("**", "a"), ("a/*.py", "a/x.py"), ("**/x", "a/b/x"), ("a", "a")];
        let no = [
            ("a/*", "a/b/c"),
            ("a/*", "a"),
            ("a/**", "b/c"),
            ("a/*.py", "a/b/x.py"),
            ("a", "a/b"),
            ("", "a"),
            ("**/x", "x"),
        ];
        yes.iter().for_each(|(pattern, path)| assert!(matches_path(pattern, path), "{pattern} {path}"));
        no.iter().for_each(|(pattern, path)| assert!(!matches_path(pattern, path), "{pattern} {path}"));
    }

    #[test]
    fn what_is_in_a_matched_directory() {
        assert!(matches_or_holds("a", "a/b/c") && matches_or_holds("a/*", "a/b/c") && matches_or_holds("a/b", "a/b"));
        assert!(!matches_or_holds("a/b", "a/bc") && !matches_or_holds("b", "a/b") && !matches_or_holds("a/b", "a"));
    }

    #[test]
    fn a_star_in_a_name_is_no_wildcard() {
        assert!(!matches_path("a/x", "a/*") && matches_path("a/*", "a/*") && !matches_path("a/*", "a/**/b"));
        assert!(!matches_words(&["ls", "x"], &["ls", "*"]) && matches_words(&["ls", "*"], &["ls", "**"]));
        assert!(!matches_words(&["ls"], &["ls", "**"]));
    }

    #[test]
    fn what_is_covered_allows_no_more() {
        let yes = [("a/**", "a/*"), ("a/**", "a/b/**"), ("a/*", "a/*.py"), ("**", "**"), ("a/*", "a/b")];
        let no = [("a/*", "a/**"), ("a/b", "a/*"), ("a/*.py", "a/*"), ("a/**", "**"), ("a/*", "a/b/*")];
        yes.iter().for_each(|(outer, inner)| assert!(covers_path(outer, inner), "{outer} {inner}"));
        no.iter().for_each(|(outer, inner)| assert!(!covers_path(outer, inner), "{outer} {inner}"));
        let words = |text: &'static str| text.split(' ').collect::<Vec<_>>();
        for (outer, inner) in [
            ("python3 **", "python3 a.py"),
            ("python3 **", "python3 * **"),
            ("python3 *", "python3 *.py"),
            ("a **", "a **"),
            ("a **", "a"),
        ] {
            assert!(covers_words(&words(outer), &words(inner)), "{outer}: {inner}");
        }
        for (outer, inner) in [
            ("python3 *", "python3 **"),
            ("python3 a.py", "python3 *"),
            ("python3 **", "perl x"),
            ("a * **", "a **"),
            ("a b", "a b c"),
        ] {
            assert!(!covers_words(&words(outer), &words(inner)), "{outer}: {inner}");
        }
    }

    /// Against a plain search over all short strings: what is said to be covered never matches more.
    #[test]
    fn covering_is_never_wrong() {
        let alphabet = ['a', '/', '*'];
        let mut all = vec![String::new()];
        for _ in 0..4 {
            let longer: Vec<String> = all.iter().flat_map(|s| alphabet.map(|c| format!("{s}{c}"))).collect();
            all.extend(longer);
            all.sort();
            all.dedup();
        }
        let plain: Vec<&String> = all.iter().filter(|s| !s.contains('*')).collect();
        for outer in &all {
            for inner in all.iter().filter(|inner| covers_path(outer, inner)) {
                for path in plain.iter().filter(|path| matches_path(inner, path)) {
                    assert!(matches_path(outer, path), "{outer} does not match {path}, which {inner} does");
                }
            }
        }
    }

    #[test]
    fn a_pattern_may_reach_into_a_directory() {
        for (pattern, dir) in
            [("**/.env", "a"), ("a/b/*", "a"), ("a/b/*", "a/b"), ("a*", "ab"), ("a/x", "a"), ("a", "a")]
        {
            assert!(may_match_below(pattern, dir), "{pattern} {dir}");
        }
        for (pattern, dir) in [("b/*", "a"), ("a/b/c", "a/c"), ("x", "a")] {
            assert!(!may_match_below(pattern, dir), "{pattern} {dir}");
        }
    }

    #[test]
    fn long_patterns_take_no_long_time() {
        assert!(!matches_path(&"*a".repeat(2000), &"a".repeat(1999)));
        assert!(covers_path(&"**".repeat(2000), &"*a".repeat(2000)));
    }
}
