//! One budget over all checks, a timeout for each, and tests that can't decide. What must not end in time sleeps far
//! longer than any test may take, so that nothing here depends on speed.

use std::time::Duration;

use crate::harness::{Ran, in_ms, send, with_time_enough};
use crate::project::{Project, checked, fails, list, passes, phase, reason, tests, verify};
use crate::python::{CALC, GOOD, TESTS, with_test};

/// A language whose checks do nothing but take their time.
fn slow(checks: &[(&str, &str, &str)]) -> Project {
    let mut language = "name = \"slow\"\nextensions = [\"slow\"]\npackage = \"dash\"\n\n[tools.sh]\n\n[[way]]\n\
        tools = [\"sh\"]\nrun.argv = [\"{sh}\", \"{entry}\"]\n"
        .to_owned();
    for (name, tier, script) in checks {
        language += &format!(
            "\n[[check]]\nname = \"{name}\"\ntier = \"{tier}\"\ntools = [\"sh\"]\nargv = [\"{{sh}}\", \"-c\", '{script}']\n"
        );
    }
    Project::new(&[("a.slow", ""), ("languages/slow.toml", &language)])
}

#[track_caller]
fn run(project: &Project, flags: &[&str]) -> Ran {
    let cell = verify(&project.file("a.slow")).flag("--languages", project.file("languages"));
    project.run(flags.iter().fold(cell, |cell, flag| cell.word(flag)))
}

#[track_caller]
fn is_over_budget(ran: &Ran) {
    assert_eq!(ran.terminal(), "BudgetExceeded", "{:#}", ran.outcome);
    assert_eq!((ran.class(), ran.code), ("TimeoutViolation", 124), "{:#}", ran.outcome);
    assert_eq!(ran.outcome["status"], "fail");
    assert_eq!(ran.outcome["retry_class"], "timeout");
    assert!(ran.outcome["message"].as_str().is_some_and(|said| said.contains("budget")), "{:#}", ran.outcome);
}

#[test]
fn checks_that_the_budget_does_not_reach_are_listed() {
    let project = slow(&[
        ("quick", "L0", "exit 0"),
        ("slow", "L0", "sleep 600"),
        ("next", "L0", "exit 0"),
        ("last", "L1", "exit 0"),
    ]);
    let ran = with_time_enough(
        Duration::from_secs(2),
        |limit| run(&project, &["--budget", &in_ms(limit), "--l2", "true"]),
        |ran| list(&ran.outcome["phases"]).len() > 1,
    );
    is_over_budget(&ran);
    assert_eq!(ran.outcome["tier"], "L0");
    assert_eq!(phase(&ran, "quick")["status"], "pass");
    assert_eq!(phase(&ran, "slow")["failure_class"], "TimeoutViolation");
    assert!(reason(&ran, "next").contains("budget"));
    assert!(!reason(&ran, "last").is_empty() && !reason(&ran, "L2").is_empty());
    assert_eq!(list(&ran.outcome["phases"]).len(), 2);
}

#[test]
fn tests_that_sleep_through_the_budget() {
    let project = with_test("import time\ntime.sleep(600)");
    let ran = project.run(project.verify().flag("--budget", "6s").flag("--l2", "true"));
    is_over_budget(&ran);
    assert_eq!(phase(&ran, "parse")["status"], "pass");
    assert_eq!(phase(&ran, "unittest")["failure_class"], "TimeoutViolation");
    assert!(!reason(&ran, "L2").is_empty());
}

#[test]
fn the_budget_counts_more_than_the_timeout() {
    let project = slow(&[("slow", "L0", "sleep 600")]);
    is_over_budget(&run(&project, &["--budget", "1s", "--timeout", "10m"]));
}

/// Several that stay below the timeout share the budget.
#[test]
fn what_one_check_takes_the_next_one_lacks() {
    let checks: Vec<String> = (0..40).map(|n| format!("check {n}")).collect();
    let checks: Vec<(&str, &str, &str)> = checks.iter().map(|name| (name.as_str(), "L0", "sleep 1")).collect();
    let ran = run(&slow(&checks), &["--budget", "3s"]);
    is_over_budget(&ran);
    let (done, skipped) = (list(&ran.outcome["phases"]).len(), list(&ran.outcome["skipped_checks"]));
    assert!(done <= 3, "{done} checks of a second each in 3 seconds");
    let left = skipped.iter().filter(|s| s["reason"].as_str().is_some_and(|why| why.contains("budget"))).count();
    assert_eq!(done + left, checks.len());
}

/// The first failure gives the class, and there is still no time for another attempt.
#[test]
fn without_time_there_is_no_other_attempt() {
    let project = slow(&[("bad", "L0", "exit 1"), ("slow", "L0", "sleep 600"), ("next", "L0", "exit 0")]);
    let ran = with_time_enough(
        Duration::from_secs(2),
        |limit| {
            let cell = verify(&project.file("a.slow")).flag("--languages", project.file("languages"));
            cell.flag("--budget", in_ms(limit)).flag("--repair", "true").run()
        },
        |ran| list(&ran.outcome["phases"]).len() > 1,
    );
    assert_eq!(ran.terminal(), "BudgetExceeded", "{}\n{:#}", ran.stderr, ran.outcome);
    assert_eq!((ran.class(), &ran.outcome["attempt"]), ("CompileError", &1.into()));
}

#[test]
fn no_budget_is_no_pass() {
    let project = Project::new(GOOD);
    let ran = project.verify().flag("--budget", "0s").run();
    assert_ne!(ran.code, 0, "{}", ran.outcome);
    if ran.outcome.is_object() {
        is_over_budget(&ran);
    } else {
        ran.refused("budget");
    }
}

#[test]
fn a_timeout_is_for_one_check() {
    let project = slow(&[("slow", "L0", "sleep 600"), ("next", "L0", "exit 0"), ("last", "L1", "exit 0")]);
    let ran = run(&project, &["--timeout", "2s"]);
    fails(&ran, "TimeoutViolation", "L0", "timeout");
    assert_eq!((ran.terminal(), ran.code), ("TimeoutViolation", 124));
    assert_eq!(phase(&ran, "next")["status"], "pass");
    assert_eq!(reason(&ran, "last"), "L0 failed");
}

const COIN: &str = "import os\nself.assertLess(os.urandom(1)[0], 128)";

/// Twenty coins of one kind come once in half a million times.
#[test]
fn a_test_that_passes_sometimes_is_a_flake() {
    let project = with_test(COIN);
    let ran = project.run(project.verify().flag("--repeat", "20"));
    fails(&ran, "TestFailure", "L0", "flake");
    let said = ran.outcome["message"].as_str().expect("a message");
    let passed = (1..20).find(|n| said.contains(&format!("pass {n} times of 20")));
    assert!(passed.is_some(), "{said}");
    tests(&ran, "unittest", 0, 1, 0, &["test_only.Only.test_it"]);
}

#[test]
fn what_always_fails_or_always_passes_is_no_flake() {
    let project = with_test("self.fail()");
    let ran = project.run(project.verify().flag("--repeat", "3"));
    fails(&ran, "TestFailure", "L0", "deterministic");
    let project = Project::new(GOOD);
    let ran = project.run(project.verify().flag("--repeat", "3"));
    passes(&ran, "L1");
    tests(&ran, "unittest", 2, 0, 1, &[]);
}

#[test]
fn how_often_has_bounds() {
    let project = Project::new(GOOD);
    for times in ["0", "101", "-1", "many"] {
        project.verify().word(&format!("--repeat={times}")).run().refused("repeat");
    }
}

#[test]
fn a_violation_that_happens_sometimes_is_that_violation() {
    let body = "import os\nimport socket\nif os.urandom(1)[0] < 128:\n    try:\n        \
        socket.create_connection(('192.0.2.1', 80), 1)\n    except OSError:\n        pass";
    let project = with_test(body);
    let ran = project.run(project.verify().flag("--repeat", "20"));
    ran.violates("NetworkAccessViolation");
}

/// Half of the runs use the network, all of them fail.
#[test]
fn a_violation_behind_a_failure_is_not_lost() {
    let body = "import os\nimport socket\nif os.urandom(1)[0] < 128:\n    try:\n        \
        socket.create_connection(('192.0.2.1', 80), 1)\n    except OSError:\n        pass\nself.fail()";
    let project = with_test(body);
    let ran = project.run(project.verify().flag("--repeat", "20"));
    ran.violates("NetworkAccessViolation");
}

/// Tests that pass until the time is up have not shown that they pass only sometimes.
#[test]
fn a_budget_that_ends_between_repeats_is_no_flake() {
    let project = with_test("import time\ntime.sleep(1)");
    let ran = project.run(project.verify().flag("--repeat", "100").flag("--budget", "8s"));
    is_over_budget(&ran);
}

#[test]
fn a_caller_who_calls_it_off_is_obeyed() {
    let project = Project::new(&[("calc.py", CALC), ("test_calc.py", TESTS), ("test_slow.py", SLEEPS)]);
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let going = project.verify().flag("--l2", "true").start();
        going.wait_for_name("sleep");
        send(going.child.id(), signal);
        let ran = going.finish();
        assert_eq!((ran.terminal(), ran.code), ("Cancelled", code), "{}\n{:#}", ran.stderr, ran.outcome);
        assert!(!reason(&ran, "L2").is_empty());
    }
}

/// Who interrupts does not ask for a repair.
#[test]
fn what_was_called_off_is_not_repaired() {
    let marker = Project::new(&[]);
    let project = Project::new(&[("calc.py", CALC), ("test_slow.py", SLEEPS)]);
    let repair = format!("touch {}", marker.name("called"));
    let going = project.verify().flag("--repair", repair).flag("--timeout", "20s").start();
    going.wait_for_name("sleep");
    send(going.child.id(), "INT");
    let ran = going.finish();
    assert!(!marker.file("called").exists(), "{:#}", ran.outcome);
    assert_eq!((ran.terminal(), ran.code), ("Cancelled", 130), "{}\n{:#}", ran.stderr, ran.outcome);
    assert_eq!(ran.outcome["attempt"], 1);
}

#[test]
fn nothing_follows_a_check_that_was_called_off() {
    let project = slow(&[("slow", "L0", "sleep 600"), ("next", "L0", "exit 0"), ("last", "L0", "exit 0")]);
    let going = verify(&project.file("a.slow")).flag("--languages", project.file("languages")).start();
    going.wait_for_name("sleep");
    send(going.child.id(), "INT");
    let ran = going.finish();
    assert_eq!((ran.terminal(), ran.code), ("Cancelled", 130), "{}\n{:#}", ran.stderr, ran.outcome);
    assert!(!reason(&ran, "next").is_empty() && !reason(&ran, "last").is_empty());
}

const SLEEPS: &str = r#"import subprocess
import unittest


class Slow(unittest.TestCase):
    def test_sleeps(self) -> None:
        subprocess.run(["sleep", "600"], check=True)
"#;

#[test]
fn a_file_is_held_to_the_budget_too() {
    let project = with_test("import time\ntime.sleep(600)");
    let cell = verify(&project.file("calc.py")).flag("--tests", project.file("test_only.py"));
    is_over_budget(&checked(cell.flag("--budget", "6s")));
}
