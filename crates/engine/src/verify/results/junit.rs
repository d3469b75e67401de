//! JUnit's XML as tools print it: elements and attributes, found in one pass. No entities but the five of XML, no
//! namespaces, no check that elements close each other.

use super::TestResults;

pub(super) fn parse(text: &[u8]) -> Option<TestResults> {
    let mut results = TestResults::default();
    let mut suites = false;
    let mut case: Option<Case> = None;
    let mut scanner = Scanner { rest: text };
    while let Some(tag) = scanner.next_tag() {
        match (tag.name, tag.kind) {
            (b"testsuites" | b"testsuite", Kind::Open | Kind::Empty) => suites = true,
            (b"testcase", Kind::Open) => case = Some(Case { attributes: tag.attributes, passed: true }),
            (b"testcase", Kind::Empty) => results.pass(1),
            (b"testcase", Kind::Close) => results.pass(u64::from(case.take().is_some_and(|case| case.passed))),
            (b"failure" | b"error", Kind::Open | Kind::Empty) => {
                if let Some(case) = &mut case {
                    case.fail(&mut results);
                }
            }
            (b"skipped", Kind::Open | Kind::Empty) => {
                if let Some(case) = &mut case {
                    case.passed = false;
                    results.skip(1);
                }
            }
            _ => {}
        }
    }
    suites.then_some(results)
}

struct Case<'a> {
    attributes: &'a [u8],
    passed: bool,
}

impl Case<'_> {
    /// Once for each failure told of: pytest counts those of subtests one by one too.
    fn fail(&mut self, results: &mut TestResults) {
        results.fail(1);
        let first = std::mem::replace(&mut self.passed, false);
        if first && results.has_room_for_names() {
            results.name(&self.name());
        }
    }

    fn name(&self) -> String {
        let (mut class, mut name) = (String::new(), String::new());
        for (key, value) in (Attributes { rest: self.attributes }) {
            match key {
                b"classname" => class = unescape(value),
                b"name" => name = unescape(value),
                _ => {}
            }
        }
        // Pytest leaves the class out for a file that it could not load; surefire repeats it for a class that failed.
        if class.is_empty() || class == name { name } else { format!("{class}.{name}") }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Open,
    Close,
    Empty,
}

struct Tag<'a> {
    name: &'a [u8],
    attributes: &'a [u8],
    kind: Kind,
}

/// Goes forward only; what does not end ends the scan.
struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    fn next_tag(&mut self) -> Option<Tag<'a>> {
        loop {
            self.skip_past(b"<")?;
            if self.rest.starts_with(b"!--") {
                self.skip_past(b"-->")?;
            } else if self.rest.starts_with(b"![CDATA[") {
                self.skip_past(b"]]>")?;
            } else if self.rest.starts_with(b"?") {
                self.skip_past(b"?>")?;
            } else if self.rest.starts_with(b"!") {
                self.skip_past(b">")?;
            } else {
                return self.tag();
            }
        }
    }

    fn tag(&mut self) -> Option<Tag<'a>> {
        let end = end_of_tag(self.rest)?;
        let (inside, rest) = (&self.rest[..end], &self.rest[end + 1..]);
        self.rest = rest;
        let (inside, kind) = match (inside.strip_prefix(b"/"), inside.strip_suffix(b"/")) {
            (Some(inside), _) => (inside, Kind::Close),
            (None, Some(inside)) => (inside, Kind::Empty),
            (None, None) => (inside, Kind::Open),
        };
        let end_of_name = inside.iter().position(u8::is_ascii_whitespace).unwrap_or(inside.len());
        let (name, attributes) = inside.split_at(end_of_name);
        Some(Tag { name, attributes, kind })
    }

    fn skip_past(&mut self, mark: &[u8]) -> Option<()> {
        let at = self.rest.windows(mark.len()).position(|window| window == mark)?;
        self.rest = &self.rest[at + mark.len()..];
        Some(())
    }
}

/// Where the `>` is: one in a quoted value does not count.
fn end_of_tag(text: &[u8]) -> Option<usize> {
    let mut quote = None;
    text.iter().position(|&byte| {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return true,
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
        false
    })
}

struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let equals = self.rest.iter().position(|&byte| byte == b'=')?;
        let key = self.rest[..equals].trim_ascii();
        let value = self.rest[equals + 1..].trim_ascii_start();
        let (&quote, value) = value.split_first().filter(|(quote, _)| matches!(quote, b'"' | b'\''))?;
        let end = value.iter().position(|&byte| byte == quote)?;
        self.rest = &value[end + 1..];
        Some((key, &value[..end]))
    }
}

fn unescape(value: &[u8]) -> String {
    let value = String::from_utf8_lossy(value);
    let mut parts = value.split('&');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(';').and_then(|(entity, after)| Some((character(entity)?, after))) {
            Some((character, after)) => {
                plain.push(character);
                plain.push_str(after);
            }
            None => {
                plain.push('&');
                plain.push_str(part);
            }
        }
    }
    plain
}

fn character(entity: &str) -> Option<char> {
    match entity {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}
