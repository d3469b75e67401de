//! Up to three attempts with a repair command in between.

use std::time::Duration;

use serde_json::Value;

use crate::harness::{Ran, in_ms, with_time_enough};
use crate::project::{Project, checked, fails, is_complete, passes, verify};
use crate::python::{BAD, CALC, GOOD, TESTS, WRONG, with_test};

/// A place for what the repair command is told, and commands that write it there.
struct Log {
    place: Project,
}

impl Log {
    fn new() -> Log {
        Log { place: Project::new(&[("good_test.py", TESTS), ("good.py", CALC)]) }
    }

    /// Keeps its input as 1.json, 2.json and so on, then does something else.
    fn and(&self, then: &str) -> String {
        let dir = self.place.path().display();
        format!("n=1; while test -e {dir}/$n.json; do n=$((n+1)); done; cat > {dir}/$n.json; {then}")
    }

    fn told(&self) -> Vec<Value> {
        let read = |n: u32| std::fs::read(self.place.file(&format!("{n}.json"))).ok();
        (1..).map_while(read).map(|text| serde_json::from_slice(&text).expect("the repair command gets JSON")).collect()
    }

    fn mends(&self, project: &Project) -> String {
        let from = [self.place.name("good_test.py"), self.place.name("good.py")];
        self.and(&format!(
            "cp {} {}; cp {} {}",
            from[0],
            project.name("test_calc.py"),
            from[1],
            project.name("calc.py")
        ))
    }
}

#[test]
fn what_is_mended_passes_at_the_second_attempt() {
    let (project, log) = (Project::new(BAD), Log::new());
    let ran = checked(project.verify().flag("--repair", log.mends(&project)).flag("--request-id", "mine"));
    passes(&ran, "L1");
    assert_eq!((&ran.outcome["attempt"], &ran.outcome["request_id"]), (&2.into(), &"mine".into()));
    let told = log.told();
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["attempt"], &told[0]["failure_class"]), (&1.into(), &"TestFailure".into()));
    assert_eq!(told[0]["request_id"], "mine");
    let names = told[0]["phases"].to_string();
    assert!(names.contains("test_calc.Calc.test_wrong"), "{names}");
}

#[test]
fn a_syntax_error_is_mended_too() {
    let (project, log) = (Project::new(&[("calc.py", "def (\n"), ("test_calc.py", TESTS)]), Log::new());
    let ran = checked(project.verify().flag("--repair", log.mends(&project)));
    passes(&ran, "L1");
    assert_eq!(ran.outcome["attempt"], 2);
    assert_eq!(log.told()[0]["retry_class"], "syntax");
}

#[test]
fn a_file_by_itself_is_read_again() {
    let (project, log) = (Project::new(BAD), Log::new());
    let cell = verify(&project.file("calc.py")).flag("--tests", project.file("test_calc.py"));
    let ran = checked(cell.flag("--repair", log.mends(&project)));
    passes(&ran, "L1");
    assert_eq!(ran.outcome["attempt"], 2);
}

#[test]
fn the_third_failure_is_the_last() {
    let (project, log) = (Project::new(BAD), Log::new());
    let ran = project.run(project.verify().flag("--repair", log.and("true")));
    fails(&ran, "TestFailure", "L0", "deterministic");
    assert_eq!((ran.terminal(), ran.code), ("MaxRetriesExceeded", 1));
    assert_eq!(ran.outcome["attempt"], 3);
    let attempts: Vec<Value> = log.told().iter().map(|told| told["attempt"].clone()).collect();
    assert_eq!(attempts, [1, 2]);
    assert!(log.told().iter().all(|told| told["terminal_event"].is_null()));
}

#[test]
fn without_a_repair_command_there_is_one_attempt() {
    let project = Project::new(BAD);
    let ran = project.run(project.verify());
    assert_eq!((&ran.outcome["attempt"], ran.terminal()), (&1.into(), "none"));
}

#[test]
fn a_repair_may_be_of_one_thing_after_another() {
    let (project, log) = (Project::new(&[("calc.py", "def (\n"), ("test_calc.py", WRONG)]), Log::new());
    // First what does not parse, then what does not pass.
    let (calc, test) = (log.place.name("good.py"), log.place.name("good_test.py"));
    let step = format!(
        "if grep -q 'def ($' {0}; then cp {calc} {0}; else cp {test} {1}; fi",
        project.name("calc.py"),
        project.name("test_calc.py")
    );
    let ran = checked(project.verify().flag("--repair", log.and(&step)));
    passes(&ran, "L1");
    assert_eq!(ran.outcome["attempt"], 3);
    let classes: Vec<Value> = log.told().iter().map(|told| told["failure_class"].clone()).collect();
    assert_eq!(classes, ["SyntaxError", "TestFailure"]);
}

#[test]
fn a_pass_is_not_repaired() {
    let (project, log) = (Project::new(GOOD), Log::new());
    passes(&project.run(project.verify().flag("--repair", log.and("true"))), "L1");
    assert!(log.told().is_empty());
}

#[test]
fn timeouts_violations_and_flakes_are_not_repaired() {
    let network = "import socket\nsocket.socket().connect_ex(('192.0.2.1', 80))";
    let coin = "import os\nself.assertLess(os.urandom(1)[0], 128)";
    for (body, flags, retry) in [
        ("import time\ntime.sleep(600)", ["--timeout", "5s"], "timeout"),
        ("import time\ntime.sleep(600)", ["--budget", "5s"], "timeout"),
        (network, ["--timeout", "45s"], "policy"),
        (coin, ["--repeat", "20"], "flake"),
    ] {
        let (project, log) = (with_test(body), Log::new());
        let ran = project.run(project.verify().flag(flags[0], flags[1]).flag("--repair", log.and("true")));
        assert_eq!((&ran.outcome["retry_class"], &ran.outcome["attempt"]), (&retry.into(), &1.into()));
        assert_ne!(ran.terminal(), "MaxRetriesExceeded");
        assert!(log.told().is_empty(), "{retry} was repaired");
    }
}

/// With a limit that leaves time for the first attempt.
#[track_caller]
fn repaired_to_run_forever(flag: &str, first: Duration) -> Ran {
    let run = |limit| {
        let (project, log) = (Project::new(BAD), Log::new());
        let forever = format!("printf 'while True:\\n    pass\\n' > {}", project.name("test_calc.py"));
        checked(project.verify().flag(flag, in_ms(limit)).flag("--repair", log.and(&forever)))
    };
    with_time_enough(first, run, |ran| ran.outcome["attempt"] == 2)
}

#[test]
fn a_repair_that_makes_it_worse_is_judged_by_that() {
    let ran = repaired_to_run_forever("--timeout", Duration::from_secs(5));
    fails(&ran, "TimeoutViolation", "L0", "timeout");
    assert_eq!((&ran.outcome["attempt"], ran.terminal()), (&2.into(), "TimeoutViolation"));
}

#[test]
fn the_budget_is_over_all_attempts() {
    let ran = repaired_to_run_forever("--budget", Duration::from_secs(8));
    assert_eq!((&ran.outcome["attempt"], ran.terminal(), ran.code), (&2.into(), "BudgetExceeded", 124));
}

#[test]
fn a_repair_command_that_fails_is_told_in_a_sentence() {
    let project = Project::new(BAD);
    for (command, part) in [("exit 3", "exit status: 3"), ("kill -9 $$", "signal: 9"), ("no-such-command-here", "127")]
    {
        let ran = project.verify().flag("--repair", command).run();
        assert_eq!(ran.code, 125, "{}", ran.stderr);
        assert!(ran.stderr.contains(part) && ran.stderr.contains("repair command"), "{}", ran.stderr);
        // What was found out before is not lost.
        assert_eq!((ran.class(), &ran.outcome["attempt"]), ("TestFailure", &1.into()), "{}", ran.outcome);
        assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("hotcell:")).count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn a_repair_that_takes_the_sources_away_is_told_in_a_sentence() {
    let project = Project::new(BAD);
    let cell = verify(&project.file("calc.py")).flag("--tests", project.file("test_calc.py"));
    let ran = cell.flag("--repair", format!("rm {}", project.name("calc.py"))).run();
    ran.refused("calc.py");
    let project = Project::new(BAD);
    project.verify().flag("--repair", format!("rm -r {}", project.path().display())).run().refused("hotcell-project");
}

#[test]
fn what_the_repair_command_says_is_not_in_the_json() {
    let (project, log) = (Project::new(BAD), Log::new());
    let ran = checked(project.verify().flag("--repair", log.and("echo said on stdout; echo said on stderr >&2")));
    assert!(ran.stderr.contains("said on stdout") && ran.stderr.contains("said on stderr"), "{}", ran.stderr);
}

/// It need not read what it gets, however long that is.
#[test]
fn a_repair_command_that_does_not_listen() {
    let body = "import sys\nsys.stderr.write('x' * 1000000)\nself.fail()";
    let project = with_test(body);
    let ran = project.verify().flag("--repair", "exec <&-; true").run();
    is_complete(&ran);
    assert_eq!(ran.terminal(), "MaxRetriesExceeded");
}
