//! The egress broker: a cell reaches the hosts that are allowed, by name and port, and nobody else. Every server here is
//! the test's own, on the host's loopback, which is reached only where it is allowed by its address.

mod admission;
mod connections;
mod heads;
mod inside;
mod record;
mod server;

use serde_json::Value;

use crate::harness::*;

const CLASS: &str = "NetworkAccessViolation";

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
