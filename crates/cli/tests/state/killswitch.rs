//! The kill switch: what goes is stopped, what is new is refused, until it is off.

use serde_json::Value;

use crate::harness::*;

/// Everything that a stopped run is told as.
#[track_caller]
fn is_stopped(place: &Place, tenant: &str, result: &str, reason: &str) {
    let bytes = std::fs::read(place.path(result)).expect("the result was written");
    let outcome: Value = serde_json::from_slice(&bytes).expect("it is JSON");
    assert_eq!((&outcome["status"], &outcome["terminal_event"]), (&"fail".into(), &"KillSwitch".into()), "{outcome:#}");
    let record = place.records(&["--tenant", tenant]).pop().expect("it is there");
    assert_eq!(record["status"], "killed", "{record:#}");
    assert!(record["error_message"].as_str().is_some_and(|text| text.contains(reason)), "{record:#}");
}

#[track_caller]
fn nothing_is_left(sleep: &str) {
    wait_until("no process is left", || processes_with(sleep).is_empty());
    wait_until("no group is left", || orphaned_groups().is_empty());
}

#[test]
fn what_goes_is_stopped_and_what_is_new_refused() {
    let place = Place::new();
    let (sleep, result) = (unique_sleep(), place.path("result"));
    let words = ["--tenant", "t", "--result", result.to_str().expect("UTF-8")];
    let going = place.start(&words, &["sh", "-c", &format!("echo ready; exec sleep {sleep}")]);
    let on = place.go(&["killswitch", "on", "--reason", "a drill", "--by", "the operator"]);
    assert_eq!((on.code, on.stdout.as_str()), (0, "the kill switch is on; 1 running were stopped\n"), "{}", on.stderr);
    assert_eq!(going.end().code, 128 + 15);
    is_stopped(&place, "t", "result", "a drill");
    nothing_is_left(&sleep);
    // For everybody, and for every verb.
    for words in [
        &["exec", "--", "echo", "it ran"][..],
        &["exec", "--tenant", "other", "--", "echo", "it ran"],
        &["run", "--code", "print('it ran')"],
        &["exec", "--policy", "balanced", "--", "echo", "it ran"],
    ] {
        place.go(words).refused(&["kill switch", "a drill", "the operator"]);
        let record = place.newest();
        assert_eq!((&record["status"], &record["failure_class"]), (&"denied".into(), &"PolicyViolation".into()));
    }
    let source = place.write("a.py", "print('it ran')");
    place.go(&["verify", source.to_str().expect("UTF-8")]).refused(&["kill switch"]);
    let off = place.go(&["killswitch", "off", "--by", "the operator"]);
    assert_eq!((off.code, off.stdout.as_str()), (0, "the kill switch is off\n"));
    place.pass(&[]);
    place.is_whole();
    let log = place.go(&["audit", "export"]).stdout;
    for event in ["killswitch_event.ON", "killswitch_event.OFF", "exec_event.KILLED"] {
        assert_eq!(log.lines().filter(|line| line.contains(event)).count(), 1, "{event} in {log}");
    }
}

#[test]
fn the_result_says_so_on_standard_output() {
    let place = Place::new();
    let sleep = unique_sleep();
    let mut command = place.hotcell(&["exec", "--output", "json", "--", "sleep", &sleep]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let going = Going { child: command.spawn().expect("it starts") };
    wait_until("it runs", || !processes_with(&sleep).is_empty());
    assert_eq!(place.go(&["killswitch", "on", "--reason", "a drill"]).code, 0);
    let ran = going.end();
    let outcome = ran.json();
    assert_eq!((ran.code, &outcome["terminal_event"], &outcome["signal"]), (143, &"KillSwitch".into(), &15.into()));
    nothing_is_left(&sleep);
}

#[test]
fn a_program_that_ignores_it_is_stopped_too() {
    let place = Place::new();
    let (sleep, result) = (unique_sleep(), place.path("result"));
    let script = format!("trap '' TERM INT HUP; echo ready; while :; do sleep {sleep}; done");
    let words = ["--tenant", "t", "--grace", "1h", "--result", result.to_str().expect("UTF-8")];
    let going = place.start(&words, &["sh", "-c", &script]);
    assert_eq!(place.go(&["killswitch", "on", "--reason", "a drill"]).code, 0);
    let ran = going.end();
    assert!(ran.code == 137 || ran.code == 143, "{} {}", ran.code, ran.stderr);
    is_stopped(&place, "t", "result", "a drill");
    nothing_is_left(&sleep);
}

#[test]
fn hotcell_that_does_not_answer_is_stopped_too() {
    let place = Place::new();
    let sleep = unique_sleep();
    let going = place.start(&["--tenant", "t"], &["sh", "-c", &format!("echo ready; exec sleep {sleep}")]);
    let pid = rustix::process::Pid::from_child(&going.child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it runs");
    assert_eq!(place.go(&["killswitch", "on", "--reason", "a drill"]).code, 0);
    assert_eq!(going.end().code, -9);
    wait_until("no process is left", || processes_with(&sleep).is_empty());
    assert_eq!(place.records(&["--tenant", "t"])[0]["status"], "killed");
    place.is_whole();
}

#[test]
fn many_are_stopped_at_once() {
    let place = Place::new();
    let sleep = unique_sleep();
    let script = format!("trap '' TERM; echo ready; sleep {sleep}");
    let going: Vec<Going> = (0..6).map(|_| place.start(&[], &["sh", "-c", &script])).collect();
    let on = place.go(&["killswitch", "on", "--reason", "a drill"]);
    assert_eq!(on.stdout, "the kill switch is on; 6 running were stopped\n");
    // It comes back when they are gone, not before.
    assert_eq!(processes_with(&sleep), Vec::<u32>::new());
    for run in going {
        assert!(run.end().code >= 128);
    }
    assert_eq!(place.records(&["--status", "killed"]).len(), 6);
    nothing_is_left(&sleep);
    place.is_whole();
}

#[test]
fn one_tenant_only() {
    let place = Place::new();
    let (result, program) = (place.path("result"), ["sh", "-c", "echo ready; cat"]);
    let stopped = place.start(&["--tenant", "a", "--result", result.to_str().expect("UTF-8")], &program);
    let mut others = [place.start(&["--tenant", "b"], &program), place.start(&[], &program)];
    let on = place.go(&["killswitch", "on", "--reason", "a drill", "--tenant", "a"]);
    assert_eq!(on.stdout, "the kill switch is on; 1 running were stopped\n");
    assert_eq!(stopped.end().code, 143);
    is_stopped(&place, "a", "result", "a drill");
    place.go(&["exec", "--tenant", "a", "--", "echo", "it ran"]).refused(&["kill switch", "a drill"]);
    // The others go on, and begin.
    place.pass(&["--tenant", "b"]);
    place.pass(&[]);
    for other in &mut others {
        other.let_go();
    }
    for other in others {
        assert_eq!(other.end().code, 0);
    }
    // Off for everybody is not off for one.
    assert_eq!(
        place.go(&["killswitch", "off"]).stdout,
        "the kill switch was off already\nit is on for the tenant a: give --tenant a\n"
    );
    place.go(&["exec", "--tenant", "a", "--", "echo", "it ran"]).refused(&["kill switch"]);
    assert_eq!(place.go(&["killswitch", "off", "--tenant", "a"]).stdout, "the kill switch is off\n");
    place.pass(&["--tenant", "a"]);
}

#[test]
fn its_status() {
    let place = Place::new();
    let json = || place.go(&["killswitch", "status", "--output", "json"]).json()["on"].clone();
    assert_eq!(place.go(&["killswitch", "status"]).stdout, "off\n");
    assert_eq!(json(), Value::Array(vec![]));
    place.go(&["killswitch", "on", "--reason", "first", "--by", "me"]);
    place.go(&["killswitch", "on", "--reason", "a tenant's", "--by", "you", "--tenant", "t"]);
    let text = place.go(&["killswitch", "status"]).stdout;
    assert!(text.contains("everybody") && text.contains("by me: first"), "{text}");
    assert!(text.contains("tenant t") && text.contains("by you: a tenant's"), "{text}");
    let on = json();
    assert_eq!((&on[0]["tenant_id"], &on[0]["reason"], &on[0]["by"]), (&Value::Null, &"first".into(), &"me".into()));
    assert_eq!(
        (&on[1]["tenant_id"], &on[1]["reason"], &on[1]["by"]),
        (&"t".into(), &"a tenant's".into(), &"you".into())
    );
    // Once more: the newest reason counts.
    place.go(&["killswitch", "on", "--reason", "second", "--by", "me"]);
    assert_eq!((&json()[0]["reason"], json().as_array().map(Vec::len)), (&"second".into(), Some(2)));
    place.runs_nothing(&["second"]);
    place.go(&["killswitch", "off"]);
    assert_eq!(json()[0]["tenant_id"], "t");
}

#[test]
fn bad_words() {
    let place = Place::new();
    place.go(&["killswitch", "on"]).refused(&["--reason"]);
    place.go(&["killswitch", "on", "--reason", "x", "--tenant", "../x"]).refused(&["--tenant"]);
    place.go(&["killswitch", "off", "--tenant", ""]).refused(&["--tenant"]);
    place.go(&["killswitch", "toggle"]).refused(&["toggle"]);
    assert!(!place.state().exists());
    place.pass(&[]);
    // What the operator writes does not play with the terminal.
    place.go(&["killswitch", "on", "--reason", "a\u{1b}[31m\nb", "--by", "\u{1b}[0m"]);
    let status = place.go(&["killswitch", "status"]).stdout;
    assert!(!status.contains('\u{1b}') && status.lines().count() == 1, "{status:?}");
}

#[test]
fn a_strange_reason_is_refused_with_harmlessly() {
    let place = Place::new();
    place.go(&["killswitch", "on", "--reason", "a\u{1b}[31m\nb"]);
    place.runs_nothing(&["kill switch"]);
}

/// A log that was changed, while one run goes on.
fn with_a_changed_log(place: &Place, sleep: &str) -> Going {
    let going = place.start(&["--tenant", "t"], &["sh", "-c", &format!("echo ready; exec sleep {sleep}")]);
    let file = place.logs().pop().expect("there is one");
    let text = std::fs::read_to_string(&file).expect("ours");
    std::fs::write(&file, text.replace("ADMITTED", "FINISHED")).expect("ours");
    going
}

#[test]
fn it_stops_even_when_the_log_is_damaged() {
    let place = Place::new();
    let sleep = unique_sleep();
    let going = with_a_changed_log(&place, &sleep);
    place.go(&["killswitch", "on", "--reason", "a drill"]).refused(&["audit log"]);
    going.end();
    nothing_is_left(&sleep);
}

#[test]
fn it_stops_even_when_a_killed_run_cannot_be_written_down() {
    let place = Place::new();
    let sleep = unique_sleep();
    let mut killed = place.start(&[], &["sh", "-c", "echo ready; exec sleep 3600"]);
    let mut going = with_a_changed_log(&place, &sleep);
    killed.child.kill().expect("it runs");
    killed.end();
    place.go(&["killswitch", "on", "--reason", "a drill"]).refused(&["audit log"]);
    let left = processes_with(&sleep);
    let _ = going.child.kill();
    going.end();
    assert_eq!(left, Vec::<u32>::new(), "it runs on");
}
