//! Every limit that a policy can say is met by a program that goes over it; flags lower, and never raise.

use serde_json::Value;

use crate::harness::*;

/// Under a policy of these lines: the class and the whole Outcome.
#[track_caller]
fn under(lines: &str, program: &[&str]) -> (String, Value) {
    let place = Place::new();
    place.define("mine", lines);
    let outcome = place.exec(&["--policy", "mine"], program);
    let record = place.newest();
    assert_eq!((&record["policy_id"], &record["failure_class"]), (&"mine".into(), &outcome["failure_class"]));
    (outcome["failure_class"].as_str().unwrap_or("none").to_owned(), outcome)
}

/// Over the limit of `tight` it is of that class, and under that of `wide` it passes: so it is the limit that does it.
#[track_caller]
fn meets(class: &str, tight: &str, wide: &str, program: &[&str]) {
    let (found, outcome) = under(tight, program);
    assert_eq!((found.as_str(), &outcome["status"]), (class, &"fail".into()), "{tight}: {outcome:#}");
    let (found, outcome) = under(wide, program);
    assert_eq!((found.as_str(), &outcome["status"]), ("none", &"pass".into()), "{wide}: {outcome:#}");
}

#[test]
fn memory() {
    let program = ["python3", "-c", "x = b'x' * (150 << 20)"];
    meets("MemoryLimitViolation", "max_memory_mb = 64", "max_memory_mb = 512", &program);
}

#[test]
fn wall_time() {
    meets("TimeoutViolation", "max_wall_time_seconds = 0.3", "max_wall_time_seconds = 60", &["sleep", "1"]);
}

#[test]
fn cpu_time() {
    let program = ["python3", "-c", "import time\nwhile time.process_time() < 1.5: pass"];
    meets("TimeoutViolation", "max_cpu_seconds = 0.4", "max_cpu_seconds = 60", &program);
}

#[test]
fn processes() {
    let program = ["sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.2 & done; wait"];
    meets("ProcessLimitViolation", "max_processes = 3", "max_processes = 20", &program);
}

#[test]
fn open_files() {
    let program =
        "f = []\ntry:\n    while len(f) < 200: f.append(open('/dev/null'))\nexcept OSError: pass\nprint(len(f))";
    let opened = |lines: &str| under(lines, &["python3", "-c", program]).1["stdout"].clone();
    assert_eq!(opened("max_open_files = 300"), "200\n");
    let few = opened("max_open_files = 20");
    assert!(few.as_str().and_then(|n| n.trim().parse::<u64>().ok()).is_some_and(|n| n < 20), "{few}");
}

#[test]
fn file_size() {
    let program = ["sh", "-c", "head -c 1500000 /dev/zero > /tmp/file; wc -c < /tmp/file"];
    let written = |lines: &str| under(&format!("allow_file_write = true\n{lines}"), &program).1["stdout"].clone();
    assert_eq!(written("max_file_size_mb = 1"), "1048576\n");
    assert_eq!(written("max_file_size_mb = 2"), "1500000\n");
    assert_eq!(written("scratch_mb = 8"), "1500000\n");
}

#[test]
fn output() {
    meets("OutputLimitViolation", "max_output_mb = 1", "max_output_mb = 4", &["head", "-c", "2000000", "/dev/zero"]);
}

#[test]
fn scratch() {
    let program = ["sh", "-c", "head -c 3000000 /dev/zero > /tmp/file"];
    let (tight, wide) = ("allow_file_write = true\nscratch_mb = 1", "allow_file_write = true\nscratch_mb = 8");
    meets("DiskLimitViolation", tight, wide, &program);
}

#[test]
fn writing() {
    let program =
        ["sh", "-c", "for dir in /work /tmp /dev/shm; do (echo x > $dir/file) 2>/dev/null && echo wrote; done; true"];
    let (class, outcome) = under("allow_file_write = false", &program);
    assert_eq!((class.as_str(), &outcome["stdout"]), ("FilesystemWriteViolation", &"".into()), "{outcome:#}");
    let (class, outcome) = under("allow_file_write = true", &program);
    assert_eq!((class.as_str(), &outcome["stdout"]), ("none", &"wrote\nwrote\nwrote\n".into()), "{outcome:#}");
    // And no flag gives a scratch back.
    let place = Place::new();
    place.define("mine", "allow_file_write = false");
    place.go(&["exec", "--policy", "mine", "--scratch", "1m", "--", "echo", "ran"]).refused(&["mine", "scratch"]);
}

#[test]
fn languages() {
    let place = Place::new();
    place.define("mine", "allowed_languages = [\"bash\"]\nallow_file_write = true");
    let ran = place.go(&["run", "--policy", "mine", "--quiet", "--lang", "bash", "--code", "echo hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\n"), "{}", ran.stderr);
    place.go(&["run", "--policy", "mine", "--code", "print(1)"]).refused(&["mine", "python", "bash"]);
    assert_eq!(place.newest()["failure_class"], "PolicyViolation");
    // A command could be an interpreter of anything.
    place.go(&["exec", "--policy", "mine", "--", "echo", "ran"]).refused(&["mine", "command", "bash"]);
    let record = place.newest();
    assert_eq!((&record["status"], &record["failure_class"]), (&"denied".into(), &"PolicyViolation".into()));
}

const LOOPBACK: &str = "import socket\ns = socket.create_server(('127.0.0.1', 0))\nc = socket.create_connection(s.getsockname())\nprint('met')";
const OUTWARD: &str = "import socket\ntry: socket.create_connection(('192.0.2.1', 80), 1)\nexcept OSError: print('no')";

#[test]
fn network() {
    let place = Place::new();
    place.define("nothing", "");
    let local = place.write("local.toml", policy("loopback", "").replace("\"none\"", "\"local\""));
    assert_eq!(place.go(&["policy", "define", local.to_str().expect("UTF-8")]).code, 0);
    let outcome = place.exec(&["--policy", "nothing"], &["python3", "-c", LOOPBACK]);
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&"fail".into(), &"".into()), "{outcome:#}");
    let outcome = place.exec(&["--policy", "loopback"], &["python3", "-c", LOOPBACK]);
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"met\n".into()), "{outcome:#}");
    for policy in ["nothing", "loopback"] {
        let outcome = place.exec(&["--policy", policy], &["python3", "-c", OUTWARD]);
        assert_eq!((&outcome["failure_class"], &outcome["stdout"]), (&"NetworkAccessViolation".into(), &"no\n".into()));
    }
}

#[test]
fn what_a_violation_does() {
    let program = ["python3", "-c", &format!("{OUTWARD}\nprint('went on')")];
    let (class, outcome) = under("on_violation = \"kill\"", &program);
    assert_eq!((class.as_str(), &outcome["stdout"]), ("NetworkAccessViolation", &"".into()), "{outcome:#}");
    let (class, outcome) = under("on_violation = \"fail\"", &program);
    assert_eq!(
        (class.as_str(), &outcome["stdout"]),
        ("NetworkAccessViolation", &"no\nwent on\n".into()),
        "{outcome:#}"
    );
    let (class, outcome) = under("on_violation = \"note\"", &program);
    assert_eq!((class.as_str(), &outcome["stdout"]), ("none", &"no\nwent on\n".into()), "{outcome:#}");
    assert_eq!(outcome["violations"].as_array().map(Vec::len), Some(1), "{outcome:#}");
}

#[test]
fn layers_that_are_required() {
    for layer in ["cgroup", "landlock"] {
        let place = Place::new();
        place.define("mine", &format!("require = [\"{layer}\"]"));
        let ran = place.go(&["exec", "--policy", "mine", "--output", "json", "--", "echo", "ran"]);
        // As the host has it, or has it not: never without.
        match ran.code {
            0 => assert!(ran.json()["enforced"].to_string().contains(layer), "{}", ran.stdout),
            _ => ran.refused(&[layer]),
        }
    }
}

#[test]
fn compile_limits() {
    let place = Place::new();
    let source = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }";
    let words = ["--lang", "c", "--no-cache", "--policy"];
    place.define("wide", "allow_file_write = true");
    let outcome = place.run(&[&words[..], &["wide"]].concat(), source);
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"hello\n".into()), "{outcome:#}");
    place.define("slow", "allow_file_write = true\n[compile]\nmax_wall_time_seconds = 0.005");
    let outcome = place.run(&[&words[..], &["slow"]].concat(), source);
    assert_eq!(
        (&outcome["failure_class"], &outcome["stdout"]),
        (&"TimeoutViolation".into(), &"".into()),
        "{outcome:#}"
    );
    place.define("small", "allow_file_write = true\n[compile]\nmax_memory_mb = 5");
    let outcome = place.run(&[&words[..], &["small"]].concat(), source);
    assert_eq!(outcome["failure_class"], "MemoryLimitViolation", "{outcome:#}");
    for (flag, value) in [("--compile-timeout", "121s"), ("--compile-memory", "3g")] {
        let ran = place.go(&[&["run"], &words[..], &["wide", flag, value, "--code", source]].concat());
        ran.refused(&["wide", "compile"]);
    }
    let outcome = place.run(&[&words[..], &["wide", "--compile-timeout", "5ms"]].concat(), source);
    assert_eq!(outcome["failure_class"], "TimeoutViolation", "{outcome:#}");
}

#[test]
fn the_capsule() {
    let place = Place::new();
    place.define("mine", "python = \"capsule\"\nallowed_languages = [\"python\"]\nallow_file_write = true");
    place.define("plain", "allowed_languages = [\"python\"]\nallow_file_write = true");
    let outcome = place.run(&["--policy", "mine"], "import os; print(os.getpid())");
    assert_eq!((&outcome["failure_class"], &outcome["stdout"]), (&"RuntimeError".into(), &"".into()), "{outcome:#}");
    let outcome = place.run(&["--policy", "plain"], "import os; print(os.sep)");
    assert_eq!((&outcome["status"], &outcome["stdout"]), (&"pass".into(), &"/\n".into()), "{outcome:#}");
}

const ALL: &str = "allow_file_write = true\nmax_wall_time_seconds = 20\nmax_cpu_seconds = 10\ncpus = 1\nmax_memory_mb = 256\n\
                   max_processes = 20\nmax_open_files = 100\nmax_file_size_mb = 4\nscratch_mb = 8\nmax_output_mb = 2\n\
                   on_violation = \"fail\"";

#[test]
fn flags_lower() {
    let place = Place::new();
    place.define("mine", ALL);
    let limits = place.exec(&["--policy", "mine"], &["true"])["runtime_config"].clone();
    for (flag, value, field, number) in [
        ("--timeout", "19s", "wall_ms", 19_000.0),
        ("--cpu-time", "9s", "cpu_ms", 9000.0),
        ("--cpus", "0.5", "cpus", 0.5),
        ("--memory", "255m", "memory_bytes", f64::from(255 << 20)),
        ("--processes", "19", "processes", 19.0),
        ("--open-files", "99", "open_files", 99.0),
        ("--file-size", "3m", "file_size_bytes", f64::from(3 << 20)),
        ("--scratch", "7m", "scratch_bytes", f64::from(7 << 20)),
        ("--output-limit", "1m", "output_bytes", f64::from(1 << 20)),
    ] {
        let outcome = place.exec(&["--policy", "mine", flag, value], &["true"]);
        assert_eq!(outcome["status"], "pass", "{outcome:#}");
        let lowered = &outcome["runtime_config"];
        assert_eq!(lowered["limits"][field].as_f64(), Some(number), "{flag}");
        // And nothing but that.
        let mut same = lowered.clone();
        same["limits"][field] = limits["limits"][field].clone();
        assert_eq!(same, limits, "{flag}");
    }
    let outcome = place.exec(&["--policy", "mine", "--on-violation", "kill"], &["true"]);
    assert_eq!(outcome["runtime_config"]["on_violation"], "kill");
    let outcome = place.run(&["--policy", "permissive", "--network", "none"], "print(1)");
    assert_eq!((&outcome["status"], &outcome["runtime_config"]["network_policy"]), (&"pass".into(), &"none".into()));
}

#[test]
fn flags_do_not_raise() {
    let place = Place::new();
    place.define("mine", ALL);
    let mut wrong = vec![];
    let table = [
        ("--timeout", "20001ms"),
        ("--timeout", "1h"),
        ("--cpu-time", "10001ms"),
        ("--cpus", "1.01"),
        ("--cpus", "64"),
        ("--memory", "257m"),
        ("--memory", "1t"),
        ("--processes", "21"),
        ("--open-files", "101"),
        ("--file-size", "5m"),
        ("--scratch", "9m"),
        ("--output-limit", "3m"),
        ("--network", "local"),
        ("--network", "full"),
        ("--network", "restricted"),
        ("--on-violation", "note"),
    ];
    for (flag, value) in table {
        let ran = place.go(&["exec", "--policy", "mine", flag, value, "--", "echo", "ran"]);
        wrong.extend(ran.is_refused(&["mine", "more than"]).err().map(|why| format!("{flag} {value}: {why}")));
        let record = place.newest();
        if (&record["status"], &record["failure_class"]) != (&"denied".into(), &"PolicyViolation".into()) {
            wrong.push(format!("{flag} {value}: {record}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(place.records(&["--status", "denied"]).len(), table.len());
    // Without a policy the caller is the operator.
    assert_eq!(place.exec(&["--timeout", "1h", "--memory", "2g"], &["true"])["status"], "pass");
}

#[test]
fn the_grace_does_not_raise_the_wall_time() {
    let place = Place::new();
    place.define("mine", "max_wall_time_seconds = 0.5");
    let program = ["sh", "-c", "trap '' TERM; sleep 4; echo still here"];
    let ran =
        place.go(&[&["exec", "--policy", "mine", "--grace", "60s", "--output", "json", "--"], &program[..]].concat());
    assert!(!ran.stdout.contains("still here"), "{}", ran.stdout);
}

#[test]
fn another_backend_is_not_quietly_this_one() {
    let place = Place::new();
    place.define("mine", "backend = \"docker\"");
    place.go(&["exec", "--policy", "mine", "--", "echo", "ran"]).refused(&["docker"]);
    place.define("mine", "backend = \"oci\"");
    let ran = place.go(&["exec", "--policy", "mine", "--output", "json", "--", "echo", "ran"]);
    match ran.code {
        0 => assert!(ran.json()["runtime_config"]["backend"].as_str().is_some_and(|name| name.starts_with("oci/"))),
        _ => ran.refused(&["container runtime"]),
    }
    place.define("mine", "backend = \"native\"");
    place.pass(&["--policy", "mine"]);
}

#[test]
fn the_budget_of_a_request() {
    let place = Place::new();
    place.define("mine", "allow_file_write = true\nrequest_budget_seconds = 1");
    let source = place.write("a.py", "def one():\n    return 1\n");
    let tests = "import time, unittest\nclass T(unittest.TestCase):\n    def test_one(self):\n        time.sleep(4)\n";
    let tests = place.write("test_a.py", tests);
    let words =
        ["verify", source.to_str().expect("UTF-8"), "--tests", tests.to_str().expect("UTF-8"), "--output", "json"];
    let by_flag = place.go(&[&words[..], &["--budget", "1s"]].concat()).json();
    assert_eq!(by_flag["status"], "fail", "the flag does it: {by_flag:#}");
    let by_policy = place.go(&[&words[..], &["--policy", "mine"]].concat()).json();
    assert_eq!(by_policy["failure_class"], by_flag["failure_class"], "{by_policy:#}");
    place.go(&[&words[..], &["--policy", "mine", "--budget", "2s"]].concat()).refused(&["mine", "budget"]);
}
