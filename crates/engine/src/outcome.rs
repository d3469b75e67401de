//! From a Report and its verdict to the Outcome.

use hotcell_contract::{
    AllowedHost, Layer, Outcome, OutputInfo, Phase, RuntimeConfig, SCHEMA_VERSION, Status, StreamInfo, Tier, Timings,
    Usage, Violation, ViolationDetail,
};
use hotcell_sandbox::{self as sandbox, Network, Report, Spec, Step};
use sha2::{Digest, Sha256};

use crate::backend::Container;
use crate::judge::{self, Verdict};
use crate::keys::hex;
use crate::request::Request;

/// Which language, and the program that stands for its toolchain.
pub(crate) struct Toolchain {
    pub(crate) language: String,
    pub(crate) program: String,
}

impl Toolchain {
    pub(crate) fn of(plan: &hotcell_languages::Planned) -> Toolchain {
        Toolchain { language: plan.language.clone(), program: plan.toolchain() }
    }
}

/// One cell of a request, as the caller sees it.
pub(crate) fn phase(name: &str, report: &Report, verdict: &Verdict) -> Phase {
    Phase {
        name: name.into(),
        tier: None,
        status: status(verdict),
        failure_class: verdict.class,
        exit_code: verdict.exit_code,
        signal: verdict.signal,
        cached: false,
        duration_ms: report.usage.wall.as_millis() as u64,
        stdout: text(&report.stdout),
        stderr: text(&report.stderr),
        usage: usage(report),
        tests: None,
    }
}

/// A cell that was not needed, because what it makes was there.
pub(crate) fn cached(name: &str) -> Phase {
    Phase {
        name: name.into(),
        tier: None,
        status: Status::Pass,
        failure_class: None,
        exit_code: None,
        signal: None,
        cached: true,
        duration_ms: 0,
        stdout: String::new(),
        stderr: String::new(),
        usage: Usage::default(),
        tests: None,
    }
}

fn status(verdict: &Verdict) -> Status {
    if verdict.class.is_none() { Status::Pass } else { Status::Fail }
}

/// The Outcome of the last of the `phases`, whose report and spec these are.
pub(crate) fn outcome(
    request: &Request,
    language: Option<&Toolchain>,
    spec: &Spec,
    report: &Report,
    verdict: Verdict,
    phases: Vec<Phase>,
) -> Outcome {
    let (stdout, stderr) = (stream(&report.stdout), stream(&report.stderr));
    let layers = |layers: &[sandbox::Applied]| {
        layers.iter().map(|l| Layer { layer: l.layer.clone(), mechanism: l.mechanism.clone() }).collect()
    };
    let mut enforced: Vec<Layer> = layers(&report.enforced);
    if spec.network == Network::Brokered {
        let mechanism = "loopback of the cell's own, and an egress broker that admits hosts by name and port";
        enforced.push(Layer { layer: "network".into(), mechanism: mechanism.into() });
    }
    Outcome {
        schema_version: SCHEMA_VERSION.into(),
        request_id: request.request_id.clone().unwrap_or_else(crate::request::new_id),
        attempt: 1,
        mode: request.mode,
        status: status(&verdict),
        tier: Tier::L0,
        failure_class: verdict.class,
        terminal_event: verdict.terminal,
        exit_code: verdict.exit_code,
        signal: verdict.signal,
        duration_ms: report.usage.wall.as_millis() as u64,
        output: OutputInfo { truncated: stdout.dropped + stderr.dropped > 0, stdout, stderr },
        stdout: text(&report.stdout),
        stderr: text(&report.stderr),
        artifacts: vec![],
        skipped_checks: vec![],
        created_at: String::new(),
        usage: usage(report),
        violations: report.violations.iter().map(violation).collect(),
        violations_dropped: report.violations_dropped,
        retry_class: judge::retry(verdict.class),
        evidence: verdict.evidence,
        message: verdict.message,
        enforced,
        degraded: layers(&report.degraded),
        runtime_config: RuntimeConfig {
            backend: backend(spec),
            image: request.container.as_ref().and_then(Container::image_name),
            argv: spec.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            language: language.map(|toolchain| toolchain.language.clone()),
            toolchain: language.map(|toolchain| toolchain.program.clone()),
            network_policy: request.network,
            allowed_hosts: request.allowed_hosts.iter().map(AllowedHost::to_string).collect(),
            on_violation: request.on_violation,
            limits: request.limits.clone(),
            metadata: request.metadata.clone(),
            raised_by: request.raised_by.clone(),
        },
        phases,
        timings: timings(report),
        events: vec![],
    }
}

/// `native`, `oci` and by whom, or the engine.
fn backend(spec: &sandbox::Spec) -> String {
    if let Some(engine) = &spec.engine {
        return engine.name().into();
    }
    let runtime = spec.runtime.as_ref().and_then(|runtime| runtime.path.file_name());
    runtime.map_or("native".into(), |name| format!("oci/{}", name.to_string_lossy()))
}

fn stream(output: &sandbox::Output) -> StreamInfo {
    let dropped = output.dropped();
    let sha256 = hex(&Sha256::new().chain_update(&output.head).chain_update(&output.tail).finalize());
    StreamInfo { bytes: output.total, kept: output.total - dropped, dropped, sha256 }
}

fn text(output: &sandbox::Output) -> String {
    let dropped = output.dropped();
    if dropped == 0 {
        return String::from_utf8_lossy(&[&output.head[..], &output.tail[..]].concat()).into_owned();
    }
    let (head, tail) = (String::from_utf8_lossy(&output.head), String::from_utf8_lossy(&output.tail));
    format!("{head}\n[... {dropped} bytes dropped ...]\n{tail}")
}

pub(crate) fn usage(report: &Report) -> Usage {
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

pub(crate) fn violation(from: &sandbox::Violation) -> Violation {
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

fn timings(report: &Report) -> Timings {
    let us = |step: Step| report.took(step).as_micros() as u64;
    Timings {
        admit: 0,
        cgroup: us(Step::Cgroup),
        clone: us(Step::Clone),
        mounts: us(Step::Mounts),
        exec: us(Step::Exec),
        run: us(Step::Run),
        collect: us(Step::Collect),
        record: 0,
    }
}
