//! Bad input: one clear sentence, no panic, the right exit status, nothing run and nothing left.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::harness::*;

/// One sentence of ours on one line, and nothing else anywhere.
#[track_caller]
fn one_sentence(ran: &Ran, parts: &[&str]) {
    for part in parts {
        ran.refused(part);
    }
    let line = ran.stderr.strip_suffix('\n').unwrap_or(&ran.stderr);
    assert!(line.starts_with("hotcell: error: ") && !line.contains('\n'), "not one sentence: {}", ran.stderr);
    assert!(ran.stdout.is_empty(), "{}", String::from_utf8_lossy(&ran.stdout));
}

/// Words that are no command line: what is wrong is in the first line, and it names the word.
#[track_caller]
fn bad_usage(words: &[&str], part: &str) {
    let output =
        std::process::Command::new(binary()).args(words).stdin(Stdio::null()).output().expect("hotcell starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{words:?}: {stderr}");
    let first = stderr.lines().next().unwrap_or_default();
    assert!(first.contains(part), "{words:?}: `{part}` is not in: {stderr}");
    assert!(!stderr.contains("panicked") && output.stdout.is_empty(), "{stderr}");
}

#[test]
fn words_that_are_no_command_line() {
    bad_usage(&["frobnicate"], "frobnicate");
    bad_usage(&["exec", "--frobnicate", "--", "true"], "--frobnicate");
    bad_usage(&["exec", "true"], "true");
    bad_usage(&["run", "--code", "1", "file.py"], "--code");
    bad_usage(&["exec", "--output", "xml", "--", "true"], "xml");
    bad_usage(&["exec", "--network", "some", "--", "true"], "some");
    bad_usage(&["exec", "--timeout", "--", "true"], "--timeout");
    bad_usage(&["exec", "--timeout", "1s", "--timeout", "2s", "--", "true"], "--timeout");
}

#[test]
fn values_that_are_none() {
    for (flag, value) in [
        ("--memory", "lots"),
        ("--memory", "-1"),
        ("--memory", "1x"),
        ("--memory", ""),
        ("--timeout", "soon"),
        ("--timeout", "-1s"),
        ("--timeout", "nan"),
        ("--timeout", "99999999999999999999999999s"),
        ("--cpu-time", "1 week"),
        ("--processes", "many"),
        ("--processes", "-1"),
        ("--processes", "1.5"),
        ("--cpus", "two"),
        ("--scratch", "1e9"),
        ("--output-limit", "10 m m"),
        ("--open-files", "0x10"),
    ] {
        bad_usage(&["exec", &format!("{flag}={value}"), "--", "true"], value);
    }
}

#[test]
fn limits_that_are_absurd() {
    for (flag, value, name) in [
        ("--timeout", "0", "timeout"),
        ("--timeout", "0.4ms", "timeout"),
        ("--timeout", "31000h", "timeout"),
        ("--grace", "2h", "grace"),
        ("--cpu-time", "0", "cpu time"),
        ("--cpus", "0", "cpus"),
        ("--cpus", "-1", "cpus"),
        ("--cpus", "nan", "cpus"),
        ("--cpus", "inf", "cpus"),
        ("--memory", "0", "memory"),
        ("--memory", "1m", "memory"),
        ("--memory", "1p", "memory"),
        ("--processes", "0", "processes"),
        ("--processes", "99999999999", "processes"),
        ("--open-files", "0", "open files"),
        ("--open-files", "3", "open files"),
        ("--file-size", "0", "file size"),
        ("--scratch", "1p", "scratch"),
        ("--scratch", "16383.9999999999p", "scratch"),
        ("--scratch-inodes", "0", "scratch inodes"),
        ("--output-limit", "0", "output"),
        ("--output-limit", "2p", "output"),
    ] {
        println!("{flag}={value}");
        let ran = exec(&["true"]).word(&format!("{flag}={value}")).run();
        one_sentence(&ran, &[name, "out of range"]);
    }
}

#[test]
fn limits_that_are_large_are_not_absurd() {
    for (flag, value) in [
        ("--timeout", "700h"),
        ("--cpu-time", "8000h"),
        ("--memory", "512t"),
        ("--cpus", "4096"),
        ("--processes", "1048576"),
        ("--open-files", "1048576"),
        ("--file-size", "1p"),
        ("--scratch", "512t"),
        ("--scratch-inodes", "2147483648"),
        ("--output-limit", "1p"),
    ] {
        println!("{flag} {value}");
        exec(&["true"]).flag(flag, value).run().passes();
    }
}

#[test]
fn limits_that_are_small_are_not_absurd() {
    for (flag, value) in [
        ("--memory", "8m"),
        ("--processes", "1"),
        ("--open-files", "8"),
        ("--scratch", "1m"),
        ("--scratch-inodes", "1"),
        ("--cpus", "0.05"),
        ("--output-limit", "1"),
        ("--file-size", "1"),
    ] {
        println!("{flag} {value}");
        attack("exit").program(&["0"]).flag(flag, value).run().passes();
    }
}

#[test]
fn sources_that_cannot_be_read() {
    let run = |file: &str| run_file(file).run();
    one_sentence(&run("/nonexistent/main.py"), &["/nonexistent/main.py", "No such file"]);
    one_sentence(&run("input.d.py"), &["input.d.py", "does not say its language"]);
    one_sentence(&run_file("input.d.py").flag("--lang", "python").run(), &["input.d.py", "main.py"]);
    one_sentence(&run_file("input.d.py").flag("--entry", "nothing.py").run(), &["nothing.py", "input.d.py"]);
    one_sentence(&run_file("input.d.py").flag("--entry", "../main.py").run(), &["../main.py", "leads out"]);
    one_sentence(&run("input.txt"), &["input.txt", "--lang"]);
    one_sentence(&run("input"), &["input", "--lang"]);
    one_sentence(&run_file("main.py").flag("--lang", "cobol").run(), &["cobol", "python"]);
    if as_user() {
        one_sentence(&run("input.secret.py"), &["input.secret.py", "Permission denied"]);
    } else {
        skip("no file is unreadable for root");
    }
}

/// `hotcell run` in a directory with a few things that are not to be run.
fn run_file(file: &str) -> Cell {
    let cell = run_words(&[file]);
    let dir = cell.dir().join("input.d.py");
    std::fs::create_dir_all(&dir).expect("the test's own directory");
    for name in ["input.txt", "input", "input.secret.py", "main.py"] {
        std::fs::write(cell.dir().join(name), "print(1)").expect("the test's own directory");
    }
    let mode = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(cell.dir().join("input.secret.py"), mode).expect("it is ours");
    cell
}

#[test]
fn no_program() {
    one_sentence(&exec(&[]).run(), &["no program was given"]);
    one_sentence(&exec(&[""]).run(), &["no program was given"]);
}

#[test]
fn environments_that_are_none() {
    one_sentence(&exec(&["true"]).flag("--env", "=x").run(), &["environment", "empty"]);
    one_sentence(&exec(&["true"]).flag("--env", "NOT_SET_ANYWHERE").run(), &["NOT_SET_ANYWHERE", "not set"]);
    one_sentence(&exec(&["true"]).flag("--env", "").run(), &["environment"]);
}

#[test]
fn bytes_that_are_no_source() {
    let ran = run_words(&["-"]).stdin(b"x = 1\n\xff\xfe\x00").run();
    one_sentence(&ran, &["not UTF-8", "byte 6"]);
    // Not every version of Python minds this one.
    let ran = run_words(&["-"]).stdin(b"print(1)\0").run();
    assert!(ran.classes().is_empty() && ran.code <= 1, "{}", ran.outcome);
}

#[test]
fn no_interpreter() {
    let ran = python("print(1)").env("PATH", "/nonexistent").run();
    one_sentence(&ran, &["python3", "install"]);
    let ran = python("print(1)").env("PATH", "").run();
    one_sentence(&ran, &["python3", "install"]);
}

#[test]
fn programs_that_cannot_be_executed() {
    let cannot = |program: &str, code: i32, part: &str| {
        println!("{program}");
        let cell = || {
            let cell = exec(&[program]).flag("--input", "input");
            let dir = cell.dir().join("input");
            std::fs::create_dir_all(&dir).expect("the test's own directory");
            let put = |name: &str, bytes: &[u8], mode| write_program(&dir.join(name), bytes, mode);
            put("plain", b"echo hello\n", 0o644);
            put("no-shebang", b"echo hello\n", 0o755);
            put("no-interpreter", b"#!/nonexistent/sh\n", 0o755);
            put("empty", b"", 0o755);
            put("broken", b"\x7fELF\x02\x01\x01 and no more", 0o755);
            cell
        };
        let ran = cell().run();
        assert_eq!((ran.code, ran.class()), (code, "SetupFailure"), "{}", ran.outcome);
        assert_eq!(ran.outcome["exit_code"], serde_json::Value::Null);
        let message = ran.outcome["message"].as_str().expect("a sentence");
        assert!(message.contains(program) && message.contains(part), "{message}");
        let ran = cell().text().run();
        assert_eq!((ran.code, ran.stdout.len()), (code, 0), "{}", ran.stderr);
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    };
    cannot("no-such-program", 127, "not found");
    cannot("/no/such/program", 127, "not found");
    cannot("/src/plain", 126, "executable");
    cannot("/src", 126, "not a program");
    cannot("/src/plain/below", 127, "not found");
    cannot("/src/no-shebang", 126, "#!");
    cannot("/src/empty", 126, "#!");
    cannot("/src/broken", 126, "format");
    // It is there: what is not found is what its first line asks for.
    cannot("/src/no-interpreter", 127, "#!");
}

#[test]
fn results_that_cannot_be_written() {
    let ran = exec(&["true"]).flag("--result", "/nonexistent/result.json").run();
    one_sentence(&ran, &["/nonexistent/result.json", "No such file"]);
    let ran = exec(&["true"]).flag("--result", "/proc").run();
    one_sentence(&ran, &["/proc", "irectory"]);
    if as_user() {
        let ran = exec(&["true"]).flag("--result", "/usr/result.json").run();
        one_sentence(&ran, &["/usr/result.json"]);
    }
}

#[test]
fn a_refusal_does_not_touch_an_older_result() {
    for (flag, value) in [("--cpus", "0"), ("--require", "magic"), ("--input", "/nonexistent")] {
        let cell = exec(&["true"]).flag("--result", "result.json").flag(flag, value);
        let path = cell.dir().join("result.json");
        std::fs::write(&path, "older").expect("the test's own directory");
        if as_user() && is_root() {
            std::os::unix::fs::chown(&path, Some(USER), Some(USER)).expect("root may chown");
        }
        let going = cell.start();
        let kept = going.dir().join("result.json");
        wait_until("the end", || going.processes().is_empty());
        let text = std::fs::read_to_string(kept).expect("it is still there");
        going.finish().refused(value);
        assert_eq!(text, "older", "{flag} {value}");
    }
}

#[test]
fn inputs_that_are_no_directory() {
    let cell = exec(&["true"]).flag("--input", "input");
    std::fs::write(cell.dir().join("input"), "a file").expect("the test's own directory");
    one_sentence(&cell.run(), &["input", "directory"]);
    one_sentence(&exec(&["true"]).flag("--input", "/nonexistent").run(), &["/nonexistent", "No such file"]);
    one_sentence(&exec(&["true"]).flag("--stdin", "/nonexistent").run(), &["/nonexistent", "No such file"]);
    if as_user() {
        one_sentence(&exec(&["true"]).flag("--input", "/proc/1/fd").run(), &["/proc/1/fd", "Permission denied"]);
    }
}

#[test]
fn what_this_version_does_not_have() {
    one_sentence(&exec(&["true"]).flag("--require", "magic").run(), &["magic", "cgroup, landlock or patched-runtime"]);
}

#[test]
fn a_layer_that_is_required() {
    let ran = exec(&["true"]).flag("--require", "cgroup").run();
    if has_groups() {
        ran.passes();
    } else {
        one_sentence(&ran, &["cgroup", "required"]);
        assert!(!ran.stderr.contains("``"), "{}", ran.stderr);
    }
}

#[test]
fn a_source_given_beside_a_directory_is_not_forgotten() {
    // Refused or run: but never another program than the one that was given.
    let with_input = |cell: Cell| {
        let dir = cell.dir().join("input");
        std::fs::create_dir_all(&dir).expect("the test's own directory");
        std::fs::write(dir.join("main.py"), "print('another')").expect("the test's own directory");
        cell.flag("--input", "input").run()
    };
    let given = "print('the one that was given')";
    for ran in [
        with_input(run_words(&["--code", given])),
        with_input(run_words(&["-"]).stdin(given.as_bytes())),
        with_input(python(given)),
    ] {
        assert!(ran.code == 125 || ran.out().contains("given"), "{} {}", ran.code, ran.out());
    }
}
