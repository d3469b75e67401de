//! The end of the service, in order and out of order: nothing is orphaned, nothing is stuck, results stay.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::client::request;
use crate::harness::*;

#[test]
fn told_to_end_it_finishes_what_is_going_and_takes_nothing_new() {
    let place = Place::new();
    let mounts = host_mounts();
    let service = place.serve(&["--grace", "200s"]);
    let sleep = || {
        let name = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        marked(&place.mark).into_iter().find(|pid| name(pid) == "sleep\n")
    };
    let environment = json!({ "HOTCELL_TEST_MARK": place.mark });
    let command = ["sh", "-c", "echo on; sleep 3000; sleep 1; echo done"];
    let id = service.start(&json!({ "command": command, "environment": environment }));
    wait_until("the program", || sleep().is_some());
    let mut waiting = service.connect();
    service.signal("TERM");
    assert!(waiting.is_closed());
    wait_until("nothing new is taken", || std::net::TcpStream::connect(&service.address).is_err());
    // From here it goes on for a second, in which nobody ends it.
    let pid = sleep().expect("it is still going").to_string();
    assert!(std::process::Command::new("kill").arg(&pid).status().expect("kill is there").success());
    assert_eq!(service.wait(), Some(0));
    nothing_left(&place.mark, &mounts);
    let service = place.serve(&[]);
    let run = service.ended(&id);
    assert_eq!((&run["status"], &run["outcome"]["stdout"]), (&json!("completed"), &json!("on\ndone\n")));
    place.is_whole();
}

#[test]
fn what_is_going_at_the_deadline_is_ended_and_on_record() {
    let place = Place::new();
    let mounts = host_mounts();
    let service = place.serve(&["--grace", "100ms", "--concurrency", "1"]);
    let going = service.sleeper();
    let waiting = service.start(&json!({ "command": ["true"] }));
    service.signal("INT");
    assert_eq!(service.wait(), Some(0));
    nothing_left(&place.mark, &mounts);
    assert_eq!(place.records(&[])[0]["status"], "killed");
    let service = place.serve(&[]);
    let run = service.ended(&going);
    assert_eq!((&run["status"], &run["outcome"]["message"]), (&json!("killed"), &json!("the service ended")));
    let run = service.ended(&waiting);
    assert_eq!((&run["status"], &run["problem"]["type"]), (&json!("killed"), &json!("urn:hotcell:problem:closing")));
    // Nothing was put on record of it.
    assert!(run["problem"]["record_id"].is_null(), "{run}");
    place.is_whole();
}

#[test]
fn killed_and_started_again_nothing_is_orphaned_or_stuck() {
    let place = Place::new();
    let mounts = host_mounts();
    let service = place.serve(&["--concurrency", "1"]);
    let done = service.start(&json!({ "command": ["echo", "kept"] }));
    service.ended(&done);
    let going = service.sleeper();
    let waiting = service.start(&json!({ "command": ["true"] }));
    service.signal("KILL");
    assert_eq!(service.wait(), None);
    nothing_left(&place.mark, &mounts);
    let service = place.serve(&["--concurrency", "1"]);
    assert_eq!(service.ended(&done)["outcome"]["stdout"], "kept\n");
    for id in [&going, &waiting] {
        let run = service.ended(id);
        assert_eq!((&run["status"], &run["problem"]["failure_class"]), (&json!("killed"), &json!("SetupFailure")));
        assert!(run["problem"]["detail"].as_str().expect("text").contains("the service ended"), "{run}");
        // One had begun, and is on record.
        let begun = *id == going;
        assert_eq!((run["started_at"].is_string(), &run["problem"]["record_id"] == id), (begun, begun), "{run}");
    }
    assert!(place.records(&["--status", "running"]).is_empty());
    assert_eq!(place.records(&["--status", "killed"]).len(), 1);
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    place.is_whole();
}

#[test]
fn an_end_that_cannot_be_written_down_is_told_and_written_when_it_can_be() {
    let place = Place::new();
    let service = place.serve(&["--concurrency", "2"]);
    let kept = service.sleeper();
    let mut waits = service.connect();
    let body = json!({ "command": ["sleep", "3000"] }).to_string();
    waits.send(request("POST", "/v1/runs", &["Content-Type: application/json"], body.as_bytes()));
    let with = |status: &str| place.records(&["--status", status]);
    wait_until("both are on record", || with("running").len() == 2);
    let log = || place.go(&["audit", "export"]).stdout;
    wait_until("and in the log", || log().matches("exec_event.ADMITTED").count() == 2);
    // As on a disk that is full: neither the log nor a result can be written.
    let audit = std::fs::read_dir(place.state().join("audit")).expect("it is there").flatten().map(|file| file.path());
    let logs: Vec<_> = audit.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    let allow = |of_log: u32, of_results: u32| {
        for (path, mode) in
            logs.iter().map(|log| (log.clone(), of_log)).chain([(place.state().join("service/runs"), of_results)])
        {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own");
        }
    };
    allow(0, 0o500);
    for record in with("running") {
        let id = record["record_id"].as_str().expect("an id");
        assert_eq!(service.ask("DELETE", &format!("/v1/runs/{id}"), &[], b"").status, 202);
    }
    // Who waits and who comes back have the truth, the operator a word in the log, and nobody anything new.
    let run = waits.answer().json();
    assert_eq!((&run["status"], &run["outcome"]["terminal_event"]), (&json!("killed"), &json!("Cancelled")), "{run}");
    let run = service.ended(&kept);
    assert_eq!((&run["status"], &run["outcome"]["terminal_event"]), (&json!("killed"), &json!("Cancelled")), "{run}");
    assert_eq!(with("running").len(), 2);
    assert_eq!(place.log().matches("cannot be put on record").count(), 2, "{}", place.log());
    let refused = service.post("/v1/runs", &json!({ "command": ["true"] }));
    refused.is_problem(503, None, &["cannot be written down"]);
    allow(0o600, 0o700);
    wait_until("the ends are on record", || with("killed").len() == 2);
    wait_until("it serves again", || service.post("/v1/runs", &json!({ "command": ["true"] })).status == 200);
    service.signal("TERM");
    assert_eq!(service.wait(), Some(0));
    let log = log();
    assert_eq!(log.matches("exec_event.KILLED").count(), 2, "each is told once: {log}");
    place.is_whole();
    assert_eq!(place.serve(&[]).ended(&kept)["outcome"]["terminal_event"], "Cancelled");
}

#[test]
fn only_so_much_is_kept() {
    let place = Place::new();
    let service = place.serve(&["--keep-runs", "3"]);
    let ids: Vec<String> = (0..300)
        .map(|_| {
            let run = service.post("/v1/runs", &json!({ "command": ["true"], "collect": ["*"] })).json();
            run["id"].as_str().expect("an id").to_owned()
        })
        .collect();
    let kept = || std::fs::read_dir(place.state().join("service/runs")).expect("it is there").count();
    wait_until("the sweep", || kept() <= 3);
    service.get(&format!("/v1/runs/{}", ids[0])).is_problem(404, None, &["no such run"]);
    assert_eq!(service.get(&format!("/v1/runs/{}", ids[299])).status, 200);
}

#[test]
fn a_service_whose_launcher_died_says_so_and_ends() {
    let place = Place::new();
    let service = place.serve(&[]);
    assert_eq!(service.run(&json!({ "command": ["true"] }))["status"], "pass");
    let launcher = children(service.pid()).into_iter().find(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("hotcell-launch"))
    });
    let launcher = launcher.expect("it has one").to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &launcher]).status().expect("kill is there").success());
    service.post("/v1/runs", &json!({ "command": ["true"] })).is_problem(503, None, &["started again"]);
    assert_eq!(service.wait(), Some(125));
}

#[test]
fn one_tenant_does_not_drive_out_what_is_anothers() {
    let place = Place::new();
    let (a, b) = (place.key(&["--tenant", "a"]), place.key(&["--tenant", "b"]));
    let mut service = place.serve(&["--keep-runs", "6"]);
    service.key = Some(a.clone());
    let id = service.start(&json!({ "command": ["true"] }));
    service.ended(&id);
    service.key = Some(b);
    for _ in 0..40 {
        service.run(&json!({ "command": ["true"] }));
    }
    let kept = || std::fs::read_dir(place.state().join("service/runs")).expect("it is there").count();
    wait_until("the sweep", || kept() <= 6);
    service.key = Some(a);
    assert_eq!(service.get(&format!("/v1/runs/{id}")).json()["status"], "completed");
}

#[test]
fn what_cannot_be_served_is_said_at_the_start() {
    let place = Place::new();
    let service = place.serve(&[]);
    let id = service.sleeper();
    // A second one would end what the first one runs.
    place.go(&["serve", "--listen", "127.0.0.1:0"]).refused(&["another service"]);
    assert_eq!(service.get(&format!("/v1/runs/{id}")).json()["status"], "running");
    let other = Place::new();
    other.go(&["serve", "--listen", &service.address]).refused(&["cannot listen on", &service.address]);
    other.go(&["serve", "--listen", "localhost"]).refused(&["localhost"]);
    other.go(&["serve", "--policy", "nobodys"]).refused(&["nobodys"]);
    other.go(&["serve", "--log-level", "loud"]).refused(&["loud"]);
    other.go(&["serve", "--concurrency", "0"]).refused(&["--concurrency"]);
}
