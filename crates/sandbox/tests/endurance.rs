//! The library over a long time and in a crowd: 300 cells at once, thousands one after the other, nothing that grows.
//!
//! `HOTCELL_RUNS` says how many in a row (2000 when it does not). Has a main of its own, because a launcher is
//! started before the first thread, and the test harness has threads.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotcell_sandbox::{
    End, Launcher, Limits, Network, Observed, Observer, OnViolation, Report, SandboxError, Spec, Streams, Tree,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::disable_transparent_huge_pages;

const CROWD: usize = 300;
/// Cells that the launcher keeps ready.
const AHEAD: usize = 2;
/// What a supervisor holds open for one cell, and some room.
const FDS_PER_CELL: u64 = 20;
const WARM_UP: usize = 200;
const GROWTH: u64 = 1 << 20;

fn main() {
    let runs = match std::env::var("HOTCELL_RUNS") {
        Ok(text) => text.parse().expect("HOTCELL_RUNS is a number"),
        Err(_) => 2000,
    };
    let mounts = mounts();
    let open_files = raise_open_files();
    // One of them would be twice the growth that is allowed.
    disable_transparent_huge_pages(true).expect("any process may");
    let launcher = Launcher::start(AHEAD).expect("there is no thread yet");
    let pid = launcher_pid();

    a_run_in_a_row_leaves_nothing(&launcher, pid, runs);
    a_crowd_at_once(&launcher, pid, CROWD.min((open_files / FDS_PER_CELL) as usize));
    an_observer_sees_a_run_and_may_fail(&launcher, pid);
    a_launcher_among_threads_is_refused();

    drop(launcher);
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the launcher is still there");
    assert_eq!(groups(pid), Vec::<PathBuf>::new(), "groups are left");
    assert_eq!(self::mounts(), mounts, "the host's mounts changed");
    println!("endurance: ok");
}

/// The system's directories and a command, with limits that nothing here comes near.
fn spec(command: &str) -> Spec {
    let mut spec = Spec {
        argv: ["/bin/sh", "-c", command].map(Into::into).to_vec(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/work".into(),
        trees: vec![],
        links: vec![],
        files: vec![],
        writable: vec![],
        quiet: vec![],
        limits: Limits {
            wall: Duration::from_secs(900),
            grace: Duration::from_millis(500),
            cpu_time: None,
            milli_cpus: 2000,
            memory: 256 << 20,
            processes: 32,
            open_files: 256,
            file_size: 16 << 20,
            scratch: 16 << 20,
            scratch_inodes: 1000,
            output: 1 << 20,
        },
        network: Network::None,
        on_violation: OnViolation::Fail,
        require: vec![],
        runtime: None,
        root: None,
        engine: None,
    };
    for path in ["/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache"] {
        match std::fs::read_link(path) {
            Ok(to) => spec.links.push((path.into(), to)),
            Err(_) if Path::new(path).exists() => spec.trees.push(Tree::new(path, path)),
            Err(_) => {}
        }
    }
    spec
}

fn passed(report: Result<Report, SandboxError>, expected: &[u8]) {
    let report = report.expect("the cell can be made");
    assert_eq!(report.end, End::Exited(0), "{:?}", report.violations);
    assert!(report.violations.is_empty(), "{:?}", report.violations);
    assert_eq!([report.stdout.head, report.stdout.tail].concat(), expected);
}

/// What must not grow.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    own_fds: usize,
    launcher_fds: usize,
    groups: usize,
    launcher_children: usize,
}

impl Held {
    fn now(launcher: u32) -> Held {
        Held {
            own_fds: fds("self"),
            launcher_fds: fds(&launcher.to_string()),
            groups: groups(launcher).len(),
            launcher_children: children(launcher).len(),
        }
    }

    /// With every cell that is kept ready there, and none half made: a moment after the last run.
    fn at_rest(launcher: u32) -> Held {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let (first, second) = (Held::now(launcher), {
                std::thread::sleep(Duration::from_millis(20));
                Held::now(launcher)
            });
            if first == second && first.launcher_children == AHEAD {
                return first;
            }
            assert!(Instant::now() < until, "the launcher does not come to rest: {second:?}");
        }
    }

    /// The launcher says that a cell is gone a moment before it closes the last of its fds.
    fn is_back(&self, launcher: u32, when: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        while Held::now(launcher) != *self {
            let now = Held::now(launcher);
            assert!(Instant::now() < until, "{when}: {now:?}, before {self:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn a_run_in_a_row_leaves_nothing(launcher: &Launcher, pid: u32, runs: usize) {
    let one = |n: usize| {
        let spec = spec(&format!("echo run {n}; echo x > file"));
        let streams = Streams { keep: 4096, ..Streams::default() };
        passed(launcher.run(&spec, streams), format!("run {n}\n").as_bytes());
    };
    (0..WARM_UP).for_each(one);
    let memory = || memory_of("self") + memory_of(&pid.to_string());
    let (held, before) = (Held::at_rest(pid), memory());
    for n in 0..runs {
        one(n);
        if n % 500 == 499 {
            held.is_back(pid, &format!("after {n} runs"));
        }
    }
    held.is_back(pid, &format!("after {runs} runs"));
    let after = memory();
    println!("{runs} runs in a row: {before} bytes of memory before, {after} after");
    assert!(after < before + GROWTH, "grown by {} bytes in {runs} runs", after - before);
}

fn a_crowd_at_once(launcher: &Launcher, pid: u32, count: usize) {
    if count < CROWD {
        println!("{count} cells instead of {CROWD} at once: the host allows too few open files");
    }
    let held = Held::at_rest(pid);
    let (input, hold) = std::io::pipe().expect("a pipe can be made");
    let (mut said, say) = std::io::pipe().expect("a pipe can be made");
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|_| {
                let stdin: OwnedFd = input.try_clone().expect("it can be copied").into();
                let stdout = say.as_fd();
                std::thread::Builder::new()
                    .stack_size(256 << 10)
                    .spawn_scoped(scope, move || {
                        let streams =
                            Streams { stdin: Some(stdin), stdout: Some(stdout), keep: 4096, ..Streams::default() };
                        // `.` when it is there; `cat` ends when the input does.
                        passed(launcher.run(&spec("printf .; cat"), streams), b".");
                    })
                    .expect("a thread can be made")
            })
            .collect();
        let mut there = vec![0; count];
        said.read_exact(&mut there).expect("every cell says that it is there");
        assert!(children(pid).len() >= count, "all are there at one time");
        assert_eq!(groups(pid).is_empty(), held_without_groups(), "each has its groups, if any has");
        // Another is served at once, crowd or not.
        passed(launcher.run(&spec("echo one more"), Streams { keep: 64, ..Streams::default() }), b"one more\n");
        drop((input, hold));
        for thread in threads {
            assert!(thread.join().is_ok(), "a cell of the crowd failed");
        }
    });
    drop((said, say));
    held.is_back(pid, "after the crowd");
    println!("{count} cells at once");
}

/// One that panics takes its run with it, and leaves no cell.
fn an_observer_sees_a_run_and_may_fail(launcher: &Launcher, pid: u32) {
    let held = Held::at_rest(pid);
    let seen = std::cell::RefCell::new(vec![]);
    let (input, hold) = std::io::pipe().expect("a pipe can be made");
    // `cat` ends when its input does, which is with the third sample.
    let hold = std::cell::RefCell::new(Some(hold));
    let tell = |what: Observed<'_>| {
        let mut seen = seen.borrow_mut();
        seen.push(match what {
            Observed::Started => ("started", Duration::ZERO),
            Observed::Sample(sample) => ("sample", sample.at),
            Observed::Violation(violation) => ("violation", violation.at),
            Observed::Output { stream, at, .. } => (stream, at),
        });
        if seen.len() > 3 {
            drop(hold.take());
        }
    };
    let observer = Some(Observer { every: Duration::from_millis(20), tell: &tell });
    let streams = Streams { stdin: Some(input.into()), keep: 64, observer, ..Streams::default() };
    passed(launcher.run(&spec("cat"), streams), b"");
    let seen = seen.into_inner();
    assert_eq!(seen[0].0, "started");
    assert!(seen.len() > 3 && seen[1..].iter().all(|(what, _)| *what == "sample"), "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{seen:?}");

    for when in ["started", "sample"] {
        let tell = |what: Observed<'_>| {
            if matches!((what, when), (Observed::Started, "started") | (Observed::Sample(_), "sample")) {
                std::panic::resume_unwind(Box::new("the observer fails"));
            }
        };
        let observer = Some(Observer { every: Duration::from_millis(20), tell: &tell });
        let run = || launcher.run(&spec("sleep 3600"), Streams { observer, ..Streams::default() });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err(), "it was told");
        held.is_back(pid, "after an observer failed");
    }
    println!("an observer saw {} things", seen.len());
}

/// True when no group can be made here at all.
fn held_without_groups() -> bool {
    hotcell_sandbox::probe().iter().any(|p| p.name == "cgroup" && !p.present)
}

fn a_launcher_among_threads_is_refused() {
    let (mut wait, end) = std::io::pipe().expect("a pipe can be made");
    let thread = std::thread::spawn(move || wait.read(&mut [0]));
    match Launcher::start(1) {
        Err(SandboxError::Threads { threads }) => assert!(threads >= 2),
        Err(other) => panic!("refused for another reason: {other}"),
        Ok(_) => panic!("a launcher was started among threads"),
    }
    let mut end = end;
    end.write_all(b".").expect("the thread reads");
    thread.join().expect("it does not panic").expect("a pipe can be read");
}

fn raise_open_files() -> u64 {
    let now = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: now.maximum, maximum: now.maximum };
    setrlimit(Resource::Nofile, raised).expect("up to the hard limit anybody may");
    now.maximum.unwrap_or(1 << 20)
}

fn fds(pid: &str) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it is ours to look at").count()
}

/// Of its own, wherever it is. What comes and goes with the files that are mapped is the kernel's choice.
fn memory_of(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it is alive");
    let kb = |name: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse::<u64>().ok())
    };
    (kb("RssAnon:").expect("a process has memory") + kb("VmSwap:").unwrap_or(0)) * 1024
}

fn children(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").expect("proc is mounted");
    all.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let rest = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
            rest.split(' ').nth(1).and_then(|p| p.parse().ok()) == Some(parent)
        })
        .collect()
}

fn launcher_pid() -> u32 {
    let own = children(std::process::id());
    assert_eq!(own.len(), 1, "the launcher is the only child");
    own[0]
}

/// Without a mount that crun makes of itself, when somebody calls it meanwhile.
fn mounts() -> String {
    let all = std::fs::read_to_string("/proc/self/mountinfo").expect("proc is mounted");
    all.lines().filter(|line| !line.contains(" /tmp/crun.")).map(|line| format!("{line}\n")).collect()
}

/// The groups of the cells of one launcher, wherever groups are made.
fn groups(launcher: u32) -> Vec<PathBuf> {
    let (mut found, prefix) = (vec![], format!("cell-{launcher}-"));
    for line in mounts().lines().filter(|l| l.contains(" - cgroup")) {
        let point = line.split(' ').nth(4).expect("mountinfo has fields");
        look(Path::new(point), 8, &prefix, &mut found);
    }
    found
}

fn look(dir: &Path, depth: u32, prefix: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            found.push(entry.path());
        } else if depth > 0 {
            look(&entry.path(), depth - 1, prefix, found);
        }
    }
}
