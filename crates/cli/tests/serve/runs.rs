//! Runs over HTTP: asked for, waited for, looked at, called off.

use serde_json::json;

use crate::client::request;
use crate::harness::*;

#[test]
fn it_says_where_it_listens_under_which_policy_and_what_doctor_found() {
    let place = Place::new();
    let service = place.serve(&["--concurrency", "3", "--queue", "7"]);
    assert!(
        service.said[0].contains("http://127.0.0.1:") && service.said[0].contains("without keys"),
        "{:?}",
        service.said
    );
    assert_eq!(service.said[1], "policy balanced, 3 runs at once, 7 may wait");
    assert!(service.said[2].starts_with("doctor: "), "{:?}", service.said);
    for (path, field, value) in
        [("/healthz", "status", "ok"), ("/readyz", "status", "ready"), ("/version", "name", "hotcell")]
    {
        let answer = service.get(path);
        assert_eq!((answer.status, &answer.json()[field]), (200, &json!(value)), "{path}");
    }
}

#[test]
fn a_run_answers_with_its_outcome_and_is_on_record() {
    let place = Place::new();
    let service = place.serve(&[]);
    let answer = service.post("/v1/runs", &json!({ "code": "import sys\nprint(sys.stdin.read(), sys.argv[1:])", "stdin": "hi", "args": ["a"], "user_id": "u1", "run_id": "r1", "request_id": "mine", "metadata": { "a": [1, { "b": null }] } }));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let run = answer.json();
    assert_eq!(run["status"], "completed");
    assert_eq!((&run["outcome"]["stdout"], &run["outcome"]["status"]), (&json!("hi ['a']\n"), &json!("pass")));
    assert_eq!((&run["request_id"], &run["outcome"]["request_id"]), (&json!("mine"), &json!("mine")));
    assert_eq!((&run["policy_id"], &run["tenant_id"]), (&json!("balanced"), &json!("default")));
    assert_eq!(run["metadata"], json!({ "a": [1, { "b": null }] }));
    let again = service.get(&format!("/v1/runs/{}", run["id"].as_str().expect("an id")));
    assert_eq!((again.status, again.json()), (200, run.clone()));
    let record = place.records(&[]).remove(0);
    assert_eq!((&record["record_id"], &record["status"]), (&run["id"], &json!("completed")));
    assert_eq!(
        (&record["tenant_id"], &record["user_id"], &record["run_id"]),
        (&json!("default"), &json!("u1"), &json!("r1"))
    );
    place.is_whole();
}

#[test]
fn files_commands_and_bytes_are_run_as_they_are_given() {
    let place = Place::new();
    let service = place.serve(&[]);
    let files = json!({ "files": { "main.py": "import lib.part as p; print(p.x, open('/src/data.bin','rb').read())", "lib/part.py": "x = 7", "data.bin": { "base64": "AP8=" } }, "entry": "main.py" });
    assert_eq!(service.run(&files)["stdout"], "7 b'\\x00\\xff'\n");
    assert_eq!(service.run(&json!({ "command": ["cat"], "stdin": { "base64": "aGV5" } }))["stdout"], "hey");
    assert_eq!(
        service.run(&json!({ "command": ["env"], "environment": { "A": "b c" } }))["stdout"]
            .as_str()
            .map(|text| text.contains("A=b c\n")),
        Some(true)
    );
    let failed = service.run(&json!({ "code": "exit 3", "language": "bash" }));
    assert_eq!((&failed["failure_class"], &failed["exit_code"]), (&json!("RuntimeError"), &json!(3)));
}

#[test]
fn one_connection_serves_many_runs_and_the_launcher_goes_on() {
    let place = Place::new();
    let service = place.serve(&[]);
    let mut connection = service.connect();
    for number in 0..20 {
        // Some with a parser that is asked after a failure, some compiled into nothing, some plain.
        let code = if number % 2 == 0 { "print('x'" } else { "print('x')" };
        let body = json!({ "code": code }).to_string();
        connection.send(request("POST", "/v1/runs", &["Content-Type: application/json"], body.as_bytes()));
        let outcome = &connection.answer().json()["outcome"];
        let class = if number % 2 == 0 { json!("SyntaxError") } else { json!(null) };
        assert_eq!(outcome["failure_class"], class, "{number}");
    }
}

#[test]
fn a_run_that_is_not_waited_for_is_found_later() {
    let place = Place::new();
    let service = place.serve(&[]);
    let id = service.start(&json!({ "code": "print(2)" }));
    let run = service.ended(&id);
    assert_eq!((&run["status"], &run["outcome"]["stdout"]), (&json!("completed"), &json!("2\n")));
    service.get("/v1/runs/01a1e3c3-639a-7141-9a47-9f17c1e24400").is_problem(404, None, &["no such run"]);
}

#[test]
fn a_run_is_called_off_and_nothing_is_left() {
    let place = Place::new();
    let mounts = host_mounts();
    let service = place.serve(&[]);
    let id = service.sleeper();
    assert_eq!(service.ask("DELETE", &format!("/v1/runs/{id}"), &[], b"").status, 202);
    let run = service.ended(&id);
    assert_eq!((&run["status"], &run["outcome"]["terminal_event"]), (&json!("killed"), &json!("Cancelled")));
    assert_eq!(place.records(&[])[0]["status"], "killed");
    // It has ended: nothing changes.
    let again = service.ask("DELETE", &format!("/v1/runs/{id}"), &[], b"");
    assert_eq!((again.status, &again.json()["status"]), (200, &json!("killed")));
    service.signal("TERM");
    assert_eq!(service.wait(), Some(0));
    nothing_left(&place.mark, &mounts);
}

#[test]
fn a_run_ends_when_nobody_waits_for_it_any_more_unless_it_is_to_be_kept() {
    let place = Place::new();
    let service = place.serve(&[]);
    let body = json!({ "command": ["sleep", "3000"] }).to_string();
    for (path, status) in [("/v1/runs", "killed"), ("/v1/runs?keep=true", "running")] {
        let mut connection = service.connect();
        connection.send(request("POST", path, &["Content-Type: application/json"], body.as_bytes()));
        wait_until("its record", || place.records(&["--status", "running"]).len() == 1);
        drop(connection);
        if status == "running" {
            // One that came later has ended: time enough.
            assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
            assert_eq!(place.records(&["--status", "running"]).len(), 1);
        } else {
            wait_until("its end", || place.records(&["--status", "killed"]).len() == 1);
        }
    }
}

#[test]
fn the_same_key_is_one_run() {
    let place = Place::new();
    let service = place.serve(&[]);
    let body = json!({ "code": "import time; print(time.time_ns())" }).to_string();
    let ask =
        |key: &str, body: &str| service.ask("POST", "/v1/runs", &[&format!("Idempotency-Key: {key}")], body.as_bytes());
    let first = ask("one", &body).json();
    assert_eq!(ask("one", &body).json(), first);
    assert_ne!(ask("two", &body).json()["outcome"]["stdout"], first["outcome"]["stdout"]);
    ask("one", &json!({ "code": "print(1)" }).to_string()).is_problem(
        422,
        Some("Idempotency-Key"),
        &["another request"],
    );
    ask(&"x".repeat(256), &body).is_problem(422, Some("Idempotency-Key"), &["255"]);
    // The same words in another place are another request.
    service.ask("POST", "/v1/verify", &["Idempotency-Key: one"], body.as_bytes()).is_problem(
        422,
        Some("Idempotency-Key"),
        &["another request"],
    );
    // One that was refused may be asked again.
    let bad = json!({ "code": "1", "policy_id": "none" }).to_string();
    ask("three", &bad).is_problem(422, Some("policy_id"), &["none"]);
    assert_eq!(ask("three", &body).status, 200);
    assert_eq!(place.records(&[]).len(), 3);
}

#[test]
fn metrics_tell_what_happened() {
    let place = Place::new();
    let service = place.serve(&[]);
    service.run(&json!({ "command": ["true"] }));
    service.run(&json!({ "command": ["false"] }));
    service.post("/v1/runs", &json!({ "command": ["true"], "limits": { "wall_ms": 900000 } })).is_problem(
        403,
        Some("limits.wall_ms"),
        &["15m"],
    );
    let text = service.get("/metrics").text();
    for line in [
        "hotcell_runs_total{status=\"completed\",failure_class=\"\"} 1",
        "hotcell_runs_total{status=\"failed\",failure_class=\"RuntimeError\"} 1",
        "hotcell_refusals_total{reason=\"PolicyViolation\"} 1",
        "hotcell_http_requests_total{method=\"POST\",route=\"/v1/runs\",status=\"200\"} 2",
        "hotcell_stage_seconds_count{stage=\"exec\"} 2",
        "hotcell_queue_depth 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
}

#[test]
fn the_log_has_a_line_for_each_run() {
    let place = Place::new();
    let service = place.serve(&["--log", "json"]);
    let run = service.post("/v1/runs", &json!({ "command": ["true"] })).json();
    let find = || {
        let log = place.log();
        let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        lines.into_iter().find(|line| line["message"] == "run ended" && line["run"] == run["id"])
    };
    wait_until("the line", || find().is_some());
    let line = find().expect("it is there");
    assert_eq!(
        (&line["tenant"], &line["status"], &line["passed"]),
        (&json!("default"), &json!("completed"), &json!(true))
    );
    assert!(line["exec_us"].is_u64(), "{line}");
}
