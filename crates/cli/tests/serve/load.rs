//! More than there is room for: a queue with an end, in turns, and with time-outs.

use std::io::Write;

use serde_json::json;

use crate::client::{Connection, request};
use crate::harness::*;

#[test]
fn a_full_queue_says_so_and_when_to_come_back() {
    let place = Place::new();
    let service = place.serve(&["--concurrency", "1", "--queue", "4"]);
    let going = service.sleeper();
    // Of one tenant, half of it.
    let waiting: Vec<String> = (0..2).map(|_| service.start(&json!({ "command": ["true"] }))).collect();
    let full = service.post("/v1/runs", &json!({ "command": ["true"] }));
    full.is_problem(429, None, &["2 runs of this tenant"]);
    assert_eq!(full.headers["retry-after"], "1");
    assert!(service.get("/metrics").text().contains("hotcell_queue_depth 2\n"));
    // One that waits can be called off, and makes room.
    assert_eq!(service.ask("DELETE", &format!("/v1/runs/{}", waiting[0]), &[], b"").json()["status"], "killed");
    let third = service.start(&json!({ "command": ["true"] }));
    service.ask("DELETE", &format!("/v1/runs/{going}"), &[], b"");
    for id in [&waiting[1], &third] {
        assert_eq!(service.ended(id)["status"], "completed");
    }
    assert_eq!(service.ended(&waiting[0])["problem"]["type"], "urn:hotcell:problem:cancelled");
}

#[test]
fn tenants_are_served_in_turn() {
    let place = Place::new();
    let keys: Vec<String> = ["a", "b"].iter().map(|tenant| place.key(&["--tenant", tenant])).collect();
    let mut service = place.serve(&["--concurrency", "1", "--queue", "40"]);
    service.key = Some(keys[0].clone());
    let going = service.sleeper();
    let of_a: Vec<String> = (0..10).map(|_| service.start(&json!({ "command": ["true"] }))).collect();
    service.key = Some(keys[1].clone());
    // He comes last, with one.
    let of_b = service.start(&json!({ "command": ["true"] }));
    service.key = Some(keys[0].clone());
    service.ask("DELETE", &format!("/v1/runs/{going}"), &[], b"");
    let ends: Vec<String> =
        of_a.iter().map(|id| service.ended(id)["started_at"].as_str().expect("a time").to_owned()).collect();
    service.key = Some(keys[1].clone());
    let his = service.ended(&of_b)["started_at"].as_str().expect("a time").to_owned();
    assert!(his < ends[1], "{his} is not before {ends:?}");
}

#[test]
fn who_waits_too_long_is_told_and_on_record() {
    let place = Place::new();
    place.define("hasty", "request_budget_seconds = 1\nmax_wall_time_seconds = 1");
    let service = place.serve(&["--concurrency", "1"]);
    service.sleeper();
    let answer = service.post("/v1/runs", &json!({ "command": ["true"], "policy_id": "hasty" }));
    let problem = answer.is_problem(429, None, &["within 1 s"]);
    assert!(answer.headers.contains_key("retry-after"));
    let record = &place.records(&["--policy", "hasty"])[0];
    assert_eq!((&record["status"], &record["record_id"]), (&json!("denied"), &problem["record_id"]));
}

#[test]
fn what_is_called_off_in_the_queue_names_no_record() {
    let place = Place::new();
    let service = place.serve(&["--concurrency", "1"]);
    let going = service.sleeper();
    let waits = service.start(&json!({ "command": ["true"] }));
    assert_eq!(service.ask("DELETE", &format!("/v1/runs/{waits}"), &[], b"").status, 202);
    let run = service.ended(&waits);
    assert_eq!(run["problem"]["type"], "urn:hotcell:problem:cancelled", "{run}");
    assert!(run["problem"]["record_id"].is_null() && run["started_at"].is_null(), "{run}");
    let records = place.records(&[]);
    assert_eq!((records.len(), &records[0]["record_id"]), (1, &json!(going)));
}

#[test]
fn quotas_of_a_policy_are_told_with_their_time() {
    let place = Place::new();
    place.define("few", "max_executions_per_minute = 2");
    let service = place.serve(&["--policy", "few"]);
    for _ in 0..2 {
        assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    }
    let over = service.post("/v1/runs", &json!({ "command": ["true"] }));
    let problem = over.is_problem(429, None, &["2 runs a minute"]);
    assert_eq!(problem["failure_class"], "QuotaExceeded");
    let again: u64 = over.headers["retry-after"].parse().expect("seconds");
    assert!((1..=60).contains(&again), "{again}");
    // One that is not waited for is told so later.
    let id = service.start(&json!({ "command": ["true"] }));
    let run = service.ended(&id);
    assert_eq!((&run["status"], &run["problem"]["failure_class"]), (&json!("denied"), &json!("QuotaExceeded")));
}

#[test]
fn many_at_once_all_answer() {
    let place = Place::new();
    let service = place.serve(&["--concurrency", "16", "--queue", "400"]);
    let body = json!({ "command": ["echo", "x"] }).to_string();
    let mut all: Vec<Connection> = (0..100).map(|_| service.connect()).collect();
    for connection in &mut all {
        connection.send(request("POST", "/v1/runs", &["Content-Type: application/json"], body.as_bytes()));
    }
    for connection in &mut all {
        let answer = connection.answer();
        assert_eq!((answer.status, &answer.json()["outcome"]["stdout"]), (200, &json!("x\n")));
    }
    assert_eq!(place.records(&["--status", "completed", "--limit", "1000"]).len(), 100);
    place.is_whole();
}

#[test]
fn who_sends_nothing_is_hung_up_on_and_others_are_served() {
    let place = Place::new();
    let service = place.serve(&[]);
    let mut slow: Vec<Connection> = (0..50).map(|_| service.connect()).collect();
    for connection in &mut slow {
        connection.send("POST /v1/runs HTTP/1.1\r\nHost: loc");
    }
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    let mut body = service.connect();
    body.send(
        "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    );
    // However often another byte comes.
    wait_until("the end of a slow one", || {
        let mut socket = slow[0].socket();
        let _ = socket.set_read_timeout(Some(std::time::Duration::from_millis(100)));
        let _ = socket.write_all(b"x");
        let mut byte = [0];
        match std::io::Read::read(&mut socket, &mut byte) {
            Ok(_) => true,
            Err(e) => !matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
        }
    });
    body.answer().is_problem(408, None, &["30 s"]);
}

#[test]
fn more_runs_than_files_are_refused_at_the_start() {
    let place = Place::new();
    place
        .go(&["serve", "--listen", "127.0.0.1:0", "--concurrency", "10000", "--queue", "100000"])
        .refused(&["10000 runs", "open files"]);
}
