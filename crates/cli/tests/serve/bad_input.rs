//! What is wrong is named, and nothing of it runs.

use serde_json::{Value, json};

use crate::client::request;
use crate::harness::*;

const JSON: &str = "Content-Type: application/json";

#[test]
fn what_is_no_json_is_refused() {
    let place = Place::new();
    let service = place.serve(&[]);
    for bad in ["", "{", "{\"code\":}", "nul", "{\"code\":\"1\"} x", "\u{0}", "{'code': 1}"] {
        service.ask("POST", "/v1/runs", &[], bad.as_bytes()).is_problem(400, None, &["JSON"]);
    }
    service.ask("POST", "/v1/runs", &[], b"{\"code\":\"\xff\"}").is_problem(400, None, &["JSON"]);
    let deep = "[".repeat(100_000);
    service.ask("POST", "/v1/runs", &[], format!("{{\"metadata\":{deep}").as_bytes());
    assert_eq!(service.run(&json!({ "code": "print(1)" }))["status"], "pass");
    assert_eq!(place.records(&[]).len(), 1);
}

#[test]
fn wrong_types_and_unknown_fields_are_named() {
    let place = Place::new();
    let service = place.serve(&[]);
    let cases: Vec<(Value, u16, &str, &str)> = vec![
        (json!([]), 422, "body", "list"),
        (json!(["print(1)"]), 422, "body", "list"),
        (json!("print(1)"), 422, "body", "wrong"),
        (json!({ "code": "1", "limits": [1000] }), 422, "limits", "list"),
        (json!({ "files": { "a.py": ["MQ=="] } }), 422, "files.a.py", "list"),
        (json!({}), 422, "code", "one of"),
        (json!({ "cod": "1" }), 422, "cod", "unknown field"),
        (json!({ "code": 1 }), 422, "code", "wrong"),
        (json!({ "code": "1", "command": ["true"] }), 422, "code", "one of them"),
        (json!({ "code": "1", "limits": { "wall_ms": -1 } }), 422, "limits.wall_ms", "wrong"),
        (json!({ "code": "1", "limits": { "wall_ms": 1.5 } }), 422, "limits.wall_ms", "wrong"),
        (json!({ "code": "1", "limits": { "wall": 1 } }), 422, "limits.wall", "unknown field"),
        (json!({ "code": "1", "limits": { "memory_bytes": 0 } }), 422, "limits.memory_bytes", "out of range"),
        (
            json!({ "code": "1", "limits": { "memory_bytes": 9_000_000_000_000u64 } }),
            403,
            "limits.memory_bytes",
            "more than",
        ),
        (json!({ "code": "1", "network": "full" }), 403, "network", "more than"),
        (json!({ "code": "1", "network": "any" }), 422, "network", "wrong"),
        (json!({ "code": "1", "on_violation": "note" }), 403, "on_violation", "more than"),
        (json!({ "code": "1", "args": "a" }), 422, "args", "wrong"),
        (json!({ "code": "1", "args": ["a\0"] }), 422, "args", "NUL"),
        (json!({ "code": "1", "environment": { "A=B": "1" } }), 422, "environment", "A=B"),
        (json!({ "code": "1", "environment": { "A": "\0" } }), 422, "environment", "NUL"),
        (json!({ "code": "1", "language": "cobol\u{1b}[2J" }), 422, "language", "not a language"),
        (json!({ "code": "1", "policy_id": "nobodys" }), 422, "policy_id", "nobodys"),
        (json!({ "code": "1", "policy_id": "../../etc/passwd" }), 422, "policy_id", "not a policy"),
        (json!({ "code": "1", "tenant_id": "other" }), 403, "tenant_id", "other"),
        (json!({ "code": "1", "user_id": "a/b" }), 422, "user_id", "no id"),
        (json!({ "code": "1", "run_id": "" }), 422, "run_id", "no id"),
        (json!({ "code": "1", "request_id": "a\nb" }), 422, "request_id", "control"),
        (json!({ "code": "1", "attempt": 4 }), 422, "attempt", "1, 2 or 3"),
        (json!({ "code": "1", "entry": "a" }), 422, "entry", "files"),
        (json!({ "code": { "base64": "%%" } }), 422, "code", "base64"),
        (json!({ "code": { "base64": "/w==" } }), 422, "code", "UTF-8"),
        (json!({ "code": "1", "stdin": { "base64": "x" } }), 422, "stdin", "base64"),
        (json!({ "code": "1", "allowed_hosts": ["a b"] }), 422, "allowed_hosts", "allowed_hosts"),
        (json!({ "code": "1", "allowed_hosts": ["a:1"] }), 422, "allowed_hosts", "restricted"),
        (json!({ "code": "1", "lease": "{}" }), 403, "", "lease"),
        (json!({ "command": [] }), 422, "command", "no program"),
        (json!({ "command": ["true"], "language": "python" }), 422, "language", "leave it out"),
        (json!({ "files": {} }), 422, "files", "at least"),
        (json!({ "files": { "a.py": "1", "b.py": "1" } }), 422, "entry", "more than one"),
        (json!({ "files": { "a.py": "1" }, "entry": "b.py" }), 422, "entry", "not one of"),
        (json!({ "files": { "a.xyz": "1" } }), 422, "language", "a.xyz"),
        (json!({ "files": { "a.txt": "int main(){}" }, "language": "c" }), 422, "entry", "ends in"),
        // What only the operator's own command line may say.
        (json!({ "code": "1", "input": "/etc" }), 422, "input", "unknown field"),
        (json!({ "code": "1", "backend": "oci" }), 422, "backend", "unknown field"),
        (json!({ "code": "1", "image": "/x" }), 422, "image", "unknown field"),
        (json!({ "code": "1", "repo": "/x" }), 422, "repo", "unknown field"),
    ];
    for (body, status, field, part) in cases {
        let answer = service.post("/v1/runs", &body);
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
        let problem = answer.is_problem(status, Some(field).filter(|field| !field.is_empty()), &[part]);
        assert!(!problem["detail"].as_str().expect("text").contains(|c: char| c.is_control()), "{problem}");
    }
    // Before it is taken, and not when its turn comes.
    let nothing = json!({ "code": "1", "limits": { "wall_ms": 0 } });
    service.post("/v1/runs?wait=false", &nothing).is_problem(422, Some("limits.wall_ms"), &["give 1 to"]);
    // What a client wrote is quoted in part.
    let long = "x".repeat(1 << 20);
    for body in [
        json!({ &long: 1 }),
        json!({ "code": "1", "policy_id": long }),
        json!({ "code": "1", "language": long }),
        json!({ "code": "1", "metadata": { "x": long } }),
        json!({ "files": { &long: "1" } }),
    ] {
        let answer = service.post("/v1/runs", &body);
        assert!(answer.status == 422 && answer.body.len() < 3000, "{} {}", answer.status, answer.body.len());
    }
    // Refusals are on record, mistakes are not; nothing has run.
    assert!(place.records(&[]).iter().all(|record| record["status"] == "denied" || record["status"] == "failed"));
    assert!(!place.log().contains("\u{1b}"));
}

#[test]
fn names_of_files_lead_nowhere() {
    let place = Place::new();
    let service = place.serve(&[]);
    for bad in [
        "/etc/passwd",
        "../x.py",
        "a/../../x.py",
        "a//b.py",
        "./a.py",
        "",
        "a\0.py",
        "a\r\nSet-Cookie: x",
        "a/",
        &"d/".repeat(40),
        &"x".repeat(300),
    ] {
        service.post("/v1/runs", &json!({ "files": { bad: "print(1)" }, "language": "python" })).is_problem(
            422,
            Some("files"),
            &["no name of a file"],
        );
    }
    let both = json!({ "files": { "a": "1", "a/b.py": "1" }, "entry": "a/b.py" });
    service.post("/v1/runs", &both).is_problem(422, Some("files"), &["file too"]);
    let many: serde_json::Map<String, Value> = (0..1001).map(|n| (format!("{n}.py"), json!("1"))).collect();
    service.post("/v1/runs", &json!({ "files": many, "entry": "1.py" })).is_problem(422, Some("files"), &["1000"]);
    assert_eq!(service.run(&json!({ "files": { "a dir/\u{e4}.py": "print(3)" } }))["stdout"], "3\n");
    assert_eq!(place.records(&[]).len(), 1);
}

#[test]
fn heads_and_bodies_have_a_size() {
    let place = Place::new();
    let service = place.serve(&[]);
    // By what it says, before any of it is read.
    let mut connection = service.connect();
    connection
        .send(format!("POST /v1/runs HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\nContent-Length: 99999999999\r\n\r\n"));
    connection.answer().is_problem(413, None, &["bytes"]);
    // And by what comes.
    let mut connection = service.connect();
    connection
        .send(format!("POST /v1/runs HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\nTransfer-Encoding: chunked\r\n\r\n"));
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
    for _ in 0..34 {
        // It may hang up in the middle: the answer is on its way.
        if std::io::Write::write_all(&mut connection.socket(), chunk.as_bytes()).is_err() {
            break;
        }
    }
    connection.answer().is_problem(413, None, &["bytes"]);
    // Nobody reads the rest of it, so the kernel may take the answer back: it is heard sooner or later, and never another.
    let long = format!("X-Long: {}", "x".repeat(100_000));
    let heard = (0..50).find_map(|_| {
        let connection = service.connect();
        let mut said = String::new();
        let _ = std::io::Write::write_all(&mut connection.socket(), &request("GET", "/healthz", &[&long], b""));
        let _ = std::io::Read::read_to_string(&mut connection.socket(), &mut said);
        Some(said).filter(|said| !said.is_empty())
    });
    assert!(heard.as_ref().is_some_and(|said| said.starts_with("HTTP/1.1 431")), "{heard:?}");
    let many: Vec<String> = (0..200).map(|n| format!("X-{n}: 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(service.raw(request("GET", "/healthz", &many, b"")).status, 431);
    assert_eq!(service.get("/healthz").status, 200);
    assert!(place.records(&[]).is_empty());
}

#[test]
fn http_that_is_none_is_refused_and_harms_nobody() {
    let place = Place::new();
    let service = place.serve(&[]);
    for bad in [
        "GET /healthz\r\n\r\n".to_owned(),
        "\0\0\0\0\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nBad Name: x\r\n\r\n".to_owned(),
        format!(
            "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"
        ),
        format!("POST /v1/runs HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\nContent-Length: -1\r\n\r\n"),
    ] {
        let mut connection = service.connect();
        connection.send(&bad);
        let _ = connection.socket().shutdown(std::net::Shutdown::Write);
        let answer = connection.answer();
        assert!((400..500).contains(&answer.status), "{bad:?}: {}", answer.status);
    }
    service.ask("PATCH", "/v1/runs", &[], b"").is_problem(405, None, &["openapi"]);
    service.get("/v1/runs/..%2f..%2fetc%2fpasswd").is_problem(404, None, &["no such"]);
    service.get("/v1/runs/%ff").is_problem(404, None, &["no such"]);
    service.get("/v1/nothing").is_problem(404, None, &["no such"]);
    service.post("/v1/runs?wat=true", &json!({})).is_problem(422, Some("query"), &["wat"]);
    service.post("/v1/runs?wait=perhaps", &json!({})).is_problem(422, Some("query"), &["wait"]);
    assert_eq!(service.get("/healthz").status, 200);
}

#[test]
fn nothing_of_the_host_is_in_an_answer() {
    let place = Place::new();
    let service = place.serve(&[]);
    let answers = [
        service.post("/v1/runs", &json!({ "code": "import sys; print(sys.path)", "collect": ["**"] })),
        service.post("/v1/runs", &json!({ "code": "open('x','w').write('1')", "collect": ["*"] })),
        service.post("/v1/runs", &json!({ "command": ["/nowhere"] })),
        service.post("/v1/runs", &json!({ "command": ["cat", "/proc/self/mountinfo"] })),
        service.post("/v1/runs", &json!({ "code": "int main(){return 0;}", "language": "c" })),
        service.post("/v1/runs", &json!({ "code": "1", "policy_id": "nobodys" })),
        service.get("/metrics"),
    ];
    let home = place.dir.to_str().expect("UTF-8");
    for answer in answers {
        assert!(!answer.text().contains(home), "{}", answer.text());
    }
    // What cannot be served because of us is told to the log alone.
    std::fs::write(place.state().join("hotcell.toml"), "no = ").expect("our own");
    let answer = service.post("/v1/runs", &json!({ "code": "1" }));
    answer.is_problem(500, None, &["log"]);
    assert!(!answer.text().contains("hotcell.toml") && place.log().contains("hotcell.toml"));
}

/// A value is a hundred times as large in memory as on the wire.
#[test]
fn many_small_values_are_refused_before_any_is_made() {
    let place = Place::new();
    let service = place.serve(&[]);
    let body = |values: usize| format!(r#"{{"command": ["true"], "metadata": {{"x": [{}0]}}}}"#, "0,".repeat(values));
    for path in ["/v1/runs", "/v1/verify", "/api/v2/execute", "/mcp"] {
        let answer = service.ask("POST", path, &[], body(200_000).as_bytes());
        assert!([400, 422].contains(&answer.status) && answer.text().contains("brackets"), "{path}: {}", answer.text());
    }
    assert_eq!(service.ask("POST", "/v1/runs", &[], body(5_000).as_bytes()).status, 200);
    // What is in a string is no value.
    let code = format!("x = {:?}", "[{,:".repeat(100_000));
    assert_eq!(service.run(&json!({ "code": code }))["status"], "pass");
}

/// What was announced is not what has come.
#[test]
fn bodies_that_never_come_keep_nobody_elses_away() {
    let place = Place::new();
    let service = place.serve(&[]);
    let head = format!("POST /v1/runs HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\nContent-Length: 33554432\r\n\r\n{{");
    let waiting: Vec<_> = (0..40)
        .map(|_| {
            let mut connection = service.connect();
            connection.send(&head);
            connection
        })
        .collect();
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    drop(waiting);
}

/// It could ask the service for anything, being on this machine.
#[test]
fn the_hosts_network_is_for_those_who_show_a_key() {
    let place = Place::new();
    place.define_open("open");
    let mut service = place.serve(&[]);
    let body = json!({ "command": ["true"], "policy_id": "open", "network": "full" });
    service.post("/v1/runs", &body).is_problem(403, None, &["keys create"]);
    service.key = Some(place.key(&["--policy", "open"]));
    assert_eq!(service.run(&body)["status"], "pass");
}
