//! Docker and Podman, by an engine that `tests/engine` has started: all other tests run with it, too (`make test-engines`).

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::harness::*;

const LABEL: &str = "hotcell.owner";

/// The engine's socket, where there is one.
fn engine() -> Option<PathBuf> {
    let socket = std::env::var("DOCKER_HOST").ok()?.strip_prefix("unix://").map(PathBuf::from);
    let here = std::env::var_os("HOTCELL_TEST_ENGINE").is_some() && backend().is_none();
    if !here {
        skip("no engine is started for this: `tests/engine docker COMMAND` does");
    }
    socket.filter(|_| here)
}

fn docker(program: &[&str]) -> Cell {
    exec(program).flag("--backend", "docker")
}

/// A request to the engine, past hotcell.
fn ask(method: &str, path: &str, body: &[u8]) -> (u16, Value) {
    let socket = engine().expect("the test has asked for one");
    let mut stream = UnixStream::connect(socket).expect("the engine is there");
    let kind = if body.starts_with(b"{") { "application/json" } else { "application/x-tar" };
    let length = body.len();
    let head = format!(
        "{method} /v1.40{path} HTTP/1.0\r\nHost: e\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).expect("the engine reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the engine answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("it speaks HTTP");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// The ids and owners of all containers of hotcell's.
fn containers() -> Vec<(String, String)> {
    let (status, list) = ask("GET", "/containers/json?all=true", b"");
    assert_eq!(status, 200, "{list}");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let ours = |one: &Value| Some((text(&one["Id"])?, text(&one["Labels"][LABEL])?));
    list.as_array().into_iter().flatten().filter_map(ours).collect()
}

fn of(pid: u32) -> Vec<String> {
    let own = |owner: &str| owner.split(' ').next() == Some(&pid.to_string());
    containers().into_iter().filter(|(_, owner)| own(owner)).map(|(id, _)| id).collect()
}

/// An image of this name with busybox in it, and links that lead out of it.
fn make_image(cell: &Cell, name: &str, changes: &str, links: &[(&str, &str)]) {
    let root = cell.dir().join("input/image");
    std::fs::create_dir_all(root.join("bin")).expect("the test's own directory");
    std::fs::create_dir_all(root.join("a/b")).expect("the test's own directory");
    std::fs::copy("/bin/busybox", root.join("bin/busybox")).expect("busybox-static is installed");
    for (at, to) in links {
        std::os::unix::fs::symlink(to, root.join(at)).expect("the test's own directory");
    }
    // Whoever starts with it has started something of the image's.
    let sleeps = "#!/bin/busybox sh\nexec /bin/busybox sleep 1000\n";
    for name in ["evil", "a/b/init"] {
        std::fs::write(root.join(name), sleeps).expect("the test's own directory");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(root.join(name), mode).expect("the test's own file");
    }
    let tar =
        std::process::Command::new("tar").arg("-C").arg(&root).args(["-cf", "-", "."]).output().expect("tar is there");
    let (status, said) = ask("POST", &format!("/images/create?fromSrc=-&repo={name}{changes}"), &tar.stdout);
    assert_eq!(status, 200, "{said}");
}

#[test]
fn a_run_leaves_no_container() {
    let Some(_) = engine() else { return };
    let ran = docker(&["/bin/sh", "-c", "echo in > /work/x; cat /work/x; exit 7"]).run();
    ran.exits(7);
    assert_eq!(ran.out(), "in\n");
    assert_eq!(ran.outcome["runtime_config"]["backend"], std::env::var("HOTCELL_TEST_ENGINE").expect("there is one"));
    let going = docker(&["/bin/sh", "-c", "echo ready; exec sleep 1000"]).start();
    let pid = going.child.id();
    going.wait_for_name("sleep");
    assert_eq!(of(pid).len(), 1);
    send(pid, "KILL");
    going.finish();
    wait_until("the engine has removed it", || of(pid).is_empty());
}

#[test]
fn an_image_by_its_name_and_by_its_digest() {
    let Some(_) = engine() else { return };
    let looks = "/bin/busybox ls / | /bin/busybox sort; echo $GREETING; /bin/busybox ls /out/ 2>&1; echo x > /bin/y";
    let cell = docker(&["/bin/busybox", "sh", "-c", looks]);
    make_image(&cell, "localhost/hotcell-test", "&changes=ENV%20GREETING%3Dhello", &[("out", "/proc/1/root")]);
    let (_, about) = ask("GET", "/images/localhost%2Fhotcell-test%3Alatest/json", b"");
    let id = about["Id"].as_str().expect("it has one").to_owned();
    let ran = cell.flag("--image", "localhost/hotcell-test:latest").run();
    ran.violates("FilesystemWriteViolation");
    let said = ran.outcome["stdout"].as_str().expect("text");
    assert!(said.starts_with("a\nbin\ndev\netc\nevil\nout\nproc\nsrc\ntmp\nwork\nhello\n"), "{said}");
    assert!(said.contains("Permission denied"), "init's root is not the program's: {said}");
    assert_eq!(ran.outcome["runtime_config"]["image"], id);
    let ran = docker(&["/bin/busybox", "true"]).flag("--image", id).run();
    ran.passes();
    for none in ["localhost/none-of-that-name", "not a name", "../../etc/passwd"] {
        let ran = docker(&["true"]).flag("--image", none).run();
        assert_eq!(ran.code, 125, "{none}: {}", ran.stderr);
        assert!(ran.stderr.contains("is no image that"), "{none}: {}", ran.stderr);
    }
}

/// The engine mounts our init, and the kernel executes it, by a name: what an image has there, or mounts there, is not to be it.
#[test]
fn an_image_is_never_the_init_of_a_container() {
    let Some(_) = engine() else { return };
    for (n, (changes, link)) in [
        ("", "/dev/fd/../root/evil"),
        ("", "a/b/other"),
        ("&changes=VOLUME%20%2Fa%2Fc", "a/b/init"),
        ("&changes=VOLUME%20%2F", "evil"),
    ]
    .into_iter()
    .enumerate()
    {
        let cell =
            docker(&["/bin/busybox", "sh", "-c", "echo hello; /bin/busybox ls /a/b; grep Seccomp: /proc/self/status"]);
        let name = format!("localhost/hotcell-forger-{n}");
        make_image(&cell, &name, changes, &[(".hotcell-init", link), (".hotcell-call", "a/b/call"), ("a/c", "b")]);
        let ran = cell.flag("--image", format!("{name}:latest")).run();
        ran.passes();
        assert_eq!(ran.out(), "hello\ninit\nSeccomp:\t2\n", "{link}");
    }
}

#[test]
fn a_container_that_an_operator_has_paused_is_ended() {
    let Some(_) = engine() else { return };
    let going = docker(&["/bin/sh", "-c", "echo ready; exec sleep 1000"]).start();
    let pid = going.child.id();
    going.wait_for_name("sleep");
    for id in of(pid) {
        let (status, said) = ask("POST", &format!("/containers/{id}/pause"), b"");
        if said.to_string().contains("can not pause containers on rootless containers") {
            return skip("this engine has no group in which it could pause anything");
        }
        assert_eq!(status, 204, "{said}");
    }
    send(pid, "TERM");
    let ran = going.finish();
    assert!(ran.code == 125 && ran.stderr.contains("paused"), "{} {}", ran.code, ran.stderr);
    wait_until("it is removed", || of(pid).is_empty());
}

#[test]
fn engines_that_are_none() {
    if backend().is_some() || as_user() {
        return skip("the same as root's, whoever makes the cells");
    }
    let cell = docker(&["true"]);
    let silent = cell.dir().join("input");
    std::fs::create_dir_all(&silent).expect("the test's own directory");
    let refuses = silent.join("refuses");
    drop(UnixListener::bind(&refuses).expect("the test's own directory"));
    let talks = silent.join("talks");
    let listener = UnixListener::bind(&talks).expect("the test's own directory");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // All of the request, so that the answer arrives.
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(b"220 this is a mail server\r\n\r\n");
        }
    });
    let host = |path: &Path| format!("unix://{}", path.display());
    for (value, part) in [
        ("unix:///nowhere/docker.sock".to_owned(), "does not answer"),
        (host(&silent), "does not answer"),
        (host(&refuses), "does not answer"),
        (host(&talks), "is no engine"),
        ("tcp://127.0.0.1:2375".into(), "must be on this host"),
        ("ssh://somebody@somewhere".into(), "must be on this host"),
    ] {
        let ran = docker(&["true"]).env("DOCKER_HOST", &value).run();
        assert_eq!((ran.code, ran.outcome.is_null()), (125, true), "{value}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{value}: {}", ran.stderr);
    }
    let flags: [(&[&str], &str); 2] =
        [(&["--runtime", "runc"], "for --backend oci"), (&["--policy", "strict"], "kernel of its own")];
    for (flags, part) in flags {
        let ran = flags.iter().fold(docker(&["true"]), |cell, word| cell.word(word)).run();
        assert!(ran.code == 125 && ran.stderr.contains(part), "{flags:?}: {}", ran.stderr);
    }
}

#[test]
fn what_others_left_is_removed_and_what_they_use_is_not() {
    let Some(_) = engine() else { return };
    // The image is there after a first run.
    docker(&["true"]).run().passes();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("there is one");
    let namespace = std::fs::read_link("/proc/self/ns/pid").expect("there is one");
    let label = |pid: u32, start: u64| format!("{pid} {start} {} {}", namespace.display(), boot.trim());
    let stat = std::fs::read_to_string("/proc/self/stat").expect("this process is there");
    let start = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19)?.parse().ok()).expect("a number");
    let make = |owner: &str| {
        let asked = json!({"Image": "localhost/hotcell-empty:latest", "Cmd": ["x"], "Labels": {LABEL: owner}});
        let (status, made) = ask("POST", "/containers/create", asked.to_string().as_bytes());
        assert_eq!(status, 201, "{made}");
        made["Id"].as_str().expect("it has one").to_owned()
    };
    let own = std::process::id();
    let (dead, reused, used) = (make(&label(u32::MAX >> 1, 1)), make(&label(own, start + 1)), make(&label(own, start)));
    let foreign = make("somebody else's word");
    docker(&["true"]).run().passes();
    let left: Vec<String> = containers().into_iter().map(|(id, _)| id).collect();
    assert!(!left.contains(&dead) && !left.contains(&reused), "{left:?}");
    assert!(left.contains(&used) && left.contains(&foreign), "{left:?}");
    for id in [used, foreign] {
        ask("DELETE", &format!("/containers/{id}?force=true"), b"");
    }
}

/// Passes everything on to the engine until it is told to stop.
fn proxy(at: &Path) -> Arc<AtomicBool> {
    let stopped = Arc::new(AtomicBool::new(false));
    let (socket, listener) =
        (engine().expect("there is one"), UnixListener::bind(at).expect("the test's own directory"));
    let told = stopped.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            if told.load(Ordering::SeqCst) {
                continue;
            }
            let Ok(engine) = UnixStream::connect(&socket) else { continue };
            let pump = |mut from: UnixStream, mut to: UnixStream| {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                })
            };
            let pair = |stream: &UnixStream| stream.try_clone().expect("a socket can be had twice");
            pump(pair(&client), pair(&engine));
            pump(engine, client);
        }
    });
    stopped
}

#[test]
fn an_engine_that_dies_in_the_middle_changes_no_verdict() {
    let Some(_) = engine() else { return };
    let cell = docker(&["/bin/sh", "-c", "echo ready; read line; echo $line; exit 9"]).holding_stdin();
    let dir = cell.dir().join("input");
    std::fs::create_dir_all(&dir).expect("the test's own directory");
    let at = dir.join("engine");
    let stopped = proxy(&at);
    let mut going = cell.env("DOCKER_HOST", &format!("unix://{}", at.display())).start();
    let pid = going.child.id();
    going.wait_for_name("sh");
    assert_eq!(of(pid).len(), 1);
    stopped.store(true, Ordering::SeqCst);
    going.say(b"on\n");
    let ran = going.finish();
    ran.exits(9);
    assert_eq!(ran.out(), "ready\non\n");
    wait_until("it was told to remove it when it made it", || of(pid).is_empty());
}

#[test]
fn a_container_removed_under_us_is_no_verdict_on_the_program() {
    let Some(_) = engine() else { return };
    let going = docker(&["/bin/sh", "-c", "echo ready; exec sleep 1000"]).start();
    let pid = going.child.id();
    going.wait_for_name("sleep");
    for id in of(pid) {
        ask("DELETE", &format!("/containers/{id}?force=true"), b"");
    }
    let ran = going.finish();
    assert_eq!((ran.code, ran.outcome.is_null()), (125, true), "{} {:#}", ran.stderr, ran.outcome);
}
