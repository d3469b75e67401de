//! The stream: what is in it, in which order, and where it can and cannot go.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::process::{Command, Stdio};

use hotcell_contract::{FailureClass, Happened, Status};

use crate::harness::*;

#[test]
fn from_the_beginning_to_the_end() {
    for place in everybody() {
        let mut going = place.start(&["--request-id", "mine"], &words(&python("hold(1)\nstay()")));
        let samples = || place.events().iter().filter(|e| matches!(e.happened, Happened::Sample(_))).count();
        going.wait_for("third sample", |_| samples() >= 3);
        going.end().passed();
        let events = place.events();
        let names: Vec<String> = events.iter().map(name).collect();
        assert_eq!(names[..2], ["exec_event.ADMITTED", "exec_event.STARTED"]);
        assert!(names[2..names.len() - 1].iter().all(|name| name == "exec_event.SAMPLE"), "{names:?}");
        assert_eq!(names.last().map(String::as_str), Some("exec_event.FINISHED"));
        assert!(events.iter().all(|event| event.request_id == "mine"));
        assert!(events[1..].iter().all(|event| event.phase.as_deref() == Some("run")));
        assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at), "time goes on");
        assert!(events.windows(2).all(|pair| pair[0].since_start_ms <= pair[1].since_start_ms));
        let cpu = |event: &hotcell_contract::RunEvent| match event.happened {
            Happened::Sample(sample) => Some(sample.cpu_ms),
            _ => None,
        };
        let cpu: Vec<u64> = events.iter().filter_map(cpu).collect();
        assert!(cpu.is_sorted(), "{cpu:?}");
        let Some(Happened::Finished(finished)) = events.last().map(|event| &event.happened) else {
            panic!("{names:?}")
        };
        assert_eq!((finished.status, finished.exit_code), (Status::Pass, Some(0)));
        assert!(finished.averages.memory_average_bytes.is_some());
    }
}

#[test]
fn a_violation_is_told_when_it_happens() {
    for place in everybody() {
        let code = "import socket\ntry: socket.create_connection(('192.0.2.1', 443))\nexcept OSError: pass\nstay()";
        let mut going = place.start(&[], &words(&python(code)));
        let event = going.wait_for("violation", |event| matches!(event.happened, Happened::Violation(_)));
        let Happened::Violation(violation) = event.happened else { panic!("it was waited for") };
        assert_eq!(violation.class, FailureClass::NetworkAccessViolation);
        assert_eq!(violation.detail.address.as_deref(), Some("192.0.2.1:443"));
        assert_eq!(going.end().code, 123);
        let events = place.events();
        assert_eq!(events.iter().filter(|event| matches!(event.happened, Happened::Violation(_))).count(), 1);
        assert!(events.last().is_some_and(is_last));
    }
}

#[test]
fn work_is_counted() {
    for place in everybody() {
        let code = "f = open('/work/file', 'wb')\nf.write(bytes(3000000)); f.flush()\nprint('said'); stay()";
        let mut going = place.start(&[], &words(&python(code)));
        going.wait_for("what it wrote", |event| match event.happened {
            Happened::Sample(s) => {
                s.scratch_bytes >= 3_000_000 && s.stdout_bytes == 5 && s.io_written_bytes >= Some(3_000_005)
            }
            _ => false,
        });
        going.end().passed();
    }
}

#[test]
fn a_compiler_is_watched_too() {
    let place = anybody();
    std::fs::write(place.path("main.c"), "int main(void) { return 0; }\n").expect("ours");
    place.go(&["run", "--no-cache", "--events", "events", "main.c"]).passed();
    let started: Vec<_> =
        place.events().into_iter().filter(|e| matches!(e.happened, Happened::Started(_))).map(|e| e.phase).collect();
    assert_eq!(started, [Some("compile".to_owned()), Some("run".to_owned())]);
    // What does not compile ends there.
    std::fs::write(place.path("wrong.c"), "int main(void) { return }\n").expect("ours");
    std::fs::remove_file(place.path("events")).expect("ours");
    assert_eq!(place.go(&["run", "--no-cache", "--events", "events", "wrong.c"]).code, 1);
    let events = place.events();
    assert!(events.iter().all(|event| event.phase.as_deref() != Some("run")));
    let Some(Happened::Finished(finished)) = events.last().map(|event| &event.happened) else { panic!("{events:?}") };
    assert_eq!(finished.failure_class, Some(FailureClass::CompileError));
}

#[test]
fn a_refusal_is_told() {
    let place = anybody();
    let (ran, events) = place.run(&["--policy", "standard"], &["echo", "it ran"]);
    ran.refused(&["standard"]);
    let names: Vec<String> = events.iter().map(name).collect();
    assert_eq!(names, ["exec_event.DENIED"]);
    let state = place.text("state");
    place.go(&["killswitch", "on", "--reason", "a drill", "--state-dir", &state]).passed();
    let (ran, events) = place.run(&["--state-dir", &state], &["echo", "it ran"]);
    ran.refused(&["kill switch"]);
    assert_eq!(events.iter().map(name).collect::<Vec<_>>(), ["exec_event.DENIED", "exec_event.DENIED"]);
}

#[test]
fn one_that_is_called_off_is_killed() {
    let place = anybody();
    let mut child = place.hotcell(&["exec", "--events", "events", "--", "sleep", "3600"]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_until("a sample", || place.events().len() >= 3);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is ours");
    assert_eq!(end(child).code, 143);
    assert_eq!(place.events().last().map(name).as_deref(), Some("exec_event.KILLED"));
}

#[test]
fn what_cannot_be_run_is_told_last() {
    let place = anybody();
    let (ran, events) = place.run(&[], &["no-such-program"]);
    assert_eq!(ran.code, 127);
    let Some(Happened::Finished(finished)) = events.last().map(|event| &event.happened) else { panic!("{events:?}") };
    assert_eq!(finished.failure_class, Some(FailureClass::SetupFailure));
}

#[test]
fn the_result_is_not_touched_by_it() {
    let place = anybody();
    let outcome = place.go(&["exec", "--output", "json", "--events", "events", "--", "echo", "said"]).json();
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"said\n".into()));
    assert!(place.events().iter().all(|event| outcome["request_id"] == event.request_id.as_str()));
}

#[test]
fn a_file_that_cannot_be_written_is_said_first() {
    for place in everybody() {
        std::fs::create_dir(place.path("dir")).expect("ours");
        for bad in ["dir", "no/such/dir", "-", "/proc/self/nothing", ""] {
            let ran = place.go(&["exec", &format!("--events={bad}"), "--", "echo", "it ran"]);
            ran.refused(&["events", bad]);
        }
    }
}

#[test]
fn runs_are_added_to_a_file() {
    let place = anybody();
    place.run(&[], &["true"]).0.passed();
    let first = place.events();
    place.run(&[], &["true"]).0.passed();
    let both = place.events();
    assert_eq!(both[..first.len()], first[..]);
    assert_eq!(both.iter().filter(|event| is_last(event)).count(), 2);
}

#[test]
fn a_descriptor_of_the_shell() {
    for place in everybody() {
        let line = "exec ./hotcell exec --events /dev/fd/3 -- true 3> events";
        let mut command = place.command("sh");
        let child = command.args(["-c", line]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        end(child.expect("there is a shell")).passed();
        assert!(place.events().last().is_some_and(is_last));
    }
}

fn fifo(place: &Place) {
    let made = Command::new("mkfifo").arg(place.path("events")).status().expect("it is installed");
    assert!(made.success());
    std::fs::set_permissions(place.path("events"), PermissionsExt::from_mode(0o666)).expect("ours");
}

#[test]
fn a_reader_who_leaves_is_not_missed() {
    for place in everybody() {
        fifo(&place);
        let going = place.start(&["--sample-every", "10ms"], &["cat"]);
        let mut reader = BufReader::new(std::fs::File::open(place.path("events")).expect("it is there"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("a pipe");
        assert!(line.contains("exec_event.ADMITTED"), "{line}");
        drop(reader);
        going.end().passed();
    }
}

#[test]
fn a_reader_who_does_not_read_keeps_nobody() {
    for place in everybody() {
        fifo(&place);
        // Open at both ends, and full.
        let mut pipe = std::fs::OpenOptions::new();
        let mut pipe = pipe.read(true).write(true).custom_flags(0o4000).open(place.path("events")).expect("a pipe");
        while pipe.write(&[b'\n'; 4096]).is_ok() {}
        let outcome = place.go(&["exec", "--events", "events", "--", "echo", "said"]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (125, "said\n"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("nobody reads them"), "{}", outcome.stderr);
    }
}
