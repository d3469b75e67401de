//! Runs that somebody must allow first: asked, shown, granted once, for very this.

use std::process::Stdio;

use serde_json::Value;

use crate::desk::*;
use crate::harness::*;

const CODE: &str = "import os, sys; print('it ran', sys.argv[1:], os.environ.get('NAME'))";

fn place() -> Place {
    let place = Place::new();
    place.define("ask", "isolation_level = \"process\"\nrequire_approval = true\nallow_file_write = true");
    place
}

fn run(place: &Place, words: &[&str]) -> Ran {
    place.go(&[&["run", "--policy", "ask", "--code", CODE], words].concat())
}

/// What the last one who asked was told to look at.
#[track_caller]
fn asked(place: &Place, ran: &Ran) -> String {
    ran.refused(&["approve show"]);
    let record = place.newest();
    assert_eq!((&record["status"], &record["failure_class"]), (&"denied".into(), &"ApprovalRequired".into()));
    let id = ran.stderr.split("approve show ").nth(1).and_then(|rest| rest.split('`').next()).expect("an id");
    id.to_owned()
}

fn say(place: &Place, words: &[&str]) -> Ran {
    place.go(&[&["approve"], words].concat())
}

#[track_caller]
fn grant(place: &Place, ran: &Ran) -> String {
    let id = asked(place, ran);
    let said = say(place, &["grant", &id, "--by", "me"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    id
}

fn shown(place: &Place, id: &str) -> Value {
    say(place, &["show", id, "--output", "json"]).json()
}

#[test]
fn one_grant_is_one_run() {
    let place = place();
    let id = asked(&place, &run(&place, &[]));
    // Asked again, it is the same question.
    assert_eq!(asked(&place, &run(&place, &[])), id);
    let what = shown(&place, &id);
    assert_eq!((&what["status"], &what["what"]["files"][0][1]), (&"pending".into(), &CODE.into()));
    assert!(say(&place, &["show", &id]).stdout.contains(CODE));
    assert_eq!(say(&place, &["grant", &id, "--by", "me", "--reason", "why not"]).code, 0);
    assert_eq!(run(&place, &[]).stdout, "it ran [] None\n");
    let what = shown(&place, &id);
    assert_eq!(
        (&what["status"], &what["decided_by"], &what["reason"]),
        (&"used".into(), &"me".into(), &"why not".into())
    );
    assert_eq!(what["record_id"], place.newest()["record_id"]);
    assert_ne!(asked(&place, &run(&place, &[])), id, "a second run is a second question");
    say(&place, &["grant", &id]).refused(&["no decision"]);
    let log = place.go(&["audit", "export"]).stdout;
    for (event, times) in [("ASKED", 2), ("GRANTED", 1), ("DENIED", 0)] {
        assert_eq!(log.matches(&format!("\"approval_event.{event}\"")).count(), times, "{event}");
    }
    place.is_whole();
}

#[test]
fn it_is_for_very_this() {
    let place = place();
    place.define("ask2", "require_approval = true\nallow_file_write = true");
    let file = place.write("work/other.py", CODE);
    grant(&place, &run(&place, &[]));
    let code = format!("{CODE} ");
    for words in [
        &["run", "--policy", "ask", "--code", &code][..],
        &["run", "--policy", "ask", "--code", CODE, "--", "word"],
        &["run", "--policy", "ask", "--code", CODE, "--", ""],
        &["run", "--policy", "ask", "--code", CODE, "--env", "NAME=x"],
        &["run", "--policy", "ask", "--code", CODE, "--tenant", "t"],
        &["run", "--policy", "ask2", "--code", CODE],
        &["run", "--policy", "ask", text(&file)],
        &["run", "--policy", "ask", "--lang", "bash", "--code", CODE],
        &["exec", "--policy", "ask", "--", "python3", "-c", CODE],
    ] {
        asked(&place, &place.go(words));
    }
    // None of these has used it.
    assert_eq!(run(&place, &[]).stdout, "it ran [] None\n");
    // A command too.
    let exec = |words: &[&str]| place.go(&[&["exec", "--policy", "ask", "--", "echo"], words].concat());
    grant(&place, &exec(&["a", "b"]));
    asked(&place, &exec(&["a b"]));
    asked(&place, &exec(&["a", "b", ""]));
    asked(&place, &exec(&["ab"]));
    assert_eq!(exec(&["a", "b"]).stdout, "a b\n");
}

#[test]
fn an_argument_is_no_variable() {
    let place = place();
    grant(&place, &run(&place, &["--", "env", "NAME", "value"]));
    asked(&place, &run(&place, &["--env", "NAME=value"]));
}

#[test]
fn it_is_not_for_a_lease_that_nobody_saw() {
    let desk = Desk::new();
    desk.define("ask", "require_approval = true\nallow_file_write = true");
    let program = ["sh", "-c", "rm /repo/a/f"];
    grant(&desk, &desk.go(&[&["exec", "--policy", "ask", "--"], &program[..]].concat()));
    let lease = desk.issue(&["--allow", "repo://a/**", "--write", "repo://a"], &program);
    desk.leased(&lease, &["--policy", "ask"], &program).refused(&["seen whole"]);
    assert!(desk.repo("a/f").exists());
}

#[test]
fn it_is_not_for_another_language_of_that_name() {
    let place = place();
    grant(&place, &run(&place, &[]));
    let own = "name = 'python'\nextensions = ['py']\npackage = 'none'\n[tools.sh]\n[[way]]\ntools = ['sh']\nrun.argv = ['{sh}', '-c', 'echo another']\n";
    let file = place.write("work/python.toml", own);
    let dir = file.parent().expect("it has one");
    asked(&place, &run(&place, &["--languages", text(dir)]));
    assert!(run(&place, &[]).stdout.starts_with("it ran"));
}

#[test]
fn it_is_not_for_less_of_a_cell() {
    let place = place();
    let code = "print('it ran')";
    grant(&place, &place.go(&["run", "--policy", "ask", "--capsule", "--code", code]));
    asked(&place, &place.go(&["run", "--policy", "ask", "--code", code]));
}

#[test]
fn it_is_not_for_another_policy_of_that_name() {
    let place = place();
    grant(&place, &run(&place, &[]));
    place.define(
        "ask",
        "require_approval = true\nallow_file_write = true\nmax_memory_mb = 4096\nmax_wall_time_seconds = 600",
    );
    asked(&place, &run(&place, &[]));
}

#[test]
fn it_is_not_for_any_input() {
    let place = place();
    let input = place.write("input", "echo it ran");
    grant(&place, &place.go(&["exec", "--policy", "ask", "--", "sh"]));
    let ran = place.go(&["exec", "--policy", "ask", "--stdin", text(&input), "--", "sh"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (125, ""));
}

#[test]
fn it_is_not_for_what_a_repair_makes_of_it() {
    let place = place();
    let source = place.write("work/a.py", "print('asked for')");
    grant(&place, &place.go(&["run", "--policy", "ask", text(&source)]));
    for more in [&[][..], &["--repair", "true"]] {
        place.go(&[&["verify", "--policy", "ask", text(&source)][..], more].concat()).refused(&["instead of verify"]);
    }
}

#[test]
fn it_is_not_for_a_directory() {
    let place = place();
    place.write("work/main.py", CODE);
    let dir = place.path("work");
    place.go(&["run", "--policy", "ask", text(&dir)]).refused(&["directory"]);
    place.go(&["exec", "--policy", "ask", "--input", text(&dir), "--", "true"]).refused(&["directory"]);
    assert_eq!(say(&place, &["list"]).stdout, "nothing was asked for\n");
}

#[test]
fn what_is_denied_is_not_run() {
    let place = place();
    let id = asked(&place, &run(&place, &[]));
    assert_eq!(say(&place, &["deny", &id, "--by", "me", "--reason", "no"]).code, 0);
    say(&place, &["grant", &id]).refused(&["no decision"]);
    say(&place, &["deny", &id]).refused(&["no decision"]);
    let again = asked(&place, &run(&place, &[]));
    assert_ne!(again, id);
    assert_eq!(shown(&place, &id)["status"], "denied");
    let list = say(&place, &["list"]).stdout;
    assert!(list.contains("denied") && list.contains("by me") && list.contains("pending"), "{list}");
}

#[test]
fn a_grant_expires() {
    let place = place();
    let id = asked(&place, &run(&place, &[]));
    assert_eq!(say(&place, &["grant", &id, "--for", "1s"]).code, 0);
    wait_until("it expires", || shown(&place, &id)["status"] == "expired");
    assert_ne!(asked(&place, &run(&place, &[])), id);
    say(&place, &["grant", &id]).refused(&["no decision"]);
}

#[test]
fn of_many_callers_one_runs() {
    let place = place();
    let id = grant(&place, &run(&place, &[]));
    let callers: Vec<Going> = (0..10)
        .map(|_| {
            let mut command = place.hotcell(&["run", "--policy", "ask", "--code", CODE]);
            Going { child: command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts") }
        })
        .collect();
    let ended: Vec<Ran> = callers.into_iter().map(Going::end).collect();
    assert_eq!(ended.iter().filter(|ran| ran.code == 0).count(), 1);
    let others: Vec<&Ran> = ended.iter().filter(|ran| ran.code != 0).collect();
    others.iter().for_each(|ran| ran.refused(&["approve show"]));
    // All others wait for one and the same.
    assert_eq!(say(&place, &["list", "--output", "json"]).json().as_array().map(Vec::len), Some(2));
    assert_eq!(shown(&place, &id)["status"], "used");
    place.is_whole();
}

#[test]
fn what_is_shown_is_harmless() {
    let place = place();
    let file = place.write("work/a.py", "print(1)\u{1b}[2J\u{1b}]0;x\u{7}\r# all good\u{9b}31m\u{7f}\nprint(2)");
    let words = ["run", "--policy", "ask", "--env", "NAME=\u{1b}[31m\n", text(&file), "--", "\u{1b}c\n", "b"];
    let id = asked(&place, &place.go(&words));
    for verb in [&["show", &id][..], &["list"]] {
        let said = say(&place, verb).stdout;
        assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
    }
    let said = say(&place, &["show", &id]).stdout;
    assert!(said.contains("print(2)") && said.contains("all good"), "{said}");
    assert_eq!(say(&place, &["list"]).stdout.lines().count(), 1);
}

#[test]
fn what_is_shown_is_what_runs() {
    let place = place();
    let id = asked(
        &place,
        &place.go(&["run", "--policy", "ask", "--code", "a = 'user\u{202e} \u{2066}# ok\u{2069} \u{2066}'"]),
    );
    let said = say(&place, &["show", &id]).stdout;
    assert!(!said.contains(['\u{202e}', '\u{2066}', '\u{2069}', '\u{200b}']), "{said:?}");
}

#[test]
fn bad_words() {
    let place = place();
    for verb in ["show", "grant", "deny"] {
        for id in ["gone", "", "../x", "\u{1b}[31m", "' OR 1=1 --"] {
            say(&place, &[verb, id]).refused(&[]);
        }
    }
    let id = asked(&place, &run(&place, &[]));
    for time in ["-1s", "x", "1e99s", "99999999999999999999s"] {
        say(&place, &["grant", &id, &format!("--for={time}")]).refused(&["--for"]);
    }
    asked(&place, &run(&place, &[]));
    // Nowhere to ask: nothing runs.
    let mut command = place.hotcell(&["run", "--policy", "high_security", "--code", "print('it ran')"]);
    go(command.env_remove("HOTCELL_STATE_DIR")).refused(&[]);
}

#[test]
fn of_many_decisions_one_counts() {
    let place = place();
    let id = asked(&place, &run(&place, &[]));
    let said: Vec<Ran> = decide_at_once(&place, &id);
    assert_eq!(said.iter().filter(|ran| ran.code == 0).count(), 1);
    said.iter().filter(|ran| ran.code != 0).for_each(|ran| ran.refused(&["no decision"]));
    let status = shown(&place, &id)["status"].clone();
    assert_eq!(run(&place, &[]).code == 0, status == "granted");
}

#[test]
fn the_log_has_the_one_decision_that_counts() {
    let place = place();
    let id = asked(&place, &run(&place, &[]));
    decide_at_once(&place, &id);
    let log = place.go(&["audit", "export"]).stdout;
    let told = ["GRANTED", "DENIED"].map(|event| log.matches(&format!("\"approval_event.{event}\"")).count());
    assert_eq!(told.iter().sum::<usize>(), 1, "{told:?}");
}

fn decide_at_once(place: &Place, id: &str) -> Vec<Ran> {
    let start = |n: usize| {
        let mut command = place.hotcell(&["approve", if n.is_multiple_of(2) { "grant" } else { "deny" }, id]);
        Going { child: command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts") }
    };
    let all: Vec<Going> = (0..10).map(start).collect();
    all.into_iter().map(Going::end).collect()
}

#[test]
fn what_is_too_long_to_be_seen_is_not_asked_for() {
    let place = place();
    let file = place.write("work/long.py", format!("{}\nprint('it ran')\n", "#".repeat(2 << 20)));
    place.go(&["run", "--policy", "ask", text(&file)]).refused(&["seen whole"]);
}

#[test]
fn a_lease_waits_with_it() {
    let desk = Desk::new();
    desk.define("ask", "require_approval = true\nallow_file_write = true");
    let lease = desk.issue(&[], &["echo", "it ran"]);
    let run = || desk.leased(&lease, &["--policy", "ask"], &["echo", "it ran"]);
    // What waits has used no run of the lease.
    grant(&desk, &run());
    assert_eq!(run().stdout, "it ran\n");
    desk.is_denied(&run(), "run_count_used_up", &["used up"]);
}
