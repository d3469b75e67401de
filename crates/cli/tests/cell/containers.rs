//! Cells that a runtime makes. The whole of these tests runs with runc and crun, too (`make test-backends`): here is what
//! is only true of containers.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::harness::*;

const RUNTIMES: [&str; 3] = ["runc", "crun", "runsc"];

fn path_of(runtime: &str) -> Option<PathBuf> {
    ["/usr/sbin", "/usr/bin"].iter().map(|dir| Path::new(dir).join(runtime)).find(|path| path.is_file())
}

/// Each runtime of this host; says which are not here. None when the cells of all tests are a runtime's already.
pub(crate) fn each(mut test: impl FnMut(&str)) {
    for name in RUNTIMES.into_iter().filter(|_| backend().is_none()) {
        match path_of(name) {
            Some(_) => {
                println!("{name}");
                test(name);
            }
            None => skip(&format!("{name} is not installed")),
        }
    }
}

fn own_kernel(test: impl FnOnce()) {
    match path_of("runsc") {
        Some(_) if backend().is_none() && !as_user() => test(),
        Some(_) if as_user() => skip("slow, and the same as root's"),
        Some(_) => skip("the cells are another runtime's"),
        None => skip("runsc is not installed"),
    }
}

fn gvisor(program: &[&str]) -> Cell {
    exec(program).flag("--runtime", "runsc")
}

#[test]
fn what_the_host_has_is_as_before() {
    let null =
        || std::fs::metadata("/dev/null").map(|meta| (meta.uid(), meta.gid(), meta.mode())).expect("it is there");
    let before = null();
    each(|name| {
        let ran =
            exec(&["/bin/sh", "-c", "echo in > /work/x; cat /work/x; echo out >&2"]).flag("--runtime", name).run();
        ran.passes();
        assert_eq!((ran.out(), ran.outcome["stderr"].as_str()), ("in\n", Some("out\n")));
        assert_eq!(ran.outcome["runtime_config"]["backend"], format!("oci/{name}"));
        // crun gives its streams away, whoever's they are.
        assert_eq!(null(), before, "{name}");
    });
}

#[test]
fn groups_of_runtimes_are_gone() {
    each(|name| {
        exec(&["/bin/true"]).flag("--runtime", name).run().passes();
        attack("spin").flag("--runtime", name).flag("--timeout", "1s").run().violates("TimeoutViolation");
    });
    let left = |dir: &Path| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        // Those of others who are at work.
        dirs.filter(|entry| !Path::new("/proc").join(entry.file_name()).exists()).count()
    };
    let hierarchies = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    for dir in hierarchies.map(|entry| entry.path()).chain(["/sys/fs/cgroup".into()]) {
        assert_eq!(left(&dir.join("hotcell-oci")), 0, "{}", dir.display());
    }
}

#[test]
fn a_kernel_of_its_own() {
    own_kernel(|| {
        let host = std::fs::read_to_string("/proc/version").expect("there is one");
        let ran = gvisor(&["/bin/cat", "/proc/version"]).run();
        ran.passes();
        assert_ne!(ran.out(), host);
        assert!(ran.outcome["degraded"].to_string().contains("witness"), "{}", ran.outcome["degraded"]);
    });
}

#[test]
fn what_is_proved_from_outside_of_another_kernel() {
    own_kernel(|| {
        gvisor(&["/bin/sh", "-c", "exit 7"]).run().exits(7);
        let ran = gvisor(&["/bin/sh", "-c", "sleep 60"]).flag("--timeout", "3s").run();
        ran.violates("TimeoutViolation");
        let ran = gvisor(&["/bin/cat", "/usr/bin/bash"]).flag("--output-limit", "64k").run();
        ran.violates("OutputLimitViolation");
        let fill = "cat /dev/zero > /work/f; echo then";
        let ran = gvisor(&["/bin/sh", "-c", fill]).flag("--scratch", "2m").run();
        ran.violates("DiskLimitViolation");
        assert_eq!(ran.out(), "then\n");
        let ran = gvisor(&["/bin/sh", "-c", "head -c 1000000 /dev/zero > /work/f"]).flag("--scratch", "2m").run();
        ran.passes();
    });
}

/// Into the cell at /src, beside the test's other files.
fn put(cell: &Cell, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
    let dir = own(cell);
    write_program(&dir.join(name), bytes, mode);
    dir
}

#[test]
fn programs_that_another_kernel_cannot_execute() {
    own_kernel(|| {
        for (program, bytes, mode, code, part) in [
            ("no-such-program", &b""[..], 0o644, 127, "not found"),
            ("/no/such/program", b"", 0o644, 127, "not found"),
            ("/src/file/below", b"", 0o644, 127, "not found"),
            ("/src/file", b"echo hello\n", 0o644, 126, "executable"),
            ("/src", b"", 0o644, 126, "not a program"),
            ("/src/file", b"echo hello\n", 0o755, 126, "#!"),
            ("/src/file", b"\x7fELF\x02\x01\x01 and no more", 0o755, 126, "format"),
            ("/src/file", b"#!/nonexistent/sh\n", 0o755, 127, "interpreter"),
            ("../src/file", b"#!/nonexistent/sh\n", 0o755, 127, "interpreter"),
        ] {
            let cell = gvisor(&[program]);
            let input = put(&cell, "file", bytes, mode);
            let ran = cell.flag("--input", input).run();
            assert_eq!((ran.code, ran.class()), (code, "SetupFailure"), "{program}: {}", ran.outcome);
            assert_eq!(ran.outcome["exit_code"], serde_json::Value::Null);
            let message = ran.outcome["message"].as_str().expect("a sentence");
            assert!(message.contains(program) && message.contains(part), "{message}");
        }
        let long = "x".repeat(100_000);
        let ran = gvisor(&[&format!("/{long}")]).run();
        assert_eq!((ran.code, ran.class()), (126, "SetupFailure"), "{}", ran.stderr);
    });
}

/// What is no text reaches the program as it is, or nothing runs.
#[test]
fn words_that_are_no_text() {
    const WORD: &[u8] = b"\xff\xfe";
    let variable = || OsString::from_vec([b"VALUE=", WORD].concat());
    each(|name| {
        let show = "printf '%s%s' \"$1\" \"$VALUE\" | od -An -tx1";
        let word = exec(&["/bin/sh", "-c", show, "sh"]).argument(WORD).flag("--runtime", name).run();
        let value = exec(&["/bin/sh", "-c", show, "sh"]).flag("--env", variable()).flag("--runtime", name).run();
        if name == "runsc" {
            word.refused("not UTF-8");
            value.refused("not UTF-8");
            let refused = python("open('/work/ran', 'w')").argument(WORD).flag("--runtime", name).run();
            refused.refused("not UTF-8");
        } else {
            word.passes();
            value.passes();
            assert_eq!((word.out(), value.out()), (" ff fe\n", " ff fe\n"), "{name}");
        }
        // And what is text, though not ASCII, everywhere.
        let ran = exec(&["/bin/echo", "\u{e9}\u{1f980}"]).flag("--runtime", name).run();
        ran.passes();
        assert_eq!(ran.out(), "\u{e9}\u{1f980}\n");
    });
}

#[test]
fn a_program_that_says_what_a_runtime_would_is_not_believed() {
    own_kernel(|| {
        let said = "running container: starting container: starting root container: starting sandbox: \
             creating process: failed to load /bin/sh: no such file or directory";
        let source = "echo \"$0\" >&2; echo \"{\\\"msg\\\":\\\"$0\\\",\\\"level\\\":\\\"error\\\"}\" >&2; exit 128";
        let ran = gvisor(&["/bin/sh", "-c", source, said]).run();
        ran.exits(128);
        assert!(ran.outcome["stderr"].as_str().is_some_and(|text| text.contains(said)), "{}", ran.outcome);
    });
}

/// What another kernel takes for itself and for each process is none of the program's.
#[test]
fn processes_of_another_kernel() {
    own_kernel(|| {
        let crowd = |many: &str| {
            attack("fork-crowd").program(&[many]).flag("--runtime", "runsc").flag("--processes", "12").run()
        };
        let ran = crowd("12");
        ran.passes();
        assert_eq!((ran.out(), &ran.outcome["usage"]["processes_peak"]), ("12 all\n", &serde_json::Value::Null));
        let ran = crowd("200");
        ran.passes();
        assert_eq!(ran.out(), "12 EAGAIN\n");
        attack("exit").program(&["0"]).flag("--runtime", "runsc").flag("--processes", "1").run().passes();
    });
}

#[test]
fn what_another_kernel_refuses_is_contained() {
    own_kernel(|| {
        let source = "import socket\n\
             for what in (lambda: open('/usr/x', 'w'), lambda: open('/etc/passwd', 'a'),\n\
             \x20            lambda: socket.create_connection(('192.0.2.1', 80), 1)):\n\
             \x20   try: what(); print('done')\n\
             \x20   except OSError: print('refused')";
        let ran = python(source).flag("--runtime", "runsc").run();
        ran.passes();
        assert_eq!(ran.out(), "refused\nrefused\nrefused\n");
        assert!(!Path::new("/usr/x").exists());
    });
}

#[test]
fn runtimes_that_are_none() {
    if backend().is_some() {
        return skip("the cells are a runtime's");
    }
    for (flags, part) in [
        (&["--runtime", "nope"][..], "`nope` is not a runtime"),
        (&["--runtime", "kata"], "kata"),
        (&["--runtime", "/nowhere/runc"], "/nowhere/runc"),
        (&["--runtime", "/bin/true"], "`/bin/true` is no runtime"),
        (&["--runtime", "/etc"], "/etc"),
        (&["--backend", "native", "--runtime", "runc"], "--backend oci"),
        (&["--backend", "native", "--image", "/"], "--backend oci"),
        (&["--backend", "chroot"], "chroot"),
    ] {
        let mut cell = exec(&["true"]);
        for word in flags {
            cell = cell.word(word);
        }
        let ran = cell.run();
        assert_eq!(ran.code, 125, "{flags:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{flags:?}: {}", ran.stderr);
    }
}

/// A directory of the test's, beside the one that a run must leave as it is.
pub(crate) fn own(cell: &Cell) -> PathBuf {
    let dir = cell.dir().join("input");
    std::fs::create_dir_all(&dir).expect("the test's own directory");
    // Whoever the runtime is run by.
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o777)).expect("the test's own directory");
    dir
}

/// A program that calls itself runc, and does this when it is to run something.
fn pretender(cell: &Cell, version: &str, does: &str) -> PathBuf {
    let path = own(cell).join("runc");
    let script = format!("#!/bin/sh\ncase $1 in --version) echo runc version {version};; *) {does};; esac\n");
    write_program(&path, script, 0o755);
    path
}

#[test]
fn runtimes_that_fail_are_no_verdict_on_the_program() {
    if backend().is_some() {
        return skip("the cells are a runtime's");
    }
    for (does, part) in [
        ("echo 'no such luck' >&2; exit 1", "no such luck"),
        ("echo 'time=\"now\" level=error msg=\"said \\\"no\\\"\"' >&2; exit 1", "said \"no\""),
        ("exit 0", "it says nothing"),
        ("kill -9 $$", "it says nothing"),
        ("sleep 100 & exit 3", "it says nothing"),
        ("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1", "xxxx"),
        ("head -c 1000 /dev/urandom >&2; exit 1", "not text"),
    ] {
        let cell = exec(&["true"]);
        let path = pretender(&cell, "1.4.1", does);
        let ran = cell.flag("--runtime", path).run();
        assert_eq!((ran.code, ran.outcome.is_null()), (125, true), "{does}: {}", ran.stderr);
        assert!(ran.stderr.contains(part) && ran.stderr.len() < 1000, "{does}: {}", ran.stderr);
    }
}

#[test]
fn a_runtime_that_never_comes_back_is_ended() {
    if backend().is_some() {
        return skip("the cells are a runtime's");
    }
    let cell = exec(&["true"]);
    let started = own(&cell).join("started");
    let path = pretender(&cell, "1.4.1", &format!("touch {}; sleep 1000 & sleep 1000", started.display()));
    let going = cell.flag("--runtime", path).start();
    wait_until("the runtime is called", || started.exists());
    send(going.child.id(), "TERM");
    let ran = going.finish();
    assert_eq!(ran.code, 143, "{}", ran.stderr);
    assert!(ran.stderr.contains("called off"), "{}", ran.stderr);
}

#[test]
fn one_with_known_holes_is_refused_where_that_is_required() {
    if backend().is_some() {
        return skip("the cells are a runtime's");
    }
    let run = |version: &str| {
        let cell = exec(&["true"]);
        let path = pretender(&cell, version, "echo called >&2; exit 1");
        cell.flag("--runtime", path).flag("--require", "patched-runtime").run()
    };
    let ran = run("1.1.5");
    assert!(ran.code == 125 && ran.stderr.contains("CVE-2025-31133"), "{}", ran.stderr);
    let ran = run("");
    assert!(ran.code == 125 && ran.stderr.contains("version"), "{}", ran.stderr);
    assert!(run("1.4.1").stderr.contains("called"), "a new one is called");
}

/// A runtime of this kind whose program is the script itself: what it says is the program's output.
fn pretended_kernel(cell: &Cell, does: &str) -> PathBuf {
    let path = own(cell).join("runsc");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo runsc version 20990101.0 && exit\n\
         while [ $# -gt 0 ]; do [ \"$1\" = --pid-file ] && echo 1 > \"$2\"; shift; done\n{does}\n"
    );
    write_program(&path, script, 0o755);
    path
}

#[test]
fn a_runtime_has_nothing_of_ours_and_leaves_nothing() {
    if backend().is_some() {
        return skip("the cells are a runtime's");
    }
    let cell = exec(&["true"]);
    let does = "for n in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$n ] && echo $n; done\n\
                touch \"$TMPDIR/left\" \"$XDG_RUNTIME_DIR/left\" \"$_LIBCONTAINER_STATEDIR/left\" && echo \"$TMPDIR\"";
    let path = pretended_kernel(&cell, does);
    let ran = cell.flag("--runtime", path).run();
    ran.passes();
    let temporary = ran.out().strip_prefix("0\n1\n2\n").expect("three streams, and no more").trim_end();
    assert!(temporary.starts_with('/') && !Path::new(temporary).join("left").exists(), "{temporary}");
}

#[test]
fn one_that_never_tells_its_version_is_none() {
    if backend().is_some() {
        return skip("the cells are a runtime's");
    }
    for does in ["exec sleep 1000", "echo runc version 1.4.1; exec sleep 1000", "echo runc version 1.4.1; sleep 1000 &"]
    {
        let cell = exec(&["true"]);
        let path = own(&cell).join("runc");
        write_program(&path, format!("#!/bin/sh\n{does}\n"), 0o755);
        cell.flag("--runtime", path).run().refused("does not end within 5 s");
    }
}

/// What it says of itself is the caller's word: no policy takes that for what it demands.
#[test]
fn a_runtime_of_the_callers_own_satisfies_no_policy() {
    if backend().is_some() {
        return skip("the cells are a runtime's");
    }
    let run = |policy: Option<&str>, name: &str| {
        let cell = exec(&["false"]);
        let called = own(&cell).join("called");
        let path = own(&cell).join("own");
        let script = format!("#!/bin/sh\necho {name} version release-20991231.0; touch {}; exit 1\n", called.display());
        write_program(&path, script, 0o755);
        let cell = cell.flag("--runtime", &path);
        let ran = match policy {
            Some(policy) => cell.flag("--policy", policy).start(),
            None => cell.start(),
        };
        wait_until("the end", || ran.processes().is_empty());
        (called.exists(), ran.finish())
    };
    for (policy, name) in [("strict", "runsc"), ("fast", "runc"), ("balanced", "runc")] {
        let (called, ran) = run(Some(policy), name);
        ran.refused("a runtime of your own");
        assert!(!called, "{policy}: it was executed");
    }
    // Without a policy the caller is the operator.
    let (called, ran) = run(None, "runc");
    assert!(called, "{}", ran.stderr);
    each(|name| {
        let path = path_of(name).expect("it is there");
        let policy = if name == "runsc" { "strict" } else { "balanced" };
        exec(&["true"]).flag("--runtime", path).flag("--policy", policy).run().passes();
    });
}
