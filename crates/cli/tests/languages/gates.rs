//! The exit gates of the requirement "Local Sandbox Verification", one test each: by the exit status that a shell sees,
//! and by the Outcome.

use serde_json::Value;

use crate::harness::*;

/// The same source twice: as text, and as the Outcome.
#[track_caller]
fn both(source: &str, flags: &[&str]) -> (Ran, Ran) {
    let place = Place::new();
    let file = place.write("work/main.py", source);
    let words = || flags.iter().map(|flag| (*flag).into()).chain([file.clone().into_os_string()]);
    let ran = (place.text(words()).go(), place.run(words()).go());
    assert_eq!(ran.0.code, ran.1.code, "text: {} json: {}", ran.0.brief(), ran.1.brief());
    assert_eq!(place.files(&[]), ["work/main.py"], "something was left");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), source, "the source was changed");
    ran
}

/// What a shell user reads when the verdict is no pass: the last line, which names the class.
#[track_caller]
fn summary(ran: &Ran, class: &str) {
    let line = ran.stderr.lines().last().unwrap_or_default();
    assert!(line.starts_with(&format!("hotcell: fail {class}")), "{}", ran.stderr);
}

#[test]
fn valid_python_input_returns_status_pass() {
    let (text, json) = both("print(sum(range(10)))", &[]);
    assert_eq!((text.code, text.out().as_str(), text.stderr.as_str()), (0, "45\n", ""));
    let json = json.says("45\n");
    assert_eq!(json.outcome["exit_code"], 0);
    assert_eq!(json.outcome["failure_class"], Value::Null);
    assert_eq!(json.outcome["terminal_event"], Value::Null);
}

#[test]
fn syntax_error_input_returns_status_fail_with_traceback_in_stderr() {
    let (text, json) = both("def broken(:\n    pass\n", &[]);
    assert_eq!(text.code, 1, "{}", text.stderr);
    assert!(text.stderr.contains("SyntaxError") && text.stderr.contains("/src/main.py\", line 1"), "{}", text.stderr);
    summary(&text, "SyntaxError");
    let json = json.fails("SyntaxError", 1);
    assert_eq!(json.outcome["exit_code"], 1);
    assert_eq!(json.outcome["retry_class"], "syntax");
    assert!(
        json.err().contains("File \"/src/main.py\", line 1") && json.err().contains("SyntaxError:"),
        "{}",
        json.err()
    );
    assert!(json.outcome["stdout"] == "" && json.stderr.is_empty(), "{}", json.brief());
}

/// Only the parser says that a source has no syntax: a program that prints so, or raises it, is no such source.
#[test]
fn a_program_that_raises_a_syntax_error_is_a_runtime_error() {
    let (_, json) = both("raise SyntaxError('invalid syntax')", &[]);
    json.fails("RuntimeError", 1);
    let (_, json) = both("eval('1 +')", &[]);
    json.fails("RuntimeError", 1);
}

#[test]
fn infinite_loop_input_is_terminated_at_policy_timeout_and_classified_as_timeout_violation() {
    let (text, json) = both("while True: pass", &["--timeout", "300ms"]);
    assert_eq!(text.code, 124, "{}", text.stderr);
    summary(&text, "TimeoutViolation");
    let json = json.fails("TimeoutViolation", 124);
    assert_eq!(json.outcome["terminal_event"], "TimeoutViolation");
    assert_eq!(json.outcome["exit_code"], Value::Null);
    assert_eq!(json.outcome["violations"][0]["detail"]["limit"], 300);
}

#[test]
fn outbound_network_attempt_fails_with_network_access_violation() {
    let source = "import socket\nsocket.create_connection(('192.0.2.1', 443), 5)";
    let (text, json) = both(source, &[]);
    assert_eq!(text.code, 123, "{}", text.stderr);
    summary(&text, "NetworkAccessViolation");
    let json = json.fails("NetworkAccessViolation", 123);
    assert_eq!(json.outcome["violations"][0]["detail"]["address"], "192.0.2.1:443");
    // A program that swallows the refusal has still tried.
    let (text, json) = both(&format!("try:\n {}\nexcept OSError: print('so what')", source.replace('\n', ";")), &[]);
    assert_eq!((text.code, text.out().as_str()), (123, "so what\n"));
    assert_eq!(json.fails("NetworkAccessViolation", 123).outcome["exit_code"], 0);
}

#[test]
fn source_write_attempt_outside_scratch_path_fails_with_filesystem_write_violation() {
    let (text, json) = both("open(__file__, 'a').write('# changed')", &[]);
    assert_eq!(text.code, 123, "{}", text.stderr);
    summary(&text, "FilesystemWriteViolation");
    let json = json.fails("FilesystemWriteViolation", 123);
    assert_eq!(json.outcome["violations"][0]["detail"]["path"], "/src/main.py");
    for path in ["/usr/evil", "/etc/evil", "/evil"] {
        let (_, json) = both(&format!("open('{path}', 'w')"), &[]);
        assert_eq!(json.fails("FilesystemWriteViolation", 123).outcome["violations"][0]["detail"]["path"], path);
    }
    // The twin: the scratch is there to be written.
    let (_, json) = both("for d in ('/work', '/tmp'): open(d + '/fine', 'w').write('x')", &[]);
    json.passes();
}

#[test]
fn result_payload_includes_all_required_verification_contract_fields() {
    const DOCUMENT: [&str; 13] = [
        "request_id",
        "attempt",
        "mode",
        "status",
        "tier",
        "failure_class",
        "exit_code",
        "duration_ms",
        "stdout",
        "stderr",
        "artifacts",
        "skipped_checks",
        "terminal_event",
    ];
    const CONTRACT: [&str; 12] = [
        "schema_version",
        "created_at",
        "signal",
        "usage",
        "violations",
        "evidence",
        "enforced",
        "degraded",
        "runtime_config",
        "phases",
        "timings",
        "retry_class",
    ];
    let schema = include_str!("../../../contract/schemas/outcome.json");
    let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    for (source, flags) in [
        ("print(1)", &["--request-id", "mine"][..]),
        ("syntax error", &[]),
        ("raise SystemExit(3)", &[]),
        ("while True: pass", &["--timeout", "100ms"]),
        ("open('/evil', 'w')", &[]),
        ("import os; os.kill(os.getpid(), 9)", &[]),
    ] {
        let (_, json) = both(source, flags);
        for field in DOCUMENT.iter().chain(&CONTRACT) {
            assert!(json.outcome.get(field).is_some(), "{source}: `{field}` is not there: {}", json.brief());
        }
        has_what_is_required(&json.outcome, &schema, &schema, "outcome");
        assert_eq!(json.outcome["schema_version"], "1.0");
        assert_eq!((&json.outcome["attempt"], &json.outcome["mode"]), (&Value::from(1), &Value::from("balanced")));
        assert_eq!(json.outcome["tier"], "L0");
        if flags.first() == Some(&"--request-id") {
            assert_eq!(json.outcome["request_id"], "mine");
        }
    }
}

/// Every key that the schema requires, every key known, all the way down.
#[track_caller]
fn has_what_is_required(value: &Value, schema: &Value, root: &Value, at: &str) {
    if let Some(to) = schema["$ref"].as_str() {
        let pointer = to.strip_prefix('#').expect("it refers to itself");
        return has_what_is_required(value, root.pointer(pointer).expect("it is defined"), root, at);
    }
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(value.get(key).is_some(), "{at} has no `{key}`: {value}");
    }
    if let (Some(known), Some(fields)) = (schema["properties"].as_object(), value.as_object()) {
        for (key, value) in fields {
            let schema = known.get(key).unwrap_or_else(|| panic!("{at} has `{key}`, which the schema has not"));
            has_what_is_required(value, schema, root, &format!("{at}.{key}"));
        }
    }
    if let (false, Some(items)) = (schema["items"].is_null(), value.as_array()) {
        items.iter().for_each(|item| has_what_is_required(item, &schema["items"], root, at));
    }
}
