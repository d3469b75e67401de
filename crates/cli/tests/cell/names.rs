//! The egress broker and names: in a network namespace of the test's own, where a public address is on the loopback, a name
//! server answers as it is told, and nobody outside is asked.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::*;

/// Makes that namespace's world, and runs the words behind it in it. Each name has a list of answers, one a question.
const WORLD: &str = r#"
import fcntl, socket, socketserver, struct, subprocess, sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
PUBLIC, OTHER = '198.41.0.4', '198.41.0.5'
answers = {
    'good.example': [PUBLIC],
    'alias.example': [PUBLIC],
    'private.example': ['10.0.0.1'],
    'metadata.example': ['169.254.169.254'],
    'mixed.example': [PUBLIC, '127.0.0.1'],
    'rebound.example': [[PUBLIC], ['127.0.0.1']],
}
control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def set(name, request, data): fcntl.ioctl(control, request, name.encode().ljust(16, b'\0') + data.ljust(24, b'\0'))
set('lo', 0x8914, struct.pack('h', 1))
for number, ip in enumerate((PUBLIC, OTHER)):
    set(f'lo:{number}', 0x8916, struct.pack('hH4s', 2, 0, socket.inet_aton(ip)))
def name_of(packet):
    at, labels = 12, []
    while packet[at]:
        labels.append(packet[at + 1:at + 1 + packet[at]].decode()); at += 1 + packet[at]
    return '.'.join(labels), at + 5
asked = []
def serve_names():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(('127.0.0.1', 53))
    while True:
        packet, sender = server.recvfrom(512)
        name, end = name_of(packet)
        kind = packet[end - 3]
        known = answers.get(name)
        now = known or []
        if kind == 1: asked.append(name)
        if kind == 1 and known and isinstance(known[0], list): now = known.pop(0)
        records = [b'\xc0\x0c\0\1\0\1\0\0\0\0\0\4' + socket.inet_aton(ip) for ip in now] if kind == 1 else []
        head = packet[:2] + (b'\x81\x80' if known is not None else b'\x81\x83') + b'\0\1' + struct.pack('>H', len(records)) + b'\0\0\0\0'
        server.sendto(head + packet[12:end] + b''.join(records), sender)
threading.Thread(target=serve_names, daemon=True).start()
class Hello(BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{self.server.server_address[0]} {self.headers['Host']}".encode()
        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *words): pass
for ip in (PUBLIC, OTHER, '127.0.0.1'):
    server = HTTPServer((ip, 80), Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
for at in ('hosts', 'resolv.conf'): subprocess.run(['mount', '--bind', f'input/{at}', f'/etc/{at}'], check=True)
ran = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL)
print('asked', *asked, file=sys.stderr)
sys.exit(ran.returncode)
"#;

fn can_have_it() -> bool {
    let files = ["/etc/hosts", "/etc/resolv.conf"].iter().all(|path| std::path::Path::new(path).exists());
    if as_user() {
        skip("a network of the test's own needs root");
    } else if !files {
        skip("there is no /etc/hosts or /etc/resolv.conf to put another in the place of");
    }
    !as_user() && files
}

/// Runs a cell in that world: its Outcome, and the names that were asked for.
#[track_caller]
fn in_that_world(hosts: &[&str], targets: &[&str]) -> (Value, Vec<String>) {
    let source = format!(
        "from http.client import HTTPConnection\n\
         for target in {targets:?}:\n\
         \x20   c = HTTPConnection('127.0.0.1', 3128); c.request('GET', f'http://{{target}}/')\n\
         \x20   answer = c.getresponse(); print(target, answer.status, answer.read().decode().strip())"
    );
    let cell = python(&source).flag("--network", "restricted").flag("--result", "result.json").text();
    let cell = hosts.iter().fold(cell, |cell, host| cell.flag("--allow-host", *host));
    let input = cell.dir().join("input");
    std::fs::create_dir_all(&input).expect("the test's own directory");
    std::fs::write(input.join("hosts"), "198.41.0.5 filed.example filed\n").expect("the test's own directory");
    std::fs::write(input.join("resolv.conf"), "nameserver 127.0.0.1\n").expect("the test's own directory");
    let (inner, watch) = cell.prepare();
    let mut outer = around(Command::new("unshare"), &inner);
    outer.args(["--mount", "--net", "python3", "-c", WORLD]).arg(inner.get_program()).args(inner.get_args());
    let mut child = outer.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("unshare is installed");
    watch.end_of(&mut child);
    let said = child.wait_with_output().expect("it is our child");
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let asked = said.lines().find_map(|line| line.strip_prefix("asked")).unwrap_or_else(|| panic!("{said}"));
    let outcome = watch.result();
    watch.nothing_left();
    (outcome, asked.split_whitespace().map(str::to_owned).collect())
}

fn refused(outcome: &Value) -> Vec<(&str, &str)> {
    let all = outcome["violations"].as_array().expect("a list");
    let text = |value: &Value| value["note"].as_str().unwrap_or_default().len();
    assert!(all.iter().all(|v| v["evidence"] == "egress broker" && text(&v["detail"]) > 0), "{outcome:#}");
    all.iter().filter_map(|v| Some((v["detail"]["address"].as_str()?, v["detail"]["note"].as_str()?))).collect()
}

#[test]
fn names_that_are_allowed_are_looked_up_and_reached() {
    if !can_have_it() {
        return;
    }
    let hosts = ["good.example:80", "*.example:80", "filed:80"];
    let (outcome, asked) =
        in_that_world(&hosts, &["good.example", "GOOD.Example.", "alias.example", "filed", "filed.example"]);
    assert_eq!(outcome["status"], "pass", "{outcome:#}");
    let events: Vec<&Value> = outcome["events"].as_array().expect("a list").iter().map(|e| &e["fields"]).collect();
    let reached: Vec<_> = events.iter().map(|e| (e["host"].as_str(), e["address"].as_str())).collect();
    let (public, other) = (Some("198.41.0.4:80"), Some("198.41.0.5:80"));
    let expected = [("good.example", public), ("good.example", public), ("alias.example", public), ("filed", other)];
    let expected = expected.into_iter().chain([("filed.example", other)]);
    assert_eq!(reached, expected.map(|(host, address)| (Some(host), address)).collect::<Vec<_>>());
    // The file comes first.
    assert_eq!(asked, ["good.example", "good.example", "alias.example"]);
}

#[test]
fn names_that_are_not_allowed_are_not_even_looked_up() {
    if !can_have_it() {
        return;
    }
    let targets = ["secret-words.evil.example", "good.example:8080", "198.41.0.4", "alias.example", "xgood.example"];
    let (outcome, asked) = in_that_world(&["good.example:80"], &targets);
    assert_eq!(outcome["failure_class"], "NetworkAccessViolation", "{outcome:#}");
    assert_eq!((refused(&outcome).len(), asked.len(), &outcome["events"]), (5, 0, &Value::Array(vec![])));
}

#[test]
fn names_that_point_inside_are_refused() {
    if !can_have_it() {
        return;
    }
    let targets = ["private.example", "metadata.example", "mixed.example", "localhost", "good.example"];
    let (outcome, _) = in_that_world(&["*.example:80", "localhost:80"], &targets);
    let points = |ip: &str| format!("points to {ip}, which is not public");
    let notes = [points("10.0.0.1"), points("169.254.169.254"), points("127.0.0.1"), points("127.0.0.1")];
    let names = ["private.example:80", "metadata.example:80", "mixed.example:80", "localhost:80"];
    assert_eq!(refused(&outcome), names.into_iter().zip(notes.iter().map(String::as_str)).collect::<Vec<_>>());
    assert_eq!(outcome["events"].as_array().map(Vec::len), Some(1), "{outcome:#}");
}

#[test]
fn a_name_that_changes_is_judged_by_each_answer_and_reached_by_the_same() {
    if !can_have_it() {
        return;
    }
    let (outcome, asked) = in_that_world(&["rebound.example:80"], &["rebound.example", "rebound.example"]);
    // One question a connection: there is no second look between the judgement and the connection.
    assert_eq!(asked, ["rebound.example"; 2]);
    assert_eq!(outcome["events"][0]["fields"]["address"], "198.41.0.4:80", "{outcome:#}");
    assert_eq!(refused(&outcome), [("rebound.example:80", "points to 127.0.0.1, which is not public")]);
}
