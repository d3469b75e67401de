//! What the operator decides holds for agents too, and they are told what to do about it.

use serde_json::json;

use super::agent::*;
use crate::harness::*;

#[test]
fn quotas_and_approvals_and_leases_are_those_of_everybody() {
    let place = Place::new();
    place.define("few", "max_executions_per_minute = 1");
    place.define("asks", "require_approval = true");
    let echo = json!({ "command": ["echo", "x"] });
    let mut agent = Agent::start(&place, &["--policy", "few"]);
    assert_eq!(agent.call("run_command", &echo)["isError"], false);
    let over = agent.call("run_command", &echo);
    assert_eq!((&over["isError"], &over["structuredContent"]), (&json!(true), &json!(null)));
    assert!(verdict(&over).contains("QuotaExceeded") && verdict(&over).contains("again in "), "{over}");

    let mut agent = Agent::start(&place, &["--policy", "asks"]);
    let asks = agent.call("run_command", &echo);
    assert!(asks["isError"] == true && verdict(&asks).contains("ApprovalRequired"), "{asks}");
    let approvals = place.go(&["approve", "list", "--output", "json"]).json();
    assert_eq!(place.go(&["approve", "grant", approvals[0]["approval_id"].as_str().expect("an id")]).code, 0);
    assert_eq!(agent.call("run_command", &echo)["structuredContent"]["stdout"], "x\n");

    let mut agent = Agent::start(&place, &[]);
    std::fs::write(place.state().join("hotcell.toml"), "[capabilities]\nexec = false\n").expect("our own");
    let refused = agent.call("run_command", &echo);
    assert!(refused["isError"] == true && verdict(&refused).contains("`exec` is not enabled"), "{refused}");
    assert_eq!(place.go(&["lease", "keygen"]).code, 0);
    let lease = place.go(&["lease", "issue", "--actor", "agent", "--", "echo", "**"]).stdout;
    let leased = agent.call("run_command", &json!({ "command": ["echo", "x"], "lease": lease }));
    assert_eq!(leased["structuredContent"]["stdout"], "x\n", "{leased}");
    let other = agent.call("run_command", &json!({ "command": ["true"], "lease": lease }));
    assert!(other["isError"] == true && verdict(&other).contains("LeaseViolation"), "{other}");
    place.is_whole();
}
