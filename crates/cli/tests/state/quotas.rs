//! So many a minute, an hour, at once: never one more, whoever comes at the same time.

use std::process::Stdio;

use crate::harness::*;

/// The number of seconds to come back in.
fn again_in(sentence: &str) -> u64 {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "in").expect("it says when");
    words[at + 1].parse().expect("a number of seconds")
}

#[test]
fn a_minute() {
    let place = Place::new();
    place.define("mine", "max_executions_per_minute = 2");
    place.pass(&["--policy", "mine"]);
    // A run that fails is one too.
    place.exec(&["--policy", "mine"], &["false"]);
    for _ in 0..2 {
        let ran = place.go(&["exec", "--policy", "mine", "--", "echo", "it ran"]);
        ran.refused(&["2 runs a minute", "come back in"]);
        assert!((1..=60).contains(&again_in(&ran.stderr)), "{}", ran.stderr);
        let record = place.newest();
        assert_eq!((&record["status"], &record["failure_class"]), (&"denied".into(), &"QuotaExceeded".into()));
        assert!(ran.stderr.contains(record["error_message"].as_str().expect("a text")), "{record:#}");
    }
    // Refusals use nothing up, others' runs neither.
    assert_eq!(place.records(&["--status", "denied"]).len(), 2);
    place.pass(&[]);
    place.is_whole();
}

#[test]
fn an_hour() {
    let place = Place::new();
    place.define("mine", "max_executions_per_hour = 3\nmax_executions_per_minute = 3");
    place.define("long", "max_executions_per_hour = 1");
    for _ in 0..3 {
        place.pass(&["--policy", "mine"]);
    }
    place.go(&["exec", "--policy", "mine", "--", "echo", "it ran"]).refused(&["3 runs a", "come back in"]);
    place.pass(&["--policy", "long"]);
    let ran = place.go(&["exec", "--policy", "long", "--", "echo", "it ran"]);
    ran.refused(&["1 runs an hour"]);
    assert!((61..=3600).contains(&again_in(&ran.stderr)), "{}", ran.stderr);
}

#[test]
fn each_tenant_and_each_policy_has_its_own() {
    let place = Place::new();
    place.define("one", "max_executions_per_minute = 1");
    place.define("two", "max_executions_per_minute = 1");
    for tenant in [&[][..], &["--tenant", "a"], &["--tenant", "b"]] {
        for policy in ["one", "two"] {
            let words = [tenant, &["--policy", policy]].concat();
            place.pass(&words);
            let ran = place.go(&[&["exec"], &words[..], &["--", "echo", "it ran"]].concat());
            ran.refused(&["1 runs a minute"]);
        }
    }
    assert_eq!((place.records(&["--status", "completed"]).len(), place.records(&["--status", "denied"]).len()), (6, 6));
}

#[test]
fn of_fifty_at_once_ten_run() {
    let place = Place::new();
    place.define("mine", "max_executions_per_minute = 10\nmax_executions_per_hour = 100");
    let mut runs = vec![];
    for _ in 0..50 {
        let mut command =
            place.hotcell(&["exec", "--quiet", "--policy", "mine", "--tenant", "t", "--", "echo", "it ran"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        runs.push(Going { child: command.spawn().expect("it starts") });
    }
    let mut ran = 0;
    for run in runs {
        let run = run.end();
        match run.code {
            0 => {
                assert_eq!(run.stdout, "it ran\n");
                ran += 1;
            }
            _ => run.refused(&["10 runs a minute", "come back in"]),
        }
    }
    assert_eq!(ran, 10);
    assert_eq!(place.records(&["--status", "completed"]).len(), 10);
    assert_eq!(place.records(&["--status", "denied"]).len(), 40);
    place.is_whole();
}

#[test]
fn so_many_at_once() {
    let place = Place::new();
    place.define("mine", "max_concurrent = 2");
    let words = ["--policy", "mine", "--tenant", "t"];
    let program = ["sh", "-c", "echo ready; cat"];
    let (mut first, second) = (place.start(&words, &program), place.start(&words, &program));
    let refused = || {
        let ran = place.go(&["exec", "--policy", "mine", "--tenant", "t", "--", "echo", "it ran"]);
        ran.refused(&["2 runs are going"]);
        let record = place.newest();
        assert_eq!((&record["status"], &record["failure_class"]), (&"denied".into(), &"QuotaExceeded".into()));
    };
    refused();
    // Another tenant is not in the way.
    place.pass(&["--policy", "mine", "--tenant", "other"]);
    first.let_go();
    assert_eq!(first.end().code, 0);
    place.pass(&words);
    // One that is killed leaves its place.
    let mut third = place.start(&words, &program);
    refused();
    third.child.kill().expect("it runs");
    third.end();
    place.pass(&words);
    let mut second = second;
    second.let_go();
    assert_eq!(second.end().code, 0);
    assert_eq!(place.records(&["--status", "running"]).len(), 0);
    place.is_whole();
}

#[test]
fn counting_is_done_in_the_usual_place() {
    let place = Place::new();
    for limit in ["max_executions_per_minute = 5", "max_executions_per_hour = 5", "max_concurrent = 5"] {
        let dir = place.path("home/.local/state/hotcell/policies");
        std::fs::create_dir_all(&dir).expect("our own directory");
        std::fs::write(dir.join("mine.toml"), policy("mine", limit)).expect("our own directory");
        // Where the policies are is where the counting is.
        let ran = go(place.hotcell(&["exec", "--policy", "mine", "--", "true"]).env_remove("HOTCELL_STATE_DIR"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let listed = go(place.hotcell(&["records", "--output", "json"]).env_remove("HOTCELL_STATE_DIR")).json();
        assert_eq!(listed["records"].as_array().map(Vec::len), Some(1), "{listed}");
        std::fs::remove_dir_all(place.path("home/.local")).expect("ours");
    }
}
