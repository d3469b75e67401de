//! A WebSocket to a run: what it says comes out, what is said goes in, and who leaves takes his run with him.

use serde_json::{Value, json};

use crate::client::Connection;
use crate::harness::*;

/// A client's side of a WebSocket, as it is on the wire.
struct Socket {
    connection: Connection,
}

impl Socket {
    #[track_caller]
    fn open(service: &Service<'_>, path: &str) -> Socket {
        let mut connection = service.connect();
        let key = service.key.as_ref().map(|key| format!("X-API-Key: {key}\r\n")).unwrap_or_default();
        connection.send(format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\n{key}Connection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ));
        let (status, headers) = connection.head();
        assert_eq!(status, 101);
        assert_eq!(headers["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        Socket { connection }
    }

    fn send(&mut self, kind: u8, bytes: &[u8]) {
        let mask = [1, 2, 3, 4];
        let mut frame = vec![0x80 | kind];
        match bytes.len() {
            n @ 0..126 => frame.push(0x80 | n as u8),
            n => frame.extend([&[0x80 | 126][..], &(n as u16).to_be_bytes()].concat()),
        }
        frame.extend(mask);
        frame.extend(bytes.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
        self.connection.send(frame);
    }

    fn say(&mut self, word: &Value) {
        self.send(1, word.to_string().as_bytes());
    }

    /// The next frame: its kind, and what is in it.
    #[track_caller]
    fn frame(&mut self) -> (u8, Vec<u8>) {
        let head = self.connection.exact(2);
        let length = match head[1] {
            126 => u16::from_be_bytes(self.connection.exact(2).try_into().expect("two")) as usize,
            127 => u64::from_be_bytes(self.connection.exact(8).try_into().expect("eight")) as usize,
            n => n as usize,
        };
        (head[0] & 15, self.connection.exact(length))
    }

    /// The next event of this name.
    #[track_caller]
    fn until(&mut self, name: &str) -> Value {
        loop {
            let (kind, bytes) = self.frame();
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
    fn output(&mut self) -> String {
        self.until("exec_event.OUTPUT")["data"]["text"].as_str().expect("text").to_owned()
    }

    /// Why it was closed.
    #[track_caller]
    fn closed(&mut self) -> (u16, String) {
        loop {
            if let (8, bytes) = self.frame() {
                let code = u16::from_be_bytes([bytes[0], bytes[1]]);
                return (code, String::from_utf8_lossy(&bytes[2..]).into_owned());
            }
        }
    }
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
    socket.until("exec_event.STARTED");
    socket.say(&json!({ "stdin": "one\n" }));
    assert_eq!(socket.output(), "got one\n");
    socket.send(2, b"two\n");
    assert_eq!(socket.output(), "got two\n");
    socket.say(&json!({ "stdin": "three\n", "close_stdin": true }));
    // In one piece or two.
    let mut last = socket.output();
    while !last.ends_with("end\n") {
        last.push_str(&socket.output());
    }
    assert_eq!(last, "got three\nend\n");
    let ended = socket.until("exec_event.FINISHED");
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
        socket.until("exec_event.STARTED");
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
    socket.until("exec_event.STARTED");
    socket.say(&json!({ "cancel": true }));
    socket.until("exec_event.KILLED");
    assert_eq!(socket.closed().0, 1000);
}

#[test]
fn the_input_is_the_first_ones_and_others_watch() {
    let place = Place::new();
    let service = place.serve(&[]);
    let id = attachable(&service, &json!({ "code": ECHO }));
    let at = format!("/v1/runs/{id}/attach");
    let mut first = Socket::open(&service, &at);
    first.until("exec_event.STARTED");
    let mut second = Socket::open(&service, &at);
    second.until("exec_event.STARTED");
    first.say(&json!({ "stdin": "x\n" }));
    assert_eq!((first.output(), second.output()), ("got x\n".to_owned(), "got x\n".to_owned()));
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
