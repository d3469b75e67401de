//! Connections through the broker: how much, how many at one time, and their end with the run.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::server::Server;
use super::{admitted, restricted};
use crate::harness::*;

const MIB: usize = 1 << 20;

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
    .flag("--timeout", "170s")
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
    let ran = server
        .program(
            "import threading\n\
             def one():\n\
             \x20   s = tunnel('HERE')\n\
             \x20   assert s.recv(1) == b'x'\n\
             \x20   s.close()\n\
             \x20   done.append(1)\n\
             done = []\n\
             threads = [threading.Thread(target=one) for _ in range(100)]\n\
             for t in threads: t.start()\n\
             for t in threads: t.join()\n\
             print(len(done))",
        )
        .run();
    ran.passes();
    assert_eq!((ran.out(), server.visits(), admitted(&ran).len()), ("100\n", 100, 100));
    assert_eq!(seen.0.lock().expect("no panic").2, 64);
}

#[test]
fn a_server_that_never_answers_ends_with_the_run() {
    let (ran, told) = with_time_enough(
        Duration::from_secs(on_a_slow_host(2, 40) as u64),
        |limit| {
            let (server, told) = Server::silent();
            let cell = server.program("print(status('GET http://HERE/ HTTP/1.1\\r\\n\\r\\n'))");
            (cell.flag("--timeout", in_ms(limit)).run(), told)
        },
        |(ran, _)| !admitted(ran).is_empty(),
    );
    ran.violates("TimeoutViolation");
    assert_eq!([0; 2].map(|_| told.recv_timeout(DEADLINE)), [Ok("visited"), Ok("cut")]);
    let events = admitted(&ran);
    assert_eq!((events.len(), &events[0]["bytes_received"]), (1, &0.into()), "{:#}", ran.outcome);
}

#[test]
fn a_program_that_leaves_does_not_wait_for_its_servers() {
    let (server, told) = Server::silent();
    let ran = server.program("s = tunnel('HERE'); s.sendall(b'x'); print('gone')").run();
    ran.passes();
    assert_eq!([0; 2].map(|_| told.recv_timeout(DEADLINE)), [Ok("visited"), Ok("cut")]);
}

#[test]
fn hotcell_killed_in_the_middle_leaves_no_connection() {
    for signal in ["KILL", "TERM"] {
        let (server, told) = Server::silent();
        let going = server.program("s = tunnel('HERE'); s.sendall(b'x'); s.recv(1)").start();
        assert_eq!(told.recv_timeout(DEADLINE), Ok("visited"));
        send(going.child.id(), signal);
        let ran = going.finish();
        assert_eq!(told.recv_timeout(DEADLINE), Ok("cut"));
        assert_eq!(ran.code, if signal == "KILL" { 1009 } else { 143 }, "{:#}", ran.outcome);
    }
}
