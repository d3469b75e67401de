//! A service that root has started: who its processes are, seen from /proc, and that cells hold all the same.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::json;

use crate::harness::*;

/// What the launcher keeps: DAC_OVERRIDE, KILL, SETGID, SETUID, SYS_ADMIN.
const LAUNCHERS: &str = "00000000002000e2";
const NONE: &str = "0000000000000000";

fn status(of: &str) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(format!("/proc/{of}/status")).expect("it lives");
    let line =
        |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().replace('\t', " ")));
    text.lines().filter_map(line).collect()
}

fn nobody_but(id: u32) -> String {
    format!("{id} {id} {id} {id}")
}

fn all_below(dir: &Path, look: &mut impl FnMut(&Path)) {
    look(dir);
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        match entry.file_type().expect("it has one").is_dir() {
            true => all_below(&entry.path(), look),
            false => look(&entry.path()),
        }
    }
}

fn skipped() -> bool {
    if !is_root() {
        eprintln!("skipped: only root has something to give up");
    }
    !is_root()
}

#[test]
fn nothing_that_anybody_sends_is_read_by_root() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let service = place.serve(&[]);
    service.sleeper();
    let id = std::fs::metadata(place.state()).expect("it is made").uid();
    assert!(id > 0x6000_0000, "an id of its own: {id}");
    let pid = service.pid();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives").flatten();
    let threads: Vec<_> = threads.map(|thread| thread.file_name().into_string().expect("a number")).collect();
    assert!(threads.len() > 2, "{threads:?}");
    for thread in threads {
        let status = status(&format!("{pid}/task/{thread}"));
        // What cells use up is counted as theirs: it acts as their user, and is counted as another.
        let acts = format!("{} {id} {id} {id}", 0x6fff_fffe);
        assert_eq!((&status["Uid"], &status["Gid"]), (&acts, &nobody_but(id)), "{}", status["Name"]);
        assert_eq!((&*status["Groups"], &*status["NoNewPrivs"]), ("", "1"));
        assert_eq!((&*status["CapEff"], &*status["CapPrm"], &*status["CapAmb"]), (NONE, NONE, NONE));
    }
    let [launcher] = children(pid)[..] else { panic!("one child") };
    // For a moment it acts as the owner of a cell that it clones.
    let mut launchers = BTreeMap::new();
    wait_until("the launcher is at rest", || {
        launchers = status(&launcher.to_string());
        launchers["Uid"] == "0 0 0 0"
    });
    assert_eq!(launchers["Groups"], "");
    assert_eq!((&*launchers["CapEff"], &*launchers["CapPrm"], &*launchers["CapInh"]), (LAUNCHERS, LAUNCHERS, NONE));
    // One that was cloned a moment ago has not become anybody yet.
    wait_until("cells are of the service's user", || {
        let cells = children(launcher);
        !cells.is_empty() && cells.iter().all(|cell| status(&cell.to_string())["Uid"] == nobody_but(id))
    });
}

/// What whoever started it had open is not the service's.
#[test]
fn no_file_of_who_starts_it_stays_open() {
    let place = Place::new();
    let secret = place.dir.join("secret");
    std::fs::write(&secret, "x").expect("our own directory");
    let open = |words: &[&str]| {
        let mut shell = std::process::Command::new("sh");
        let hotcell = place.hotcell(words);
        shell
            .args(["-c", "exec 9<\"$0\"; exec \"$@\""])
            .arg(&secret)
            .arg(hotcell.get_program())
            .args(hotcell.get_args());
        shell.envs(hotcell.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).spawn().expect("sh starts")
    };
    let mut child = open(&["serve", "--listen", "127.0.0.1:0"]);
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().expect("piped"));
    std::io::BufRead::read_line(&mut out, &mut line).expect("it says something");
    assert!(line.starts_with("listening"), "{line}");
    for pid in [vec![child.id()], children(child.id())].concat() {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives").flatten();
        let open: Vec<_> = files.filter_map(|file| std::fs::read_link(file.path()).ok()).collect();
        assert!(!open.is_empty() && !open.contains(&secret), "{open:?}");
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn without_root_every_verdict_is_proved_as_with_it() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let mounts = host_mounts();
    let service = place.serve(&[]);
    let python = |code: &str, more: serde_json::Value| {
        let mut body = json!({ "code": code, "environment": { "HOTCELL_TEST_MARK": place.mark } });
        body.as_object_mut().expect("it is").extend(more.as_object().cloned().unwrap_or_default());
        service.run(&body)
    };
    let outcome = python("print(len(bytearray(1 << 20)))", json!({ "limits": { "memory_bytes": 64 << 20 } }));
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&json!("pass"), &json!("1048576\n")));
    // Groups hold as they do for root: nothing is weaker, and no id is the cell's own.
    assert_eq!(outcome["degraded"], json!([]), "{outcome}");
    for (code, limits, class) in [
        ("a = bytearray(400 << 20)", json!({ "memory_bytes": 64 << 20 }), "MemoryLimitViolation"),
        (
            "import os, signal\nfor i in range(50):\n    if os.fork() == 0: signal.pause()",
            json!({ "processes": 10 }),
            "ProcessLimitViolation",
        ),
        ("while True: pass", json!({ "cpu_ms": 300 }), "TimeoutViolation"),
        ("import socket\nsocket.create_connection(('127.0.0.1', 22))", json!({}), "NetworkAccessViolation"),
        ("open('/usr/x', 'w')", json!({}), "FilesystemWriteViolation"),
        ("import ctypes\nctypes.CDLL(None).ptrace(0, 0, 0, 0)", json!({}), "SyscallViolation"),
        // A directory that only the program may look into: where its link leads is seen all the same.
        (
            "import os, tempfile\nd = tempfile.mkdtemp()\nos.symlink('/usr/x', d + '/l')\nopen(d + '/l', 'w')",
            json!({}),
            "FilesystemWriteViolation",
        ),
    ] {
        let outcome = python(code, json!({ "limits": limits }));
        assert_eq!(outcome["failure_class"], class, "{code}: {outcome}");
    }
    let closed =
        "import os\nos.mkdir('d', 0o700)\nopen('d/f', 'w').write('mine')\nos.chmod('d/f', 0o600)\nprint('done')";
    let outcome = python(closed, json!({ "collect": ["**"] }));
    assert_eq!((&outcome["status"], &outcome["artifacts"][0]["path"]), (&json!("pass"), &json!("d/f")), "{outcome}");
    service.signal("TERM");
    assert_eq!(service.wait(), Some(0));
    nothing_left(&place.mark, &mounts);
}

#[test]
fn a_state_that_root_has_begun_is_handed_over_and_root_can_still_use_it() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let before = place.key(&[]);
    place.define("mine", "");
    assert_eq!(std::fs::metadata(place.state()).expect("it is made").uid(), 0);
    let mut service = place.serve(&[]);
    let id = std::fs::metadata(place.state()).expect("it is there").uid();
    assert_ne!(id, 0);
    let after = place.key(&["--policy", "mine"]);
    place.define("later", "");
    for key in [before, after] {
        service.key = Some(key);
        assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    }
    assert_eq!(place.records(&[]).len(), 2);
    assert_eq!(place.go(&["killswitch", "on", "--reason", "a test"]).code, 0);
    assert_eq!(service.post("/v1/runs", &json!({ "command": ["true"] })).status, 403);
    place.is_whole();
    all_below(&place.state(), &mut |path| {
        let meta = std::fs::symlink_metadata(path).expect("it is there");
        assert_eq!((meta.uid(), meta.gid()), (id, id), "{}", path.display());
    });
}

#[test]
fn a_state_behind_a_closed_directory_is_said_to_be() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let closed = place.dir.join("closed");
    let open_to = |mode| std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(mode)).expect("ours");
    std::fs::create_dir(&closed).expect("our own directory");
    open_to(0o700);
    let (state, above) = (closed.join("state"), format!("`{}` is closed", closed.display()));
    let state = state.to_str().expect("UTF-8");
    let ran = place.go(&["serve", "--listen", "127.0.0.1:0", "--state-dir", state]);
    let id = std::fs::metadata(state).expect("it is made").uid().to_string();
    ran.refused(&[&id, state, &above, "chmod", "--user", "--state-dir"]);
    place.go(&["keys", "list", "--state-dir", state]).refused(&[&id, state, &above, "chmod"]);
    open_to(0o711);
    let service = place.serve(&["--state-dir", state]);
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
}

#[test]
fn who_the_service_is_can_be_said() {
    let place = Place::new();
    if !is_root() {
        let ran = place.go(&["serve", "--user", "daemon", "--listen", "127.0.0.1:0"]);
        assert!(ran.code == 125 && ran.stderr.contains("needs root"), "{}", ran.stderr);
        return;
    }
    let acts = |service: &Service<'_>| {
        let ids = status(&service.pid().to_string())["Uid"].clone();
        ids.split(' ').nth(1).expect("four ids").to_owned()
    };
    let service = place.serve(&["--user", "root"]);
    assert_eq!(acts(&service), "0");
    drop(service);
    let service = place.serve(&["--user", "daemon"]);
    assert_eq!(acts(&service), "1");
    drop(service);
    // Whose the state is, it stays; nobody takes it away from them.
    let service = place.serve(&[]);
    assert_eq!(acts(&service), "1");
    drop(service);
    for (user, word) in [("31337", "belongs to the user 1"), ("nobody-of-that-name", "not in /etc/passwd")] {
        let ran = place.go(&["serve", "--user", user, "--listen", "127.0.0.1:0"]);
        assert!(ran.code == 125 && ran.stderr.contains(word), "{} {}", ran.code, ran.stderr);
    }
}

/// In mounts of its own, where `/var/lib` is nobody else's.
#[test]
fn what_root_says_without_a_state_is_about_its_service() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let script = r#"
        mount -t tmpfs none /var/lib
        hotcell keys create --tenant team > /dev/null
        chown -R 12345:12345 /var/lib/hotcell
        hotcell killswitch on --reason trial && test ! -e "$HOME/.local" && hotcell killswitch status
        hotcell records --state-dir /var/lib/hotcell && hotcell policy list > /dev/null && hotcell killswitch off
        mkdir -p "$HOME/.local/state/hotcell" && ! hotcell killswitch on --reason trial"#;
    let mut command = std::process::Command::new("unshare");
    let binary = binary();
    let path = format!("{}:{}", binary.parent().expect("a directory").display(), env!("PATH"));
    command.args(["--mount", "sh", "-ec", script]).env("PATH", path).env("HOME", place.dir.join("home"));
    command.env("USER", "somebody").env_remove("HOTCELL_STATE_DIR").env_remove("XDG_STATE_HOME");
    let output = command.output().expect("unshare is there");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said} {errors}");
    // Not the id that it becomes for it.
    assert!(said.contains("by somebody") && !said.contains("12345"), "{said}");
    let two = "there are two states, `";
    assert!(errors.contains(two) && errors.contains("`/var/lib/hotcell` of the service: name one"), "{errors}");
}
