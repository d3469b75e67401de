//! The verdict table: each class by its evidence, each with a twin that must not be accused.

use crate::harness::*;

#[test]
fn a_program_that_ends_well_passes() {
    let ran = python("print('hello')").run();
    ran.passes();
    assert_eq!(ran.out(), "hello\n");
}

#[test]
fn an_exit_code_is_its_own() {
    python("import sys; sys.exit(3)").run().exits(3);
}

#[test]
fn an_infinite_loop_is_a_timeout() {
    python("while True: pass").flag("--timeout", "300ms").run().violates("TimeoutViolation");
}

#[test]
fn exit_137_by_itself_is_no_timeout_and_no_kill() {
    python("import sys; sys.exit(137)").run().exits(137);
}

#[test]
fn a_program_that_kills_itself_is_signaled() {
    python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)").run().is_signaled(9);
}

#[test]
fn a_connection_is_a_network_violation() {
    let ran = python("import socket\nsocket.create_connection(('192.0.2.1', 80), 5)").run();
    let attempt = ran.violates("NetworkAccessViolation").attempts("NetworkAccessViolation")[0];
    assert_eq!(attempt["address"], "192.0.2.1:80");
}

#[test]
fn a_swallowed_refusal_is_still_on_record() {
    let ran = python("try: open('/src/main.py', 'a')\nexcept OSError: pass").run();
    let attempt = ran.violates("FilesystemWriteViolation").attempts("FilesystemWriteViolation")[0];
    assert_eq!(attempt["path"], "/src/main.py");
    assert_eq!(ran.outcome["exit_code"], 0);
}

#[test]
fn words_are_no_evidence() {
    let words = "Permission denied NetworkAccessViolation Out of memory Killed SyscallViolation";
    let ran = python(&format!("import sys; print('{words}', file=sys.stderr); print('{words}'); sys.exit(1)")).run();
    ran.exits(1);
}

#[test]
fn ptrace_is_a_syscall_violation() {
    let ran = attack("ptrace").run();
    ran.violates("SyscallViolation");
    assert_eq!(ran.attempts("SyscallViolation")[0]["syscall"], "ptrace");
}

#[test]
fn every_exit_code_is_passed_on() {
    // Those in between differ from these by nothing but their number.
    let codes = (1..=16).chain([42, 64, 77, 100]).chain(120..=145).chain(250..=255);
    for code in codes.step_by(on_a_slow_host(1, 5)) {
        attack("exit").program(&[&code.to_string()]).run().exits(code);
    }
    attack("exit").program(&["256"]).run().passes();
}

#[test]
fn every_signal_that_a_program_can_die_of() {
    const IGNORED_OR_STOPPING: [i32; 8] = [17, 18, 19, 20, 21, 22, 23, 28];
    // SIGXFSZ has a test of its own.
    let own = |n: &i32| !IGNORED_OR_STOPPING.contains(n) && *n != 25;
    for signal in (1..=31).filter(own).chain([34, 50, 64]).step_by(on_a_slow_host(1, 3)) {
        attack("die-of").program(&[&signal.to_string()]).run().is_signaled(signal);
    }
    for ignored in [17, 18, 23, 28] {
        attack("die-of").program(&[&ignored.to_string()]).run().exits(99);
    }
}

#[test]
fn sigxfsz_by_its_own_doing_is_no_disk_violation() {
    attack("die-of").program(&["25"]).run().is_signaled(25);
    exec(&["sh", "-c", "kill -XFSZ $$"]).run().is_signaled(25);
    exec(&["sh", "-c", "(kill -XFSZ $$) & wait"]).run().is_signaled(25);
    let by_pidfd = "signal.signal(25, signal.SIG_DFL)\nsignal.pidfd_send_signal(os.pidfd_open(os.getpid()), 25)";
    python(&format!("import os, signal\n{by_pidfd}")).run().is_signaled(25);
    // By a limit of the program's own.
    exec(&["sh", "-c", "ulimit -f 1; exec head -c 100000 /dev/zero > f"]).run().is_signaled(25);
    let source = "import resource, signal\nsignal.signal(25, signal.SIG_DFL)\n\
                  resource.prlimit(0, resource.RLIMIT_FSIZE, (512, 512))\nopen('f', 'wb').write(bytes(9999))";
    python(source).run().is_signaled(25);
}

#[test]
fn faults_are_signals() {
    for (name, signal) in [("segfault", 11), ("overflow", 11), ("abort", 6), ("divide", 8), ("illegal", 4)] {
        println!("{name}");
        attack(name).run().is_signaled(signal);
    }
}

#[test]
fn a_syntax_error_in_python_is_told_by_python() {
    let ran = python("def broken(:\n    pass\n").run();
    assert_eq!((ran.class(), ran.code), ("SyntaxError", 1), "{}", ran.outcome);
    assert_eq!((&ran.outcome["retry_class"], &ran.outcome["status"]), (&"syntax".into(), &"fail".into()));
    let stderr = ran.outcome["stderr"].as_str().expect("text");
    assert!(stderr.contains("SyntaxError") && stderr.contains("main.py"), "{stderr}");
    // One who only says so is not believed.
    let ran = python("import sys; print('SyntaxError: invalid syntax', file=sys.stderr); sys.exit(1)").run();
    ran.exits(1);
    let ran = python("def f(): raise ValueError('x')\nf()").run();
    ran.exits(1);
    let stderr = ran.outcome["stderr"].as_str().expect("text");
    assert!(stderr.contains("Traceback") && stderr.contains("ValueError: x"));
}

#[test]
fn a_timeout_ends_whoever_does_not_want_to() {
    // Not even asked: dies of the first signal.
    let ran = exec(&["sleep", "600"]).flag("--timeout", "100ms").run();
    ran.violates("TimeoutViolation");
    assert_eq!(ran.outcome["signal"], 15);

    for name in ["ignores-term", "hears-term"] {
        let ran = ready_before_its_timeout(|| attack(name).flag("--grace", "200ms"));
        ran.violates("TimeoutViolation");
        assert_eq!(ran.outcome["signal"], 9, "{name}");
    }
}

#[test]
fn a_stopped_program_is_woken_to_be_ended() {
    let ran = ready_before_its_timeout(|| attack("stops-itself").flag("--grace", "60s"));
    ran.violates("TimeoutViolation");
    assert_eq!(ran.outcome["signal"], 15);
}

#[test]
fn ending_well_after_the_timeout_is_still_a_timeout() {
    let ran = ready_before_its_timeout(|| attack("hears-term").program(&["exit"]).flag("--grace", "60s"));
    ran.violates("TimeoutViolation");
    assert_eq!(ran.out(), "ready\nterm\n", "it had its time to speak");
    assert_eq!(ran.outcome["exit_code"], serde_json::Value::Null);
    assert_eq!(ran.outcome["signal"], 15);
}

#[test]
fn a_daemon_ends_with_the_program() {
    attack("daemonise").run().passes();
    // And one that holds the streams open holds up nobody.
    attack("daemonise").program(&["hold"]).run().passes();
    let ran = exec(&["sh", "-c", "sleep 600 & echo started"]).run();
    ran.passes();
    assert_eq!(ran.out(), "started\n");
}

#[test]
fn what_happened_first_names_the_run_and_what_ended_it_is_the_event() {
    let ran = ready_before_its_timeout(|| attack("ptrace-then-stay"));
    ran.violates("SyscallViolation");
    assert_eq!(ran.terminal(), "TimeoutViolation");
    assert_eq!(ran.classes(), ["SyscallViolation", "TimeoutViolation"]);

    let ran = ready_before_its_timeout(|| attack("stay-then-ptrace").flag("--grace", "60s"));
    ran.violates("TimeoutViolation");
    assert_eq!(ran.terminal(), "TimeoutViolation");
    assert_eq!(ran.classes(), ["TimeoutViolation", "SyscallViolation"]);
}

#[test]
fn a_violation_and_an_exit_of_its_own() {
    // The refusal names the run; how the program took it is beside it.
    let ran = python("import os, sys\ntry: os.mkdir('/usr/x')\nexcept OSError: pass\nsys.exit(7)").run();
    ran.violates("FilesystemWriteViolation");
    assert_eq!((&ran.outcome["exit_code"], ran.terminal()), (&7.into(), "none"));
    let ran = python("import os\ntry: os.mkdir('/usr/x')\nexcept OSError: pass\nos.kill(os.getpid(), 9)").run();
    ran.violates("FilesystemWriteViolation");
    assert_eq!((&ran.outcome["signal"], ran.terminal()), (&9.into(), "none"));
}

#[test]
fn what_a_violation_does_is_the_callers_choice() {
    let ran = attack("ptrace-then-stay").flag("--on-violation", "kill").run();
    ran.violates("SyscallViolation");
    assert_eq!(ran.terminal(), "SyscallViolation");
    assert_eq!(ran.outcome["signal"], 9);

    let ran = attack("ptrace").flag("--on-violation", "note").run();
    assert_eq!((ran.code, ran.class()), (0, "none"), "{}", ran.outcome);
    assert_eq!(ran.classes(), ["SyscallViolation"]);

    // A limit ends a run under any policy.
    let ran = ready_before_its_timeout(|| attack("ptrace-then-stay").flag("--on-violation", "note"));
    ran.violates("TimeoutViolation");
    assert_eq!(ran.terminal(), "TimeoutViolation");
}

#[test]
fn the_list_of_attempts_has_an_end() {
    let source = "import os\nfor i in range(250):\n    try: os.mkdir(f'/usr/{i}')\n    except OSError: pass";
    let ran = python(source).run();
    ran.violates("FilesystemWriteViolation");
    let listed = ran.attempts("FilesystemWriteViolation");
    assert_eq!((listed.len(), &ran.outcome["violations_dropped"]), (100, &150.into()));
    assert_eq!((&listed[0]["path"], &listed[99]["path"]), (&"/usr/0".into(), &"/usr/99".into()));
}

/// What a verdict is named after has its place, however much was tried before.
#[test]
fn a_long_list_of_attempts_hides_no_limit() {
    let source = "import os, time\nfor i in range(250):\n    try: os.mkdir(f'/usr/{i}')\n    except OSError: pass\n";
    let ran = python(&format!("{source}time.sleep(600)")).flag("--on-violation", "note").flag("--timeout", "3s").run();
    ran.violates("TimeoutViolation");
    assert_eq!((ran.terminal(), ran.attempts("TimeoutViolation").len()), ("TimeoutViolation", 1));

    let ran =
        python(&format!("{source}print('x' * 5000, flush=True)\ntime.sleep(1)")).flag("--output-limit", "1k").run();
    ran.violates("FilesystemWriteViolation");
    // Once, however often it was looked at.
    assert_eq!(ran.attempts("OutputLimitViolation").len(), 1);
    assert_eq!(ran.outcome["violations_dropped"], 150);
}

#[test]
fn retrying_is_advised_by_class() {
    for (name, advice) in [("exit", "deterministic"), ("abort", "deterministic"), ("ptrace", "policy")] {
        let ran = attack(name).program(&["3"]).run();
        assert_eq!(ran.outcome["retry_class"], advice, "{name}");
    }
    let ran = exec(&["sleep", "600"]).flag("--timeout", "100ms").run();
    assert_eq!(ran.outcome["retry_class"], "timeout");
    assert!(exec(&["true"]).run().outcome["retry_class"].is_null());
}
