//! What a collector gets: a trace for each run, its stages with their true times, and nothing that the program is made of.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Place, wait_until};

const PATIENCE: Duration = Duration::from_secs(60);

/// Answers every request with `status`.
struct Collector {
    url: String,
    heard: Receiver<(String, Value)>,
}

impl Collector {
    fn new(status: &'static str) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it has one"));
        let (say, heard) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|n| n > 0) {}
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
                let mut body = vec![0; length.expect("it says how long it is")];
                reader.read_exact(&mut body).expect("all of it comes");
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}");
                let _ = reader.get_mut().write_all(answer.as_bytes());
                let body = serde_json::from_slice(&body).expect("it is JSON");
                if say.send((head, body)).is_err() {
                    return;
                }
            }
        });
        Collector { url, heard }
    }

    fn next(&self) -> (String, Value) {
        self.heard.recv_timeout(PATIENCE).expect("something comes")
    }

    fn spans(&self) -> Vec<Value> {
        spans(&self.next().1)
    }
}

fn spans(body: &Value) -> Vec<Value> {
    body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("a list").clone()
}

fn attribute(span: &Value, key: &str) -> Value {
    let all = span["attributes"].as_array().expect("a list");
    let found = all.iter().find(|attribute| attribute["key"] == key);
    found.map(|found| found["value"]["stringValue"].clone()).unwrap_or_default()
}

fn named<'a>(spans: &'a [Value], name: &str) -> Vec<&'a Value> {
    spans.iter().filter(|span| span["name"] == name).collect()
}

/// Nanoseconds, of both ends.
fn times(span: &Value) -> (u64, u64) {
    let of = |key: &str| span[key].as_str().expect("a string").parse().expect("a number");
    (of("startTimeUnixNano"), of("endTimeUnixNano"))
}

/// The root of these, which are one trace: every other span is below it, and within it.
#[track_caller]
fn root(spans: &[Value]) -> &Value {
    let ids: HashSet<&str> = spans.iter().map(|span| span["spanId"].as_str().expect("a string")).collect();
    assert_eq!(ids.len(), spans.len(), "ids are of one span each");
    let is_below = |span: &&Value| ids.contains(span["parentSpanId"].as_str().unwrap_or_default());
    let roots: Vec<&Value> = spans.iter().filter(|span| !is_below(span)).collect();
    assert_eq!(roots.len(), 1, "{spans:#?}");
    let (from, to) = times(roots[0]);
    for span in spans {
        let (began, ended) = times(span);
        assert!(from <= began && began <= ended && ended <= to, "{span:#} is not within {from} to {to}");
        assert_eq!(span["traceId"], roots[0]["traceId"]);
        assert_eq!(
            (span["traceId"].as_str().map(str::len), span["spanId"].as_str().map(str::len)),
            (Some(32), Some(16))
        );
    }
    roots[0]
}

#[test]
fn a_run_is_a_trace_whose_spans_are_its_stages() {
    let (place, collector) = (Place::new(), Collector::new("200 OK"));
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=of%20ours"),
        ("OTEL_SERVICE_NAME", "grader"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test"),
    ];
    let service = place.serve_with(&["--log", "json"], &variables);
    assert_eq!(service.said[2], format!("traces to {}/v1/traces", collector.url));
    let outcome = service.run(&json!({
        "language": "python",
        "code": "import os, sys\nprint('said aloud', os.environ['WORD'])\nsys.exit(3)",
        "environment": { "WORD": "confided" },
    }));
    let (head, body) = collector.next();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains("\r\nContent-Type: application/json\r\n") && head.contains("\r\napi-key: of ours\r\n"),
        "{head}"
    );
    let resource = body["resourceSpans"][0]["resource"].to_string();
    for word in ["grader", "deployment.environment", env!("CARGO_PKG_VERSION")] {
        assert!(resource.contains(word), "{resource}");
    }
    let text = body.to_string();
    for word in ["said aloud", "confided", "sys.exit", "WORD"] {
        assert!(!text.contains(word), "{word} is in {text}");
    }
    let spans = spans(&body);
    let root = root(&spans);
    assert_eq!((&root["name"], &root["kind"], &root["parentSpanId"]), (&json!("hotcell run"), &json!(2), &Value::Null));
    for (key, value) in [
        ("hotcell.tenant", "default"),
        ("hotcell.policy", "balanced"),
        ("hotcell.language", "python"),
        ("hotcell.status", "failed"),
        ("hotcell.failure_class", "RuntimeError"),
    ] {
        assert_eq!(attribute(root, key), value, "{key}");
    }
    for (name, count) in [("queue", 1), ("admit", 2), ("record", 2), ("exec", 1), ("run", 1), ("collect", 1)] {
        assert_eq!(named(&spans, name).len(), count, "{name} in {spans:#?}");
    }
    for name in ["exec", "run", "collect"] {
        let (from, to) = times(named(&spans, name)[0]);
        assert_eq!(json!((to - from) / 1000), outcome["timings"][name], "{name}");
    }
    let exec = named(&spans, "exec")[0];
    for name in ["clone", "cgroup", "mounts"] {
        let found = named(&spans, name);
        assert!(!found.is_empty(), "no {name} in {spans:#?}");
        assert!(found.iter().all(|span| span["parentSpanId"] == exec["spanId"]), "{name}");
        assert!(found.iter().all(|span| times(span).0 >= times(exec).0 && times(span).1 <= times(exec).1), "{name}");
    }
    let id = root["traceId"].as_str().expect("a string");
    wait_until("the line in the log", || place.log().contains(&format!("\"trace_id\":\"{id}\"")));
    wait_until("it is counted", || {
        service
            .get("/metrics")
            .text()
            .contains(&format!("hotcell_trace_spans_total{{became=\"sent\"}} {}", spans.len()))
    });
}

#[test]
fn a_run_is_in_the_trace_of_who_asks_for_it() {
    let (place, collector) = (Place::new(), Collector::new("200 OK"));
    let service = place.serve_with(&[], &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("{}/own", collector.url))]);
    let ask = |parent: &str| {
        let body = json!({ "command": ["true"] }).to_string();
        let answer = service.ask("POST", "/v1/runs", &[&format!("traceparent: {parent}")], body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["id"].as_str().expect("an id").to_owned()
    };
    // One that nobody keeps is not sent.
    ask("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
    let id = ask("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let (head, body) = collector.next();
    assert!(head.starts_with("POST /own HTTP/1.1\r\n"), "{head}");
    let of_caller = spans(&body);
    let first = root(&of_caller);
    assert_eq!(attribute(first, "hotcell.run_id"), id);
    assert_eq!(
        (&first["name"], &first["traceId"]),
        (&json!("hotcell exec"), &json!("0af7651916cd43dd8448eb211c80319c"))
    );
    assert_eq!(first["parentSpanId"], "b7ad6b7169203331");
    // What is none begins one.
    ask("00-00000000000000000000000000000000-b7ad6b7169203331-01");
    let of_ours = collector.spans();
    assert_eq!(root(&of_ours)["parentSpanId"], Value::Null);
}

#[test]
fn a_compiler_has_stages_of_its_own_and_so_has_a_verification() {
    let (place, collector) = (Place::new(), Collector::new("200 OK"));
    let service = place.serve_with(&[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)]);
    let source = "package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"hello\") }";
    assert_eq!(service.run(&json!({ "language": "go", "code": source }))["status"], "pass");
    let compiled = collector.spans();
    root(&compiled);
    let compile = named(&compiled, "compile")[0];
    for name in ["exec", "run", "collect"] {
        let parents: Vec<&Value> = named(&compiled, name).iter().map(|span| &span["parentSpanId"]).collect();
        assert_eq!(parents.len(), 2, "{name}");
        assert_eq!(parents.iter().filter(|parent| **parent == &compile["spanId"]).count(), 1, "{name}");
    }
    let answer = service.post("/v1/verify", &json!({ "language": "python", "code": "print('hello')" }));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let verified = collector.spans();
    assert_eq!(root(&verified)["name"], "hotcell verify");
    let checks: Vec<Value> = named(&verified, "check").iter().map(|span| attribute(span, "hotcell.check")).collect();
    let phases = answer.json()["outcome"]["phases"].clone();
    let phases: Vec<Value> = phases.as_array().expect("a list").iter().map(|phase| phase["name"].clone()).collect();
    assert!(!checks.is_empty() && checks == phases, "{checks:?} {phases:?}");
}

#[test]
fn one_that_was_called_off_in_the_queue_has_waited_and_nothing_else() {
    let (place, collector) = (Place::new(), Collector::new("200 OK"));
    let service = place.serve_with(&["--concurrency", "1"], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)]);
    let sleeper = service.sleeper();
    let waits = service.start(&json!({ "command": ["true"] }));
    assert_eq!(service.ask("DELETE", &format!("/v1/runs/{waits}"), &[], b"").status, 202);
    let spans = collector.spans();
    let root = root(&spans);
    assert_eq!((attribute(root, "hotcell.run_id"), attribute(root, "hotcell.status")), (json!(waits), json!("killed")));
    let mut names: Vec<&str> = spans[1..].iter().filter_map(|span| span["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["admit", "queue"]);
    service.ask("DELETE", &format!("/v1/runs/{sleeper}"), &[], b"");
    assert_eq!(service.ended(&sleeper)["status"], "killed");
}

#[test]
fn a_collector_that_refuses_is_counted_and_one_that_hangs_delays_nothing() {
    let (place, collector) = (Place::new(), Collector::new("400 Bad Request"));
    let service = place.serve_with(&[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)]);
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    let count = collector.spans().len();
    wait_until("they are counted", || {
        service.get("/metrics").text().contains(&format!("hotcell_trace_spans_total{{became=\"dropped\"}} {count}"))
    });
    assert!(place.log().contains("traces are lost"), "{}", place.log());
    drop(service);

    // It takes the connection, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", silent.local_addr().expect("it has one"));
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()), ("OTEL_EXPORTER_OTLP_TIMEOUT", "600000")];
    let service = place.serve_with(&[], &variables);
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    let (held, _) = silent.accept().expect("it connects");
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    service.signal("TERM");
    assert_eq!(service.wait(), Some(0));
    drop(held);
}

#[test]
fn what_is_left_is_sent_when_the_service_ends() {
    let (place, collector) = (Place::new(), Collector::new("200 OK"));
    let service = place.serve_with(&[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)]);
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    service.signal("TERM");
    assert_eq!(service.wait(), Some(0));
    root(&collector.spans());
}

#[test]
fn a_collector_that_cannot_be_used_is_refused_at_the_start() {
    let place = Place::new();
    for (name, value, word) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example", "TLS"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "http://HOST:PORT"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "soon", "milliseconds"),
    ] {
        let mut command = place.hotcell(&["serve", "--listen", "127.0.0.1:0"]);
        command.env(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            if name.ends_with("TIMEOUT") { "http://127.0.0.1:1" } else { "" },
        );
        let output = command.env(name, value).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains(name) && said.contains(word), "{said}");
        assert_eq!(said.trim().lines().count(), 1, "{said}");
    }
}
