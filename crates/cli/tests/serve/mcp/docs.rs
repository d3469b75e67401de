//! What the documentation shows is run.

use serde_json::{Value, json};

use super::agent::*;
use crate::harness::*;

#[test]
fn the_configuration_of_the_documentation_starts_it() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md")).expect("it is there");
    let examples: Vec<&str> = text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [stdio, http] = examples[..] else { panic!("there are two: {examples:?}") };
    let stdio: Value = serde_json::from_str(stdio).expect("JSON");
    let server = &stdio["mcpServers"]["hotcell"];
    assert_eq!(server["command"], "hotcell");
    let words: Vec<&str> = server["args"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let place = Place::new();
    let mut agent = Agent::start(&place, words.strip_prefix(&["mcp"]).expect("the verb"));
    assert_eq!(agent.call("run_code", &json!({ "code": "print(1)" }))["structuredContent"]["stdout"], "1\n");
    let http: Value = serde_json::from_str(http).expect("JSON");
    assert_eq!(http["mcpServers"]["hotcell"]["url"], "http://127.0.0.1:8700/mcp");
    // Every tool and every argument is named there.
    let tools: Value = serde_json::from_str(&place.go(&["schema", "mcp"]).stdout).expect("JSON");
    for tool in tools["tools"].as_array().expect("a list") {
        let name = tool["name"].as_str().expect("text");
        assert!(text.contains(&format!("`{name}`")), "{name}");
        for argument in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
            assert!(text.contains(&format!("`{}`", argument.0)), "{name} {}", argument.0);
        }
    }
}
