//! `hotcell policy`: the built-in ones, the operator's own, and what each of them admits.

use crate::harness::*;

const BUILT_IN: [&str; 8] =
    ["balanced", "fast", "high_security", "permissive", "restricted", "standard", "strict", "yellow_lane"];

#[test]
fn every_built_in_one_is_listed_shown_and_checked() {
    let place = Place::new();
    let table = place.go(&["policy", "list"]);
    let listed: Vec<&str> = table.stdout.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!((table.code, listed.as_slice()), (0, BUILT_IN.as_slice()), "{}", table.stdout);
    let json = place.go(&["policy", "list", "--output", "json"]).json();
    for (index, name) in BUILT_IN.iter().enumerate() {
        let one = &json["policies"][index];
        assert_eq!((&one["built_in"], &one["policy"]["policy_id"]), (&true.into(), &(*name).into()));
        let shown = place.go(&["policy", "show", name]);
        let file = place.write("one.toml", &shown.stdout);
        let said = place.go(&["policy", "check", file.to_str().expect("UTF-8")]);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""));
        assert!(said.stdout.contains(name), "{}", said.stdout);
        assert_eq!(place.go(&["policy", "show", name, "--output", "json"]).json(), one["policy"]);
        // The text is the same policy.
        let parsed: toml::Table = shown.stdout.parse().expect("it is TOML");
        for (field, value) in &parsed {
            let (json, toml) = (&one["policy"][field], serde_json::to_value(value).expect("it can be JSON"));
            let same = json == &toml || json.as_f64().is_some_and(|number| toml.as_f64() == Some(number));
            assert!(same, "{name}: {field} is {json} and {toml}");
        }
    }
    // Looking leaves nothing.
    assert!(!place.state().exists());
}

#[test]
fn every_built_in_one_runs_or_says_why_not() {
    let place = Place::new();
    for name in BUILT_IN {
        let ran = place.go(&["run", "--policy", name, "--quiet", "--code", "print('hello')"]);
        let record = place.newest();
        assert_eq!(record["policy_id"], name);
        let (status, class) = match name {
            "strict" if !has("runsc") => ("denied", "StrictModeUnavailable"),
            "high_security" if has("runc") || has("crun") => {
                ran.refused(&["asks for an approval"]);
                continue;
            }
            "high_security" => ("denied", "SetupFailure"),
            _ => {
                assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\n"), "{name}: {}", ran.stderr);
                assert_eq!((&record["status"], &record["failure_class"]), (&"completed".into(), &().into()));
                continue;
            }
        };
        ran.refused(&[name, "refuses"]);
        assert_eq!((&record["status"], &record["failure_class"]), (&status.into(), &class.into()), "{record}");
        assert!(ran.stderr.contains(record["error_message"].as_str().expect("a text")), "{record} {}", ran.stderr);
    }
    place.is_whole();
}

#[test]
fn own_ones_are_defined_replaced_and_deleted() {
    let place = Place::new();
    place.define("mine", "max_memory_mb = 64\nallow_file_write = true");
    let shown = place.go(&["policy", "show", "mine"]);
    assert_eq!(shown.stdout, policy("mine", "max_memory_mb = 64\nallow_file_write = true"));
    assert_eq!(place.go(&["policy", "show", "mine", "--output", "json"]).json()["max_memory_mb"], 64);
    let listed = place.go(&["policy", "list", "--output", "json"]).json();
    let last = listed["policies"].as_array().and_then(|all| all.last()).expect("there are some");
    assert_eq!((&last["built_in"], &last["policy"]["policy_id"]), (&false.into(), &"mine".into()));
    assert!(place.go(&["policy", "list"]).stdout.contains("\nmine "));
    let outcome = place.exec(&["--policy", "mine"], &["true"]);
    assert_eq!(outcome["runtime_config"]["limits"]["memory_bytes"], 64 << 20, "{outcome}");
    // Another one of that name takes its place.
    place.define("mine", "max_memory_mb = 32");
    assert_eq!(place.go(&["policy", "show", "mine", "--output", "json"]).json()["max_memory_mb"], 32);
    // By the environment, too.
    let outcome = go(place.hotcell(&["exec", "--output", "json", "--", "true"]).env("HOTCELL_POLICY", "mine")).json();
    assert_eq!(outcome["runtime_config"]["limits"]["memory_bytes"], 32 << 20, "{outcome}");
    let gone = place.go(&["policy", "delete", "mine"]);
    assert_eq!((gone.code, gone.stdout.as_str()), (0, "mine is gone\n"));
    place.go(&["policy", "show", "mine"]).refused(&["mine", "balanced"]);
    place.go(&["policy", "delete", "mine"]).refused(&["mine"]);
    place.go(&["exec", "--policy", "mine", "--", "echo", "ran"]).refused(&["mine"]);
    assert_eq!(place.contents("state/policies"), []);
    // Who changed what is in the log.
    let log = place.go(&["audit", "export"]).stdout;
    let events: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let events: Vec<_> =
        events.iter().filter(|e| e["event"].as_str().is_some_and(|n| n.starts_with("policy"))).collect();
    let told: Vec<_> = events.iter().map(|e| (e["event"].as_str().expect("a name"), &e["data"]["policy"])).collect();
    assert_eq!(
        told.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["policy_event.DEFINED", "policy_event.DEFINED", "policy_event.DELETED"]
    );
    assert_eq!((&told[0].1["max_memory_mb"], &told[1].1["max_memory_mb"]), (&64.into(), &32.into()));
    assert!(events.iter().all(|e| e["data"]["by"].as_str().is_some_and(|by| !by.is_empty())), "{events:?}");
}

#[test]
fn a_built_in_one_is_never_replaced_or_deleted() {
    let place = Place::new();
    for name in BUILT_IN {
        let file = place.write("mine.toml", policy(name, ""));
        place.go(&["policy", "define", file.to_str().expect("UTF-8")]).refused(&[name, "built in"]);
        place.go(&["policy", "delete", name]).refused(&[name, "built in"]);
    }
    assert_eq!(place.contents("state/policies"), []);
    // Not even by a file that is put there.
    std::fs::create_dir_all(place.state().join("policies")).expect("our own directory");
    place.write("state/policies/restricted.toml", policy("restricted", "max_memory_mb = 4096"));
    assert_eq!(place.go(&["policy", "show", "restricted", "--output", "json"]).json()["max_memory_mb"], 128);
}

#[test]
fn names_are_no_paths() {
    let place = Place::new();
    place.define("mine", "");
    let outside = place.write("outside.toml", policy("outside", ""));
    for name in ["../outside", "../../outside", "..", ".", "", "/etc/passwd", "mine.toml", "mine/", "./mine"] {
        place.go(&["policy", "show", name]).refused(&["not a policy"]);
        place.go(&["policy", "delete", name]).refused(&["not a policy"]);
        if !name.is_empty() {
            place.go(&["exec", "--policy", name, "--", "echo", "ran"]).refused(&["not a policy"]);
        }
    }
    assert!(outside.exists() && place.state().join("policies/mine.toml").exists());
}

#[test]
fn what_is_too_large_to_be_read_is_not_defined() {
    let place = Place::new();
    let file = place.write("large.toml", policy("large", &format!("# {}", "x".repeat(70_000))));
    place.go(&["policy", "define", file.to_str().expect("UTF-8")]).refused(&["65536"]);
    place.go(&["policy", "check", file.to_str().expect("UTF-8")]).refused(&["65536"]);
    assert_eq!(place.go(&["policy", "list"]).code, 0);
}

#[test]
fn no_definition_makes_the_log_unreadable() {
    let place = Place::new();
    let names: Vec<String> = (0..200_000).map(|n| format!("\"l{n}\"")).collect();
    let file = place.write("large.toml", policy("large", &format!("allowed_languages = [{}]", names.join(","))));
    place.go(&["policy", "define", file.to_str().expect("UTF-8")]);
    place.pass(&[]);
    place.is_whole();
}

#[test]
fn a_strange_name_is_shown_harmlessly() {
    let place = Place::new();
    for name in ["a\nb", "a\u{1b}[31mb", "a\rb"] {
        place.go(&["policy", "show", name]).refused(&["not a policy"]);
        place.go(&["exec", "--policy", name, "--", "echo", "ran"]).refused(&["not a policy"]);
    }
}
