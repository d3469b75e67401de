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
