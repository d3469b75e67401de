//! Python: the parser, unittest, and where they can be had pytest, ruff and mypy.

use crate::harness::{Cell, Ran, skip};
use crate::project::{
    Files, Project, checked, fails, passes, path_with, phase, python_with_tools, reason, tests, verified,
};

pub const CALC: &str = "def add(a: int, b: int) -> int:\n    return a + b\n";

pub const TESTS: &str = r#"import unittest

from calc import add


class Calc(unittest.TestCase):
    def test_adds(self) -> None:
        self.assertEqual(add(2, 2), 4)

    def test_negative(self) -> None:
        self.assertEqual(add(2, -3), -1)

    @unittest.skip("not yet")
    def test_large(self) -> None:
        self.fail()
"#;

/// As `TESTS`, and one that fails.
pub const WRONG: &str = r#"import unittest

from calc import add


class Calc(unittest.TestCase):
    def test_adds(self) -> None:
        self.assertEqual(add(2, 2), 4)

    def test_wrong(self) -> None:
        self.assertEqual(add(2, 2), 5)
"#;

pub const GOOD: Files<'_> = &[("calc.py", CALC), ("test_calc.py", TESTS)];
pub const BAD: Files<'_> = &[("calc.py", CALC), ("test_calc.py", WRONG)];

/// What ruff finds by default changes from version to version.
pub const RUFF: (&str, &str) = ("ruff.toml", "[lint]\nselect = [\"F\"]\n");

/// The body of the only test there is.
pub fn with_test(body: &str) -> Project {
    let body: String = body.lines().map(|line| format!("        {line}\n")).collect();
    let test = format!("import unittest\n\n\nclass Only(unittest.TestCase):\n    def test_it(self) -> None:\n{body}");
    Project::new(&[RUFF, ("calc.py", CALC), ("test_only.py", &test)])
}

/// With pytest and the others, or not at all.
fn with_tools(project: &Project) -> Option<Cell> {
    match python_with_tools() {
        Ok(bin) => Some(project.verify().env("PATH", &path_with(bin))),
        Err(why) => {
            skip(&format!("pytest, ruff and mypy are not to be had: {why}"));
            None
        }
    }
}

fn verified_with_tools(files: Files<'_>) -> Option<Ran> {
    let project = Project::new(&[&[RUFF], files].concat());
    with_tools(&project).map(|cell| project.run(cell))
}

#[test]
fn unittest_passes() {
    let ran = verified(GOOD);
    passes(&ran, "L1");
    assert_eq!(phase(&ran, "parse")["tier"], "L0");
    tests(&ran, "unittest", 2, 0, 1, &[]);
    assert!(reason(&ran, "pytest").contains("not installed"));
    assert_eq!(ran.outcome["attempt"], 1);
    assert_eq!(ran.outcome["runtime_config"]["language"], "python");
}

#[test]
fn unittest_fails() {
    let ran = verified(BAD);
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "unittest", 1, 1, 0, &["test_calc.Calc.test_wrong"]);
    assert_eq!((ran.code, ran.outcome["exit_code"].as_i64()), (1, Some(1)));
    assert_eq!(ran.terminal(), "none");
}

#[test]
fn an_error_in_a_test_and_a_module_that_does_not_load_are_failures_with_names() {
    let error =
        "import unittest\n\n\nclass Only(unittest.TestCase):\n    def test_it(self):\n        raise ValueError(1)\n";
    let ran = verified(&[("test_only.py", error), ("test_other.py", "import of_nothing\n")]);
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "unittest", 0, 2, 0, &["test_only.Only.test_it", "test_other"]);
}

#[test]
fn a_syntax_error_anywhere_ends_at_l0() {
    for files in [
        &[("calc.py", "def add(a, b:\n    return a\n"), ("test_calc.py", TESTS)],
        &[("calc.py", CALC), ("test_calc.py", "class (:\n")],
    ] {
        let ran = verified(files);
        fails(&ran, "SyntaxError", "L0", "syntax");
        assert_eq!(ran.code, 1);
        assert_eq!(phase(&ran, "parse")["failure_class"], "SyntaxError");
        assert_eq!(reason(&ran, "unittest"), "L0 failed");
        assert!(ran.outcome["stderr"].as_str().expect("text").contains("SyntaxError"));
    }
}

#[test]
fn all_files_with_syntax_errors_are_named_at_once() {
    let ran = verified(&[("a.py", "def (\n"), ("sub/b.py", "class (\n"), ("c.py", CALC)]);
    fails(&ran, "SyntaxError", "L0", "syntax");
    let said = ran.outcome["stderr"].as_str().expect("text");
    assert!(said.contains("/src/a.py") && said.contains("/src/sub/b.py") && !said.contains("/src/c.py"), "{said}");
}

#[test]
fn sources_without_tests_are_l0() {
    let ran = verified(&[("calc.py", CALC)]);
    passes(&ran, "L0");
    assert!(reason(&ran, "unittest").contains("test*.py"));
    let ran = verified(&[("calc.py", CALC), ("test_nothing.py", "")]);
    passes(&ran, "L0");
    assert!(reason(&ran, "unittest").contains("no test"));
}

#[test]
fn a_package_with_its_tests_in_a_directory() {
    let test = TESTS.replace("from calc", "from app.calc");
    let files =
        [("app/__init__.py", ""), ("app/calc.py", CALC), ("tests/__init__.py", ""), ("tests/test_calc.py", &test)];
    let project = Project::new(&files);
    let ran = project.run(project.verify().flag("--lang", "python"));
    passes(&ran, "L1");
    tests(&ran, "unittest", 2, 0, 1, &[]);
}

#[test]
fn pytest_passes() {
    let test = "import pytest\n\nfrom calc import add\n\n\n@pytest.mark.parametrize(\"n\", [1, 2, 3])\n\
        def test_adds(n: int) -> None:\n    assert add(n, 1) == n + 1\n\n\n@pytest.mark.skip\n\
        def test_later() -> None:\n    assert False\n";
    let Some(ran) = verified_with_tools(&[("calc.py", CALC), ("test_calc.py", test)]) else { return };
    passes(&ran, "L1");
    tests(&ran, "pytest", 3, 0, 1, &[]);
    assert_eq!(reason(&ran, "unittest"), "another runner has run the tests");
    for check in ["parse", "ruff", "mypy"] {
        assert_eq!(phase(&ran, check)["tier"], "L0");
    }
}

#[test]
fn pytest_fails() {
    let test = "from calc import add\n\n\ndef test_adds() -> None:\n    assert add(1, 1) == 2\n\n\n\
        def test_wrong() -> None:\n    assert add(1, 1) == 3\n";
    let Some(ran) = verified_with_tools(&[("calc.py", CALC), ("test_calc.py", test)]) else { return };
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "pytest", 1, 1, 0, &["test_calc.test_wrong"]);
    assert_eq!(ran.code, 1);
}

#[test]
fn pytest_runs_the_tests_of_unittest_too() {
    let Some(ran) = verified_with_tools(GOOD) else { return };
    passes(&ran, "L1");
    tests(&ran, "pytest", 2, 0, 1, &[]);
    let Some(ran) = verified_with_tools(BAD) else { return };
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "pytest", 1, 1, 0, &["test_calc.Calc.test_wrong"]);
}

#[test]
fn pytest_that_finds_no_tests_is_skipped() {
    let Some(ran) = verified_with_tools(&[("calc.py", CALC), ("test_nothing.py", "")]) else { return };
    passes(&ran, "L0");
    assert!(reason(&ran, "pytest").contains("no test"));
    assert!(!reason(&ran, "unittest").is_empty());
}

#[test]
fn ruff_and_mypy_are_heard() {
    let lint = "import os\n\n\ndef add(a: int, b: int) -> int:\n    return a + b\n";
    let Some(ran) = verified_with_tools(&[("calc.py", lint), ("test_calc.py", TESTS)]) else { return };
    fails(&ran, "CompileError", "L0", "deterministic");
    assert_eq!(phase(&ran, "ruff")["status"], "fail");
    assert_eq!(phase(&ran, "mypy")["status"], "pass");
    assert!(ran.outcome["stdout"].as_str().expect("text").contains("F401"));
    assert_eq!(reason(&ran, "pytest"), "L0 failed");

    let types = "def add(a: int, b: int) -> int:\n    return str(a + b)\n";
    let Some(ran) = verified_with_tools(&[("calc.py", types), ("test_calc.py", TESTS)]) else { return };
    fails(&ran, "CompileError", "L0", "deterministic");
    assert_eq!(phase(&ran, "ruff")["status"], "pass");
    assert_eq!(phase(&ran, "mypy")["status"], "fail");
    assert!(ran.outcome["stdout"].as_str().expect("text").contains("calc.py:2"));
}

#[test]
fn the_first_check_that_fails_gives_the_class_and_the_others_run() {
    let Some(ran) = verified_with_tools(&[("calc.py", "def add(a, b:\n")]) else { return };
    fails(&ran, "SyntaxError", "L0", "syntax");
    for check in ["parse", "ruff", "mypy"] {
        assert_eq!(phase(&ran, check)["status"], "fail");
    }
}

#[test]
fn pytest_takes_the_tests_beside_a_file() {
    let project = Project::new(BAD);
    let Ok(bin) = python_with_tools() else { return skip("pytest is not to be had") };
    let cell = crate::project::verify(&project.file("calc.py")).flag("--tests", project.file("test_calc.py"));
    let ran = checked(cell.env("PATH", &path_with(bin)));
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "pytest", 1, 1, 0, &["test_calc.Calc.test_wrong"]);
}
