//! Files that runs leave: listed, fetched, and not a way to anything else.

use serde_json::json;

use crate::client::request;
use crate::harness::*;

const LEAVES: &str = "import os\nos.makedirs('d')\nopen('d/a b.txt','w').write('hello')\nopen('big','wb').write(bytes(300000))\nos.symlink('/etc/passwd','link')\n";

#[test]
fn what_is_collected_can_be_fetched_to_the_byte() {
    let place = Place::new();
    let service = place.serve(&[]);
    let run = service.post("/v1/runs", &json!({ "code": LEAVES, "collect": ["**"] })).json();
    let at = format!("/v1/runs/{}/artifacts", run["id"].as_str().expect("an id"));
    let list = service.get(&at).json();
    let names: Vec<&str> =
        list["artifacts"].as_array().expect("a list").iter().filter_map(|file| file["path"].as_str()).collect();
    assert_eq!(names, ["big", "d/a b.txt"]);
    let text = service.get(&format!("{at}/d/a%20b.txt"));
    assert_eq!((text.status, text.text().as_str()), (200, "hello"));
    assert_eq!(text.headers["etag"], format!("\"{}\"", list["artifacts"][1]["sha256"].as_str().expect("a hash")));
    assert_eq!(
        (text.headers["content-disposition"].as_str(), text.headers["x-content-type-options"].as_str()),
        ("attachment", "nosniff")
    );
    assert_eq!(service.get(&format!("{at}/big")).body, vec![0; 300_000]);
    // Only what was asked for is kept.
    let none = service.post("/v1/runs", &json!({ "code": LEAVES })).json();
    assert_eq!(none["outcome"]["artifacts"], json!([]));
    let some = service.post("/v1/runs", &json!({ "code": LEAVES, "collect": ["d/*"] })).json();
    assert_eq!(some["outcome"]["artifacts"].as_array().map(Vec::len), Some(1));
}

#[test]
fn no_path_leads_anywhere_else() {
    let place = Place::new();
    let (a, b) = (place.key(&["--tenant", "a"]), place.key(&["--tenant", "b"]));
    let mut service = place.serve(&[]);
    service.key = Some(a.clone());
    let run = service.post("/v1/runs", &json!({ "code": LEAVES, "collect": ["**"] })).json();
    let id = run["id"].as_str().expect("an id");
    let other = service.post("/v1/runs", &json!({ "code": LEAVES, "collect": ["**"] })).json();
    let other = other["id"].as_str().expect("an id");
    for name in [
        "link",
        "d",
        "d/",
        "./big",
        "d/../big",
        "d%2f..%2fbig",
        "%2e%2e/x",
        "..%2f..%2f..%2fkeys%2faudit.key",
        "../../../keys/audit.key",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "big%00",
        "big%ff",
        "BIG",
        "",
        &format!("../{other}/big"),
        &format!("..%2f{other}%2fbig"),
    ] {
        let answer =
            service.raw(request("GET", &format!("/v1/runs/{id}/artifacts/{name}"), &[&format!("X-API-Key: {a}")], b""));
        assert_eq!(answer.status, 404, "{name}: {}", answer.text());
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{name}");
    }
    let big = format!("/v1/runs/{id}/artifacts/big");
    assert_eq!(service.get(&big).status, 200);
    service.key = Some(b);
    service.get(&big).is_problem(404, None, &["no such run"]);
    service.get(&format!("/v1/runs/{id}/artifacts")).is_problem(404, None, &["no such run"]);
}

#[test]
fn artifacts_stay_after_a_restart_and_go_with_their_run() {
    let place = Place::new();
    let service = place.serve(&[]);
    // Who only waits has his answer before it is kept: this one comes back for it.
    let run = service.post("/v1/runs?keep=true", &json!({ "code": LEAVES, "collect": ["**"] })).json();
    let at = format!("/v1/runs/{}/artifacts/big", run["id"].as_str().expect("an id"));
    service.signal("KILL");
    service.wait();
    let service = place.serve(&["--keep-runs", "1"]);
    assert_eq!(service.get(&at).body.len(), 300_000);
    for _ in 0..2 {
        service.run(&json!({ "command": ["true"] }));
    }
    wait_until("the sweep", || service.get(&at).status == 404);
    let left = || std::fs::read_dir(place.state().join("service/artifacts")).expect("it is there").count();
    wait_until("the end of its files", || left() == 0);
}
