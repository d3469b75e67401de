//! Every run and every refusal is written down as what it was.

use serde_json::Value;

use crate::harness::*;

#[track_caller]
fn is(record: &Value, fields: &[(&str, Value)]) {
    for (field, value) in fields {
        assert_eq!(&record[field], value, "{field} of {record:#}");
    }
}

#[test]
fn each_end_is_told_as_what_it_was() {
    let place = Place::new();
    place.define("mine", "");
    let null = Value::Null;
    let outcome = place.exec(&["--policy", "mine", "--tenant", "t", "--user", "u", "--run-id", "r"], &["true"]);
    let record = place.newest();
    is(
        &record,
        &[
            ("status", "completed".into()),
            ("failure_class", null.clone()),
            ("exit_code", 0.into()),
            ("policy_id", "mine".into()),
            ("tenant_id", "t".into()),
            ("user_id", "u".into()),
            ("run_id", "r".into()),
            ("language", null.clone()),
            ("sandbox_id", outcome["request_id"].clone()),
            ("lease_id", null.clone()),
            ("error_message", null.clone()),
        ],
    );
    for field in ["wall_time_seconds", "cpu_seconds", "memory_peak_mb"] {
        assert!(record[field].as_f64().is_some_and(|number| number >= 0.0), "{field} of {record:#}");
    }
    assert!(record["created_at"].as_str() <= record["completed_at"].as_str(), "{record:#}");
    assert_eq!(record["code_hash"].as_str().map(str::len), Some(64), "{record:#}");

    place.exec(&[], &["sh", "-c", "exit 3"]);
    is(
        &place.newest(),
        &[
            ("status", "failed".into()),
            ("failure_class", "RuntimeError".into()),
            ("exit_code", 3.into()),
            ("policy_id", "none".into()),
            ("tenant_id", null.clone()),
            ("user_id", null.clone()),
            ("run_id", null.clone()),
        ],
    );
    place.exec(&["--timeout", "200ms"], &["sleep", "60"]);
    is(
        &place.newest(),
        &[("status", "timeout".into()), ("failure_class", "TimeoutViolation".into()), ("exit_code", null.clone())],
    );
    place.exec(&["--scratch", "0"], &["sh", "-c", "echo x > /work/file; true"]);
    is(&place.newest(), &[("status", "failed".into()), ("failure_class", "FilesystemWriteViolation".into())]);
    place.go(&["exec", "--policy", "mine", "--tenant", "t", "--memory", "1t", "--", "true"]).refused(&["memory"]);
    is(
        &place.newest(),
        &[
            ("status", "denied".into()),
            ("failure_class", "PolicyViolation".into()),
            ("exit_code", null.clone()),
            ("policy_id", "mine".into()),
            ("tenant_id", "t".into()),
            ("wall_time_seconds", null.clone()),
        ],
    );
    place.run(&["--lang", "bash"], "kill -9 $$");
    is(
        &place.newest(),
        &[
            ("status", "failed".into()),
            ("failure_class", "Signaled".into()),
            ("exit_code", null.clone()),
            ("language", "bash".into()),
        ],
    );
    // Called off by the caller.
    let going = place.start(&[], &["sh", "-c", "echo ready; exec sleep 3600"]);
    let pid = rustix::process::Pid::from_child(&going.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    assert_eq!(going.end().code, 143);
    is(&place.newest(), &[("status", "killed".into()), ("exit_code", null)]);
    assert!(place.go(&["exec", "--", "/nonexistent"]).code == 127);
    is(&place.newest(), &[("status", "failed".into()), ("failure_class", "SetupFailure".into())]);
    place.is_whole();
}

#[test]
fn the_hash_is_that_of_the_code() {
    let place = Place::new();
    let hash = |words: &[&str]| {
        place.go(words);
        place.newest()["code_hash"].clone()
    };
    let one = hash(&["run", "--code", "print(1)"]);
    assert_eq!(hash(&["run", "--code", "print(1)", "--tenant", "t", "--timeout", "5s"]), one);
    let others = [
        one,
        hash(&["run", "--code", "print(2)"]),
        hash(&["run", "--code", "print(1) "]),
        hash(&["run", "--lang", "bash", "--code", "print(1)"]),
        hash(&["exec", "--", "true"]),
        hash(&["exec", "--", "true", "1"]),
        hash(&["exec", "--", "true", "1", "2"]),
        hash(&["exec", "--", "true", "1 2"]),
    ];
    for (index, hash) in others.iter().enumerate() {
        assert!(!others[..index].contains(hash), "{index} is as another: {hash}");
    }
}

#[test]
fn a_refusal_has_the_hash_of_what_was_refused() {
    let place = Place::new();
    place.go(&["run", "--code", "print(1)"]);
    let ran = place.newest();
    let more = ["run", "--policy", "restricted", "--timeout", "99s", "--code", "print(1)"];
    place.go(&more).refused(&["restricted"]);
    assert_eq!(place.newest()["code_hash"], ran["code_hash"]);
}

/// Runs of two tenants, users, languages and policies.
fn some(place: &Place) -> usize {
    place.define("mine", "");
    place.pass(&["--tenant", "a", "--user", "x", "--run-id", "r1"]);
    place.pass(&["--tenant", "a", "--user", "y", "--run-id", "r2", "--policy", "mine"]);
    place.pass(&["--tenant", "b", "--user", "x", "--run-id", "r1"]);
    place.exec(&["--tenant", "b"], &["false"]);
    place.run(&["--tenant", "b", "--lang", "bash"], "true");
    place.run(&["--tenant", "a"], "print(1)");
    place.go(&["exec", "--tenant", "a", "--policy", "restricted", "--", "true"]).refused(&["restricted"]);
    7
}

#[test]
fn filters() {
    let place = Place::new();
    let number = some(&place);
    for (words, want) in [
        (&[][..], number),
        (&["--tenant", "a"], 4),
        (&["--tenant", "b"], 3),
        (&["--tenant", "c"], 0),
        (&["--user", "x"], 2),
        (&["--run-id", "r1"], 2),
        (&["--run-id", "r1", "--tenant", "b"], 1),
        (&["--status", "completed"], 5),
        (&["--status", "failed"], 1),
        (&["--status", "denied"], 1),
        (&["--status", "running"], 0),
        (&["--language", "bash"], 1),
        (&["--language", "python"], 1),
        (&["--policy", "mine"], 1),
        (&["--policy", "restricted"], 1),
        (&["--policy", "none"], 5),
        (&["--since", "2020-01-01"], number),
        (&["--until", "2020-01-01"], 0),
        (&["--since", "2999-01-01"], 0),
        (&["--until", "2999-12-31T00:00:00Z"], number),
        (&["--tenant", "' OR 1=1 --"], 0),
        (&["--tenant", "a", "--status", "completed", "--policy", "mine", "--user", "y"], 1),
    ] {
        assert_eq!(place.records(words).len(), want, "{words:?}");
        let table = place.go(&[&["records"], words].concat());
        assert_eq!(table.stdout.lines().count(), want + 1, "{words:?}: {}", table.stdout);
    }
    // Between two of them.
    let all = place.records(&[]);
    let at = all[3]["created_at"].as_str().expect("a time");
    assert_eq!(place.records(&["--since", at]), all[..4]);
    assert_eq!(place.records(&["--until", at]), all[4..]);
    // The table has what the list has.
    let table = place.go(&["records"]).stdout;
    for (line, record) in table.lines().skip(1).zip(&all) {
        for field in ["record_id", "status", "policy_id"] {
            assert!(line.contains(record[field].as_str().expect("a text")), "{line}");
        }
    }
    place.go(&["records", "--status", "dead"]).refused(&["dead", "denied"]);
    place.go(&["records", "--limit", "0"]).refused(&["--limit"]);
    place.go(&["records", "--limit=-1"]).refused(&["limit"]);
    place.go(&["records", "--limit", "99999999999999999999"]).refused(&["limit"]);
}

#[test]
fn a_time_without_a_fraction_is_the_beginning_of_its_second() {
    let place = Place::new();
    // One that is not on the very second.
    wait_until("a fraction", || {
        place.pass(&[]);
        place.newest()["created_at"].as_str().is_some_and(|at| at.contains('.'))
    });
    let record = place.newest();
    let second = format!("{}Z", &record["created_at"].as_str().expect("a time")[..19]);
    assert!(place.records(&["--since", &second]).contains(&record), "{second} is not before {}", record["created_at"]);
    assert!(!place.records(&["--until", &second]).contains(&record), "{second} is not before {}", record["created_at"]);
}

#[test]
fn what_is_no_time_is_refused() {
    let place = Place::new();
    place.pass(&[]);
    for time in ["yesterday", "2026-13-01", "2026-02-30", "", "2026-11-15T25:00:00Z", "-1"] {
        for flag in ["--since", "--until"] {
            place.go(&["records", &format!("{flag}={time}")]).refused(&[flag]);
        }
    }
}

#[test]
fn pages() {
    let place = Place::new();
    let number = some(&place);
    let all = place.records(&[]);
    let mut ids: Vec<&str> = all.iter().filter_map(|record| record["record_id"].as_str()).collect();
    let (mut paged, mut before) = (vec![], None::<String>);
    loop {
        let mut words = vec!["--limit", "2"];
        words.extend(before.iter().flat_map(|id| ["--before", id]));
        let page = place.records(&words);
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        before = last["record_id"].as_str().map(str::to_owned);
        paged.extend(page);
    }
    assert_eq!((paged.len(), &paged), (number, &all));
    // Newest first, each once.
    assert!(ids.is_sorted_by(|a, b| a > b), "{ids:?}");
    ids.dedup();
    assert_eq!(ids.len(), number);
    // A page of a filter.
    let of_a = place.records(&["--tenant", "a"]);
    let id = of_a[0]["record_id"].as_str().expect("an id");
    assert_eq!(place.records(&["--tenant", "a", "--before", id]), of_a[1..]);
}

#[test]
fn stats_add_up() {
    let place = Place::new();
    let number = some(&place) as u64;
    let sum = |counts: &Value| counts.as_object().expect("counts").values().filter_map(Value::as_u64).sum::<u64>();
    for (words, want) in [(&[][..], number), (&["--tenant", "a"], 4), (&["--tenant", "b"], 3), (&["--tenant", "c"], 0)]
    {
        let stats = place.go(&[&["stats", "--output", "json"], words].concat()).json();
        assert_eq!(stats["total_executions"], want, "{stats:#}");
        for by in ["by_status", "by_language", "by_policy"] {
            assert_eq!(sum(&stats[by]), want, "{by} of {stats:#}");
        }
        for (by, field) in [("by_status", "status"), ("by_policy", "policy_id"), ("by_failure_class", "failure_class")]
        {
            let records = place.records(words);
            for (name, count) in stats[by].as_object().expect("counts") {
                let same = records.iter().filter(|record| record[field] == name.as_str()).count();
                assert_eq!(count, same, "{by} {name}");
            }
        }
        let text = place.go(&[&["stats"], words].concat());
        assert_eq!((text.code, text.stdout.lines().next()), (0, Some(&*format!("{want} runs and refusals"))));
    }
    let stats = place.go(&["stats", "--output", "json"]).json();
    let time = |name: &str| stats[name].as_f64().expect("a time");
    let [p50, p95, p99] = ["p50", "p95", "p99"].map(|p| time(&format!("{p}_wall_time_seconds")));
    assert!(p50 <= p95 && p95 <= p99 && time("avg_wall_time_seconds") <= p99, "{stats:#}");
}

#[test]
fn what_was_killed_without_a_word_is_killed() {
    let place = Place::new();
    let sleep = unique_sleep();
    let mut going = place.start(&["--tenant", "t"], &["sh", "-c", &format!("echo ready; exec sleep {sleep}")]);
    assert_eq!(place.newest()["status"], "running");
    // Others come and go meanwhile.
    place.pass(&[]);
    assert_eq!(place.records(&["--tenant", "t"])[0]["status"], "running");
    going.child.kill().expect("it runs");
    assert_eq!(going.end().code, -9);
    wait_until("the program is gone", || processes_with(&sleep).is_empty());
    let record = place.records(&["--tenant", "t"]).pop().expect("it is there");
    is(&record, &[("status", "killed".into()), ("exit_code", Value::Null)]);
    assert!(record["completed_at"].is_string() && record["error_message"].is_string(), "{record:#}");
    assert_eq!(place.records(&["--status", "running"]), Vec::<Value>::new());
    let id = record["record_id"].as_str().expect("an id");
    let log = place.go(&["audit", "export"]).stdout;
    let told = log.lines().filter(|line| line.contains("exec_event.KILLED") && line.contains(id)).count();
    assert_eq!(told, 1, "{log}");
    wait_until("its group is gone", || {
        place.pass(&[]);
        orphaned_groups().is_empty()
    });
    place.is_whole();
}

#[test]
fn twenty_at_once_are_all_recorded() {
    let place = Place::new();
    let mut runs = vec![];
    for n in 0..20 {
        let mut command = place.hotcell(&["exec", "--quiet", "--run-id", &format!("r{n}"), "--", "true"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        runs.push(Going { child: command.spawn().expect("it starts") });
    }
    for run in runs {
        let ran = run.end();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    }
    let records = place.records(&["--status", "completed"]);
    let mut ids: Vec<String> = records.iter().map(|record| record["run_id"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((records.len(), ids.len()), (20, 20));
    place.is_whole();
}

#[test]
fn names_that_are_no_ids() {
    let place = Place::new();
    let long = "x".repeat(65);
    for id in ["", "a b", "../x", "a\u{1b}[31m", "ä", "a'--", &long] {
        for flag in ["--tenant", "--user", "--run-id"] {
            place.go(&["exec", flag, id, "--", "echo", "it ran"]).refused(&[flag]);
        }
    }
    assert_eq!(place.records(&[]), Vec::<Value>::new());
}

#[test]
fn one_record_in_full() {
    let place = Place::new();
    place.pass(&["--tenant", "t", "--user", "u", "--run-id", "r"]);
    place.exec(&[], &["sh", "-c", "exit 3"]);
    place.go(&["exec", "--policy", "restricted", "--", "true"]).refused(&["restricted"]);
    for record in place.records(&[]) {
        let id = record["record_id"].as_str().expect("an id");
        assert_eq!(place.go(&["records", id, "--output", "json"]).json(), record);
        let text = place.go(&["records", id]);
        assert_eq!((text.code, text.stderr.as_str()), (0, ""));
        let fields = record.as_object().expect("a record");
        assert_eq!(text.stdout.lines().count(), fields.len(), "{}", text.stdout);
        for (name, value) in fields {
            let value = match value {
                Value::Null => "-".to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let is_it = |line: &str| line.split_once(' ').is_some_and(|(n, v)| n == name && v.trim_start() == value);
            assert!(text.stdout.lines().any(is_it), "{name} {value} is not in {}", text.stdout);
        }
    }
}

#[test]
fn a_record_that_is_not_there() {
    let place = Place::new();
    // Nor is the state: looking does not make it.
    place.go(&["records", "nothing"]).refused(&["`nothing`", "hotcell records"]);
    assert!(!place.state().exists());
    place.pass(&[]);
    let id = place.newest()["record_id"].as_str().expect("an id").to_owned();
    for no in ["", "%", "' OR 1 = 1 --x", &id[..35], &format!("{id} "), &id.to_uppercase(), "a\nb"] {
        place.go(&["records", no]).refused(&["there is no record", "hotcell records"]);
    }
    place.go(&["records", &id, "--tenant", "t"]).refused(&["--tenant", "cannot be used with"]);
    place.go(&["records", &id, "--limit", "1"]).refused(&["--limit"]);
    place.go(&["records", &id, &id]).refused(&["unexpected argument"]);
    assert_eq!(place.go(&["records", &id]).code, 0);
}
