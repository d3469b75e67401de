//! Which toolchain runs what somebody else has allowed: one of the system, and none that the caller's PATH leads to.

use std::process::Command;

use crate::desk::*;
use crate::harness::*;

/// Says its words, whatever it is called.
const PROGRAM: &str = "/usr/bin/echo";

/// A `python3` of the caller's own, first on his PATH.
fn with_own_tool(desk: &Desk, words: &[&str]) -> Command {
    let dir = desk.path("own/bin");
    std::fs::create_dir_all(&dir).expect("ours");
    copy_program(PROGRAM, dir.join("python3"));
    let mut command = desk.hotcell(words);
    command.env("PATH", format!("{}:{}", text(&dir), std::env::var("PATH").unwrap_or_default()));
    command
}

fn source(desk: &Desk) {
    std::fs::write(desk.path("work/main.py"), "print('real')").expect("ours");
}

#[test]
fn under_a_lease_the_callers_path_counts_for_nothing() {
    let desk = Desk::new();
    source(&desk);
    let lease = desk.issue(&["--runs", "9"], &["hotcell run", "python", "main.py"]);
    let ran = go(&mut with_own_tool(&desk, &["run", "--lease", text(&lease), "main.py"]));
    assert_eq!((ran.stdout.as_str(), ran.code), ("real\n", 0), "{}", ran.stderr);
    // Without a lease the caller is the operator, and his tool is what he has asked for.
    let ran = go(&mut with_own_tool(&desk, &["run", "main.py"]));
    assert!(ran.stdout.contains("/src/main.py"), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn what_was_approved_runs_with_the_tool_that_everybody_has() {
    let desk = Desk::new();
    source(&desk);
    desk.define("careful", "require_approval = true");
    let words = ["run", "--policy", "careful", "main.py"];
    let asked = go(&mut with_own_tool(&desk, &words));
    asked.refused(&["asks for an approval"]);
    let all = desk.go(&["approve", "list", "--output", "json"]).json();
    let id = all[0]["approval_id"].as_str().expect("an id").to_owned();
    desk.go(&["approve", "grant", &id, "--by", "alice"]);
    let ran = go(&mut with_own_tool(&desk, &words));
    assert_eq!((ran.stdout.as_str(), ran.code), ("real\n", 0), "{}", ran.stderr);
}

#[test]
fn a_capsule_of_the_policys_is_run_by_a_real_python() {
    let desk = Desk::new();
    source(&desk);
    let ran = go(&mut with_own_tool(&desk, &["run", "--policy", "yellow_lane", "main.py"]));
    assert_eq!((ran.stdout.as_str(), ran.code), ("real\n", 0), "{}", ran.stderr);
    // A policy that says nothing of it leaves the choice to the caller.
    let ran = go(&mut with_own_tool(&desk, &["run", "--policy", "balanced", "main.py"]));
    assert!(ran.stdout.contains("/src/main.py"), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn under_a_lease_nothing_comes_from_the_callers_cache() {
    let desk = Desk::new();
    std::fs::write(desk.path("work/main.c"), "#include <stdio.h>\nint main(void) { puts(\"real\"); }\n").expect("ours");
    let lease = desk.issue(&["--runs", "9"], &["hotcell run", "c", "main.c"]);
    let cache = desk.path("cache");
    let is_cached = |words: &[&str]| {
        let words = [&["run", "--output", "json"], words, &["main.c"]].concat();
        let outcome = go(desk.hotcell(&words).env("HOTCELL_CACHE", &cache)).json();
        assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"real\n".into()), "{outcome:#}");
        outcome["phases"][0]["cached"] == true
    };
    let leased = ["--lease", text(&lease)];
    assert!(![is_cached(&leased), is_cached(&leased)].contains(&true));
    assert!(!cache.exists(), "something was kept");
    // For himself he may keep what he likes.
    assert_eq!([is_cached(&[]), is_cached(&[])], [false, true]);
    assert!(!is_cached(&leased));
}
