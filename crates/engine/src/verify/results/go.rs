//! The events of `go test -json`. Every test with an end is counted, subtests and what holds them alike, as Go does.

use std::collections::HashMap;

use serde::Deserialize;

use super::{TestResults, lines};

pub(super) fn parse(text: &[u8]) -> Option<TestResults> {
    let mut reader = Reader::default();
    for line in lines(text) {
        if let Ok(event) = serde_json::from_str::<Event>(&line) {
            reader.event(event);
        } else if let Some(package) = failed_build(&line) {
            reader.recognized = true;
            reader.results.fail_by_name(package);
        }
    }
    reader.recognized.then_some(reader.results)
}

/// What `go test` would have said in words: the output in the events, and what is no event as it stands.
pub(super) fn words(text: &str) -> String {
    let mut words = String::new();
    for line in text.split_inclusive('\n') {
        match serde_json::from_str::<Event>(line) {
            Ok(event) => words.push_str(&event.output.unwrap_or_default()),
            Err(_) => words.push_str(line),
        }
    }
    words
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    package: Option<String>,
    test: Option<String>,
    output: Option<String>,
}

/// What Go before 1.24 says, outside of any event, of packages that it cannot build.
fn failed_build(line: &str) -> Option<&str> {
    let (package, reason) = line.strip_prefix("FAIL\t")?.split_once(" [")?;
    matches!(reason, "build failed]" | "setup failed]").then_some(package)
}

#[derive(Default)]
struct Reader {
    results: TestResults,
    recognized: bool,
    packages: HashMap<String, Package>,
}

#[derive(Default)]
struct Package {
    has_failing_test: bool,
    started: u64,
    /// With the place in the order in which they were started.
    running: HashMap<String, u64>,
}

impl Reader {
    fn event(&mut self, event: Event) {
        let Some(package) = event.package else { return };
        self.recognized = true;
        match (event.action.as_str(), event.test) {
            ("run", Some(test)) => self.packages.entry(package).or_default().start(test),
            (end @ ("pass" | "fail" | "skip"), Some(test)) => self.end_test(package, &test, end),
            ("fail", None) => self.fail_package(&package),
            ("pass" | "skip", None) => drop(self.packages.remove(&package)),
            _ => {}
        }
    }

    fn end_test(&mut self, package: String, test: &str, end: &str) {
        match end {
            "pass" => self.results.pass(1),
            "skip" => self.results.skip(1),
            _ => self.results.fail_by_name(&format!("{package}.{test}")),
        }
        let package = self.packages.entry(package).or_default();
        package.running.remove(test);
        package.has_failing_test |= end == "fail";
    }

    /// Without a test to blame it did not compile, or it ended in the middle of tests that thus have no end.
    fn fail_package(&mut self, name: &str) {
        let package = self.packages.remove(name).unwrap_or_default();
        if package.has_failing_test {
            return;
        }
        if package.running.is_empty() {
            self.results.fail_by_name(name);
        }
        let mut unfinished: Vec<_> = package.running.into_iter().collect();
        unfinished.sort_unstable_by_key(|(_, place)| *place);
        for (test, _) in unfinished {
            self.results.fail_by_name(&format!("{name}.{test}"));
        }
    }
}

impl Package {
    fn start(&mut self, test: String) {
        self.started = self.started.saturating_add(1);
        self.running.insert(test, self.started);
    }
}
