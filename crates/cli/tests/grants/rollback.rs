//! Taking a run back: content, mode, absence; and packs that were damaged.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::desk::*;
use crate::harness::*;

/// A desk on which a run has changed one file, made one and removed one; the run's id, and the tree before it.
fn changed() -> (Desk, String, Vec<(String, String)>) {
    let desk = Desk::new();
    desk.file("a/gone", "gone\n");
    set_mode(&desk.repo("a/gone"), 0o600);
    set_mode(&desk.repo("a/f"), 0o755);
    let before = desk.tree();
    let script = "cd /repo/a; echo changed > f; chmod 644 f; rm gone; mkdir n; echo new > n/x";
    desk.script(&["--allow", "repo://a/**", "--write", "repo://a"], script);
    assert_ne!(desk.tree(), before);
    let id = desk.run_id();
    (desk, id, before)
}

fn pack(desk: &Desk, id: &str) -> PathBuf {
    let staged = std::fs::read_dir(desk.state().join("staging_runs")).expect("ours").flatten();
    staged.map(|lease| lease.path().join(id).join("rollback")).find(|dir| dir.exists()).expect("it is there")
}

fn mode(desk: &Desk, name: &str) -> u32 {
    std::fs::metadata(desk.repo(name)).expect("it is there").mode() & 0o7777
}

#[test]
fn content_mode_and_absence() {
    let (desk, id, before) = changed();
    let said = desk.done(&["rollback", &id, "--by", "me"]);
    assert_eq!(said, format!("3 files of {} are as they were before", desk.path("repo").display()));
    assert_eq!(desk.tree(), before);
    assert_eq!((mode(&desk, "a/f"), mode(&desk, "a/gone")), (0o755, 0o600));
    assert!(!desk.repo("a/n").exists());
    // Twice is as good as once.
    let said: Value = serde_json::from_str(&desk.done(&["rollback", &id, "--output", "json"])).expect("JSON");
    assert_eq!((&said["run_id"], &said["files"]), (&id.as_str().into(), &3.into()));
    assert_eq!(desk.tree(), before);
    let events = |name: &str| desk.events(&format!("rollback_event.{name}"));
    assert_eq!((events("BEGUN").len(), events("RESTORED").len(), events("FAILED").len()), (2, 2, 0));
    assert_eq!((&events("BEGUN")[0]["by"], &events("BEGUN")[0]["run_id"]), (&"me".into(), &id.as_str().into()));
    desk.is_whole();
}

#[test]
fn a_tree_that_moved_on() {
    let (desk, id, before) = changed();
    desk.file("a/f", "somebody's own\n");
    let moved = desk.tree();
    desk.go(&["rollback", &id]).refused(&["moved on", "a/f", "--force"]);
    assert_eq!(desk.tree(), moved, "nothing is touched before all is looked at");
    assert_eq!(desk.events("rollback_event.FAILED").len(), 1);
    desk.done(&["rollback", &id, "--force"]);
    assert_eq!(desk.tree(), before);
    // What came beside the run stays.
    let (desk, id, _) = changed();
    desk.file("a/n/theirs", "kept\n");
    desk.done(&["rollback", &id]);
    assert!(desk.repo("a/n/theirs").exists() && !desk.repo("a/n/x").exists());
    // One that is gone already has moved on too.
    let (desk, id, before) = changed();
    std::fs::remove_file(desk.repo("a/f")).expect("ours");
    desk.go(&["rollback", &id]).refused(&["moved on", "a/f"]);
    desk.done(&["rollback", &id, "--force"]);
    assert_eq!(desk.tree(), before);
    // A mode counts.
    let (desk, id, _) = changed();
    set_mode(&desk.repo("a/f"), 0o777);
    desk.go(&["rollback", &id]).refused(&["moved on", "a/f"]);
}

#[test]
fn an_interrupted_rollback_goes_on() {
    let (desk, id, before) = changed();
    // As if it had been killed behind the first file.
    desk.file("a/f", "a file\n");
    set_mode(&desk.repo("a/f"), 0o755);
    desk.done(&["rollback", &id]);
    assert_eq!(desk.tree(), before);
}

#[test]
fn a_link_in_the_place_of_a_file() {
    for (name, force) in [("a/f", false), ("a/f", true), ("a/n", false), ("a/n", true)] {
        let (desk, id, _) = changed();
        std::fs::create_dir(desk.path("beside")).expect("ours");
        desk.write("beside/x", "kept\n");
        let path = desk.repo(name);
        let target = if name == "a/f" { "../../beside/x" } else { "../../beside" };
        let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        desk.link(target, name);
        let words = ["rollback", &id, "--force"];
        let ran = desk.go(if force { &words } else { &words[..2] });
        assert!(force || ran.code == 125, "{}", ran.stdout);
        assert_eq!(std::fs::read_to_string(desk.path("beside/x")).expect("it is there"), "kept\n");
        assert_eq!(desk.contents("beside").len(), 1);
    }
}

#[test]
fn a_link_in_the_place_of_a_file_is_named_and_can_be_forced() {
    let (desk, id, before) = changed();
    std::fs::remove_file(desk.repo("a/f")).expect("ours");
    desk.link("top", "a/f");
    desk.go(&["rollback", &id]).refused(&["moved on", "a/f"]);
    desk.done(&["rollback", &id, "--force"]);
    assert_eq!(desk.tree(), before);
}

#[test]
fn a_damaged_pack_restores_nothing() {
    let names = {
        let (desk, id, _) = changed();
        let pack = pack(&desk, &id);
        let files = std::fs::read_dir(pack).expect("ours").flatten().map(|e| e.file_name());
        files.map(|name| name.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names.len(), 3, "{names:?}");
    for name in &names {
        for damage in ["gone", "empty", "changed", "garbage", "directory"] {
            let (desk, id, _) = changed();
            let (tree, path) = (desk.tree(), pack(&desk, &id).join(name));
            let mut bytes = std::fs::read(&path).expect("it is there");
            std::fs::remove_file(&path).expect("ours");
            let last = bytes.len() - 1;
            bytes[if name == "manifest.json" { 0 } else { last }] ^= 1;
            match damage {
                "gone" => {}
                "empty" => std::fs::write(&path, "").expect("ours"),
                "changed" => std::fs::write(&path, &bytes).expect("ours"),
                "garbage" => std::fs::write(&path, [0xff; 100_000]).expect("ours"),
                _ => std::fs::create_dir(&path).expect("ours"),
            }
            for words in [&["rollback", &id][..], &["rollback", &id, "--force"]] {
                desk.go(words).refused(&["rollback pack"]);
                assert_eq!(desk.tree(), tree, "{name} {damage}");
            }
        }
    }
}

#[test]
fn a_manifest_that_names_other_paths() {
    let (desk, id, _) = changed();
    let path = pack(&desk, &id).join("manifest.json");
    let (good, tree) = (read(&path), desk.tree());
    let whole = std::fs::read(&path).expect("ours");
    desk.write("outside", "kept\n");
    for name in
        ["../outside", "/etc/passwd", "top", "a/../top", "a/../../outside", "a//f", "a/./f", "", "a/", "ab/f", "a\0"]
    {
        let mut manifest = good.clone();
        manifest["changes"][0]["path"] = name.into();
        std::fs::write(&path, manifest.to_string()).expect("ours");
        desk.go(&["rollback", &id, "--force"]).refused(&["damaged"]);
        assert_eq!(desk.tree(), tree, "{name}");
    }
    for (field, value) in [
        ("/changes/0/before/sha256", json!("../../../../x")),
        ("/changes/0/before/sha256", json!("A".repeat(64))),
        ("/changes/0/before/mode", json!(-1)),
        ("/changes", json!({})),
        ("/writable", Value::Null),
        ("/run_id", json!(1)),
    ] {
        let mut manifest = good.clone();
        *manifest.pointer_mut(field).expect("it is there") = value.clone();
        std::fs::write(&path, manifest.to_string()).expect("ours");
        desk.go(&["rollback", &id, "--force"]).refused(&["damaged"]);
        assert_eq!(desk.tree(), tree, "{field} {value}");
    }
    assert_eq!(std::fs::read(desk.path("outside")).expect("ours"), b"kept\n");
    std::fs::write(&path, whole).expect("ours");
    desk.done(&["rollback", &id]);
}

#[test]
fn a_manifest_that_is_not_what_was_written_down() {
    let (desk, id, _) = changed();
    let path = pack(&desk, &id).join("manifest.json");
    let mut manifest = read(&path);
    manifest["writable"] = json!([""]);
    manifest["changes"] = json!([{ "path": "top", "before": null, "after": null }]);
    std::fs::write(&path, manifest.to_string()).expect("ours");
    desk.go(&["rollback", &id, "--force"]).refused(&["damaged"]);
    assert!(desk.repo("top").exists());
}

#[test]
fn another_repository_and_none() {
    let (desk, id, before) = changed();
    let moved = desk.path("moved");
    std::fs::rename(desk.path("repo"), &moved).expect("ours");
    desk.go(&["rollback", &id]).refused(&["repository", "repo"]);
    desk.done(&["rollback", &id, "--repo", text(&moved)]);
    std::fs::rename(&moved, desk.path("repo")).expect("ours");
    assert_eq!(desk.tree(), before);
    for id in ["gone", "..", "../x", "", "a/b", "\u{1b}[31m"] {
        desk.go(&["rollback", id]).refused(&[]);
    }
}

/// Killed while it carries out eight hundred changes: wherever that was, all of it can be taken back.
#[test]
fn a_run_that_was_killed_while_it_changed_the_repository() {
    let desk = Desk::new();
    for n in 0..400 {
        desk.file(&format!("a/many/{n}"), "before\n");
    }
    let before = desk.tree();
    let lease = desk.issue(&["--allow", "repo://a/**", "--write", "repo://a"], &["sh", "-c", "*"]);
    let repo = desk.path("repo");
    let script = "cd /repo/a/many; for f in *; do echo after > $f; echo new > new$f; done; echo ready";
    let mut going = desk.start(&["--lease", text(&lease), "--repo", text(&repo)], &["sh", "-c", script]);
    let changed = || std::fs::read(desk.repo("a/many/0")).is_ok_and(|bytes| bytes == b"after\n");
    wait_until("it has begun", changed);
    let _ = going.child.kill();
    going.end();
    assert_ne!(desk.tree(), before);
    let id = desk.run_id();
    desk.done(&["rollback", &id]);
    let left: Vec<_> = desk.tree().into_iter().filter(|(name, _)| !name.contains(".hotcell-")).collect();
    assert_eq!(left, before);
}

#[test]
fn directories_that_were_there_stay() {
    let desk = Desk::new();
    std::fs::create_dir(desk.repo("w/empty")).expect("ours");
    desk.script(&["--allow", "repo://w/**", "--write", "repo://w"], "mkdir -p /repo/w/empty; echo x > /repo/w/empty/x");
    desk.done(&["rollback", &desk.run_id()]);
    assert!(desk.repo("w/empty").exists() && !desk.repo("w/empty/x").exists());
}

#[test]
fn all_of_a_mode_is_restored() {
    let desk = Desk::new();
    let path = desk.file("w/tool", "before");
    set_mode(&path, 0o2755);
    desk.script(&["--allow", "repo://w/**", "--write", "repo://w"], "echo after > /repo/w/tool");
    desk.done(&["rollback", &desk.run_id()]);
    assert_eq!(mode(&desk, "w/tool"), 0o2755);
}
