//! Ends from the caller's side: called off, killed, gone. Nothing survives any of them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

use crate::harness::*;

/// A run whose program has said `ready`, so that it is known to be there.
struct Ready {
    child: Child,
    stdout: BufReader<ChildStdout>,
    watch: Watch,
}

fn ready(cell: Cell) -> Ready {
    let (mut command, watch) = cell.text().flag("--result", "result.json").flag("--timeout", "170s").prepare();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hotcell starts");
    let mut run = Ready { stdout: BufReader::new(child.stdout.take().expect("piped")), child, watch };
    assert_eq!(run.line(), "ready\n");
    run
}

impl Ready {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a pipe can be read");
        line
    }

    fn signal(&self, name: &str) {
        send(self.child.id(), name);
    }

    fn launcher(&self) -> u32 {
        launcher_of(self.child.id()).expect("hotcell has a launcher")
    }

    /// The exit status, and what was said on stderr.
    fn end(&mut self) -> (i32, String) {
        let code = self.watch.end_of(&mut self.child);
        let mut stderr = String::new();
        let from = self.child.stderr.as_mut().expect("piped");
        from.read_to_string(&mut stderr).expect("text");
        (code, stderr)
    }
}

fn launcher_of(hotcell: u32) -> Option<u32> {
    std::fs::read_dir("/proc")
        .expect("proc is mounted")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .find(|pid: &u32| parent_of(*pid).is_some_and(|(name, parent)| name == "hotcell-launch" && parent == hotcell))
}

/// The name of a process, and its parent.
fn parent_of(pid: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = stat.rsplit_once(") ")?;
    Some((name.split_once('(')?.1.to_owned(), rest.split(' ').nth(1)?.parse().ok()?))
}

/// Who is between the program, which has this name, and the launcher: its init, and where a runtime makes the cell, that and
/// who called it. Of an engine's only the init is ours.
fn between(run: &Ready, name: &str) -> Vec<u32> {
    let is_program = |pid: &u32| parent_of(*pid).is_some_and(|(own, _)| own == name);
    let program = run.watch.processes().into_iter().map(i32::cast_unsigned).find(is_program);
    let above = std::iter::successors(program, |pid| parent_of(*pid).map(|(_, parent)| parent)).skip(1);
    let all: Vec<u32> = above.take_while(|pid| *pid > 1).collect();
    match all.iter().position(|pid| *pid == run.launcher()) {
        Some(at) => all[..at].to_vec(),
        None => all.into_iter().take(1).collect(),
    }
}

/// A start sweeps what launchers that were killed have left; what is busy still, or while another sweeps, is the next one's.
fn sweep() {
    wait_until("a start that leaves nothing of theirs", || {
        let (mut command, watch) = exec(&["true"]).prepare();
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        assert_eq!(watch.end_of(&mut command.spawn().expect("hotcell starts")), 0);
        orphaned_groups().is_empty()
    });
}

#[test]
fn a_signal_to_hotcell_calls_the_run_off() {
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)] {
        let mut run = ready(attack("hears-term").program(&["exit"]).flag("--grace", "1h"));
        run.signal(name);
        assert_eq!(run.line(), "term\n", "the program is told, and has its time");
        let (code, stderr) = run.end();
        assert_eq!(code, 128 + number, "{stderr}");
        let result = run.watch.result();
        assert_eq!(result["failure_class"], "Signaled");
        assert_eq!(result["terminal_event"], "Cancelled");
        assert_eq!(result["signal"], number);
        assert_eq!(result["exit_code"], serde_json::Value::Null);
        run.watch.nothing_left();
    }
}

#[test]
fn a_program_that_does_not_hear_is_killed_after_the_grace() {
    for (program, signal) in [(attack("ignores-term"), 9), (exec(&["sh", "-c", "echo ready; exec sleep 600"]), 15)] {
        let mut run = ready(program.flag("--grace", "200ms"));
        run.signal("INT");
        // The exit status is by the caller's signal, the result by the kernel's word.
        assert_eq!(run.end().0, 130);
        let result = run.watch.result();
        assert_eq!((&result["terminal_event"], &result["signal"]), (&"Cancelled".into(), &signal.into()));
        run.watch.nothing_left();
    }
}

#[test]
fn a_second_signal_kills_at_once() {
    let mut run = ready(attack("hears-term").flag("--grace", "1h"));
    run.signal("INT");
    assert_eq!(run.line(), "term\n", "the first is heard, and not obeyed");
    run.signal("INT");
    assert_eq!(run.end().0, 130);
    assert_eq!(run.watch.result()["terminal_event"], "Cancelled");
    run.watch.nothing_left();
}

#[test]
fn a_violation_before_the_signal_keeps_its_name() {
    let mut run = ready(attack("ptrace-then-stay"));
    run.signal("TERM");
    assert_eq!(run.end().0, 123);
    let result = run.watch.result();
    assert_eq!(result["failure_class"], "SyscallViolation");
    assert_eq!(result["terminal_event"], "Cancelled");
    run.watch.nothing_left();
}

#[test]
fn hotcell_killed_takes_everything_with_it() {
    for name in ["ignores-term", "fork-bomb-ready"] {
        let mut run = ready(match name {
            "ignores-term" => attack(name),
            _ => exec(&[
                "sh",
                "-c",
                "for i in 1 2 3 4 5; do (trap '' TERM HUP; setsid sleep 600) & done; echo ready; wait",
            ]),
        });
        run.signal("KILL");
        assert_eq!(run.end().0, 1009);
        run.watch.nothing_left();
    }
}

#[test]
fn the_launcher_killed_takes_every_cell_with_it() {
    let mut run = ready(attack("ignores-term"));
    send(run.launcher(), "KILL");
    let (code, stderr) = run.end();
    assert_eq!(code, 125, "{stderr}");
    assert!(stderr.contains("the launcher died"), "{stderr}");
    sweep();
    run.watch.nothing_left();
}

#[test]
fn a_cell_killed_from_outside_is_no_verdict_on_the_program() {
    let mut left = 1;
    for at in 0.. {
        let mut run = ready(exec(&["sh", "-c", "echo ready; exec sleep 600"]));
        wait_until("the program", || !between(&run, "sleep").is_empty());
        let all = between(&run, "sleep");
        left = left.max(all.len());
        send(all[at], "KILL");
        let (code, stderr) = run.end();
        assert_eq!(code, 125, "{at} of {}: {stderr}", all.len());
        assert!(stderr.contains("killed from outside"), "{stderr}");
        run.watch.nothing_left();
        if at + 1 == left {
            break;
        }
    }
    // The program itself, from outside or by itself, is a signal of its own.
    let mut run = ready(exec(&["sh", "-c", "echo ready; exec sleep 600"]));
    let is_program = |pid: &i32| parent_of(pid.cast_unsigned()).is_some_and(|(name, _)| name == "sleep");
    wait_until("the program", || run.watch.processes().iter().any(is_program));
    let program = run.watch.processes().into_iter().find(is_program).expect("it is there");
    send(program.cast_unsigned(), "KILL");
    assert_eq!(run.end().0, 137);
    assert_eq!(run.watch.result()["failure_class"], "Signaled");
}

#[test]
fn hotcell_and_its_launcher_killed_leave_nothing_to_the_next() {
    let mut run = ready(attack("ignores-term"));
    let launcher = run.launcher();
    // Stopped first, so that neither sees the other go.
    send(launcher, "STOP");
    run.signal("KILL");
    send(launcher, "KILL");
    assert_eq!(run.end().0, 1009);
    sweep();
    run.watch.nothing_left();
}

/// Steps of a fixed pseudo-random walk (xorshift), the same in every run.
fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// Starts runs, four at a time, and sends each a signal after a random delay of up to 20 ms. Returns how each ended.
fn at_random_moments(count: usize, signal: &'static str, seed: u64) -> Vec<(i32, String)> {
    let threads: Vec<_> = (1..=4)
        .map(|part| {
            let mut seed = seed ^ part;
            std::thread::spawn(move || {
                let one = |_| {
                    let (mut command, watch) =
                        attack("ignores-term").flag("--grace", "50ms").flag("--timeout", "170s").prepare();
                    let mut child = command
                        .stdin(Stdio::null())
                        .stdout(Stdio::null())
                        .stderr(Stdio::piped())
                        .spawn()
                        .expect("hotcell starts");
                    // The one place where time is the point: any moment must do.
                    std::thread::sleep(std::time::Duration::from_micros(random(&mut seed) % 20_000));
                    send(child.id(), signal);
                    let code = watch.end_of(&mut child);
                    let mut stderr = String::new();
                    // The launcher may hold the other end a moment longer: everything is gone when this returns.
                    let from = child.stderr.as_mut().expect("piped");
                    from.read_to_string(&mut stderr).expect("text");
                    watch.nothing_left();
                    (code, stderr)
                };
                (0..count / 4).map(one).collect::<Vec<_>>()
            })
        })
        .collect();
    threads.into_iter().flat_map(|t| t.join().expect("nothing is left behind")).collect()
}

#[test]
fn killed_at_a_hundred_random_moments() {
    for (code, stderr) in at_random_moments(on_a_slow_host(100, 12), "KILL", 0x9e37_79b9_7f4a_7c15) {
        assert_eq!(code, 1009, "{stderr}");
    }
}

#[test]
fn called_off_at_random_moments() {
    for (code, stderr) in at_random_moments(on_a_slow_host(60, 8), "INT", 0x2545_f491_4f6c_dd1d) {
        // Before the signal is caught it is the kernel's to deliver.
        assert!(code == 130 || code == 1002, "exit {code}: {stderr}");
    }
}

#[test]
fn many_starts_at_once() {
    // Each sweeps what it takes for the others' remains: none may take what is in use.
    let threads: Vec<_> = (0..12)
        .map(|_| {
            std::thread::spawn(|| {
                for _ in 0..on_a_slow_host(8, 2) {
                    exec(&["true"]).run().passes();
                }
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().is_ok(), "one of many starts failed");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_program() {
    let (mut command, watch) = exec(&["yes"]).text().flag("--timeout", "170s").prepare();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hotcell starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a pipe can be read");
    assert_eq!(line, "y\n");
    drop(stdout);
    // As `yes | head -1` does: SIGPIPE.
    assert_eq!(watch.end_of(&mut child), 128 + 13);
    watch.nothing_left();
}

#[test]
fn a_program_can_not_keep_other_cells_from_starting() {
    // Fds on their way through sockets are counted by user, against the limit of whoever sends the next.
    let source = "import array, socket, time\npairs = [socket.socketpair() for _ in range(3)]\nfor a, b in pairs:\n    \
        for _ in range(3): a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 100))])\n\
        print('ready', flush=True)\ntime.sleep(600)";
    let mut run = ready(run_words(&["--code", source]));
    exec(&["true"]).flag("--open-files", "256").run().passes();
    run.signal("TERM");
    assert_eq!(run.end().0, 143);
    run.watch.nothing_left();
}
