//! Generated tests, and the command of tier L2.

use crate::harness::Ran;
use crate::project::{Project, fails, list, passes, phase, reason};
use crate::python::{BAD, CALC, GOOD};

#[track_caller]
fn with(files: crate::project::Files<'_>, flags: &[&str]) -> Ran {
    let project = Project::new(files);
    let cell = flags.iter().fold(project.verify(), |cell, flag| cell.word(flag));
    project.run(cell)
}

#[test]
fn generated_tests_alone_need_a_human() {
    passes(&with(GOOD, &["--generated-tests"]), "AI_TESTS_ONLY");
}

#[test]
fn generated_tests_that_fail_or_are_not_there_are_l0() {
    fails(&with(BAD, &["--generated-tests"]), "TestFailure", "L0", "deterministic");
    passes(&with(&[("calc.py", CALC)], &["--generated-tests"]), "L0");
    fails(&with(&[("calc.py", "def (\n")], &["--generated-tests"]), "SyntaxError", "L0", "syntax");
}

#[test]
fn generated_tests_and_an_l2_that_fails() {
    fails(&with(GOOD, &["--generated-tests", "--l2", "exit 3"]), "TestFailure", "AI_TESTS_ONLY", "deterministic");
}

#[test]
fn l2_passes() {
    let ran = with(GOOD, &["--l2", "grep -q 'def add' /src/calc.py && cd /src && python3 -c 'import calc'"]);
    passes(&ran, "L2");
    assert_eq!(list(&ran.outcome["phases"]).last().expect("a check")["tier"], "L2");
    passes(&with(&[("calc.py", CALC)], &["--l2", "true"]), "L2");
    passes(&with(GOOD, &["--generated-tests", "--l2", "true"]), "L2");
}

#[test]
fn l2_fails() {
    let ran = with(GOOD, &["--l2", "echo it is broken >&2; exit 7"]);
    fails(&ran, "TestFailure", "L1", "deterministic");
    assert_eq!((ran.code, ran.outcome["exit_code"].as_i64()), (7, Some(7)));
    assert!(ran.outcome["stderr"].as_str().expect("text").contains("it is broken"));
}

#[test]
fn l2_waits_for_the_tiers_below() {
    for files in [BAD, &[("calc.py", "def (\n")]] {
        let ran = with(files, &["--l2", "true"]);
        assert_eq!(ran.outcome["tier"], "L0");
        assert!(reason(&ran, "L2").ends_with("failed"));
    }
}

#[test]
fn l2_runs_in_a_cell() {
    let project = Project::new(GOOD);
    let hidden = format!(
        "test ! -e {} && test ! -e /home && test ! -e /root/.cargo && test -z \"$SECRET_OF_THE_HOST\" && test $(hostname) = cell",
        project.path().display()
    );
    passes(&project.run(project.verify().flag("--l2", hidden)), "L2");
    let connect = "python3 -c 'import socket; socket.socket().connect_ex((\"192.0.2.1\", 80))'";
    let ran = with(GOOD, &["--l2", connect]);
    ran.violates("NetworkAccessViolation");
    fails(&ran, "NetworkAccessViolation", "L1", "policy");
    let ran = with(GOOD, &["--l2", "echo x > /src/calc.py; true"]);
    ran.violates("FilesystemWriteViolation");
    fails(&ran, "FilesystemWriteViolation", "L1", "policy");
    let ran = with(GOOD, &["--l2", "sleep 600", "--timeout", "5s"]);
    fails(&ran, "TimeoutViolation", "L1", "timeout");
    assert_eq!(ran.code, 124);
}

#[test]
fn an_l2_that_passes_sometimes_is_a_flake() {
    let coin = "test $(od -An -N1 -tu1 /dev/urandom) -lt 128";
    let ran = with(GOOD, &["--repeat", "20", "--l2", coin]);
    fails(&ran, "TestFailure", "L1", "flake");
    assert_eq!(phase(&ran, coin)["status"], "fail");
}
