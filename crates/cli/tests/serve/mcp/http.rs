//! Tools at `/mcp`: each request by itself, behind the same doors as every other.

use serde_json::{Value, json};

use super::agent::{initialize, message, notification, verdict};
use crate::client::{Answer, Connection, request};
use crate::harness::*;

const ACCEPT: &str = "Accept: application/json, text/event-stream";
const JSON: &str = "Content-Type: application/json";

fn post(service: &Service<'_>, headers: &[&str], message: &Value) -> Answer {
    service.ask("POST", "/mcp", &[&[ACCEPT], headers].concat(), message.to_string().as_bytes())
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    message(id, "tools/call", &json!({ "name": tool, "arguments": arguments }))
}

/// A run that sleeps, once it does, and who waits for it.
#[track_caller]
fn sleeper(service: &Service<'_>, headers: &[&str], is_told: bool) -> Connection {
    let meta = if is_told { json!({ "progressToken": 1 }) } else { json!({}) };
    let arguments = json!({ "command": ["sleep", "3000"], "environment": { "HOTCELL_TEST_MARK": service.place.mark } });
    let call = message(7, "tools/call", &json!({ "name": "run_command", "arguments": arguments, "_meta": meta }));
    let key = service.key.as_ref().map(|key| format!("X-API-Key: {key}"));
    let all: Vec<&str> = [&[ACCEPT, JSON], headers].concat().into_iter().chain(key.as_deref()).collect();
    let before = service.place.records(&["--status", "running"]).len();
    let mut connection = service.connect();
    connection.send(request("POST", "/mcp", &all, call.to_string().as_bytes()));
    wait_until("a run", || service.place.records(&["--status", "running"]).len() > before);
    connection
}

#[test]
fn each_request_is_answered_by_itself() {
    let place = Place::new();
    let service = place.serve(&[]);
    let hello = post(&service, &[], &initialize(1));
    assert_eq!((hello.status, &hello.json()["result"]["serverInfo"]["name"]), (200, &json!("hotcell")));
    assert_eq!(hello.headers["mcp-session-id"].len(), 36);
    assert_eq!(post(&service, &[], &notification("notifications/initialized", &json!({}))).status, 202);
    // What came before is not needed.
    let listed = post(&service, &[], &message(2, "tools/list", &json!({}))).json();
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(4));
    let ran = post(&service, &[], &call(3, "run_code", &json!({ "code": "print(6 * 7)" })));
    assert_eq!((ran.status, ran.headers["content-type"].as_str()), (200, "application/json"));
    let result = ran.json()["result"].clone();
    assert_eq!((&result["isError"], &result["structuredContent"]["stdout"]), (&json!(false), &json!("42\n")));
    // It is a run like every other.
    let id = result["structuredContent"]["run_id"].as_str().expect("an id");
    assert_eq!(service.until(id, "completed")["outcome"]["stdout"], "42\n");
    let wrong = post(&service, &[], &call(4, "run_code", &json!({ "cod": "1" }))).json()["result"].clone();
    assert_eq!((&wrong["isError"], verdict(&wrong).contains("field cod")), (&json!(true), true));
    assert_eq!(post(&service, &[], &call(5, "rm", &json!({}))).json()["error"]["code"], -32602);
    // Progress makes a stream of it.
    let told = post(
        &service,
        &[],
        &message(
            6,
            "tools/call",
            &json!({
        "name": "run_command", "arguments": { "command": ["echo", "x"] }, "_meta": { "progressToken": "p" } }),
        ),
    );
    assert_eq!(told.headers["content-type"], "text/event-stream");
    let text = told.text();
    let events: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok()).collect();
    let (last, progress) = events.split_last().expect("there are some");
    assert_eq!((&last["id"], &last["result"]["structuredContent"]["stdout"]), (&json!(6), &json!("x\n")));
    assert!(progress.len() >= 2 && progress.iter().all(|event| event["params"]["progressToken"] == "p"), "{text}");
    for method in ["GET", "DELETE"] {
        service.ask(method, "/mcp", &[ACCEPT], b"").is_problem(405, None, &["can't be done here"]);
    }
}

#[test]
fn the_doors_are_those_of_the_service() {
    let place = Place::new();
    let service = place.serve(&[]);
    let body = call(1, "run_command", &json!({ "command": ["true"] })).to_string();
    let ask = |headers: &[&str]| service.raw(request("POST", "/mcp", headers, body.as_bytes()));
    ask(&[ACCEPT, JSON, "Origin: http://evil.example"]).is_problem(403, None, &["pages"]);
    ask(&[ACCEPT, JSON, "Host: evil.example"]).is_problem(403, None, &["localhost"]);
    ask(&[ACCEPT, "Content-Type: text/plain"]).is_problem(415, None, &["application/json"]);
    ask(&[JSON]).is_problem(406, None, &["text/event-stream"]);
    for bad in ["", "{", "[]", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", "1", "{\"id\":1}"] {
        let answer = service.ask("POST", "/mcp", &[ACCEPT], bad.as_bytes());
        answer.is_problem(400, None, &[]);
    }
    let mut large = service.connect();
    large.send(format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{ACCEPT}\r\n{JSON}\r\nContent-Length: 5000000\r\n\r\n"
    ));
    large.answer().is_problem(413, None, &["bytes"]);
    // What is said back is short.
    let long = "x".repeat(1000);
    let named = json!({ "jsonrpc": "2.0", "id": long, "method": "tools/list" });
    post(&service, &[], &named).is_problem(400, None, &["`id`"]);
    assert!(place.records(&[]).is_empty());
    let params =
        json!({ "name": "run_command", "arguments": { "command": ["true"] }, "_meta": { "progressToken": long } });
    let untold = post(&service, &[], &message(1, "tools/call", &params));
    assert_eq!(untold.headers["content-type"], "application/json");
    assert_eq!(ask(&[ACCEPT, JSON]).json()["result"]["structuredContent"]["status"], "pass");
    // A key, and the right one.
    let (reader, runner) = (place.key(&["--scope", "read"]), place.key(&["--scope", "run", "--tenant", "r"]));
    ask(&[ACCEPT, JSON]).is_problem(401, None, &["a key is needed"]);
    ask(&[ACCEPT, JSON, "Authorization: Bearer hc_1_2"]).is_problem(401, None, &["not known"]);
    ask(&[ACCEPT, JSON, &format!("X-API-Key: {reader}")]).is_problem(403, None, &["`run`"]);
    let ran = ask(&[ACCEPT, JSON, &format!("Authorization: Bearer {runner}")]);
    assert_eq!(ran.json()["result"]["structuredContent"]["status"], "pass");
    assert_eq!(place.records(&["--tenant", "r"]).len(), 1);
}

#[test]
fn a_call_is_taken_back_by_its_own_client_alone() {
    let place = Place::new();
    let mounts = host_mounts();
    let (a, b) = (place.key(&["--tenant", "a"]), place.key(&["--tenant", "b"]));
    let mut service = place.serve(&[]);
    service.key = Some(a.clone());
    let session = post(&service, &[], &initialize(1)).headers["mcp-session-id"].clone();
    let header = format!("Mcp-Session-Id: {session}");
    let mut waiting = sleeper(&service, &[&header], false);
    let take_back = |service: &Service<'_>, headers: &[&str], id: Value| {
        let answer = post(service, headers, &notification("notifications/cancelled", &json!({ "requestId": id })));
        assert_eq!(answer.status, 202);
    };
    service.key = Some(b);
    take_back(&service, &[&header], json!(7));
    service.key = Some(a);
    take_back(&service, &["Mcp-Session-Id: another"], json!(7));
    take_back(&service, &[], json!(7));
    take_back(&service, &[&header], json!("7"));
    take_back(&service, &[&header], json!(8));
    assert_eq!(place.records(&["--status", "running"]).len(), 1);
    take_back(&service, &[&header], json!(7));
    let answer = waiting.answer().json();
    assert_eq!(answer["result"]["structuredContent"]["terminal_event"], "Cancelled", "{answer}");
    nothing_left_but(&service, &mounts);
}

#[test]
fn a_client_that_goes_away_takes_its_runs_along() {
    let place = Place::new();
    let mounts = host_mounts();
    let service = place.serve(&[]);
    for is_told in [false, true] {
        drop(sleeper(&service, &[], is_told));
        wait_until("its end", || place.records(&["--status", "running"]).is_empty());
    }
    let records = place.records(&[]);
    assert_eq!((records.len(), records.iter().all(|record| record["status"] == "killed")), (2, true), "{records:?}");
    nothing_left_but(&service, &mounts);
}

/// The service goes, and with it everything.
#[track_caller]
fn nothing_left_but(service: &Service<'_>, mounts: &str) {
    service.signal("TERM");
    assert_eq!(service.wait(), Some(0));
    nothing_left(&service.place.mark, mounts);
}
