//! `verification_result.json`: what every run answers, on every surface. All fields, always; nulls explicit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FailureClass, Mode, NetworkPolicy, OnViolation, RetryClass, Status, TerminalEvent, Tier};

pub const SCHEMA_VERSION: &str = "1.0";

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// "1.0"
    pub schema_version: String,
    /// The caller's, or a UUIDv7.
    pub request_id: String,
    /// 1 to 3.
    pub attempt: u32,
    pub mode: Mode,
    pub status: Status,
    pub tier: Tier,
    /// Null on pass.
    pub failure_class: Option<FailureClass>,
    /// What ended the run, when it did not end by itself.
    pub terminal_event: Option<TerminalEvent>,
    /// Of the program; null when it never started or was killed.
    pub exit_code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// Wall time of the program, monotonic.
    pub duration_ms: u64,
    /// Text; bytes that are not UTF-8 replaced. Over the cap: head and tail, see `output`.
    pub stdout: String,
    pub stderr: String,
    pub output: OutputInfo,
    pub artifacts: Vec<Artifact>,
    pub skipped_checks: Vec<SkippedCheck>,
    /// RFC 3339, UTC.
    pub created_at: String,
    pub usage: Usage,
    /// Every attempt that was refused and every limit that was met, in order, capped.
    pub violations: Vec<Violation>,
    /// How many more there were than the cap lists.
    pub violations_dropped: u64,
    /// Which witness decided the verdict; null when the program ended by itself.
    pub evidence: Option<String>,
    /// One sentence about what happened, when there is more to say than the class.
    pub message: Option<String>,
    /// The layers of isolation and the mechanism of each, as applied to this run.
    pub enforced: Vec<Layer>,
    /// Layers that are weaker here than they should be, and why.
    pub degraded: Vec<Layer>,
    pub runtime_config: RuntimeConfig,
    /// Compile and run, each with its own exit, usage and output.
    pub phases: Vec<Phase>,
    pub timings: Timings,
    pub retry_class: Option<RetryClass>,
    /// What a capsule said and what was refused to it, in order; guest-influenced, and no verdict is taken from it. Behind
    /// that, the connections that the egress broker made, by their ends.
    pub events: Vec<Event>,
}

impl Outcome {
    /// As it is written to files and printed, to the byte: receipts have the hash of it.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }
}

/// `capsule.log`, `capsule.refused`, `capsule.dropped`; `egress.admitted`, `egress.failed`, `egress.dropped`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    pub kind: String,
    pub message: Option<String>,
    /// What was refused.
    pub what: Option<String>,
    pub line: Option<u64>,
    #[serde(default)]
    pub fields: serde_json::Map<String, serde_json::Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OutputInfo {
    pub truncated: bool,
    pub stdout: StreamInfo,
    pub stderr: StreamInfo,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StreamInfo {
    /// All that the program wrote.
    pub bytes: u64,
    pub kept: u64,
    pub dropped: u64,
    /// Of the bytes that were kept, as the program wrote them: the text can't show bytes that are no UTF-8.
    pub sha256: String,
}

/// A file that the program left in its working directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SkippedCheck {
    pub check: String,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    pub wall_ms: u64,
    pub cpu_ms: u64,
    pub cpu_user_ms: u64,
    pub cpu_system_ms: u64,
    /// Without the scratch; without a group, at least what starting a program takes.
    pub memory_peak_bytes: u64,
    /// Null where nothing on the host counts them.
    pub processes_peak: Option<u64>,
    pub output_bytes: u64,
    pub scratch_bytes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    pub class: FailureClass,
    /// Since the program started.
    pub at_ms: u64,
    pub detail: ViolationDetail,
    pub evidence: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ViolationDetail {
    pub syscall: Option<String>,
    pub path: Option<String>,
    pub address: Option<String>,
    pub limit: Option<u64>,
    pub observed: Option<u64>,
    pub pid: Option<i32>,
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    pub layer: String,
    pub mechanism: String,
}

/// What the run was given.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeConfig {
    pub backend: String,
    /// What the root was made of: `sha256:` and the digest of an image, or the path of a directory that has none. Null without.
    pub image: Option<String>,
    pub argv: Vec<String>,
    pub language: Option<String>,
    /// The program that runs it, and its version where it is known.
    pub toolchain: Option<String>,
    pub network_policy: NetworkPolicy,
    /// For `restricted`.
    pub allowed_hosts: Vec<String>,
    pub on_violation: OnViolation,
    pub limits: Limits,
    /// What the caller said of the request.
    pub metadata: std::collections::BTreeMap<String, String>,
    /// What of the policy's `strict_when` raised the run to a kernel of its own.
    pub raised_by: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub wall_ms: u64,
    /// Between SIGTERM and SIGKILL.
    pub grace_ms: u64,
    pub cpu_ms: Option<u64>,
    pub cpus: f64,
    pub memory_bytes: u64,
    pub processes: u64,
    pub open_files: u64,
    pub file_size_bytes: u64,
    pub scratch_bytes: u64,
    pub scratch_inodes: u64,
    /// Of each stream.
    pub output_bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// `compile` or `run`; of a verification, the name of the check.
    pub name: String,
    /// What the check belongs to; null for a plain run.
    pub tier: Option<Tier>,
    pub status: Status,
    pub failure_class: Option<FailureClass>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// Not carried out, because the same was before.
    pub cached: bool,
    pub duration_ms: u64,
    pub stdout: String,
    pub stderr: String,
    pub usage: Usage,
    /// What a test runner said of its tests; null where none ran.
    pub tests: Option<Tests>,
}

/// A test runner's own word: no verdict is taken from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tests {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    /// Names, at most 100.
    pub failing: Vec<String>,
}

/// Microseconds by stage. `exec` is all of the way from the request to the program's first instruction; `cgroup`,
/// `clone` and `mounts` are parts of it, or of the time before it, when a cell was made ahead.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Timings {
    pub admit: u64,
    pub cgroup: u64,
    pub clone: u64,
    pub mounts: u64,
    pub exec: u64,
    pub run: u64,
    pub collect: u64,
    pub record: u64,
}
