//! The egress broker: a cell reaches the hosts that are allowed, by name and port, and nobody else. Every server here is
//! the test's own, on the host's loopback, which is reached only where it is allowed by its address.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::Value;

use crate::harness::*;

const CLASS: &str = "NetworkAccessViolation";
const MIB: usize = 1 << 20;

/// A server on the host's loopback, for as long as the tests run.
struct Server {
    port: u16,
    visits: Arc<AtomicUsize>,
}

impl Server {
    /// Serves each connection on a thread of its own.
    fn new(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the test's own");
        let port = listener.local_addr().expect("bound").port();
        let visits = Arc::new(AtomicUsize::new(0));
        let (serve, counted) = (Arc::new(serve), visits.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                let serve = serve.clone();
                std::thread::spawn(move || serve(stream));
            }
        });
        Server { port, visits }
    }

    /// Answers a request with its own head and body.
    fn mirror() -> Server {
        Server::new(|mut stream| {
            let head = read_head(&mut stream);
            let body = read_body(&mut stream, &head);
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len() + body.len());
            let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.write_all(&body));
        })
    }

    /// Sends back whatever comes, to the end.
    fn echo() -> Server {
        Server::new(|mut stream| {
            let mut back = stream.try_clone().expect("a socket");
            let _ = std::io::copy(&mut stream, &mut back);
            let _ = back.shutdown(Shutdown::Write);
        })
    }

    /// Takes connections and says nothing; tells of each, and again when it is cut.
    fn silent() -> (Server, Receiver<&'static str>) {
        let (tell, told) = channel();
        let tell = Mutex::new(tell);
        let server = Server::new(move |mut stream| {
            let tell = tell.lock().expect("no panic").clone();
            let mut buf = [0u8; 4096];
            let _ = stream.read(&mut buf).map(|_| tell.send("visited"));
            while stream.read(&mut buf).is_ok_and(|n| n > 0) {}
            let _ = tell.send("cut");
        });
        (server, told)
    }

    fn here(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

fn read_head(stream: &mut TcpStream) -> String {
    let mut head = vec![];
    let mut byte = [0u8];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n > 0) {
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("heads here are ASCII")
}

fn read_body(stream: &mut TcpStream, head: &str) -> Vec<u8> {
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0u8; length.unwrap_or(0)];
    stream.read_exact(&mut body).expect("as much as was said");
    if lower.contains("transfer-encoding: chunked") {
        while !body.ends_with(b"0\r\n\r\n") {
            let mut byte = [0u8];
            stream.read_exact(&mut byte).expect("chunks to their end");
            body.push(byte[0]);
        }
    }
    body
}

/// What most programs here begin with: `ask` says something to the broker and returns all that it answers.
const ASK: &str = "\
import os, socket, sys
from urllib.request import urlopen
def ask(text):
    s = socket.create_connection(('127.0.0.1', 3128))
    s.sendall(text if isinstance(text, bytes) else text.encode())
    answer = b''
    while True:
        try: piece = s.recv(65536)
        except ConnectionResetError: piece = b''
        if not piece: return answer
        answer += piece
def status(text):
    answer = ask(text)
    return answer.split(b' ')[1].decode() if answer else 'nothing'
def tunnel(host):
    s = socket.create_connection(('127.0.0.1', 3128))
    s.sendall(f'CONNECT {host} HTTP/1.1\\r\\n\\r\\n'.encode())
    answer = b''
    while not answer.endswith(b'\\r\\n\\r\\n'): answer += s.recv(1)
    assert b' 200 ' in answer, answer
    return s
";

/// A Python program that may reach these hosts.
fn restricted(hosts: &[&str], source: &str) -> Cell {
    let cell = python(&format!("{ASK}{source}")).flag("--network", "restricted");
    hosts.iter().fold(cell, |cell, host| cell.flag("--allow-host", *host))
}

/// The addresses on record, in order, and that it was the broker who refused them.
#[track_caller]
fn refused(ran: &Ran) -> Vec<String> {
    let all = ran.outcome["violations"].as_array().expect("a list");
    let of_broker = all.iter().filter(|v| v["evidence"] == "egress broker");
    let address = |v: &Value| {
        assert_eq!(v["class"], CLASS);
        assert!(v["detail"]["note"].is_string(), "no reason: {v}");
        v["detail"]["address"].as_str().expect("an address").to_owned()
    };
    of_broker.map(address).collect()
}

fn admitted(ran: &Ran) -> Vec<&serde_json::Map<String, Value>> {
    let all = ran.outcome["events"].as_array().expect("a list");
    all.iter().filter(|e| e["kind"] == "egress.admitted").filter_map(|e| e["fields"].as_object()).collect()
}

#[test]
fn an_allowed_address_is_reached_by_get_and_by_connect() {
    let server = Server::mirror();
    let here = server.here();
    let ran = restricted(
        &[&here],
        &format!(
            "print(urlopen('http://{here}/a?b=c').read().decode())\n\
             s = tunnel('{here}')\n\
             s.sendall(b'GET /tunnel HTTP/1.1\\r\\nHost: whatever\\r\\n\\r\\n')\n\
             print(s.recv(9999).split(b'\\r\\n\\r\\n', 1)[1].decode())"
        ),
    )
    .run();
    ran.passes();
    let said = ran.out().to_ascii_lowercase();
    assert!(said.starts_with(&format!("get /a?b=c http/1.1\r\nhost: {here}\r\n")), "{said}");
    assert!(said.contains("connection: close") && !said.contains("proxy"), "{said}");
    // A tunnel is the program's own.
    assert!(said.contains("get /tunnel http/1.1\r\nhost: whatever\r\n\r\n"), "{said}");
    assert_eq!(server.visits(), 2);
    let events = admitted(&ran);
    assert_eq!(events.len(), 2, "{:#}", ran.outcome);
    for event in events {
        assert_eq!((&event["host"], &event["port"]), (&"127.0.0.1".into(), &server.port.into()));
        assert_eq!(event["address"], here.as_str());
        assert!(event["bytes_sent"].as_u64() > Some(20) && event["bytes_received"].as_u64() > Some(20), "{event:?}");
        assert!(event["ms"].is_u64());
    }
    let config = &ran.outcome["runtime_config"];
    assert_eq!((&config["network_policy"], &config["allowed_hosts"][0]), (&"restricted".into(), &here.into()));
    let enforced = ran.outcome["enforced"].as_array().expect("a list");
    assert!(enforced.iter().any(|layer| layer["layer"] == "network"), "{enforced:?}");
}

#[test]
fn who_is_not_allowed_is_not_reached() {
    // Both are of this host, and one of them is allowed, once by its address and once by a name that points there.
    let (server, other) = (Server::mirror(), Server::mirror());
    let (here, there) = (server.here(), other.here());
    let by_name = format!("localhost:{}", other.port);
    let targets = [
        there.clone(),
        by_name.clone(),
        format!("localhost.:{}", other.port),
        format!("[::ffff:127.0.0.1]:{}", other.port),
        format!("[::1]:{}", other.port),
        format!("2130706433:{}", other.port),
        format!("0x7f000001:{}", other.port),
        format!("127.1:{}", other.port),
        format!("0.0.0.0:{}", other.port),
        "127.0.0.1:22".into(),
        "169.254.169.254:80".into(),
        "[::ffff:169.254.169.254]:80".into(),
        "[fe80::1]:80".into(),
        "example.org:443".into(),
        format!("{here}.example.org:443"),
        format!("x.127.0.0.1:{}", server.port),
    ];
    let targets = &targets[..];
    let ran = restricted(
        &[&here, &by_name],
        &format!(
            "for target in {targets:?}:\n\
             \x20   print(target, status(f'CONNECT {{target}} HTTP/1.1\\r\\n\\r\\n'), status(f'GET http://{{target}}/ HTTP/1.1\\r\\n\\r\\n'))\n\
             print('allowed', status('GET http://{here}/ HTTP/1.1\\r\\n\\r\\n'))"
        ),
    )
    .run();
    ran.violates(CLASS);
    for target in targets {
        assert_eq!(ran.tells(target), "403 403", "{target}");
    }
    assert_eq!(ran.tells("allowed"), "200");
    assert_eq!((server.visits(), other.visits()), (1, 0));
    let record = refused(&ran);
    assert_eq!(record.len(), 2 * targets.len(), "{record:?}");
    assert_eq!(record[..4], [&there[..], &there, &by_name, &by_name]);
    assert!(record.contains(&"169.254.169.254:80".into()) && record.contains(&format!("2130706433:{}", other.port)));
    assert_eq!(admitted(&ran).len(), 1);
    // Where a name points to is on record, and not for the program.
    let source = format!("print(ask('CONNECT {by_name} HTTP/1.1\\r\\n\\r\\n').decode())");
    let ran = restricted(&[&by_name], &source).run();
    assert_eq!(ran.violates(CLASS).attempts(CLASS)[0]["note"], "points to 127.0.0.1, which is not public");
    assert!(ran.out().contains("not public") && !ran.out().contains("127.0.0.1"), "{}", ran.out());
}

#[test]
fn nothing_is_reached_past_the_broker() {
    let server = Server::mirror();
    let here = server.here();
    let ran = restricted(
        &[&here],
        &format!(
            "import errno\n\
             def direct(*to):\n\
             \x20   s = socket.socket(); s.settimeout(200)\n\
             \x20   return errno.errorcode.get(s.connect_ex(to), 'done')\n\
             print('loopback', direct('127.0.0.1', {}))\n\
             print('outside', direct('192.0.2.1', 443))\n\
             print('metadata', direct('169.254.169.254', 80))",
            server.port
        ),
    )
    .run();
    // The cell's own loopback, where nobody is.
    assert_eq!(ran.tells("loopback"), "ECONNREFUSED");
    assert_eq!((ran.tells("outside"), ran.tells("metadata")), ("ENETUNREACH", "ENETUNREACH"));
    ran.violates(CLASS);
    let addresses: Vec<&Value> = ran.attempts(CLASS).iter().map(|detail| &detail["address"]).collect();
    assert_eq!(addresses, ["192.0.2.1:443", "169.254.169.254:80"]);
    assert_eq!(server.visits(), 0);
}

#[test]
fn malformed_heads_are_answered_and_nobody_is_reached() {
    let server = Server::mirror();
    let here = server.here();
    let nowhere = [
        "hello\r\n\r\n".to_owned(),
        "\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n".into(),
        "OPTIONS * HTTP/1.1\r\n\r\n".into(),
        format!("GET https://{here}/ HTTP/1.1\r\n\r\n"),
        format!("GET http://u@{here}/ HTTP/1.1\r\n\r\n"),
        format!("GET http://{here}/ HTTP/2\r\n\r\n"),
        format!("GET http://{here}/\n\n"),
        format!("GET http://{here}/ HTTP/1.1\n\n"),
        format!("GET http://{here}/\0 HTTP/1.1\r\n\r\n"),
        format!("CONNECT {here}/ HTTP/1.1\r\n\r\n"),
        "CONNECT example.org HTTP/1.1\r\n\r\n".into(),
        format!("CONNECT \u{e4}.example:{} HTTP/1.1\r\n\r\n", server.port),
    ];
    let ran = restricted(&[&here], &format!("for head in {nowhere:?}: print(status(head))")).run();
    ran.violates(CLASS);
    assert_eq!(ran.out(), "400\n".repeat(nowhere.len()));

    let somewhere = [
        "Content-Length: 1\r\nContent-Length: 1",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
        "A: b\r\n c: d",
        " A: b",
        "A : b",
        "A: b\rc",
    ];
    let ask = |of: &str| {
        let program = format!(
            "for fields in {somewhere:?}: print(status(f'POST http://{of}/ HTTP/1.1\\r\\n{{fields}}\\r\\n\\r\\nx'))\n\
             print(status('POST http://{of}/ HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nz\\r\\n'))"
        );
        restricted(&[&here], &program).run()
    };
    // To who may be spoken to; and to who may not.
    let ran = ask(&here);
    ran.violates(CLASS);
    assert_eq!(ran.out(), "400\n".repeat(somewhere.len() + 1));
    assert_eq!(refused(&ran), vec![here.clone(); somewhere.len() + 1]);
    let ran = ask("other.example:80");
    ran.violates(CLASS);
    assert_eq!(ran.out(), "400\n".repeat(somewhere.len()) + "403\n");
    assert_eq!(refused(&ran), vec!["other.example:80"; somewhere.len() + 1]);
    assert_eq!(server.visits(), 0);

    let ran = restricted(
        &[&here],
        &format!(
            "print(status('GET http://{here}/ HTTP/1.1\\r\\nA: ' + 'a' * 20000))\n\
             print(status('GET http://{here}/ HTTP/1.1\\r\\nA: ' + 'a' * 10000 + '\\r\\n\\r\\n'))"
        ),
    )
    .run();
    ran.violates(CLASS);
    assert_eq!((ran.out(), server.visits(), refused(&ran)), ("431\n200\n", 1, vec![here]));
}

#[test]
fn a_second_request_on_the_same_connection_goes_nowhere() {
    let server = Server::mirror();
    let here = server.here();
    let ran = restricted(
        &[&here],
        &format!(
            "one = 'POST http://{here}/one HTTP/1.1\\r\\nContent-Length: 2\\r\\n\\r\\nab'\n\
             two = 'GET http://{here}/two HTTP/1.1\\r\\n\\r\\n'\n\
             chunked = 'POST http://{here}/three HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n1\\r\\nx\\r\\n0\\r\\n\\r\\n'\n\
             for first in (one, chunked):\n\
             \x20   answer = ask(first + two)\n\
             \x20   print(answer.count(b'200 OK'), b'/two' in answer)"
        ),
    )
    .run();
    ran.passes();
    assert_eq!((ran.out(), server.visits()), ("1 False\n1 False\n", 2));
}

#[test]
fn a_refusal_that_is_swallowed_is_still_a_fail() {
    let source = "\
        try: urlopen('http://example.org/')\n\
        except Exception as e: print(e)\n\
        print(ask('CONNECT example.org:443 HTTP/1.1\\r\\n\\r\\n').decode().splitlines()[-1])";
    let ran = restricted(&["127.0.0.1:1"], source).run();
    ran.violates(CLASS);
    assert_eq!(ran.outcome["exit_code"], 0);
    assert!(ran.out().contains("403") && ran.out().contains("not one of the allowed hosts"), "{}", ran.out());
    assert_eq!(refused(&ran), ["example.org:80", "example.org:443"]);
    let ran = restricted(&["127.0.0.1:1"], source).text().run();
    assert!(ran.stderr.contains("NetworkAccessViolation: example.org:80 is not one of"), "{}", ran.stderr);
    // Listed only.
    let ran = restricted(&["127.0.0.1:1"], source).flag("--on-violation", "note").run();
    assert_eq!((&ran.outcome["status"], ran.code), (&"pass".into(), 0), "{:#}", ran.outcome);
    assert_eq!(refused(&ran), ["example.org:80", "example.org:443"]);
}

#[test]
fn under_kill_a_refusal_is_the_end() {
    let server = Server::mirror();
    let here = server.here();
    let source = |host: &str| format!("print(status('GET http://{host}/ HTTP/1.1\\r\\n\\r\\n'), flush=True)");
    let ran = restricted(&[&here], &source("example.org")).flag("--on-violation", "kill").run();
    ran.violates(CLASS);
    assert_eq!((ran.terminal(), ran.out()), (CLASS, ""));
    assert_eq!(refused(&ran), ["example.org:80"]);
    let ran = restricted(&[&here], &source(&here)).flag("--on-violation", "kill").run();
    ran.passes();
    assert_eq!(ran.out(), "200\n");
}

#[test]
fn the_record_is_in_the_order_of_the_attempts() {
    let ran = restricted(
        &["127.0.0.1:1"],
        "for number in range(20):\n\
         \x20   status(f'CONNECT host-{number}.example:1 HTTP/1.1\\r\\n\\r\\n')\n\
         \x20   socket.socket().connect_ex(('192.0.2.1', 1000 + number))",
    )
    .run();
    ran.violates(CLASS);
    let addresses: Vec<String> =
        ran.attempts(CLASS).iter().filter_map(|detail| Some(detail["address"].as_str()?.to_owned())).collect();
    let expected: Vec<String> =
        (0..20).flat_map(|n| [format!("host-{n}.example:1"), format!("192.0.2.1:{}", 1000 + n)]).collect();
    assert_eq!(addresses, expected);
}

#[test]
fn a_flood_of_refusals_is_counted() {
    let ran =
        restricted(&["127.0.0.1:1"], "for number in range(150): status('CONNECT example.org:1 HTTP/1.1\\r\\n\\r\\n')")
            .run();
    ran.violates(CLASS);
    assert_eq!((refused(&ran).len(), &ran.outcome["violations_dropped"]), (100, &50.into()));
}

#[test]
fn who_does_not_wait_for_the_answer_has_asked() {
    // Said and gone; half said and gone; and behind as many connections as are served at one time.
    for (before, text) in [
        (0, "CONNECT example.org:443 HTTP/1.1\\r\\n\\r\\n"),
        (0, "CONNECT example.org:443 HTTP/1.1\\r\\n"),
        (70, "GET http://example.org:443/ HTTP/1.1\\r\\n\\r\\n"),
    ] {
        let ran = restricted(
            &["127.0.0.1:1"],
            &format!(
                "idle = [socket.create_connection(('127.0.0.1', 3128)) for _ in range({before})]\n\
                 s = socket.create_connection(('127.0.0.1', 3128))\n\
                 s.sendall('{text}'.encode())\n\
                 os._exit(0)"
            ),
        )
        .run();
        ran.violates(CLASS);
        assert_eq!(refused(&ran), ["example.org:443"], "{before} {text}");
        assert_eq!(ran.terminal(), "none");
    }
    // The same to an allowed host is harmless, whether it arrives or not.
    let server = Server::mirror();
    let here = server.here();
    restricted(
        &[&here],
        &format!(
            "s = socket.create_connection(('127.0.0.1', 3128))\n\
             s.sendall(b'CONNECT {here} HTTP/1.1\\r\\n\\r\\n')\n\
             os._exit(0)"
        ),
    )
    .run()
    .passes();
}

#[test]
fn large_bodies_pass_byte_for_byte_and_are_counted() {
    let size = on_a_slow_host(8, 1) * MIB;
    let (echo, mirror) = (Server::echo(), Server::mirror());
    let (here, http) = (echo.here(), mirror.here());
    let ran = restricted(
        &[&here, &http],
        &format!(
            "import hashlib, random, threading\n\
             from urllib.request import Request\n\
             data = random.Random(1).randbytes({size})\n\
             s = tunnel('{here}')\n\
             def send(): s.sendall(data); s.shutdown(socket.SHUT_WR)\n\
             threading.Thread(target=send).start()\n\
             back = b''.join(iter(lambda: s.recv(1 << 16), b''))\n\
             print(back == data)\n\
             answer = urlopen(Request('http://{http}/', data)).read()\n\
             print(answer.endswith(b'\\r\\n\\r\\n' + data))\n\
             pieces = (data[at:at + 70000] for at in range(0, len(data), 70000))\n\
             answer = urlopen(Request('http://{http}/', pieces, {{'Transfer-Encoding': 'chunked'}})).read()\n\
             print(len(answer) > len(data), answer.endswith(b'0\\r\\n\\r\\n'))"
        ),
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "True\nTrue\nTrue True\n");
    let events = admitted(&ran);
    let size = size as u64;
    let bytes = |at: usize| (events[at]["bytes_sent"].as_u64(), events[at]["bytes_received"].as_u64());
    assert_eq!(bytes(0), (Some(size), Some(size)));
    let (sent, received) = bytes(1);
    assert!(sent > Some(size) && sent < Some(size + 1000) && received > sent, "{sent:?} {received:?}");
}

#[test]
fn sixty_four_connections_are_served_at_one_time_and_the_others_after_them() {
    // Each waits until sixty-four are there, and nobody ever sees more.
    let state = Arc::new((Mutex::new((0usize, 0usize, 0usize)), Condvar::new()));
    let seen = state.clone();
    let server = Server::new(move |mut stream| {
        let (counts, changed) = &*state;
        let mut counts = counts.lock().expect("no panic");
        counts.0 += 1;
        counts.1 += 1;
        counts.2 = counts.2.max(counts.1);
        changed.notify_all();
        let mut counts = changed.wait_while(counts, |counts| counts.0 < 64).expect("no panic");
        counts.1 -= 1;
        drop(counts);
        let _ = stream.write_all(b"x");
        let _ = stream.read(&mut [0u8; 16]);
    });
    let here = server.here();
    let ran = restricted(
        &[&here],
        &format!(
            "import threading\n\
             def one():\n\
             \x20   s = tunnel('{here}')\n\
             \x20   assert s.recv(1) == b'x'\n\
             \x20   s.close()\n\
             \x20   done.append(1)\n\
             done = []\n\
             threads = [threading.Thread(target=one) for _ in range(100)]\n\
             for t in threads: t.start()\n\
             for t in threads: t.join()\n\
             print(len(done))"
        ),
    )
    .run();
    ran.passes();
    assert_eq!((ran.out(), server.visits(), admitted(&ran).len()), ("100\n", 100, 100));
    assert_eq!(seen.0.lock().expect("no panic").2, 64);
}

#[test]
fn whoever_never_finishes_its_head_is_in_nobodys_way() {
    let server = Server::mirror();
    let here = server.here();
    let ran = restricted(
        &[&here],
        &format!(
            "slow = socket.create_connection(('127.0.0.1', 3128))\n\
             slow.sendall(b'GET http://{here}/ HTTP/1.1\\r\\nA: b')\n\
             print(status('GET http://{here}/ HTTP/1.1\\r\\n\\r\\n'))\n\
             print(slow.recv(12).decode())"
        ),
    )
    .run();
    ran.passes();
    assert_eq!((ran.out(), server.visits()), ("200\nHTTP/1.1 408\n", 1));
    // And nobody waits for it when the run is over.
    let ran = restricted(&[&here], "slow = socket.create_connection(('127.0.0.1', 3128)); slow.send(b'GET')").run();
    ran.passes();
}

#[test]
fn a_server_that_never_answers_ends_with_the_run() {
    let (server, told) = Server::silent();
    let here = server.here();
    let ran = restricted(&[&here], &format!("print(status('GET http://{here}/ HTTP/1.1\\r\\n\\r\\n'))"))
        .flag("--timeout", format!("{}s", on_a_slow_host(2, 40)))
        .run();
    ran.violates("TimeoutViolation");
    assert_eq!([0; 2].map(|_| told.recv_timeout(DEADLINE)), [Ok("visited"), Ok("cut")]);
    let events = admitted(&ran);
    assert_eq!((events.len(), &events[0]["bytes_received"]), (1, &0.into()), "{:#}", ran.outcome);
}

#[test]
fn a_program_that_leaves_does_not_wait_for_its_servers() {
    let (server, told) = Server::silent();
    let here = server.here();
    let ran = restricted(&[&here], &format!("s = tunnel('{here}'); s.sendall(b'x'); print('gone')")).run();
    ran.passes();
    assert_eq!([0; 2].map(|_| told.recv_timeout(DEADLINE)), [Ok("visited"), Ok("cut")]);
}

#[test]
fn hotcell_killed_in_the_middle_leaves_no_connection() {
    for signal in ["KILL", "TERM"] {
        let (server, told) = Server::silent();
        let here = server.here();
        let going = restricted(&[&here], &format!("s = tunnel('{here}'); s.sendall(b'x'); s.recv(1)")).start();
        assert_eq!(told.recv_timeout(DEADLINE), Ok("visited"));
        send(going.child.id(), signal);
        let ran = going.finish();
        assert_eq!(told.recv_timeout(DEADLINE), Ok("cut"));
        assert_eq!(ran.code, if signal == "KILL" { 1009 } else { 143 }, "{:#}", ran.outcome);
    }
}

#[test]
fn two_cells_have_a_broker_each() {
    let (one, two) = (Server::mirror(), Server::mirror());
    let source = format!(
        "for target in ('{}', '{}'): print(target, status(f'GET http://{{target}}/ HTTP/1.1\\r\\n\\r\\n'))",
        one.here(),
        two.here()
    );
    let going = [restricted(&[&one.here()], &source).start(), restricted(&[&two.here()], &source).start()];
    let [first, second] = going.map(Going::finish);
    assert_eq!((first.tells(&one.here()), first.tells(&two.here())), ("200", "403"));
    assert_eq!((second.tells(&one.here()), second.tells(&two.here())), ("403", "200"));
    assert_eq!((refused(&first), refused(&second)), (vec![two.here()], vec![one.here()]));
    assert_eq!((one.visits(), two.visits()), (1, 1));
}

#[test]
fn the_place_of_the_broker_can_not_be_taken() {
    let server = Server::mirror();
    let here = server.here();
    let ran = restricted(
        &[&here],
        &format!(
            "import errno\n\
             print('fds', sorted(int(fd) for fd in os.listdir('/proc/self/fd')))\n\
             for family, ip in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):\n\
             \x20   for options in ((), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)):\n\
             \x20       s = socket.socket(family)\n\
             \x20       for option in options: s.setsockopt(socket.SOL_SOCKET, option, 1)\n\
             \x20       try: s.bind((ip, 3128)); s.listen(); print('done')\n\
             \x20       except OSError as e: print(errno.errorcode[e.errno])\n\
             print('broker', status('GET http://{here}/ HTTP/1.1\\r\\n\\r\\n'))"
        ),
    )
    .run();
    ran.passes();
    assert_eq!(ran.out().matches("EADDRINUSE").count(), 12, "{}", ran.out());
    // Three streams, and the directory that is being listed.
    assert_eq!((ran.tells("fds"), ran.tells("broker")), ("[0, 1, 2, 3]", "200"));
}

#[test]
fn a_program_still_talks_to_itself() {
    let source = "\
        import threading\n\
        from http.server import BaseHTTPRequestHandler, HTTPServer\n\
        class Hello(BaseHTTPRequestHandler):\n\
        \x20   def do_GET(self):\n\
        \x20       self.send_response(200); self.end_headers(); self.wfile.write(b'hello')\n\
        \x20   def log_message(self, *words): pass\n\
        server = HTTPServer(('127.0.0.1', 0), Hello)\n\
        threading.Thread(target=server.serve_forever, daemon=True).start()\n\
        for name in ('localhost', '127.0.0.1'): print(urlopen(f'http://{name}:{server.server_port}/').read())";
    let ran = restricted(&["example.org:443"], source).run();
    ran.passes();
    assert_eq!((ran.out(), admitted(&ran).len()), ("b'hello'\nb'hello'\n", 0));
}

#[test]
fn the_callers_own_variables_come_last() {
    let source = "print(os.environ['http_proxy'], os.environ['HTTPS_PROXY'], os.environ['no_proxy'])";
    let ran = restricted(&["example.org:443"], source).run();
    ran.passes();
    assert_eq!(ran.out(), "http://127.0.0.1:3128 http://127.0.0.1:3128 localhost,127.0.0.1,::1\n");
    let ran = restricted(&["example.org:443"], source).flag("--env", "http_proxy=mine").run();
    assert!(ran.passes().out().starts_with("mine http://127.0.0.1:3128 "), "{}", ran.out());
    // No other network has any.
    let ran =
        python("import os; print([k for k in os.environ if 'proxy' in k.lower()])").flag("--network", "local").run();
    assert_eq!(ran.passes().out(), "[]\n");
}

#[test]
fn certificates_are_there_and_name_servers_are_not() {
    let source = "print([os.path.exists(path) for path in ('/etc/ssl', '/etc/resolv.conf')])";
    let ran = restricted(&["example.org:443"], source).run();
    let here = if std::path::Path::new("/etc/ssl").exists() { "True" } else { "False" };
    assert_eq!(ran.passes().out(), format!("[{here}, False]\n"));
}

#[test]
fn an_allowed_host_that_is_not_there_is_nobodys_fault() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").to_string();
    let source = format!(
        "for target in ('{closed}', 'nobody-of-this-name:80'): print(status(f'CONNECT {{target}} HTTP/1.1\\r\\n\\r\\n'))"
    );
    let ran = restricted(&[&closed, "nobody-of-this-name:80"], &source).run();
    ran.passes();
    assert_eq!(ran.out(), "502\n502\n");
    let events = ran.outcome["events"].as_array().expect("a list");
    assert_eq!(events.iter().map(|event| &event["kind"]).collect::<Vec<_>>(), ["egress.failed", "egress.failed"]);
}

#[test]
fn flags_that_say_nothing_sensible() {
    let one = |hosts: &[&str], network: &str, parts: &[&str]| {
        let cell = exec(&["true"]).flag("--network", network);
        let ran = hosts.iter().fold(cell, |cell, host| cell.flag("--allow-host", *host)).run();
        for part in parts {
            ran.refused(part);
        }
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    };
    one(&[], "restricted", &["--allow-host NAME:PORT"]);
    for network in ["none", "local", "full"] {
        one(&["example.org:443"], network, &["--allow-host", "--network restricted"]);
    }
    for host in ["example.org", "example.org:0", ":443", "*:443", "127.1:80", "http://a:1", "a b:1", "::1:80", ""] {
        one(&["good.example:1", host], "restricted", &["NAME:PORT"]);
    }
    for host in ["169.254.169.254:80", "[fe80::1]:80", "[::ffff:169.254.169.254]:80", "0.0.0.0:80", "224.0.0.1:1"] {
        one(&[host], "restricted", &[host, "never reached"]);
    }
    exec(&["true"]).flag("--network", "restricted").flag("--allow-host", "*.example.org:443").run().passes();
}
