//! What belongs to the operator, and what a tenant sees of it: policies, leases, approvals, records, stats, the kill switch.

use serde_json::{Value, json};

use crate::harness::*;

/// A service with two tenants and an operator: their keys.
fn keys(place: &Place) -> [String; 3] {
    [place.key(&["--tenant", "a"]), place.key(&["--tenant", "b"]), place.key(&["--tenant", "ops", "--scope", "admin"])]
}

fn delete(service: &Service<'_>, path: &str) -> crate::client::Answer {
    service.ask("DELETE", path, &[], b"")
}

#[test]
fn records_and_stats_are_a_tenants_own() {
    let place = Place::new();
    let [a, b, operator] = keys(&place);
    let mut service = place.serve(&[]);
    for (key, runs) in [(&a, 3), (&b, 2)] {
        service.key = Some(key.clone());
        for _ in 0..runs {
            service.run(&json!({ "code": "1", "user_id": "u" }));
        }
    }
    service.key = Some(a);
    let mine = service.get("/v1/records?limit=2").json();
    assert_eq!(mine["records"].as_array().map(Vec::len), Some(2));
    let next = mine["next"].as_str().expect("there is more");
    let rest = service.get(&format!("/v1/records?before={next}")).json();
    assert_eq!((rest["records"].as_array().map(Vec::len), &rest["next"]), (Some(1), &Value::Null));
    let id = rest["records"][0]["record_id"].as_str().expect("an id").to_owned();
    assert_eq!(service.get(&format!("/v1/records/{id}")).json()["tenant_id"], "a");
    assert_eq!(service.get("/v1/stats").json()["total_executions"], 3);
    assert_eq!(
        service
            .get("/v1/records?user_id=u&status=completed&language=python&policy_id=balanced&since=2020-01-01")
            .json()["records"]
            .as_array()
            .map(Vec::len),
        Some(3)
    );
    service.get("/v1/records?tenant_id=b").is_problem(403, Some("tenant_id"), &["leave it out"]);
    service.get("/v1/stats?tenant_id=b").is_problem(403, Some("tenant_id"), &["leave it out"]);
    for (query, field) in [
        ("status=odd", "status"),
        ("since=then", "since"),
        ("limit=0", "limit"),
        ("limit=9999", "limit"),
        ("limit=x", "query"),
        ("wat=1", "query"),
    ] {
        service.get(&format!("/v1/records?{query}")).is_problem(422, Some(field), &[]);
    }
    service.key = Some(b);
    service.get(&format!("/v1/records/{id}")).is_problem(404, None, &["no such record"]);
    service.key = Some(operator);
    assert_eq!(service.get("/v1/stats").json()["total_executions"], 5);
    assert_eq!(service.get("/v1/records?tenant_id=b").json()["records"].as_array().map(Vec::len), Some(2));
    assert_eq!(service.get(&format!("/v1/records/{id}")).status, 200);
}

#[test]
fn policies_are_defined_by_the_operator_and_seen_by_those_who_have_them() {
    let place = Place::new();
    let [a, _, operator] = keys(&place);
    let mut service = place.serve(&[]);
    let policy = json!({ "policy_id": "mine", "name": "Mine", "network_policy": "none", "allow_file_write": true, "max_wall_time_seconds": 5, "allowed_languages": ["python"], "compile": { "max_wall_time_seconds": 9 }, "strict_when": { "paths": ["secret/**"], "words": ["payment"] } });
    service.key = Some(a.clone());
    service.post("/v1/policies", &policy).is_problem(403, None, &["`admin`"]);
    delete(&service, "/v1/policies/mine").is_problem(403, None, &["`admin`"]);
    assert_eq!(service.get("/v1/policies").json()["policies"].as_array().map(Vec::len), Some(1));
    service.key = Some(operator.clone());
    let made = service.post("/v1/policies", &policy);
    assert_eq!((made.status, &made.json()["policy"]["max_wall_time_seconds"]), (201, &json!(5.0)), "{}", made.text());
    let known = service.get("/v1/policies/mine").json();
    assert_eq!(known["policy"]["compile"]["max_wall_time_seconds"], 9.0);
    assert_eq!(known["policy"]["strict_when"], policy["strict_when"]);
    assert!(service.get("/v1/policies").json()["policies"].as_array().is_some_and(|all| all.len() > 8));
    // The command line sees it too.
    assert!(place.go(&["policy", "show", "mine"]).stdout.contains("max_wall_time_seconds = 5"));
    for (bad, part) in [
        (json!({ "policy_id": "../x", "name": "x", "network_policy": "none" }), "policy_id"),
        (json!({ "policy_id": "x", "name": "x", "network_policy": "full" }), "network"),
        (json!({ "policy_id": "x", "name": "x", "network_policy": "none", "max_cpu": 1 }), "max_cpu"),
        (json!({ "policy_id": "x", "name": "x", "network_policy": "none", "compile": [9, 64] }), "list"),
        (json!({ "policy_id": "x" }), "name"),
    ] {
        let answer = service.post("/v1/policies", &bad);
        assert_eq!(answer.status, 422, "{}", answer.text());
        assert!(answer.text().contains(part), "{}", answer.text());
    }
    let built_in = json!({ "policy_id": "balanced", "name": "x", "network_policy": "none" });
    service.post("/v1/policies", &built_in).is_problem(409, None, &["built in"]);
    delete(&service, "/v1/policies/balanced").is_problem(409, None, &["built in"]);
    delete(&service, "/v1/policies/nobodys").is_problem(404, None, &["no such policy"]);
    service.key = Some(a);
    service.get("/v1/policies/mine").is_problem(404, None, &["no such policy"]);
    service.key = Some(operator);
    assert_eq!(delete(&service, "/v1/policies/mine").status, 200);
    service.get("/v1/policies/mine").is_problem(404, None, &["no such policy"]);
    let audit = place.go(&["audit", "tail"]).stdout;
    assert!(
        audit.contains("policy_event.DEFINED") && audit.contains("policy_event.DELETED") && audit.contains("key "),
        "{audit}"
    );
    place.is_whole();
}

#[test]
fn a_lease_is_issued_used_and_taken_back() {
    let place = Place::new();
    let [a, _, operator] = keys(&place);
    let mut service = place.serve(&[]);
    let wanted = json!({ "actor": "agent", "commands": [["echo", "**"]], "max_runs": 2 });
    service.key = Some(a.clone());
    service.post("/v1/leases", &wanted).is_problem(403, None, &["`admin`"]);
    service.get("/v1/leases").is_problem(403, None, &["`admin`"]);
    service.key = Some(operator.clone());
    service.post("/v1/leases", &wanted).is_problem(409, None, &["keygen"]);
    assert_eq!(place.go(&["lease", "keygen"]).code, 0);
    let issued = service.post("/v1/leases", &wanted);
    assert_eq!(issued.status, 201, "{}", issued.text());
    let (lease, id) = (issued.json()["lease"].clone(), issued.json()["lease_id"].as_str().expect("an id").to_owned());
    service
        .post("/v1/leases", &json!({ "actor": "agent", "commands": [["x"]], "valid_for_seconds": 9_000_000 }))
        .is_problem(422, Some("lease"), &["minutes"]);
    service
        .post("/v1/leases", &json!({ "actor": "agent", "commands": [["x"]], "readonly_mounts": ["/etc"] }))
        .is_problem(422, Some("readonly_mounts"), &["unknown"]);
    service.key = Some(a.clone());
    assert_eq!(service.run(&json!({ "command": ["echo", "hi"], "lease": lease }))["stdout"], "hi\n");
    service.key = Some(operator.clone());
    let list = service.get("/v1/leases").json();
    assert_eq!((&list["leases"][0]["lease_id"], &list["leases"][0]["runs"]), (&json!(id), &json!(1)));
    let revoked = delete(&service, &format!("/v1/leases/{id}?reason=enough")).json();
    assert_eq!(revoked["known"], true);
    service.key = Some(a);
    let refused = service.post("/v1/runs", &json!({ "command": ["echo", "hi"], "lease": lease }));
    refused.is_problem(403, None, &["revoked", "enough"]);
    place.is_whole();
}

#[test]
fn an_approval_is_decided_by_the_operator_and_seen_by_its_tenant() {
    let place = Place::new();
    place.define("asks", "require_approval = true");
    let [a, b, operator] = keys(&place);
    let mut service = place.serve(&["--policy", "asks"]);
    let body = json!({ "code": "print(5)" });
    service.key = Some(b.clone());
    assert_eq!(service.get("/v1/approvals").json()["approvals"], json!([]));
    service.key = Some(a.clone());
    service.post("/v1/runs", &body).is_problem(403, None, &["approval"]);
    let id = service.get("/v1/approvals").json()["approvals"][0]["approval_id"].as_str().expect("an id").to_owned();
    let at = format!("/v1/approvals/{id}");
    assert_eq!(service.get(&at).json()["status"], "pending");
    // Nobody says yes to himself.
    service.post(&at, &json!({ "grant": true })).is_problem(403, None, &["`admin`"]);
    service.key = Some(b);
    service.get(&at).is_problem(404, None, &["no such approval"]);
    service.key = Some(operator);
    service.post(&at, &json!({ "grant": true, "valid_for_seconds": 0 })).is_problem(
        422,
        Some("valid_for_seconds"),
        &[],
    );
    let decided = service.post(&at, &json!({ "grant": true, "reason": "fine" })).json();
    assert_eq!(decided["status"], "granted");
    service.post(&at, &json!({ "grant": false })).is_problem(409, None, &["no decision"]);
    service.post("/v1/approvals/nobodys", &json!({ "grant": true })).is_problem(404, None, &["no such approval"]);
    service.key = Some(a);
    assert_eq!(service.run(&body)["stdout"], "5\n");
}

#[test]
fn the_kill_switch_is_turned_over_http() {
    let place = Place::new();
    let [a, b, operator] = keys(&place);
    let mut service = place.serve(&[]);
    service.key = Some(a.clone());
    let id = service.sleeper();
    service.post("/v1/killswitch", &json!({ "reason": "x" })).is_problem(403, None, &["`admin`"]);
    service.key = Some(operator.clone());
    service.post("/v1/killswitch", &json!({ "reason": "" })).is_problem(422, Some("reason"), &[]);
    service.post("/v1/killswitch", &json!({ "reason": "x", "tenant_id": "a b" })).is_problem(
        422,
        Some("tenant_id"),
        &[],
    );
    let on = service.post("/v1/killswitch", &json!({ "reason": "a test", "tenant_id": "a" }));
    assert_eq!((on.status, &on.json()["on"][0]["reason"]), (200, &json!("a test")), "{}", on.text());
    service.key = Some(a.clone());
    assert_eq!(service.ended(&id)["outcome"]["terminal_event"], "KillSwitch");
    assert_eq!(service.get("/v1/killswitch").json()["on"][0]["tenant_id"], "a");
    service.post("/v1/runs", &json!({ "command": ["true"] })).is_problem(403, None, &["a test"]);
    service.key = Some(b);
    assert_eq!(service.get("/v1/killswitch").json()["on"], json!([]));
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    service.key = Some(operator);
    assert_eq!(delete(&service, "/v1/killswitch?tenant_id=a").json()["on"], json!([]));
    service.key = Some(a);
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    place.is_whole();
}

#[test]
fn languages_are_listed_without_where_they_are() {
    let place = Place::new();
    let service = place.serve(&[]);
    let found = service.get("/v1/languages").json();
    let python =
        found["languages"].as_array().expect("a list").iter().find(|l| l["name"] == "python").expect("python").clone();
    assert_eq!((&python["available"], &python["compiled"]), (&json!(true), &json!(false)));
    assert!(python["version"].as_str().is_some_and(|version| version.contains("3.")));
    assert!(!found.to_string().contains("/usr"), "{found}");
}

#[test]
fn a_verification_is_asked_for() {
    let place = Place::new();
    let service = place.serve(&[]);
    let good = json!({ "files": { "calc.py": "def add(a, b):\n    return a + b\n", "test_calc.py": "import unittest\nfrom calc import add\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n" }, "entry": "calc.py" });
    let answer = service.post("/v1/verify", &good);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let outcome = &answer.json()["outcome"];
    assert_eq!((&outcome["status"], &outcome["tier"]), (&json!("pass"), &json!("L1")), "{outcome}");
    let bad = json!({ "files": { "calc.py": "def add(a, b:\n" }, "checks": { "repeat": 2 } });
    let outcome = service.post("/v1/verify", &bad).json()["outcome"].clone();
    assert_eq!((&outcome["status"], &outcome["failure_class"]), (&json!("fail"), &json!("SyntaxError")));
    for (body, field) in [
        (json!({ "command": ["true"] }), "command"),
        (json!({ "code": "1", "stdin": "x" }), "stdin"),
        (json!({ "code": "1", "lease": "x" }), "lease"),
        (json!({ "code": "1", "checks": { "repeat": 0 } }), "checks.repeat"),
        (json!({ "code": "1", "checks": { "often": 1 } }), "checks.often"),
    ] {
        service.post("/v1/verify", &body).is_problem(422, Some(field), &[]);
    }
    service.post("/v1/runs", &json!({ "code": "1", "checks": {} })).is_problem(422, Some("checks"), &["verify"]);
    assert_eq!(place.records(&[]).len(), 2);
}

#[test]
fn the_document_names_what_is_there() {
    let place = Place::new();
    let service = place.serve(&[]);
    let document = service.get("/openapi.json").json();
    let checked_in =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../server/openapi.json")).expect("it is there");
    assert_eq!(document, serde_json::from_str::<Value>(&checked_in).expect("JSON"));
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            let path = path.replace("{id}", "01a1e3c3-639a-7141-9a47-9f17c1e24400").replace("{name}", "x");
            let answer = service.ask(&method.to_uppercase(), &path, &[], b"");
            assert!(
                operation["responses"][answer.status.to_string()].is_object(),
                "{method} {path}: {}",
                answer.status
            );
            assert!(!answer.text().contains("no such place"), "{method} {path}");
        }
    }
    let page = service.get("/");
    assert!(page.headers["content-type"].starts_with("text/html") && page.text().contains("POST /v1/runs"));
}
