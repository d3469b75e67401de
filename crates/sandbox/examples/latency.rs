//! How long a library call takes with the launcher up, beside a bare fork and exec, and how many a second several threads make:
//! `latency [RUNS [THREADS]]`, one JSON line.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hotcell_sandbox::{Launcher, Limits, Network, OnViolation, Spec, Streams, Tree};

fn spec() -> Spec {
    let links = ["bin", "sbin", "lib", "lib64"].map(|name| (format!("/{name}").into(), format!("usr/{name}").into()));
    Spec {
        argv: vec!["/bin/true".into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/work".into(),
        trees: vec![Tree::new("/usr", "/usr")],
        links: links.into_iter().filter(|(at, _): &(std::path::PathBuf, _)| at.is_symlink()).collect(),
        files: vec![],
        writable: vec![],
        quiet: vec![],
        limits: Limits {
            wall: Duration::from_secs(45),
            grace: Duration::from_millis(500),
            cpu_time: None,
            milli_cpus: 2000,
            memory: 1 << 30,
            processes: 256,
            open_files: 1024,
            file_size: 1 << 30,
            scratch: 512 << 20,
            scratch_inodes: 65_536,
            output: 10 << 20,
        },
        network: Network::None,
        on_violation: OnViolation::Fail,
        require: vec![],
        runtime: None,
        root: None,
        engine: None,
    }
}

/// Microseconds at p50 and p99.
fn measure(runs: usize, mut one: impl FnMut()) -> (f64, f64) {
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            one();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[runs / 2], times[runs * 99 / 100])
}

/// Runs a second, by so many threads.
fn throughput(runs: usize, threads: usize, one: impl Fn() + Sync) -> f64 {
    let left = AtomicUsize::new(runs);
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while take() {
                    one();
                }
            });
        }
    });
    runs as f64 / start.elapsed().as_secs_f64()
}

fn main() {
    let launcher = Launcher::start(1).expect("the launcher starts");
    // As a service has it.
    let served = Launcher::start(4).expect("the launcher starts");
    let number = |n: usize, usual| std::env::args().nth(n).and_then(|n| n.parse().ok()).unwrap_or(usual);
    let (runs, threads) = (number(1, 1000), number(2, 8));
    let spec = spec();
    let cell = || drop(launcher.run(&spec, Streams::default()).expect("cells run here"));
    let bare = || assert!(std::process::Command::new("/bin/true").status().is_ok_and(|s| s.success()));
    // In turns, so that both meet the same machine.
    let (mut cells, mut bares) = (vec![], vec![]);
    for _ in 0..5 {
        cells.push(measure(runs / 5, cell));
        bares.push(measure(runs / 5, bare));
    }
    let median = |of: &mut Vec<(f64, f64)>| {
        of.sort_by(|a, b| a.0.total_cmp(&b.0));
        of[of.len() / 2]
    };
    let ((cell50, cell99), (bare50, bare99)) = (median(&mut cells), median(&mut bares));
    let a_second = throughput(runs, threads, || drop(served.run(&spec, Streams::default()).expect("cells run here")));
    println!(
        "{{\"cell_p50_us\": {cell50:.0}, \"cell_p99_us\": {cell99:.0}, \"bare_p50_us\": {bare50:.0}, \"bare_p99_us\": {bare99:.0}, \
         \"a_second\": {a_second:.0}}}"
    );
}
