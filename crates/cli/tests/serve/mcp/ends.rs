//! However it ends, nothing is left.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::json;

use super::agent::*;
use crate::harness::*;

fn signal(agent: &Agent, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &agent.child.id().to_string()]).status();
    assert!(sent.expect("kill is there").success());
}

#[test]
fn the_end_of_its_input_and_a_signal_call_off_what_is_going() {
    let place = Place::new();
    let mounts = host_mounts();
    for how in ["end", "TERM", "INT"] {
        let mut agent = Agent::start(&place, &["--concurrency", "1"]);
        agent.sleeper(&place);
        agent.ask("tools/call", &json!({ "name": "run_command", "arguments": { "command": ["true"] } }));
        match how {
            "end" => agent.hang_up(),
            name => signal(&agent, name),
        }
        assert_eq!(agent.end(), (Some(0), String::new()), "{how}");
        nothing_left(&place.mark, &mounts);
    }
    let records = place.records(&[]);
    // The one that waits may have its turn when the other has ended, before it is called off too.
    let with = |status: &str| records.iter().filter(|record| record["status"] == status).count();
    assert!(with("killed") >= 3 && with("killed") + with("completed") == records.len(), "{records:?}");
    place.is_whole();
}

#[test]
fn killed_it_leaves_nothing_and_the_next_one_says_so() {
    let place = Place::new();
    let mounts = host_mounts();
    let mut agent = Agent::start(&place, &[]);
    agent.sleeper(&place);
    signal(&agent, "KILL");
    assert_eq!(agent.end().0, None);
    nothing_left(&place.mark, &mounts);
    let mut agent = Agent::start(&place, &[]);
    agent.call("run_command", &json!({ "command": ["true"] }));
    assert_eq!(place.records(&["--status", "killed"]).len(), 1);
}

#[test]
fn a_client_that_is_killed_takes_its_runs_along() {
    let place = Place::new();
    let mounts = host_mounts();
    // It holds both pipes, has asked for a run, and never reads.
    let ready = notification("notifications/initialized", &json!({}));
    let arguments = json!({ "command": ["sleep", "3000"], "environment": { "HOTCELL_TEST_MARK": place.mark } });
    let params = json!({ "name": "run_command", "arguments": arguments, "_meta": { "progressToken": 1 } });
    let said = format!("{}\n{ready}\n{}\n", initialize(0), message(1, "tools/call", &params));
    std::fs::write(place.dir.join("said"), said).expect("our own");
    let client = "{ cat said; exec sleep 4711; } | \"$HOTCELL\" mcp | exec sleep 4711";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", client])
        .current_dir(&place.dir)
        .env("HOTCELL", binary())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    shell.envs(place.hotcell(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = shell.spawn().expect("sh is there");
    wait_until("a run", || place.records(&["--status", "running"]).len() == 1);
    let is_client =
        |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words == b"sleep\x004711\x00");
    let client: Vec<String> = marked(&place.mark).iter().filter(|pid| is_client(pid)).map(i32::to_string).collect();
    assert_eq!(client.len(), 2);
    assert!(Command::new("kill").arg("-KILL").args(client).status().expect("kill is there").success());
    let _ = child.wait();
    nothing_left(&place.mark, &mounts);
    assert_eq!(place.records(&["--status", "killed"]).len(), 1);
}

#[test]
fn it_ends_with_its_input_also_when_nobody_reads_its_answers() {
    let place = Place::new();
    let mut command = place.hotcell(&["mcp"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    writeln!(stdin, "{}\n{}", initialize(0), notification("notifications/initialized", &json!({}))).expect("it reads");
    // More than a pipe holds.
    for id in 1..20 {
        writeln!(stdin, "{}", message(id, "tools/list", &json!({}))).expect("it reads");
    }
    drop(stdin);
    assert_eq!(end_of(&mut child).expect("it ends").code(), Some(0));
}
