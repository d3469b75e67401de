//! TAP as Node's test runner prints it. What tests print is in comments there, so that every test point is Node's own.
//! Points are counted, not the summary at the end, which a run that is killed does not get to.

use super::{TestResults, lines, presentable};

const INDENT: usize = 4;
const MAX_DEPTH: usize = 64;

pub(super) fn parse(text: &[u8]) -> Option<TestResults> {
    let mut reader = Reader::default();
    for line in lines(text) {
        reader.line(&line);
    }
    reader.settle();
    reader.recognized.then_some(reader.results)
}

#[derive(Default)]
struct Reader {
    results: TestResults,
    recognized: bool,
    /// The subtests under way, outermost first.
    open: Vec<String>,
    /// What a point is of stands in the lines after it.
    point: Option<Point>,
    in_details: bool,
}

struct Point {
    indent: usize,
    ok: bool,
    aside: bool,
    path: String,
    is_suite: bool,
    only_inner_failures: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        if self.in_details {
            return self.detail(indent, content);
        }
        if content == "---" && self.point.as_ref().is_some_and(|point| indent == point.indent + 2) {
            self.in_details = true;
            return;
        }
        self.settle();
        if let Some(name) = content.strip_prefix("# Subtest: ") {
            self.open(indent, name);
        } else if let Some(point) = self.point(indent, content) {
            self.recognized = true;
            self.point = Some(point);
        } else if indent == 0 && content.starts_with("TAP version ") {
            self.recognized = true;
        }
    }

    /// Values of several lines are indented deeper than the keys.
    fn detail(&mut self, indent: usize, content: &str) {
        let Some(point) = self.point.as_mut().filter(|point| indent == point.indent + 2) else { return };
        match content {
            "type: 'suite'" => point.is_suite = true,
            "failureType: 'subtestsFailed'" => point.only_inner_failures = true,
            "..." => {
                self.in_details = false;
                self.settle();
            }
            _ => {}
        }
    }

    fn open(&mut self, indent: usize, name: &str) {
        self.open.truncate(indent / INDENT);
        if self.open.len() < MAX_DEPTH {
            self.open.push(presentable(&unescape(name)));
        }
    }

    fn point(&self, indent: usize, content: &str) -> Option<Point> {
        let (ok, numbered) = match content.strip_prefix("not ok ") {
            Some(numbered) => (false, numbered),
            None => (true, content.strip_prefix("ok ")?),
        };
        let (number, described) = numbered.split_once(" - ").unwrap_or((numbered, ""));
        number.parse::<u64>().ok()?;
        let (name, directive) = split_directive(described);
        let aside = ["SKIP", "TODO"].iter().any(|word| directive.starts_with(word));
        let path = if ok || aside { String::new() } else { self.path(indent, name) };
        Some(Point { indent, ok, aside, path, is_suite: false, only_inner_failures: false })
    }

    fn path(&self, indent: usize, name: &str) -> String {
        if !self.results.has_room_for_names() {
            return String::new();
        }
        let depth = (indent / INDENT).min(self.open.len());
        let mut path = self.open[..depth].to_vec();
        path.push(unescape(name));
        path.join(" > ")
    }

    fn settle(&mut self) {
        let Some(point) = self.point.take() else { return };
        // Node counts the tests in a suite, never the suite. One that broke itself has no test to show for it.
        if point.is_suite && (point.ok || point.aside || point.only_inner_failures) {
            return;
        }
        match (point.aside, point.ok) {
            (true, _) => self.results.skip(1),
            (false, true) => self.results.pass(1),
            (false, false) => self.results.fail_by_name(&point.path),
        }
    }
}

/// At the first ` # ` whose `#` is not escaped.
fn split_directive(described: &str) -> (&str, &str) {
    match described.split_once(" # ") {
        Some((name, directive)) => (name, directive),
        None => (described, ""),
    }
}

fn unescape(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        let escaped = if c == '\\' { characters.next_if(|next| matches!(next, '\\' | '#')) } else { None };
        plain.push(escaped.unwrap_or(c));
    }
    plain
}
