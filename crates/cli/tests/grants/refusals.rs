//! Every reason for which a lease does not count, each with its own word; and leases that do.

use serde_json::{Value, json};

use crate::desk::*;

#[test]
fn a_good_lease_runs_what_it_allows() {
    let desk = Desk::new();
    let lease = desk.for_trace(&[]);
    assert_eq!(desk.reason(&lease), Value::Null);
    let outcome = desk.outcome(&lease, &[], &TRACE);
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"it ran\n".into()), "{outcome:#}");
    assert!(desk.repo("w/trace").exists());
    let (id, record) = (read(&lease)["lease_id"].clone(), desk.newest());
    assert_eq!((&record["status"], &record["lease_id"]), (&"completed".into(), &id));
    assert_eq!(desk.events("lease_event.ISSUED")[0]["lease_id"], id);
    assert_eq!(desk.events("lease_event.VERIFIED")[0]["lease_id"], id);
    desk.is_whole();
}

#[test]
fn what_is_not_there() {
    let desk = Desk::new();
    let gone = desk.path("gone");
    desk.is_denied(&desk.leased(&gone, &[], &TRACE), "not_found", &["gone", "cannot be read"]);
    desk.is_denied(&desk.leased(&desk.path("repo"), &[], &TRACE), "not_found", &["cannot be read"]);
    desk.go(&["lease", "verify", "gone"]).refused(&["gone"]);
    let named = desk.path("no\u{1b}[31m\nthing");
    desk.is_denied(&desk.leased(&named, &[], &TRACE), "not_found", &["cannot be read"]);
}

#[test]
fn what_is_wrong_with_the_paper() {
    let desk = Desk::new();
    let good = read(&desk.for_trace(&[]));
    let issuer = desk.issuer();
    let other = Desk::new();
    let (stranger, kid, _) = other.key("issuer");
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut lease = good.clone();
        edit(&mut lease);
        forge(lease, &issuer)
    };
    let unsigned = |edit: &dyn Fn(&mut Value)| {
        let mut lease = good.clone();
        edit(&mut lease);
        lease
    };
    // The twin: what is signed anew counts.
    assert_eq!(desk.reason(&desk.put(&with(&|_| {}))), Value::Null);
    let cases = [
        ("malformed", with(&|l| l["limits"]["max_runs"] = 0.into()), "limits.max_runs"),
        ("unknown_key", forge(good.clone(), &stranger), kid.as_str()),
        ("bad_signature", unsigned(&|l| l["limits"]["max_runs"] = 2.into()), "signature"),
        ("not_yet_valid", with(&|l| l["issued_at"] = moment(60).into()), "not valid before"),
        (
            "expired",
            with(&|l| (l["issued_at"], l["expires_at"]) = (moment(-60).into(), moment(-1).into())),
            "expired at",
        ),
        ("too_long", with(&|l| l["expires_at"] = moment(3600).into()), "10 at most"),
    ];
    for (reason, lease, part) in cases {
        let path = desk.put(&lease);
        assert_eq!(desk.reason(&path), reason);
        desk.is_denied(&desk.leased(&path, &[], &TRACE), reason, &[part]);
        // What it claimed to be is in the record, where that can be read.
        let id = if reason == "malformed" { Value::Null } else { good["lease_id"].clone() };
        assert_eq!(desk.newest()["lease_id"], id, "{reason}");
    }
    desk.is_whole();
}

#[test]
fn what_is_asked_beyond_it() {
    let desk = Desk::new();
    let lease = desk.for_trace(&["--env", "GOOD", "--memory", "64m", "--timeout", "10s", "--open-files", "64"]);
    let elsewhere = desk.path("work");
    let flags: [(&[&str], &[&str], &str, &str); 9] = [
        (&[], &["sh", "-c", "echo it ran"], "command_not_allowed", "no command like"),
        (&["--env", "BAD=1"], &TRACE, "variable_not_allowed", "BAD"),
        (&["--env", "good=1"], &TRACE, "variable_not_allowed", "good"),
        (&["--input", text(&elsewhere)], &TRACE, "path_not_allowed", "--repo"),
        (&["--network", "local"], &TRACE, "network_not_allowed", "denies all"),
        (&["--memory", "65m"], &TRACE, "limit_exceeded", "--memory"),
        (&["--timeout", "11s"], &TRACE, "limit_exceeded", "--timeout"),
        (&["--open-files", "65"], &TRACE, "limit_exceeded", "--open-files"),
        (&["--cpus", "1.5"], &TRACE, "limit_exceeded", "--cpus"),
    ];
    for (flags, program, reason, part) in flags {
        desk.is_denied(&desk.leased(&lease, flags, program), reason, &[part]);
    }
    let ran = desk.go(&[&["exec", "--lease", text(&lease), "--"], &TRACE[..]].concat());
    desk.is_denied(&ran, "path_not_allowed", &["--repo"]);
    let gone = desk.path("gone");
    let ran = desk.go(&[&["exec", "--lease", text(&lease), "--repo", text(&gone), "--"], &TRACE[..]].concat());
    desk.is_denied(&ran, "path_not_allowed", &["gone"]);
    // None of it has used up the one run that there is.
    let flags = ["--env", "GOOD=1", "--memory", "64m", "--timeout", "10s", "--open-files", "64", "--cpus", "1"];
    assert_eq!(desk.outcome(&lease, &flags, &TRACE)["status"], "pass");
}

#[test]
fn hosts_are_the_leases_and_the_policys() {
    let desk = Desk::new();
    let hosts = "allow_network = true\nallow_file_write = true\nnetwork_policy = 'restricted'\nallowed_hosts = ['*.example.net:443']";
    let file = desk.write("some.toml", format!("policy_id = 'some'\nname = 'Some'\n{hosts}\n"));
    desk.done(&["policy", "define", text(&file)]);
    desk.define("none", "allow_file_write = true");
    let lease = desk.for_trace(&["--runs", "3", "--host", "a.example.net:443"]);
    let denied = |words: &[&str], said: &str| {
        desk.is_denied(&desk.leased(&lease, words, &TRACE), "network_not_allowed", &[said]);
    };
    denied(&["--policy", "none"], "policy's hosts");
    denied(&["--policy", "some", "--allow-host", "b.example.net:443"], "lease's hosts");
    denied(&["--network", "full"], "some hosts");
    let other = desk.for_trace(&["--host", "example.org:443"]);
    let ran = desk.leased(&other, &["--policy", "some"], &TRACE);
    desk.is_denied(&ran, "network_not_allowed", &["policy's hosts"]);
    let outcome = desk.outcome(&lease, &["--policy", "some"], &TRACE);
    assert_eq!(outcome["runtime_config"]["allowed_hosts"], json!(["a.example.net:443"]));
    assert_eq!(outcome["runtime_config"]["network_policy"], "restricted");
    // Less may be asked for.
    let outcome = desk.outcome(&lease, &["--network", "none"], &TRACE);
    assert_eq!(outcome["runtime_config"]["network_policy"], "none");
}

#[test]
fn a_lease_that_was_revoked_or_used_up() {
    let desk = Desk::new();
    let lease = desk.for_trace(&[]);
    let id = read(&lease)["lease_id"].as_str().expect("a text").to_owned();
    let said = desk.done(&["lease", "revoke", &id, "--reason", "a drill", "--by", "me"]);
    assert_eq!(said, format!("{id} is revoked; 0 running processes were told"));
    assert_eq!(desk.reason(&lease), "revoked");
    desk.is_denied(&desk.leased(&lease, &[], &TRACE), "revoked", &["by me", "a drill"]);
    assert_eq!(desk.events("lease_event.REVOKED")[0]["lease_id"], id.as_str());
    let once = desk.issue(&[], &["true"]);
    assert_eq!(desk.leased(&once, &[], &["true"]).code, 0);
    let ran = desk.leased(&once, &[], &["true"]);
    desk.is_denied(&ran, "run_count_used_up", &["used up"]);
}

#[test]
fn an_intent_that_does_not_stand() {
    let desk = Desk::new();
    let words = |id: &'static str| ["lease", "issue", "--actor", "x", "--intent", id, "--", "true"];
    desk.go(&words("unknown")).refused(&["intent", "unknown"]);
    std::fs::write(desk.state().join("hotcell.toml"), "[capabilities]\nlease_requires_intent = true\n").expect("ours");
    desk.go(&["lease", "issue", "--actor", "x", "--", "true"]).refused(&["--intent"]);
    assert_eq!(desk.events("lease_event.ISSUED").len(), 0);
}

#[test]
fn what_is_handed_on_too_large() {
    let desk = Desk::new();
    let (key, _, public) = desk.key("holder");
    let parent = read(&desk.for_trace(&["--holder", &public]));
    let mut child = parent.clone();
    child["lease_id"] = "child".into();
    child["parent"] = parent.clone();
    child["limits"]["mem_quota_mb"] = 300.into();
    let path = desk.put(&forge(child, &key));
    assert_eq!(desk.reason(&path), "not_a_subset");
    desk.is_denied(&desk.leased(&path, &[], &TRACE), "not_a_subset", &["limits.mem_quota_mb"]);
}

#[test]
fn two_keys_where_the_policy_wants_them() {
    let desk = Desk::new();
    desk.define("two", "two_key_lease = true\nallow_file_write = true");
    let (human, agent) = (desk.key("human").0, desk.key("agent").0);
    let ran = desk.go(&["exec", "--policy", "two", "--", "echo", "it ran"]);
    ran.refused(&["--lease"]);
    assert_eq!(desk.newest()["failure_class"], "LeaseViolation");
    let cosign = |lease: &std::path::Path, key: &std::path::Path| {
        let out = desk.fresh();
        desk.done(&["lease", "cosign", text(lease), "--key", text(key), "--out", text(&out)]);
        out
    };
    // Who signs it, who cosigns it, and whose signature is missing.
    for (signer, cosigners, missing) in [
        (None, vec![], Some("human")),
        (None, vec![&human], Some("agent")),
        (None, vec![&agent], Some("human")),
        (None, vec![&human, &agent], None),
        (None, vec![&agent, &human], None),
        (Some(&human), vec![], Some("agent")),
        (Some(&human), vec![&human], Some("agent")),
        (Some(&human), vec![&agent], None),
        (Some(&human), vec![&agent, &agent], None),
    ] {
        let key = signer.map(|path| vec!["--key", text(path)]).unwrap_or_default();
        let mut lease = desk.issue(&[&["--runs", "9"], &key[..]].concat(), &["echo", "it ran"]);
        for key in &cosigners {
            lease = cosign(&lease, key);
        }
        let ran = desk.leased(&lease, &["--policy", "two"], &["echo", "it ran"]);
        match missing {
            Some(role) => desk.is_denied(&ran, "cosigner_missing", &[role]),
            None => assert_eq!((ran.code, ran.stdout.as_str()), (0, "it ran\n"), "{}", ran.stderr),
        }
        // Stripped of them, it counts for less.
        let mut stripped = read(&lease);
        stripped["cosigners"] = json!([]);
        let ran = desk.leased(&desk.put(&stripped), &["--policy", "two"], &["echo", "it ran"]);
        desk.is_denied(&ran, "cosigner_missing", &[]);
    }
    assert!(!desk.events("lease_event.COSIGNED").is_empty());
}
