//! Keys: rotation, files that others can read, and what is no key.

use serde_json::Value;

use crate::desk::*;
use crate::harness::*;

#[test]
fn the_current_and_the_previous_are_trusted() {
    let desk = Desk::new();
    let lease = desk.issue(&["--runs", "9"], &["echo", "it ran"]);
    desk.done(&["lease", "keygen"]);
    assert_eq!(desk.reason(&lease), Value::Null, "one rotation ago");
    assert_eq!(desk.leased(&lease, &[], &["echo", "it ran"]).stdout, "it ran\n");
    desk.done(&["lease", "keygen"]);
    assert_eq!(desk.reason(&lease), "unknown_key", "two rotations ago");
    desk.is_denied(&desk.leased(&lease, &[], &["echo", "it ran"]), "unknown_key", &["not trusted"]);
    // Other roles turn by themselves.
    let human = desk.key("human").0;
    let lease = desk.issue(&["--key", text(&human)], &["true"]);
    desk.done(&["lease", "keygen"]);
    desk.done(&["lease", "keygen"]);
    assert_eq!(desk.reason(&lease), Value::Null);
    let made = desk.events("lease_event.KEY_MADE");
    assert_eq!(made.iter().filter(|key| key["role"] == "issuer").count(), 5);
    assert!(made.iter().all(|key| key.get("secret").is_none()));
}

#[test]
fn a_key_is_for_its_owner_alone() {
    let desk = Desk::new();
    let key = desk.key("human").0;
    let words = ["lease", "issue", "--actor", "x", "--key", text(&key), "--", "true"];
    for mode in [0o640, 0o604, 0o620, 0o602, 0o601, 0o777] {
        set_mode(&key, mode);
        desk.go(&words).refused(&["chmod 600"]);
    }
    set_mode(&key, 0o600);
    assert_eq!(desk.go(&words).code, 0);
    let own = desk.issuer();
    set_mode(&own, 0o644);
    desk.go(&["lease", "issue", "--actor", "x", "--", "true"]).refused(&["chmod 600"]);
    set_mode(&own, 0o600);
    // Never over something that is there.
    let there = desk.write("there", "kept");
    desk.go(&["lease", "keygen", "--role", "holder", "--out", text(&there)]).refused(&["there"]);
    assert_eq!(std::fs::read(&there).expect("ours"), b"kept");
    desk.go(&["lease", "keygen", "--role", "holder"]).refused(&["--out"]);
}

#[test]
fn what_is_no_key() {
    let desk = Desk::new();
    let key = desk.key("human").0;
    let good = std::fs::read_to_string(&key).expect("ours");
    let other = read(&desk.key("human").0);
    let half = read(&key)["public"].as_str().expect("a text").to_owned();
    let swapped = good.replace(&half, other["public"].as_str().expect("a text"));
    let (long, deep) = ("x".repeat(1 << 20), "[".repeat(4000));
    for text_ in
        ["", "{}", "null", "\0", &long, &deep, &good[..good.len() / 2], &swapped, &good.replace("human", "king")]
    {
        let path = desk.fresh();
        std::fs::write(&path, text_).expect("ours");
        set_mode(&path, 0o600);
        desk.go(&["lease", "issue", "--actor", "x", "--key", text(&path), "--", "true"]).refused(&["key file"]);
    }
    for path in ["/dev/zero", "/proc/self/mem", "gone", "."] {
        desk.go(&["lease", "issue", "--actor", "x", "--key", path, "--", "true"]).refused(&["key file"]);
    }
    // A holder who calls himself an issuer is none.
    let holder = desk.key("holder").0;
    let claimed = std::fs::read_to_string(&holder).expect("ours").replace("\"holder\"", "\"issuer\"");
    std::fs::write(&holder, claimed).expect("ours");
    desk.go(&["lease", "issue", "--actor", "x", "--key", text(&holder), "--", "true"]).refused(&["not trusted"]);
    // A damaged list of keys trusts nobody.
    let lease = desk.issue(&[], &["true"]);
    std::fs::write(desk.state().join("keys/leases.json"), "[{").expect("ours");
    desk.leased(&lease, &[], &["echo", "it ran"]).refused(&["list of keys"]);
    desk.go(&["lease", "list"]).refused(&["list of keys"]);
}

#[test]
fn without_a_key_nothing_is_issued() {
    let place = Place::new();
    place.go(&["lease", "issue", "--actor", "x", "--", "true"]).refused(&["keygen"]);
    let lease = Desk::new().issue(&[], &["true"]);
    place.go(&["exec", "--lease", text(&lease), "--", "echo", "it ran"]).refused(&[]);
}

#[test]
fn the_list_says_what_became_of_them() {
    let desk = Desk::new();
    let used = read(&desk.issue(&["--runs", "2"], &["true"]));
    let gone = read(&desk.issue(&[], &["true"]));
    desk.leased(&desk.put(&used), &[], &["true"]);
    desk.done(&["lease", "revoke", gone["lease_id"].as_str().expect("a text"), "--reason", "x", "--by", "me"]);
    let list: Value = serde_json::from_str(&desk.done(&["lease", "list", "--output", "json"])).expect("JSON");
    let find = |lease: &Value| {
        let all = list["leases"].as_array().expect("a list").clone();
        all.into_iter().find(|one| one["lease_id"] == lease["lease_id"]).expect("it is there")
    };
    assert_eq!((&find(&used)["runs"], &find(&used)["max_runs"]), (&1.into(), &2.into()));
    assert_eq!((&find(&used)["revoked_by"], &find(&gone)["revoked_by"]), (&Value::Null, &"me".into()));
    assert!(!list.to_string().contains("secret"));
    let said = desk.done(&["lease", "list"]);
    assert!(said.contains("1/2 runs") && said.contains("revoked by me") && said.contains("current"), "{said}");
}

#[test]
fn keys_that_are_made_at_once() {
    let desk = Desk::new();
    let callers: Vec<Going> = ["human", "agent"]
        .iter()
        .cycle()
        .take(12)
        .map(|role| {
            let path = desk.fresh();
            let mut command = desk.hotcell(&["lease", "keygen", "--role", role, "--out", text(&path)]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            Going { child: command.spawn().expect("it starts") }
        })
        .collect();
    assert!(callers.into_iter().all(|going| going.end().code == 0));
    let list = desk.done(&["lease", "list"]);
    for role in ["human", "agent"] {
        assert_eq!(list.lines().filter(|line| line.starts_with("key") && line.contains(role)).count(), 2, "{list}");
    }
    assert!(list.contains("issuer"), "{list}");
}
