//! Words on the command line, and what is shown.

use serde_json::Value;

use crate::harness::Cell;
use crate::project::{Project, checked, fails, list, passes, path_with, tests, verify};
use crate::python::{BAD, CALC, GOOD, TESTS, with_test};

#[test]
fn a_file_and_its_tests() {
    let project = Project::new(GOOD);
    let ran = project.run(verify(&project.file("calc.py")).flag("--tests", project.file("test_calc.py")));
    passes(&ran, "L1");
    tests(&ran, "unittest", 2, 0, 1, &[]);
    passes(&project.run(verify(&project.file("calc.py"))), "L0");
}

#[test]
fn a_file_and_more_than_one_of_tests() {
    let project = Project::new(&[("calc.py", CALC), ("test_calc.py", TESTS), ("test_more.py", crate::python::WRONG)]);
    let cell = verify(&project.file("calc.py")).flag("--tests", project.file("test_calc.py"));
    let ran = project.run(cell.flag("--tests", project.file("test_more.py")));
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "unittest", 3, 1, 1, &["test_more.Calc.test_wrong"]);
}

#[test]
fn tests_of_every_language_may_stand_beside_a_file() {
    let go = "package calc\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {\n\tif Add(1, 1) != 3 {\n\t\tt.Fatal()\n\t}\n}\n";
    let js =
        "const { add } = require('./calc.js');\nrequire('node:test')('it', () => { if (add(1, 1) !== 3) throw 1; });\n";
    for (source, code, test, text, check) in [
        ("calc.go", "package calc\n\nfunc Add(a, b int) int { return a + b }\n", "calc_test.go", go, "go test"),
        ("calc.js", "exports.add = (a, b) => a + b;\n", "calc.test.js", js, "node --test"),
    ] {
        let project = Project::new(&[(source, code), (test, text)]);
        let ran = project.run(verify(&project.file(source)).flag("--tests", project.file(test)));
        fails(&ran, "TestFailure", "L0", "deterministic");
        assert_eq!(crate::project::phase(&ran, check)["tests"]["failed"], 1);
    }
}

/// Tests that were given and are of no use must not be passed over in silence.
#[test]
fn tests_beside_a_rust_file_are_run_or_refused() {
    let test = "#[test]\nfn it() {\n    panic!();\n}\n";
    let project = Project::new(&[("main.rs", "fn main() {}\n"), ("tests.rs", test)]);
    let ran = verify(&project.file("main.rs")).flag("--tests", project.file("tests.rs")).run();
    assert_ne!(ran.code, 0, "a failing test passes: {:#}", ran.outcome["skipped_checks"]);
}

#[test]
fn two_files_of_one_name_are_refused() {
    let project = Project::new(&[("calc.py", CALC), ("other/calc.py", CALC)]);
    let cell = verify(&project.file("calc.py")).flag("--tests", project.file("other/calc.py"));
    cell.run().refused("two files are called `calc.py`");
}

#[test]
fn a_directory_has_its_tests_in_it() {
    let project = Project::new(GOOD);
    project.verify().flag("--tests", project.file("test_calc.py")).run().refused("--tests is for a single file");
    let cell = verify(&project.file("calc.py")).flag("--tests", project.path());
    cell.run().refused("is a directory");
}

#[test]
fn what_cannot_be_verified_is_refused_with_a_reason() {
    let project = Project::new(&[("calc.py", CALC), ("notes.txt", "text\n"), ("bad.py", "")]);
    std::fs::write(project.file("bad.py"), b"\xff\xfe").expect("our own directory");
    verify(&project.file("absent.py")).run().refused("absent.py");
    verify(&project.file("notes.txt")).run().refused("--lang");
    verify(&project.file("bad.py")).run().refused("not UTF-8");
    project.verify().flag("--lang", "cobol").run().refused("`cobol` is not a language");
    verify(&project.file("calc.py")).flag("--tests", project.file("absent.py")).run().refused("absent.py");
    project.verify().flag("--input", project.path()).run().refused("--input");
    project.verify().flag("--stdin", project.file("notes.txt")).run().refused("--stdin");
    project.verify().flag("--budget", "soon").run().refused("soon");
    project.verify().flag("--timeout", "0s").run().refused("timeout");
    Cell::new("verify").run().refused("PATH");
    let empty = Project::new(&[]);
    empty.verify().run().refused("does not say its language");
}

#[test]
fn a_result_that_cannot_be_written_is_refused_before_anything_runs() {
    let project = Project::new(GOOD);
    project.verify().flag("--result", "/nowhere/result.json").run().refused("/nowhere/result.json");
}

#[test]
fn a_language_without_checks_has_nothing_to_check() {
    let language = "name = \"plain\"\nextensions = [\"plain\"]\npackage = \"dash\"\n\n[tools.sh]\n\n[[way]]\ntools = [\"sh\"]\nrun.argv = [\"{sh}\", \"{entry}\"]\n";
    let project = Project::new(&[("a.plain", ""), ("languages/plain.toml", language)]);
    let ran = verify(&project.file("a.plain")).flag("--languages", project.file("languages")).run();
    ran.refused("nothing of `a.plain` could be checked");
}

#[test]
fn a_directory_that_cannot_be_checked_is_named() {
    let project = Project::new(GOOD);
    let ran = project.verify().flag("--budget", "0s").run();
    ran.refused(project.path().to_str().expect("our own name"));
}

/// A check of no files proves nothing.
#[test]
fn a_directory_without_sources_has_nothing_to_check() {
    for (lang, part) in [("python", "nothing"), ("javascript", "nothing"), ("bash", "nothing"), ("c", "nothing")] {
        let project = Project::new(&[("README", "no sources here\n")]);
        let ran = project.verify().flag("--lang", lang).run();
        ran.refused(part);
    }
}

#[test]
fn json_is_the_result_and_nothing_else() {
    for files in [GOOD, BAD] {
        let project = Project::new(files);
        let ran = checked(project.verify());
        assert!(serde_json::from_slice::<Value>(&ran.stdout).is_ok());
        assert_eq!(ran.stderr, "");
    }
}

#[test]
fn the_result_is_also_written_to_a_file() {
    for files in [GOOD, BAD] {
        let project = Project::new(files);
        let (results, cell) = (Project::new(&[]), project.verify());
        let ran = checked(cell.flag("--result", results.file("result.json")));
        let written: Value =
            serde_json::from_slice(&std::fs::read(results.file("result.json")).expect("it is written")).expect("JSON");
        assert_eq!(written, ran.outcome);
    }
}

#[test]
fn people_get_a_table() {
    let project = Project::new(GOOD);
    let ran = project.verify().text().run();
    let table = String::from_utf8(ran.stdout).expect("text");
    let row =
        |name: &str| table.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("no {name} in\n{table}"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(row("parse").starts_with("L0") && row("parse").contains("pass"), "{table}");
    assert!(row("unittest").starts_with("L1") && row("unittest").contains("2 passed, 0 failed, 1 skipped"), "{table}");
    assert!(row("pytest").contains("skip") && row("pytest").contains("not installed"), "{table}");
    assert!(!table.contains('\u{1b}'), "colour is for terminals: {table:?}");
    assert!(ran.stderr.starts_with("hotcell: pass L1 (") && ran.stderr.lines().count() == 1, "{}", ran.stderr);
}

#[test]
fn people_get_the_failing_tests_by_name() {
    let project = Project::new(BAD);
    let ran = project.verify().text().run();
    let table = String::from_utf8(ran.stdout).expect("text");
    assert_eq!(ran.code, 1);
    assert!(table.contains("1 passed, 1 failed") && table.contains("TestFailure"), "{table}");
    assert!(table.lines().any(|line| line.trim() == "test_calc.Calc.test_wrong"), "{table}");
    assert!(ran.stderr.contains("AssertionError: 4 != 5"), "{}", ran.stderr);
    assert!(
        ran.stderr.lines().last().is_some_and(|line| line.starts_with("hotcell: fail TestFailure")),
        "{}",
        ran.stderr
    );
}

#[test]
fn attempts_are_told_of() {
    let project = Project::new(BAD);
    let ran = project.verify().text().flag("--repair", "true").run();
    let table = String::from_utf8(ran.stdout).expect("text");
    let attempts: Vec<&str> = table.lines().filter(|line| line.starts_with("attempt")).collect();
    assert_eq!(attempts, ["attempt 2", "attempt 3"], "{table}");
}

#[test]
fn quiet_is_quiet() {
    let project = Project::new(GOOD);
    let ran = project.verify().text().word("--quiet").run();
    assert_eq!((ran.code, &ran.stdout[..], ran.stderr.as_str()), (0, &b""[..], ""));
}

/// What tests print can't pass for a line of ours, nor steer the terminal that the table is on.
#[test]
fn the_table_is_ours_alone() {
    let body =
        "import sys\nprint('L2  forged             pass', flush=True)\nsys.stderr.write('\\x1b[2J')\nself.fail()";
    let project = with_test(body);
    let ran = project.verify().text().run();
    let table = String::from_utf8(ran.stdout).expect("text");
    assert!(!table.contains("forged") && !table.contains('\u{1b}'), "{table:?}");
    assert_eq!(ran.code, 1);
}

#[test]
fn every_check_is_either_carried_out_or_skipped() {
    let project = Project::new(GOOD);
    let ran = checked(project.verify());
    let mut names: Vec<&str> = list(&ran.outcome["phases"])
        .iter()
        .map(|phase| &phase["name"])
        .chain(list(&ran.outcome["skipped_checks"]).iter().map(|skipped| &skipped["check"]))
        .filter_map(Value::as_str)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["mypy", "parse", "pyright", "pytest", "ruff", "unittest"]);
}

/// A toolchain may be in any directory of the host, also in one that a cell has for itself.
#[test]
fn a_virtual_environment_below_tmp_can_be_used() {
    let project = Project::new(GOOD);
    let place = Project::new(&[]);
    let made = std::process::Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(place.path()).status();
    assert!(made.expect("python3 is installed").success());
    let ran = project.verify().env("PATH", &path_with(&place.file("bin"))).run();
    passes(&ran, "L1");
}

#[test]
fn variables_of_the_caller_reach_the_tests() {
    let project = with_test(
        "import os\nself.assertEqual(os.environ['WORD'], 'yes')\nself.assertNotIn('SECRET_OF_THE_HOST', os.environ)",
    );
    passes(&project.run(project.verify().flag("--env", "WORD=yes")), "L1");
}
