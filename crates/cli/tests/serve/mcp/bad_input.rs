//! What is wrong is named to the agent, who can mend it; what is no call at all is an error of the protocol.

use serde_json::{Value, json};

use super::agent::*;
use crate::harness::*;

#[test]
fn arguments_that_are_wrong_are_named_and_nothing_runs() {
    let place = Place::new();
    let mut agent = Agent::start(&place, &[]);
    let long = "x".repeat(1 << 20);
    let cases: Vec<(&str, Value, &str, &str)> = vec![
        ("run_code", json!({}), "field code", "one of"),
        ("run_code", json!({ "cod": "1" }), "field cod", "unknown field"),
        ("run_code", json!({ "code": 1 }), "field code", "wrong"),
        ("run_code", json!({ "code": "1", "files": { "a.py": "1" } }), "field code", "one of them"),
        ("run_code", json!({ "code": "1", "limits": [1] }), "field limits", "list"),
        ("run_code", json!({ "code": "1", "limits": { "wall": 1 } }), "field limits.wall", "unknown field"),
        ("run_code", json!({ "code": "1", "timeout_ms": -1 }), "field timeout_ms", "wrong"),
        (
            "run_code",
            json!({ "code": "1", "timeout_ms": 1, "limits": { "wall_ms": 1 } }),
            "field timeout_ms",
            "one of them",
        ),
        ("run_code", json!({ "code": "1", "timeout_ms": 9_000_000 }), "field timeout_ms", "more than"),
        ("run_code", json!({ "code": "1", "limits": { "processes": 100_000 } }), "field limits.processes", "more than"),
        ("run_code", json!({ "code": "1", "language": "cobol\u{1b}[2J" }), "field language", "not a language"),
        ("run_code", json!({ "files": { "../a.py": "1" } }), "field files", "no name of a file"),
        ("run_code", json!({ "files": { "a.py": { "base64": "%" } } }), "field files", "base64"),
        ("run_code", json!({ "code": "1", &long: 1 }), "field xxx", "xxx"),
        ("run_command", json!({ "command": [] }), "field command", "no program"),
        ("run_command", json!({ "command": "true" }), "field command", "wrong"),
        ("run_command", json!({ "command": ["a\0"] }), "field args", "NUL"),
        ("run_command", json!({ "command": ["true"], "files": {} }), "field files", "unknown field"),
        ("verify_code", json!({ "code": "1", "checks": { "repeat": 100 } }), "field checks.repeat", "1 to 20"),
        ("verify_code", json!({ "code": "1", "args": [] }), "field args", "unknown field"),
        ("list_languages", json!({ "all": true }), "field all", "unknown field"),
        // What is not the agent's to say.
        ("run_code", json!({ "code": "1", "policy_id": "permissive" }), "field policy_id", "unknown field"),
        ("run_code", json!({ "code": "1", "tenant_id": "other" }), "field tenant_id", "unknown field"),
        ("run_code", json!({ "code": "1", "network": "full" }), "field network", "unknown field"),
    ];
    for (tool, arguments, field, part) in cases {
        let answer = agent.call(tool, &arguments);
        assert_eq!(answer["isError"], true, "{answer}");
        let said = verdict(&answer);
        assert!(said.starts_with("not run: ") && said.contains(field) && said.contains(part), "{field} {part}: {said}");
        assert!(said.len() < 2000 && !said.contains(|c: char| c.is_control()), "{said}");
    }
    // A refusal is on record, a mistake is not.
    assert!(place.records(&[]).iter().all(|record| record["status"] != "completed"));
    assert_eq!(agent.call("run_code", &json!({ "code": "print(1)" }))["structuredContent"]["stdout"], "1\n");
}

#[test]
fn what_is_no_call_is_an_error_of_the_protocol_and_harms_nobody() {
    let place = Place::new();
    let mut agent = Agent::start(&place, &[]);
    let unknown = agent.answer("tools/call", &json!({ "name": "rm\u{1b}[2J", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(unknown["error"]["message"].as_str().expect("text").contains("use one of run_code"), "{unknown}");
    for params in [json!({ "name": "run_code", "arguments": [] }), json!({ "name": 1 }), json!({})] {
        let error = agent.answer("tools/call", &params)["error"].clone();
        assert_eq!(error["code"], -32602, "{error}");
    }
    assert_eq!(agent.answer("no/such", &json!({}))["error"]["code"], -32601);
    agent.write(b"this is no JSON\n\n{\"half\": \n\xff\xfe\n");
    assert_eq!(agent.call("run_code", &json!({ "code": "print(1)" }))["structuredContent"]["stdout"], "1\n");
    assert_eq!(place.records(&[]).len(), 1);
}

#[test]
fn a_message_has_a_size_and_a_long_one_is_read() {
    let place = Place::new();
    let mut agent = Agent::start(&place, &[]);
    let stdin = "x".repeat(3 << 20);
    let long = agent.call("run_command", &json!({ "command": ["wc", "-c"], "stdin": stdin }));
    assert_eq!(long["structuredContent"]["stdout"], format!("{}\n", 3 << 20));
    // Whoever waits for an answer learns that there is none.
    agent.write_as_far_as_it_reads(&vec![b'x'; 5 << 20]);
    let (code, said) = agent.end();
    assert_eq!(code, Some(125));
    assert!(said.contains("more than 4194304 bytes"), "{said}");
    assert_eq!(place.records(&[]).len(), 1);
}

#[test]
fn what_cannot_be_served_is_said_at_the_start() {
    let place = Place::new();
    place.go(&["mcp", "--policy", "nobodys"]).refused(&["nobodys"]);
    place.go(&["mcp", "--tenant", "a b"]).refused(&["--tenant `a b`"]);
    place.go(&["mcp", "--log-level", "loud"]).refused(&["loud"]);
    let mut stranger = Agent::spawn(&place, &[]);
    stranger.send(&notification("notifications/cancelled", &json!({ "requestId": 1 })));
    let (code, said) = stranger.end();
    assert_eq!((code, said.contains("initialize")), (Some(125), true), "{said}");
    // Who goes before he has said a word has nothing to be told.
    let nobody = place.go(&["mcp"]);
    assert_eq!((nobody.code, nobody.stdout.as_str(), nobody.stderr.as_str()), (0, "", ""));
}
