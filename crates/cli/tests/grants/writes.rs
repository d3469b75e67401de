//! What a run changes in a repository: what it may, when it has passed, and nothing else.

use std::os::unix::fs::{MetadataExt, chown};
use std::process::Stdio;

use crate::desk::*;
use crate::harness::*;

const WRITABLE: [&str; 4] = ["--allow", "repo://a/**", "--write", "repo://a"];

fn mode(desk: &Desk, name: &str) -> u32 {
    std::fs::metadata(desk.repo(name)).expect("it is there").mode() & 0o7777
}

#[test]
fn changes_are_carried_out() {
    let desk = Desk::new();
    desk.file("a/gone", "gone");
    let lease = desk.issue(&WRITABLE, &["sh", "-c", "*"]);
    let script = "cd /repo/a; echo changed > f; rm gone; mkdir -p n/m; echo new > n/m/x; chmod 750 n/m/x; rm b/g";
    let outcome = desk.outcome(&lease, &[], &["sh", "-c", script]);
    assert_eq!((&outcome["status"], outcome["violations"].as_array().map(Vec::len)), (&"pass".into(), Some(0)));
    let tree = desk.tree();
    let names: Vec<&str> = tree.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a/f", "a/n/m/x", "secret/key", "top"]);
    assert_eq!((tree[0].1.as_str(), tree[1].1.as_str()), ("changed\n", "new\n"));
    assert_eq!((mode(&desk, "a/n/m/x"), mode(&desk, "a/f")), (0o750, 0o644));
    let artifacts: Vec<&str> =
        outcome["artifacts"].as_array().expect("a list").iter().filter_map(|one| one["path"].as_str()).collect();
    assert_eq!(artifacts, ["repo://a/f", "repo://a/n/m/x"]);
    assert_eq!(desk.events("rollback_event.PACKED").len(), 1);
}

#[test]
fn what_is_read_only_stays() {
    let desk = Desk::new();
    let before = desk.tree();
    for allow in ["repo://a/**", "repo://a/*", "repo://**"] {
        for script in ["echo x > /repo/a/f", "rm /repo/a/f", "echo x > /repo/a/new", "chmod 777 /repo/a/f"] {
            let lease = desk.issue(&["--allow", allow], &["sh", "-c", "*"]);
            let outcome = desk.outcome(&lease, &[], &["sh", "-c", script]);
            assert_eq!(outcome["failure_class"], "FilesystemWriteViolation", "{allow} {script} {outcome:#}");
            assert_eq!(desk.tree(), before);
        }
    }
    // Beside what is writable too.
    let lease = desk.issue(&["--allow", "repo://**", "--write", "repo://w"], &["sh", "-c", "*"]);
    let outcome = desk.outcome(&lease, &[], &["sh", "-c", "echo x > /repo/w/new; echo x > /repo/a/f"]);
    assert_eq!(outcome["failure_class"], "FilesystemWriteViolation", "{outcome:#}");
    assert_eq!(desk.tree(), before);
}

#[test]
fn a_run_that_fails_changes_nothing() {
    let desk = Desk::new();
    let before = desk.tree();
    for (script, flags) in [
        ("echo x > /repo/a/f; exit 1", &[][..]),
        ("echo x > /repo/a/f; kill -9 $$", &[]),
        ("echo x > /repo/a/f; sleep 60", &["--timeout", "1s"]),
        ("echo x > /repo/a/f; echo x > /etc/passwd", &[]),
        ("rm -rf /repo/a/*; false", &[]),
    ] {
        let lease = desk.issue(&WRITABLE, &["sh", "-c", "*"]);
        let outcome = desk.outcome(&lease, flags, &["sh", "-c", script]);
        assert_eq!(outcome["status"], "fail", "{script}");
        assert_eq!(desk.tree(), before, "{script}");
        desk.go(&["rollback", &desk.run_id()]).refused(&["no rollback pack"]);
    }
}

#[test]
fn a_repository_that_somebody_else_changed() {
    let desk = Desk::new();
    for (theirs, name) in [("b", "a/f"), ("new", "a/new")] {
        let lease = desk.issue(&[&WRITABLE[..], &["--for", "5m"]].concat(), &["sh", "-c", "*"]);
        let repo = desk.path("repo");
        let result = desk.path("result");
        let script = format!("echo ready; cat; echo mine > /repo/{name}; echo mine > /repo/a/b/g");
        let words = ["--lease", text(&lease), "--repo", text(&repo), "--result", text(&result)];
        let mut going = desk.start(&words, &["sh", "-c", &script]);
        desk.file(name, theirs);
        let before = desk.tree();
        going.let_go();
        assert_ne!(going.end().code, 0);
        let outcome = read(&result);
        assert_eq!(outcome["failure_class"], "LeaseViolation", "{outcome:#}");
        assert!(outcome["message"].as_str().is_some_and(|why| why.contains(name)), "{outcome:#}");
        assert_eq!(desk.tree(), before);
    }
    // What it does not touch may change.
    let lease = desk.issue(&WRITABLE, &["sh", "-c", "*"]);
    let repo = desk.path("repo");
    let words = ["--lease", text(&lease), "--repo", text(&repo)];
    let mut going = desk.start(&words, &["sh", "-c", "echo ready; cat; echo mine > /repo/a/b/g"]);
    desk.file("a/f", "theirs");
    going.let_go();
    assert_eq!(going.end().code, 0);
    assert_eq!(std::fs::read_to_string(desk.repo("a/b/g")).expect("ours"), "mine\n");
    assert_eq!(std::fs::read_to_string(desk.repo("a/f")).expect("ours"), "theirs");
}

#[test]
fn what_is_no_file_is_not_taken_over() {
    let desk = Desk::new();
    let script = "cd /repo/a; ln -s /etc/passwd link; mkfifo fifo; ln f hard; ln -s ../.. up; echo n > new; \
                  chmod 6777 new; mkdir empty; rm -r b; ln -s /etc b";
    desk.script(&WRITABLE, script);
    let tree = desk.tree();
    let names: Vec<&str> = tree.iter().map(|(name, _)| name.as_str()).collect();
    // The file that a link hides now is gone, and no link came in its place.
    assert_eq!(names, ["a/f", "a/hard", "a/new", "secret/key", "top"]);
    assert_eq!(mode(&desk, "a/new"), 0o777);
    let meta = std::fs::metadata(desk.repo("a/f")).expect("ours");
    assert_eq!(meta.nlink(), 1);
}

#[test]
fn a_link_in_the_repository_is_not_followed() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("beside")).expect("ours");
    desk.write("beside/f", "kept\n");
    desk.link("../../beside", "a/out");
    desk.link("../../beside/f", "a/file");
    let before = desk.tree();
    for script in [
        "mkdir /repo/a/out; echo x > /repo/a/out/f",
        "mkdir /repo/a/out; echo x > /repo/a/out/new",
        "echo x > /repo/a/out",
        "echo x > /repo/a/file",
        "mkdir /repo/a/file; echo x > /repo/a/file/x",
    ] {
        let lease = desk.issue(&WRITABLE, &["sh", "-c", "*"]);
        let outcome = desk.outcome(&lease, &[], &["sh", "-c", script]);
        assert_eq!(outcome["failure_class"], "LeaseViolation", "{script} {outcome:#}");
        assert_eq!(desk.tree(), before, "{script}");
    }
    assert_eq!(desk.contents("beside").len(), 1);
    assert_eq!(std::fs::read_to_string(desk.path("beside/f")).expect("ours"), "kept\n");
}

#[test]
fn too_much_is_not_taken_over() {
    let desk = Desk::new();
    let before = desk.tree();
    for script in [
        "cd /repo/a; truncate -s 65M big",
        "cd /repo/a; mkdir many; cd many; seq 10001 | xargs touch",
        "cd /repo/a; for i in $(seq 70); do mkdir d; cd d; done; echo x > x",
        "cd /repo/a; printf x > \"$(printf 'odd\\377')\"",
    ] {
        let lease = desk.issue(&WRITABLE, &["sh", "-c", "*"]);
        let outcome = desk.outcome(&lease, &["--scratch-inodes", "50000"], &["sh", "-c", script]);
        assert_eq!(outcome["failure_class"], "LeaseViolation", "{script} {outcome:#}");
        assert_eq!(desk.tree(), before, "{script}");
    }
}

#[test]
fn holes_are_counted() {
    let desk = Desk::new();
    let lease = desk.issue(&WRITABLE, &["sh", "-c", "*"]);
    let script = "cd /repo/a; for i in 1 2 3 4 5 6 7 8; do truncate -s 15M hole$i; done";
    let outcome = desk.outcome(&lease, &["--scratch", "16m"], &["sh", "-c", script]);
    assert_eq!(outcome["failure_class"], "LeaseViolation", "{}", outcome["artifacts"]);
}

#[test]
fn what_is_denied_is_not_made() {
    let desk = Desk::new();
    let flags = [&WRITABLE[..], &["--deny", "repo://a/**/.env", "--deny", "repo://a/f"]].concat();
    let before = desk.tree();
    for script in ["echo x > /repo/a/b/.env", "echo x > /repo/a/f"] {
        let lease = desk.issue(&flags, &["sh", "-c", "*"]);
        let outcome = desk.outcome(&lease, &[], &["sh", "-c", script]);
        assert_eq!(outcome["failure_class"], "LeaseViolation", "{script} {outcome:#}");
        assert_eq!(desk.tree(), before);
    }
    // What is denied is not there, and is not gone for that.
    assert_eq!(desk.script(&flags, "ls -A /repo/a; echo x > /repo/a/b/g"), "b\n");
    assert_eq!(std::fs::read_to_string(desk.repo("a/f")).expect("ours"), "a file\n");
}

#[test]
fn files_keep_their_owner() {
    if !is_root() {
        return skip("only root gives files away");
    }
    let desk = Desk::new();
    for name in ["a", "a/b", "a/f"] {
        chown(desk.repo(name), Some(4001), Some(4002)).expect("root");
    }
    desk.script(&WRITABLE, "cd /repo/a; echo x > f; echo x > b/g; echo x > new");
    let owner = |name: &str| {
        let meta = std::fs::metadata(desk.repo(name)).expect("it is there");
        (meta.uid(), meta.gid())
    };
    assert_eq!((owner("a/f"), owner("a/new"), owner("a/b/g")), ((4001, 4002), (4001, 4002), (0, 0)));
}

#[test]
fn directories_belong_to_the_owner_of_those_above() {
    if !is_root() {
        return skip("only root gives files away");
    }
    let desk = Desk::new();
    chown(desk.repo("a"), Some(4001), Some(4002)).expect("root");
    desk.script(&WRITABLE, "mkdir -p /repo/a/n/m; echo x > /repo/a/n/m/x");
    for name in ["a/n", "a/n/m", "a/n/m/x"] {
        let meta = std::fs::metadata(desk.repo(name)).expect("it is there");
        assert_eq!((meta.uid(), meta.gid()), (4001, 4002), "{name}");
    }
}

#[test]
fn directories_in_each_other_are_refused_or_good() {
    let desk = Desk::new();
    for more in ["repo://a/b", "repo://a"] {
        let flags = [&WRITABLE[..], &["--write", more, "--out"]].concat();
        let path = desk.fresh();
        let ran = desk.go(&[&["lease", "issue", "--actor", "x"], &flags[..], &[text(&path), "--", "true"]].concat());
        if ran.code == 0 {
            assert_eq!(desk.leased(&path, &[], &["true"]).code, 0, "{more}");
        } else {
            ran.refused(&["runner.writable_mounts"]);
        }
    }
}

#[test]
fn a_run_by_an_ordinary_user() {
    if !is_root() {
        return skip("only root makes somebody of whom he wants");
    }
    let desk = Desk::new();
    let lease = desk.issue(&[&WRITABLE[..], &["--runs", "3"]].concat(), &["sh", "-c", "*"]);
    let own = |dir: &std::path::Path| {
        let _ = std::process::Command::new("chown").args(["-R", "54321:54321"]).arg(dir).status();
    };
    own(&desk.dir);
    let dir = std::env::temp_dir().join(format!("hotcell-grants-bin-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("ours");
    set_mode(&dir, 0o755);
    let copy = dir.join("hotcell");
    copy_program(binary(), &copy);
    let as_user = |script: &str| {
        let repo = desk.path("repo");
        let mut command = desk.command(&copy);
        command.args(["exec", "--lease", text(&lease), "--repo", text(&repo), "--", "sh", "-c", script]);
        std::os::unix::process::CommandExt::uid(&mut command, USER);
        std::os::unix::process::CommandExt::gid(&mut command, USER);
        go(&mut command)
    };
    let ran = as_user("cat /repo/a/f; echo changed > /repo/a/f; mkdir /repo/a/n; echo new > /repo/a/n/x");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "a file\n"), "{}", ran.stderr);
    assert_eq!(std::fs::metadata(desk.repo("a/n/x")).expect("it is there").uid(), USER);
    // What he cannot read, he cannot take for gone.
    let ran = as_user("cd /repo/a; chmod 0 n");
    assert_ne!(ran.code, 0, "{}", ran.stdout);
    assert!(desk.repo("a/n/x").exists());
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn two_runs_at_once() {
    let desk = Desk::new();
    let lease = desk.issue(&[&WRITABLE[..], &["--runs", "8"]].concat(), &["sh", "-c", "*"]);
    let repo = desk.path("repo");
    let start = |n: usize| {
        let script = format!("echo {n} > /repo/a/own{n}; echo {n} > /repo/a/f");
        let words = ["exec", "--lease", text(&lease), "--repo", text(&repo), "--", "sh", "-c", &script];
        let mut command = desk.hotcell(&words);
        Going { child: command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts") }
    };
    let all: Vec<Going> = (0..8).map(start).collect();
    let codes: Vec<i32> = all.into_iter().map(|going| going.end().code).collect();
    // Who has passed has left his file, who has not has left none.
    for (n, code) in codes.iter().enumerate() {
        assert_eq!(desk.repo(&format!("a/own{n}")).exists(), *code == 0, "{codes:?}");
    }
    let last = std::fs::read_to_string(desk.repo("a/f")).expect("ours");
    let last: usize = last.trim().parse().expect("a number");
    assert_eq!(codes[last], 0);
    assert!(!desk.tree().iter().any(|(name, _)| name.contains(".hotcell-")), "something is left");
}

#[test]
fn no_change_is_lost() {
    let desk = Desk::new();
    desk.file("a/n", "0\n");
    for n in 0..300 {
        desk.file(&format!("a/many/{n}"), "x");
    }
    let lease = desk.issue(&[&WRITABLE[..], &["--runs", "3"]].concat(), &["sh", "-c", "*"]);
    let repo = desk.path("repo");
    let words = ["--lease", text(&lease), "--repo", text(&repo)];
    let script = "echo ready; cat; n=$(cat /repo/a/n); echo $((n + 1)) > /repo/a/n; for f in /repo/a/many/*; do echo y > $f; done";
    let mut all: Vec<Going> = (0..3).map(|_| desk.start(&words, &["sh", "-c", script])).collect();
    all.iter_mut().for_each(Going::let_go);
    let passed = all.into_iter().map(|going| going.end().code).filter(|code| *code == 0).count();
    let counted = std::fs::read_to_string(desk.repo("a/n")).expect("it is there");
    assert_eq!(counted, format!("{passed}\n"));
}
