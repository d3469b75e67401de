//! What is printed: to whoever stops reading, and of what programs and strangers have chosen the words.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::harness::*;

/// An escape sequence, one of a single letter, a line that looks like ours, letters that turn others around.
const NASTY: &str = "x\u{1b}[31m\u{9b}1m\nhotcell: pass\u{202e}y";

#[track_caller]
fn is_harmless(ran: &Ran) {
    let unseen = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!ran.stdout.contains(unseen), "{:?}", ran.stdout);
    assert!(!ran.stdout.lines().any(|line| line.starts_with("hotcell: pass")), "{}", ran.stdout);
}

#[test]
fn whoever_stops_reading_is_not_told_about_it() {
    let place = Place::new();
    for _ in 0..20 {
        place.pass(&[]);
    }
    assert_eq!(place.go(&["lease", "keygen"]).code, 0);
    for words in [
        &["records"][..],
        &["records", "--output", "json"],
        &["stats"],
        &["audit", "tail", "-n", "1000"],
        &["audit", "export"],
        &["audit", "verify"],
        &["policy", "list"],
        &["policy", "list", "--output", "json"],
        &["policy", "show", "standard"],
        &["lease", "list"],
        &["approve", "list"],
        &["intent", "list"],
        &["killswitch", "status"],
        &["receipt", "key"],
        &["schema", "outcome"],
        &["languages"],
        &["doctor"],
    ] {
        // Nobody ever reads it: the first word is already one too many.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = place.hotcell(words);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(command);
        let ran = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!((said.as_ref(), ran.status.code()), ("", Some(141)), "{words:?}");
    }
    // One line is read, and the others are not.
    let mut command = place.hotcell(&["audit", "export"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut reader = BufReader::with_capacity(1, child.stdout.take().expect("piped"));
    reader.read_line(&mut line).expect("a line");
    drop(reader);
    let ran = child.wait_with_output().expect("it ends");
    assert!(line.starts_with('{') && ran.stderr.is_empty(), "{line} {:?}", ran.stderr);
    // And who reads all of it gets all of it.
    assert_eq!(place.go(&["records"]).stdout.lines().count(), 21);
}

#[test]
fn what_strangers_have_written_steers_no_terminal() {
    let place = Place::new();
    // Names that a program gave to what it left.
    let program = "import os; open('/work/x\\x1b[31m\\u202ey', 'w'); open('/work/plain', 'w')";
    let words = ["run", "--artifacts", "out", "--receipt", "r.json", "--code", program];
    assert_eq!(place.go(&words).code, 0);
    let shown = place.go(&["receipt", "show", "r.json"]);
    is_harmless(&shown);
    assert!(shown.stdout.contains(r"artifact:x\u001b[31m\u202ey") && shown.stdout.contains("artifact:plain"));
    // It says the same.
    assert_eq!(shown.json()["subject"][1]["name"], "artifact:x\u{1b}[31m\u{202e}y");

    // A language of somebody's own.
    std::fs::create_dir(place.path("own")).expect("ours");
    let name = "\"x\\u001B[31m\\u009B1m\\nhotcell: pass\\u202Ey\"";
    let text = format!(
        "name = {name}\nextensions = [\"nasty\"]\npackage = \"none\"\n[tools.sh]\nversion = [\"-c\", \"echo 1.0\"]\n\
         [[way]]\ntools = [\"sh\"]\nrun.argv = [\"{{sh}}\", \"{{entry}}\"]\n"
    );
    place.write("own/nasty.toml", text);
    let _ = place.go(&["run", "--languages", "../own", "--lang", NASTY, "--code", "echo it ran"]);
    for words in [&["records"][..], &["stats"], &["audit", "tail"], &["languages", "--languages", "../own"]] {
        let ran = place.go(words);
        assert_eq!(ran.code, 0, "{words:?} {}", ran.stderr);
        is_harmless(&ran);
    }
    let records = place.go(&["records", "--output", "json"]);
    is_harmless(&records);
    let newest = place.newest();
    assert_eq!(newest["language"], NASTY, "{newest}");
    is_harmless(&place.go(&["records", newest["record_id"].as_str().expect("an id")]));

    // A line of the log that is none.
    let log = place.logs().pop().expect("there is one");
    let mut bytes = std::fs::read(&log).expect("ours");
    bytes.extend_from_slice("no entry \u{1b}[31m\u{202e}\n".as_bytes());
    std::fs::write(&log, bytes).expect("ours");
    let tail = go(&mut place.hotcell(&["audit", "tail", "-n", "1"]));
    is_harmless(&tail);
    assert!(tail.stdout.contains(r"no entry \u{1b}[31m\u{202e}"), "{}", tail.stdout);
    is_harmless(&place.go(&["audit", "verify"]));
}
