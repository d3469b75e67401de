//! Alerts: before the limit, while the program is going, once; and none for what only looks like much.

use hotcell_contract::Resource;

use crate::harness::*;

/// The program comes near one limit and waits: the alert is there before it goes on. Twins come near none.
#[track_caller]
fn raises(limits: &[&str], near: &[String], resource: Resource, limit: u64, far: &[String]) {
    for place in everybody() {
        let mut going = place.start(limits, &words(near));
        let event = going.wait_for("alert", |event| alert(event).is_some());
        let found = alert(&event).expect("it is one");
        assert_eq!((found.resource, found.limit), (resource, limit), "{found:?}");
        assert!(found.observed as f64 >= 0.8 * limit as f64 && found.share >= 0.8, "{found:?}");
        assert_eq!(event.phase.as_deref(), Some("run"));
        going.end();
        assert_eq!(alerts(&place.events()), [resource]);

        let quiet = another(&place);
        let mut going = quiet.start(limits, &words(far));
        going.wait_for("third sample", |event| event.since_start_ms >= 300);
        going.end().passed();
        assert_eq!(alerts(&quiet.events()), []);
    }
}

fn shell(code: &str) -> Vec<String> {
    ["sh", "-c", code].map(str::to_owned).to_vec()
}

#[test]
fn memory() {
    let near = python("b = hold(215); stay()");
    raises(&["--memory", "256m"], &near, Resource::Memory, 256 << 20, &python("b = hold(100); stay()"));
}

#[test]
fn processes() {
    let many = |n: u32| shell(&format!("for i in $(seq {n}); do sleep 3600 & done; exec cat"));
    raises(&["--processes", "20"], &many(17), Resource::Processes, 20, &many(4));
}

#[test]
fn scratch() {
    let fill = |mib: u32| shell(&format!("head -c {}m /dev/zero > /work/file; exec cat", mib));
    raises(&["--scratch", "20m"], &fill(17), Resource::Scratch, 20 << 20, &fill(5));
}

#[test]
fn output() {
    let say = |kib: u32| shell(&format!("head -c {kib}k /dev/zero >&2; exec cat"));
    for place in everybody() {
        let mut going = place.start(&["--output-limit", "40k"], &words(&say(35)));
        going.wait_for("alert", |event| alert(event).is_some_and(|found| found.resource == Resource::Output));
        going.end();
        let (_, events) = another(&place).run(&["--output-limit", "40k"], &words(&say(5)));
        assert_eq!(alerts(&events), []);
    }
}

/// Near a limit of time the alert comes before the end, and the end is a timeout.
#[track_caller]
fn times_out(limits: &[&str], program: &[String], resource: Resource) {
    for place in everybody() {
        let (ran, events) = place.run(limits, &words(program));
        assert_eq!(ran.code, 124, "{}", ran.stderr);
        let names: Vec<String> = events.iter().map(name).collect();
        let at = |name: &str| names.iter().position(|known| known == name);
        assert!(at("resource_event.ALERT").expect("one") < at("exec_event.VIOLATION").expect("one"), "{names:?}");
        assert_eq!(names.last().map(String::as_str), Some("exec_event.TIMEOUT"));
        assert_eq!(alerts(&events), [resource]);
    }
}

#[test]
fn wall_time() {
    times_out(&["--timeout", "1s"], &shell("exec sleep 3600"), Resource::WallTime);
}

#[test]
fn cpu_time() {
    times_out(&["--cpu-time", "1s"], &shell("while :; do :; done"), Resource::CpuTime);
}

#[test]
fn a_cache_is_no_memory() {
    for place in everybody() {
        std::fs::create_dir(place.path("input")).expect("ours");
        let file = std::fs::File::create(place.path("input/large")).expect("ours");
        file.set_len(300 << 20).expect("there is room for nothing");
        let code = "f = open('/src/large', 'rb')\nwhile f.read(1 << 20): pass\nstay()";
        let mut going = place.start(&["--memory", "256m", "--input", "input"], &words(&python(code)));
        going.wait_for("all read", |event| match event.happened {
            hotcell_contract::Happened::Sample(sample) => sample.io_read_bytes.is_none_or(|read| read >= 300 << 20),
            _ => false,
        });
        going.end().passed();
        assert_eq!(alerts(&place.events()), []);
    }
}

#[test]
fn what_forks_share_is_counted_once() {
    for place in everybody() {
        let code = "b = hold(75)\nfor i in range(2):\n    if os.fork() == 0: time.sleep(3600)\nstay()";
        let mut going = place.start(&["--memory", "256m"], &words(&python(code)));
        going.wait_for("sample of three", |event| match event.happened {
            hotcell_contract::Happened::Sample(sample) => sample.processes == Some(3),
            _ => false,
        });
        going.wait_for("half a second", |event| event.since_start_ms >= 500);
        going.end().passed();
        assert_eq!(alerts(&place.events()), []);
    }
}

#[test]
fn the_share_can_be_set() {
    for place in everybody() {
        let program = python("b = hold(100); stay()");
        let mut going = place.start(&["--memory", "256m", "--alert-at", "0.3"], &words(&program));
        going.wait_for("alert", |event| alert(event).is_some());
        going.end().passed();
        assert_eq!(alerts(&place.events()), [Resource::Memory]);
    }
    let place = anybody();
    for bad in ["0", "1.5", "-1", "nan", "much", ""] {
        place.go(&["exec", &format!("--alert-at={bad}"), "--", "echo", "it ran"]).refused(&["--alert-at", "0.01"]);
    }
    for bad in ["5ms", "2m", "often"] {
        place.go(&["exec", "--sample-every", bad, "--", "echo", "it ran"]).refused(&["--sample-every", bad]);
    }
}

#[test]
fn a_program_that_may_be_alone_only_is_no_alarm() {
    let place = anybody();
    let mut going = place.start(&["--processes", "1"], &["cat"]);
    going.wait_for("sample", |event| event.since_start_ms >= 100);
    going.end().passed();
    assert_eq!(alerts(&place.events()), []);
}

/// An alert is in the audit log while the run is going, and the log is whole.
#[test]
fn alerts_are_audited() {
    for place in everybody() {
        let state = place.text("state");
        let program = python("b = hold(215); stay()");
        let mut going = place.start(&["--memory", "256m", "--state-dir", &state], &words(&program));
        going.wait_for("alert", |event| alert(event).is_some());
        let log = || place.go(&["audit", "export", "--state-dir", &state]).stdout;
        wait_until("the alert in the log", || log().contains("resource_event.ALERT"));
        assert!(!log().contains("exec_event.FINISHED"), "{}", log());
        going.end().passed();
        let entries: Vec<serde_json::Value> =
            log().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let events: Vec<_> = entries.iter().filter_map(|entry| entry["event"].as_str()).collect();
        assert_eq!(events, ["exec_event.ADMITTED", "resource_event.ALERT", "exec_event.FINISHED"]);
        assert_eq!(entries[1]["data"]["resource"], "memory");
        assert_eq!(entries[1]["data"]["record_id"], entries[2]["data"]["record_id"]);
        place.go(&["audit", "verify", "--state-dir", &state]).passed();
    }
}
