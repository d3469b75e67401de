//! Fixtures are what the tools really printed; the numbers expected are those that the tools gave.

use std::path::Path;

use super::Format::{CargoText, GoJson, Junit4, JunitXml, NodeTap, Unittest};
use super::{Format, MAX_NAME_CHARS, MAX_NAMES, MAX_TEXT, TestResults, parse};

mod expected;
mod hostile;

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/results").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn fixture_text(name: &str) -> String {
    String::from_utf8(fixture(name)).expect("a fixture in UTF-8")
}

fn results(format: Format, name: &str) -> TestResults {
    parse(format, &fixture(name)).unwrap_or_else(|| panic!("no results in {name}"))
}

#[track_caller]
fn check(format: Format, name: &str, (passed, failed, skipped): (u64, u64, u64), failing: &[&str]) {
    let failing = failing.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(results(format, name), TestResults { passed, failed, skipped, failing }, "{name}");
}

/// The numbers that follow a word, added up.
fn said(text: &str, before: &str) -> u64 {
    let number = |after: &str| after.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().ok();
    text.split(before).skip(1).filter_map(number).sum()
}

#[test]
fn the_xml_is_counted_as_its_suites_say() {
    let files = [
        "pytest-mix.xml",
        "pytest-ok.xml",
        "pytest-none.xml",
        "pytest-collection-error.xml",
        "junit5-console-mix.xml",
        "junit5-console-ok.xml",
        "surefire-three-classes.xml",
    ];
    for file in files {
        let (results, text) = (results(JunitXml, file), fixture_text(file));
        assert_eq!(results.failed, said(&text, " failures=\"") + said(&text, " errors=\""), "{file}");
        assert_eq!(results.skipped, said(&text, " skipped=\""), "{file}");
        // Pytest counts subtests among the tests, and a test with an error in its tear-down twice.
        if file != "pytest-mix.xml" {
            let tests = said(&text, " tests=\"");
            assert_eq!(results.passed + results.failed + results.skipped, tests, "{file}");
        }
    }
}

#[test]
fn the_points_are_counted_as_nodes_summary_says() {
    // Node leaves out suites that broke themselves.
    for (file, broken_suites) in [("node-mix.tap", 2), ("node-ok.tap", 0), ("node-broken-files.tap", 2)] {
        let (results, text) = (results(NodeTap, file), fixture_text(file));
        let (_, summary) = text.rsplit_once("\n1..").expect("a plan");
        assert_eq!(results.passed, said(summary, "# pass "), "{file}");
        assert_eq!(results.failed, said(summary, "# fail ") + said(summary, "# cancelled ") + broken_suites, "{file}");
        assert_eq!(results.skipped, said(summary, "# skipped ") + said(summary, "# todo "), "{file}");
    }
}
