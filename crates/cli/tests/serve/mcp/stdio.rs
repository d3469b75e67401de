//! Tools on standard input and output.

use serde_json::{Value, json};

use super::agent::*;
use crate::harness::*;

#[test]
fn the_tools_are_those_that_are_checked_in_and_each_answers() {
    let place = Place::new();
    let mut agent = Agent::spawn(&place, &["--tenant", "team", "--policy", "fast"]);
    agent.send(&initialize(0));
    let hello = agent.receive()["result"].clone();
    assert_eq!(hello["serverInfo"]["name"], "hotcell");
    assert!(hello["capabilities"]["tools"].is_object(), "{hello}");
    agent.send(&notification("notifications/initialized", &json!({})));
    let listed = agent.answer("tools/list", &json!({}))["result"]["tools"].clone();
    let checked_in = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../server/mcp.json"));
    let checked_in: Value = serde_json::from_str(&checked_in.expect("it is there")).expect("JSON");
    assert_eq!(listed, checked_in["tools"]);

    let passed = agent.call(
        "run_code",
        &json!({ "code": "import sys; print(sys.stdin.read(), sys.argv[1])", "stdin": "a", "args": ["b"] }),
    );
    assert_eq!(
        (&passed["isError"], verdict(&passed).lines().next().map(|line| &line[..12])),
        (&json!(false), Some("pass (exit 0"))
    );
    assert_eq!(passed["content"][1]["text"], "stdout:\na b\n");
    let told = &passed["structuredContent"];
    assert_eq!((&told["status"], &told["exit_code"], &told["stdout"]), (&json!("pass"), &json!(0), &json!("a b\n")));
    // One that fails is a result like every other.
    let failed = agent.call("run_code", &json!({ "code": "import sys; print('no', file=sys.stderr); sys.exit(3)" }));
    assert_eq!(failed["isError"], false);
    assert!(verdict(&failed).starts_with("fail RuntimeError (exit 3"), "{failed}");
    assert_eq!(failed["content"][1]["text"], "stderr:\nno\n");
    assert_eq!(failed["structuredContent"]["failure_class"], "RuntimeError");
    let sources = json!({ "main.py": "import other; print(other.X, open('/src/data', 'rb').read())", "other.py": "X = 1", "data": { "base64": "AAE=" } });
    let files = agent.call("run_code", &json!({ "files": sources, "entry": "main.py" }));
    assert_eq!(files["structuredContent"]["stdout"], "1 b'\\x00\\x01'\n");
    let compiled = agent.call("run_code", &json!({ "language": "c", "code": "int main(void) { return x; }" }));
    assert!(verdict(&compiled).starts_with("fail CompileError: while compiling"), "{compiled}");
    assert!(compiled["structuredContent"]["stderr"].as_str().expect("text").contains("undeclared"), "{compiled}");
    let hasty = agent.call("run_command", &json!({ "command": ["sleep", "60"], "timeout_ms": 50 }));
    assert!(verdict(&hasty).starts_with("fail TimeoutViolation: wall time over 50 ms"), "{hasty}");

    let test = "import unittest, calc\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(calc.add(1, 2), 3)\n";
    for (code, tier, status) in [("a + b", "L1", "pass"), ("a - b", "L0", "fail")] {
        let files = json!({ "calc.py": format!("def add(a, b):\n    return {code}\n"), "test_calc.py": test });
        let checked = agent.call("verify_code", &json!({ "files": files, "entry": "calc.py" }));
        let told = &checked["structuredContent"];
        assert_eq!((&told["tier"], &told["status"]), (&json!(tier), &json!(status)), "{checked}");
        assert!(verdict(&checked).starts_with(&format!("{status} {tier}")), "{checked}");
        assert!(verdict(&checked).contains(if status == "fail" {
            "failed: test_calc.T.test"
        } else {
            "1 tests passed"
        }));
    }
    let languages = agent.call("list_languages", &json!({}));
    assert!(
        languages["structuredContent"]["languages"].as_array().expect("a list").iter().any(|l| l["name"] == "python")
    );
    assert!(verdict(&languages).contains("python: Python 3"), "{languages}");

    // On record, by whom and under what.
    let id = told["run_id"].as_str().expect("an id");
    let record = place.go(&["records", id, "--output", "json"]).json();
    assert_eq!((&record["tenant_id"], &record["policy_id"]), (&json!("team"), &json!("fast")));
    agent.hang_up();
    assert_eq!(agent.end(), (Some(0), String::new()));
    assert!(!place.state().join("service").exists());
    place.is_whole();
}

#[test]
fn who_wants_to_know_is_told_how_it_goes() {
    let place = Place::new();
    let mut agent = Agent::start(&place, &[]);
    let arguments = json!({ "command": ["sh", "-c", "echo first; echo last"] });
    let id = agent.ask(
        "tools/call",
        &json!({ "name": "run_command", "arguments": arguments, "_meta": { "progressToken": "mine" } }),
    );
    let mut told: Vec<Value> = vec![];
    let answer = loop {
        let next = agent.receive();
        if next["id"] == id {
            break next;
        }
        assert_eq!(
            (&next["method"], &next["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("mine"))
        );
        told.push(next["params"].clone());
    };
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "first\nlast\n");
    let words: Vec<&str> = told.iter().map(|told| told["message"].as_str().expect("a sentence")).collect();
    assert_eq!(words[..2], ["waits for its turn", "run has begun"]);
    assert_eq!(words.last().expect("there are more"), &"stdout, 11 bytes so far: last");
    let steps: Vec<f64> = told.iter().map(|told| told["progress"].as_f64().expect("a number")).collect();
    assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
    // Of a verification, its checks. Nobody else is told anything, see `answer`.
    let params = json!({ "name": "verify_code", "arguments": { "code": "x = 1" }, "_meta": { "progressToken": 7 } });
    let id = agent.ask("tools/call", &params);
    let mut words = vec![];
    loop {
        let next = agent.receive();
        if next["id"] == id {
            break;
        }
        words.push(next["params"]["message"].as_str().expect("a sentence").to_owned());
    }
    assert!(words.contains(&"parse has begun".to_owned()), "{words:?}");
    agent.call("run_command", &json!({ "command": ["true"] }));
}

#[test]
fn what_is_taken_back_is_called_off_and_not_answered() {
    let place = Place::new();
    let mounts = host_mounts();
    let mut agent = Agent::start(&place, &["--concurrency", "1"]);
    let going = agent.sleeper(&place);
    let arguments = json!({ "command": ["sleep", "3001"] });
    let meta = json!({ "progressToken": "mine" });
    let waiting = agent.ask("tools/call", &json!({ "name": "run_command", "arguments": arguments, "_meta": meta }));
    assert_eq!(agent.receive()["params"]["message"], "waits for its turn");
    for id in [waiting, going] {
        agent.send(&notification("notifications/cancelled", &json!({ "requestId": id, "reason": "a test" })));
        // With this answer, what was said before it has been heard.
        agent.call("list_languages", &json!({}));
    }
    // And what is not there is not.
    agent.send(&notification("notifications/cancelled", &json!({ "requestId": 4711 })));
    assert_eq!(agent.call("run_command", &json!({ "command": ["true"] }))["structuredContent"]["status"], "pass");
    let records = place.records(&[]);
    let of = |status: &str| records.iter().filter(|record| record["status"] == status).count();
    assert_eq!((of("killed"), of("completed"), records.len()), (1, 1, 2), "{records:?}");
    agent.hang_up();
    assert_eq!(agent.end().0, Some(0));
    nothing_left(&place.mark, &mounts);
}

#[test]
fn any_number_of_them_and_a_service_share_a_state() {
    let place = Place::new();
    let service = place.serve(&[]);
    let mut agents: Vec<Agent> = (0..4).map(|n| Agent::spawn(&place, &["--tenant", &format!("t{n}")])).collect();
    for agent in &mut agents {
        agent.send(&initialize(0));
        agent.receive();
        agent.send(&notification("notifications/initialized", &json!({})));
    }
    agents[0].sleeper(&place);
    for agent in &mut agents[1..] {
        assert_eq!(
            agent.call("run_command", &json!({ "command": ["echo", "x"] }))["structuredContent"]["stdout"],
            "x\n"
        );
    }
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    // What the operator says reaches them.
    assert_eq!(place.go(&["killswitch", "on", "--tenant", "t0", "--reason", "a test"]).code, 0);
    let ended = agents[0].receive();
    assert_eq!(ended["result"]["structuredContent"]["terminal_event"], "KillSwitch", "{ended}");
    let refused = agents[0].call("run_command", &json!({ "command": ["true"] }));
    assert_eq!(refused["isError"], true);
    assert!(verdict(&refused).contains("kill switch") && verdict(&refused).contains("PolicyViolation"), "{refused}");
    assert!(refused["structuredContent"].is_null());
    assert_eq!(agents[1].call("run_command", &json!({ "command": ["true"] }))["isError"], false);
    place.is_whole();
}
