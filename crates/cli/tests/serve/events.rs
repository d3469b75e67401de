//! What is told of a run while it goes: in order, with numbers, to whoever comes late and to who comes again.

use serde_json::{Value, json};

use crate::client::{Connection, request};
use crate::harness::*;

/// A stream of events, read one by one.
struct Stream {
    connection: Connection,
    text: String,
}

impl Stream {
    #[track_caller]
    fn open(service: &Service<'_>, id: &str, headers: &[&str]) -> Stream {
        let mut connection = service.connect();
        connection.send(request("GET", &format!("/v1/runs/{id}/events"), headers, b""));
        let (status, head) = connection.head();
        assert_eq!((status, head["content-type"].as_str()), (200, "text/event-stream"));
        Stream { connection, text: String::new() }
    }

    /// Its number, its name, its data.
    #[track_caller]
    fn next(&mut self) -> Option<(u64, String, Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let Some(name) = field("event: ") else { continue };
                let data = serde_json::from_str(field("data: ").expect("data")).expect("JSON");
                return Some((field("id: ").map_or(0, |id| id.parse().expect("a number")), name.to_owned(), data));
            }
            let chunk = self.connection.chunk()?;
            self.text.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
        }
    }

    /// The next that has this name.
    #[track_caller]
    fn until(&mut self, name: &str) -> (u64, Value) {
        loop {
            let (number, found, data) = self.next().unwrap_or_else(|| panic!("no {name} came"));
            if found == name {
                return (number, data);
            }
        }
    }

    fn rest(mut self) -> Vec<(u64, String, Value)> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

#[test]
fn events_come_while_it_runs_and_end_with_it() {
    let place = Place::new();
    let service = place.serve(&[]);
    let code = "import sys\nprint('one \\u20ac', flush=True)\nprint('two', file=sys.stderr, flush=True)\nimport time; time.sleep(3000)";
    let id = service.start(&json!({ "code": code, "request_id": "mine" }));
    let mut stream = Stream::open(&service, &id, &[]);
    let (first, name, data) = stream.next().expect("an event");
    assert_eq!((first, name.as_str(), &data["request_id"]), (1, "exec_event.ADMITTED", &json!("mine")));
    stream.until("exec_event.STARTED");
    let (_, one) = stream.until("exec_event.OUTPUT");
    assert_eq!((&one["data"]["stream"], &one["data"]["text"]), (&json!("stdout"), &json!("one \u{20ac}\n")));
    let (_, two) = stream.until("exec_event.OUTPUT");
    assert_eq!((&two["data"]["stream"], &two["data"]["text"]), (&json!("stderr"), &json!("two\n")));
    stream.until("exec_event.SAMPLE");
    service.ask("DELETE", &format!("/v1/runs/{id}"), &[], b"");
    stream.until("exec_event.KILLED");
    assert!(stream.next().is_none());
}

#[test]
fn what_ended_a_run_that_was_called_off_is_told_as_it_was() {
    let place = Place::new();
    let service = place.serve(&[]);
    for (trap, signal) in [("", 15), ("trap '' TERM; ", 9)] {
        let script = format!("{trap}echo up; while :; do sleep 1; done");
        let body = json!({ "command": ["sh", "-c", script], "limits": { "grace_ms": 100 } });
        let id = service.start(&body);
        let mut stream = Stream::open(&service, &id, &[]);
        stream.until("exec_event.OUTPUT");
        service.ask("DELETE", &format!("/v1/runs/{id}"), &[], b"");
        assert_eq!(stream.until("exec_event.KILLED").1["data"]["signal"], signal);
        let outcome = service.ended(&id)["outcome"].clone();
        assert_eq!((&outcome["signal"], &outcome["exit_code"]), (&json!(signal), &json!(null)), "{outcome}");
    }
}

#[test]
fn who_comes_again_goes_on_where_he_was() {
    let place = Place::new();
    let service = place.serve(&[]);
    let id = service.start(&json!({ "command": ["sh", "-c", "for i in 1 2 3 4 5; do echo $i; done"] }));
    service.ended(&id);
    let all = Stream::open(&service, &id, &[]).rest();
    assert_eq!(all.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), (1..=all.len() as u64).collect::<Vec<_>>());
    let said: String = all
        .iter()
        .filter(|(_, name, _)| name == "exec_event.OUTPUT")
        .filter_map(|(.., event)| event["data"]["text"].as_str())
        .collect();
    assert_eq!(said, "1\n2\n3\n4\n5\n");
    let again = Stream::open(&service, &id, &["Last-Event-ID: 2"]).rest();
    assert_eq!(again, all[2..]);
    assert!(Stream::open(&service, &id, &["Last-Event-ID: 999"]).rest().is_empty());
    service.ask("GET", &format!("/v1/runs/{id}/events"), &["Last-Event-ID: x"], b"").is_problem(
        422,
        Some("Last-Event-ID"),
        &["ids"],
    );
    // The last that there could ever be: nothing is behind it, and nothing was missed.
    let last = format!("Last-Event-ID: {}", u64::MAX);
    assert_eq!(Stream::open(&service, &id, &[&last]).rest(), []);
}

#[test]
fn a_flood_is_cut_and_told_as_such() {
    let place = Place::new();
    let service = place.serve(&[]);
    let id = service.start(&json!({ "command": ["head", "-c", "5000000", "/dev/zero"] }));
    let run = service.ended(&id);
    assert_eq!(run["outcome"]["output"]["stdout"]["bytes"], 5_000_000);
    let all = Stream::open(&service, &id, &[]).rest();
    assert_eq!(all[0].1, "missed");
    assert!(all[0].2["events"].as_u64().is_some_and(|missed| missed > 0));
    assert_eq!(all.last().expect("some").1, "exec_event.FINISHED");
}

#[test]
fn streams_are_of_a_tenants_own_runs_and_are_so_many() {
    let place = Place::new();
    let (a, b) = (place.key(&["--tenant", "a"]), place.key(&["--tenant", "b"]));
    let mut service = place.serve(&[]);
    service.key = Some(b);
    let theirs = service.sleeper();
    service.key = Some(a.clone());
    service.get(&format!("/v1/runs/{theirs}/events")).is_problem(404, None, &["no such run"]);
    let id = service.sleeper();
    let key = format!("X-API-Key: {a}");
    let mut open: Vec<Stream> = (0..256).map(|_| Stream::open(&service, &id, &[&key])).collect();
    service.get(&format!("/v1/runs/{id}/events")).is_problem(429, None, &["256 streams"]);
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    drop(open.pop());
    // The next thing that is sent to him finds out.
    wait_until("a place", || {
        let mut connection = service.connect();
        connection.send(request("GET", &format!("/v1/runs/{id}/events"), &[&key], b""));
        connection.head().0 == 200
    });
}

#[test]
fn a_key_that_is_revoked_ends_its_streams_and_no_others() {
    let place = Place::new();
    let (a, b) = (place.key(&[]), place.key(&[]));
    let mut service = place.serve(&[]);
    service.key = Some(b.clone());
    let code = "import time\nwhile True: print('on', flush=True); time.sleep(0.01)";
    let id = service.start(&json!({ "code": code }));
    let mut streams = [a.clone(), b].map(|key| Stream::open(&service, &id, &[&format!("X-API-Key: {key}")]));
    streams.iter_mut().for_each(|stream| drop(stream.until("exec_event.OUTPUT")));
    assert_eq!(place.go(&["keys", "revoke", a.split('_').nth(1).expect("it has parts")]).code, 0);
    let [hers, mut his] = streams;
    // However much there is to tell.
    assert_eq!(hers.rest().last().expect("some").1, "closed");
    his.until("exec_event.OUTPUT");
    service.ask("DELETE", &format!("/v1/runs/{id}"), &[], b"");
    assert_eq!(his.rest().last().expect("some").1, "exec_event.KILLED");
}

#[test]
fn what_is_not_remembered_any_more_is_gone_and_not_unknown() {
    let place = Place::new();
    let service = place.serve(&[]);
    let id = service.start(&json!({ "command": ["true"] }));
    service.ended(&id);
    service.signal("TERM");
    service.wait();
    let service = place.serve(&[]);
    service.get(&format!("/v1/runs/{id}/events")).is_problem(410, None, &["result"]);
    service.get("/v1/runs/01a1e3c3-639a-7141-9a47-9f17c1e24400/events").is_problem(404, None, &["no such run"]);
}

#[test]
fn alerts_are_in_the_stream_and_in_the_audit_log() {
    let place = Place::new();
    let service = place.serve(&[]);
    let id = service.start(&json!({ "command": ["sleep", "3000"], "limits": { "wall_ms": 1000 } }));
    let all = Stream::open(&service, &id, &[]).rest();
    assert!(
        all.iter().any(|(_, name, event)| name == "resource_event.ALERT" && event["data"]["resource"] == "wall_time")
    );
    assert_eq!(all.last().expect("some").1, "exec_event.TIMEOUT");
    let audit = place.go(&["audit", "tail"]).stdout;
    let of_it: Vec<&str> = audit.lines().filter(|line| line.contains(&id)).collect();
    assert!(of_it[of_it.len() - 2].contains("resource_event.ALERT"), "{audit}");
    assert!(of_it[of_it.len() - 1].contains("exec_event.TIMEOUT"), "{audit}");
}
