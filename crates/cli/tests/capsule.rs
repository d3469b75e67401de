//! The capsule, in its cell: known ways out of restricted Python stay closed, honest programs do not notice, what was
//! said and refused is told.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use serde_json::Value;

fn corpus(kind: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/capsule").join(kind);
    let files = std::fs::read_dir(dir).expect("the corpus is there").map(|entry| entry.expect("it can be read").path());
    let mut programs: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "py")).collect();
    programs.sort();
    programs
}

/// `hotcell run words`, with `stdin`.
fn run(words: &[&str], file: Option<&Path>, stdin: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotcell"));
    command.arg("run").args(words).args(file).env("SECRET", "not for the guest");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    // A program may end without reading it.
    let _ = child.stdin.take().expect("it is piped").write_all(stdin.as_bytes());
    child.wait_with_output().expect("it can be waited for")
}

fn code(words: &[&str], source: &str) -> Value {
    let output = run(&[&["--output", "json", "--code", source], words].concat(), None, "");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Every program, two at a time; what `check` finds wrong is collected.
fn all(programs: &[PathBuf], check: impl Fn(&Path) -> Result<(), String> + Sync) {
    let (queue, wrong) = (Mutex::new(programs.iter()), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(program) = { queue.lock().expect("nobody panics with it").next() } {
                    if let Err(why) = check(program) {
                        wrong.lock().expect("nobody panics with it").push(format!("{}: {why}", program.display()));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("nobody panics with it");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), programs.len(), wrong.join("\n"));
}

#[test]
fn no_known_way_out_is_open() {
    let programs = corpus("attacks");
    assert!(programs.len() >= 100, "the corpus has shrunk to {}", programs.len());
    all(&programs, |program| {
        let output = run(&["--capsule", "--output", "json"], Some(program), "first\nsecond\n");
        // Some never come so far.
        if output.status.code() == Some(125) {
            return Ok(());
        }
        let outcome: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
        let text = |stream: &str| outcome[stream].as_str().unwrap_or_default().to_owned();
        let (stdout, stderr) = (text("stdout"), text("stderr"));
        let said = stdout.contains("ESCAPED") || stderr.lines().last().is_some_and(|line| line.contains("ESCAPED"));
        if said || stdout.contains("Zen of Python") {
            return Err(format!("it got out: {stdout}{stderr}"));
        }
        if stderr.contains("capsule.py\", line") || outcome["signal"] != Value::Null {
            return Err(format!("the wrapper broke: {stderr}"));
        }
        // It never came to what the cell would have had to refuse.
        if outcome["violations"] != Value::Array(vec![]) {
            return Err(format!("only the cell stopped it: {}", outcome["violations"]));
        }
        Ok(())
    });
}

#[test]
fn honest_programs_do_not_notice() {
    let state = std::env::temp_dir().join(format!("hotcell-capsule-{}.json", std::process::id()));
    std::fs::write(&state, r#"{"greeting": "hello", "list": [1, {"a": 2}]}"#).expect("it can be written");
    let version = Command::new("python3").args(["-c", "import sys; print(sys.version_info >= (3, 10))"]).output();
    let new = version.is_ok_and(|output| output.stdout == b"True\n");
    let mut programs = corpus("honest");
    let needs_new = |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains("needs 3.10"));
    programs.retain(|path| new || !needs_new(path));
    let words = ["--capsule", "--env", "COLOUR=green", "--state", state.to_str().expect("UTF-8")];
    all(&programs, |program| {
        let output = run(&words, Some(program), "first\nsecond\n");
        let want = std::fs::read(program.with_extension("out")).map_err(|e| e.to_string())?;
        if output.stdout == want && output.status.success() { Ok(()) } else { Err(format!("{output:?}")) }
    });
    std::fs::remove_file(state).expect("it is still there");
}

#[test]
fn what_was_said_and_refused_is_told() {
    let outcome = code(&["--capsule"], "ctx.log('hello', n=3)\ntry:\n    import os\nexcept ImportError: print('no')");
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"no\n".into()), "{outcome}");
    let events = outcome["events"].as_array().expect("a list");
    assert_eq!(events.len(), 2, "{outcome}");
    assert_eq!((&events[0]["kind"], &events[0]["message"]), (&"capsule.log".into(), &"hello".into()));
    assert_eq!(events[0]["fields"]["n"], 3);
    assert_eq!((&events[1]["kind"], &events[1]["what"]), (&"capsule.refused".into(), &"import os".into()));
    assert_eq!(events[1]["line"], 3);
    // Nothing is uncaught quietly.
    let outcome = code(&["--capsule"], "open('/etc/passwd')");
    assert_eq!((&outcome["failure_class"], &outcome["exit_code"]), (&"RuntimeError".into(), &1.into()), "{outcome}");
    assert!(outcome["stderr"].as_str().is_some_and(|text| text.contains("PermissionError")), "{outcome}");
    let outcome = code(&["--capsule"], "raise SystemExit(3)");
    assert_eq!(outcome["exit_code"], 3);
    let outcome = code(&["--capsule"], "def broken(:");
    assert_eq!(outcome["failure_class"], "SyntaxError");
    // Without the capsule the same is ordinary Python, in the same cell.
    let outcome = code(&[], "import os; print(os.getuid())");
    assert_eq!((&outcome["stdout"], &outcome["events"]), (&"1000\n".into(), &Value::Array(vec![])));
}

#[test]
fn the_yellow_lane_only_lowers() {
    let outcome = code(&["--policy", "yellow_lane", "--timeout", "4s"], "print(ctx.config)");
    assert_eq!(outcome["status"], "pass", "{outcome}");
    let limits = &outcome["runtime_config"]["limits"];
    assert_eq!((&limits["memory_bytes"], &limits["wall_ms"]), (&(128 << 20).into(), &4000.into()));
    assert_eq!((&limits["processes"], &limits["cpus"]), (&1.into(), &0.1.into()));
    assert_eq!(outcome["runtime_config"]["on_violation"], "kill");
    let outcome = code(&["--policy", "yellow_lane", "--timeout", "2s"], "while True: pass");
    assert_eq!(outcome["failure_class"], "TimeoutViolation", "{outcome}");
    let outcome = code(&["--policy", "yellow_lane"], "x = 'x' * (1 << 30)");
    let class = &outcome["failure_class"];
    assert!(class == "MemoryLimitViolation" || class == "RuntimeError", "{outcome}");
}

#[test]
fn what_is_no_capsule() {
    let refused = |words: &[&str], part: &str| {
        let output = run(words, None, "");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{stderr}");
        assert!(stderr.contains(part) && stderr.lines().count() == 1, "{stderr}");
    };
    refused(&["--capsule", "--lang", "bash", "--code", "true"], "Python");
    refused(&["--policy", "purple_lane", "--code", "1"], "yellow_lane");
    refused(&["--policy", "yellow_lane", "--memory", "1g", "--code", "1"], "128 MiB");
    refused(&["--policy", "yellow_lane", "--on-violation", "note", "--code", "1"], "kill");
    refused(&["--policy", "yellow_lane", "--lang", "bash", "--code", "ls"], "python");
    refused(&["--policy", "yellow_lane", "--network", "local", "--code", "1"], "network");
    refused(&["--capsule", "--state", "/proc/self/maps", "--code", "1"], "JSON object");
    refused(&["--capsule", "--state", "/nonexistent", "--code", "1"], "/nonexistent");
    refused(&["--capsule", "--env", "HOTCELL_EVENTS=/x", "--code", "1"], "HOTCELL_EVENTS");
}
