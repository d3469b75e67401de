//! System calls: the forbidden ones are on record by name, those that runtimes probe are not.

use crate::harness::*;
use hotcell_engine::never_honest;

/// The names of the calls on record, in order.
fn names(ran: &Ran) -> Vec<&str> {
    ran.attempts("SyscallViolation").iter().filter_map(|detail| detail["syscall"].as_str()).collect()
}

#[test]
fn every_forbidden_call_is_refused_and_on_record_by_its_name() {
    let all: Vec<(&str, i64)> = never_honest().collect();
    assert!(all.len() > 40, "the list is too short to be true: {all:?}");
    let numbers: Vec<String> = all.iter().map(|(_, nr)| nr.to_string()).collect();
    let words: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let ran = attack("calls").program(&words).run();
    ran.violates("SyscallViolation");
    for number in &numbers {
        assert_eq!(ran.tells(number), "EPERM", "system call {number}");
    }
    let wanted: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    assert_eq!(names(&ran), wanted);
    assert_eq!(ran.outcome["exit_code"], 0);
}

#[test]
fn what_the_documents_forbid_is_on_the_list() {
    let all: Vec<&str> = never_honest().map(|(name, _)| name).collect();
    let documented = [
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "mount",
        "umount2",
        "move_mount",
        "open_tree",
        "fsopen",
        "fsmount",
        "fsconfig",
        "fspick",
        "mount_setattr",
        "chroot",
        "pivot_root",
        "unshare",
        "setns",
        "keyctl",
        "add_key",
        "request_key",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "kexec_load",
        "kexec_file_load",
        "init_module",
        "finit_module",
        "delete_module",
        "reboot",
        "swapon",
        "swapoff",
        "quotactl",
        "open_by_handle_at",
        "acct",
    ];
    for name in documented {
        assert!(all.contains(&name), "{name}");
    }
}

#[test]
fn a_new_namespace_by_clone_is_a_syscall_violation() {
    let ran = attack("clone-namespaces").run();
    ran.violates("SyscallViolation");
    for kind in ["user", "pid", "mount", "net", "ipc", "uts", "cgroup", "high"] {
        assert_eq!(ran.tells(kind), "EPERM", "{kind}");
    }
    assert_eq!(names(&ran), ["clone"; 8]);
}

#[test]
fn what_runtimes_probe_is_missing_and_nobody_is_accused() {
    let ran = attack("quiet").run();
    ran.passes();
    assert!(ran.out().lines().count() >= 18, "{}", ran.out());
    for line in ran.out().lines() {
        assert!(line.ends_with(" ENOSYS"), "{line}");
    }
}

#[test]
fn a_number_of_a_kernel_to_come_is_missing_and_nobody_is_accused() {
    // Up to 423 these were never given out; the last is the greatest that is not the x32 ABI.
    let numbers = ["340", "400", "423", "470", "999", "100000", "0x3fffffff"];
    let ran = attack("calls").program(&numbers).run();
    ran.passes();
    for number in numbers {
        assert_eq!(ran.tells(number), "ENOSYS");
    }
}

#[test]
fn the_32_bit_abi_is_a_syscall_violation() {
    let ran = attack("int80").run();
    if ran.out().contains("no 32-bit ABI") {
        eprintln!("skipped: this kernel has no 32-bit ABI");
        return;
    }
    ran.violates("SyscallViolation");
    assert_eq!(ran.tells("getpid"), "ENOSYS");
    assert_eq!(names(&ran), ["32-bit call 20"]);
}

#[test]
fn the_x32_abi_is_a_syscall_violation() {
    let ran = attack("x32").run();
    ran.violates("SyscallViolation");
    assert_eq!(ran.tells("getpid"), "ENOSYS");
    assert_eq!(ran.tells("ptrace"), "ENOSYS");
    assert_eq!(names(&ran), ["x32 call 39", "x32 call 521"]);
}

#[test]
fn typing_into_a_terminal_is_a_syscall_violation_whatever_the_high_bits() {
    let ran = attack("tty-ioctls").run();
    ran.violates("SyscallViolation");
    for what in ["TIOCSTI", "TIOCLINUX", "TIOCSETD", "high TIOCSTI", "high TIOCLINUX"] {
        assert_eq!(ran.tells(what), "EPERM", "{what}");
    }
    assert_eq!(names(&ran), ["ioctl"; 5]);
}

#[test]
fn asking_a_stream_whether_it_is_a_terminal_is_harmless() {
    python(
        "import fcntl, os, termios\n\
         assert not any(os.isatty(fd) for fd in (0, 1, 2))\n\
         fcntl.ioctl(0, termios.FIONREAD, b'    ')",
    )
    .run()
    .passes();
}

#[test]
fn a_weaker_personality_is_refused_and_nobody_is_accused() {
    let ran = attack("personalities").run();
    ran.passes();
    for (what, result) in [
        ("ask", "done"),
        ("usual", "done"),
        ("no-randomize", "EPERM"),
        ("read-implies-exec", "EPERM"),
        ("linux32", "EPERM"),
    ] {
        assert_eq!(ran.tells(what), result, "{what}");
    }
}

#[test]
fn leases_and_notices_on_shared_files_are_refused() {
    let input = Input::new("");
    let ran = input.attack("leases").program(&["/src/target"]).run();
    ran.passes();
    for what in ["lease", "high lease", "notify"] {
        assert_eq!(ran.tells(what), "EPERM", "{what}");
    }
    input.assert_untouched();
}

#[test]
fn a_debugger_of_its_own_child_is_a_syscall_violation() {
    let ran = attack("ptrace-child").run();
    ran.violates("SyscallViolation");
    assert_eq!((ran.tells("attach"), ran.tells("seize")), ("EPERM", "EPERM"));
    assert_eq!(names(&ran), ["ptrace", "ptrace"]);
}

#[test]
fn fail_lets_the_program_go_on_and_fails_the_run() {
    let ran = exec(&["sh", "-c", "/src/hostile ptrace; echo after; exit 5"])
        .flag("--input", hostile().parent().expect("in a directory"))
        .flag("--on-violation", "fail")
        .run();
    ran.violates("SyscallViolation");
    assert_eq!(ran.out(), "after\n");
    assert_eq!(ran.outcome["exit_code"], 5);
    assert_eq!(ran.outcome["terminal_event"], serde_json::Value::Null);
}

#[test]
fn kill_ends_it_at_the_first_attempt() {
    for (attempt, class) in [
        ("/src/hostile ptrace", "SyscallViolation"),
        ("/src/hostile plain-write /etc/passwd", "FilesystemWriteViolation"),
        ("/src/hostile send-out 192.0.2.1 9", "NetworkAccessViolation"),
    ] {
        // Nothing but the kill ends it before the time is over.
        let ran = exec(&["sh", "-c", &format!("{attempt}; echo after; exec cat /dev/zero >/dev/null")])
            .flag("--input", hostile().parent().expect("in a directory"))
            .flag("--on-violation", "kill")
            .run();
        ran.violates(class);
        assert_eq!(ran.outcome["terminal_event"], class);
        assert_eq!(ran.outcome["signal"], 9);
        assert_eq!(ran.outcome["exit_code"], serde_json::Value::Null);
        let count = ran.outcome["violations"].as_array().map(Vec::len);
        assert_eq!(count, Some(1), "{:#}", ran.outcome);
    }
}

#[test]
fn note_lists_attempts_and_accuses_nobody() {
    let ran = exec(&[
        "sh",
        "-c",
        "/src/hostile ptrace; /src/hostile plain-write /etc/passwd; /src/hostile send-out 192.0.2.1 9",
    ])
    .flag("--input", hostile().parent().expect("in a directory"))
    .flag("--on-violation", "note")
    .run();
    assert_eq!(ran.outcome["status"], "pass", "{:#}", ran.outcome);
    assert_eq!((ran.class(), ran.code), ("none", 0));
    assert_eq!(ran.tells("/etc/passwd"), "EROFS");
    for class in ["SyscallViolation", "FilesystemWriteViolation", "NetworkAccessViolation"] {
        assert!(!ran.attempts(class).is_empty(), "{class}: {:#}", ran.outcome);
    }
}

#[test]
fn on_violation_changes_nothing_for_those_who_try_nothing() {
    for act in ["kill", "fail", "note"] {
        let ran = python("open('/work/x', 'w').write('x')\nraise SystemExit(4)").flag("--on-violation", act).run();
        ran.exits(4);
    }
}
