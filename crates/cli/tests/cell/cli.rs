//! The command line: what goes in, what comes out, and where.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::*;

#[test]
fn json_is_the_outcome_and_nothing_else() {
    for cell in [
        exec(&["sh", "-c", "echo out; echo err >&2"]),
        exec(&["sh", "-c", "exit 3"]),
        exec(&["sleep", "600"]).flag("--timeout", "100ms"),
        exec(&["no-such-program"]),
        attack("ptrace"),
    ] {
        let ran = cell.run();
        assert!(ran.outcome.is_object(), "{}", String::from_utf8_lossy(&ran.stdout));
        assert_eq!(ran.stderr, "");
        has_every_field(&ran.outcome);
        fits(&ran.outcome, &schema(), &schema(), "outcome");
    }
}

/// Every field of the contract, nulls explicit.
fn has_every_field(outcome: &Value) {
    let fields = "schema_version request_id attempt mode status tier failure_class terminal_event exit_code \
        duration_ms stdout stderr artifacts skipped_checks created_at signal usage violations evidence enforced \
        degraded runtime_config phases timings retry_class output";
    for field in fields.split_whitespace() {
        assert!(outcome.get(field).is_some(), "no `{field}` in {outcome:#}");
    }
    let usage = "wall_ms cpu_ms memory_peak_bytes processes_peak output_bytes scratch_bytes read_bytes write_bytes";
    for field in usage.split_whitespace() {
        assert!(outcome["usage"].get(field).is_some(), "no usage of `{field}`");
    }
    for field in "admit cgroup clone mounts exec run collect record".split_whitespace() {
        assert!(outcome["timings"][field].is_u64(), "no timing of `{field}`");
    }
    for violation in outcome["violations"].as_array().expect("a list") {
        for field in "syscall path address limit observed pid note".split_whitespace() {
            assert!(violation["detail"].get(field).is_some(), "no `{field}` in {violation}");
        }
    }
    assert_eq!(outcome["schema_version"], "1.0");
    assert_eq!(
        (&outcome["attempt"], &outcome["mode"], &outcome["tier"]),
        (&json!(1), &json!("balanced"), &json!("L0"))
    );
}

/// What a run does without is not among what is enforced.
#[test]
fn what_is_enforced_is_that_of_the_run() {
    let mechanism = |flags: &[&str], layer: &str| {
        let run = flags.chunks(2).fold(exec(&["true"]), |run, flag| run.flag(flag[0], flag[1])).run();
        run.passes();
        let all = run.outcome["enforced"].as_array().expect("a list").clone();
        all.iter().find(|entry| entry["layer"] == layer).map(|entry| entry["mechanism"].to_string())
    };
    let has = |flags: &[&str], layer: &str, word: &str| mechanism(flags, layer).is_some_and(|how| how.contains(word));
    assert!(has(&[], "namespaces", "network") && !has(&["--network", "full"], "namespaces", "network"));
    assert!(has(&[], "filesystem", "writable tmpfs") && !has(&["--scratch", "0"], "filesystem", "writable tmpfs"));
    if has_groups() && mechanism(&[], "cpu").is_some() {
        let everything = std::thread::available_parallelism().expect("a number").to_string();
        assert!(has(&["--cpus", "0.5"], "cpu", "cpu."), "{:?}", mechanism(&["--cpus", "0.5"], "cpu"));
        assert!(has(&["--cpus", &everything], "cpu", "no quota"), "{:?}", mechanism(&["--cpus", &everything], "cpu"));
    }
}

fn schema() -> Value {
    let output = Command::new(binary()).arg("schema").output().expect("hotcell starts");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("the schema is JSON")
}

/// As much of JSON Schema as ours uses: types, required fields, enumerations, references, alternatives.
fn fits(value: &Value, schema: &Value, whole: &Value, place: &str) {
    if let Err(why) = check(value, schema, whole, place) {
        panic!("{why}");
    }
}

fn check(value: &Value, schema: &Value, whole: &Value, place: &str) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.strip_prefix('#').expect("references are local");
        return check(value, whole.pointer(pointer).expect("it leads somewhere"), whole, place);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(ways) = schema[key].as_array() {
            let fits = ways.iter().any(|way| check(value, way, whole, place).is_ok());
            return if fits { Ok(()) } else { Err(format!("{place}: {value} is none of {ways:?}")) };
        }
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|all| !all.contains(value)) {
        return Err(format!("{place}: {value} is not in {allowed:?}"));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Err(format!("{place}: {value} is not {}", schema["const"]));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let is = |name: &&str| match *name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => value.is_null(),
    };
    if !types.is_empty() && !types.iter().any(is) {
        return Err(format!("{place}: {value} is no {types:?}"));
    }
    if let Value::Object(fields) = value {
        for name in schema["required"].as_array().into_iter().flatten() {
            let name = name.as_str().expect("a name");
            if !fields.contains_key(name) {
                return Err(format!("{place}: no `{name}`"));
            }
        }
        for (name, field) in fields {
            let Some(inner) = schema["properties"].get(name) else {
                return Err(format!("{place}: `{name}` is not in the schema"));
            };
            check(field, inner, whole, &format!("{place}.{name}"))?;
        }
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        check(item, &schema["items"], whole, &format!("{place}[{at}]"))?;
    }
    Ok(())
}

#[test]
fn the_result_goes_to_a_file_too() {
    for json in [true, false] {
        let cell = exec(&["sh", "-c", "echo out; echo err >&2; exit 3"]).flag("--result", "result.json");
        let (mut command, watch) = if json { cell } else { cell.text() }.prepare();
        let output = command.stdin(Stdio::null()).output().expect("hotcell starts");
        let result = watch.result();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (&result["stdout"], &result["stderr"], &result["exit_code"]),
            (&json!("out\n"), &json!("err\n"), &json!(3))
        );
        has_every_field(&result);
        if json {
            let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!(shown, result);
        } else {
            assert_eq!(output.stdout, b"out\n");
        }
        watch.nothing_left();
    }
}

#[test]
fn the_summary_is_for_what_is_no_pass() {
    let say = |code: &str| exec(&["sh", "-c", &format!("echo out; echo err >&2; exit {code}")]).text();
    let ran = say("0").run();
    assert_eq!((ran.code, ran.stdout.as_slice(), ran.stderr.as_str()), (0, &b"out\n"[..], "err\n"));
    let ran = say("3").run();
    assert_eq!((ran.code, ran.stdout.as_slice()), (3, &b"out\n"[..]));
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert!(lines.len() == 2 && lines[0] == "err", "{}", ran.stderr);
    assert!(lines[1].starts_with("hotcell: fail RuntimeError: exit 3 ("), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\x1b'), "colour is for terminals");
    for quiet in ["--quiet", "-q"] {
        let ran = say("3").word(quiet).run();
        assert_eq!((ran.code, ran.stderr.as_str()), (3, "err\n"));
    }
    let ran = exec(&["sleep", "600"]).flag("--timeout", "200ms").text().run();
    assert_eq!(ran.code, 124);
    assert!(ran.stderr.starts_with("hotcell: fail TimeoutViolation: wall time over 200 ms ("), "{}", ran.stderr);
}

#[test]
fn on_a_terminal_there_is_always_a_summary() {
    // Python's pty gives hotcell a terminal and copies what is written there to its own stdout.
    let on_terminal = |cell: Cell| {
        let (command, watch) = cell.text().prepare();
        let source =
            "import os, pty, sys\nstatus = pty.spawn(sys.argv[1:])\nsys.exit(os.waitstatus_to_exitcode(status))";
        let mut python = Command::new("python3");
        python.args(["-c", source]).arg(command.get_program()).args(command.get_args());
        let output = around(python, &command).stdin(Stdio::null()).output().expect("python3 starts");
        watch.nothing_left();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, text) = on_terminal(exec(&["echo", "hello"]));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("hello") && text.contains("hotcell: ") && text.contains("pass"), "{text}");
    assert!(text.contains("\x1b["), "no colour: {text}");
    let (code, text) = on_terminal(exec(&["sh", "-c", "test -t 0 || test -t 1 || echo no terminal inside; exit 3"]));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("no terminal inside") && text.contains("RuntimeError"), "{text}");
    let (code, text) = on_terminal(exec(&["echo", "hello"]).word("--quiet"));
    assert_eq!((code, text.trim()), (Some(0), "hello"));
}

#[test]
fn the_request_id_is_the_callers_or_a_new_one() {
    let ran = exec(&["true"]).flag("--request-id", "my request/7").run();
    assert_eq!(ran.outcome["request_id"], "my request/7");
    let ids: Vec<String> =
        (0..3).map(|_| exec(&["true"]).run().outcome["request_id"].as_str().expect("text").to_owned()).collect();
    assert!(ids.iter().all(|id| id.len() == 36 && id.as_bytes()[14] == b'7'), "{ids:?}");
    assert!(ids[0] < ids[1] && ids[1] < ids[2], "UUIDv7 grow: {ids:?}");
}

#[test]
fn the_environment_is_the_documented_one() {
    let ran = exec(&["env"]).env("NOT_FOR_YOU", "secret").run();
    ran.passes();
    let mut lines: Vec<_> = ran.out().lines().filter(|l| !l.starts_with("HOTCELL_TEST_MARK=")).collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "HOME=/work",
            "LANG=C.UTF-8",
            "LOGNAME=cell",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONDONTWRITEBYTECODE=1",
            "TERM=dumb",
            "TMPDIR=/tmp",
            "USER=cell",
        ]
    );
}

#[test]
fn variables_are_added_replaced_and_passed_on() {
    let ran = exec(&["sh", "-c", "echo \"$A|$HOME|$PASSED|$EMPTY|$B\""])
        .env("PASSED", "from the caller")
        .flag("--env", "A=1=2")
        .flag("--env", "HOME=/tmp")
        .flag("--env", "PASSED")
        .flag("--env", "EMPTY=")
        .flag("--env", "B=first")
        .flag("--env", "B=last")
        .run();
    ran.passes();
    assert_eq!(ran.out(), "1=2|/tmp|from the caller||last\n");
}

#[test]
fn the_cell_looks_as_it_says() {
    let ran = exec(&["sh", "-c", "pwd; hostname; id -un; id -u; ls -A /work /tmp; ls /"]).run();
    ran.passes();
    let lines: Vec<_> = ran.out().lines().collect();
    assert_eq!(&lines[..3], ["/work", "cell", "cell"], "{}", ran.out());
    assert_ne!(lines[3], "0");
    for never in ["home", "root", "sys", "mnt", "var"] {
        assert!(!lines.contains(&never), "/{never} is in the cell: {}", ran.out());
    }
}

#[test]
fn a_directory_is_seen_read_only() {
    let with_files = |program: &[&str]| {
        let cell = exec(program).flag("--input", "input");
        let dir = cell.dir().join("input/below");
        std::fs::create_dir_all(&dir).expect("the test's own directory");
        std::fs::write(dir.join("file"), "content").expect("the test's own directory");
        cell.run()
    };
    let ran = with_files(&["sh", "-c", "cat /src/below/file; pwd"]);
    ran.passes();
    assert_eq!(ran.out(), "content/work\n");
    let ran = with_files(&["rm", "/src/below/file"]);
    ran.violates("FilesystemWriteViolation");
    assert_eq!(ran.attempts("FilesystemWriteViolation")[0]["path"], "/src/below/file");
}

#[test]
fn sources_come_from_a_file_from_words_or_from_standard_input() {
    let source = "import sys; print(sys.argv, sys.stdin.read())";
    let ran = python(source).program(&["a", "--flag", "--", "-x"]).stdin(b"in").run();
    ran.passes();
    assert_eq!(ran.out(), "['/src/main.py', 'a', '--flag', '--', '-x'] in\n");
    let ran = run_words(&["--code", source]).program(&["b"]).stdin(b"in").run();
    ran.passes();
    assert_eq!(ran.out(), "['/src/main.py', 'b'] in\n");
    // The source was the input: the program finds it at its end.
    let ran = run_words(&["-"]).program(&["c"]).stdin(source.as_bytes()).run();
    ran.passes();
    assert_eq!(ran.out(), "['/src/main.py', 'c'] \n");
    let ran = run_words(&["--code", ""]).run();
    ran.passes();
    assert_eq!(ran.outcome["runtime_config"]["language"], "python");
}

#[test]
fn the_language_may_be_said() {
    let cell = run_words(&["input.txt", "--lang", "python"]);
    std::fs::write(cell.dir().join("input.txt"), "print(__file__)").expect("the test's own directory");
    let ran = cell.run();
    ran.passes();
    assert_eq!(ran.out(), "/src/input.txt\n");
}

#[test]
fn exec_looks_in_path_as_a_shell_does() {
    let ran = exec(&["sh", "-c", "echo $0"]).run();
    ran.passes();
    let ran = exec(&["hostile", "exit", "7"])
        .flag("--env", "PATH=/nonexistent:/src")
        .flag("--input", hostile().parent().expect("it is in a directory"))
        .run();
    ran.exits(7);
    // Words are words, and no shell reads them.
    let ran = exec(&["echo", "$HOME", "a  b", "*", "", "ü", "--", "-n"]).run();
    ran.passes();
    assert_eq!(ran.out(), "$HOME a  b *  ü -- -n\n");
    let argv = ran.outcome["runtime_config"]["argv"].as_array().expect("a list");
    assert_eq!(argv.len(), 8);
}

#[test]
fn sandbox_run_is_hotcell_run() {
    let (command, watch) = run_words(&["--code", "print('as sandbox-run')"]).prepare();
    let mut linked = Command::new(command.get_program());
    // All but the verb, which the name stands for.
    linked.arg0("/usr/local/bin/sandbox-run").args(command.get_args().skip(1));
    let output = around(linked, &command).stdin(Stdio::null()).output().expect("hotcell starts");
    let outcome: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((output.status.code(), &outcome["stdout"]), (Some(0), &json!("as sandbox-run\n")));
    watch.nothing_left();
}

#[test]
fn help_and_version_are_answers() {
    for words in [&["--help"][..], &["-h"], &["--version"], &["run", "--help"], &["exec", "-h"]] {
        let output = Command::new(binary()).args(words).output().expect("hotcell starts");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{words:?}");
        assert!(!output.stdout.is_empty());
    }
    let help = Command::new(binary()).args(["exec", "-h"]).output().expect("hotcell starts");
    let lines = String::from_utf8_lossy(&help.stdout).lines().count();
    assert!(lines <= 50, "-h fits a screen, and has {lines} lines");
}

#[test]
fn the_doctor_finds_this_host_well() {
    let doctor = |words: &[&str]| {
        let mut command = Command::new(binary());
        command.arg("doctor").args(words).stdin(Stdio::null());
        become_user(&mut command);
        let output = command.output().expect("hotcell starts");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = doctor(&[]);
    let names = ["kernel", "user namespaces", "seccomp", "landlock", "cgroup", "languages", "cell"];
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
    assert!(text.ends_with("cells run here\n") && !text.contains('\x1b'), "{text}");
    let json: Value = serde_json::from_str(&doctor(&["--output", "json"])).expect("JSON");
    assert_eq!(json["ok"], true);
    let checks = json["checks"].as_array().expect("a list");
    for name in names {
        let check = checks.iter().find(|check| check["name"] == name).expect("it is checked");
        assert!(check["present"].is_boolean() && check["detail"].is_string(), "{check}");
        assert!(check["present"] == true || check["remedy"].is_string() || check["needed"] == false, "{check}");
    }
    let cgroup = checks.iter().find(|check| check["name"] == "cgroup").expect("it is checked");
    assert_eq!(cgroup["present"], has_groups());
}
