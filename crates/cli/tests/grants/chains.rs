//! Leases that were handed on: smaller in something, larger in nothing, and by their holder alone.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::desk::*;

struct Chain {
    desk: Desk,
    key: PathBuf,
    parent: Value,
}

/// A parent that has something in every field.
fn chain() -> Chain {
    let desk = Desk::new();
    let (key, _, public) = desk.key("holder");
    let flags = [
        ["--allow", "repo://a/**"],
        ["--deny", "repo://a/x"],
        ["--write", "repo://a/w"],
        ["--mount", "/opt/tools"],
        ["--env", "NAME"],
        ["--host", "example.org:443"],
        ["--runs", "5"],
        ["--holder", &public],
    ];
    let parent = read(&desk.issue(&flags.concat(), &["sh", "-c", "a*"]));
    Chain { desk, key, parent }
}

impl Chain {
    /// One run less, and whatever else.
    fn child(&self, edit: &dyn Fn(&mut Value)) -> Value {
        let mut child = self.parent.clone();
        child["lease_id"] = "child".into();
        child["limits"]["max_runs"] = 4.into();
        child["holder_key"] = Value::Null;
        child["parent"] = self.parent.clone();
        edit(&mut child);
        forge(child, &self.key)
    }

    #[track_caller]
    fn told(&self, child: &Value) -> Value {
        self.desk.reason(&self.desk.put(child))
    }
}

#[test]
fn a_child_is_in_nothing_larger() {
    let chain = chain();
    assert_eq!(chain.told(&chain.child(&|_| {})), Value::Null);
    let parent = &chain.parent;
    let later =
        hotcell_engine::after(parent["expires_at"].as_str().expect("a text"), std::time::Duration::from_nanos(1));
    let cases: Vec<(&str, Value)> = vec![
        ("/intent_id", json!("other")),
        ("/expires_at", json!(later.expect("in the calendar"))),
        ("/issued_at", json!(moment(-100))),
        ("/lease_id", parent["lease_id"].clone()),
        ("/scope/commands_allowlist", json!([["sh", "-c", "*"]])),
        ("/scope/commands_allowlist", json!([["sh", "-c", "a*"], ["sh"]])),
        ("/scope/commands_allowlist", json!([["sh", "**"]])),
        ("/scope/commands_allowlist", json!([["sh", "-c", "**"]])),
        ("/scope/commands_allowlist", json!([["sh", "-c", "a*", "b"]])),
        ("/scope/paths_allowlist", json!(["repo://a/**", "repo://b"])),
        ("/scope/paths_allowlist", json!(["repo://a/**", "repo://a*/**"])),
        ("/scope/paths_allowlist", json!(["repo://a/**", "repo://**"])),
        ("/scope/paths_denylist", json!([])),
        ("/scope/paths_denylist", json!(["repo://a/y"])),
        ("/scope/env_allowlist", json!(["NAME", "OTHER"])),
        ("/scope/network", json!({ "hosts": ["example.org:443", "example.com:443"] })),
        ("/scope/network", json!({ "hosts": ["example.org:80"] })),
        ("/limits/cpu_quota", json!(1.1)),
        ("/limits/mem_quota_mb", json!(257)),
        ("/limits/wallclock_timeout_s", json!(61)),
        ("/limits/fd_limit", json!(257)),
        ("/limits/max_runs", json!(6)),
        ("/runner/readonly_mounts", json!(["/opt/tools", "/opt"])),
        ("/runner/readonly_mounts", json!(["/opt/tools/x"])),
        ("/runner/writable_mounts", json!(["repo://a/w", "repo://a/v"])),
        ("/runner/writable_mounts", json!(["repo://a"])),
        ("/runner/writable_mounts", json!(["repo://a/ww"])),
    ];
    for (field, value) in cases {
        let child = chain.child(&|child| *child.pointer_mut(field).expect("it is there") = value.clone());
        assert_eq!(chain.told(&child), "not_a_subset", "{field} = {value}");
        let name = field[1..].replace('/', ".");
        let ran = chain.desk.leased(&chain.desk.put(&child), &[], &TRACE);
        chain.desk.is_denied(&ran, "not_a_subset", &[&name]);
    }
}

#[test]
fn a_child_may_be_smaller_in_anything() {
    let chain = chain();
    let cases: Vec<(&str, Value)> = vec![
        ("/actor", json!("somebody else")),
        ("/scope/commands_allowlist", json!([["sh", "-c", "abc"]])),
        ("/scope/commands_allowlist", json!([["sh", "-c", "a*b"], ["sh", "-c", "aa*"]])),
        ("/scope/paths_allowlist", json!(["repo://a/w/**", "repo://a/*.py"])),
        ("/scope/paths_denylist", json!(["repo://a/x", "repo://a/y"])),
        ("/scope/paths_denylist", json!(["repo://a/*"])),
        ("/scope/env_allowlist", json!([])),
        ("/scope/network", json!("deny_all")),
        ("/limits/cpu_quota", json!(0.5)),
        ("/limits/mem_quota_mb", json!(4)),
        ("/limits/wallclock_timeout_s", json!(1)),
        ("/limits/fd_limit", json!(8)),
        ("/limits/max_runs", json!(1)),
        ("/runner/readonly_mounts", json!([])),
        ("/runner/writable_mounts", json!(["repo://a/w/deep"])),
        ("/runner/writable_mounts", json!([])),
    ];
    for (field, value) in cases {
        let child = chain.child(&|child| *child.pointer_mut(field).expect("it is there") = value.clone());
        assert_eq!(chain.told(&child), Value::Null, "{field} = {value}");
    }
    // Equal is not smaller.
    let equal = chain.child(&|child| child["limits"]["max_runs"] = 5.into());
    assert_eq!(chain.told(&equal), "not_a_subset");
    let path = chain.desk.put(&equal);
    chain.desk.is_denied(&chain.desk.leased(&path, &[], &TRACE), "not_a_subset", &["as large"]);
}

#[test]
fn only_the_holder_hands_on() {
    let chain = chain();
    let desk = &chain.desk;
    let (other, other_kid, _) = desk.key("holder");
    let child = chain.child(&|_| {});
    assert_eq!(chain.told(&forge(child.clone(), &other)), "unknown_key");
    assert_eq!(chain.told(&forge(child.clone(), &desk.issuer())), "unknown_key");
    let mut named = forge(child.clone(), &other);
    named["sig"]["kid"] = child["sig"]["kid"].clone();
    assert_eq!(chain.told(&named), "bad_signature");
    // A cosigner of a child counts for nothing.
    let agent = desk.key("agent").0;
    let mut cosigned = child.clone();
    cosigned["cosigners"] = json!([cosignature(&child, &agent)]);
    assert_eq!(chain.told(&cosigned), "unknown_key");
    // A lease without a holder is not handed on, and a holder issues nothing by himself.
    let plain = read(&desk.issue(&[], &["true"]));
    let mut made = plain.clone();
    (made["lease_id"], made["parent"]) = ("made".into(), plain.clone());
    made["limits"]["mem_quota_mb"] = 100.into();
    assert_eq!(chain.told(&forge(made, &other)), "not_a_subset");
    assert_eq!(chain.told(&forge(plain, &other)), "unknown_key");
    let words = ["lease", "issue", "--actor", "x", "--key", text(&other), "--", "true"];
    desk.go(&words).refused(&[&other_kid, "not trusted"]);
}

#[test]
fn an_agent_issues_nothing() {
    let desk = Desk::new();
    let (agent, kid, _) = desk.key("agent");
    desk.go(&["lease", "issue", "--actor", "x", "--key", text(&agent), "--", "true"]).refused(&[&kid]);
    let lease = forge(read(&desk.issue(&[], &["true"])), &agent);
    assert_eq!(desk.reason(&desk.put(&lease)), "unknown_key");
    // A person does.
    let human = desk.key("human").0;
    assert_eq!(desk.reason(&desk.issue(&["--key", text(&human)], &["true"])), Value::Null);
}

#[test]
fn a_parent_that_was_changed() {
    let chain = chain();
    let child = chain.child(&|_| {});
    let other = read(&chain.desk.issue(&["--holder", chain.parent["holder_key"].as_str().expect("a text")], &["true"]));
    let mut swapped = child.clone();
    swapped["parent"] = other.clone();
    assert_eq!(chain.told(&swapped), "bad_signature");
    // Signed anew, it is no part of the other one.
    assert_eq!(chain.told(&forge(swapped, &chain.key)), "not_a_subset");
    // A parent that is larger than what was issued is not what the issuer signed.
    let mut grown = child.clone();
    grown["parent"]["limits"]["max_runs"] = 100.into();
    grown["limits"]["max_runs"] = 50.into();
    assert_eq!(chain.told(&forge(grown, &chain.key)), "bad_signature");
    // Without it, nobody is there who issued it.
    let mut orphan = child.clone();
    orphan["parent"] = Value::Null;
    assert_eq!(chain.told(&forge(orphan, &chain.key)), "unknown_key");
    // Upside down.
    let mut turned = chain.parent.clone();
    turned["parent"] = child.clone();
    assert_ne!(chain.told(&turned), Value::Null);
    let mut inner = child;
    inner["parent"] = Value::Null;
    turned["parent"] = inner;
    assert_ne!(chain.told(&turned), Value::Null);
}

#[test]
fn eight_links_and_no_more() {
    let desk = Desk::new();
    let (key, _, public) = desk.key("holder");
    let mut lease = desk.issue(&["--runs", "20", "--holder", &public], &["echo", "it ran"]);
    for link in 2..=8 {
        let runs = (20 - link).to_string();
        lease = desk.delegate(&lease, &key, &["--runs", &runs, "--holder", &public]);
    }
    assert_eq!(desk.reason(&lease), Value::Null);
    assert_eq!(desk.leased(&lease, &[], &["echo", "it ran"]).stdout, "it ran\n");
    let parent = read(&lease);
    let mut ninth = parent.clone();
    (ninth["lease_id"], ninth["limits"]["max_runs"]) = ("ninth".into(), 1.into());
    ninth["parent"] = parent;
    let path = desk.put(&forge(ninth, &key));
    desk.is_denied(&desk.leased(&path, &[], &["echo", "it ran"]), "malformed", &["handed on"]);
}

#[test]
fn the_command_refuses_to_hand_on_more() {
    let desk = Desk::new();
    let (key, _, public) = desk.key("holder");
    let lease = desk.issue(&["--holder", &public, "--runs", "3", "--for", "1m"], &["echo", "*"]);
    let base = ["lease", "delegate", text(&lease), "--key", text(&key)];
    for (flags, part) in [
        (&["--runs", "4"][..], "limits.max_runs"),
        (&["--for", "2m"], "expires_at"),
        (&["--allow", "repo://a"], "scope.paths_allowlist"),
        (&["--env", "X"], "scope.env_allowlist"),
        (&["--", "sh"], "scope.commands_allowlist"),
        (&[], "as large"),
    ] {
        desk.go(&[&base[..], flags].concat()).refused(&["not a part", part]);
    }
    let child = desk.delegate(&lease, &key, &["--runs", "1", "--", "echo", "one"]);
    assert_eq!(desk.leased(&child, &[], &["echo", "one"]).stdout, "one\n");
    desk.is_denied(&desk.leased(&child, &[], &["echo", "one"]), "run_count_used_up", &[]);
    // The parent has been used by it.
    assert_eq!(desk.leased(&lease, &[], &["echo", "two"]).code, 0);
    assert_eq!(desk.leased(&lease, &[], &["echo", "two"]).code, 0);
    desk.is_denied(&desk.leased(&lease, &[], &["echo", "two"]), "run_count_used_up", &[]);
}

#[test]
fn a_child_takes_nobodys_runs() {
    let desk = Desk::new();
    let (key, _, public) = desk.key("holder");
    let victim = desk.issue(&[], &["echo", "mine"]);
    let parent = read(&desk.issue(&["--holder", &public, "--runs", "5"], &["echo", "mine"]));
    let mut child = parent.clone();
    (child["lease_id"], child["limits"]["max_runs"]) = (read(&victim)["lease_id"].clone(), 1.into());
    (child["holder_key"], child["parent"]) = (Value::Null, parent);
    desk.leased(&desk.put(&forge(child, &key)), &[], &["echo", "mine"]);
    assert_eq!(desk.leased(&victim, &[], &["echo", "mine"]).stdout, "mine\n");
}
