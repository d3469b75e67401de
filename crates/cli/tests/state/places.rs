//! Where it is kept: nowhere unless it is named, and in no place that others can write or that cannot be used.

use std::os::unix::fs::chown;

use crate::harness::*;

#[test]
fn without_a_directory_nothing_is_written() {
    let place = Place::new();
    for words in
        [&["exec", "--", "true"][..], &["run", "--code", "print(1)"], &["exec", "--policy", "balanced", "--", "true"]]
    {
        let ran = go(place.hotcell(words).env_remove("HOTCELL_STATE_DIR"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let ran = go(place.hotcell(&["exec", "--policy", "restricted", "--", "true"]).env_remove("HOTCELL_STATE_DIR"));
    ran.refused(&["restricted"]);
    assert_eq!(place.contents(""), []);
    assert!(!place.path("home/.local").exists());
    // In the usual place, once it is there.
    let usual = place.path("home/.local/state/hotcell");
    std::fs::create_dir_all(&usual).expect("our own directory");
    go(place.hotcell(&["exec", "--", "true"]).env_remove("HOTCELL_STATE_DIR"));
    let listed = go(place.hotcell(&["records", "--output", "json"]).env_remove("HOTCELL_STATE_DIR")).json();
    assert_eq!(listed["records"].as_array().map(Vec::len), Some(1), "{listed}");
    // The flag goes before the environment.
    let flag = place.path("flag");
    place.pass(&["--state-dir", flag.to_str().expect("UTF-8")]);
    assert!(flag.join("records.db").exists() && !place.state().exists());
}

#[test]
fn a_directory_that_others_can_write_is_not_used() {
    let place = Place::new();
    for mode in [0o770, 0o707, 0o777, 0o1777, 0o720, 0o702] {
        std::fs::create_dir_all(place.state()).expect("our own directory");
        set_mode(&place.state(), mode);
        place.runs_nothing(&["state", "written by others"]);
        place.go(&["records"]).refused(&["written by others"]);
        place.go(&["audit", "verify"]).refused(&["written by others"]);
        assert_eq!(place.contents("state"), [], "{mode:o}");
    }
    set_mode(&place.state(), 0o755);
    place.pass(&[]);
}

#[test]
fn a_directory_of_another_is_not_used() {
    if !is_root() {
        return skip("only root can give a directory away");
    }
    let place = Place::new();
    std::fs::create_dir_all(place.state()).expect("our own directory");
    chown(place.state(), Some(USER), Some(USER)).expect("root may");
    place.runs_nothing(&["state", "somebody else"]);
    assert_eq!(place.contents("state"), []);
}

#[test]
fn a_place_that_cannot_be_used() {
    let place = Place::new();
    let file = place.write("file", "not a directory");
    for dir in [file.clone(), file.join("below"), "/proc/nothing".into(), "/sys/state".into()] {
        let ran = go(place.hotcell(&["exec", "--", "echo", "it ran"]).env("HOTCELL_STATE_DIR", &dir));
        ran.refused(&["state", dir.to_str().expect("UTF-8")]);
    }
    assert_eq!(std::fs::read(&file).expect("ours"), b"not a directory");
}

#[test]
fn a_directory_that_cannot_be_written() {
    if !is_root() {
        return skip("only root can become another user");
    }
    let place = Place::new();
    std::fs::create_dir_all(place.state()).expect("our own directory");
    chown(place.state(), Some(USER), Some(USER)).expect("root may");
    set_mode(&place.state(), 0o500);
    let user = USER.to_string();
    let words = ["--reuid", &user, "--regid", &user, "--clear-groups"];
    let mut command = place.command("setpriv");
    go(command.args(words).arg(binary()).args(["exec", "--", "echo", "it ran"])).refused(&["state"]);
    assert_eq!(place.contents("state"), []);
}

#[test]
fn a_database_that_is_none() {
    let place = Place::new();
    place.pass(&[]);
    let log = place.contents("state/audit");
    for garbage in
        [&b"garbage, and not a database of any kind, for more than a hundred bytes. ".repeat(50)[..], &[0; 8192]]
    {
        for name in ["records.db", "records.db-wal", "records.db-shm"] {
            let _ = std::fs::remove_file(place.state().join(name));
        }
        place.write("state/records.db", garbage);
        place.runs_nothing(&["records", "nothing runs"]);
        place.go(&["records"]).refused(&["records"]);
        place.go(&["stats"]).refused(&["records"]);
        assert_eq!(std::fs::read(place.state().join("records.db")).expect("ours"), garbage);
    }
    assert_eq!(place.contents("state/audit"), log);
}
