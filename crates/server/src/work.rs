//! A thread that runs what comes: each run from its record to its result, one after the other, until nothing waits.

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use hotcell_contract::{Happened, Outcome, RecordStatus, RunEvent, Started, Status, TerminalEvent};
use hotcell_engine::{
    Asked, Audit, Call, ExecuteError, Progress, SandboxError, Sentinel, StateError, Told, Verb, Watch, audit_alert,
    begin, end, execute, leave, now, verify,
};
use rustix::fs::MemfdFlags;

use crate::convert::{Job, Stdin};
use crate::problem::Problem;
use crate::queue::Queued;
use crate::run::Run;
use crate::service::Service;
use crate::trace::Trace;

pub(crate) fn work(service: &Arc<Service>, first: Option<Queued>) {
    let mut next = first;
    while let Some(queued) = next {
        queued.waited();
        let Queued { run, job, .. } = queued;
        run.begins();
        let ran = catch_unwind(AssertUnwindSafe(|| one(service, &run, job)));
        let (status, result) = match ran {
            Ok((status, result)) => (status, result),
            Err(_) => (RecordStatus::Failed, Err(Problem::internal(&"a run has panicked").of_record(&run.id))),
        };
        tell(&run, status, &result);
        service.metrics.ended(status, &result);
        service.end_run(&run, status, result);
        next = service.next_job();
    }
}

type Ended = (RecordStatus, Result<Box<Outcome>, Problem>);

/// Begin, execute, end: the engine decides in each of them.
fn one(service: &Arc<Service>, run: &Arc<Run>, mut job: Job) -> Ended {
    let alerted = Cell::new(false);
    let is_followed = run.how.is_kept || run.how.is_followed;
    let say = |event: RunEvent| {
        if matches!(event.happened, Happened::Alert(_)) {
            alerted.set(true);
            service.alerts.put(&run.id, &event);
        }
        if let Some(transcript) = &run.how.transcript {
            transcript.put(&event);
        }
        if is_followed || !matches!(event.happened, Happened::Output(_)) {
            run.log.push(event);
        }
    };
    let watch = Watch { output: is_followed || run.how.transcript.is_some(), ..Watch::default() };
    let sentinel = Sentinel::new(&run.request_id, watch, &say);
    // What cannot be written down does not run.
    if service.unwritten.len() >= service.settings.concurrency {
        let problem =
            Problem::unavailable("unwritten", "the ends of earlier runs cannot be written down: come back later");
        service.metrics.refused(&problem);
        return (RecordStatus::Denied, Err(problem));
    }
    let leased = job.leased.take();
    let start = Instant::now();
    let begun = begin(&mut service.state(), &job.request, &job.who, Some(&job.policy), leased.as_ref());
    run.trace.iter().for_each(|trace| trace.passed("record", start));
    let mut begun = match begun {
        Ok(begun) => begun,
        Err(error) => {
            if let StateError::Refused { class, why, .. } = &error {
                sentinel.denied(*class, why);
            }
            // What else goes wrong there is that it cannot be written down.
            let is_on_record = matches!(error, StateError::Refused { .. } | StateError::Staging(_));
            let problem = Problem::from(error);
            service.metrics.refused(&problem);
            let problem = if is_on_record { problem.of_record(&run.id) } else { problem };
            return (RecordStatus::Denied, Err(problem));
        }
    };
    sentinel.admitted();
    let mut outcome = match job.verb {
        Verb::Verify => checks(service, run, &job),
        Verb::Run | Verb::Exec => program(service, run, &mut job, begun.leased_run(), &sentinel),
    };
    if alerted.get() {
        // They are in the log before the end is.
        service.alerts.flush();
    }
    let averages = sentinel.averages();
    let start = Instant::now();
    let written = end(&mut service.state(), &mut begun, &mut outcome, &averages);
    let left = outcome.as_ref().map_or(Ok(()), |outcome| leave(&mut service.state(), &begun, outcome));
    run.trace.iter().for_each(|trace| trace.passed("record", start));
    if let Err(error) = written {
        tracing::error!(run = run.id, %error, "the end of a run cannot be put on record: it is tried again");
        service.unwritten.put_record(begun.into_ticket());
    }
    let was_called_off = matches!(outcome, Err(ExecuteError::Sandbox(SandboxError::Cancelled { .. })));
    let ended = outcome.map_err(|error| not_carried_out(service, error));
    match ended.and_then(|outcome| left.map(|()| outcome).map_err(Problem::from)) {
        Ok(mut outcome) => {
            outcome.attempt = job.attempt.max(outcome.attempt);
            if let (Some(why), Some(TerminalEvent::Cancelled)) = (run.called_off(), outcome.terminal_event) {
                outcome.message = Some(why.to_owned());
            }
            without_the_host(&mut outcome);
            sentinel.ended(&outcome);
            (status_of(&outcome), Ok(Box::new(outcome)))
        }
        Err(problem) => {
            sentinel.failed(&problem.detail);
            let status = if was_called_off { RecordStatus::Killed } else { RecordStatus::Failed };
            (status, Err(problem.of_record(&run.id)))
        }
    }
}

fn not_carried_out(service: &Service, error: ExecuteError) -> Problem {
    if !matches!(error, ExecuteError::Sandbox(SandboxError::LauncherDied)) {
        return Problem::from(error);
    }
    service.broken.send_replace(true);
    Problem::unavailable("launcher", "nothing can run here any more: the service has to be started again")
}

fn program(
    service: &Service,
    run: &Run,
    job: &mut Job,
    lease: Option<hotcell_engine::LeasedRun<'_>>,
    sentinel: &Sentinel<'_>,
) -> Result<Outcome, ExecuteError> {
    let artifacts = job.artifacts.then(|| service.results.artifacts(&run.id));
    let stdin =
        given(std::mem::take(&mut job.stdin)).map_err(|error| SandboxError::Io { what: "give the input", error })?;
    let follow = |progress: Progress<'_>| match (&run.trace, progress) {
        (Some(trace), Progress::Planned { began, took }) => trace.planned(began, took),
        (Some(trace), Progress::Ran { phase, stages }) => trace.ran(phase, stages),
        _ => {}
    };
    let call = Call {
        stdin,
        artifacts: artifacts.as_deref(),
        keep: usize::try_from(job.request.limits.output_bytes).unwrap_or(usize::MAX),
        cancel: Some(run.stop()),
        passed: run.passed.as_ref(),
        terminal: run.terminal.as_ref(),
        lease,
        sentinel: Some(sentinel),
        progress: Some(&follow),
        others: true,
        ..Call::default()
    };
    execute(&service.launcher, &job.request, call)
}

fn checks(service: &Service, run: &Run, job: &Job) -> Result<Outcome, ExecuteError> {
    let began = Cell::new(Instant::now());
    let asked = Asked {
        budget: Duration::from_secs_f64(job.policy.request_budget_seconds),
        repeat: job.checks.repeat,
        generated_tests: job.checks.generated_tests,
        l2: job.checks.l2.clone(),
        cancel: Some(run.stop()),
        tell: &|told| match told {
            Told::Begins(check) => {
                began.set(Instant::now());
                let happened = Happened::Started(Started { limits: job.request.limits.clone() });
                let (at, request_id, phase) = (now(), run.request_id.clone(), Some(check.to_owned()));
                run.log.push(RunEvent { at, request_id, phase, since_start_ms: 0, happened });
            }
            Told::Ended(phase) => {
                run.trace.iter().for_each(|trace| trace.checked(phase, began.get()));
            }
            Told::Attempt(_) | Told::Skipped(_) => {}
        },
    };
    verify(&service.launcher, job.request.clone(), &asked, None)
}

/// A file of its own, which needs nobody to write it while the program reads.
fn given(stdin: Stdin) -> io::Result<Option<OwnedFd>> {
    let bytes = match stdin {
        Stdin::Nothing => return Ok(None),
        Stdin::Live(fd) => return Ok(Some(fd)),
        Stdin::Given(bytes) => bytes,
    };
    let file = rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC)?;
    let mut left = bytes.as_slice();
    while !left.is_empty() {
        let written = rustix::io::write(&file, left)?;
        left = &left[written..];
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(Some(file))
}

/// Where on the host a toolchain lies is nobody's business.
fn without_the_host(outcome: &mut Outcome) {
    if let Some(toolchain) = &mut outcome.runtime_config.toolchain
        && let Some((_, name)) = toolchain.split(' ').next().and_then(|path| path.rsplit_once('/'))
    {
        let rest = toolchain.split_once(' ').map(|(_, rest)| format!(" {rest}")).unwrap_or_default();
        *toolchain = format!("{name}{rest}");
    }
    for skipped in &mut outcome.skipped_checks {
        let name = |word: &str| word.rsplit('/').next().filter(|_| word.starts_with('/')).unwrap_or(word).to_owned();
        skipped.reason = skipped.reason.split(' ').map(name).collect::<Vec<_>>().join(" ");
    }
}

fn status_of(outcome: &Outcome) -> RecordStatus {
    hotcell_engine::status_of(outcome)
}

/// For the log: who, what, how long each stage took.
fn tell(run: &Run, status: RecordStatus, result: &Result<Box<Outcome>, Problem>) {
    match result {
        Ok(outcome) => {
            let timings = &outcome.timings;
            tracing::info!(
                run = run.id,
                tenant = run.tenant,
                request_id = run.request_id,
                policy = run.policy_id,
                trace_id = run.trace.as_ref().map(Trace::id),
                status = status.name(),
                class = outcome.failure_class.map(|class| format!("{class:?}")),
                passed = outcome.status == Status::Pass,
                wall_ms = outcome.usage.wall_ms,
                cpu_ms = outcome.usage.cpu_ms,
                admit_us = timings.admit,
                exec_us = timings.exec,
                run_us = timings.run,
                collect_us = timings.collect,
                "run ended"
            );
        }
        Err(problem) => tracing::info!(
            run = run.id,
            tenant = run.tenant,
            policy = run.policy_id,
            trace_id = run.trace.as_ref().map(Trace::id),
            status = status.name(),
            problem = problem.kind,
            detail = problem.detail,
            "run did not take place"
        ),
    }
}

/// Writes alerts down in a thread of its own: the lock of the audit log must not make a run's supervisor wait.
pub(crate) struct Alerts {
    say: SyncSender<Word>,
}

enum Word {
    Alert(String, Box<RunEvent>),
    Flush(Sender<()>),
}

/// Alerts come once for each resource of a run.
const WAITING: usize = 4096;

impl Alerts {
    pub(crate) fn start(audit: Audit) -> io::Result<Alerts> {
        let (say, heard) = sync_channel(WAITING);
        std::thread::Builder::new().name("alerts".into()).spawn(move || {
            for word in heard {
                match word {
                    Word::Alert(record_id, event) => {
                        if let Err(error) = audit_alert(&audit, &record_id, &event) {
                            tracing::error!(record_id, %error, "an alert is not in the audit log");
                        }
                    }
                    Word::Flush(done) => drop(done.send(())),
                }
            }
        })?;
        Ok(Alerts { say })
    }

    fn put(&self, record_id: &str, event: &RunEvent) {
        if self.say.try_send(Word::Alert(record_id.to_owned(), Box::new(event.clone()))).is_err() {
            tracing::error!(record_id, "an alert is not in the audit log: too many wait");
        }
    }

    fn flush(&self) {
        let (done, waits) = channel();
        if self.say.send(Word::Flush(done)).is_ok() {
            let _ = waits.recv();
        }
    }
}
