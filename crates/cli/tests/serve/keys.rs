//! Who may do what: keys, tenants, scopes, policies; and who has none.

use serde_json::json;

use crate::client::request;
use crate::harness::*;

#[test]
fn with_a_key_everybody_needs_one() {
    let place = Place::new();
    let token = place.key(&[]);
    let mut service = place.serve(&[]);
    assert!(service.said[0].contains("with a key"), "{:?}", service.said);
    let body = json!({ "command": ["true"] });
    let answer = service.post("/v1/runs", &body);
    answer.is_problem(401, None, &["a key is needed"]);
    assert!(answer.headers["www-authenticate"].starts_with("Bearer"));
    assert_eq!(service.get("/healthz").status, 200);
    // Bearer and X-API-Key, and neither with a letter changed.
    let with = |header: &str| service.ask("POST", "/v1/runs", &[header], body.to_string().as_bytes());
    assert_eq!(with(&format!("Authorization: Bearer {token}")).status, 200);
    assert_eq!(with(&format!("authorization: bearer {token}")).status, 200);
    assert_eq!(with(&format!("X-API-Key: {token}")).status, 200);
    let last = if token.ends_with('0') { "1" } else { "0" };
    let other = format!("{}{last}", &token[..token.len() - 1]);
    for bad in [other.as_str(), "", "hc_", "hc_0_0", &token[..20], &"x".repeat(1000)] {
        with(&format!("X-API-Key: {bad}")).is_problem(401, None, &["key"]);
    }
    with(&format!("Authorization: Basic {token}")).is_problem(401, None, &["Bearer"]);
    service.raw(request("GET", "/metrics", &[&format!("X-API-Key: {token}"), "X-API-Key: hc_1_2"], b"")).is_problem(
        401,
        None,
        &["two"],
    );
    service.key = Some(token);
    assert_eq!(service.run(&body)["status"], "pass");
}

#[test]
fn a_token_is_shown_once_and_kept_nowhere() {
    let place = Place::new();
    let token = place.key(&["--tenant", "a", "--scope", "read", "--policy", "fast"]);
    let secret = token.rsplit('_').next().expect("it has parts");
    assert_eq!(secret.len(), 64);
    walk(&place.dir, &mut |path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{}", path.display());
    });
    let list = place.go(&["keys", "list", "--output", "json"]).json();
    let key = &list["keys"][0];
    assert_eq!(
        (&key["tenant_id"], &key["scopes"], &key["policies"]),
        (&json!("a"), &json!(["read"]), &json!(["fast"]))
    );
    assert!(place.go(&["keys", "list"]).stdout.contains(key["key_id"].as_str().expect("an id")));
    place.go(&["keys", "create", "--scope", "all"]).refused(&["--scope `all`", "run, read, admin"]);
    place.go(&["keys", "create", "--tenant", "a b"]).refused(&["a b"]);
    place.go(&["keys", "create", "--policy", "nobodys"]).refused(&["nobodys"]);
    place.is_whole();
}

#[test]
fn a_key_that_is_taken_back_is_none_at_once_and_the_last_one_opens_nothing() {
    let place = Place::new();
    let token = place.key(&[]);
    let mut service = place.serve(&[]);
    service.key = Some(token.clone());
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    let id = token.split('_').nth(1).expect("it has parts");
    assert_eq!(place.go(&["keys", "revoke", id]).code, 0);
    service.post("/v1/runs", &json!({ "command": ["true"] })).is_problem(401, None, &["revoked"]);
    service.key = None;
    service.post("/v1/runs", &json!({ "command": ["true"] })).is_problem(401, None, &["a key is needed"]);
    place.go(&["keys", "revoke", id]).refused(&[id]);
}

#[test]
fn a_key_that_is_made_while_it_serves_counts_at_once() {
    let place = Place::new();
    let service = place.serve(&[]);
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    place.key(&[]);
    service.post("/v1/runs", &json!({ "command": ["true"] })).is_problem(401, None, &["a key is needed"]);
}

#[test]
fn what_is_another_tenants_is_not_there() {
    let place = Place::new();
    let (a, b) = (place.key(&["--tenant", "a"]), place.key(&["--tenant", "b", "--scope", "admin"]));
    let mut service = place.serve(&[]);
    service.key = Some(a);
    let run = service.post("/v1/runs", &json!({ "command": ["true"] })).json();
    let going = service.sleeper();
    let path = format!("/v1/runs/{}", run["id"].as_str().expect("an id"));
    assert_eq!(service.get(&path).status, 200);
    let denied = service.post("/v1/runs", &json!({ "command": ["true"], "tenant_id": "b" }));
    denied.is_problem(403, Some("tenant_id"), &["`b`"]);
    service.key = Some(b);
    for id in [run["id"].as_str().expect("an id"), &going] {
        service.get(&format!("/v1/runs/{id}")).is_problem(404, None, &["no such run"]);
        service.ask("DELETE", &format!("/v1/runs/{id}"), &[], b"").is_problem(404, None, &["no such run"]);
    }
    assert_eq!(place.records(&["--tenant", "a", "--status", "running"]).len(), 1);
}

#[test]
fn scopes_and_policies_are_those_of_the_key() {
    let place = Place::new();
    let reader = place.key(&["--scope", "read"]);
    let runner = place.key(&["--scope", "run", "--policy", "fast", "--policy", "standard"]);
    let plain = place.key(&[]);
    let mut service = place.serve(&["--policy", "standard"]);
    service.key = Some(reader);
    service.post("/v1/runs", &json!({ "command": ["true"] })).is_problem(403, None, &["`run`"]);
    service.get("/metrics").is_problem(403, None, &["`admin`"]);
    service.key = Some(runner);
    let run = service.post("/v1/runs", &json!({ "code": "1" })).json();
    assert_eq!(run["policy_id"], "fast");
    service.get(&format!("/v1/runs/{}", run["id"].as_str().expect("an id"))).is_problem(403, None, &["`read`"]);
    assert_eq!(
        service.post("/v1/runs", &json!({ "code": "1", "policy_id": "standard" })).json()["policy_id"],
        "standard"
    );
    service.post("/v1/runs", &json!({ "code": "1", "policy_id": "balanced" })).is_problem(
        403,
        Some("policy_id"),
        &["balanced"],
    );
    service.key = Some(plain);
    assert_eq!(service.post("/v1/runs", &json!({ "code": "1" })).json()["policy_id"], "standard");
    service.post("/v1/runs", &json!({ "code": "1", "policy_id": "fast" })).is_problem(
        403,
        Some("policy_id"),
        &["fast"],
    );
}

#[test]
fn who_has_a_policy_that_was_deleted_is_told_of_his_own_alone() {
    let place = Place::new();
    place.define("mine", "");
    place.define("secret", "");
    let (both, one) = (place.key(&["--policy", "mine", "--policy", "fast"]), place.key(&["--policy", "mine"]));
    let mut service = place.serve(&[]);
    let body = json!({ "command": ["true"] });
    service.key = Some(one.clone());
    assert_eq!(service.run(&body)["status"], "pass");
    assert_eq!(place.go(&["policy", "delete", "mine"]).code, 0);
    for (key, instead) in [(one, "ask the operator"), (both.clone(), "use one of fast")] {
        service.key = Some(key);
        let problem = service.post("/v1/runs", &body).is_problem(422, Some("policy_id"), &["`mine`", instead]);
        let detail = problem["detail"].as_str().expect("a sentence");
        assert!(!detail.contains("secret") && !detail.contains("standard"), "{detail}");
    }
    service.key = Some(both);
    let named = service.post("/v1/runs", &json!({ "command": ["true"], "policy_id": "fast" }));
    assert_eq!(named.json()["outcome"]["status"], "pass", "{}", named.text());
}

#[test]
fn elsewhere_than_on_loopback_there_must_be_keys() {
    let place = Place::new();
    place.go(&["serve", "--listen", "0.0.0.0:0"]).refused(&["0.0.0.0:0", "no keys"]);
    place.go(&["serve", "--listen", "[::]:0"]).refused(&["[::]:0", "no keys"]);
}

#[test]
fn without_keys_no_page_of_a_browser_is_served() {
    let place = Place::new();
    let service = place.serve(&[]);
    let body = json!({ "command": ["true"] }).to_string();
    let ask = |headers: &[&str]| {
        let all = [&["Content-Type: application/json"], headers].concat();
        service.raw(request("POST", "/v1/runs", &all, body.as_bytes()))
    };
    for origin in ["http://evil.example", "null", "http://localhost:8700"] {
        ask(&[&format!("Origin: {origin}")]).is_problem(403, None, &["pages"]);
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80"] {
        ask(&[&format!("Host: {host}")]).is_problem(403, None, &["localhost"]);
    }
    // A page may send this without asking first.
    let simple = service.raw(request("POST", "/v1/runs", &["Content-Type: text/plain"], body.as_bytes()));
    simple.is_problem(415, None, &["application/json"]);
    let preflight = service.raw(request(
        "OPTIONS",
        "/v1/runs",
        &["Origin: http://evil.example", "Access-Control-Request-Method: POST"],
        b"",
    ));
    assert!(preflight.status >= 400 && !preflight.headers.keys().any(|name| name.starts_with("access-control")));
    for host in ["localhost", "127.0.0.1:1", "[::1]"] {
        assert_eq!(ask(&[&format!("Host: {host}")]).status, 200, "{host}");
    }
    assert_eq!(place.records(&[]).len(), 3);
}
