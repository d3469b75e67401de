//! One run, from the request to the report, in the thread that asked for it.
//!
//!   asked -> launched -> built -> started -> ended -> gone -> drained
//!
//! A single poll loop serves everything: both output streams, the input, notifications, the clock, samples, the
//! caller's wish to stop. Nothing in it waits for anything else, so no stalled terminal delays a kill and no flood
//! of output delays an answer. The reason for a kill is noted before the kill.

mod clock;
mod ending;
mod ends;
mod escort;
mod input;
mod judge_limits;
mod memory_files;
mod messages;
mod meters;
mod notices;
mod observe;
mod output;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

use crate::cgroup::Counters;
use crate::error::SandboxError;
use crate::launcher::{Next, Process};
use crate::recorder::Recorder;
use crate::report::{Applied, Detail, End, Kill, Kind, MAX_VIOLATIONS, Observed, Report, Stage, Violation};
use crate::spec::{Egress, Network, OnViolation, Spec, Started, Streams};
use crate::sys::seccomp::Notification;
use crate::sys::socket;
use crate::wire::{self, Failure, Plan, Rusage};
use crate::witness::{Pending, Witness};
use ends::Ends;
use input::Input;
use judge_limits::Samples;
use meters::Meters;
use observe::Observation;
use output::Stream;

/// Calls that we make for the program at one time.
const MAX_PENDING: usize = 256;

/// How soon to look again at a call of the program's that we make for it.
const RETRY: Duration = Duration::from_millis(2);

/// Asks `launcher` for a cell and stays with it to the end.
pub(crate) fn run(launcher: &Process, spec: &Spec, streams: Streams<'_>, next: Next) -> Result<Report, SandboxError> {
    let io = |what| move |error| SandboxError::Io { what, error };
    let asked = Instant::now();
    if streams.terminal.is_some() && spec.has_own_kernel() {
        return Err(SandboxError::NoTerminal);
    }
    let plan = Plan::write(spec, streams.terminal).map_err(io("write the plan"))?;
    let called_off = streams.cancel.map(|cancel| cancel.as_fd());
    let started = spec.engine.as_ref().map(|engine| engine.start(&spec.limits, spec.network, called_off)).transpose();
    // Until the last process of it is dead.
    let container = started.map_err(|said| match streams.cancel.and_then(|cancel| cancel.take()) {
        Some(signal) => SandboxError::Cancelled { signal },
        None => SandboxError::Runtime { said },
    })?;
    let (run, run_theirs) = socket::pair().map_err(io("make a socket"))?;
    let (cell, cell_theirs) = socket::pair().map_err(io("make a socket"))?;
    let Ends { theirs, stdin, stdout, stderr, held } = Ends::new(streams.terminal).map_err(io("make the streams"))?;
    let fds = [&run_theirs, &cell_theirs, &plan].into_iter().chain(&theirs);
    let fds: Vec<_> = fds.chain(container.as_ref().map(|made| &made.init)).map(AsFd::as_fd).collect();
    launcher.ask(&fds, next).map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset => SandboxError::LauncherDied,
        _ => SandboxError::Io { what: "ask the launcher", error },
    })?;
    drop((run_theirs, cell_theirs, plan, theirs));
    let _keeper = container.map(|Started { init, keeper }| {
        drop(init);
        keeper
    });

    let limit = spec.limits.output;
    let state = State {
        spec,
        cancel: streams.cancel,
        passed: streams.passed,
        terminal: streams.terminal.zip(held),
        egress: streams.egress.filter(|_| spec.network == Network::Brokered),
        attempts: None,
        run,
        cell: Some(cell),
        listener: None,
        input: Input::new(streams.stdin, stdin, streams.terminal.is_some()).map_err(io("prepare the input"))?,
        stdout: Stream::new(Some(stdout), streams.stdout, streams.keep, limit).map_err(io("prepare stdout"))?,
        stderr: Stream::new(stderr, streams.stderr, streams.keep, limit).map_err(io("prepare stderr"))?,
        witness: None,
        scratch: None,
        meters: Meters { group: vec![], proc: None, own_kernel: spec.has_own_kernel() },
        samples: Samples::default(),
        observation: Observation::of(streams.observer),
        asked,
        started: None,
        ended: None,
        kill_at: None,
        killed: None,
        end: None,
        gone: None,
        failure: None,
        violations: vec![],
        violations_dropped: 0,
        doubts_file_signal: false,
        unseen: 0,
        pending: vec![],
        wake: rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| io("make an eventfd")(e.into()))?,
        retry_at: None,
        rusage: Rusage::default(),
        cpu_before: Duration::ZERO,
        enforced: vec![],
        degraded: vec![],
        stages: Vec::with_capacity(7),
    };
    state.drive()
}

struct State<'a> {
    spec: &'a Spec,
    cancel: Option<&'a dyn crate::Cancel>,
    passed: Option<&'a crate::Passed>,
    /// And its other end, which is held while a process of the cell may open it again.
    terminal: Option<(&'a crate::Terminal, OwnedFd)>,
    egress: Option<&'a dyn Egress>,
    /// What it refuses, once it has begun.
    attempts: Option<Recorder>,
    run: OwnedFd,
    cell: Option<OwnedFd>,
    listener: Option<OwnedFd>,
    input: Input,
    stdout: Stream,
    stderr: Stream,
    witness: Option<Witness>,
    scratch: Option<OwnedFd>,
    meters: Meters,
    samples: Samples,
    observation: Observation<'a>,
    asked: Instant,
    started: Option<Instant>,
    ended: Option<Instant>,
    /// When SIGTERM has had its time.
    kill_at: Option<Instant>,
    killed: Option<Kill>,
    end: Option<End>,
    gone: Option<Counters>,
    failure: Option<Failure>,
    violations: Vec<Violation>,
    violations_dropped: u64,
    /// The signal that the kernel sends for a file that would be too long may be somebody else's, or for another limit.
    doubts_file_signal: bool,
    /// Calls that could not be looked at.
    unseen: u64,
    pending: Vec<(Notification, Pending)>,
    /// Readable when one of them is done.
    wake: OwnedFd,
    retry_at: Option<Instant>,
    rusage: Rusage,
    /// User and system time of the cell's own set-up, in microseconds.
    cpu_before: Duration,
    enforced: Vec<Applied>,
    degraded: Vec<Applied>,
    stages: Vec<Stage>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Launcher,
    Cell,
    Attempt,
    Notification,
    Stdout,
    Stderr,
    StdoutSink,
    StderrSink,
    StdinSource,
    StdinPipe,
    Cancel,
    Passed,
    Wake,
}

impl State<'_> {
    fn drive(mut self) -> Result<Report, SandboxError> {
        let served = self.serve_all();
        self.end_egress();
        served?;
        self.finish()
    }

    fn serve_all(&mut self) -> Result<(), SandboxError> {
        let mut buf = Vec::new();
        // Nobody waits for what is said in a cell that has failed: who holds its streams may be anywhere.
        let drained = |state: &Self| state.failure.is_some() || (state.stdout.is_done() && state.stderr.is_done());
        while self.gone.is_none() || !drained(self) {
            for (event, flags) in self.wait()? {
                self.serve(event, flags, &mut buf)?;
            }
            self.check_clock();
        }
        Ok(())
    }

    fn wait<'a>(&'a self) -> Result<Vec<(Event, PollFlags)>, SandboxError> {
        let mut events = Vec::with_capacity(10);
        let mut fds = Vec::with_capacity(10);
        let mut watch = |event, fd: Option<BorrowedFd<'a>>, flags| {
            if let Some(fd) = fd {
                events.push(event);
                fds.push(PollFd::from_borrowed_fd(fd, flags));
            }
        };
        watch(Event::Launcher, self.gone.is_none().then(|| self.run.as_fd()), PollFlags::IN);
        watch(Event::Cell, self.cell.as_ref().map(AsFd::as_fd), PollFlags::IN);
        watch(Event::Attempt, self.attempts.as_ref().map(AsFd::as_fd), PollFlags::IN);
        watch(Event::Notification, self.listener.as_ref().map(AsFd::as_fd), PollFlags::IN);
        watch(Event::Stdout, self.stdout.source(), self.stdout.awaited());
        watch(Event::Stderr, self.stderr.source(), PollFlags::IN);
        watch(Event::StdoutSink, self.stdout.sink(), PollFlags::OUT);
        watch(Event::StderrSink, self.stderr.sink(), PollFlags::OUT);
        watch(Event::StdinSource, self.input.source(), PollFlags::IN);
        if let Some((pipe, pending)) = self.input.sink() {
            let flags = if pending { PollFlags::OUT } else { PollFlags::empty() };
            watch(Event::StdinPipe, Some(pipe), flags);
        }
        watch(Event::Wake, (!self.pending.is_empty()).then(|| self.wake.as_fd()), PollFlags::IN);
        watch(Event::Passed, self.passed.map(|passed| passed.as_fd()), PollFlags::IN);
        watch(Event::Cancel, self.cancel.map(|c| c.as_fd()), PollFlags::IN);
        let timeout = self.next_deadline().map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => {
                return Err(SandboxError::Io { what: "wait for the cell", error: e.into() });
            }
        }
        Ok(events.into_iter().zip(fds.iter().map(PollFd::revents)).filter(|(_, r)| !r.is_empty()).collect())
    }

    fn serve(&mut self, event: Event, flags: PollFlags, buf: &mut Vec<u8>) -> Result<(), SandboxError> {
        match event {
            Event::Launcher => self.hear_launcher()?,
            Event::Cell => self.hear_cell(),
            Event::Attempt => self.hear_attempts(),
            Event::Notification => self.answer_one(flags),
            Event::Stdout => {
                let read = self.stdout.read(buf);
                self.tell_output("stdout", &buf[..read]);
            }
            Event::Stderr => {
                let read = self.stderr.read(buf);
                self.tell_output("stderr", &buf[..read]);
            }
            Event::StdoutSink => self.stdout.write(),
            Event::StderrSink => self.stderr.write(),
            Event::StdinSource => self.input.read(buf),
            Event::StdinPipe if flags.intersects(PollFlags::ERR | PollFlags::HUP) => self.input.close(),
            Event::StdinPipe => self.input.write(),
            Event::Cancel => self.cancel(),
            Event::Passed => self.pass_signals(),
            Event::Wake => {
                let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
                self.retry_pending();
            }
        }
        if matches!(event, Event::Stdout | Event::Stderr) {
            self.check_output();
        }
        // Where nobody reads any more, it is held open otherwise; or where somebody would type on, and see nothing of it. Not
        // before the program has it: what was typed is echoed sooner.
        if self.started.is_some()
            && (self.stdout.is_done() || self.stdout.is_over())
            && self.gone.is_none()
            && let Some((terminal, _)) = self.terminal.take()
        {
            self.input.close();
            self.stdout.close();
            terminal.hang_up();
        }
        Ok(())
    }

    fn at(&self) -> Duration {
        self.started.map_or(Duration::ZERO, |start| self.ended.unwrap_or_else(Instant::now) - start)
    }

    /// Puts an attempt on record; under `kill`, it is the last.
    fn record(&mut self, kind: Kind, detail: Detail, evidence: &'static str) {
        self.note(kind, detail, evidence);
        if self.spec.on_violation == OnViolation::Kill && self.killed.is_none() && self.ended.is_none() {
            self.kill_now(Kill::Violation);
        }
    }

    fn note(&mut self, kind: Kind, detail: Detail, evidence: &'static str) {
        // The first by each evidence is kept, however long the list is: verdicts come from it.
        if self.violations.len() < MAX_VIOLATIONS || !self.has_noted(kind, evidence) {
            let violation = Violation { kind, at: self.at(), detail, evidence };
            self.observation.tell(Observed::Violation(&violation));
            self.violations.push(violation);
        } else {
            self.violations_dropped += 1;
        }
    }

    /// A limit is met once, however long the program stays there.
    fn record_once(&mut self, kind: Kind, detail: Detail, evidence: &'static str) {
        if !self.has_noted(kind, evidence) {
            self.record(kind, detail, evidence);
        }
    }

    fn has_noted(&self, kind: Kind, evidence: &str) -> bool {
        self.violations.iter().any(|v| v.kind == kind && v.evidence == evidence)
    }

    fn check_output(&mut self) {
        let over = [
            (self.stdout.is_over(), self.stdout.total(), "stdout", "bytes counted on stdout"),
            (self.stderr.is_over(), self.stderr.total(), "stderr", "bytes counted on stderr"),
        ];
        for (_, total, name, evidence) in over.into_iter().filter(|(is_over, ..)| *is_over) {
            let detail = Detail {
                limit: Some(self.spec.limits.output),
                observed: Some(total),
                note: Some(name.into()),
                ..Detail::default()
            };
            self.record_once(Kind::Output, detail, evidence);
        }
    }

    fn pass_signals(&mut self) {
        for signal in self.passed.map(|passed| passed.take()).unwrap_or_default() {
            self.doubts_file_signal |= i32::from(signal) == libc::SIGXFSZ;
            if let Some(cell) = &self.cell {
                let _ = socket::send(cell.as_fd(), &[wire::SIGNAL, signal], &[]);
            }
        }
    }

    /// SIGTERM to everyone, SIGKILL when the grace is over.
    fn terminate(&mut self) {
        self.kill_at = Some(Instant::now() + self.spec.limits.grace);
        if let Some(cell) = &self.cell {
            let _ = socket::send(cell.as_fd(), &[wire::TERMINATE], &[]);
        }
    }

    fn kill_now(&mut self, reason: Kill) {
        self.killed = Some(reason);
        self.kill_cell();
    }

    fn kill_cell(&mut self) {
        // A launcher that is gone has taken the cell with it; its socket says so next.
        let _ = socket::send(self.run.as_fd(), b"k", &[]);
    }

    fn cancel(&mut self) {
        let Some(signal) = self.cancel.and_then(|signals| signals.take()) else {
            return;
        };
        if self.gone.is_some() || self.ended.is_some() {
            // Only output that nobody takes is left.
            self.stdout.give_up();
            self.stderr.give_up();
        }
        match self.killed {
            None => {
                self.killed = Some(Kill::Cancelled { signal, after_its_end: self.ended.is_some() });
                self.terminate();
            }
            Some(_) => self.kill_cell(),
        }
    }
}
