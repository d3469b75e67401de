//! What `python -m unittest` says on stderr. Only its last totals count: a test may run tests of its own.

use std::collections::HashSet;

use super::{TestResults, lines};

const RULE_LENGTH: usize = 70;
const FAILED_TO_LOAD: &str = "unittest.loader._FailedTest";

pub(super) fn parse(text: &[u8]) -> Option<TestResults> {
    let mut reader = Reader::default();
    for line in lines(text) {
        reader.line(&line);
    }
    reader.results
}

#[derive(Default)]
struct Reader {
    after: After,
    run: Run,
    results: Option<TestResults>,
}

#[derive(Default, Clone, Copy)]
enum After {
    #[default]
    Anything,
    DoubleRule,
    Rule,
    Ran(u64),
}

/// What was said of the tests before the totals.
#[derive(Default)]
struct Run {
    failures: TestResults,
    failed: HashSet<String>,
    skipped: HashSet<String>,
    /// Skips that are no test of their own: those of a second subtest, say.
    skips_beside_tests: u64,
    said_ok: u64,
    /// A test whose own output stands between its name and its end.
    awaits_end: bool,
    unexpected: Vec<String>,
    in_tracebacks: bool,
}

#[derive(Default)]
struct Totals {
    failures: u64,
    errors: u64,
    skipped: u64,
    expected_failures: u64,
    unexpected_successes: u64,
}

impl Reader {
    fn line(&mut self, line: &str) {
        self.after = match self.after {
            _ if is_rule(line, b'=') => After::DoubleRule,
            _ if is_rule(line, b'-') => After::Rule,
            After::DoubleRule => self.heading(line),
            After::Rule => ran(line).map_or(After::Anything, After::Ran),
            After::Ran(ran) if line.is_empty() => After::Ran(ran),
            After::Ran(ran) => self.end(ran, line),
            After::Anything => {
                if !self.run.in_tracebacks {
                    self.run.verbose_line(line);
                }
                After::Anything
            }
        };
    }

    fn heading(&mut self, line: &str) -> After {
        self.run.in_tracebacks = true;
        if let Some(test) = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: ")) {
            self.run.failures.name(&dotted(test));
            if !is_fixture(test) {
                self.run.failed.insert(test_of(test).to_owned());
            }
        } else if let Some(test) = line.strip_prefix("UNEXPECTED SUCCESS: ") {
            // All of them stand under one rule.
            self.run.failures.name(&dotted(test));
            self.run.unexpected.clear();
            return After::DoubleRule;
        }
        After::Anything
    }

    fn end(&mut self, ran: u64, line: &str) -> After {
        if let Some(totals) = totals(line) {
            self.results = Some(std::mem::take(&mut self.run).results(ran, &totals));
        }
        After::Anything
    }
}

impl Run {
    fn verbose_line(&mut self, line: &str) {
        let named_ok = line.strip_suffix(" ... ok").is_some_and(|test| !test.is_empty());
        if named_ok || (self.awaits_end && line == "ok") {
            self.said_ok = self.said_ok.saturating_add(1);
            self.awaits_end = false;
        } else if line.starts_with("skipped '") || line.starts_with("skipped \"") {
            // Before 3.11 subtests and fixtures are not named here.
            let own = std::mem::replace(&mut self.awaits_end, false);
            self.skips_beside_tests = self.skips_beside_tests.saturating_add(u64::from(!own));
        } else if let Some((test, end)) = line.split_once(" ... ") {
            self.awaits_end = false;
            if end.starts_with("skipped ") {
                self.skip(test);
            } else if end == "unexpected success" && self.failures.has_room_for_names() {
                self.unexpected.push(dotted(test));
            } else {
                self.awaits_end = !matches!(end, "FAIL" | "ERROR" | "expected failure");
            }
        }
    }

    fn skip(&mut self, test: &str) {
        if is_fixture(test) || !self.skipped.insert(test_of(test).to_owned()) {
            self.skips_beside_tests = self.skips_beside_tests.saturating_add(1);
        }
    }

    /// How many passed is not said: it is what is left of those that ran, and no fewer than were said to be ok, which
    /// matters for Python 3.12.1, the one that does not count skipped tests among those that ran.
    fn results(self, ran: u64, totals: &Totals) -> TestResults {
        let none_failed = [totals.failures, totals.errors, totals.unexpected_successes] == [0; 3];
        // Headings of failures that the totals know nothing of were printed by the tests themselves.
        let (mut results, failed) = match none_failed {
            true => (TestResults::default(), HashSet::new()),
            false => (self.failures, self.failed),
        };
        if !none_failed {
            self.unexpected.iter().for_each(|name| results.name(name));
        }
        for count in [totals.failures, totals.errors, totals.unexpected_successes] {
            results.fail(count);
        }
        results.skip(totals.skipped);
        results.skip(totals.expected_failures);
        let both = failed.intersection(&self.skipped).count() as u64;
        let failed = failed.len() as u64;
        let skipped = totals.skipped.saturating_sub(self.skips_beside_tests.saturating_add(both));
        let others = [failed, skipped, totals.expected_failures, totals.unexpected_successes];
        let left = others.iter().fold(ran, |left, &count| left.saturating_sub(count));
        results.pass(left.max(self.said_ok).min(ran));
        results
    }
}

fn is_rule(line: &str, of: u8) -> bool {
    line.len() == RULE_LENGTH && line.bytes().all(|byte| byte == of)
}

fn ran(line: &str) -> Option<u64> {
    let (count, rest) = line.strip_prefix("Ran ")?.split_once(' ')?;
    (rest.starts_with("test in ") || rest.starts_with("tests in ")).then(|| count.parse().ok())?
}

fn totals(line: &str) -> Option<Totals> {
    let counts = ["OK", "FAILED", "NO TESTS RAN"].iter().find_map(|word| line.strip_prefix(word))?;
    let mut totals = Totals::default();
    if counts.is_empty() {
        return Some(totals);
    }
    for count in counts.strip_prefix(" (")?.strip_suffix(')')?.split(", ") {
        let (of, number) = count.split_once('=')?;
        let number = number.parse().ok()?;
        match of {
            "failures" => totals.failures = number,
            "errors" => totals.errors = number,
            "skipped" => totals.skipped = number,
            "expected failures" => totals.expected_failures = number,
            "unexpected successes" => totals.unexpected_successes = number,
            _ => {}
        }
    }
    Some(totals)
}

/// What runs around tests is not among those that ran.
fn is_fixture(test: &str) -> bool {
    ["setUpClass (", "tearDownClass (", "setUpModule (", "tearDownModule ("].iter().any(|name| test.starts_with(name))
}

/// `test (module.Class) [message] (of=subtest)` without what tells its subtests apart.
fn test_of(test: &str) -> &str {
    let test = test.trim_start();
    test.find(')').map_or(test, |end| &test[..=end])
}

/// The name by which unittest runs the test, and what it says of the subtest: Python 3.11 and later say
/// `test (module.Class.test)`, earlier ones `test (module.Class)`.
fn dotted(test: &str) -> String {
    let Some((name, rest)) = test.split_once(" (") else { return test.to_owned() };
    let Some((place, subtest)) = rest.split_once(')') else { return test.to_owned() };
    if place.strip_prefix(FAILED_TO_LOAD).is_some_and(|more| more.is_empty() || more.starts_with('.')) {
        return name.to_owned();
    }
    match place.strip_suffix(name) {
        Some(before) if before.is_empty() || before.ends_with('.') => format!("{place}{subtest}"),
        _ => format!("{place}.{name}{subtest}"),
    }
}
