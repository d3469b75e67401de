//! What a program leaves in its working directory and somebody wants to have.

use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::Value;

use crate::harness::*;

const LEAVES: &str = "import os\n\
    for name in ('a.csv', 'b.txt', 'out/c.csv', 'out/deep/d.json', 'out/deep/e.csv'):\n\
    \x20   os.makedirs(os.path.dirname('./' + name), exist_ok=True)\n\
    \x20   open(name, 'w').write('it is ' + name)\n";

fn collected(place: &Place, globs: &[&str]) -> (Ran, Vec<String>) {
    let file = place.write("work/a.py", LEAVES);
    let to = place.path("artifacts");
    let _ = std::fs::remove_dir_all(&to);
    let mut words = vec![file.into_os_string(), "--artifacts".into(), to.into_os_string()];
    globs.iter().for_each(|glob| words.extend(["--collect".into(), glob.into()]));
    let ran = place.run(words).go().passes();
    let files = place.files(&["work", "home"]);
    let names: Vec<String> = files.iter().map(|name| name.trim_start_matches("artifacts/").to_owned()).collect();
    let mut listed: Vec<&str> = vec![];
    for artifact in ran.outcome["artifacts"].as_array().expect("a list") {
        let name = artifact["path"].as_str().expect("a name");
        let bytes = std::fs::read(place.path("artifacts").join(name)).expect("it was copied");
        assert_eq!(bytes, format!("it is {name}").as_bytes());
        assert_eq!(artifact["bytes"], bytes.len());
        assert_eq!(artifact["sha256"].as_str().expect("a hash"), sha256(&place.path("artifacts").join(name)));
        listed.push(name);
    }
    listed.sort_unstable();
    assert_eq!(listed, names);
    (ran, names)
}

fn sha256(path: &std::path::Path) -> String {
    let output = std::process::Command::new("sha256sum").arg(path).output().expect("sha256sum is installed");
    String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn globs_say_which() {
    let place = Place::new();
    for (globs, names) in [
        (&[][..], &["a.csv", "b.txt", "out/c.csv", "out/deep/d.json", "out/deep/e.csv"][..]),
        (&["*.csv"], &["a.csv"]),
        (&["**/*.csv"], &["a.csv", "out/c.csv", "out/deep/e.csv"]),
        (&["out/*"], &["out/c.csv"]),
        (&["out/**"], &["out/c.csv", "out/deep/d.json", "out/deep/e.csv"]),
        (&["?.txt", "out/deep/d.json"], &["b.txt", "out/deep/d.json"]),
        (&["*.csv", "a.*"], &["a.csv"]),
        (&["**"], &["a.csv", "b.txt", "out/c.csv", "out/deep/d.json", "out/deep/e.csv"]),
    ] {
        let (ran, found) = collected(&place, globs);
        assert_eq!(found, names, "{globs:?}");
        assert_eq!(ran.outcome["skipped_checks"], Value::Array(vec![]), "{globs:?}");
    }
}

#[test]
fn a_glob_that_matches_nothing_is_said() {
    let place = Place::new();
    for glob in ["*.pdf", "out", "/work/a.csv", "../*", "work/a.csv"] {
        let (ran, found) = collected(&place, &[glob, "b.txt"]);
        assert_eq!(found, ["b.txt"], "{glob}");
        let skipped = ran.outcome["skipped_checks"].as_array().expect("a list");
        assert_eq!(skipped.len(), 1, "{glob}: {skipped:?}");
        assert!(skipped[0]["check"].as_str().is_some_and(|check| check.contains(glob)), "{skipped:?}");
        assert!(skipped[0]["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{skipped:?}");
    }
    let file = place.path("work/a.py");
    let words = [file.as_os_str(), "--artifacts".as_ref(), "new".as_ref(), "--collect".as_ref(), "*.pdf".as_ref()];
    let text = place.text(words).go();
    assert_eq!((text.code, text.stderr.lines().count()), (0, 1), "{}", text.stderr);
    assert!(text.stderr.starts_with("hotcell: ") && text.stderr.contains("*.pdf"), "{}", text.stderr);
}

#[test]
fn only_regular_files_are_copied() {
    let place = Place::new();
    place.write("secret", "of the host");
    let source = format!(
        "import os, socket\nos.symlink('/etc/passwd', 'link')\nos.symlink('{}', 'host')\nos.symlink('/', 'root')\n\
         os.mkfifo('fifo')\nos.mkdir('empty')\nopen('fine', 'w').write('fine')\nos.symlink('fine', 'inner')\n\
         os.symlink('loop', 'loop')\nos.link('fine', 'hard')\n",
        place.path("secret").display()
    );
    let file = place.write("work/a.py", source);
    for globs in [&[][..], &["*", "link", "fifo", "host/*", "root/etc/*", "**"]] {
        let _ = std::fs::remove_dir_all(place.path("artifacts"));
        let mut words = vec![file.clone().into_os_string(), "--artifacts".into(), place.path("artifacts").into()];
        globs.iter().for_each(|glob| words.extend(["--collect".into(), glob.into()]));
        place.run(words).go().passes();
        let names = place.files(&["work", "home", "secret"]);
        assert_eq!(names, ["artifacts/fine", "artifacts/hard"], "{globs:?}");
        assert_eq!(std::fs::read_to_string(place.path("artifacts/hard")).expect("text"), "fine");
    }
}

#[test]
fn what_fails_leaves_its_artifacts_too() {
    let (place, ran) = with_time_enough(
        Duration::from_millis(500),
        |limit| {
            let place = Place::new();
            let source = "open('log', 'w').write('so far')\nprint('written', flush=True)\nwhile True: pass";
            let file = place.write("work/a.py", source);
            let limit = in_ms(limit);
            let words =
                [file.as_os_str(), "--timeout".as_ref(), limit.as_ref(), "--artifacts".as_ref(), "out".as_ref()];
            let ran = place.run(words).go();
            (place, ran)
        },
        |(_, ran)| ran.out() == "written\n",
    );
    let ran = ran.fails("TimeoutViolation", 124);
    assert_eq!(ran.outcome["artifacts"][0]["path"], "log");
    assert_eq!(std::fs::read_to_string(place.path("work/out/log")).expect("it was copied"), "so far");
}

/// What a compiler makes is no artifact of the run's.
#[test]
fn a_build_product_is_no_artifact() {
    let place = Place::new();
    let file =
        place.write("work/a.c", "#include <stdio.h>\nint main(void) { fclose(fopen(\"made\", \"w\")); return 0; }\n");
    for n in ["1", "2"] {
        let ran = place.run([file.as_os_str(), "--artifacts".as_ref(), n.as_ref()]).go().passes();
        assert_eq!(
            place.files(&["home", "work/a.c"]),
            (1..=n.parse().expect("a number")).map(|n| format!("work/{n}/made")).collect::<Vec<_>>()
        );
        assert_eq!(ran.outcome["artifacts"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_directory_that_is_not_new_is_refused() {
    let place = Place::new();
    let file = place.write("work/a.py", "open('x', 'w')");
    place.write("work/full/older", "as it was");
    let run = |dir: &str| place.run([file.as_os_str(), "--artifacts".as_ref(), dir.as_ref()]).go();
    run("full").refused(&["full", "not empty"]);
    run("a.py").refused(&["a.py"]);
    place.run([file.as_os_str(), "--collect".as_ref(), "*".as_ref()]).go().refused(&["--artifacts"]);
    std::fs::create_dir(place.path("work/empty")).expect("ours");
    run("empty").passes();
    run("deep/and/new").passes();
    assert_eq!(place.files(&["home"]), ["work/a.py", "work/deep/and/new/x", "work/empty/x", "work/full/older"]);
}

#[test]
fn the_name_sandbox_run_is_hotcell_run() {
    let place = Place::new();
    let file = place.write("work/a.py", "import sys; print(sys.argv[1:])");
    symlink(binary(), place.path("sandbox-run")).expect("ours");
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(place.path("sandbox-run"));
        command.arg(&file).args(words).env("HOME", place.path("home")).output().expect("it starts")
    };
    let text = run(&["--", "a"]);
    assert_eq!((text.status.code(), text.stdout.as_slice()), (Some(0), b"['a']\n".as_slice()));
    let json = run(&["--output", "json", "--", "run"]);
    let outcome: Value = serde_json::from_slice(&json.stdout).expect("an Outcome");
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"['run']\n".into()));
    assert_eq!(run(&["--frobnicate"]).status.code(), Some(125));
}

#[test]
fn a_result_is_written_beside_the_output() {
    let place = Place::new();
    let file = place.write("work/a.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 4; }\n");
    let text = place.text([file.as_os_str(), "--result".as_ref(), "result.json".as_ref()]).go();
    assert_eq!((text.code, text.out().as_str()), (4, "hello\n"));
    let written = std::fs::read(place.path("work/result.json")).expect("it was written");
    let outcome: Value = serde_json::from_slice(&written).expect("an Outcome");
    assert_eq!((&outcome["failure_class"], &outcome["stdout"]), (&"RuntimeError".into(), &"hello\n".into()));
    let names: Vec<_> = outcome["phases"].as_array().into_iter().flatten().map(|phase| &phase["name"]).collect();
    assert_eq!(names, ["compile", "run"]);
    assert_eq!(place.files(&["home/.cache"]), ["work/a.c", "work/result.json"]);
}
