//! What a hotcell that is killed leaves of a file that it was writing into a repository, and who takes that away.

use std::path::PathBuf;
use std::process::Stdio;

use rustix::fs::{FlockOperation, flock};

use crate::desk::*;

const WRITABLE: [&str; 6] = ["--allow", "repo://a/**", "--write", "repo://a", "--runs", "99"];

/// A name as such files have it.
fn id(number: u32) -> String {
    format!(".hotcell-0190a2b4-0000-7000-8000-{number:012x}")
}

fn unfinished(desk: &Desk) -> Vec<PathBuf> {
    let all = std::fs::read_dir(desk.repo("a")).expect("ours").flatten().map(|entry| entry.path());
    all.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".hotcell-"))).collect()
}

#[test]
fn who_is_killed_while_he_writes_leaves_nothing_for_good() {
    let desk = Desk::new();
    let lease = desk.issue(&[&WRITABLE[..], &["--memory", "512m"]].concat(), &["sh", "-c", "*"]);
    let many = "cd /repo/a; for n in $(seq 200); do head -c 200000 /dev/urandom > big$n; done";
    let repo = desk.path("repo");
    let words = ["exec", "--lease", text(&lease), "--repo", text(&repo), "--", "sh", "-c", many];
    // Killed as soon as there is one; one that was whole by then is no harm, and another try.
    for _ in 0..20 {
        let mut command = desk.hotcell(&words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        while unfinished(&desk).is_empty() && child.try_wait().expect("ours").is_none() {
            std::thread::yield_now();
        }
        child.kill().expect("ours");
        child.wait().expect("ours");
        if !unfinished(&desk).is_empty() {
            break;
        }
    }
    assert!(!unfinished(&desk).is_empty(), "it was never killed in the middle of a file");
    // A run that changes something else there.
    let outcome = desk.outcome(&lease, &[], &["sh", "-c", "ls -A /repo/a | grep -c hotcell; echo x > /repo/a/f"]);
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"0\n".into()), "{outcome:#}");
    assert_eq!(unfinished(&desk), Vec::<PathBuf>::new());
}

#[test]
fn nothing_else_is_taken_away() {
    let desk = Desk::new();
    let lease = desk.issue(&WRITABLE, &["sh", "-c", "*"]);
    let abandoned = [desk.file(&format!("a/{}", id(1)), "x"), desk.file(&format!("a/b/{}", id(2)), "x")];
    // Of a run that is going: it holds a lock.
    let held = desk.file(&format!("a/{}", id(3)), "x");
    let going = std::fs::File::open(&held).expect("ours");
    flock(&going, FlockOperation::LockExclusive).expect("nobody else has it");
    desk.link("../top", &format!("a/{}", id(4)));
    std::fs::create_dir(desk.repo(&format!("a/{}", id(5)))).expect("ours");
    desk.file(&format!("a/{}/inside", id(5)), "x");
    for name in ["a/.hotcell-notes", "a/.hotcell-0190a2b4-0000-4000-8000-000000000006"] {
        desk.file(name, "x");
    }
    // Where nobody may write; and behind a link that leads there.
    desk.file(&format!("secret/{}", id(7)), "x");
    desk.link("../secret", "a/away");
    let outcome = desk.outcome(&lease, &[], &["sh", "-c", "echo x > /repo/a/f"]);
    assert_eq!(outcome["status"], "pass", "{outcome:#}");
    for path in abandoned {
        assert!(!path.exists(), "{}", path.display());
    }
    for name in [
        format!("a/{}", id(3)),
        format!("a/{}", id(4)),
        format!("a/{}/inside", id(5)),
        "a/.hotcell-notes".into(),
        "a/.hotcell-0190a2b4-0000-4000-8000-000000000006".into(),
        format!("secret/{}", id(7)),
        "top".into(),
    ] {
        assert!(desk.repo(&name).symlink_metadata().is_ok(), "{name} is gone");
    }
    // When that run is over too, whatever became of it.
    drop(going);
    let run = outcome_run(&desk);
    desk.done(&["rollback", &run]);
    assert!(!held.exists());
}

/// The newest run of the desk.
fn outcome_run(desk: &Desk) -> String {
    desk.newest()["record_id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_program_can_not_make_such_a_name() {
    let desk = Desk::new();
    let before = desk.tree();
    let lease = desk.issue(&WRITABLE, &["sh", "-c", "*"]);
    let script = format!("echo x > /repo/a/f; echo x > /repo/a/{}", id(1));
    let outcome = desk.outcome(&lease, &[], &["sh", "-c", &script]);
    assert_eq!((&outcome["status"], &outcome["failure_class"]), (&"fail".into(), &"LeaseViolation".into()));
    assert!(outcome["message"].as_str().is_some_and(|why| why.contains(&id(1))), "{outcome:#}");
    assert_eq!(desk.tree(), before);
    // Another one is a name like any other.
    let outcome = desk.outcome(&lease, &[], &["sh", "-c", "echo x > /repo/a/.hotcell-notes"]);
    assert_eq!(outcome["status"], "pass", "{outcome:#}");
}
