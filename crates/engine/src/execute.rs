//! The way of one run: plan, run, judge, and the Outcome of it.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use hotcell_contract::{
    Layer, Outcome, OutputInfo, Phase, RuntimeConfig, SCHEMA_VERSION, Status, StreamInfo, Tier, Timings, Usage,
    Violation, ViolationDetail,
};
use hotcell_sandbox::{self as sandbox, Launcher, Report, SandboxError, Signals, Streams};

use crate::collect::collect;
use crate::judge::{self, judge};
use crate::plan::{PlanError, Planned, plan};
use crate::request::Request;

/// The caller's ends of the streams.
#[derive(Default)]
pub struct Call<'a> {
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<BorrowedFd<'a>>,
    pub stderr: Option<BorrowedFd<'a>>,
    /// A directory for the files that the program leaves in its working directory.
    pub artifacts: Option<&'a std::path::Path>,
    /// Bytes of each stream that the Outcome holds.
    pub keep: usize,
    pub cancel: Option<&'a Signals>,
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
}

/// Runs one request to its end. A misbehaving program is an Outcome, never an error.
pub fn execute(launcher: &Launcher, request: &Request, call: Call<'_>) -> Result<Outcome, ExecuteError> {
    let admitted = Instant::now();
    let created_at = jiff::Timestamp::now().to_string();
    let planned = plan(request)?;
    let admit_us = admitted.elapsed().as_micros() as u64;
    let streams =
        Streams { stdin: call.stdin, stdout: call.stdout, stderr: call.stderr, keep: call.keep, cancel: call.cancel };
    let report = launcher.run(&planned.spec, streams)?;
    for (stream, output) in [("standard output", &report.stdout), ("standard error", &report.stderr)] {
        if let Some(error) = output.failed.clone() {
            return Err(ExecuteError::Forward { stream, error });
        }
    }
    let (artifacts, skipped) = match (call.artifacts, &report.scratch) {
        (Some(dir), Some(scratch)) => collect(scratch, dir, request.limits.scratch_bytes),
        _ => (vec![], vec![]),
    };
    let mut outcome = outcome(request, &planned, report, admit_us);
    (outcome.created_at, outcome.artifacts, outcome.skipped_checks) = (created_at, artifacts, skipped);
    Ok(outcome)
}

fn outcome(request: &Request, planned: &Planned, report: Report, admit_us: u64) -> Outcome {
    let program = planned.spec.argv.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let verdict = judge(&report, request.on_violation, &program);
    let status = if verdict.class.is_none() { Status::Pass } else { Status::Fail };
    let usage = usage(&report);
    let (stdout, stdout_info) = text(&report.stdout);
    let (stderr, stderr_info) = text(&report.stderr);
    let layers = |layers: &[sandbox::Applied]| {
        layers.iter().map(|l| Layer { layer: l.layer.clone(), mechanism: l.mechanism.clone() }).collect()
    };
    let duration_ms = report.usage.wall.as_millis() as u64;
    Outcome {
        schema_version: SCHEMA_VERSION.into(),
        request_id: request.request_id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string()),
        attempt: 1,
        mode: request.mode,
        status,
        tier: Tier::L0,
        failure_class: verdict.class,
        terminal_event: verdict.terminal,
        exit_code: verdict.exit_code,
        signal: verdict.signal,
        duration_ms,
        output: OutputInfo {
            truncated: stdout_info.dropped + stderr_info.dropped > 0,
            stdout: stdout_info,
            stderr: stderr_info,
        },
        artifacts: vec![],
        skipped_checks: vec![],
        created_at: String::new(),
        usage,
        violations: report.violations.iter().map(violation).collect(),
        violations_dropped: report.violations_dropped,
        evidence: verdict.evidence,
        message: verdict.message,
        enforced: layers(&report.enforced),
        degraded: layers(&report.degraded),
        runtime_config: RuntimeConfig {
            backend: "native".into(),
            argv: planned.spec.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            language: planned.language.clone(),
            toolchain: planned.toolchain.clone(),
            network_policy: request.network,
            on_violation: request.on_violation,
            limits: request.limits.clone(),
        },
        phases: vec![Phase {
            name: "run".into(),
            status,
            failure_class: verdict.class,
            exit_code: verdict.exit_code,
            signal: verdict.signal,
            duration_ms,
            stdout: stdout.clone(),
            stderr: stderr.clone(),
            usage,
        }],
        stdout,
        stderr,
        timings: timings(&report, admit_us),
        retry_class: judge::retry(verdict.class),
    }
}

fn text(output: &sandbox::Output) -> (String, StreamInfo) {
    let dropped = output.dropped();
    let info = StreamInfo { bytes: output.total, kept: output.total - dropped, dropped };
    let text = if dropped == 0 {
        String::from_utf8_lossy(&[&output.head[..], &output.tail[..]].concat()).into_owned()
    } else {
        let (head, tail) = (String::from_utf8_lossy(&output.head), String::from_utf8_lossy(&output.tail));
        format!("{head}\n[... {dropped} bytes dropped ...]\n{tail}")
    };
    (text, info)
}

fn usage(report: &Report) -> Usage {
    let used = &report.usage;
    let (user, system) = (used.cpu_user.as_millis() as u64, used.cpu_system.as_millis() as u64);
    Usage {
        wall_ms: used.wall.as_millis() as u64,
        cpu_ms: (used.cpu_user + used.cpu_system).as_millis() as u64,
        cpu_user_ms: user,
        cpu_system_ms: system,
        memory_peak_bytes: used.memory_peak,
        processes_peak: used.processes_peak,
        output_bytes: report.stdout.total + report.stderr.total,
        scratch_bytes: used.scratch,
        read_bytes: used.read_bytes,
        write_bytes: used.write_bytes,
    }
}

fn violation(from: &sandbox::Violation) -> Violation {
    let d = &from.detail;
    Violation {
        class: judge::class(from.kind),
        at_ms: from.at.as_millis() as u64,
        detail: ViolationDetail {
            syscall: d.syscall.clone(),
            path: d.path.clone(),
            address: d.address.clone(),
            limit: d.limit,
            observed: d.observed,
            pid: d.pid,
            note: d.note.clone(),
        },
        evidence: from.evidence.to_owned(),
    }
}

fn timings(report: &Report, admit: u64) -> Timings {
    let us = |time: std::time::Duration| time.as_micros() as u64;
    let t = &report.timings;
    Timings {
        admit,
        cgroup: us(t.cgroup),
        clone: us(t.clone),
        mounts: us(t.mounts),
        exec: us(t.exec),
        run: us(t.run),
        collect: us(t.collect),
        record: 0,
    }
}
