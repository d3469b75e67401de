//! Files that are named on the command line or lie in the state directory: what is no regular file is refused in a sentence,
//! and nobody waits for somebody to write into it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::*;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn fifo(place: &Place, name: &str) -> PathBuf {
    let path = place.path(name);
    std::fs::create_dir_all(path.parent().expect("below")).expect("ours");
    let _ = std::fs::remove_file(&path);
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().expect("mkfifo is there").success());
    path
}

#[test]
fn a_fifo_is_no_key_no_lease_no_receipt_and_no_policy() {
    let place = Place::new();
    for words in [&["lease", "keygen"][..], &["exec", "--receipt", "r.json", "--result", "out.json", "--", "true"]] {
        assert_eq!(place.go(words).code, 0, "{words:?}");
    }
    let public = place.state().join("keys/receipt.pub");
    let lease = place.path("lease.json");
    let issue = ["lease", "issue", "--actor", "x", "--out", text(&lease), "--", "true"];
    assert_eq!(place.go(&issue).code, 0);
    let fifo = fifo(&place, "fifo");
    let fifo = text(&fifo);
    for words in [
        &["receipt", "verify", "r.json", "--key", fifo][..],
        &["receipt", "verify", fifo, "--key", text(&public)],
        &["receipt", "verify", "r.json", "--key", text(&public), "--result", fifo],
        &["receipt", "show", fifo],
        &["policy", "check", fifo],
        &["policy", "define", fifo],
        &["lease", "show", fifo],
        &["lease", "verify", fifo],
        &["lease", "issue", "--actor", "x", "--key", fifo, "--", "true"],
        &["lease", "cosign", text(&lease), "--key", fifo],
        &["lease", "delegate", text(&lease), "--key", fifo],
    ] {
        let ran = place.go(words);
        ran.refused(&[fifo, "not a regular file"]);
    }
    // A run under such a lease is refused as under none.
    place.go(&["exec", "--lease", fifo, "--", "true"]).refused(&[fifo]);
    // Real files of the same kinds.
    let good = ["receipt", "verify", "r.json", "--key", text(&public), "--result", "out.json"];
    assert_eq!(place.go(&good).code, 0);
    assert_eq!(place.go(&["lease", "verify", text(&lease)]).code, 0);
    let policy = place.write("fine.toml", policy("fine", ""));
    assert_eq!(place.go(&["policy", "check", text(&policy)]).code, 0);
}

#[test]
fn a_fifo_in_the_state_directory_is_told_of() {
    for (name, words) in [
        ("hotcell.toml", &["exec", "--", "true"][..]),
        ("keys/receipt.key", &["receipt", "key"]),
        ("keys/receipt.pub", &["receipt", "key"]),
        ("keys/leases.json", &["lease", "list"]),
        ("policies/own.toml", &["policy", "list"]),
    ] {
        let place = Place::new();
        assert_eq!(place.go(&["receipt", "key"]).code, 0);
        let path = fifo(&place, &format!("state/{name}"));
        place.go(words).refused(&[text(&path), "not a regular file"]);
        std::fs::remove_file(&path).expect("ours");
        assert_eq!(place.go(words).code, 0, "{name}");
    }
}

#[test]
fn a_fifo_is_no_language() {
    let place = Place::new();
    let path = fifo(&place, "own/mine.toml");
    let words = ["languages", "--languages", "../own"];
    place.go(&words).refused(&["own/mine.toml", "not a regular file"]);
    std::fs::remove_file(path).expect("ours");
    assert_eq!(place.go(&words).code, 0);
}

#[test]
fn two_things_are_not_written_into_one_file() {
    let place = Place::new();
    let old = place.write("work/old", "older");
    std::os::unix::fs::symlink("old", place.path("work/link")).expect("ours");
    for (words, flags) in [
        (["--events", "new", "--result", "new"], ["--events", "--result"]),
        (["--events", "new", "--result", "./new"], ["--events", "--result"]),
        (["--events", "old", "--result", "link"], ["--events", "--result"]),
        (["--events", "new", "--receipt", "new"], ["--events", "--receipt"]),
        (["--receipt", "new", "--result", "../work/new"], ["--receipt", "--result"]),
    ] {
        let ran = place.go(&[&["exec"], &words[..], &["--", "echo", "it ran"]].concat());
        ran.refused(&[flags[0], flags[1], "the same file"]);
        assert!(!place.path("work/new").exists(), "{words:?}");
    }
    assert_eq!(std::fs::read(&old).expect("ours"), b"older");
    for words in [["--events", "one", "--result", "two"], ["--events", "/dev/null", "--result", "/dev/null"]] {
        assert_eq!(place.go(&[&["exec"], &words[..], &["--", "true"]].concat()).code, 0, "{words:?}");
    }
}

#[test]
fn samples_and_alerts_that_nobody_is_told_of_are_refused() {
    let place = Place::new();
    let run = |words: &[&str]| {
        go(place.hotcell(&[&["exec"], words, &["--", "true"]].concat()).env_remove("HOTCELL_STATE_DIR"))
    };
    for flag in [["--sample-every", "1s"], ["--alert-at", "0.5"]] {
        run(&flag).refused(&[flag[0], "--events FILE", "--watch"]);
        for more in [&["--events", "/dev/null"][..], &["--state-dir", "elsewhere"]] {
            assert_eq!(run(&[&flag[..], more].concat()).code, 0, "{flag:?} {more:?}");
        }
        // Nothing is drawn where there is no terminal, and that is said.
        assert_eq!(run(&[&flag[..], &["--watch"]].concat()).code, 0, "{flag:?}");
    }
}
