//! A WebSocket to a run: what it says comes out, what is said goes in, and who leaves takes his run with him.

use serde_json::{Value, json};

use crate::harness::*;
use crate::socket::Socket;

/// The next event of this name.
#[track_caller]
fn until(socket: &mut Socket, name: &str) -> Value {
    loop {
        let (kind, bytes) = socket.frame();
        assert_ne!(kind, 8, "closed before {name}: {}", String::from_utf8_lossy(&bytes));
        if kind == 1 {
            let event: Value = serde_json::from_slice(&bytes).expect("JSON");
            if event["event"] == name {
                return event;
            }
        }
    }
}

#[track_caller]
fn output(socket: &mut Socket) -> String {
    until(socket, "exec_event.OUTPUT")["data"]["text"].as_str().expect("text").to_owned()
}

const ECHO: &str =
    "import sys\nfor line in sys.stdin:\n    print('got', line.strip(), flush=True)\nprint('end', flush=True)\n";

#[track_caller]
fn attachable(service: &Service<'_>, body: &Value) -> String {
    let answer = service.post("/v1/runs?attach=true", body);
    assert_eq!(answer.status, 202, "{}", answer.text());
    answer.json()["id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_program_is_talked_to_while_it_runs() {
    let place = Place::new();
    let service = place.serve(&[]);
    let id = attachable(&service, &json!({ "code": ECHO }));
    let mut socket = Socket::open(&service, &format!("/v1/runs/{id}/attach"));
    until(&mut socket, "exec_event.STARTED");
    socket.say(&json!({ "stdin": "one\n" }));
    assert_eq!(output(&mut socket), "got one\n");
    socket.send(2, b"two\n");
    assert_eq!(output(&mut socket), "got two\n");
    socket.say(&json!({ "stdin": "three\n", "close_stdin": true }));
    // In one piece or two.
    let mut last = output(&mut socket);
    while !last.ends_with("end\n") {
        last.push_str(&output(&mut socket));
    }
    assert_eq!(last, "got three\nend\n");
    let ended = until(&mut socket, "exec_event.FINISHED");
    assert_eq!(ended["data"]["status"], "pass");
    assert_eq!(socket.closed(), (1000, "the run has ended".into()));
    assert_eq!(service.ended(&id)["outcome"]["stdout"], "got one\ngot two\ngot three\nend\n");
}

#[test]
fn who_leaves_takes_his_run_with_him_unless_he_wants_it_kept() {
    let place = Place::new();
    let service = place.serve(&[]);
    for (keep, status) in [("", "killed"), ("?keep=true", "completed")] {
        let id = attachable(&service, &json!({ "code": ECHO }));
        let mut socket = Socket::open(&service, &format!("/v1/runs/{id}/attach{keep}"));
        until(&mut socket, "exec_event.STARTED");
        drop(socket);
        assert_eq!(service.ended(&id)["status"], status);
    }
}

#[test]
fn a_run_is_called_off_by_a_word() {
    let place = Place::new();
    let service = place.serve(&[]);
    let id = attachable(&service, &json!({ "command": ["sleep", "3000"] }));
    let mut socket = Socket::open(&service, &format!("/v1/runs/{id}/attach"));
    until(&mut socket, "exec_event.STARTED");
    socket.say(&json!({ "cancel": true }));
    until(&mut socket, "exec_event.KILLED");
    assert_eq!(socket.closed().0, 1000);
}

#[test]
fn the_input_is_the_first_ones_and_others_watch() {
    let place = Place::new();
    let service = place.serve(&[]);
    let id = attachable(&service, &json!({ "code": ECHO }));
    let at = format!("/v1/runs/{id}/attach");
    let mut first = Socket::open(&service, &at);
    until(&mut first, "exec_event.STARTED");
    let mut second = Socket::open(&service, &at);
    until(&mut second, "exec_event.STARTED");
    first.say(&json!({ "stdin": "x\n" }));
    assert_eq!((output(&mut first), output(&mut second)), ("got x\n".to_owned(), "got x\n".to_owned()));
    second.say(&json!({ "stdin": "y\n" }));
    let (code, why) = second.closed();
    assert_eq!((code, why.contains("not yours")), (1008, true), "{why}");
    // What nobody understands ends the connection, and with it the run.
    first.say(&json!({ "resize": [80, 25] }));
    assert_eq!(first.closed().0, 1008);
    assert_eq!(service.ended(&id)["outcome"]["stdout"], "got x\n");
}

#[test]
fn what_is_no_web_socket_or_not_ones_own_is_refused() {
    let place = Place::new();
    let (a, b) = (place.key(&["--tenant", "a"]), place.key(&["--tenant", "b"]));
    let mut service = place.serve(&[]);
    service.key = Some(a);
    let id = attachable(&service, &json!({ "code": ECHO }));
    let at = format!("/v1/runs/{id}/attach");
    service.get(&at).is_problem(426, None, &["WebSocket"]);
    service.post("/v1/runs?attach=true", &json!({ "code": ECHO, "stdin": "x" })).is_problem(
        422,
        Some("stdin"),
        &["attach"],
    );
    service.key = Some(b);
    service.get(&at).is_problem(404, None, &["no such run"]);
}

#[test]
fn a_key_that_is_revoked_is_listened_to_no_more_and_another_is() {
    let place = Place::new();
    let (a, b) = (place.key(&[]), place.key(&[]));
    let mut service = place.serve(&[]);
    let mut talks = [&a, &b].map(|key| {
        service.key = Some(key.clone());
        let id = attachable(&service, &json!({ "code": ECHO }));
        let mut socket = Socket::open(&service, &format!("/v1/runs/{id}/attach"));
        until(&mut socket, "exec_event.STARTED");
        (id, socket)
    });
    assert_eq!(place.go(&["keys", "revoke", a.split('_').nth(1).expect("it has parts")]).code, 0);
    let (id, socket) = &mut talks[0];
    assert_eq!(socket.closed(), (1008, "the key was revoked".into()));
    // He is gone, and so is his run.
    assert_eq!(service.ended(id)["status"], "killed");
    let (id, socket) = &mut talks[1];
    socket.say(&json!({ "stdin": "still\n", "close_stdin": true }));
    assert_eq!(socket.closed(), (1000, "the run has ended".into()));
    assert_eq!(service.ended(id)["outcome"]["stdout"], "got still\nend\n");
}

/// A program that reads nothing does not keep its caller from being heard.
#[test]
fn who_writes_what_nobody_reads_is_heard_all_the_same() {
    let place = Place::new();
    let service = place.serve(&[]);
    let answer = service.post("/v1/runs?attach=true", &json!({ "command": ["sleep", "3000"] }));
    let id = answer.json()["id"].as_str().expect("an id").to_owned();
    let mut socket = Socket::open(&service, &format!("/v1/runs/{id}/attach"));
    for _ in 0..8 {
        socket.send(2, &[b'x'; 60_000]);
    }
    socket.say(&json!({ "cancel": true }));
    assert_eq!(service.ended(&id)["outcome"]["terminal_event"], "Cancelled");
}

/// As it comes, until this is in it.
#[track_caller]
fn shown(socket: &mut Socket, text: &str) {
    let mut screen = String::new();
    while !screen.contains(text) {
        screen.push_str(&output(socket));
    }
}

#[test]
fn a_program_with_a_terminal_is_typed_to_and_resized() {
    let place = Place::new();
    let service = place.serve(&[]);
    let body = json!({ "command": ["bash", "--norc"], "terminal": { "rows": 30, "columns": 100 }, "environment": { "PS1": "ready>" } });
    let id = attachable(&service, &body);
    let mut socket = Socket::open(&service, &format!("/v1/runs/{id}/attach"));
    shown(&mut socket, "ready>");
    socket.say(&json!({ "stdin": "stty size; echo $TERM\r" }));
    shown(&mut socket, "30 100\r\nxterm-256color");
    // The shell hears of it by a signal, and tells `LINES`.
    socket.say(&json!({ "resize": { "rows": 25, "columns": 90 } }));
    socket.say(&json!({ "stdin": "stty size; cat\r" }));
    shown(&mut socket, "25 90\r\n");
    socket.say(&json!({ "stdin": "typed\r" }));
    // By the terminal, and by the program.
    shown(&mut socket, "typed\r\ntyped\r\n");
    socket.send(2, b"\x03");
    // What is typed before that, a shell may throw away.
    shown(&mut socket, "ready>");
    socket.say(&json!({ "stdin": "echo in$((0))terrupted $?; exit 5\r" }));
    shown(&mut socket, "in0terrupted 130");
    let outcome = service.ended(&id)["outcome"].clone();
    assert_eq!(
        (&outcome["exit_code"], &outcome["stderr"], &outcome["violations"]),
        (&json!(5), &json!(""), &json!([]))
    );
}

#[test]
fn signals_reach_the_program_and_it_decides_what_they_mean() {
    let place = Place::new();
    let service = place.serve(&[]);
    let source = "import signal, sys\n\
                  got = []\n\
                  for name in ('SIGUSR1', 'SIGINT', 'SIGTERM'):\n\
                  \x20   signal.signal(getattr(signal, name), lambda number, _: got.append(number))\n\
                  print('up', flush=True)\n\
                  while len(got) < 3:\n\
                  \x20   signal.pause() if len(got) == 0 else signal.sigtimedwait([], 0.01)\n\
                  print(sorted(got), flush=True)\n\
                  signal.signal(signal.SIGHUP, signal.SIG_DFL)\n\
                  signal.pause()";
    let id = attachable(&service, &json!({ "code": source }));
    let mut socket = Socket::open(&service, &format!("/v1/runs/{id}/attach"));
    shown(&mut socket, "up\n");
    for name in ["SIGUSR1", "SIGINT", "SIGTERM"] {
        socket.say(&json!({ "signal": name }));
    }
    shown(&mut socket, "[2, 10, 15]");
    socket.say(&json!({ "signal": "SIGHUP" }));
    let ended = service.ended(&id);
    // He asked for it: the run was not called off.
    let outcome = &ended["outcome"];
    assert_eq!(
        (&ended["status"], &outcome["signal"], &outcome["terminal_event"]),
        (&json!("failed"), &json!(1), &json!(null)),
        "{ended:#}"
    );
}

#[test]
fn who_only_watches_has_no_say_and_what_is_no_terminal_no_size() {
    let place = Place::new();
    let service = place.serve(&[]);
    let id = attachable(&service, &json!({ "code": ECHO }));
    let at = format!("/v1/runs/{id}/attach");
    let mut owner = Socket::open(&service, &at);
    until(&mut owner, "exec_event.STARTED");
    for (word, why) in [
        (json!({ "signal": "SIGTERM" }), "this run is not yours to talk to"),
        (json!({ "stdin": "x" }), "this run is not yours to talk to"),
        (json!({ "resize": { "rows": 1, "columns": 1 } }), "this run has no terminal"),
        (json!({ "signal": "SIGNOTHING" }), "there is no such signal"),
    ] {
        let mut watcher = Socket::open(&service, &at);
        watcher.say(&word);
        assert_eq!(watcher.closed(), (1008, why.into()), "{word}");
    }
    owner.say(&json!({ "close_stdin": true }));
    assert_eq!(service.ended(&id)["outcome"]["stdout"], "end\n");
    let size = |rows: u32| json!({ "command": ["true"], "terminal": { "rows": rows, "columns": 80 } });
    let refused = [
        ("/v1/runs", size(24)),
        ("/v1/runs?attach=true", size(0)),
        ("/v1/runs?attach=true", size(1001)),
        ("/v1/verify", size(24)),
    ];
    for (path, body) in refused {
        let answer = service.post(path, &body);
        assert_eq!(answer.status, 422, "{path} {body}");
    }
}
