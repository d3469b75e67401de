//! Attacks on the one who looks: none of them makes the supervisor wait, blind or talkative.

use crate::harness::*;

#[test]
fn a_call_that_waits_keeps_nobody_else_waiting() {
    attack("stall-witness").flag("--timeout", "1s").run().violates("TimeoutViolation");
}

#[test]
fn a_name_that_is_no_text_hides_nothing() {
    let source = "import ctypes, fcntl, os, socket\n\
         ctypes.CDLL(None).prctl(15, b'\\xff\\xfe', 0, 0, 0)\n\
         try: socket.create_connection(('192.0.2.1', 443))\n\
         except OSError: pass\n\
         try: open('/proc/self/root/usr/x', 'w')\n\
         except OSError: pass\n\
         fcntl.flock(open('/work/l', 'w'), fcntl.LOCK_EX); print('locked')";
    let ran = python(source).run();
    ran.violates("NetworkAccessViolation");
    assert_eq!(ran.attempts("FilesystemWriteViolation")[0]["path"], "/usr/x");
    assert_eq!(ran.out(), "locked\n");
}

#[test]
fn memory_of_a_process_whose_first_thread_has_ended() {
    attack("hog-headless").flag("--memory", "64m").flag("--scratch", "16m").run().violates("MemoryLimitViolation");
}

#[test]
fn what_a_program_names_does_not_reach_the_terminal() {
    let ran = python("try: open('/usr/\\x1b]0;x\\x07\\nhotcell: pass', 'w')\nexcept OSError: pass").text().run();
    assert_eq!(ran.stderr.lines().count(), 1, "{:?}", ran.stderr);
    assert!(!ran.stderr.contains(['\x1b', '\x07']), "{:?}", ran.stderr);
}

#[test]
fn who_turns_core_files_off_believes_it() {
    let ran = python(
        "import resource\n\
         resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n\
         print(resource.getrlimit(resource.RLIMIT_CORE))",
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "(1, 1)\n", "with 0 the host's core handler would be started");
}

#[test]
fn probes_that_reach_nothing_are_harmless() {
    let ran = exec(&["sh", "-c", "cd /src; (: > '') 2>/dev/null; (echo > /dev/tty) 2>/dev/null; true"]).run();
    ran.passes();
    let bind = "import socket\ntry: socket.socket(socket.AF_INET6).bind(('::1', 0))\nexcept OSError: pass";
    python(bind).run().passes();
}
