//! Piston's WebSocket: stages and what is said in them, input, signals, and the codes with which it closes.

use serde_json::{Value, json};

use crate::harness::*;
use crate::socket::Socket;

const AT: &str = "/api/v2/connect";

fn init(language: &str, content: &str) -> Value {
    json!({ "type": "init", "language": language, "version": "*", "files": [{ "content": content }] })
}

/// A socket on which this is the first word.
#[track_caller]
fn open(service: &Service<'_>, word: &Value) -> Socket {
    Socket::open_saying(service, AT, &[word.to_string().as_bytes()])
}

/// The next message; nothing when it was closed, and why.
#[track_caller]
fn next(socket: &mut Socket) -> Result<Value, (u16, String)> {
    loop {
        match socket.frame() {
            (1, bytes) => return Ok(serde_json::from_slice(&bytes).expect("JSON")),
            (8, bytes) => {
                let (code, why) = bytes.split_at(2);
                let code = u16::from_be_bytes(code.try_into().expect("two"));
                return Err((code, String::from_utf8_lossy(why).into_owned()));
            }
            _ => {}
        }
    }
}

/// Messages by their types and stages, and all that was said, until it is closed.
#[track_caller]
fn all(socket: &mut Socket) -> (Vec<Value>, String, (u16, String)) {
    let (mut messages, mut said) = (vec![], String::new());
    loop {
        match next(socket) {
            Ok(message) if message["type"] == "data" => said.push_str(message["data"].as_str().expect("text")),
            Ok(message) => messages.push(message),
            Err(closed) => return (messages, said, closed),
        }
    }
}

fn done() -> (u16, String) {
    (4999, "Job Completed".into())
}

#[test]
fn a_program_is_talked_to_while_it_goes() {
    let place = Place::new();
    let service = place.serve(&[]);
    let mut socket = open(&service, &init("bash", "read x; echo got $x; read x; echo and $x >&2; exit 3"));
    let runtime = next(&mut socket).expect("it is open");
    assert_eq!((&runtime["type"], &runtime["language"]), (&json!("runtime"), &json!("bash")));
    assert!(runtime["version"].as_str().is_some_and(|version| version.split('.').count() == 3), "{runtime}");
    assert_eq!(next(&mut socket), Ok(json!({ "type": "stage", "stage": "run" })));
    socket.say(&json!({ "type": "data", "stream": "stdin", "data": "one\n" }));
    assert_eq!(next(&mut socket), Ok(json!({ "type": "data", "stream": "stdout", "data": "got one\n" })));
    // Words that nobody knows are passed over.
    socket.say(&json!({ "type": "resize" }));
    socket.send(2, json!({ "type": "data", "stream": "stdin", "data": "two\n" }).to_string().as_bytes());
    assert_eq!(next(&mut socket), Ok(json!({ "type": "data", "stream": "stderr", "data": "and two\n" })));
    assert_eq!(next(&mut socket), Ok(json!({ "type": "exit", "stage": "run", "code": 3, "signal": null })));
    assert_eq!(next(&mut socket), Err(done()));
}

#[test]
fn what_is_compiled_has_a_stage_for_it() {
    let place = Place::new();
    let service = place.serve(&[]);
    let stage = |name: &str| json!({ "type": "stage", "stage": name });
    let exit = |name: &str, code: i32| json!({ "type": "exit", "stage": name, "code": code, "signal": null });
    let good = "#include <stdio.h>\nint main(void) { puts(\"hi\"); return 0; }";
    // The second time there is nothing to compile, and it is told as if it were.
    for _ in 0..2 {
        let mut socket = open(&service, &init("c", good));
        let (messages, said, closed) = all(&mut socket);
        assert_eq!(messages[1..], [stage("compile"), exit("compile", 0), stage("run"), exit("run", 0)]);
        assert_eq!((said.as_str(), closed), ("hi\n", done()));
    }
    let mut socket = open(&service, &init("c", "int main(void) { return x; }"));
    let (messages, said, closed) = all(&mut socket);
    assert_eq!(messages[1..], [stage("compile"), exit("compile", 1)]);
    assert!(said.contains("undeclared"), "{said}");
    assert_eq!(closed, done());
}

#[test]
fn what_a_client_does_wrong_has_a_code() {
    let place = Place::new();
    let service = place.serve(&[]);
    let sleeps = || init("bash", "sleep 3000");
    let data = |stream: &str| json!({ "type": "data", "stream": stream, "data": "x" });
    let signal = |name: &str| json!({ "type": "signal", "signal": name });
    for (words, code, why) in [
        (vec![], 4001, "Initialization Timeout"),
        (vec![data("stdin")], 4003, "Not yet initialized"),
        (vec![signal("SIGKILL")], 4003, "Not yet initialized"),
        (vec![sleeps(), sleeps()], 4000, "Already Initialized"),
        (vec![sleeps(), data("stdout")], 4004, "Can only write to stdin"),
        (vec![sleeps(), signal("SIGNOTHING")], 4005, "Invalid signal"),
    ] {
        let words: Vec<String> = words.iter().map(Value::to_string).collect();
        let mut socket = Socket::open_saying(&service, AT, &words.iter().map(String::as_bytes).collect::<Vec<_>>());
        let (messages, _, closed) = all(&mut socket);
        assert_eq!(closed, (code, why.into()), "{words:?} {messages:?}");
        assert!(!messages.iter().any(|message| message["type"] == "error"), "{messages:?}");
    }
    for (word, message) in [
        (json!({ "type": "init" }), "language is required as a string"),
        (init("nothing", "1"), "nothing-* runtime is unknown"),
    ] {
        let mut socket = open(&service, &word);
        let told = json!({ "type": "error", "message": message });
        assert_eq!(all(&mut socket), (vec![told], String::new(), (4002, "Notified Error".into())));
    }
    let mut socket = Socket::open_saying(&service, AT, &[b"no JSON"]);
    let (messages, _, closed) = all(&mut socket);
    assert_eq!((&messages[0]["type"], closed.0), (&json!("error"), 4002));
    // Who is sent away has no run any more.
    wait_until("their ends", || place.records(&["--status", "killed"]).len() == 3);
}

#[test]
fn a_signal_that_ends_a_program_ends_it() {
    let place = Place::new();
    let service = place.serve(&[]);
    for (name, end) in [("SIGTERM", "SIGTERM"), ("SIGKILL", "SIGKILL")] {
        // SIGKILL is not asked: it has a moment for the other.
        let trap = if name == "SIGKILL" { "trap '' TERM; " } else { "" };
        let mut socket = open(&service, &init("bash", &format!("{trap}echo up; while :; do sleep 1; done")));
        while next(&mut socket).expect("it is open")["type"] != "data" {}
        // One that does nothing.
        socket.say(&json!({ "type": "signal", "signal": "SIGWINCH" }));
        socket.say(&json!({ "type": "signal", "signal": name }));
        let (messages, _, closed) = all(&mut socket);
        assert_eq!((&messages[0]["type"], &messages[0]["code"]), (&json!("exit"), &json!(null)), "{messages:?}");
        assert_eq!((messages[0]["signal"].as_str(), closed), (Some(end), done()));
    }
}

#[test]
fn a_program_that_does_not_read_does_not_keep_others_from_being_heard() {
    let place = Place::new();
    let service = place.serve(&[]);
    let mut socket = open(&service, &init("bash", "echo up; while :; do sleep 1; done"));
    while next(&mut socket).expect("it is open")["type"] != "data" {}
    // More than a pipe holds.
    for _ in 0..10 {
        socket.say(&json!({ "type": "data", "stream": "stdin", "data": "x".repeat(20_000) }));
    }
    socket.say(&json!({ "type": "signal", "signal": "SIGTERM" }));
    assert_eq!(all(&mut socket).2, done());
}

#[test]
fn who_goes_away_takes_his_run_with_him() {
    let place = Place::new();
    let mounts = host_mounts();
    let service = place.serve(&[]);
    // The end of its input would let it end well.
    let socket = open(&service, &init("bash", "cat"));
    wait_until("its record", || place.records(&["--status", "running"]).len() == 1);
    drop(socket);
    wait_until("its end", || place.records(&["--status", "killed"]).len() == 1);
    service.signal("TERM");
    assert_eq!(service.wait(), Some(0));
    nothing_left(&place.mark, &mounts);
}

#[test]
fn nothing_of_what_it_says_is_lost() {
    let place = Place::new();
    let service = place.serve(&[]);
    // More pieces and more bytes than a log of events holds, and nobody reads before they are all said.
    let code = "import sys\nfor n in range(20000):\n    print(f'{n:0100}', flush=True)\n    print(n, file=sys.stderr, flush=True)";
    let mut socket = open(&service, &init("python", code));
    wait_until("its end", || place.records(&["--status", "completed"]).len() == 1);
    let (mut stdout, mut stderr) = (String::new(), String::new());
    let closed = loop {
        match next(&mut socket) {
            Ok(message) if message["type"] == "data" => {
                let to = if message["stream"] == "stdout" { &mut stdout } else { &mut stderr };
                to.push_str(message["data"].as_str().expect("text"));
            }
            Ok(_) => {}
            Err(closed) => break closed,
        }
    };
    assert_eq!(closed, done());
    assert_eq!((stdout.len(), stdout.lines().last()), (20_000 * 101, Some(format!("{:0100}", 19_999).as_str())));
    assert_eq!(stderr.lines().map(|line| line.parse::<u64>().expect("a number")).sum::<u64>(), 19_999 * 10_000);
}

#[test]
fn a_key_that_is_revoked_is_listened_to_no_more_and_another_is() {
    let place = Place::new();
    let (a, b) = (place.key(&[]), place.key(&[]));
    let mut service = place.serve(&[]);
    let [mut hers, mut his] = [&a, &b].map(|key| {
        service.key = Some(key.clone());
        let mut socket = open(&service, &init("bash", "echo up; read x; echo got $x"));
        while next(&mut socket).expect("it is open")["type"] != "data" {}
        socket
    });
    assert_eq!(place.go(&["keys", "revoke", a.split('_').nth(1).expect("it has parts")]).code, 0);
    let (messages, _, closed) = all(&mut hers);
    assert_eq!(messages, [json!({ "type": "error", "message": "the key was revoked" })]);
    assert_eq!(closed.0, 4002);
    wait_until("its end", || place.records(&["--status", "killed"]).len() == 1);
    his.say(&json!({ "type": "data", "stream": "stdin", "data": "still\n" }));
    let (_, said, closed) = all(&mut his);
    assert_eq!((said.as_str(), closed), ("got still\n", done()));
}

#[test]
fn without_a_key_there_is_no_socket() {
    let place = Place::new();
    let token = place.key(&[]);
    let mut service = place.serve(&[]);
    let upgrade = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    assert_eq!(service.raw(crate::client::request("GET", AT, &upgrade, b"")).status, 401);
    service.key = Some(token);
    let mut socket = open(&service, &init("bash", "echo hi"));
    assert_eq!(all(&mut socket).1, "hi\n");
}
