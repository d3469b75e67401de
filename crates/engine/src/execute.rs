//! The way of one run: plan, compile, run, judge, and the Outcome of it.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use hotcell_contract::{FailureClass, Outcome};
use hotcell_sandbox::{
    Cancel, Egress, End, Launcher, Network, Next, Observed, Passed, Report, SandboxError, Spec, Stage, Streams,
    Terminal,
};

use crate::build::{Built, build};
use crate::capsule;
use crate::collect::collect;
use crate::egress::Broker;
use crate::judge::{self, Verdict, judge};
use crate::lease::LeasedRun;
use crate::outcome::{Toolchain, outcome, phase};
use crate::plan::{self, PlanError, plan};
use crate::product;
use crate::request::Request;
use crate::sentinel::{Sentinel, observer};

/// The caller's ends of the streams.
#[derive(Default)]
pub struct Call<'a> {
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<BorrowedFd<'a>>,
    pub stderr: Option<BorrowedFd<'a>>,
    /// A directory for the files that the program leaves in its working directory.
    pub artifacts: Option<&'a Path>,
    /// Bytes of each stream that the Outcome holds.
    pub keep: usize,
    pub cancel: Option<&'a dyn Cancel>,
    /// For the program alone: a compiler has neither.
    pub passed: Option<&'a Passed>,
    pub terminal: Option<&'a Terminal>,
    /// Under which lease.
    pub lease: Option<LeasedRun<'a>>,
    /// Told of what takes long.
    pub progress: Option<&'a dyn Fn(Progress<'_>)>,
    /// Watches the compiler and the program.
    pub sentinel: Option<&'a Sentinel<'a>>,
    /// Others come after it: cells are built ahead for them.
    pub others: bool,
}

/// What goes on.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Something that is made once for a toolchain.
    Preparing(&'a str),
    Compiling(&'a str),
    /// It is known what to run, and how.
    Planned {
        began: Instant,
        took: Duration,
    },
    Running,
    /// A cell has ended, and what it was for.
    Ran {
        phase: &'a str,
        stages: &'a [Stage],
    },
}

impl Call<'_> {
    pub(crate) fn tell(&self, progress: Progress<'_>) {
        if let Some(told) = self.progress {
            told(progress);
        }
    }

    pub(crate) fn see(&self, phase: &'static str, spec: &Spec, what: Observed<'_>) {
        if let Some(sentinel) = self.sentinel {
            sentinel.see(phase, &spec.limits, what);
        }
    }
}

/// Nothing is said about the program.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The run is over; the caller has not got all of what it said.
    #[error("cannot write to {stream}: {error}")]
    Forward { stream: &'static str, error: String },
    #[error("what the run left cannot be kept: {0}")]
    Staging(std::io::Error),
    #[error("cannot start the egress broker: {0}")]
    Broker(std::io::Error),
    #[error("nothing of `{what}` could be checked: {why}")]
    NothingToCheck { what: String, why: String },
}

/// Runs one request to its end. A misbehaving program is an Outcome, never an error.
pub fn execute(launcher: &Launcher, request: &Request, mut call: Call<'_>) -> Result<Outcome, ExecuteError> {
    let admitted = Instant::now();
    let created_at = jiff::Timestamp::now().to_string();
    let mut planned = plan(request)?;
    let took = admitted.elapsed();
    call.tell(Progress::Planned { began: admitted, took });
    let admit = took.as_micros() as u64;
    let toolchain = planned.language.as_ref().map(Toolchain::of);
    let mut phases = vec![];
    match build(launcher, request, &mut planned, &call)? {
        Built::Nothing => {}
        Built::Ready(compiled) => phases.push(*compiled),
        Built::Refused(spec, report, verdict) => {
            phases.push(phase("compile", &report, &verdict));
            let mut outcome = outcome(request, toolchain.as_ref(), &spec, &report, verdict, phases);
            (outcome.created_at, outcome.timings.admit) = (created_at, admit);
            leave(&call, request, &report, &mut outcome)?;
            return Ok(outcome);
        }
    }
    planned.complete();
    planned.run.limits.wall = request.granted.at_most(planned.run.limits.wall);
    call.tell(Progress::Running);
    let stdin = call.stdin.take();
    let broker = broker(request, &planned.run)?;
    let see = |what: Observed<'_>| call.see("run", &planned.run, what);
    let streams = Streams {
        stdin: stdin.as_ref().and_then(|stdin| stdin.try_clone().ok()),
        stdout: call.stdout,
        stderr: call.stderr,
        keep: call.keep,
        cancel: call.cancel,
        egress: broker.as_ref().map(|broker| broker as &dyn Egress),
        observer: observer(call.sentinel, &planned.run.limits, &see),
        passed: call.passed,
        terminal: call.terminal,
    };
    let uses_cache = planned.run.trees.iter().any(|tree| tree.cell.starts_with(product::AT));
    let next = match planned.parse.is_none() && !uses_cache {
        _ if call.others => Next::Likely,
        true => Next::Never,
        false => Next::Unlikely,
    };
    let ran = launcher.run_before(next, &planned.run, streams);
    let report = match ran {
        // What was kept is gone, between the look and the use: nothing ran, so it is made anew.
        Err(SandboxError::SetUp { what, .. }) if uses_cache && is_of_the_cache(Path::new(&what), request) => {
            let anew = Request { cache: None, ..request.clone() };
            return execute(launcher, &anew, Call { stdin, ..call });
        }
        ran => ran?,
    };
    call.tell(Progress::Ran { phase: "run", stages: &report.stages });
    for (stream, output) in [("standard output", &report.stdout), ("standard error", &report.stderr)] {
        if let Some(error) = output.failed.clone() {
            return Err(ExecuteError::Forward { stream, error });
        }
    }
    let program = planned.run.argv.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let mut verdict = judge(&report, request.on_violation, &program);
    if report.end == (End::NotExecuted { errno: judge::ENOENT }) && plan::has_image(request) {
        verdict.message = Some(judge::not_in_image(&program));
    }
    if let (Some(FailureClass::RuntimeError), Some(parse)) = (verdict.class, &planned.parse) {
        let next = if call.others { Next::Likely } else { Next::Never };
        ask_the_parser(launcher, next, parse, &mut verdict)?;
    }
    let (artifacts, skipped) = match (call.artifacts, &report.scratch) {
        (Some(dir), Some(scratch)) => {
            let ours = request.capsule.as_ref().map(|_| capsule::EVENTS);
            collect(scratch, dir, &request.collect, ours, request.limits.scratch_bytes)
        }
        _ => (vec![], vec![]),
    };
    phases.push(phase("run", &report, &verdict));
    let mut outcome = outcome(request, toolchain.as_ref(), &planned.run, &report, verdict, phases);
    (outcome.created_at, outcome.timings.admit) = (created_at, admit);
    (outcome.artifacts, outcome.skipped_checks) = (artifacts, skipped);
    if let (Some(_), Some(scratch)) = (&request.capsule, &report.scratch) {
        outcome.events = capsule::events(scratch);
    }
    outcome.events.extend(broker.map(|broker| broker.log().events()).unwrap_or_default());
    leave(&call, request, &report, &mut outcome)?;
    Ok(outcome)
}

/// For a run that may reach somebody.
pub(crate) fn broker(request: &Request, spec: &Spec) -> Result<Option<Broker>, ExecuteError> {
    let brokered = spec.network == Network::Brokered;
    brokered.then(|| Broker::new(&request.allowed_hosts)).transpose().map_err(ExecuteError::Broker)
}

/// What a leased run leaves with the operator.
fn leave(call: &Call<'_>, request: &Request, report: &Report, outcome: &mut Outcome) -> Result<(), ExecuteError> {
    match call.lease {
        Some(lease) => lease.finish(request, report, outcome).map_err(ExecuteError::Staging),
        None => Ok(()),
    }
}

/// A kept file by its own path, or by its place in the cell: it can vanish before either is reached.
fn is_of_the_cache(what: &Path, request: &Request) -> bool {
    what.starts_with(product::AT) || request.cache.as_ref().is_some_and(|dir| what.starts_with(dir))
}

/// How a parse step says that it is the source that is wrong, and nothing else.
const REFUSED: i32 = 65;

/// A program that failed by itself: did it ever begin? The toolchain's own parser says so, in a cell of its own.
fn ask_the_parser(launcher: &Launcher, next: Next, parse: &Spec, verdict: &mut Verdict) -> Result<(), ExecuteError> {
    let Report { end, violations, killed, .. } = launcher.run_before(next, parse, Streams::default())?;
    if end == End::Exited(REFUSED) && violations.is_empty() && killed.is_none() {
        verdict.class = Some(FailureClass::SyntaxError);
        verdict.evidence = Some("the toolchain's own parser refuses the source".into());
    }
    Ok(())
}
