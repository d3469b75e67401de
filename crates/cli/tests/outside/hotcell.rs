//! The binary under test, who may run it, and how a run of it ends.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Output};
use std::time::{Duration, Instant};

use super::DEADLINE;

/// An id that owns nothing.
pub const USER: u32 = 54321;

pub fn binary() -> PathBuf {
    std::env::var_os("HOTCELL_BIN").map_or_else(|| env!("CARGO_BIN_EXE_hotcell").into(), PathBuf::from)
}

pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// How it ended, or nothing where the deadline came first.
pub fn end_of(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + DEADLINE;
    loop {
        let ended = child.try_wait().expect("it is our child");
        if ended.is_some() || Instant::now() > until {
            return ended;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// For what must have come to a point before its time is up. No clock waits for it, and a long one would have to be waited
/// for: so with one limit after the other, each four times as long, until the time was `enough`, or the limit is half a minute.
pub fn with_time_enough<T>(first: Duration, run: impl Fn(Duration) -> T, enough: impl Fn(&T) -> bool) -> T {
    let mut limit = first;
    loop {
        let ran = run(limit);
        if enough(&ran) || limit >= Duration::from_secs(30) {
            return ran;
        }
        limit *= 4;
    }
}

/// As a flag takes it.
pub fn in_ms(limit: Duration) -> String {
    format!("{}ms", limit.as_millis())
}

/// How it ended, and all that it said.
#[track_caller]
pub fn output_of(mut child: Child) -> Output {
    let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let errors = std::thread::spawn(move || read_all(&mut err));
    let output = std::thread::spawn(move || read_all(&mut out));
    let Some(status) = end_of(&mut child) else {
        let _ = child.kill();
        panic!("hotcell did not end within {DEADLINE:?}");
    };
    let (stdout, stderr) = (output.join().expect("it reads"), errors.join().expect("it reads"));
    Output { status, stdout, stderr }
}

pub fn read_all(from: &mut impl Read) -> Vec<u8> {
    let mut bytes = vec![];
    from.read_to_end(&mut bytes).expect("a pipe can be read");
    bytes
}
