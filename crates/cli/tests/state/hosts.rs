//! Policies that name hosts: what they admit, and flags that may only narrow it.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::Value;

use crate::harness::*;

/// A policy with this network, kept as `mine`.
#[track_caller]
fn define(place: &Place, network: &str, hosts: &[&str]) {
    let lines = format!("allow_network = true\nallowed_hosts = {hosts:?}\nallow_file_write = true");
    let text = policy("mine", &lines).replace("\"none\"", &format!("{network:?}"));
    let file = place.write("mine.toml", text);
    let ran = place.go(&["policy", "define", file.to_str().expect("UTF-8")]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

/// A server of one word, on the host's loopback.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the test's own");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0u8; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    port
}

fn fetch(target: &str) -> String {
    format!("from urllib.request import urlopen\nprint(urlopen('http://{target}/').read().decode())")
}

fn hosts(outcome: &Value) -> Vec<&str> {
    let all = outcome["runtime_config"]["allowed_hosts"].as_array().expect("a list");
    all.iter().filter_map(Value::as_str).collect()
}

#[test]
fn a_policys_hosts_are_reached_and_no_others() {
    let place = Place::new();
    let (one, two) = (format!("127.0.0.1:{}", server()), format!("127.0.0.1:{}", server()));
    define(&place, "restricted", &[&one, "Example.ORG.:443"]);
    let outcome = place.run(&["--policy", "mine"], &fetch(&one));
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"hello\n".into()), "{outcome:#}");
    assert_eq!(hosts(&outcome), [&one, "example.org:443"]);
    assert_eq!(outcome["events"][0]["kind"], "egress.admitted");
    let outcome = place.run(&["--policy", "mine"], &fetch(&two));
    assert_eq!(outcome["failure_class"], "NetworkAccessViolation");
    assert_eq!(outcome["violations"][0]["detail"]["address"], two.as_str());
    assert_eq!(place.newest()["failure_class"], "NetworkAccessViolation");
}

#[test]
fn flags_only_narrow_them() {
    let place = Place::new();
    let one = format!("127.0.0.1:{}", server());
    define(&place, "restricted", &[&one, "example.org:443", "*.example.net:443"]);
    for narrower in
        ["example.org:443", "EXAMPLE.org.:443", "a.example.net:443", "*.a.example.net:443", "*.example.net:443"]
    {
        let outcome = place.exec(&["--policy", "mine", "--allow-host", narrower], &["true"]);
        assert_eq!((&outcome["status"], hosts(&outcome).len()), (&"pass".into(), 1), "{narrower}");
    }
    // Asked for at the broker itself: an address of the cell's own is reached without, unless it is one of the hosts.
    let ask = format!(
        "from http.client import HTTPConnection\nc = HTTPConnection('127.0.0.1', 3128)\nc.request('GET', 'http://{one}/')\n\
         print(c.getresponse().status)"
    );
    assert_eq!(place.run(&["--policy", "mine"], &ask)["stdout"], "200\n");
    let outcome = place.run(&["--policy", "mine", "--allow-host", "example.org:443"], &ask);
    assert_eq!(outcome["stdout"], "403\n");
    assert_eq!(outcome["failure_class"], "NetworkAccessViolation", "{outcome:#}");
    // Less than that is always in order.
    let outcome = place.run(&["--policy", "mine", "--network", "none"], "print(1)");
    assert_eq!((&outcome["status"], hosts(&outcome).len()), (&"pass".into(), 0));
    for wider in ["example.org:80", "example.net:443", "*.example.org:443", "*.net:443", "127.0.0.1:1", "[::1]:443"] {
        let ran = place.go(&["exec", "--policy", "mine", "--allow-host", wider, "--", "echo", "ran"]);
        ran.refused(&["mine", "more than", wider]);
        let record = place.newest();
        assert_eq!((&record["status"], &record["failure_class"]), (&"denied".into(), &"PolicyViolation".into()));
    }
    place.go(&["exec", "--policy", "mine", "--network", "full", "--", "echo", "ran"]).refused(&["mine", "more than"]);
    place
        .go(&["exec", "--policy", "mine", "--network", "none", "--allow-host", &one, "--", "echo", "ran"])
        .refused(&["--allow-host"]);
}

#[test]
fn a_policy_of_the_whole_network_can_be_narrowed_to_hosts() {
    let place = Place::new();
    let one = format!("127.0.0.1:{}", server());
    define(&place, "full", &[]);
    let narrow = ["--policy", "mine", "--network", "restricted", "--allow-host", &one];
    assert_eq!(place.run(&narrow, &fetch(&one))["stdout"], "hello\n");
    assert_eq!(place.run(&narrow, &fetch("example.org"))["failure_class"], "NetworkAccessViolation");
    place.go(&["exec", "--policy", "mine", "--network", "restricted", "--", "echo", "ran"]).refused(&["--allow-host"]);
    // A policy without any has none to narrow.
    for policy in ["standard", "permissive"] {
        place
            .go(&["run", "--policy", policy, "--network", "restricted", "--allow-host", &one, "--code", "print(1)"])
            .refused(&[policy, "more than"]);
    }
}

#[test]
fn tests_that_are_verified_reach_them_too() {
    let place = Place::new();
    let (one, two) = (format!("127.0.0.1:{}", server()), format!("127.0.0.1:{}", server()));
    define(&place, "restricted", &[&one]);
    let source = place.write("a.py", "def one():\n    return 1\n");
    let verify = |target: &str| {
        let tests = format!(
            "import unittest\nfrom urllib.request import urlopen\nclass T(unittest.TestCase):\n    def test_one(self):\n        \
             self.assertEqual(urlopen('http://{target}/').read(), b'hello')\n"
        );
        let tests = place.write("test_a.py", tests);
        let [source, tests] = [&source, &tests].map(|path| path.to_str().expect("UTF-8"));
        place.go(&["verify", source, "--tests", tests, "--policy", "mine", "--output", "json"]).json()
    };
    let outcome = verify(&one);
    assert_eq!((&outcome["status"], &outcome["tier"]), (&"pass".into(), &"L1".into()), "{outcome:#}");
    assert_eq!(outcome["events"][0]["fields"]["address"], one.as_str());
    assert_eq!(verify(&two)["failure_class"], "NetworkAccessViolation");
}
