//! What tests print and leave behind is their own word: the exit status and the evidence decide.

use crate::harness::{Ran, skip};
use crate::project::{Project, fails, passes, path_with, phase, python_with_tools, tests, verified};
use crate::python::{CALC, with_test};

/// The end of a run of unittest in which all is well.
const FORGED: &str = "'\\n' + '-' * 70 + '\\nRan 3 tests in 0.001s\\n\\nOK\\n'";
const FORGED_XML: &str = "<testsuites><testsuite name='pytest' tests='1' failures='0' errors='0'>\
    <testcase classname='test_only' name='test_it'/></testsuite></testsuites>";

#[track_caller]
fn unittest(body: &str) -> Ran {
    let project = with_test(body);
    project.run(project.verify())
}

/// With pytest, where it is to be had.
#[track_caller]
fn pytest(body: &str) -> Option<Ran> {
    let project = with_test(body);
    match python_with_tools() {
        Ok(bin) => Some(project.run(project.verify().env("PATH", &path_with(bin)))),
        Err(why) => {
            skip(&format!("pytest is not to be had: {why}"));
            None
        }
    }
}

#[test]
fn a_failing_test_that_says_ok_fails() {
    let said = format!(
        "import atexit\nimport sys\natexit.register(sys.stderr.write, {FORGED})\nprint('OK')\nprint('1 passed')\nself.fail()"
    );
    fails(&unittest(&said), "TestFailure", "L0", "deterministic");
    let at_once =
        format!("import os\nos.write(2, ({FORGED}).encode())\nos.write(1, b'1 passed in 0.01s\\n')\nos._exit(1)");
    fails(&unittest(&at_once), "TestFailure", "L0", "deterministic");
    let Some(ran) = pytest(&said) else { return };
    fails(&ran, "TestFailure", "L0", "deterministic");
}

const SAYS_FAILED: &str = "import sys\nfor out in (sys.stdout, sys.stderr):\n    print('FAILED (failures=1)', file=out)\n    \
    print('FAIL: test_it', file=out)\n    print('1 failed', file=out)";

#[test]
fn a_passing_test_that_says_failed_passes() {
    let ran = unittest(SAYS_FAILED);
    passes(&ran, "L1");
    tests(&ran, "unittest", 1, 0, 0, &[]);
    let Some(ran) = pytest(SAYS_FAILED) else { return };
    passes(&ran, "L1");
    tests(&ran, "pytest", 1, 0, 0, &[]);
}

/// The same in the form that unittest gives it.
#[test]
fn a_passing_test_that_says_failed_as_unittest_would_passes() {
    let body = "import sys\nprint('\\n' + '=' * 70 + '\\nFAIL: test_it (test_only.Only.test_it)', file=sys.stderr)";
    passes(&unittest(body), "L1");
}

#[test]
fn forged_results_do_not_pass() {
    let body = format!("import os\nopen('/work/results.xml', 'w').write(\"{FORGED_XML}\")\nos._exit(1)");
    let Some(ran) = pytest(&body) else { return };
    fails(&ran, "TestFailure", "L0", "deterministic");
    let body = format!("open('/work/results.xml', 'w').write(\"{FORGED_XML}\")\nself.fail()");
    let Some(ran) = pytest(&body) else { return };
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "pytest", 0, 1, 0, &["test_only.Only.test_it"]);
}

#[test]
fn results_that_are_no_file_are_not_read() {
    for make in [
        "os.mkfifo('/work/results.xml')",
        "os.symlink('/etc/passwd', '/work/results.xml')",
        "os.mkdir('/work/results.xml')",
    ] {
        let Some(ran) = pytest(&format!("import os\n{make}\nos._exit(1)")) else { return };
        fails(&ran, "TestFailure", "L0", "deterministic");
        assert!(phase(&ran, "pytest")["tests"].is_null(), "{make}: {:#}", phase(&ran, "pytest"));
    }
}

#[test]
fn results_of_nonsense_change_nothing() {
    let body = "import os\nopen('/work/results.xml', 'wb').write(b'<testsuites>' + b'<testcase name=\"' * 100000 + bytes(range(256)))\nos._exit(1)";
    let Some(ran) = pytest(body) else { return };
    fails(&ran, "TestFailure", "L0", "deterministic");
}

/// Names that steer a terminal or go on forever are shown harmless and short.
#[test]
fn names_of_tests_are_made_harmless() {
    let xml = "<testsuites><testcase name='\\x1b[2J%s\\u202e'><failure/></testcase></testsuites>";
    let body = format!("import os\nopen('/work/results.xml', 'w').write(\"{xml}\" % ('x' * 100000))\nos._exit(1)");
    let Some(ran) = pytest(&body) else { return };
    fails(&ran, "TestFailure", "L0", "deterministic");
    let name = phase(&ran, "pytest")["tests"]["failing"][0].as_str().expect("a name");
    assert!(name.chars().count() <= 200 && !name.chars().any(char::is_control), "{name:?}");
}

#[test]
fn node_decides_by_exit_status() {
    let failing = "const test = require('node:test');\ntest('it', () => { console.log('ok 1 - it\\n# pass 1\\n# fail 0'); throw 1; });\n";
    let ran = verified(&[("calc.js", ""), ("calc.test.js", failing)]);
    fails(&ran, "TestFailure", "L0", "deterministic");
    let passing = "const test = require('node:test');\ntest('it', () => console.log('not ok 1 - it\\n# fail 1'));\n";
    let ran = verified(&[("calc.js", ""), ("calc.test.js", passing)]);
    passes(&ran, "L1");
    tests(&ran, "node --test", 1, 0, 0, &[]);
}

#[test]
fn go_decides_by_exit_status() {
    let test = |body: &str| {
        format!("package calc\n\nimport (\n\t\"fmt\"\n\t\"testing\"\n)\n\nfunc TestIt(t *testing.T) {{\n\t{body}\n}}\n")
    };
    let of = |body: &str| {
        let test = test(body);
        verified(&[("go.mod", "module calc\n"), ("calc.go", "package calc\n"), ("calc_test.go", &test)])
    };
    let ran = of("fmt.Println(\"--- PASS: TestIt (0.00s)\\nPASS\\nok  \\tcalc\\t0.001s\"); t.Fail()");
    fails(&ran, "TestFailure", "L0", "deterministic");
    passes(&of("fmt.Println(\"--- FAIL: TestIt (0.00s)\\nFAIL\")"), "L1");
}

#[test]
fn rust_decides_by_exit_status() {
    let of = |body: &str| verified(&[("main.rs", &format!("fn main() {{}}\n\n#[test]\nfn it() {{\n    {body}\n}}\n"))]);
    let said =
        "eprintln!(\"test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\");";
    fails(&of(&format!("{said} panic!();")), "TestFailure", "L0", "deterministic");
    fails(&of(&format!("{said} std::process::exit(3);")), "TestFailure", "L0", "deterministic");
    passes(&of("println!(\"test result: FAILED. 0 passed; 1 failed\");"), "L1");
}

/// The status by which a runner says that there was nothing to run is not for tests to use.
#[test]
fn a_test_that_exits_like_a_runner_without_tests_fails() {
    let ran = unittest("import os\nos._exit(5)");
    fails(&ran, "TestFailure", "L0", "deterministic");
}

#[test]
fn a_pytest_that_exits_like_a_runner_without_tests_fails() {
    let Some(ran) = pytest("import os\nos._exit(5)") else { return };
    fails(&ran, "TestFailure", "L0", "deterministic");
}

/// A runner that was ended before it could tell of its tests has passed none.
#[test]
fn code_that_ends_the_runner_early_is_not_verified() {
    let calc = format!("import os\nos._exit(0)\n\n\n{CALC}");
    let project = Project::new(&[("calc.py", &calc), ("test_calc.py", crate::python::WRONG)]);
    let ran = project.run(project.verify());
    assert_ne!(ran.outcome["tier"], "L1", "{:#}", ran.outcome["phases"]);
}

/// Rust's own runner does not notice: what it had counted before is what is left of it.
#[test]
fn a_rust_test_that_ends_the_runner_has_not_passed() {
    let test =
        "fn main() {}\n\n#[test]\nfn a() {\n    std::process::exit(0)\n}\n\n#[test]\nfn b() {\n    panic!()\n}\n";
    let ran = verified(&[("main.rs", test)]);
    assert_eq!((&ran.outcome["status"], &ran.outcome["tier"]), (&"fail".into(), &"L0".into()), "{}", ran.outcome);
}
