//! What the operator decides elsewhere reaches the runs of a service, and not the service.

use serde_json::json;

use crate::harness::*;

#[test]
fn the_kill_switch_of_a_tenant_ends_his_runs_and_nobody_elses() {
    let place = Place::new();
    let keys: Vec<String> = ["a", "b"].iter().map(|tenant| place.key(&["--tenant", tenant])).collect();
    let mut service = place.serve(&[]);
    service.key = Some(keys[0].clone());
    let of_a = service.sleeper();
    service.key = Some(keys[1].clone());
    let of_b = service.sleeper();
    let ran = place.go(&["killswitch", "on", "--tenant", "a", "--reason", "a test"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(service.get(&format!("/v1/runs/{of_b}")).json()["status"], "running");
    service.key = Some(keys[0].clone());
    let run = service.ended(&of_a);
    assert_eq!((&run["status"], &run["outcome"]["terminal_event"]), (&json!("killed"), &json!("KillSwitch")));
    let refused = service.post("/v1/runs", &json!({ "command": ["true"] }));
    refused.is_problem(403, None, &["kill switch", "a test"]);
    service.key = Some(keys[1].clone());
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    assert_eq!(service.get("/readyz").status, 200);
    assert_eq!(place.go(&["killswitch", "on", "--reason", "all"]).code, 0);
    assert_eq!(service.ended(&of_b)["status"], "killed");
    service.get("/readyz").is_problem(503, None, &["kill switch"]);
    assert_eq!(place.go(&["killswitch", "off"]).code, 0);
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    place.is_whole();
}

#[test]
fn a_lease_is_used_over_http_and_taking_it_back_ends_its_run() {
    let place = Place::new();
    assert_eq!(place.go(&["lease", "keygen"]).code, 0);
    let issue = |id: &str| place.go(&["lease", "issue", "--actor", id, "--", "sleep", "**"]).stdout;
    let service = place.serve(&[]);
    let lease = issue("agent");
    let id = service.start(&json!({ "command": ["sleep", "3000"], "lease": lease }));
    service.until(&id, "running");
    let refused = service.post("/v1/runs", &json!({ "command": ["true"], "lease": lease }));
    let problem = refused.is_problem(403, None, &["no command like"]);
    assert_eq!(problem["failure_class"], "LeaseViolation");
    let lease_id = serde_json::from_str::<serde_json::Value>(&lease).expect("JSON")["lease_id"].clone();
    let revoked = place.go(&["lease", "revoke", lease_id.as_str().expect("an id"), "--reason", "a test"]);
    assert_eq!(revoked.code, 0, "{}", revoked.stderr);
    let run = service.ended(&id);
    assert_eq!((&run["status"], &run["outcome"]["failure_class"]), (&json!("killed"), &json!("LeaseViolation")));
    assert_eq!(service.get("/healthz").status, 200);
    let staged = place.state().join("staging_runs").join(lease_id.as_str().expect("an id")).join(&id);
    assert!(staged.join("verification_result.json").exists());
}

#[test]
fn an_approval_is_asked_for_and_used() {
    let place = Place::new();
    place.define("asks", "require_approval = true");
    let service = place.serve(&["--policy", "asks"]);
    let body = json!({ "code": "print(1)" });
    let problem = service.post("/v1/runs", &body).is_problem(403, None, &["approval"]);
    assert_eq!(problem["failure_class"], "ApprovalRequired");
    let with_input = json!({ "code": "print(1)", "stdin": "x" });
    service.post("/v1/runs", &with_input).is_problem(422, Some("stdin"), &["approval"]);
    let approvals = place.go(&["approve", "list", "--output", "json"]).json();
    let id = approvals[0]["approval_id"].as_str().expect("an id").to_owned();
    assert_eq!(place.go(&["approve", "grant", &id]).code, 0);
    assert_eq!(service.run(&body)["stdout"], "1\n");
    service.post("/v1/runs", &body).is_problem(403, None, &["approval"]);
}
