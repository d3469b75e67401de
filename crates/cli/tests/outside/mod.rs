//! The binary from outside: run, waited for, and looked at for processes, groups and mounts that it has left. Shared by all
//! tests.

mod files;
mod hotcell;
pub mod made_once;
pub mod ran;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use files::*;
pub use hotcell::*;

/// Far more than anything here takes: a test that gets there has found a hang.
pub const DEADLINE: Duration = Duration::from_secs(240);

/// Processes whose environment carries the mark, dead ones left out.
pub fn marked(mark: &str) -> Vec<i32> {
    let Ok(all) = std::fs::read_dir("/proc") else {
        return vec![];
    };
    all.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id() as i32)
        .filter(|pid| {
            let env = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            // Marks end with a number, and 1 is no mark of 10.
            let ends = |at: usize| !env.get(at + mark.len()).is_some_and(u8::is_ascii_digit);
            env.windows(mark.len()).enumerate().any(|(at, window)| window == mark.as_bytes() && ends(at))
        })
        .collect()
}

/// Directories of cells whose launcher is no more.
pub fn orphaned_groups() -> Vec<PathBuf> {
    let mut found = vec![];
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("proc is mounted");
    for line in mounts.lines().filter(|l| l.contains(" - cgroup")) {
        let point = line.split(' ').nth(4).expect("mountinfo has fields");
        look(Path::new(point), 6, &mut found);
    }
    found
}

fn look(dir: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
        let name = entry.file_name();
        match name.to_str().and_then(|n| n.strip_prefix("cell-")) {
            Some(rest) => {
                let launcher = rest.split('-').next().unwrap_or_default();
                if !Path::new("/proc").join(launcher).exists() && entry.path().exists() {
                    found.push(entry.path());
                }
            }
            None if depth > 0 => look(&entry.path(), depth - 1, found),
            None => {}
        }
    }
}

/// Without what engines of tests (`tests/engine`) mount for the containers that they have at the moment, and without a mount that
/// crun makes of itself whenever it is called, for as long as it reads its own binary.
pub fn host_mounts() -> String {
    let all = std::fs::read_to_string("/proc/self/mountinfo").expect("proc is mounted");
    let with_engine = std::env::var_os("DOCKER_HOST").is_some();
    let engines = |line: &&str| {
        line.contains("/tmp/hotcell-engine.")
            || line.contains(" /tmp/crun.")
            || with_engine && line.contains(" - nsfs ")
    };
    all.lines().filter(|line| !engines(line)).map(|line| format!("{line}\n")).collect()
}

/// No process, no group, no mount. What is going away is given the moment it needs; groups that were busy for so long that
/// their launcher has left them are the next start's.
#[track_caller]
pub fn nothing_left(mark: &str, mounts: &str) {
    let begun = Instant::now();
    let mut sweep_after = Duration::from_secs(10);
    loop {
        let (processes, groups) = (marked(mark), orphaned_groups());
        if processes.is_empty() && groups.is_empty() {
            break;
        }
        assert!(begun.elapsed() < DEADLINE, "left behind: processes {processes:?}, groups {groups:?}");
        if processes.is_empty() && begun.elapsed() > sweep_after {
            let _ = std::process::Command::new(binary()).args(["exec", "--quiet", "--", "true"]).output();
            sweep_after += Duration::from_secs(1);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(host_mounts(), mounts, "the host's mounts changed");
}

/// Waits for something that comes by itself; panics when it does not.
#[track_caller]
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !done() {
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}
