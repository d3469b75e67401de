//! A log that cannot be written, because of its mode or because the disk is full: nothing runs, and it stays whole.

use std::ffi::OsStr;
use std::os::unix::fs::chown;

use crate::harness::*;

#[test]
fn one_that_cannot_be_written() {
    if !is_root() {
        return skip("only root can become another user");
    }
    let place = Place::new();
    for dir in [place.dir.clone(), place.path("home"), place.path("work")] {
        set_mode(&dir, 0o755);
    }
    std::fs::create_dir(place.state()).expect("our own directory");
    chown(place.state(), Some(USER), Some(USER)).expect("root may");
    let (user, marker) = (USER.to_string(), ["exec", "--quiet", "--", "echo", "it ran"]);
    let as_user = |words: &[&str]| {
        let mut command = place.command("setpriv");
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(binary()).args(words);
        go(&mut command)
    };
    let ran = as_user(&marker);
    if ran.code != 0 {
        return skip(&format!("an ordinary user cannot run anything here: {}", ran.stderr));
    }
    let (audit, head) = (place.state().join("audit"), place.state().join("audit/head"));
    set_mode(&head, 0o400);
    as_user(&marker).refused(&["audit log", "nothing runs"]);
    // It says so, and does not look like a run.
    let listed = as_user(&["records", "--output", "json"]).json();
    assert_eq!(listed["records"][0]["status"], "denied", "{listed:#}");
    assert_eq!(listed["records"].as_array().map(Vec::len), Some(2), "{listed:#}");
    set_mode(&head, 0o600);
    // Nothing can be made there: no file for a new day.
    let file = place.logs().pop().expect("there is one");
    std::fs::rename(&file, file.with_file_name("2020-02-29.jsonl")).expect("ours");
    set_mode(&audit, 0o500);
    as_user(&marker).refused(&["audit log", "nothing runs"]);
    set_mode(&audit, 0o700);
    assert_eq!(as_user(&marker).stdout, "it ran\n");
    let file = place.logs().pop().expect("there is one");
    set_mode(&file, 0o400);
    as_user(&marker).refused(&["audit log", "nothing runs"]);
    set_mode(&file, 0o600);
    assert_eq!(as_user(&marker).stdout, "it ran\n");
    assert_eq!(as_user(&["audit", "verify"]).code, 0);
}

/// A script that may mount, for itself alone: `$1` is the binary, the other words follow. `None`: here it may not.
fn mounting(place: &Place, script: &str, words: &[&OsStr]) -> Option<Ran> {
    if !is_root() {
        skip("only root can mount");
        return None;
    }
    let mut command = place.command("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", script, "sh"]).arg(binary()).args(words);
    let ran = go(&mut command);
    if ran.stdout.contains("skipped") || ran.stderr.contains("unshare failed") {
        skip(&format!("nothing can be mounted here: {}", ran.stderr));
        return None;
    }
    Some(ran)
}

/// On a small file system of its own, filled up to the last byte but `left` pages.
fn on_a_full_disk(left: u32) -> Option<Ran> {
    let place = Place::new();
    std::fs::create_dir(place.state()).expect("our own directory");
    let script = r#"
        mount -t tmpfs -o size=2m,mode=700 none "$HOTCELL_STATE_DIR" || { echo skipped; exit 0; }
        "$1" exec --quiet -- true || exit 3
        cat /dev/zero > "$HOTCELL_STATE_DIR/fill" 2>/dev/null
        truncate -s "-$2" "$HOTCELL_STATE_DIR/fill"
        for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do "$1" exec --quiet -- echo "it ran" >> "$3" 2>> "$3.err"; echo $? >> "$3.codes"; done
        rm "$HOTCELL_STATE_DIR/fill"
        "$1" audit verify
        echo "verify $?"
        "$1" exec --quiet -- true
        echo "after $?"
        "$1" audit verify
        echo "again $?"
    "#;
    let bytes = (left * 4096).to_string();
    let ran = mounting(&place, script, &[bytes.as_ref(), place.path("out").as_ref()])?;
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap_or_default();
    let (out, err, codes) = (read("out"), read("out.err"), read("out.codes"));
    // Either it ran and was written down, or it did not run and one sentence says why.
    let refused = codes.lines().filter(|code| *code == "125").count();
    assert!(refused > 0, "the disk was never full: {codes} {err}");
    assert_eq!(codes.lines().filter(|code| *code == "0").count() + refused, 15, "{codes} {err}");
    assert_eq!(err.lines().count(), refused, "{err}");
    assert_eq!(codes.lines().last(), Some("125"), "{codes} {err}");
    assert!(out.lines().count() <= 15 - refused + 1, "{out} {codes} {err}");
    Some(ran)
}

#[test]
fn a_full_disk_runs_nothing() {
    for left in [0, 1, 2, 4] {
        let Some(ran) = on_a_full_disk(left) else { return };
        assert!(
            ran.stdout.contains("after 0\n") && ran.stdout.contains("again 0\n"),
            "{left}: {} {}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn a_full_disk_leaves_the_log_whole() {
    for left in [0, 1, 2, 4] {
        let Some(ran) = on_a_full_disk(left) else { return };
        assert!(ran.stdout.contains("verify 0\n"), "{left}: {} {}", ran.stdout, ran.stderr);
    }
}

/// The log alone on a disk of so many pages, until it is full; then with more room.
fn in_pages(pages: u32) -> Option<Ran> {
    let place = Place::new();
    std::fs::create_dir_all(place.state().join("audit")).expect("our own directory");
    let script = r#"
        mount -t tmpfs -o "size=$2,mode=700" none "$HOTCELL_STATE_DIR/audit" || { echo skipped; exit 0; }
        for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do "$1" exec --quiet -- true 2>&1; done
        "$1" exec --quiet -- echo "it ran"
        echo "full $?"
        mount -o remount,size=4m "$HOTCELL_STATE_DIR/audit"
        "$1" audit verify
        echo "verify $?"
        "$1" exec --quiet -- true
        echo "after $?"
    "#;
    mounting(&place, script, &[(pages * 4096).to_string().as_ref()])
}

#[test]
fn a_log_that_is_full_runs_nothing() {
    for pages in [3, 4, 5] {
        let Some(ran) = in_pages(pages) else { return };
        assert!(ran.stdout.contains("nothing runs") && ran.stdout.contains("full 125\n"), "{pages}: {}", ran.stdout);
        assert!(!ran.stdout.contains("it ran"), "{pages}: {}", ran.stdout);
    }
}

#[test]
fn a_log_that_was_full_goes_on() {
    for pages in [3, 4, 5] {
        let Some(ran) = in_pages(pages) else { return };
        assert!(ran.stdout.contains("verify 0\n") && ran.stdout.contains("after 0\n"), "{pages}: {}", ran.stdout);
    }
}
