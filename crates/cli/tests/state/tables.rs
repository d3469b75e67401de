//! What tables and views leave out, and must not.

use serde_json::Value;

use crate::harness::*;

#[test]
fn commands_are_found_by_the_name_that_they_are_shown_under() {
    let place = Place::new();
    place.pass(&[]);
    place.run(&[], "print(1)");
    let of = |language: &str| place.records(&["--language", language]).len();
    assert_eq!((of("command"), of("python"), of("bash")), (1, 1, 0));
    let shown = place.go(&["records", "--language", "command"]).stdout;
    assert_eq!((shown.lines().count(), shown.matches(" command ").count()), (2, 1), "{shown}");
}

#[test]
fn whoever_approves_sees_the_limits_and_for_whom_it_is() {
    let place = Place::new();
    place.define("careful", "require_approval = true");
    let words = ["run", "--policy", "careful", "--memory", "100m", "--timeout", "7s", "--processes", "9"];
    let who = ["--tenant", "acme", "--user", "ann", "--code", "print(1)"];
    place.go(&[&words[..], &who].concat()).refused(&["asks for an approval"]);
    let all = place.go(&["approve", "list", "--output", "json"]).json();
    let id = all[0]["approval_id"].as_str().expect("an id");
    let shown = place.go(&["approve", "show", id]).stdout;
    for part in ["tenant acme", "user ann", "7.0 s of wall time", "100 MiB of memory", "9 processes", "print(1)"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    let what = place.go(&["approve", "show", id, "--output", "json"]).json();
    assert_eq!(what["what"]["limits"]["memory_bytes"], 100 << 20, "{what}");
    // Of nobody in particular.
    place.go(&["run", "--policy", "careful", "--code", "print(2)"]).refused(&["asks for an approval"]);
    let all = place.go(&["approve", "list", "--output", "json"]).json();
    let other = all.as_array().expect("a list").iter().find(|one| one["tenant_id"].is_null()).expect("the second");
    let shown = place.go(&["approve", "show", other["approval_id"].as_str().expect("an id")]).stdout;
    assert!(shown.contains("tenant none, user none"), "{shown}");
}

#[test]
fn policies_that_nothing_runs_under_are_marked() {
    let place = Place::new();
    place.define("mine", "");
    place.define("open", "isolation_level = \"none\"");
    let shown = place.go(&["policy", "list"]).stdout;
    let all = place.go(&["policy", "list", "--output", "json"]).json();
    for one in all["policies"].as_array().expect("a list") {
        let id = one["policy"]["policy_id"].as_str().expect("an id");
        let line = shown.lines().find(|line| line.split(' ').next() == Some(id)).expect("it is listed");
        assert_eq!(line.contains("refused here"), !one["refused"].is_null(), "{line}");
        // What the table says is what happens.
        let language = one["policy"]["allowed_languages"][0].as_str().unwrap_or("python");
        let ran = place.go(&["run", "--policy", id, "--lang", language, "--code", "print(1)"]);
        match one["refused"].as_str() {
            Some(why) => ran.refused(&[id, why]),
            None if one["policy"]["require_approval"] == true => ran.refused(&["asks for an approval"]),
            None => assert_eq!((ran.code, ran.stdout.as_str()), (0, "1\n"), "{id}: {}", ran.stderr),
        }
    }
    let refused = |id: &str| {
        let all = all["policies"].as_array().expect("a list");
        all.iter().find(|one| one["policy"]["policy_id"] == id).map(|one| one["refused"].clone())
    };
    assert!(refused("open").is_some_and(|why| why.is_string()) && refused("mine") == Some(Value::Null), "{shown}");
}

#[test]
fn the_doctor_reads_hotcell_toml() {
    let place = Place::new();
    std::fs::create_dir_all(place.state()).expect("ours");
    let row = |ran: &Ran| {
        let checks = ran.json()["checks"].as_array().expect("a list").clone();
        checks.into_iter().find(|check| check["name"] == "hotcell.toml").expect("a row")
    };
    let words = ["doctor", "--output", "json"];
    let fine = place.go(&words);
    assert_eq!((fine.code, &row(&fine)["present"]), (0, &true.into()), "{}", fine.stdout);
    for text in ["[capabilities]\nrum = true\n", "[", "[capabilities]\nmax_lease_minutes = 0\n"] {
        std::fs::write(place.state().join("hotcell.toml"), text).expect("ours");
        let broken = place.go(&words);
        let found = row(&broken);
        assert_eq!((broken.code, &found["present"], &broken.json()["ok"]), (1, &false.into(), &false.into()), "{text}");
        let detail = found["detail"].as_str().expect("a sentence");
        assert!(detail.contains("hotcell.toml") && detail.contains("cannot be used"), "{detail}");
        let shown = place.go(&["doctor"]);
        assert_eq!((shown.code, shown.stdout.contains(detail)), (1, true), "{}", shown.stdout);
        // As a run says it.
        place.go(&["exec", "--", "true"]).refused(&[detail]);
    }
    std::fs::write(place.state().join("hotcell.toml"), "[capabilities]\nexec = false\n").expect("ours");
    assert_eq!(place.go(&words).code, 0);
}
