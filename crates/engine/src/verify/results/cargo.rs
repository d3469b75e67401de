//! What `cargo test` prints: one run of libtest after another. Cargo's own words are on stderr, libtest's on stdout.

use super::{MAX_NAMES, TestResults, lines};

pub(super) fn parse(text: &[u8]) -> Option<TestResults> {
    let mut reader = Reader::default();
    for line in lines(text) {
        reader.line(&line);
    }
    reader.end_run();
    reader.recognized.then_some(reader.results)
}

#[derive(Default)]
struct Reader {
    results: TestResults,
    recognized: bool,
    /// What cargo says it runs, while nothing else has been said since.
    announced: Option<String>,
    run: Option<Run>,
}

/// One binary of tests.
#[derive(Default)]
struct Run {
    binary: Option<String>,
    /// The last ones count: those before may be what a failing test printed.
    totals: Option<Totals>,
    listed: Vec<String>,
    in_list: bool,
    /// For a binary that does not get as far as its totals.
    so_far: TestResults,
}

#[derive(Default, Clone, Copy)]
struct Totals {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if line.is_empty() {
            self.in_run(Run::end_list);
        } else if is_start(line) {
            self.end_run();
            self.recognized = true;
            self.run = Some(Run { binary: self.announced.take(), ..Run::default() });
        } else if let Some(binary) = announced(line) {
            self.announced = Some(binary.to_owned());
        } else {
            self.announced = None;
            self.in_run(|run| run.line(line));
            if let Some(target) = not_compiled(line) {
                self.recognized = true;
                self.results.fail_by_name(&target);
            }
        }
    }

    fn in_run(&mut self, then: impl FnOnce(&mut Run)) {
        if let Some(run) = &mut self.run {
            then(run);
        }
    }

    fn end_run(&mut self) {
        let Some(run) = self.run.take() else { return };
        let names = if run.listed.is_empty() { &run.so_far.failing } else { &run.listed };
        names.iter().for_each(|name| self.results.name(name));
        let said = Totals { passed: run.so_far.passed, failed: run.so_far.failed, ignored: run.so_far.skipped };
        let Totals { passed, failed, ignored } = run.totals.unwrap_or(said);
        self.results.pass(passed);
        self.results.fail(failed);
        self.results.skip(ignored);
        if run.totals.is_none() {
            // It broke off: with it the tests that it had not told of.
            self.results.fail_by_name(run.binary.as_deref().unwrap_or_default());
        }
    }
}

impl Run {
    fn line(&mut self, line: &str) {
        if line == "failures:" {
            self.listed.clear();
            self.in_list = true;
        } else if let Some(name) = line.strip_prefix("    ").filter(|_| self.in_list) {
            if self.listed.len() < MAX_NAMES {
                self.listed.push(name.to_owned());
            }
        } else if let Some(totals) = totals(line) {
            self.totals = Some(totals);
            self.in_list = false;
        } else {
            self.in_list = false;
            self.test(line);
        }
    }

    fn end_list(&mut self) {
        self.in_list = false;
    }

    fn test(&mut self, line: &str) {
        let Some((name, end)) = line.strip_prefix("test ").and_then(|test| test.split_once(" ... ")) else { return };
        match end {
            "ok" => self.so_far.pass(1),
            "FAILED" => self.so_far.fail_by_name(name.strip_suffix(" - should panic").unwrap_or(name)),
            _ if end.starts_with("ignored") => self.so_far.skip(1),
            _ => {}
        }
    }
}

/// `running 3 tests`
fn is_start(line: &str) -> bool {
    let count = line.strip_prefix("running ").and_then(|rest| rest.split_once(' '));
    count.is_some_and(|(count, what)| matches!(what, "test" | "tests") && count.parse::<u64>().is_ok())
}

/// `     Running tests/it.rs (target/debug/deps/it-91a660321255027c)`, or `   Doc-tests name`
fn announced(line: &str) -> Option<&str> {
    let said = line.strip_prefix("  ")?.trim_start();
    match said.strip_prefix("Running ") {
        Some(binary) => binary.split_once(" (").map(|(source, _)| source),
        None => said.starts_with("Doc-tests ").then_some(said),
    }
}

/// ``error: could not compile `name` (lib test) due to 1 previous error``
fn not_compiled(line: &str) -> Option<String> {
    let target = line.strip_prefix("error: could not compile `")?;
    Some(target.split(" due to ").next()?.replacen('`', "", 1))
}

/// `test result: FAILED. 2 passed; 3 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.24s`
fn totals(line: &str) -> Option<Totals> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = counts.split("; ");
    let mut count = |of: &str| counts.next()?.strip_suffix(of)?.trim_end().parse().ok();
    Some(Totals { passed: count("passed")?, failed: count("failed")?, ignored: count("ignored")? })
}
