//! Intents: proposed by one, looked at by another, and what a lease may be issued for.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::desk::*;
use crate::harness::*;

#[track_caller]
fn propose(desk: &Desk) -> String {
    let words = ["intent", "propose", "--goal", "a change", "--rollback-plan", "take it back", "--by", "alice"];
    let words = [&words[..], &["--path", "repo://w/**", "--risk", "low", "--", "sh", "-c", "*"]].concat();
    desk.done(&words)
}

fn review(desk: &Desk, id: &str, yes: bool, by: &str) -> Ran {
    desk.go(&["intent", "review", id, if yes { "--approve" } else { "--reject" }, "--by", by])
}

#[track_caller]
fn status(desk: &Desk, id: &str) -> String {
    let intent: Value = serde_json::from_str(&desk.done(&["intent", "show", id, "--output", "json"])).expect("JSON");
    intent["status"].as_str().expect("a text").to_owned()
}

#[track_caller]
fn approved(desk: &Desk) -> String {
    let id = propose(desk);
    assert_eq!(review(desk, &id, true, "bob").code, 0);
    id
}

fn issue(desk: &Desk, flags: &[&str], command: &[&str]) -> (Ran, PathBuf) {
    let path = desk.fresh();
    let words = [&["lease", "issue", "--actor", "x", "--out", text(&path)], flags, &["--"], command].concat();
    (desk.go(&words), path)
}

const SCOPE: [&str; 4] = ["--allow", "repo://w/**", "--write", "repo://w"];

#[test]
fn from_the_proposal_to_the_end() {
    let desk = Desk::new();
    let id = propose(&desk);
    assert_eq!(status(&desk, &id), "proposed");
    assert_eq!(review(&desk, &id, true, "bob").code, 0);
    assert_eq!(status(&desk, &id), "approved");
    let (ran, lease) = issue(&desk, &[&SCOPE[..], &["--intent", &id]].concat(), &TRACE);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(desk.leased(&lease, &[], &TRACE).code, 0);
    assert_eq!(status(&desk, &id), "implemented");
    desk.done(&["rollback", &desk.run_id()]);
    assert_eq!(status(&desk, &id), "rolled_back");
    assert!(!desk.repo("w/trace").exists());
    let list = desk.done(&["intent", "list"]);
    assert!(list.contains(&id) && list.contains("rolled_back") && list.contains("alice"), "{list}");
    for event in ["PROPOSED", "REVIEWED"] {
        assert_eq!(desk.events(&format!("intent_event.{event}")).len(), 1, "{event}");
    }
    assert_eq!(desk.events("intent_event.MARKED").len(), 2);
    desk.is_whole();
}

#[test]
fn a_failed_run_implements_nothing() {
    let desk = Desk::new();
    let id = approved(&desk);
    let (_, lease) = issue(&desk, &[&SCOPE[..], &["--intent", &id]].concat(), &["sh", "-c", "false"]);
    assert_eq!(desk.leased(&lease, &[], &["sh", "-c", "false"]).code, 1);
    assert_eq!(status(&desk, &id), "approved");
}

#[test]
fn nobody_reviews_his_own() {
    let desk = Desk::new();
    let id = propose(&desk);
    review(&desk, &id, true, "alice").refused(&["alice", "somebody else"]);
    review(&desk, &id, false, "alice").refused(&["alice"]);
    assert_eq!(status(&desk, &id), "proposed");
    assert_eq!(review(&desk, &id, false, "bob").code, 0);
    assert_eq!(status(&desk, &id), "rejected");
    review(&desk, &id, true, "carol").refused(&["rejected"]);
    desk.go(&["intent", "review", &id]).refused(&["--approve"]);
    desk.go(&["intent", "review", &id, "--approve", "--reject"]).refused(&["--reject"]);
}

#[test]
fn a_reviewer_has_a_name() {
    let desk = Desk::new();
    let id = propose(&desk);
    for by in ["", " ", "alice ", "alice\n", "\u{9b}31m"] {
        review(&desk, &id, true, by).refused(&[]);
    }
}

#[test]
fn a_lease_stays_within_it() {
    let desk = Desk::new();
    let id = approved(&desk);
    let intent = ["--intent", &id];
    for (flags, command, part) in [
        (&SCOPE[..], &["python3"][..], "commands"),
        (&SCOPE, &["sh", "**"], "commands"),
        (&SCOPE, &["sh", "-c", "*", "x"], "commands"),
        (&["--allow", "repo://**"], &["sh", "-c", "*"], "paths"),
        (&["--allow", "repo://w/**", "--allow", "repo://a/f"], &["sh", "-c", "*"], "paths"),
        (&["--allow", "repo://a/f"], &["python3"], "commands and paths"),
    ] {
        issue(&desk, &[flags, &intent].concat(), command).0.refused(&["beyond", part]);
    }
    assert_eq!(issue(&desk, &[&SCOPE[..], &intent].concat(), &["sh", "-c", "true"]).0.code, 0);
    assert_eq!(desk.events("lease_event.ISSUED").len(), 1);
}

#[test]
fn only_what_was_approved() {
    let desk = Desk::new();
    std::fs::write(desk.state().join("hotcell.toml"), "[capabilities]\nlease_requires_intent = true\n").expect("ours");
    issue(&desk, &[], &["true"]).0.refused(&["approved intent", "--intent"]);
    let id = propose(&desk);
    let flags = [&SCOPE[..], &["--intent", &id]].concat();
    issue(&desk, &flags, &TRACE).0.refused(&[&id, "proposed"]);
    review(&desk, &id, false, "bob");
    issue(&desk, &flags, &TRACE).0.refused(&[&id, "rejected"]);
    let id = approved(&desk);
    let flags = [&SCOPE[..], &["--intent", &id]].concat();
    assert_eq!(issue(&desk, &flags, &TRACE).0.code, 0);
}

#[test]
fn a_rejected_intent_stops_its_leases() {
    let desk = Desk::new();
    let id = approved(&desk);
    let (_, lease) = issue(&desk, &[&SCOPE[..], &["--intent", &id]].concat(), &TRACE);
    assert_eq!(review(&desk, &id, false, "carol").code, 0);
    desk.is_denied(&desk.leased(&lease, &[], &TRACE), "intent_not_approved", &[&id]);
    assert_eq!(status(&desk, &id), "rejected");
}

#[test]
fn what_an_intent_does_not_speak_of_is_beyond_it() {
    let desk = Desk::new();
    let id = approved(&desk);
    for more in [["--mount", "/opt"], ["--env", "TOKEN"], ["--host", "example.org:443"]] {
        issue(&desk, &[&SCOPE[..], &["--intent", &id], &more].concat(), &TRACE).0.refused(&["beyond"]);
    }
}

#[test]
fn an_old_one_is_stale() {
    let desk = Desk::new();
    let (waits, yes) = (propose(&desk), approved(&desk));
    let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); \
                  db.execute('UPDATE intents SET proposed_ms = proposed_ms - 86400001'); db.commit()";
    let done = Command::new("python3").args(["-c", script]).arg(desk.state().join("records.db")).status();
    assert!(done.expect("python3 starts").success());
    assert_eq!((status(&desk, &waits), status(&desk, &yes)), ("stale".into(), "stale".into()));
    review(&desk, &waits, true, "bob").refused(&["stale"]);
    issue(&desk, &[&SCOPE[..], &["--intent", &yes]].concat(), &TRACE).0.refused(&[&yes, "stale"]);
    assert_eq!(status(&desk, &propose(&desk)), "proposed");
}

#[test]
fn bad_words() {
    let desk = Desk::new();
    let good = [("--goal", "g"), ("--rollback-plan", "p"), ("--by", "alice"), ("--type", "change")];
    let with = |flag: &str, value: &str| {
        let mut words = vec!["intent".to_owned(), "propose".to_owned()];
        for (name, text) in good {
            words.push(format!("{name}={}", if name == flag { value } else { text }));
        }
        if !good.iter().any(|(name, _)| *name == flag) {
            words.push(format!("{flag}={value}"));
        }
        words.extend(["--".to_owned(), "true".to_owned()]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        desk.go(&words)
    };
    assert_eq!(with("--goal", "g").code, 0);
    let long = "x".repeat(4001);
    for (flag, value, part) in [
        ("--goal", "", "goal"),
        ("--goal", "  ", "goal"),
        ("--goal", "\u{1b}[31m", "goal"),
        ("--goal", &long, "goal"),
        ("--rollback-plan", "", "rollback_plan"),
        ("--by", "", "proposed_by"),
        ("--by", "a\u{9b}b", "proposed_by"),
        ("--type", "two words", "intent_type"),
        ("--type", "", "intent_type"),
        ("--path", "../x", "paths"),
        ("--path", "repo://../x", "paths"),
        ("--command", "[]", "commands"),
        ("--command", "{}", "--command"),
        ("--risk", "none", "--risk"),
    ] {
        with(flag, value).refused(&[part]);
    }
    for words in [&["show", "gone"][..], &["review", "gone", "--approve"], &["show", "' OR 1=1 --"]] {
        desk.go(&[&["intent"], words].concat()).refused(&["no intent"]);
    }
    assert_eq!(desk.done(&["intent", "list"]).lines().count(), 1);
    assert_eq!(desk.events("intent_event.PROPOSED").len(), 1);
}
