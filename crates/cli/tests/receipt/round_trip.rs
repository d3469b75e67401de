//! What a receipt says is what was, and another implementation than ours finds it signed.

use serde_json::{Value, json};

use crate::harness::*;
use crate::receipts::*;

/// Verified by the binary and by Python; predicate and result say the same.
#[track_caller]
fn holds(signed: &Signed) -> Value {
    signed.is_valid(&["--result", signed.place.path("result.json").to_str().expect("UTF-8")]);
    let public = signed.place.state().join("keys/receipt.pub");
    let files = [signed.file.to_str().expect("UTF-8"), public.to_str().expect("UTF-8")];
    let statement: Value = serde_json::from_str(&python("verify.py", &files)).expect("JSON");
    assert_eq!(statement, signed.statement());
    let (said, result) = (&statement["predicate"], signed.result());
    for field in ["request_id", "created_at", "enforced", "degraded", "usage", "mode"] {
        assert_eq!(said[field], result[field], "{field}");
    }
    for field in ["limits", "network_policy", "on_violation"] {
        assert_eq!(said[field], result["runtime_config"][field], "{field}");
    }
    for field in ["status", "tier", "failure_class", "terminal_event", "exit_code", "signal", "attempt"] {
        assert_eq!(said["verdict"][field], result[field], "{field}");
    }
    let counts = said["verdict"]["violations"].as_array().expect("a list").iter();
    let counted: u64 = counts.map(|count| count["count"].as_u64().expect("a number")).sum();
    assert_eq!(counted as usize, result["violations"].as_array().expect("a list").len());
    for stream in ["stdout", "stderr"] {
        assert_eq!(said[stream]["bytes"], result["output"][stream]["bytes"]);
        assert_eq!(said[stream]["sha256"], result["output"][stream]["sha256"]);
    }
    assert!(said["completed_at"].as_str() >= said["created_at"].as_str());
    assert_eq!(said["hotcell"], env!("CARGO_PKG_VERSION"));
    let file = std::fs::read(signed.place.path("result.json")).expect("ours");
    assert_eq!(subject(&statement, "result"), sha256(&file));
    statement
}

/// The hash of the one subject of this name.
#[track_caller]
fn subject(statement: &Value, name: &str) -> String {
    let all = statement["subject"].as_array().expect("a list");
    let mut named = all.iter().filter(|subject| subject["name"] == name);
    let found = named.next().unwrap_or_else(|| panic!("{name} is not in {all:?}"));
    assert!(named.next().is_none(), "{name} is there twice");
    found["digest"]["sha256"].as_str().expect("a text").to_owned()
}

#[test]
fn of_every_verdict() {
    for (words, class, event, code) in [
        (&["--", "true"][..], json!(null), json!(null), 0),
        (&["--", "sh", "-c", "exit 7"], json!("RuntimeError"), json!(null), 7),
        (&["--", "sh", "-c", "kill -9 $$"], json!("Signaled"), json!(null), 137),
        (&["--", "sh", "-c", "echo x > /etc/evil; true"], json!("FilesystemWriteViolation"), json!(null), 123),
        (&["--timeout", "200ms", "--", "sleep", "60"], json!("TimeoutViolation"), json!("TimeoutViolation"), 124),
        (&["--", "/nothing/of/that/name"], json!("SetupFailure"), json!(null), 127),
    ] {
        let (signed, ran) = sign_in(Place::new(), &[&["exec", "--quiet"], words].concat());
        assert_eq!(ran.code, code, "{words:?}: {}", ran.stderr);
        let verdict = &holds(&signed)["predicate"]["verdict"];
        assert_eq!((&verdict["failure_class"], &verdict["terminal_event"]), (&class, &event), "{words:?}");
    }
}

#[test]
fn of_a_source_and_of_a_verification() {
    let (signed, ran) = sign_in(Place::new(), &["run", "--quiet", "--code", "print('hi')"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hi\n"));
    assert_eq!(subject(&holds(&signed), "stream:stdout"), sha256(b"hi\n"));
    let place = Place::new();
    let source = place.write("code.py", "def two():\n    return 2\n");
    let signed = sign_in(place, &["verify", "--quiet", source.to_str().expect("UTF-8")]).0;
    assert_eq!(holds(&signed)["predicate"]["verdict"]["status"], "pass");
    // What does not compile has the compiler's words.
    let signed = sign(&["run", "--quiet", "--lang", "c", "--no-cache", "--code", "int main( {"]);
    assert_eq!(holds(&signed)["predicate"]["verdict"]["failure_class"], "CompileError");
}

#[test]
fn after_a_repair_it_is_about_what_was_mended() {
    let place = Place::new();
    let source = place.write("code.py", "def two(:\n");
    let good = place.write("good", "def two():\n    return 2\n");
    let (source, good) = (source.to_str().expect("UTF-8"), good.to_str().expect("UTF-8"));
    let repair = format!("cp {good} {source}");
    let words = ["verify", "--quiet", "--repair", &repair, source];
    let hash = |signed: &Signed| signed.statement()["predicate"]["request_hash"].clone();
    let mended = sign_in(place, &words).0;
    assert_eq!(holds(&mended)["predicate"]["verdict"]["attempt"], 2);
    let after = hash(&mended);
    // The same as if it had never been wrong.
    std::fs::remove_file(&mended.file).expect("ours");
    let Signed { place, .. } = mended;
    let whole = sign_in(place, &words).0;
    assert_eq!(holds(&whole)["predicate"]["verdict"]["attempt"], 1);
    assert_eq!(after, hash(&whole));
}

#[test]
fn streams_are_hashed_as_they_were_written() {
    let signed = sign(&["exec", "--quiet", "--", "printf", r"\377\376\000x"]);
    let statement = holds(&signed);
    assert_eq!(subject(&statement, "stream:stdout"), sha256(b"\xff\xfe\x00x"));
    assert_eq!(subject(&statement, "stream:stderr"), sha256(b""));
    assert_eq!(
        statement["predicate"]["stdout"],
        json!({ "sha256": sha256(b"\xff\xfe\x00x"), "bytes": 4, "complete": true })
    );
    // With the result on standard output too.
    let json = sign(&["exec", "--output", "json", "--", "printf", r"\377\376\000x"]);
    assert_eq!(subject(&holds(&json), "stream:stdout"), sha256(b"\xff\xfe\x00x"));
}

#[test]
fn a_stream_over_its_limit_is_not_complete_and_says_so() {
    let program = "print('a' * 1500 + 'b' * 1500, end='')";
    let signed = sign(&["run", "--quiet", "--output-limit", "1000", "--code", program]);
    let statement = holds(&signed);
    let kept = sha256(&[vec![b'a'; 500], vec![b'b'; 500]].concat());
    assert_eq!(statement["predicate"]["stdout"], json!({ "sha256": kept, "bytes": 3000, "complete": false }));
    assert_eq!(subject(&statement, "stream:stdout:kept"), kept);
    assert!(!statement["subject"].as_array().expect("a list").iter().any(|s| s["name"] == "stream:stdout"));
    assert_eq!(statement["predicate"]["stderr"]["complete"], true);
    // The twin: all of the limit, and no more.
    let signed = sign(&["run", "--quiet", "--output-limit", "3000", "--code", program]);
    assert_eq!(holds(&signed)["predicate"]["stdout"]["complete"], true);
}

#[test]
fn the_policy_is_there_by_its_hash() {
    let signed = sign(&["run", "--quiet", "--policy", "standard", "--code", "print(1)"]);
    let shown = signed.place.go(&["policy", "show", "standard", "--output", "json"]).stdout;
    let file = signed.place.write("policy.json", shown);
    let said = &holds(&signed)["predicate"];
    assert_eq!(said["policy_id"], "standard");
    assert_eq!(said["policy_hash"], python("canonical.py", &[file.to_str().expect("UTF-8")]));
    let none = &holds(&some())["predicate"];
    assert_eq!((&none["policy_id"], &none["policy_hash"]), (&Value::Null, &Value::Null));
    // One of the operator's own that changes, changes its hash.
    let hash = |lines: &str| {
        let place = Place::new();
        place.define("mine", lines);
        let signed = sign_in(place, &["exec", "--quiet", "--policy", "mine", "--", "true"]).0;
        holds(&signed)["predicate"]["policy_hash"].clone()
    };
    assert_eq!(hash("max_processes = 20"), hash("max_processes = 20"));
    assert_ne!(hash("max_processes = 20"), hash("max_processes = 21"));
}

#[test]
fn it_is_written_down_that_it_was_signed() {
    let signed = some();
    let log = signed.place.go(&["audit", "export"]).stdout;
    let entry: Value = serde_json::from_str(log.lines().last().expect("there is one")).expect("JSON");
    let keyid = &signed.envelope()["signatures"][0]["keyid"];
    assert_eq!(entry["event"], "receipt_event.SIGNED");
    assert_eq!(
        entry["data"],
        json!({ "request_id": signed.result()["request_id"], "sha256": sha256(&signed.bytes()), "keyid": keyid })
    );
    signed.place.is_whole();
}

#[test]
fn shown_it_is_called_unverified() {
    let signed = some();
    let ran = signed.place.go(&["receipt", "show", signed.file.to_str().expect("UTF-8")]);
    assert_eq!((ran.code, ran.json()), (0, signed.statement()));
    assert!(ran.stderr.contains("not verified"), "{}", ran.stderr);
    signed.put("{}");
    let ran = signed.place.go(&["receipt", "show", signed.file.to_str().expect("UTF-8")]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
}

#[test]
fn names_do_not_steer_the_terminal() {
    let place = Place::new();
    let out = place.path("out");
    let program = "open('a\\x1b[31m\\u009b\\n', 'w').write('x')";
    let words = ["run", "--quiet", "--artifacts", out.to_str().expect("UTF-8"), "--code", program];
    let signed = sign_in(place, &words).0;
    let ran = signed.place.go(&["receipt", "show", signed.file.to_str().expect("UTF-8")]);
    assert!(!ran.stdout.contains(|c: char| c.is_control() && c != '\n'), "{:?}", ran.stdout);
    assert_eq!(ran.json(), signed.statement());
    signed.is_valid(&["--artifacts", signed.place.path("out").to_str().expect("UTF-8")]);
}

#[test]
fn a_receipt_has_every_field_of_its_schema_and_no_other() {
    let generated = Place::new().go(&["schema", "receipt"]).json();
    let statement = some().statement();
    let names = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&statement), names(&generated["properties"]));
    assert_eq!(names(&statement["predicate"]), names(&generated["$defs"]["Receipt"]["properties"]));
    assert_eq!(names(&statement["predicate"]["verdict"]), names(&generated["$defs"]["Verdict"]["properties"]));
}
