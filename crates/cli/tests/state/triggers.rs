//! `strict_when`: what raises a run to a kernel of its own, and what does not.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::harness::*;

const WHEN: &str = "strict_when = { paths = [\"**/auth/**\", \"/srv/**/*.sql\"], words = [\"payments\", \"Crypto\"] }";

/// A place with that policy, and a tree of sources: some are meant by it.
fn place(lines: &str) -> Place {
    let place = Place::new();
    place.define("mine", &format!("allow_file_write = true\nmax_memory_mb = 300\n{lines}\n{WHEN}"));
    for file in ["src/auth/login.py", "src/author/login.py", "whole/main.py", "whole/lib/auth/x.py", "plain/main.py"] {
        let path = place.path("work").join(file);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("ours");
        std::fs::write(path, "print('ran')").expect("ours");
    }
    place
}

fn without_runsc() -> bool {
    let lacks = !has("runsc");
    if lacks {
        skip("runsc is not installed");
    }
    lacks
}

/// The run passes in a cell that this backend makes, and both its result and its record say what has raised it.
#[track_caller]
fn went(place: &Place, words: &[&str], backend: &str, raised_by: Option<&str>) -> Value {
    let (verb, rest) = words.split_first().expect("a verb");
    let ran = place.go(&[&[*verb, "--policy", "mine", "--output", "json"], rest].concat());
    let (outcome, record) = (ran.json(), place.newest());
    assert_eq!((&outcome["status"], ran.code), (&"pass".into(), 0), "{words:?}: {outcome:#}");
    let config = &outcome["runtime_config"];
    assert_eq!(config["backend"], backend, "{words:?}: {config}");
    assert_eq!(config["raised_by"], record["raised_by"], "{words:?}");
    match raised_by {
        None => assert_eq!(config["raised_by"], Value::Null, "{words:?}"),
        Some(part) => {
            let said = config["raised_by"].as_str().expect("a text");
            assert!(said.contains(part), "{words:?}: {said}");
        }
    }
    // What is raised is who makes the cell, and nothing else.
    assert_eq!((&config["limits"]["memory_bytes"], &outcome["mode"]), (&(300 << 20).into(), &"balanced".into()));
    outcome
}

#[test]
fn by_its_path() {
    if without_runsc() {
        return;
    }
    let place = place("");
    let auth = Some("`**/auth/**` matches");
    went(&place, &["run", "src/auth/login.py"], "oci/runsc", auth);
    went(&place, &["verify", "src/auth/login.py"], "oci/runsc", auth);
    // A directory is all that is in it.
    went(&place, &["run", "whole"], "oci/runsc", Some("`whole/lib/auth`"));
    went(&place, &["exec", "--input", "whole", "--", "true"], "oci/runsc", auth);
    // Neither from elsewhere nor by another name is it another file.
    symlink("src/auth/login.py", place.path("work/harmless.py")).expect("ours");
    went(&place, &["run", "harmless.py"], "oci/runsc", auth);
    let mut inside = place.hotcell(&["run", "--policy", "mine", "--output", "json", "login.py"]);
    let outcome = go(inside.current_dir(place.path("work/src/auth"))).json();
    assert_eq!(outcome["runtime_config"]["backend"], "oci/runsc");
    // Their twins.
    went(&place, &["run", "src/author/login.py"], "native", None);
    went(&place, &["verify", "src/author/login.py"], "native", None);
    went(&place, &["run", "plain"], "native", None);
    went(&place, &["exec", "--input", "plain", "--", "true"], "native", None);
    went(&place, &["run", "--code", "print('auth')"], "native", None);
    place.is_whole();
}

#[test]
fn by_a_word() {
    if without_runsc() {
        return;
    }
    let place = place("");
    for (meta, key) in [("team=payments", "team"), ("note=the PAYMENTS-api", "note"), ("payments.v2=1", "payments.v2")]
    {
        let outcome =
            went(&place, &["exec", "--meta", meta, "--", "true"], "oci/runsc", Some(&format!("metadata `{key}`")));
        let (_, value) = meta.split_once('=').expect("a pair");
        assert_eq!(outcome["runtime_config"]["metadata"][key], value);
    }
    went(&place, &["run", "--meta", "a=b", "--meta", "about=crypto_keys", "plain"], "oci/runsc", Some("`Crypto`"));
    for meta in ["team=repayments", "note=payment", "team=pay-ments", "note=cryptography", "team="] {
        went(&place, &["exec", "--meta", meta, "--", "true"], "native", None);
    }
    // No policy, no triggers; what was said of the run is kept all the same.
    let outcome = place.exec(&["--meta", "team=payments"], &["true"]);
    assert_eq!(outcome["runtime_config"]["backend"], "native");
    assert_eq!(outcome["runtime_config"]["metadata"]["team"], "payments");
}

#[test]
fn nothing_is_lowered() {
    if without_runsc() || !has("runc") {
        return;
    }
    let contained = place("isolation_level = \"container\"");
    went(&contained, &["run", "plain"], "oci/runc", None);
    went(&contained, &["run", "--meta", "x=payments", "plain"], "oci/runsc", Some("payments"));
    let strict = place("isolation_level = \"vm\"");
    went(&strict, &["run", "plain"], "oci/runsc", None);
    went(&strict, &["run", "--meta", "x=payments", "plain"], "oci/runsc", None);
}

#[test]
fn no_flag_takes_it_back() {
    if without_runsc() {
        return;
    }
    let place = place("");
    for (flags, part) in [(["--backend", "native"], "native"), (["--runtime", "runc"], "runsc")] {
        if flags[1] == "runc" && !has("runc") {
            continue;
        }
        let words =
            [&["exec", "--policy", "mine", "--meta", "x=payments"], &flags[..], &["--", "echo", "ran"]].concat();
        place.go(&words).refused(&[part, "`payments`"]);
        let record = place.newest();
        assert_eq!((&record["status"], &record["failure_class"]), (&"denied".into(), &"PolicyViolation".into()));
        assert!(record["raised_by"].as_str().is_some_and(|by| by.contains("payments")), "{record}");
        let words = [&["exec", "--policy", "mine"], &flags[..], &["--", "true"]].concat();
        assert_eq!(place.go(&words).code, 0, "{flags:?}");
    }
    // A kernel of its own reaches nobody: a policy that gives a network does not get one quietly.
    place.write("net.toml", policy("net", WHEN).replace("\"none\"", "\"local\""));
    assert_eq!(place.go(&["policy", "define", "../net.toml"]).code, 0);
    place.go(&["exec", "--policy", "net", "--meta", "x=crypto", "--", "true"]).refused(&["local", "`Crypto`"]);
    assert_eq!(place.go(&["exec", "--policy", "net", "--meta", "x=y", "--", "true"]).code, 0);
    let none = ["exec", "--policy", "net", "--network", "none", "--meta", "x=crypto", "--", "true"];
    assert_eq!(place.go(&none).code, 0);
}

/// The same command on a host that has no runtime with a kernel of its own.
fn hiding_runsc(place: &Place, words: &[&str]) -> Command {
    let empty = place.write("empty", "");
    let mut script = String::from("set -e; ");
    for path in places_of("runsc") {
        script += &format!("mount --bind {} {}; ", empty.display(), path.display());
    }
    let mut command = place.command("unshare");
    command.args(["--mount", "sh", "-c", &format!("{script} exec \"$0\" \"$@\"")]).arg(binary()).args(words);
    command
}

#[test]
fn without_such_a_runtime_nothing_runs() {
    if !is_root() {
        return skip("who is not root cannot hide a runtime");
    }
    let place = place("");
    let on = |words: &[&str]| go(&mut hiding_runsc(&place, &[&["run", "--policy", "mine", "--quiet"], words].concat()));
    for (words, part) in [
        (&["src/auth/login.py"][..], "`**/auth/**` matches `src/auth/login.py`"),
        (&["--meta", "team=payments", "plain"], "`payments` is in the metadata `team`"),
    ] {
        on(words).refused(&["kernel of its own", "runsc", part]);
        let record = place.newest();
        assert_eq!((&record["status"], &record["failure_class"]), (&"denied".into(), &"StrictModeRequired".into()));
        assert!(record["raised_by"].as_str().is_some_and(|by| by.contains(part)), "{record}");
    }
    let ran = on(&["plain"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "ran\n"), "{}", ran.stderr);
    place.is_whole();
}

#[test]
fn a_directory_that_cannot_be_looked_through_is_raised() {
    if without_runsc() {
        return;
    }
    let place = place("");
    let many = place.path("work/many");
    std::fs::create_dir(&many).expect("ours");
    std::fs::write(many.join("main.py"), "print('ran')").expect("ours");
    for n in 0..100_001 {
        symlink("main.py", many.join(format!("n{n}"))).expect("ours");
    }
    went(&place, &["exec", "--input", "many", "--", "true"], "oci/runsc", Some("not all of `many"));
}

#[test]
fn what_is_no_metadata() {
    let place = place("");
    let long = format!("x={}", "y".repeat(1025));
    for meta in ["", "x", "=x", "a b=c", "x=a\nb", &long] {
        place.go(&["exec", "--meta", meta, "--", "echo", "ran"]).refused(&["KEY=VALUE"]);
    }
    place.go(&["exec", "--meta", "x=1", "--meta", "x=2", "--", "echo", "ran"]).refused(&["`x` twice"]);
    let many: Vec<String> = (0..65).map(|n| format!("k{n}=v")).collect();
    let words: Vec<&str> = many.iter().flat_map(|pair| ["--meta", pair]).collect();
    place.go(&[&["exec"], &words[..], &["--", "echo", "ran"]].concat()).refused(&["65", "64"]);
    assert_eq!(place.go(&[&["exec"], &words[2..], &["--", "true"]].concat()).code, 0);
}

#[test]
fn it_is_shown() {
    let place = place("");
    let shown = place.go(&["policy", "show", "mine", "--output", "json"]).json();
    assert_eq!(shown["strict_when"]["words"], serde_json::json!(["payments", "Crypto"]));
    let listed = place.go(&["policy", "list"]).stdout;
    let line = listed.lines().find(|line| line.starts_with("mine")).expect("it is listed");
    assert!(line.contains("strict for some"), "{line}");
    // Built-in ones have none.
    for line in listed.lines().filter(|line| !line.starts_with("mine")) {
        assert!(!line.contains("strict for some"), "{line}");
    }
}

/// Known holes of a runtime are no layer of the host's: a policy may ask for one without.
#[test]
fn a_patched_runtime_may_be_required() {
    let place = Place::new();
    place.define("patched", "require = [\"patched-runtime\"]\nallow_file_write = true");
    assert_eq!(place.go(&["exec", "--policy", "patched", "--", "true"]).code, 0);
    if has("runsc") {
        let ran = place.go(&["exec", "--policy", "patched", "--runtime", "runsc", "--", "true"]);
        let old = place.go(&["doctor"]).stdout.contains("CVE-2024-10026");
        assert_eq!(ran.code == 125 && ran.stderr.contains("CVE-2024-10026"), old, "{}", ran.stderr);
    }
}
