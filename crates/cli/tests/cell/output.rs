//! The three streams: byte for byte, live, bounded, and never in the way of an end.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::Value;

use crate::harness::*;

fn flood(bytes: &str) -> Cell {
    attack("flood").program(&["1", bytes])
}

/// The most memory that a process ever had, in bytes, while it is there to be asked.
fn most_memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kb = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok())?;
    Some(kb * 1024)
}

#[test]
fn every_byte_on_both_streams() {
    let ran = attack("every-byte").text().run();
    let up: Vec<u8> = (0..=255).collect();
    assert_eq!((ran.code, &ran.stdout), (0, &up));
    // The harness has made text of it: look at the bytes again, through a shell that changes nothing.
    let (mut command, watch) = attack("every-byte").text().prepare();
    let output = command.stdin(Stdio::null()).output().expect("hotcell starts");
    let down: Vec<u8> = (0..=255).rev().collect();
    assert_eq!((output.stdout, output.stderr), (up, down));
    watch.nothing_left();
}

#[test]
fn output_arrives_while_the_program_waits() {
    let script = "echo one; read a; echo two $a >&2; read b; echo three $b; read c; exit 5";
    let (mut command, watch) = exec(&["sh", "-c", script]).text().word("--quiet").prepare();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hotcell starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let line = |from: &mut dyn BufRead| {
        let mut line = String::new();
        from.read_line(&mut line).expect("it can be read");
        line
    };
    // Each answer is read before the next word is said: output that waited for the end would never come.
    assert_eq!(line(&mut stdout), "one\n");
    stdin.write_all(b"A\n").expect("it is read");
    assert_eq!(line(&mut stderr), "two A\n");
    stdin.write_all(b"B\n").expect("it is read");
    assert_eq!(line(&mut stdout), "three B\n");
    drop(stdin);
    assert_eq!(watch.end_of(&mut child), 5);
    assert_eq!((line(&mut stdout), line(&mut stderr)), (String::new(), String::new()));
    watch.nothing_left();
}

#[test]
fn a_caller_who_does_not_read_stops_the_program_and_delays_no_end() {
    let (bytes, result) = with_time_enough(Duration::from_secs(1), unread_flood, |(bytes, _)| !bytes.is_empty());
    // Three pipes' worth at most was on its way.
    assert!(!bytes.is_empty() && bytes.len() <= 256 << 10, "{} bytes went through", bytes.len());
    assert_eq!(result["output"]["stdout"]["bytes"], bytes.len());
    assert_eq!(result["failure_class"], "TimeoutViolation");
}

/// What came of a flood of which nothing is read before the program is dead, and its result.
#[track_caller]
fn unread_flood(timeout: Duration) -> (Vec<u8>, Value) {
    let (mut command, watch) = flood("50000000")
        .flag("--output-limit", "1g")
        .flag("--timeout", in_ms(timeout))
        .flag("--grace", "100ms")
        .flag("--result", "result.json")
        .text()
        .word("--quiet")
        .prepare();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("hotcell starts");
    let mut stdout = child.stdout.take().expect("piped");
    // Its first words, or its end.
    let deadline = DEADLINE.try_into().expect("it is short");
    let came = poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&deadline)).expect("a pipe can be watched");
    assert_eq!(came, 1, "the program says nothing");
    // The cell ends all the same: only hotcell stays, with what nobody took.
    let until = Instant::now() + timeout + Duration::from_secs(40);
    while watch.processes().into_iter().any(is_hostile) {
        if Instant::now() > until {
            child.kill().expect("it is our child");
            panic!("the timeout of {timeout:?} waits for the caller to read");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut bytes = vec![];
    stdout.read_to_end(&mut bytes).expect("a pipe can be read");
    assert_eq!(watch.end_of(&mut child), 124);
    let result = watch.result();
    watch.nothing_left();
    (bytes, result)
}

/// The program of the cell, not hotcell and not the cell's init.
fn is_hostile(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "hostile\n")
}

#[test]
fn a_flood_through_a_slow_reader_takes_no_memory() {
    const SIZE: usize = 200_000_000;
    let (mut command, watch) = flood("200000000").flag("--output-limit", "1g").text().prepare();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("hotcell starts");
    let mut stdout = child.stdout.take().expect("piped");
    let (mut total, mut most, mut buf) = (0, 0, vec![0u8; 64 << 10]);
    loop {
        let n = stdout.read(&mut buf).expect("a pipe can be read");
        if n == 0 {
            break;
        }
        total += n;
        most = most.max(most_memory(child.id()).unwrap_or(0));
    }
    assert_eq!((watch.end_of(&mut child), total), (0, SIZE));
    assert!(most > 0 && most < 24 << 20, "{most} bytes");
    watch.nothing_left();
}

#[test]
fn a_flood_over_the_cap_takes_no_memory() {
    let (mut command, watch) = attack("flood-both").program(&["100000000"]).flag("--output-limit", "1m").prepare();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("hotcell starts");
    let mut stdout = child.stdout.take().expect("piped");
    let pid = child.id();
    let sampler = std::thread::spawn(move || {
        let mut most = 0;
        // A zombie has no memory to speak of: that is the end.
        while let Some(now) = most_memory(pid) {
            most = most.max(now);
            std::thread::sleep(Duration::from_millis(1));
        }
        most
    });
    let mut json = vec![];
    stdout.read_to_end(&mut json).expect("a pipe can be read");
    assert_eq!(watch.end_of(&mut child), 123);
    let most = sampler.join().expect("it does not panic");
    assert!(most > 0 && most < 48 << 20, "{most} bytes");
    let outcome: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(outcome["usage"]["output_bytes"], 200_000_000);
    watch.nothing_left();
}

#[test]
fn both_streams_are_complete_and_in_order() {
    let ran = attack("alternate").program(&["20000"]).run();
    ran.passes();
    let numbers = |from: i32| -> String { (from..20_000).step_by(2).map(|n| format!("{n}\n")).collect() };
    assert!(ran.outcome["stdout"] == numbers(0) && ran.outcome["stderr"] == numbers(1));
}

#[test]
fn a_program_may_close_its_streams() {
    let ran =
        exec(&["sh", "-c", "echo out; exec 1>&-; cat >/dev/null; echo err >&2; exit 4"]).stdin(b"something").run();
    ran.exits(4);
    assert_eq!((ran.out(), &ran.outcome["stderr"]), ("out\n", &"err\n".into()));
    exec(&["sh", "-c", "exec 0<&- 1>&- 2>&-; sleep 0.1"]).run().passes();
}

#[test]
fn ten_megabytes_of_input() {
    let input: Vec<u8> = (0..10_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let ran = exec(&["cat"]).stdin(&input).text().run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout == input, "{} bytes came back", ran.stdout.len());
}

#[test]
fn an_empty_input_is_at_its_end() {
    let ran = exec(&["sh", "-c", "cat; echo end"]).run();
    ran.passes();
    assert_eq!(ran.out(), "end\n");
    let (mut command, watch) = exec(&["sh", "-c", "cat; echo end"]).text().prepare();
    let output = command.stdin(Stdio::null()).output().expect("hotcell starts");
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"end\n".to_vec()));
    watch.nothing_left();
}

#[test]
fn input_from_a_file() {
    let cell = exec(&["cat"]).flag("--stdin", "input");
    std::fs::write(cell.dir().join("input"), b"from the file\n").expect("the test's own directory");
    // The caller's own input is not touched.
    let ran = cell.stdin(b"from the caller\n").run();
    ran.passes();
    assert_eq!(ran.out(), "from the file\n");
}

#[test]
fn input_that_is_never_read_holds_up_nobody() {
    let much = vec![b'x'; 10_000_000];
    exec(&["true"]).stdin(&much).run().passes();
    let ran = exec(&["sh", "-c", "exec 0<&-; echo done"]).stdin(&much).run();
    ran.passes();
    assert_eq!(ran.out(), "done\n");
    exec(&["sleep", "600"]).stdin(&much).flag("--timeout", "300ms").run().violates("TimeoutViolation");
}

#[test]
fn input_that_never_ends_holds_up_nobody() {
    let (mut command, watch) = exec(&["sh", "-c", "read a; echo $a"]).text().prepare();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("hotcell starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"word\n").expect("it is read");
    assert_eq!(watch.end_of(&mut child), 0);
    drop(stdin);
    watch.nothing_left();
}

#[test]
fn text_that_is_no_utf8_is_replaced_in_json() {
    let ran = exec(&["printf", r"a\377\303(\360\237z\000b"]).run();
    ran.passes();
    assert_eq!(ran.out(), "a\u{fffd}\u{fffd}(\u{fffd}z\0b");
    assert_eq!(ran.outcome["output"]["stdout"]["bytes"], 9);
}

#[test]
fn streams_that_the_caller_has_closed() {
    // As `hotcell exec ... >&-` does.
    for closed in ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"] {
        let (command, watch) = exec(&["sh", "-c", "echo out; echo err >&2; exit 3"]).text().prepare();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("exec {closed}; exec \"$@\""), "sh"]);
        shell.arg(command.get_program()).args(command.get_args());
        let mut shell = around(shell, &command);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let status = shell.spawn().and_then(|mut c| c.wait()).expect("sh starts");
        assert_eq!(status.code(), Some(3), "{closed}");
        watch.nothing_left();
    }
}

/// A caller who waits for the end and reads then: a pipe holds 64 KiB, in however many pieces they come.
#[test]
fn many_small_pieces_fit_the_callers_pipe() {
    let program = "import sys\nfor n in range(2000):\n    print(n % 10, flush=True)";
    let (mut command, watch) = python(program).text().prepare();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("hotcell starts");
    assert_eq!(watch.end_of(&mut child), 0);
    let mut text = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut text).expect("text");
    assert_eq!(text.len(), 4000);
}

#[test]
fn words_in_braces_are_the_programs_own() {
    let ran = exec(&["echo", "a", "{prepared}", "{args}", "{main_class}"]).run();
    assert_eq!(ran.out(), "a {prepared} {args} {main_class}\n");
}
