//! `--watch`: a few lines at the foot of the terminal that say how the run stands.
//!
//! The terminal scrolls above them only, so that what the program writes, and what is typed for it, comes and goes as
//! without them. One thread writes everything: the program's output passes through it, and is held back only where it ends
//! within a character or a control sequence, because the view would land there.

use std::io::{IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use hotcell_contract::{Happened, Limits, Resource, RunEvent, Sample, show_duration, show_size};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;

use crate::show::painted;

const LINES: u16 = 4;
/// Less, and there is no room for a program beside it.
const FEWEST_ROWS: u16 = 10;
const FEWEST_COLUMNS: u16 = 20;
const BAR: usize = 10;
const CHUNK: usize = 16 * 1024;

/// Drawn until it is dropped.
pub(crate) struct View {
    frame: Arc<Mutex<Frame>>,
    /// Closed when the run is over.
    going: Option<OwnedFd>,
    writer: Option<JoinHandle<()>>,
}

/// Where the program's output is to go instead of to the terminal. To be closed before the view is dropped, which waits
/// for the last of it.
#[derive(Default)]
pub(crate) struct Through {
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

/// What is to be seen.
#[derive(Clone, Default)]
struct Frame {
    phase: String,
    limits: Option<Limits>,
    started: Option<Instant>,
    sample: Option<Sample>,
    alerted: Vec<Resource>,
}

/// Whether a view can be drawn where standard error goes.
pub(crate) fn is_possible() -> bool {
    let term = std::env::var_os("TERM").unwrap_or_default();
    std::io::stderr().is_terminal() && !term.is_empty() && term != "dumb"
}

impl View {
    /// With `output`, the program's output goes through pipes of ours, where it goes to a terminal.
    pub(crate) fn start(every: Duration, output: bool) -> std::io::Result<(View, Through)> {
        let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
        let through = |to: bool| Ok::<_, std::io::Error>(if output && to { Some(pipe()?) } else { None });
        let (stdout, stderr) = (through(std::io::stdout().is_terminal())?, through(true)?);
        let (end, going) = pipe()?;
        let split = |pipe: Option<(OwnedFd, OwnedFd)>| pipe.map_or((None, None), |(from, to)| (Some(from), Some(to)));
        let ((from_stdout, stdout), (from_stderr, stderr)) = (split(stdout), split(stderr));
        let frame = Arc::new(Mutex::new(Frame::default()));
        let mut screen = Screen {
            frame: frame.clone(),
            every: every.max(Duration::from_millis(50)),
            streams: [Passing::new(from_stdout), Passing::new(from_stderr)],
            end: Some(end),
            drawn: None,
        };
        let writer = std::thread::spawn(move || screen.serve());
        let view = View { frame, going: Some(going), writer: Some(writer) };
        Ok((view, Through { stdout, stderr }))
    }

    pub(crate) fn tell(&self, event: &RunEvent) {
        let mut frame = self.frame.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.happened {
            Happened::Started(started) => {
                *frame = Frame {
                    phase: event.phase.clone().unwrap_or_default(),
                    limits: Some(started.limits.clone()),
                    started: Some(Instant::now()),
                    ..Frame::default()
                };
            }
            Happened::Sample(sample) => frame.sample = Some(*sample),
            Happened::Alert(alert) => frame.alerted.push(alert.resource),
            _ => {}
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        drop(self.going.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// One stream of the program's on its way to the terminal.
struct Passing {
    from: Option<OwnedFd>,
    held: Vec<u8>,
}

impl Passing {
    fn new(from: Option<OwnedFd>) -> Passing {
        Passing { from, held: vec![] }
    }

    /// Reads once; passes on what ends where a view may be drawn.
    fn pass(&mut self, to: &mut dyn Write) {
        let Some(from) = &self.from else { return };
        let mut buf = [0u8; CHUNK];
        match rustix::io::read(from, &mut buf) {
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return,
            Ok(n @ 1..) => self.held.extend_from_slice(&buf[..n]),
            _ => self.from = None,
        }
        let whole = if self.from.is_some() { whole(&self.held) } else { self.held.len() };
        // A terminal that is gone takes nothing; the run does not depend on it.
        let _ = to.write_all(&self.held[..whole]).and_then(|()| to.flush());
        self.held.drain(..whole);
    }
}

/// No control sequence and no character is longer: what is, is no such thing.
const LONGEST: usize = 64;

/// How much of it ends neither within a character nor within a control sequence.
fn whole(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(LONGEST);
    let tail = &bytes[from..];
    if let Some(at) = tail.iter().rposition(|byte| *byte == 0x1b) {
        let sequence = &tail[at + 1..];
        let is_whole = match sequence.first() {
            None => false,
            Some(b'[') => sequence[1..].iter().any(|byte| (0x40..=0x7e).contains(byte)),
            Some(b']' | b'P' | b'_' | b'^' | b'X') => sequence.contains(&0x07),
            Some(0x20..=0x2f) => sequence.iter().any(|byte| (0x30..=0x7e).contains(byte)),
            Some(_) => true,
        };
        if !is_whole {
            return from + at;
        }
    }
    match std::str::from_utf8(tail) {
        // No error_len: the text ends before its last character does.
        Err(_) => {
            let start = tail.len().saturating_sub(4);
            let cut = (start..tail.len()).find(|at| {
                tail[*at] >= 0xc0 && std::str::from_utf8(&tail[*at..]).is_err_and(|e| e.error_len().is_none())
            });
            from + cut.unwrap_or(tail.len())
        }
        Ok(_) => bytes.len(),
    }
}

struct Screen {
    frame: Arc<Mutex<Frame>>,
    every: Duration,
    streams: [Passing; 2],
    end: Option<OwnedFd>,
    /// Rows and columns of the terminal when the view was drawn.
    drawn: Option<(u16, u16)>,
}

impl Screen {
    fn serve(&mut self) {
        let mut next = Instant::now() + self.every;
        while self.end.is_some() || self.streams.iter().any(|stream| stream.from.is_some()) {
            let ready = self.wait(next.saturating_duration_since(Instant::now()));
            if ready[0] {
                self.streams[0].pass(&mut std::io::stdout());
            }
            if ready[1] {
                self.streams[1].pass(&mut std::io::stderr());
            }
            if ready[2] {
                self.end = None;
            }
            if Instant::now() >= next {
                self.draw();
                next = Instant::now() + self.every;
            }
        }
        self.clear();
    }

    /// Which of the streams, and the end, have something to say.
    fn wait(&self, within: Duration) -> [bool; 3] {
        let all = [self.streams[0].from.as_ref(), self.streams[1].from.as_ref(), self.end.as_ref()];
        let mut fds: Vec<PollFd<'_>> = all.into_iter().flatten().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: within.subsec_nanos().into() };
        // An interrupted wait has found nothing.
        let found = rustix::event::poll(&mut fds, Some(&timeout)).is_ok();
        let mut answers = fds.iter().map(|fd| found && !fd.revents().is_empty());
        all.map(|fd| fd.is_some() && answers.next().unwrap_or(false))
    }

    fn draw(&mut self) {
        let frame = self.frame.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Ok(size) = rustix::termios::tcgetwinsize(std::io::stderr()) else { return };
        let (rows, columns) = (size.ws_row, size.ws_col);
        let mut text = String::new();
        if self.drawn.is_some_and(|drawn| drawn != (rows, columns)) {
            text += &self.take_away((rows, columns));
            self.drawn = None;
        }
        let lines = lines(&frame, columns.into());
        if rows >= FEWEST_ROWS && columns >= FEWEST_COLUMNS && !lines.is_empty() {
            if self.drawn.is_none() {
                // Room below the cursor, which stays where it is: index, not newline, keeps its column.
                text += &"\x1bD".repeat(LINES.into());
                text += &format!("\x1b[{LINES}A");
            }
            // The margins each time: the program may have changed them.
            text += &format!("\x1b7\x1b[1;{}r", rows - LINES);
            for (number, line) in lines.iter().enumerate() {
                text += &format!("\x1b[{};1H\x1b[0m\x1b[2K{line}", rows - LINES + 1 + number as u16);
            }
            text += "\x1b8";
            self.drawn = Some((rows, columns));
        }
        let mut stderr = std::io::stderr();
        let _ = stderr.write_all(text.as_bytes());
    }

    /// All rows for the program again, those of the view empty; the cursor where it was.
    fn take_away(&self, now: (u16, u16)) -> String {
        let Some(drawn) = self.drawn else { return String::new() };
        let mut text = String::from("\x1b7\x1b[r");
        if drawn == now {
            for row in drawn.0 - LINES + 1..=drawn.0 {
                text += &format!("\x1b[{row};1H\x1b[0m\x1b[2K");
            }
            return text + "\x1b8";
        }
        // Nobody knows where a terminal of another size has put the view, but that it is below the cursor.
        text + "\x1b8\x1b[J"
    }

    fn clear(&mut self) {
        let now = rustix::termios::tcgetwinsize(std::io::stderr()).map_or((0, 0), |size| (size.ws_row, size.ws_col));
        let text = self.take_away(now);
        self.drawn = None;
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// The view, one line under the other, none wider than the terminal. Nothing before the first sample.
fn lines(frame: &Frame, columns: usize) -> Vec<String> {
    let (Some(limits), Some(sample), Some(started)) = (&frame.limits, &frame.sample, frame.started) else {
        return vec![];
    };
    let time = |ms: u64| show_duration(Duration::from_millis(ms));
    let cores = sample.cpu_cores.unwrap_or(0.0);
    let cpu_limit = limits.cpu_ms.map(|limit| format!(" of {}", time(limit))).unwrap_or_default();
    let elapsed = show_duration(Duration::from_millis(started.elapsed().as_millis() as u64));
    let of_memory = sample.memory_bytes as f64 / limits.memory_bytes as f64;
    let processes = sample.processes.map_or("?".into(), |count| count.to_string());
    let io = match (sample.io_read_bytes, sample.io_written_bytes) {
        (Some(read), Some(written)) => format!("io {} in, {} out", show_size(read), show_size(written)),
        _ => String::new(),
    };
    let all = [
        (
            vec![format!("hotcell {}", frame.phase), format!("{elapsed} of {}", time(limits.wall_ms))],
            &[Resource::WallTime][..],
        ),
        (
            vec![
                format!("cpu    {} {cores:.2} of {} cores", bar(cores / limits.cpus), limits.cpus),
                format!("{}{cpu_limit}", time(sample.cpu_ms)),
            ],
            &[Resource::CpuTime],
        ),
        (
            vec![format!(
                "memory {} {} of {}",
                bar(of_memory),
                show_size(sample.memory_bytes),
                show_size(limits.memory_bytes)
            )],
            &[Resource::Memory],
        ),
        (
            vec![
                format!("processes {processes} of {}", limits.processes),
                format!("scratch {} of {}", show_size(sample.scratch_bytes), show_size(limits.scratch_bytes)),
                io,
            ],
            &[Resource::Processes, Resource::Scratch, Resource::Output],
        ),
    ];
    let style = |resources: &[Resource]| match resources.iter().any(|resource| frame.alerted.contains(resource)) {
        true => AnsiColor::Yellow.on_default(),
        false => Style::new().dimmed(),
    };
    all.into_iter().map(|(parts, of)| painted(&fitting(parts, columns), style(of), true)).collect()
}

/// As many of the parts as there is room for.
fn fitting(parts: Vec<String>, columns: usize) -> String {
    let mut line = String::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let gap = if line.is_empty() { "" } else { "  " };
        if !line.is_empty() && line.len() + gap.len() + part.len() >= columns {
            break;
        }
        line = line + gap + &part;
    }
    line.chars().take(columns.saturating_sub(1)).collect()
}

fn bar(share: f64) -> String {
    let full = ((share.clamp(0.0, 1.0) * BAR as f64).round() as usize).min(BAR);
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_cut_within_a_character_or_a_sequence() {
        for (bytes, expected) in [
            (&b"plain"[..], 5),
            (b"", 0),
            ("gr\u{fc}n".as_bytes(), 5),
            (b"gr\xc3", 2),
            (b"\xe6\xbc", 0),
            (b"bad \xff", 5),
            (b"bad \xff \xe6", 6),
            (b"\x1b[31", 0),
            (b"\x1b[31m", 5),
            (b"a\x1b", 1),
            (b"a\x1b]0;title", 1),
            (b"a\x1b]0;title\x07b", 12),
            (b"\x1b[1mx\x1b[", 5),
        ] {
            assert_eq!(whole(bytes), expected, "{bytes:?}");
        }
        let endless = [&b"\x1b]0;"[..], &[b'x'; 100]].concat();
        assert_eq!(whole(&endless), endless.len(), "what never ends is not waited for");
    }

    #[test]
    fn lines_fit() {
        let sample = Sample {
            cpu_ms: 6100,
            cpu_cores: Some(1.92),
            memory_bytes: 640 << 20,
            processes: Some(12),
            scratch_bytes: 12 << 20,
            stdout_bytes: 0,
            stderr_bytes: 0,
            io_read_bytes: Some(1 << 20),
            io_written_bytes: Some(3 << 20),
        };
        let limits = hotcell_engine::Request::of(hotcell_engine::Program::Command(vec![])).limits;
        let started = Some(Instant::now());
        let frame =
            Frame { phase: "run".into(), limits: Some(limits), started, sample: Some(sample), ..Frame::default() };
        for columns in [20, 40, 80, 200] {
            let all = lines(&frame, columns);
            assert_eq!(all.len(), usize::from(LINES));
            for line in &all {
                let plain = line.replace("\x1b[2m", "").replace("\x1b[0m", "");
                assert!(plain.len() < columns, "{columns}: {plain:?}");
            }
        }
        assert!(lines(&frame, 80)[2].contains("[######....] 640 MiB of 1.0 GiB"), "{:?}", lines(&frame, 80));
        assert!(lines(&Frame::default(), 80).is_empty());
    }
}
