//! What the log rests on: its head, the key that signs it, and that it is there at all.

use std::path::PathBuf;

use serde_json::Value;

use super::{name, parsed, some};
use crate::harness::*;

#[test]
fn a_log_that_is_removed_with_its_head() {
    let (place, file, _) = some();
    std::fs::remove_file(file).expect("ours");
    std::fs::remove_file(place.state().join("audit/head")).expect("ours");
    let (whole, _) = place.verify();
    assert!(!whole, "{} records, and a log of nothing is whole", place.records(&[]).len());
    place.runs_nothing(&["audit log"]);
}

#[test]
fn a_log_that_is_removed_while_something_runs() {
    let place = Place::new();
    let mut going = place.start(&[], &["sh", "-c", "echo ready; cat"]);
    std::fs::remove_dir_all(place.state().join("audit")).expect("ours");
    going.let_go();
    let ran = going.end();
    assert!(ran.code == 125 && ran.stderr.contains("audit log is not as it was left"), "{} {}", ran.code, ran.stderr);
    let (whole, _) = place.verify();
    assert!(!whole, "a log of nothing is whole");
    place.runs_nothing(&["audit log"]);
    // One that is left alone.
    let place = Place::new();
    let mut going = place.start(&[], &["sh", "-c", "echo ready; cat"]);
    place.pass(&[]);
    going.let_go();
    assert_eq!(going.end().code, 0);
    place.is_whole();
}

#[test]
fn a_head_that_is_not_ours() {
    let (place, _, _) = some();
    let path = place.state().join("audit/head");
    let head = std::fs::read_to_string(&path).expect("ours");
    let parts = parsed(&head);
    let with = |field: &str, value: Value| {
        let mut other = parts.clone();
        other[field] = value;
        other.to_string()
    };
    let zeros = |number: usize| Value::from("0".repeat(number));
    let (other, _, _) = some();
    let others = std::fs::read_to_string(other.state().join("audit/head")).expect("ours");
    for bad in [
        String::new(),
        "garbage".into(),
        "{}".into(),
        "null".into(),
        with("seq", 4.into()),
        with("seq", 6.into()),
        with("seq", (-1).into()),
        with("seq", u64::MAX.into()),
        with("hash", zeros(64)),
        with("hash", "".into()),
        with("sig", zeros(128)),
        with("sig", "".into()),
        with("sig", "zz".into()),
        with("sig", zeros(127)),
        with("more", 1.into()),
        head.replace('}', ""),
        others,
    ] {
        std::fs::write(&path, &bad).expect("ours");
        place.is_found_and_stops("head:1");
    }
    std::fs::remove_file(&path).expect("ours");
    place.is_found_and_stops("head:1");
    // With the right one back, all is well.
    std::fs::write(&path, &head).expect("ours");
    place.is_whole();
    place.pass(&[]);
}

#[test]
fn an_older_head() {
    let (place, _, _) = some();
    let path = place.state().join("audit/head");
    let head = std::fs::read_to_string(&path).expect("ours");
    place.pass(&[]);
    std::fs::write(&path, head).expect("ours");
    place.is_found_and_stops("head:1");
}

#[test]
fn another_key() {
    let (place, file, _) = some();
    let (other, _, _) = some();
    let first = format!("{}:1", name(&file));
    let key = place.state().join("keys/audit.key");
    let ours = std::fs::read(&key).expect("ours");
    std::fs::copy(other.state().join("keys/audit.key"), &key).expect("ours");
    place.is_found_and_stops(&first);
    // A new one is made where there is none, and has not signed this.
    std::fs::remove_file(&key).expect("ours");
    place.is_found_and_stops(&first);
    for bad in ["", "zz", "0102", &"0".repeat(63), &"ä".repeat(32)] {
        std::fs::write(&key, bad).expect("ours");
        place.runs_nothing(&["audit.key"]);
    }
    std::fs::write(&key, &ours).expect("ours");
    for mode in [0o640, 0o604, 0o644] {
        set_mode(&key, mode);
        place.runs_nothing(&["audit.key", "chmod 600"]);
    }
    set_mode(&key, 0o600);
    place.is_whole();
    place.pass(&[]);
}

#[test]
fn the_key_is_nobody_elses() {
    use std::os::unix::fs::MetadataExt;
    let (place, file, _) = some();
    let mode = |path: PathBuf| std::fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!(mode(place.state()), 0o700);
    assert_eq!(mode(place.state().join("keys")), 0o700);
    assert_eq!(mode(place.state().join("keys/audit.key")), 0o600);
    assert_eq!(mode(file), 0o600);
}
