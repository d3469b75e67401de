//! What the egress broker puts on record of requests that nobody can understand, and how long it waits for programs that
//! have left. Every server here is the test's own, on the host's loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;

use serde_json::Value;

use crate::harness::*;

const CLASS: &str = "NetworkAccessViolation";

const ASK: &str = "\
import socket
def connect():
    return socket.create_connection(('127.0.0.1', 3128))
def answer(s):
    return b''.join(iter(lambda: s.recv(65536), b''))
def ask(text):
    s = connect(); s.sendall(text.encode('utf-8', 'surrogateescape'))
    return answer(s)
";

/// Serves connections one after the other, and says where.
fn server(mut serve: impl FnMut(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the test's own");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || listener.incoming().flatten().for_each(&mut serve));
    address
}

fn restricted(hosts: &[&str], source: &str) -> Cell {
    let cell = python(&format!("{ASK}{source}")).flag("--network", "restricted");
    hosts.iter().fold(cell, |cell, host| cell.flag("--allow-host", *host))
}

fn read_head(stream: &mut TcpStream) {
    let (mut head, mut byte) = (vec![], [0u8]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n > 0) {
        head.push(byte[0]);
    }
}

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

#[test]
fn who_leaves_a_connection_leaves_its_place_to_others() {
    let mut kept = vec![];
    let silent = server(move |stream| kept.push(stream));
    // The second visit here is what the patient one waits for.
    let (tell, told) = channel();
    let prompt = server(move |mut stream| {
        read_head(&mut stream);
        let _ = (stream.write_all(HELLO), tell.send(()));
    });
    let patient = server(move |mut stream| {
        read_head(&mut stream);
        let _ = (told.recv(), told.recv(), stream.write_all(HELLO));
    });
    let ran = restricted(
        &[&silent, &prompt, &patient],
        &format!(
            "waiting = connect(); waiting.sendall(b'GET http://{patient}/ HTTP/1.1\\r\\n\\r\\n')\n\
             half = connect(); half.sendall(b'GET http://{prompt}/ HTTP/1.1\\r\\n\\r\\n'); half.shutdown(socket.SHUT_WR)\n\
             print('half', answer(half)[-5:].decode())\n\
             for number in range(63):\n\
             \x20   s = connect()\n\
             \x20   if number % 2:\n\
             \x20       s.sendall(b'CONNECT {silent} HTTP/1.1\\r\\n\\r\\n'); s.recv(65536)\n\
             \x20   else:\n\
             \x20       s.sendall(b'GET http://{silent}/ HTTP/1.1\\r\\n\\r\\n')\n\
             \x20   s.close()\n\
             print('other', ask('GET http://{prompt}/ HTTP/1.1\\r\\n\\r\\n')[-5:].decode())\n\
             print('waiting', answer(waiting)[-5:].decode())"
        ),
    )
    .run();
    ran.passes();
    for who in ["half", "other", "waiting"] {
        assert_eq!(ran.tells(who), "hello", "{who}");
    }
}

#[test]
fn a_request_that_nobody_understands_is_on_record() {
    let prompt = server(|mut stream| {
        read_head(&mut stream);
        let _ = stream.write_all(HELLO);
    });
    let host = prompt.replace("127.0.0.1", "user:word@127.0.0.1");
    // What is said, and what of it is the address on record.
    let requests = [
        (format!("GET http://{prompt}/ HTTP/1.1\n\n"), prompt.as_str()),
        (format!("GET https://{prompt}/ HTTP/1.1\r\n\r\n"), &prompt),
        ("GET https://other.example/ HTTP/1.1\r\n\r\n".into(), "other.example:443"),
        (format!("GET http://{host}/ HTTP/1.1\r\n\r\n"), &prompt),
        ("CONNECT other.example:0 HTTP/1.1\r\n\r\n".into(), "other.example:0"),
        ("CONNECT other.example HTTP/1.1\r\n\r\n".into(), "other.example"),
        ("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n".into(), ""),
        ("\u{1b}[2Jhello\r\n\r\n".into(), ""),
        (format!("POST http://{prompt}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx"), &prompt),
    ];
    let said: Vec<&String> = requests.iter().map(|(said, _)| said).collect();
    let ask = format!("for said in {said:?}: print(ask(said).split(b' ')[1].decode())").replace("\\u{1b}", "\\x1b");
    let ran = restricted(&[&prompt], &ask).run();
    ran.violates(CLASS);
    assert_eq!(ran.out(), "400\n".repeat(requests.len()));
    let attempts = ran.attempts(CLASS);
    assert_eq!(attempts.len(), requests.len(), "{attempts:#?}");
    for (detail, (said, address)) in attempts.iter().zip(&requests) {
        assert_eq!(detail["address"].as_str().unwrap_or_default(), *address, "{said:?}");
        let note = detail["note"].as_str().unwrap_or_default();
        assert!(note.contains("malformed"), "{said:?}: {note}");
    }
    let words: Vec<&Value> = attempts.iter().filter(|d| d["address"].is_null()).map(|d| &d["note"]).collect();
    assert!(words[0].as_str().is_some_and(|note| note.contains("`GET / HTTP/1.1`")), "{words:?}");
    assert!(words[1].as_str().is_some_and(|note| note.contains(r"`\x1b[2Jhello`")), "{words:?}");
    // The same in order; and who says nothing at all has asked for nothing.
    let good = format!("connect().close()\nprint(ask('GET http://{prompt}/ HTTP/1.1\\r\\n\\r\\n')[-5:].decode())");
    assert_eq!(restricted(&[&prompt], &good).run().passes().out(), "hello\n");
}

#[test]
fn a_body_that_goes_wrong_later_is_on_record_too() {
    let eager = server(|mut stream| {
        read_head(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        // To the end of the last chunk, or of the connection.
        let (mut body, mut byte) = (vec![], [0u8]);
        while !body.ends_with(b"0\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n > 0) {
            body.push(byte[0]);
        }
        let _ = stream.write_all(HELLO);
    });
    let ask = |body: &str| {
        let source = format!(
            "s = connect(); s.sendall(b'POST http://{eager}/ HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n')\n\
             print(s.recv(12).decode()); s.sendall(b'{body}')\n\
             try: answer(s)\n\
             except ConnectionResetError: pass"
        );
        restricted(&[&eager], &source).run()
    };
    let ran = ask("1\\r\\nxyz\\r\\n");
    ran.violates(CLASS);
    assert_eq!(ran.out(), "HTTP/1.1 100\n");
    let attempts = ran.attempts(CLASS);
    assert_eq!((attempts.len(), &attempts[0]["address"]), (1, &eager.as_str().into()), "{attempts:?}");
    assert_eq!(attempts[0]["note"], "was sent a malformed body");
    assert_eq!(ask("1\\r\\nx\\r\\n0\\r\\n\\r\\n").passes().out(), "HTTP/1.1 100\n");
}
