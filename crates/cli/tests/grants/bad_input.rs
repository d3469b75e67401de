//! What is no lease: the message names the field, nothing runs, and nothing is stored but the refusal.

use serde_json::{Value, json};

use crate::desk::*;

/// Refused as malformed, with this part in the sentence; and one record of it, and one entry in the log.
#[track_caller]
fn is_malformed(desk: &Desk, bytes: &[u8], part: &str) {
    let path = desk.path("bad");
    std::fs::write(&path, bytes).expect("ours");
    let (records, staged) = (desk.records(&["--limit", "1000"]).len(), desk.state().join("staging_runs").exists());
    desk.is_denied(&desk.leased(&path, &[], &TRACE), "malformed", &[part]);
    assert_eq!(desk.records(&["--limit", "1000"]).len(), records + 1);
    assert_eq!(desk.state().join("staging_runs").exists(), staged);
}

#[test]
fn fields_that_are_wrong() {
    let desk = Desk::new();
    let (good, issuer) = (read(&desk.for_trace(&[])), desk.issuer());
    let long = "x".repeat(5000);
    let many: Vec<Value> = (0..1001).map(|n| json!([format!("c{n}")])).collect();
    let cases: Vec<(&str, Value, &str)> = vec![
        ("/lease_id", json!(""), "lease_id"),
        ("/lease_id", json!("../x"), "lease_id"),
        ("/lease_id", json!(long), "lease_id"),
        ("/lease_id", json!("a\u{0}b"), "lease_id"),
        ("/intent_id", json!("a b"), "intent_id"),
        ("/actor", json!(""), "actor"),
        ("/actor", json!("\u{1b}[31m"), "actor"),
        ("/actor", json!(long), "actor"),
        ("/holder_key", json!("00"), "holder_key"),
        ("/holder_key", json!("F".repeat(64)), "holder_key"),
        ("/scope/commands_allowlist", json!([]), "scope.commands_allowlist"),
        ("/scope/commands_allowlist", json!([[]]), "scope.commands_allowlist"),
        ("/scope/commands_allowlist", json!(many), "scope.commands_allowlist"),
        ("/scope/commands_allowlist", json!([["*"]]), "scope.commands_allowlist"),
        ("/scope/commands_allowlist", json!([["a", "**", "b"]]), "scope.commands_allowlist"),
        ("/scope/commands_allowlist", json!([["a\u{0}"]]), "scope.commands_allowlist"),
        ("/scope/paths_allowlist", json!(["/etc"]), "scope.paths_allowlist"),
        ("/scope/paths_allowlist", json!(["repo://../x"]), "scope.paths_allowlist"),
        ("/scope/paths_allowlist", json!(["repo://a\u{0}"]), "scope.paths_allowlist"),
        ("/scope/paths_denylist", json!(["x"]), "scope.paths_denylist"),
        ("/scope/env_allowlist", json!(["A=B"]), "scope.env_allowlist"),
        ("/scope/env_allowlist", json!([""]), "scope.env_allowlist"),
        ("/scope/env_allowlist", json!(["É"]), "scope.env_allowlist"),
        ("/scope/network", json!({ "hosts": ["example.org"] }), "scope.network"),
        ("/limits/cpu_quota", json!(0), "limits.cpu_quota"),
        ("/limits/cpu_quota", json!(-1), "limits.cpu_quota"),
        ("/limits/cpu_quota", json!(1e300), "limits.cpu_quota"),
        ("/limits/mem_quota_mb", json!(0), "limits.mem_quota_mb"),
        ("/limits/mem_quota_mb", json!(1u64 << 40), "limits.mem_quota_mb"),
        ("/limits/wallclock_timeout_s", json!(0), "limits.wallclock_timeout_s"),
        ("/limits/wallclock_timeout_s", json!(9_000_000), "limits.wallclock_timeout_s"),
        ("/limits/fd_limit", json!(1), "limits.fd_limit"),
        ("/limits/max_runs", json!(0), "limits.max_runs"),
        ("/limits/max_runs", json!(1_000_001), "limits.max_runs"),
        ("/runner/workdir", json!("/etc"), "runner.workdir"),
        ("/runner/workdir", json!("repo://../x"), "runner.workdir"),
        ("/runner/readonly_mounts", json!(["/"]), "runner.readonly_mounts"),
        ("/runner/readonly_mounts", json!(["/proc"]), "runner.readonly_mounts"),
        ("/runner/readonly_mounts", json!(["/opt/../etc"]), "runner.readonly_mounts"),
        ("/runner/writable_mounts", json!(["repo://"]), "runner.writable_mounts"),
        ("/runner/writable_mounts", json!(["repo://a"]), "runner.writable_mounts"),
        ("/runner/writable_mounts", json!(["/etc"]), "runner.writable_mounts"),
    ];
    for (field, value, part) in cases {
        let mut lease = good.clone();
        *lease.pointer_mut(field).expect("it is there") = value;
        is_malformed(&desk, &canonical(&forge(lease, &issuer)), part);
    }
}

#[test]
fn types_that_are_wrong() {
    let desk = Desk::new();
    let (good, issuer) = (read(&desk.for_trace(&[])), desk.issuer());
    let fields = [
        "/lease_id",
        "/actor",
        "/issued_at",
        "/expires_at",
        "/scope",
        "/scope/commands_allowlist",
        "/scope/paths_allowlist",
        "/scope/paths_denylist",
        "/scope/env_allowlist",
        "/scope/network",
        "/limits",
        "/limits/cpu_quota",
        "/limits/mem_quota_mb",
        "/limits/max_runs",
        "/runner",
        "/runner/workdir",
        "/cosigners",
    ];
    for field in fields {
        for value in [json!(true), json!({ "x": [] }), json!([[[]]]), json!("\u{0}")] {
            let mut lease = good.clone();
            *lease.pointer_mut(field).expect("it is there") = value;
            is_malformed(&desk, &canonical(&forge(lease, &issuer)), "malformed");
        }
        let mut lease = good.clone();
        let (above, name) = field.rsplit_once('/').expect("a path");
        lease.pointer_mut(above).and_then(Value::as_object_mut).expect("an object").remove(name);
        is_malformed(&desk, &canonical(&forge(lease, &issuer)), name);
    }
    for above in ["", "/scope", "/limits", "/runner", "/sig"] {
        let mut lease = good.clone();
        lease = forge(lease, &issuer);
        lease.pointer_mut(above).expect("it is there")["more"] = true.into();
        is_malformed(&desk, &canonical(&lease), "more");
    }
}

#[test]
fn a_wrong_type_is_told_with_its_field() {
    let desk = Desk::new();
    let (good, issuer) = (read(&desk.for_trace(&[])), desk.issuer());
    for field in ["/actor", "/limits/max_runs", "/scope/env_allowlist", "/runner/workdir"] {
        let mut lease = good.clone();
        *lease.pointer_mut(field).expect("it is there") = json!(true);
        let name = field[1..].replace('/', ".");
        is_malformed(&desk, &canonical(&forge(lease, &issuer)), &name);
    }
}

#[test]
fn what_is_no_json() {
    let desk = Desk::new();
    let good = std::fs::read_to_string(desk.for_trace(&["--cpus", "1"])).expect("ours");
    for number in ["NaN", "Infinity", "-Infinity", "1e999", "-0", "0x1", "01", "1.", ".5", "+1", "1e", "--1"] {
        is_malformed(
            &desk,
            good.replace("\"cpu_quota\":1,", &format!("\"cpu_quota\":{number},")).as_bytes(),
            "malformed",
        );
    }
    for number in ["-1", "1.5", "1e3", "18446744073709551616", &"9".repeat(1000), "null", "\"1\""] {
        is_malformed(
            &desk,
            good.replace("\"max_runs\":1,", &format!("\"max_runs\":{number},")).as_bytes(),
            "malformed",
        );
    }
    let (open, nested) = ("[".repeat(100_000), format!("{}{}", "[".repeat(50_000), "]".repeat(50_000)));
    let parents = format!("{}null{}", "{\"parent\":".repeat(20_000), "}".repeat(20_000));
    for bytes in [
        &b""[..],
        b"\n",
        b"{}",
        b"[]",
        b"null",
        b"\0",
        b"\xff\xfe{}",
        b"{\"actor\":\"\xc3\x28\"}",
        b"{\"actor\":\"\\ud800\"}",
        open.as_bytes(),
        nested.as_bytes(),
        parents.as_bytes(),
        &[b'x'; 1 << 20],
        &[0; 1 << 20],
        &[0xff; 2 << 20],
    ] {
        is_malformed(&desk, bytes, "malformed");
    }
    is_malformed(&desk, &[good.as_bytes(), &[b' '; 300_000]].concat(), "262144");
    desk.is_whole();
}

#[test]
fn devices_are_no_leases() {
    let desk = Desk::new();
    for path in ["/dev/zero", "/dev/null", "/proc/self/mem", "/"] {
        let ran = desk.leased(std::path::Path::new(path), &[], &TRACE);
        desk.is_denied(&ran, "not_found", &["cannot be read"]);
    }
}

#[test]
fn a_fifo_is_no_lease() {
    let desk = Desk::new();
    let fifo = desk.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("it starts").success());
    desk.is_denied(&desk.leased(&fifo, &[], &TRACE), "not_found", &["cannot be read"]);
}

#[test]
fn what_is_shown_of_a_lease_is_harmless() {
    let desk = Desk::new();
    let lease = desk.issue(&[], &["echo", "\u{1b}[31m\n"]);
    let said = desk.done(&["lease", "show", text(&lease)]);
    assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
    desk.go(&["lease", "show", "gone"]).refused(&["gone"]);
    let bad = desk.write("bad", "{}");
    for verb in ["show", "verify"] {
        let ran = desk.go(&["lease", verb, text(&bad)]);
        assert!(ran.code != 0 && format!("{}{}", ran.stdout, ran.stderr).contains("malformed"), "{verb}");
    }
}

#[test]
fn no_control_of_a_lease_reaches_the_terminal() {
    let desk = Desk::new();
    let lease = desk.issue(&[], &["echo", "\u{9b}31m\u{7f}\u{202e}"]);
    let said = desk.done(&["lease", "show", text(&lease)]);
    assert!(!said.contains(['\u{9b}', '\u{7f}', '\u{202e}']), "{said:?}");
}

#[test]
fn bad_words() {
    let desk = Desk::new();
    for (flags, part) in [
        (&["--for", "x"][..], "--for"),
        (&["--runs=-1"], "--runs"),
        (&["--runs", "0"], "limits.max_runs"),
        (&["--runs", "99999999999999999999"], "--runs"),
        (&["--cpus", "nan"], "limits.cpu_quota"),
        (&["--cpus", "inf"], "limits.cpu_quota"),
        (&["--cpus", "0"], "limits.cpu_quota"),
        (&["--memory", "1k"], "limits.mem_quota_mb"),
        (&["--open-files", "1"], "limits.fd_limit"),
        (&["--holder", "x"], "holder_key"),
        (&["--env", "A=B"], "scope.env_allowlist"),
        (&["--host", "x"], "scope.network"),
        (&["--key", "gone"], "gone"),
    ] {
        let ran = desk.go(&[&["lease", "issue", "--actor", "x"], flags, &["--", "true"]].concat());
        ran.refused(&[part]);
    }
    let there = desk.write("there", "kept");
    desk.go(&["lease", "issue", "--actor", "x", "--out", text(&there), "--", "true"]).refused(&["there"]);
    assert_eq!(std::fs::read(&there).expect("ours"), b"kept");
    for id in ["", "../x", "a b", "\u{1b}[31m"] {
        desk.go(&["lease", "revoke", id, "--reason", "x"]).refused(&[]);
    }
}
