//! What test runners leave behind, read as counts and names. All of it is hostile input: whatever it holds, reading it
//! takes time and memory in proportion to its length, and what comes out is short and can be shown.

mod cargo;
mod go;
mod junit;
mod junit4;
mod tap;
#[cfg(test)]
mod tests;
mod unittest;

use std::borrow::Cow;

/// Names beyond this many are counted only.
pub(crate) const MAX_NAMES: usize = 100;
const MAX_NAME_CHARS: usize = 200;
const MAX_TEXT: usize = 16 << 20;

/// What a test runner said of its tests. It is the program's own word: the verdict is never taken from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TestResults {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Also tests that were expected to fail and did, and those marked as still to do.
    pub(crate) skipped: u64,
    /// At most `MAX_NAMES`, in order; fewer than `failed` where the runner gives no names.
    pub(crate) failing: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The file of `pytest --junitxml`, of JUnit's console launcher or of surefire; also several, one after another.
    JunitXml,
    /// The stdout of JUnit 4's `JUnitCore`.
    Junit4,
    /// The stderr of `python -m unittest`, with or without `-v`.
    Unittest,
    /// The stdout of `go test -json`.
    GoJson,
    /// The stdout of `node --test --test-reporter=tap`.
    NodeTap,
    /// The stdout of `cargo test`, better with its stderr in between.
    CargoText,
}

/// `None`: nothing that looks like results.
pub(crate) fn parse(format: Format, text: &[u8]) -> Option<TestResults> {
    match format {
        Format::JunitXml => junit::parse(head(text)),
        Format::Junit4 => junit4::parse(head(text)),
        // Its totals come last, right after the names.
        Format::Unittest => unittest::parse(tail(text)),
        Format::GoJson => go::parse(head(text)),
        Format::NodeTap => tap::parse(head(text)),
        Format::CargoText => cargo::parse(head(text)),
    }
}

/// The output of a runner as people read it.
pub(crate) fn readable(format: Format, text: String) -> String {
    match format {
        Format::GoJson => go::words(&text),
        _ => text,
    }
}

impl TestResults {
    fn pass(&mut self, count: u64) {
        self.passed = self.passed.saturating_add(count);
    }

    fn skip(&mut self, count: u64) {
        self.skipped = self.skipped.saturating_add(count);
    }

    fn fail(&mut self, count: u64) {
        self.failed = self.failed.saturating_add(count);
    }

    fn fail_by_name(&mut self, name: &str) {
        self.fail(1);
        self.name(name);
    }

    fn has_room_for_names(&self) -> bool {
        self.failing.len() < MAX_NAMES
    }

    /// A runner that tells of one test twice (of its body and its tear-down, say) does so at once.
    fn name(&mut self, name: &str) {
        if !self.has_room_for_names() {
            return;
        }
        let name = presentable(name);
        if !name.is_empty() && self.failing.last() != Some(&name) {
            self.failing.push(name);
        }
    }
}

fn head(text: &[u8]) -> &[u8] {
    &text[..text.len().min(MAX_TEXT)]
}

fn tail(text: &[u8]) -> &[u8] {
    &text[text.len().saturating_sub(MAX_TEXT)..]
}

fn lines(text: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    text.split(|&byte| byte == b'\n').map(|line| String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)))
}

fn presentable(name: &str) -> String {
    let escaped = name.trim().chars().flat_map(|c| if misleads(c) { escape(c) } else { vec![c] });
    let mut shown: Vec<char> = escaped.take(MAX_NAME_CHARS + 1).collect();
    if shown.len() > MAX_NAME_CHARS {
        shown.truncate(MAX_NAME_CHARS - 1);
        shown.push('…');
    }
    shown.into_iter().collect()
}

fn escape(c: char) -> Vec<char> {
    c.escape_default().collect()
}

/// Control characters, and those that have no width or turn the direction of what follows.
fn misleads(c: char) -> bool {
    let format = '\u{200b}'..='\u{200f}';
    let breaks_and_turns = '\u{2028}'..='\u{202e}';
    let isolates = '\u{2060}'..='\u{206f}';
    let tags = '\u{e0000}'..='\u{e007f}';
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
        || [format, breaks_and_turns, isolates, tags].iter().any(|range| range.contains(&c))
}
