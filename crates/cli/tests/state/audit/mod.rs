//! The log: in order it goes on and is whole; whatever is done to it is found, at its place, and then nothing runs.

mod disk;
mod lines;
mod seal;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::harness::*;

/// A log of some entries: its file, and its lines.
fn some() -> (Place, PathBuf, Vec<String>) {
    let place = Place::new();
    place.pass(&["--tenant", "t", "--user", "u", "--run-id", "r"]);
    place.exec(&[], &["false"]);
    place.go(&["exec", "--policy", "restricted", "--", "true"]).refused(&["restricted"]);
    place.is_whole();
    let files = place.logs();
    // Unless midnight came between.
    let [file] = files.as_slice() else { return some() };
    let text = std::fs::read_to_string(file).expect("it can be read");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 5);
    (place, file.clone(), lines)
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A line with the hash that it should have.
fn sealed(body: &Value) -> String {
    let body = ["seq", "at", "event", "data", "prev", "tag"].map(|name| format!("\"{name}\":{}", body[name])).join(",");
    let hash: String = Sha256::digest(format!("{{{body}}}")).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{{{body},\"hash\":\"{hash}\"}}")
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).expect("it is JSON")
}

fn name(file: &Path) -> String {
    file.file_name().expect("it has one").to_string_lossy().into_owned()
}

impl Place {
    /// Damage is found, and first of all at `file:line`.
    #[track_caller]
    fn is_found(&self, at: &str) {
        let (whole, flaws) = self.verify();
        assert!(!whole && flaws.first().is_some_and(|flaw| flaw == at), "at {at}, not {flaws:?}");
    }

    /// Damage at the end of the log, or to what it rests on: found there, and nothing runs.
    #[track_caller]
    fn is_found_and_stops(&self, at: &str) {
        self.is_found(at);
        let before = self.contents("state/audit");
        self.runs_nothing(&["audit log", "nothing runs", "hotcell audit verify"]);
        self.go(&["run", "--code", "print('it ran')"]).refused(&["audit log"]);
        assert_eq!(self.contents("state/audit"), before, "it was written to");
        self.is_found(at);
    }
}

#[test]
fn an_untouched_one_is_exported_as_it_is() {
    let (place, file, lines) = some();
    let export = place.go(&["audit", "export"]);
    assert_eq!((export.code, &export.stdout), (0, &text(&lines)));
    let mut before = "0".repeat(64);
    for (index, line) in lines.iter().enumerate() {
        let entry = parsed(line);
        assert_eq!((&entry["seq"], &entry["prev"]), (&(index + 1).into(), &before.as_str().into()), "{line}");
        // The hash is what anybody can work out.
        assert_eq!(&sealed(&entry), line);
        before = entry["hash"].as_str().expect("a hash").to_owned();
    }
    let events: Vec<Value> = lines.iter().map(|line| parsed(line)["event"].clone()).collect();
    let names = ["ADMITTED", "FINISHED", "ADMITTED", "FINISHED", "DENIED"];
    assert_eq!(events, names.map(|name| Value::from(format!("exec_event.{name}"))));
    // Tail is the end of it.
    assert_eq!(place.go(&["audit", "tail", "-n", "2", "--output", "json"]).stdout, text(&lines[3..]));
    assert_eq!(place.go(&["audit", "tail", "--output", "json"]).stdout, text(&lines));
    let tail = place.go(&["audit", "tail", "-n", "1"]).stdout;
    assert!(tail.lines().count() == 1 && tail.contains("exec_event.DENIED"), "{tail}");
    assert_eq!(place.go(&["audit", "tail", "-n", "0"]).stdout, "");
    assert_eq!(std::fs::read_to_string(file).expect("ours"), text(&lines), "looking changed it");
}

#[test]
fn a_new_day_goes_on_with_the_chain() {
    let (place, file, lines) = some();
    // Yesterday's, as far as anybody can see.
    let yesterday = file.with_file_name("2020-02-29.jsonl");
    std::fs::rename(&file, &yesterday).expect("ours");
    place.is_whole();
    place.pass(&[]);
    place.is_whole();
    assert_eq!(place.logs().len(), 2);
    let export = place.go(&["audit", "export"]).stdout;
    assert!(export.starts_with(&text(&lines)) && export.lines().count() == 7, "{export}");
    // Damage in either is told by its file.
    std::fs::write(&yesterday, text(&lines[..4])).expect("ours");
    place.is_found(&format!("{}:1", name(&place.logs()[1])));
    std::fs::write(&yesterday, text(&lines)).expect("ours");
    std::fs::remove_file(&place.logs()[1]).expect("ours");
    place.is_found_and_stops("head:1");
}

#[test]
fn a_clock_that_goes_back() {
    let (place, file, _) = some();
    std::fs::rename(&file, file.with_file_name("9998-12-31.jsonl")).expect("ours");
    place.pass(&[]);
    place.pass(&[]);
    place.is_whole();
}

#[test]
fn thirty_at_once_keep_it_whole() {
    let place = Place::new();
    let mut runs = vec![];
    for n in 0..30 {
        let words: &[&str] = match n % 3 {
            0 => &["exec", "--quiet", "--", "true"],
            1 => &["exec", "--policy", "restricted", "--", "true"],
            _ => &["killswitch", "off", "--tenant", "nobody"],
        };
        let child = place.hotcell(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        runs.push((n, Going { child }));
    }
    for (n, run) in runs {
        let ran = run.end();
        assert_eq!(ran.code, if n % 3 == 1 { 125 } else { 0 }, "{}", ran.stderr);
    }
    place.is_whole();
    assert_eq!(place.go(&["audit", "export"]).stdout.lines().count(), 20 + 10 + 10);
}

#[test]
fn one_that_grows_is_whole_at_every_look() {
    let place = Place::new();
    place.pass(&[]);
    let script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \"$1\" exec -- true || exit 1; done";
    let mut command = place.command("sh");
    let mut runs = command.args(["-c", script, "sh"]).arg(binary()).spawn().expect("it starts");
    while runs.try_wait().expect("it is our child").is_none() {
        let found = place.go(&["audit", "verify", "--output", "json"]).json();
        assert_eq!(found["ok"], true, "{found:#}");
    }
    assert!(runs.wait().expect("it is our child").success());
    place.is_whole();
    assert_eq!(place.go(&["audit", "export"]).stdout.lines().count(), 42);
}
