//! Which versions a client takes, as npm writes it: `*`, `3`, `3.x`, `~3.10`, `^3.10.2`, `>=3 <4`, `3.9 - 3.11`, `1 || 2`.

/// Of a release: major, minor, patch.
pub(super) type Version = [u64; 3];

/// Longer ones are no selectors.
const MAX: usize = 256;

/// Whether a version is one of those. What is no selector takes none.
pub(super) fn takes(selector: &str, version: Version) -> bool {
    let alternatives: Option<Vec<bool>> = selector.split("||").map(|range| all_of(range, version)).collect();
    selector.len() <= MAX && alternatives.is_some_and(|taken| taken.contains(&true))
}

/// A version as it is written, with parts left out or open. `None` in a part makes those behind it open too.
#[derive(Clone, Copy)]
struct Partial {
    parts: [Option<u64>; 3],
    /// Of something before the release that has these numbers.
    is_before: bool,
}

fn all_of(range: &str, version: Version) -> Option<bool> {
    if let Some((from, to)) = range.split_once(" - ") {
        let (from, to) = (partial(from.trim())?, partial(to.trim())?);
        return Some(holds(">=", from, version) && holds("<=", to, version));
    }
    let mut all = true;
    let mut words = range.split_whitespace();
    while let Some(word) = words.next() {
        let at = word.find(|c: char| !"<>=~^".contains(c)).unwrap_or(word.len());
        let (operator, mut rest) = word.split_at(at);
        if rest.is_empty() {
            // There may be room between the two.
            rest = words.next()?;
        }
        all &= holds(known(operator)?, partial(rest)?, version);
    }
    Some(all)
}

fn known(operator: &str) -> Option<&'static str> {
    let all = [
        ("", "="),
        ("=", "="),
        (">", ">"),
        (">=", ">="),
        ("<", "<"),
        ("<=", "<="),
        ("~", "~"),
        ("~>", "~"),
        ("^", "^"),
    ];
    all.into_iter().find(|(written, _)| *written == operator).map(|(_, known)| known)
}

fn partial(text: &str) -> Option<Partial> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (text, _build) = text.split_once('+').unwrap_or((text, ""));
    let (numbers, before) = text.split_once('-').map_or((text, None), |(numbers, before)| (numbers, Some(before)));
    let written: Vec<&str> = numbers.split('.').collect();
    let is_bad = written.len() > 3 || before.is_some_and(|before| before.is_empty() || written.len() < 3);
    if is_bad {
        return None;
    }
    let mut parts = [None; 3];
    let mut is_open = false;
    for (part, written) in parts.iter_mut().zip(written) {
        let is_wild = matches!(written, "*" | "x" | "X");
        let is_number = written.bytes().all(|b| b.is_ascii_digit()) && (written == "0" || !written.starts_with('0'));
        if !is_wild && (!is_number || is_open) {
            return None;
        }
        is_open |= is_wild;
        if !is_open {
            *part = Some(written.parse().ok()?);
        }
    }
    Some(Partial { parts, is_before: before.is_some() && !is_open })
}

fn holds(operator: &str, than: Partial, version: Version) -> bool {
    let [Some(major), minor, patch] = than.parts else { return !matches!(operator, "<" | ">") };
    let first = [major, minor.unwrap_or(0), patch.unwrap_or(0)];
    // The first that is no longer covered by what is written.
    let behind = match (minor, patch) {
        (None, _) => [major.saturating_add(1), 0, 0],
        (Some(minor), None) => [major, minor.saturating_add(1), 0],
        (Some(minor), Some(patch)) if !than.is_before => [major, minor, patch.saturating_add(1)],
        (Some(_), Some(_)) => first,
    };
    let next = match operator {
        "~" => [major, minor.map_or(u64::MAX, |minor| minor.saturating_add(1)), 0],
        _ if major > 0 || minor.is_none() => [major.saturating_add(1), 0, 0],
        _ if first[1] > 0 || patch.is_none() => [0, first[1].saturating_add(1), 0],
        _ => [0, 0, first[2].saturating_add(1)],
    };
    match operator {
        "=" => first <= version && version < behind,
        ">=" => version >= first,
        ">" => version >= behind,
        "<" => version < first,
        "<=" => version < behind,
        // `~` and `^`.
        _ => first <= version && version < next,
    }
}

#[cfg(test)]
mod tests {
    use super::takes;

    /// As the `semver` package of npm answers.
    #[test]
    fn a_selector_takes_what_npm_takes() {
        for (selector, taken, not_taken) in [
            ("*", vec![[3, 11, 2], [0, 0, 0]], vec![]),
            ("x", vec![[3, 11, 2]], vec![]),
            (" ", vec![[3, 11, 2]], vec![]),
            ("3", vec![[3, 0, 0], [3, 11, 2]], vec![[2, 9, 9], [4, 0, 0]]),
            ("3.x", vec![[3, 11, 2]], vec![[4, 0, 0]]),
            ("3.*.x", vec![[3, 11, 2]], vec![[4, 0, 0]]),
            ("3.X.7", vec![], vec![[3, 11, 7]]),
            ("3.11", vec![[3, 11, 0], [3, 11, 9]], vec![[3, 12, 0], [3, 10, 9]]),
            ("v3.11.2", vec![[3, 11, 2]], vec![[3, 11, 3]]),
            ("=3.11.2", vec![[3, 11, 2]], vec![[3, 11, 1]]),
            ("3.11.2+build", vec![[3, 11, 2]], vec![[3, 11, 1]]),
            ("~3.11", vec![[3, 11, 0], [3, 11, 9]], vec![[3, 12, 0]]),
            ("~3.11.2", vec![[3, 11, 2], [3, 11, 9]], vec![[3, 11, 1], [3, 12, 0]]),
            ("~>3", vec![[3, 99, 0]], vec![[4, 0, 0]]),
            ("^3.10", vec![[3, 10, 0], [3, 99, 0]], vec![[3, 9, 9], [4, 0, 0]]),
            ("^0.2.3", vec![[0, 2, 3], [0, 2, 9]], vec![[0, 3, 0], [0, 2, 2]]),
            ("^0.0.3", vec![[0, 0, 3]], vec![[0, 0, 4]]),
            ("^0.0", vec![[0, 0, 9]], vec![[0, 1, 0]]),
            ("^0", vec![[0, 9, 9]], vec![[1, 0, 0]]),
            ("^ 3.10", vec![[3, 11, 0]], vec![[4, 0, 0]]),
            (">=3 <4", vec![[3, 0, 0]], vec![[4, 0, 0], [2, 0, 0]]),
            (">= 3.10", vec![[3, 10, 0], [9, 0, 0]], vec![[3, 9, 0]]),
            (">3", vec![[4, 0, 0]], vec![[3, 99, 99]]),
            (">3.1.1", vec![[3, 1, 2]], vec![[3, 1, 1]]),
            ("<=3", vec![[3, 99, 0]], vec![[4, 0, 0]]),
            ("<3.1", vec![[3, 0, 9]], vec![[3, 1, 0]]),
            ("3.9 - 3.11", vec![[3, 9, 0], [3, 11, 9]], vec![[3, 8, 9], [3, 12, 0]]),
            ("1.2.3 - 2", vec![[1, 2, 3], [2, 9, 9]], vec![[1, 2, 2], [3, 0, 0]]),
            ("1 || 3", vec![[1, 5, 0], [3, 5, 0]], vec![[2, 0, 0]]),
            ("3.11.2-rc.1", vec![], vec![[3, 11, 2]]),
            (">=3.11.2-rc.1", vec![[3, 11, 2]], vec![[3, 11, 1]]),
            (">3.11.2-rc.1", vec![[3, 11, 2]], vec![[3, 11, 1]]),
            ("<3.11.2-rc.1", vec![[3, 11, 1]], vec![[3, 11, 2]]),
            ("<=3.11.2-rc.1", vec![[3, 11, 1]], vec![[3, 11, 2]]),
            ("^3.11.2-rc.1", vec![[3, 11, 2], [3, 12, 0]], vec![[3, 11, 1]]),
            (">*", vec![], vec![[3, 11, 2]]),
            ("<*", vec![], vec![[0, 0, 0]]),
            (">=*", vec![[3, 11, 2]], vec![]),
            ("latest", vec![], vec![[3, 11, 2]]),
            ("3.011", vec![], vec![[3, 11, 0]]),
            ("3.1.1.1", vec![], vec![[3, 1, 1]]),
            ("3.", vec![], vec![[3, 0, 0]]),
            ("><3", vec![], vec![[3, 0, 0]]),
            (">=", vec![], vec![[3, 0, 0]]),
            ("3 -4", vec![], vec![[3, 0, 0]]),
            ("3||", vec![[9, 9, 9]], vec![]),
            ("3 || bad", vec![], vec![[3, 0, 0]]),
            ("99999999999999999999", vec![], vec![[3, 0, 0]]),
        ] {
            for version in taken {
                assert!(takes(selector, version), "{selector} {version:?}");
            }
            for version in not_taken {
                assert!(!takes(selector, version), "{selector} {version:?}");
            }
        }
    }
}
