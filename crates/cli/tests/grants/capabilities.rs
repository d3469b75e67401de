//! The operator's switches: what is off is refused by its name, and only the operator's own file counts.

use std::os::unix::fs::chown;
use std::path::Path;

use crate::desk::*;
use crate::harness::*;

fn switch(desk: &Desk, lines: &str) {
    std::fs::write(desk.state().join("hotcell.toml"), format!("[capabilities]\n{lines}\n")).expect("ours");
}

/// Nothing ran, the switch is named, and it is written down.
#[track_caller]
fn is_off(desk: &Desk, ran: &Ran, name: &str) {
    ran.refused(&[&format!("`{name}`"), "not enabled", "hotcell.toml"]);
    assert_eq!(desk.newest()["status"], "denied");
    assert!(!desk.repo("w/trace").exists());
}

#[test]
fn each_switch_has_its_name() {
    let desk = Desk::new();
    let lease = desk.for_trace(&["--runs", "9"]);
    let source = desk.write("work/a.py", "print('it ran')");
    let run = || desk.go(&["run", text(&source)]);
    let exec = || desk.go(&["exec", "--", "echo", "it ran"]);
    let leased = || desk.leased(&lease, &[], &TRACE);
    let verify = || desk.go(&["verify", text(&source)]);
    switch(&desk, "run = false");
    is_off(&desk, &run(), "run");
    assert_eq!((exec().code, verify().code), (0, 0));
    switch(&desk, "exec = false");
    is_off(&desk, &exec(), "exec");
    assert_eq!(run().code, 0);
    switch(&desk, "verify = false");
    is_off(&desk, &verify(), "verify");
    assert_eq!(exec().code, 0);
    switch(&desk, "exec_with_lease = false");
    is_off(&desk, &leased(), "exec_with_lease");
    assert_eq!(exec().code, 0);
    switch(&desk, "writable_mounts = false");
    is_off(&desk, &leased(), "writable_mounts");
    let words = ["lease", "issue", "--actor", "x", "--allow", "repo://w/**", "--write", "repo://w", "--", "true"];
    desk.go(&words).refused(&["`writable_mounts`"]);
    switch(&desk, "lease_required = true");
    for (ran, said) in [(run(), "--lease"), (exec(), "--lease"), (verify(), "`verify`")] {
        ran.refused(&[said]);
        assert_eq!(desk.newest()["status"], "denied");
    }
    assert_eq!(leased().code, 0);
    switch(&desk, "");
    assert_eq!((run().code, exec().code, verify().code), (0, 0, 0));
    desk.is_whole();
}

#[test]
fn a_network_is_a_switch() {
    let desk = Desk::new();
    switch(&desk, "network = false");
    desk.define("open", "");
    for network in ["restricted", "full"] {
        let ran = desk.go(&["exec", "--network", network, "--", "echo", "it ran"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{network}");
    }
    assert_eq!(desk.go(&["exec", "--network", "local", "--", "echo", "it ran"]).code, 0);
}

#[test]
fn how_long_a_lease_may_be() {
    let desk = Desk::new();
    let issue = |time: &str| desk.go(&["lease", "issue", "--actor", "x", "--for", time, "--", "true"]);
    assert_eq!(issue("10m").code, 0);
    issue("11m").refused(&["10 at most"]);
    let long = {
        switch(&desk, "max_lease_minutes = 60");
        desk.issue(&["--for", "60m"], &["echo", "it ran"])
    };
    issue("61m").refused(&["60 at most"]);
    switch(&desk, "max_lease_minutes = 1");
    desk.is_denied(&desk.leased(&long, &[], &["echo", "it ran"]), "too_long", &["1 at most"]);
    for minutes in ["0", "1441", "-1", "1.5", "4294967296", "\"1\""] {
        switch(&desk, &format!("max_lease_minutes = {minutes}"));
        issue("1m").refused(&["hotcell.toml"]);
    }
    for time in ["0s", "-1s", "1e400s", "x", "99999999999999999999h"] {
        switch(&desk, "");
        assert_eq!(issue(time).code, 125, "{time}");
    }
}

#[test]
fn a_file_that_is_wrong_lets_nothing_run() {
    let desk = Desk::new();
    let path = desk.state().join("hotcell.toml");
    let deep = format!("x = {}", "[".repeat(30_000));
    for (text_, part) in [
        ("[capabilities]\nfly = true", "fly"),
        ("[capabilities]\nrun = 1", ""),
        ("[capabilities]\nrun = \"yes\"", ""),
        ("[capability]\nrun = true", "capability"),
        ("capabilities = 1", ""),
        ("[capabilities]\nrun = true\nrun = true", ""),
        ("[capabilities", ""),
        ("\0", ""),
        (&deep, ""),
    ] {
        std::fs::write(&path, text_).expect("ours");
        desk.runs_nothing(&["hotcell.toml", part]);
    }
    for bytes in [&b"\xff\xfe"[..], &[b'#'; 70_000]] {
        std::fs::write(&path, bytes).expect("ours");
        desk.runs_nothing(&["hotcell.toml"]);
    }
    std::fs::remove_file(&path).expect("ours");
    std::fs::create_dir(&path).expect("ours");
    desk.runs_nothing(&["hotcell.toml"]);
    std::fs::remove_dir(&path).expect("ours");
    desk.pass(&[]);
}

#[test]
fn a_file_that_others_can_write_counts_for_nothing() {
    let desk = Desk::new();
    switch(&desk, "");
    let path = desk.state().join("hotcell.toml");
    for mode in [0o666, 0o620, 0o602] {
        set_mode(&path, mode);
        desk.runs_nothing(&["hotcell.toml", "writable by others"]);
    }
    set_mode(&path, 0o644);
    desk.pass(&[]);
    if is_root() {
        chown(&path, Some(USER), None).expect("root");
        desk.runs_nothing(&["hotcell.toml", "yours or root's"]);
    }
}

#[test]
fn only_the_operators_own_file_counts() {
    let desk = Desk::new();
    let off = "[capabilities]\nexec = false\nfly = true\n";
    // Where it runs, above that, and beside the repository: nobody looks there.
    for dir in ["work", ".", "repo", "home"] {
        desk.write(&format!("{dir}/hotcell.toml"), off);
    }
    desk.pass(&[]);
    // The home is the second place, the state directory the first.
    let home = desk.path("home/.config/hotcell");
    std::fs::create_dir_all(&home).expect("ours");
    std::fs::write(home.join("hotcell.toml"), "[capabilities]\nexec = false\n").expect("ours");
    is_off(&desk, &desk.go(&["exec", "--", "echo", "it ran"]), "exec");
    let elsewhere = desk.path("elsewhere");
    let mut command = desk.hotcell(&["exec", "--", "echo", "it ran"]);
    assert_eq!(go(command.env("XDG_CONFIG_HOME", &elsewhere)).code, 0);
    switch(&desk, "run = false");
    desk.pass(&[]);
    assert!(Path::new(&home).exists());
}
