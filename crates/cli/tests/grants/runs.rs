//! Runs under a lease: how many, how long, and how they are ended.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::desk::*;
use crate::harness::*;

fn id(lease: &Path) -> String {
    read(lease)["lease_id"].as_str().expect("a text").to_owned()
}

/// A run under this lease that says it is going.
#[track_caller]
fn start(desk: &Desk, lease: &Path, result: &Path, sleep: &str) -> Going {
    begin(desk, lease, result, sleep).unwrap_or_else(|ran| panic!("it never began: {}", ran.stderr))
}

fn begin(desk: &Desk, lease: &Path, result: &Path, sleep: &str) -> Result<Going, Ran> {
    let words = ["--lease", text(lease), "--result", text(result)];
    desk.begin(&words, &["sh", "-c", &format!("trap '' TERM; echo ready; sleep {sleep}; sleep {sleep}")])
}

/// A run under the last of these leases, which are for so short a time that it outlives them and long enough for it to begin.
#[track_caller]
fn outlive(leases: impl Fn(&Desk, &str) -> Option<Vec<PathBuf>>) -> (Desk, Vec<PathBuf>, Going, PathBuf, String) {
    let run = |limit: Duration| {
        let desk = Desk::new();
        let leases = leases(&desk, &in_ms(limit))?;
        let (sleep, result) = (unique_sleep(), desk.path("result"));
        let going = begin(&desk, leases.last()?, &result, &sleep).ok()?;
        Some((desk, leases, going, result, sleep))
    };
    with_time_enough(Duration::from_secs(5), run, Option::is_some).expect("it begins")
}

#[test]
fn as_many_as_it_says_and_no_more() {
    let desk = Desk::new();
    let lease = desk.issue(&["--runs", "7"], &["echo", "it ran"]);
    let callers: Vec<Going> = (0..20)
        .map(|_| {
            let mut command = desk.hotcell(&["exec", "--lease", text(&lease), "--", "echo", "it ran"]);
            Going { child: command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts") }
        })
        .collect();
    let ended: Vec<Ran> = callers.into_iter().map(Going::end).collect();
    let (ran, refused): (Vec<&Ran>, Vec<&Ran>) = ended.iter().partition(|ran| ran.code == 0);
    assert!(ran.iter().all(|ran| ran.stdout == "it ran\n"));
    refused.iter().for_each(|ran| ran.refused(&["used up"]));
    assert_eq!((ran.len(), refused.len()), (7, 13));
    assert_eq!(desk.events("lease_event.VERIFIED").len(), 7);
    assert_eq!(desk.events("lease_event.DENIED").len(), 13);
    assert_eq!(desk.records(&["--status", "denied"]).len(), 13);
    desk.is_whole();
    // Each of them has left its own things.
    let staged = desk.state().join("staging_runs").join(id(&lease));
    let dirs: Vec<_> = std::fs::read_dir(staged).expect("it is there").flatten().collect();
    assert_eq!(dirs.len(), 7);
    for dir in dirs {
        let mut names: Vec<_> = std::fs::read_dir(dir.path()).expect("ours").flatten().map(|e| e.file_name()).collect();
        names.sort();
        assert_eq!(names, ["exit_code.txt", "meta.json", "stderr.log", "stdout.log", "verification_result.json"]);
        assert_eq!(std::fs::read_to_string(dir.path().join("stdout.log")).expect("ours"), "it ran\n");
        assert_eq!(std::fs::read_to_string(dir.path().join("exit_code.txt")).expect("ours"), "0\n");
        assert_eq!(read(&dir.path().join("meta.json"))["lease_id"], id(&lease).as_str());
        assert_eq!(read(&dir.path().join("verification_result.json"))["status"], "pass");
    }
}

#[test]
fn a_copy_is_the_same_lease() {
    let desk = Desk::new();
    let lease = desk.issue(&[], &["true"]);
    let copy = desk.fresh();
    std::fs::copy(&lease, &copy).expect("ours");
    assert_eq!(desk.leased(&lease, &[], &["true"]).code, 0);
    desk.is_denied(&desk.leased(&copy, &[], &["true"]), "run_count_used_up", &["used up"]);
    let bare = desk.fresh();
    std::fs::write(&bare, std::fs::read_to_string(&lease).expect("ours").trim_end()).expect("ours");
    desk.is_denied(&desk.leased(&bare, &[], &["true"]), "run_count_used_up", &["used up"]);
}

#[test]
fn a_run_that_fails_is_a_run() {
    let desk = Desk::new();
    let lease = desk.issue(&[], &["false"]);
    assert_eq!(desk.leased(&lease, &[], &["false"]).code, 1);
    desk.is_denied(&desk.leased(&lease, &[], &["false"]), "run_count_used_up", &["used up"]);
}

#[track_caller]
fn is_ended(desk: &Desk, going: Going, result: &Path, sleep: &str) -> Value {
    assert_ne!(going.end().code, 0);
    wait_until("no process is left", || processes_with(sleep).is_empty());
    let outcome = read(result);
    assert_eq!(
        (&outcome["status"], &outcome["failure_class"]),
        (&"fail".into(), &"LeaseViolation".into()),
        "{outcome:#}"
    );
    assert_eq!(desk.records(&[]).iter().filter(|one| one["failure_class"] == "LeaseViolation").count(), 1);
    outcome
}

#[test]
fn revocation_ends_what_runs() {
    let desk = Desk::new();
    let (lease, other) = (desk.issue(&[], &["sh", "-c", "*"]), desk.issue(&[], &["sh", "-c", "*"]));
    let (sleep, result) = (unique_sleep(), desk.path("result"));
    let going = start(&desk, &lease, &result, &sleep);
    let mut spared = desk.start(&["--lease", text(&other)], &["sh", "-c", "echo ready; cat"]);
    let said = desk.done(&["lease", "revoke", &id(&lease), "--reason", "a drill", "--by", "me"]);
    assert_eq!(said, format!("{} is revoked; 1 running processes were told", id(&lease)));
    let outcome = is_ended(&desk, going, &result, &sleep);
    assert_eq!(outcome["terminal_event"], "Cancelled");
    assert!(outcome["message"].as_str().is_some_and(|m| m.contains("a drill") && m.contains("me")), "{outcome:#}");
    assert_eq!(desk.records(&["--status", "killed"]).len(), 1);
    spared.let_go();
    assert_eq!(spared.end().code, 0);
    desk.is_whole();
}

#[test]
fn a_child_ends_with_its_parent() {
    let desk = Desk::new();
    let (key, _, public) = desk.key("holder");
    let parent = desk.issue(&["--holder", &public, "--runs", "5"], &["sh", "-c", "*"]);
    let child = desk.delegate(&parent, &key, &["--runs", "2"]);
    let (sleep, result) = (unique_sleep(), desk.path("result"));
    let going = start(&desk, &child, &result, &sleep);
    desk.done(&["lease", "revoke", &id(&parent), "--reason", "a drill"]);
    is_ended(&desk, going, &result, &sleep);
    assert_eq!(desk.reason(&child), "revoked");
    // And not the other way round.
    let parent = desk.issue(&["--holder", &public, "--runs", "5"], &["echo", "it ran"]);
    let child = desk.delegate(&parent, &key, &["--runs", "2"]);
    // It was made elsewhere, and has not been used: whoever revokes it is told that he may have mistaken the id.
    let ran = desk.go(&["lease", "revoke", &id(&child), "--reason", "a drill"]);
    assert_eq!((ran.code, ran.stdout.contains("is it the right one")), (1, true), "{}", ran.stdout);
    desk.is_denied(&desk.leased(&child, &[], &["echo", "it ran"]), "revoked", &["a drill"]);
    assert_eq!(desk.leased(&parent, &[], &["echo", "it ran"]).stdout, "it ran\n");
}

#[test]
fn a_lease_that_expires_ends_what_runs() {
    let (desk, leases, going, result, sleep) =
        outlive(|desk, time| Some(vec![desk.issue(&["--for", time], &["sh", "-c", "*"])]));
    let lease = &leases[0];
    let outcome = is_ended(&desk, going, &result, &sleep);
    assert_eq!(outcome["terminal_event"], "TimeoutViolation");
    assert_eq!(outcome["message"], "the lease expired while the program ran");
    let told = desk.events("lease_event.EXPIRED");
    assert_eq!((told.len(), &told[0]["lease_id"]), (1, &id(lease).into()));
    assert_eq!(desk.reason(lease), "expired");
    // Its own time limit is a time limit.
    let lease = desk.issue(&["--timeout", "1s"], &["sleep", "60"]);
    assert_eq!(desk.leased(&lease, &[], &["sleep", "60"]).code, 124);
    assert_eq!(desk.newest()["failure_class"], "TimeoutViolation");
    assert_eq!(desk.events("lease_event.EXPIRED").len(), 1);
}

#[test]
fn a_violation_has_its_exit_status() {
    let desk = Desk::new();
    let run = |limit| {
        let lease = desk.issue(&["--for", &in_ms(limit)], &["sleep", "600"]);
        desk.leased(&lease, &[], &["sleep", "600"])
    };
    // One that has expired before it is used is refused.
    let ran = with_time_enough(Duration::from_secs(2), run, |ran| ran.code != 125);
    assert_eq!(ran.code, 123, "{}", ran.stderr);
}

#[test]
fn a_child_does_not_outlive_its_parent() {
    let (desk, leases, going, result, sleep) = outlive(|desk, time| {
        let (key, _, public) = desk.key("holder");
        let parent = desk.issue(&["--holder", &public, "--runs", "5", "--for", time], &["sh", "-c", "*"]);
        let child = desk.fresh();
        let words = ["lease", "delegate", text(&parent), "--key", text(&key), "--out", text(&child), "--runs", "1"];
        (desk.go(&words).code == 0).then_some(vec![parent, child])
    });
    is_ended(&desk, going, &result, &sleep);
    wait_until("it expires", || desk.reason(&leases[0]) == "expired");
    assert_eq!(desk.reason(&leases[1]), "expired");
}

const OWN: &str = r#"
name = "own"
extensions = ["own"]
entries = ["main.own"]
package = "bash"

[tools.bash]
version = ["--version"]

[[way]]
tools = ["bash"]
compile.argv = ["{bash}", "-c", "cp $0 /work/main", "{entry}"]
run.argv = ["{bash}", "/build/main"]
"#;

/// A file of the caller's own would say what a command does, and what of the host it sees.
#[test]
fn runtimes_and_images_of_the_callers_own_are_not_taken() {
    let desk = Desk::new();
    let lease = desk.issue(&["--runs", "9"], &["echo", "it ran"]);
    let (own, called) = (desk.path("runc"), desk.path("called"));
    write_program(&own, format!("#!/bin/sh\ntouch {}\necho runc version 1.4.1\n", called.display()), 0o755);
    desk.define("careful", "require_approval = true");
    for words in [["--lease", text(&lease)], ["--policy", "careful"]] {
        for flags in [["--runtime", text(&own)], ["--image", "/usr"]] {
            let ran = desk.go(&[&["exec"], &words[..], &flags[..], &["--", "echo", "it ran"]].concat());
            ran.refused(&["--image and --runtime PATH"]);
            assert!(!called.exists(), "{words:?} {flags:?}: it was executed");
        }
    }
    // The caller by himself may have it called.
    desk.go(&["exec", "--runtime", text(&own), "--", "echo", "it ran"]).refused(&["runtime"]);
    assert!(called.exists());
    let ran = desk.go(&["exec", "--lease", text(&lease), "--", "echo", "it ran"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "it ran\n"), "{}", ran.stderr);
}

#[test]
fn languages_of_the_callers_own_are_not_taken() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("languages")).expect("ours");
    desk.write("languages/own.toml", OWN);
    desk.write("work/main.own", "echo it ran");
    let lease = desk.issue(&[], &["hotcell run", "own", "**"]);
    let languages = desk.path("languages");
    let words = ["run", "--lease", text(&lease), "--languages", text(&languages), "--no-cache", "main.own"];
    desk.is_denied(&desk.go(&words), "command_not_allowed", &["of your own"]);
    // Without a lease the caller is the operator.
    assert_eq!(desk.go(&["run", "--languages", text(&languages), "--no-cache", "main.own"]).stdout, "it ran\n");
    // And what is built in is taken.
    desk.write("work/main.sh", "echo it ran too");
    let lease = desk.issue(&[], &["hotcell run", "bash", "main.sh"]);
    assert_eq!(desk.go(&["run", "--lease", text(&lease), "main.sh"]).stdout, "it ran too\n");
}

#[test]
fn the_kill_switch_ends_what_runs() {
    let desk = Desk::new();
    let lease = desk.issue(&["--runs", "2"], &["sh", "-c", "*"]);
    let (sleep, result) = (unique_sleep(), desk.path("result"));
    let going = start(&desk, &lease, &result, &sleep);
    desk.done(&["killswitch", "on", "--reason", "a drill"]);
    assert!(going.end().code >= 128);
    assert_eq!(read(&result)["terminal_event"], "KillSwitch");
    wait_until("no process is left", || processes_with(&sleep).is_empty());
    desk.leased(&lease, &[], &["sh", "-c", "echo it ran"]).refused(&["kill switch"]);
    desk.done(&["killswitch", "off"]);
    // What was refused was no run.
    assert_eq!(desk.leased(&lease, &[], &["sh", "-c", "echo it ran"]).stdout, "it ran\n");
}

#[test]
fn what_a_killed_run_used_stays_used() {
    let desk = Desk::new();
    let lease = desk.issue(&[], &["sh", "-c", "*"]);
    let (sleep, result) = (unique_sleep(), desk.path("result"));
    let mut going = start(&desk, &lease, &result, &sleep);
    going.child.kill().expect("it runs");
    going.end();
    wait_until("no process is left", || processes_with(&sleep).is_empty());
    desk.is_denied(&desk.leased(&lease, &[], &["sh", "-c", "true"]), "run_count_used_up", &[]);
    assert_eq!(desk.records(&["--status", "killed"]).len(), 1);
}

#[test]
fn limits_of_the_lease_are_those_of_the_run() {
    let desk = Desk::new();
    let flags = ["--memory", "64m", "--open-files", "32", "--timeout", "7s", "--cpus", "0.5", "--env", "NAME"];
    let lease = desk.issue(&flags, &["sh", "-c", "*"]);
    let outcome = desk.outcome(&lease, &["--env", "NAME=value"], &["sh", "-c", "ulimit -n; echo $NAME"]);
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"32\nvalue\n".into()), "{outcome:#}");
    let limits = &outcome["runtime_config"]["limits"];
    assert_eq!((&limits["memory_bytes"], &limits["cpus"]), (&(64u64 << 20).into(), &0.5.into()), "{outcome:#}");
    assert_eq!(limits["wall_ms"], 7000, "{outcome:#}");
}
