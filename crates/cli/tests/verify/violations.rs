//! Tests and build scripts that do what no program may: it is that violation, and no failure of the tests.

use crate::harness::{Ran, skip};
use crate::project::{fails, passes, path_with, phase, python_with_tools, verified};
use crate::python::with_test;

/// Exactly this violation, though the test itself swallows it and passes.
#[track_caller]
fn is(ran: &Ran, class: &str, check: &str) {
    ran.violates(class);
    fails(ran, class, "L0", if class == "TimeoutViolation" { "timeout" } else { "policy" });
    assert_eq!(phase(ran, check)["failure_class"], class);
}

#[track_caller]
fn unittest(body: &str, flags: &[&str]) -> Ran {
    let project = with_test(body);
    let cell = flags.iter().fold(project.verify(), |cell, flag| cell.word(flag));
    project.run(cell)
}

const CONNECT: &str =
    "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 1)\nexcept OSError:\n    pass";

#[test]
fn a_test_that_uses_the_network() {
    is(&unittest(CONNECT, &[]), "NetworkAccessViolation", "unittest");
    is(&unittest(&format!("{CONNECT}\nself.fail()"), &[]), "NetworkAccessViolation", "unittest");
    let Ok(bin) = python_with_tools() else { return skip("pytest is not to be had") };
    let project = with_test(CONNECT);
    is(&project.run(project.verify().env("PATH", &path_with(bin))), "NetworkAccessViolation", "pytest");
}

#[test]
fn a_test_may_use_the_loopback_that_was_given() {
    let body = "import socket\nserver = socket.create_server(('127.0.0.1', 0))\n\
        socket.create_connection(server.getsockname()).close()\nserver.close()";
    assert_eq!(unittest(body, &[]).outcome["status"], "fail");
    passes(&unittest(body, &["--network", "local"]), "L1");
}

#[test]
fn a_test_that_writes_outside_its_scratch() {
    for path in ["/etc/new", "/src/calc.py", "/usr/bin/new"] {
        let body = format!("try:\n    open('{path}', 'w')\nexcept OSError:\n    pass");
        is(&unittest(&body, &[]), "FilesystemWriteViolation", "unittest");
    }
    passes(&unittest("open('/work/new', 'w').close()\nopen('/tmp/new', 'w').close()", &[]), "L1");
}

#[test]
fn a_test_that_forks_a_bomb() {
    let body = "import os\nimport time\ntry:\n    for _ in range(5000):\n        if os.fork() == 0:\n            \
        time.sleep(600)\nexcept OSError:\n    pass";
    is(&unittest(body, &[]), "ProcessLimitViolation", "unittest");
}

#[test]
fn a_test_that_runs_forever() {
    let ran = unittest("while True:\n    pass", &["--timeout", "5s"]);
    is(&ran, "TimeoutViolation", "unittest");
    assert_eq!((ran.terminal(), ran.code), ("TimeoutViolation", 124));
}

#[test]
fn a_test_that_takes_all_memory() {
    let ran = unittest("hog = [bytearray(b'x' * (64 << 20)) for _ in range(64)]\nself.assertTrue(hog)", &[]);
    is(&ran, "MemoryLimitViolation", "unittest");
}

#[test]
fn a_build_script_is_no_more_trusted_than_a_test() {
    let build = "fn main() {\n    let _ = std::net::TcpStream::connect(\"192.0.2.1:80\");\n}\n";
    let ran = verified(&[
        ("Cargo.toml", "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("build.rs", build),
        ("src/lib.rs", "#[test]\nfn it() {}\n"),
    ]);
    is(&ran, "NetworkAccessViolation", "cargo check");
}

#[test]
fn a_violation_in_other_languages() {
    let test = "const test = require('node:test');\ntest('it', (t, done) => { \
        require('node:net').connect(80, '192.0.2.1').on('error', () => done()); });\n";
    is(&verified(&[("calc.js", ""), ("calc.test.js", test)]), "NetworkAccessViolation", "node --test");
    let test = "package calc\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestIt(t *testing.T) {\n\t\
        _ = os.WriteFile(\"/etc/new\", nil, 0o644)\n}\n";
    let files = [("go.mod", "module calc\n"), ("calc.go", "package calc\n"), ("calc_test.go", test)];
    is(&verified(&files), "FilesystemWriteViolation", "go test");
}

#[test]
fn the_memory_limit_of_the_command_line_holds() {
    let body = "hog = bytearray(b'x' * (600 << 20))\nself.assertTrue(hog)";
    passes(&unittest(body, &[]), "L1");
    is(&unittest(body, &["--memory", "200m"]), "MemoryLimitViolation", "unittest");
}

#[test]
fn the_process_limit_of_the_command_line_holds() {
    let body = "import os\nimport time\ntry:\n    for _ in range(60):\n        if os.fork() == 0:\n            \
        time.sleep(600)\nexcept OSError:\n    pass";
    passes(&unittest(body, &[]), "L1");
    is(&unittest(body, &["--processes", "20"]), "ProcessLimitViolation", "unittest");
}

#[test]
fn a_violation_that_is_only_to_be_noted_is_noted() {
    let ran = unittest(CONNECT, &["--on-violation", "note"]);
    assert_eq!((ran.outcome["status"].as_str(), ran.code), (Some("pass"), 0), "{:#}", ran.outcome);
    assert_eq!(ran.classes(), ["NetworkAccessViolation"]);
}

#[test]
fn a_violation_ends_the_test_where_that_was_asked_for() {
    let ran = unittest(CONNECT, &["--on-violation", "kill"]);
    is(&ran, "NetworkAccessViolation", "unittest");
    assert_eq!(ran.terminal(), "NetworkAccessViolation");
}
