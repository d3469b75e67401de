//! What an agent asks for and is told over MCP: as much as it can act on, and no more than it can read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Bytes, Checks, FailureClass, LowerLimits, RetryClass, SkippedCheck, Status, TerminalEvent, Tests, Tier, Violation,
};

/// A program to run: `code`, or `files`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunCode {
    /// One of `list_languages`. Without it, the extension of `entry`, or of the only file, decides; `code` alone is Python.
    pub language: Option<String>,
    /// A source by itself.
    pub code: Option<String>,
    /// Sources and data by their relative paths, as text or as {"base64": "..."}. They lie in /src, which is read-only; the
    /// program runs in /work.
    pub files: Option<BTreeMap<String, Bytes>>,
    /// With which of `files` the program begins.
    pub entry: Option<String>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// What the program reads from its standard input.
    pub stdin: Option<String>,
    /// Variables of its environment.
    pub environment: BTreeMap<String, String>,
    /// After so many milliseconds it is ended. The policy's where it is left out; never more than that.
    pub timeout_ms: Option<u64>,
    /// Other limits, each lower than the policy's.
    pub limits: LowerLimits,
    /// A signed permission, to the letter as it was issued: where the operator asks for one.
    pub lease: Option<String>,
}

/// A program of the cell to run: words, and no shell unless it is one of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunCommand {
    /// The program and its arguments: ["ls", "-l", "/usr"], or ["sh", "-c", "echo $HOME"].
    pub command: Vec<String>,
    /// What the program reads from its standard input.
    pub stdin: Option<String>,
    /// Variables of its environment.
    pub environment: BTreeMap<String, String>,
    /// After so many milliseconds it is ended. The policy's where it is left out; never more than that.
    pub timeout_ms: Option<u64>,
    /// Other limits, each lower than the policy's.
    pub limits: LowerLimits,
    /// A signed permission, to the letter as it was issued: where the operator asks for one.
    pub lease: Option<String>,
}

/// Sources and the tests among them to check: `code`, or `files`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VerifyCode {
    /// One of `list_languages`. Without it, the extension of `entry`, or of the only file, decides; `code` alone is Python.
    pub language: Option<String>,
    /// A source by itself.
    pub code: Option<String>,
    /// Sources, tests and data by their relative paths, as text or as {"base64": "..."}.
    pub files: Option<BTreeMap<String, Bytes>>,
    /// With which of `files` the program begins.
    pub entry: Option<String>,
    /// Variables of the environment of each check.
    pub environment: BTreeMap<String, String>,
    /// After so many milliseconds a check is ended. The policy's where it is left out; never more than that.
    pub timeout_ms: Option<u64>,
    /// Other limits of each check, each lower than the policy's.
    pub limits: LowerLimits,
    /// How the tests are run.
    pub checks: Checks,
}

/// Nothing is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListLanguages {}

/// What an agent is told of a run: the useful part of its Outcome.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// The record of the run has the same.
    pub run_id: String,
    pub status: Status,
    /// Of a verification: the highest that was passed.
    pub tier: Tier,
    /// Null on pass.
    pub failure_class: Option<FailureClass>,
    /// What ended the run, when it did not end by itself.
    pub terminal_event: Option<TerminalEvent>,
    /// Of the program; null when it never started or was killed.
    pub exit_code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// One sentence about what happened, when there is more to say than the class.
    pub message: Option<String>,
    pub duration_ms: u64,
    pub cpu_ms: u64,
    pub memory_peak_bytes: u64,
    /// Of the program, or of the compiler that refused it. A long one is cut in its middle, and says so there.
    pub stdout: String,
    pub stderr: String,
    /// All that was written.
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    /// Something of `stdout`, `stderr` or a phase's `output` is left out here.
    pub truncated: bool,
    /// What was refused and which limits were met: the first ones.
    pub violations: Vec<Violation>,
    /// How many more there were.
    pub violations_dropped: u64,
    /// Compile and run, or the checks of a verification.
    pub phases: Vec<PhaseSummary>,
    pub skipped_checks: Vec<SkippedCheck>,
    /// `syntax` and `deterministic` are worth another attempt with other code.
    pub retry_class: Option<RetryClass>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSummary {
    /// `compile` or `run`; of a verification, the name of the check.
    pub name: String,
    pub tier: Option<Tier>,
    pub status: Status,
    pub failure_class: Option<FailureClass>,
    pub exit_code: Option<i32>,
    pub duration_ms: u64,
    /// What it said, where it has failed.
    pub output: Option<String>,
    /// What a test runner said of its tests; null where none ran.
    pub tests: Option<Tests>,
}
