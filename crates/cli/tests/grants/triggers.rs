//! Runs that somebody else has allowed are raised by their policy like any other.

use crate::desk::*;
use crate::harness::*;

const WHEN: &str = "allow_file_write = true\nstrict_when = { paths = [\"**/auth/**\"], words = [\"payments\"] }";

fn lacks_runsc() -> bool {
    let lacks = !has("runsc");
    if lacks {
        skip("runsc is not installed");
    }
    lacks
}

#[test]
fn under_a_lease_by_what_it_shows() {
    if lacks_runsc() {
        return;
    }
    let desk = Desk::new();
    desk.define("mine", WHEN);
    desk.file("auth/login", "x");
    desk.file("deep/er/auth/login", "x");
    let backend = |allow: &str, meta: &str| {
        let lease = desk.issue(&["--allow", allow], &["find", "/repo"]);
        let outcome = desk.outcome(&lease, &["--policy", "mine", "--meta", meta], &["find", "/repo"]);
        assert_eq!(outcome["status"], "pass", "{outcome:#}");
        let config = &outcome["runtime_config"];
        assert_eq!(config["raised_by"], desk.newest()["raised_by"]);
        (config["backend"].as_str().expect("a text").to_owned(), config["raised_by"].clone())
    };
    for allow in ["repo://auth/login", "repo://auth/**", "repo://deep/**"] {
        let (backend, raised_by) = backend(allow, "a=b");
        assert_eq!(backend, "oci/runsc", "{allow}");
        assert!(raised_by.as_str().is_some_and(|by| by.contains("`**/auth/**`")), "{allow}: {raised_by}");
    }
    assert_eq!(backend("repo://a/**", "a=payments").0, "oci/runsc");
    // What is in the repository and not in the cell is no reason.
    assert_eq!(backend("repo://a/**", "a=b"), ("native".into(), serde_json::Value::Null));
}

#[test]
fn with_an_approval_and_in_a_capsule() {
    if lacks_runsc() {
        return;
    }
    let place = Place::new();
    let capsule = "python = \"capsule\"\nallowed_languages = [\"python\"]\nrequire_approval = true";
    place.define("mine", &format!("{capsule}\n{WHEN}"));
    let run = |meta: &str| {
        place.go(&["run", "--policy", "mine", "--output", "json", "--meta", meta, "--code", "print('ran')"])
    };
    let granted = |meta: &str| {
        let asked = run(meta);
        asked.refused(&["approve show"]);
        let id = asked.stderr.split("approve show ").nth(1).and_then(|rest| rest.split('`').next()).expect("an id");
        assert_eq!(place.go(&["approve", "grant", id, "--by", "me"]).code, 0);
        run(meta).json()
    };
    for (meta, backend) in [("team=payments", "oci/runsc"), ("team=mail", "native")] {
        let outcome = granted(meta);
        assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"ran\n".into()), "{outcome:#}");
        assert_eq!(outcome["runtime_config"]["backend"], backend);
    }
    // An approval is for very this: what was said of it too.
    let asked = run("team=mail");
    let id = asked.stderr.split("approve show ").nth(1).and_then(|rest| rest.split('`').next()).expect("an id");
    assert_eq!(place.go(&["approve", "grant", id, "--by", "me"]).code, 0);
    run("team=chat").refused(&["approve show"]);
    assert_eq!(run("team=mail").code, 0);
}
