//! What a cell sees of a repository: what the lease allows, and nothing else of it.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::desk::*;
use crate::harness::*;

/// Everything below /repo, as the program sees it, sorted.
#[track_caller]
fn seen(desk: &Desk, flags: &[&str]) -> Vec<String> {
    let said = desk.script(flags, "[ -e /repo ] && cd /repo && find . ! -name . | LC_ALL=C sort; true");
    said.lines().map(|line| line.trim_start_matches("./").to_owned()).collect()
}

#[test]
fn what_is_allowed_and_nothing_else() {
    let desk = Desk::new();
    desk.file("a/x.py", "");
    desk.file("a/b/y.py", "");
    desk.file("A/case", "");
    let cases: [(&[&str], &[&str]); 12] = [
        (&[], &[]),
        (&["repo://a/f"], &["a", "a/f"]),
        (&["repo://top"], &["top"]),
        (&["repo://a/*.py"], &["a", "a/x.py"]),
        (&["repo://a/*"], &["a", "a/f", "a/x.py"]),
        (&["repo://a/b/**"], &["a", "a/b", "a/b/g", "a/b/y.py"]),
        (&["repo://a/**"], &["a", "a/b", "a/b/g", "a/b/y.py", "a/f", "a/x.py"]),
        (&["repo://**/*.py"], &["a", "a/b", "a/b/y.py", "a/x.py"]),
        (&["repo://a"], &[]),
        (&["repo://nothing/**"], &[]),
        (&["repo://*"], &["top"]),
        (&["repo://A/**", "repo://top"], &["A", "A/case", "top"]),
    ];
    for (allow, expected) in cases {
        let flags: Vec<&str> = allow.iter().flat_map(|pattern| ["--allow", pattern]).collect();
        assert_eq!(seen(&desk, &flags), expected, "{allow:?}");
    }
}

#[test]
fn what_is_denied_is_not_there() {
    let desk = Desk::new();
    desk.file("a/.env", "hidden");
    desk.file("a/b/.env", "hidden");
    let all = ["--allow", "repo://**"];
    let with = |deny: &[&'static str]| [&all[..], deny].concat();
    let everything = ["a", "a/.env", "a/b", "a/b/.env", "a/b/g", "a/f", "secret", "secret/key", "top", "w"];
    assert_eq!(seen(&desk, &all), everything);
    assert_eq!(
        seen(&desk, &with(&["--deny", "repo://**/.env", "--deny", "repo://secret/**"])),
        ["a", "a/b", "a/b/g", "a/f", "top"]
    );
    let one = seen(&desk, &with(&["--deny", "repo://a/f"]));
    assert!(!one.contains(&"a/f".into()) && one.contains(&"a/b/g".into()), "{one:?}");
    assert!(!seen(&desk, &["--allow", "repo://a/f", "--deny", "repo://a/*"]).contains(&"a/f".into()));
    assert!(!seen(&desk, &["--allow", "repo://a/f", "--deny", "repo://**"]).contains(&"a/f".into()));
}

#[test]
fn a_denied_directory_is_denied_whole() {
    let desk = Desk::new();
    for deny in ["repo://secret", "repo://s*", "repo://**/b"] {
        let seen = seen(&desk, &["--allow", "repo://**", "--deny", deny]);
        let hidden = if deny.ends_with('b') { "a/b/g" } else { "secret/key" };
        assert!(!seen.contains(&hidden.into()), "{deny}: {seen:?}");
    }
}

#[test]
fn links_lead_nowhere() {
    let desk = Desk::new();
    let outside = desk.write("outside", "hidden\n");
    std::fs::create_dir(desk.path("beside")).expect("ours");
    desk.write("beside/file", "hidden\n");
    desk.link(text(&outside), "a/absolute");
    desk.link("../../outside", "a/relative");
    desk.link("../secret/key", "a/inner");
    desk.link(text(&desk.path("beside")), "a/dir");
    desk.link("/etc/passwd", "a/passwd");
    desk.link("../../beside", "links");
    desk.link(".", "a/self");
    // As single files, none of them is there.
    let files = seen(&desk, &["--allow", "repo://a/*"]);
    assert_eq!(files, ["a", "a/f"]);
    for pattern in ["repo://a/dir/*", "repo://a/dir/**", "repo://links/**", "repo://links/file", "repo://a/absolute"] {
        assert_eq!(seen(&desk, &["--allow", pattern]), Vec::<String>::new(), "{pattern}");
    }
    assert_eq!(seen(&desk, &["--allow", "repo://a/self/f"]), Vec::<String>::new());
    // In a whole directory they are links, in a cell where they lead to nothing of the host.
    let read = "cd /repo/a; for f in absolute relative inner dir/file; do cat $f 2>/dev/null && echo $f is there; done; cat passwd";
    let said = desk.script(&["--allow", "repo://a/**"], read);
    assert!(!said.contains("hidden") && said.contains("cell:x:1000"), "{said}");
    // None of them can be written through, and none is a working directory.
    for dir in ["repo://a/dir", "repo://links", "repo://a/self"] {
        let lease = desk.issue(&["--allow", &format!("{dir}/**"), "--write", dir], &TRACE);
        let ran = desk.leased(&lease, &[], &TRACE);
        assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{dir}");
    }
    assert!(!desk.path("beside/trace").exists());
}

#[test]
fn what_is_no_file_is_no_reason_to_wait() {
    let desk = Desk::new();
    let fifo = desk.repo("a/fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("it starts").success());
    let _socket = UnixListener::bind(desk.repo("a/socket")).expect("ours");
    let odd = desk.repo("a").join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    std::fs::write(&odd, "odd").expect("ours");
    assert_eq!(seen(&desk, &["--allow", "repo://a/*"]), ["a", "a/f"]);
    assert_eq!(seen(&desk, &["--allow", "repo://a/fifo", "--allow", "repo://a/socket"]), Vec::<String>::new());
    // Writable: the three are not in the copy, and are left as they are.
    let flags = ["--allow", "repo://a/**", "--write", "repo://a"];
    let said = desk.script(&flags, "cd /repo/a; find . -type f | LC_ALL=C sort; echo more > new");
    assert_eq!(said, "./b/g\n./f\n");
    assert!(fifo.exists() && odd.exists() && desk.repo("a/socket").exists() && desk.repo("a/new").exists());
}

#[test]
fn a_fifo_of_a_whole_directory_carries_nothing_out() {
    let desk = Desk::new();
    let fifo = desk.repo("a/fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("it starts").success());
    // A reader who is there already.
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&fifo).expect("ours");
    let lease = desk.issue(&["--allow", "repo://a/**"], &["sh", "-c", "*"]);
    let outcome = desk.outcome(&lease, &[], &["sh", "-c", "echo leak > /repo/a/fifo && echo it went"]);
    let said = outcome["stdout"].as_str().expect("a text");
    rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::NONBLOCK).expect("ours");
    let mut bytes = [0; 16];
    let got = std::io::Read::read(&mut &reader, &mut bytes);
    assert!(got.is_err() && said.is_empty(), "{got:?} {outcome:#}");
}

#[test]
fn what_cannot_be_read_is_said() {
    if !is_root() {
        return skip("the repository is read by its owner");
    }
    let desk = Desk::new();
    set_mode(&desk.repo("a/f"), 0);
    // Root reads it; the cell does as it is told.
    assert_eq!(desk.script(&["--allow", "repo://a/f"], "cat /repo/a/f"), "a file\n");
    let big = std::fs::File::create(desk.repo("a/big")).expect("ours");
    big.set_len(65 << 20).expect("ours");
    let lease = desk.issue(&["--allow", "repo://a/*"], &TRACE);
    desk.is_denied(&desk.leased(&lease, &[], &TRACE), "path_not_allowed", &["a/big"]);
}

#[test]
fn patterns_that_lead_out_are_none() {
    let desk = Desk::new();
    for pattern in [
        "",
        "a",
        "/etc/*",
        "repo:/a",
        "repo://",
        "repo:///a",
        "repo://a//b",
        "repo://../x",
        "repo://a/../b",
        "repo://.",
        "repo://a/./b",
        "repo://a/",
        "REPO://a",
        "repo://..",
        "file://a",
        " repo://a",
    ] {
        for flag in ["--allow", "--deny"] {
            let ran = desk.go(&["lease", "issue", "--actor", "x", flag, pattern, "--", "true"]);
            ran.refused(&[if flag == "--allow" { "scope.paths_allowlist" } else { "scope.paths_denylist" }]);
        }
    }
    let all = ["--allow", "repo://**"];
    for dir in ["", "a", "/a", "repo://", "repo://a/*", "repo://../x", "repo://a/.."] {
        let words = [&["lease", "issue", "--actor", "x", "--write", dir], &all[..], &["--", "true"]].concat();
        desk.go(&words).refused(&["runner.writable_mounts"]);
    }
    for dir in ["", "a", "/etc", "repo://../x", "repo://*"] {
        desk.go(&["lease", "issue", "--actor", "x", "--workdir", dir, "--", "true"]).refused(&["runner.workdir"]);
    }
    for dir in ["", "/", "opt", "/etc", "/proc/1", "/dev", "/sys/fs", "/opt/../etc", "/tmp/x", "/run", "//opt", "/opt/"]
    {
        let ran = desk.go(&["lease", "issue", "--actor", "x", "--mount", dir, "--", "true"]);
        ran.refused(&["runner.readonly_mounts"]);
    }
}

#[test]
fn the_working_directory() {
    let desk = Desk::new();
    let all = ["--allow", "repo://**", "--workdir"];
    assert_eq!(desk.script(&[&all[..], &["repo://a/b"]].concat(), "pwd; cat g"), "/repo/a/b\ndeeper\n");
    assert_eq!(desk.script(&[&all[..], &["repo://"]].concat(), "pwd"), "/repo\n");
    assert_eq!(desk.script(&["--allow", "repo://a/*"], "pwd"), "/work\n");
    let lease = desk.issue(&[&all[..], &["repo://gone"]].concat(), &["pwd"]);
    assert_ne!(desk.leased(&lease, &[], &["pwd"]).code, 0);
}

/// While somebody exchanges a directory for a link to what is hidden, and back, as fast as he can.
#[test]
fn a_directory_that_turns_into_a_link() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("hidden")).expect("ours");
    desk.write("hidden/f", "hidden\n");
    let (dir, spare, link) = (desk.repo("a"), desk.path("spare"), desk.path("link"));
    std::os::unix::fs::symlink(desk.path("hidden"), &link).expect("ours");
    let stop = AtomicBool::new(false);
    let leases: Vec<_> = [
        &["--allow", "repo://a/**"][..],
        &["--allow", "repo://a/*"],
        &["--allow", "repo://a/**", "--write", "repo://a"],
    ]
    .iter()
    .map(|flags| desk.issue(&[flags, &["--runs", "100"][..]].concat(), &["sh", "-c", "*"]))
    .collect();
    std::thread::scope(|scope| {
        let racer = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::fs::rename(&dir, &spare).expect("ours");
                std::fs::rename(&link, &dir).expect("ours");
                std::fs::rename(&dir, &link).expect("ours");
                std::fs::rename(&spare, &dir).expect("ours");
            }
        });
        let mut begun = 0;
        for _ in 0..25 {
            for lease in &leases {
                let ran = desk.leased(lease, &[], &["sh", "-c", "cat /repo/a/f; echo changed > /repo/a/f"]);
                assert!(!ran.stdout.contains("hidden"), "{}", ran.stdout);
                begun += u32::from(!ran.stdout.is_empty());
            }
        }
        stop.store(true, Ordering::Relaxed);
        racer.join().expect("it ends");
        assert!(begun > 0, "none has begun");
    });
    assert_eq!(std::fs::read_to_string(desk.path("hidden/f")).expect("ours"), "hidden\n");
    assert_eq!(std::fs::read_dir(desk.path("hidden")).expect("ours").count(), 1);
}

#[test]
fn the_state_is_never_shown() {
    let desk = Desk::new();
    let root = desk.dir.clone();
    for allow in ["repo://**", "repo://state/keys/*"] {
        let lease = desk.issue(&["--allow", allow], &["sh", "-c", "*"]);
        let script = "ls -R /repo/state; cat /repo/state/keys/*";
        let ran = desk.go(&["exec", "--lease", text(&lease), "--repo", text(&root), "--", "sh", "-c", script]);
        assert!(!ran.stdout.contains("audit.key") && !ran.stdout.contains("secret"), "{allow}: {}", ran.stdout);
    }
    // Nor a part of it.
    let lease = desk.issue(&["--allow", "repo://**"], &["sh", "-c", "*"]);
    for part in ["state", "state/keys", "state/audit"] {
        let part = desk.path(part);
        let words = ["exec", "--lease", text(&lease), "--repo", text(&part), "--", "sh", "-c", "cat /repo/*"];
        desk.is_denied(&desk.go(&words), "path_not_allowed", &["state directory"]);
    }
}
