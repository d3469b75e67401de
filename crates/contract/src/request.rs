//! What is asked of the service: content only, never a path of the host's.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::ID;
use crate::{NetworkPolicy, OnViolation};

/// What a program can be given as a word: there is no NUL in one.
const WORD: &str = r"^[^\x00]*$";
/// A relative path, without empty parts, `.` and `..`, and without control characters.
const FILE: &str = concat!(
    r"^([^/.\x00-\x1f\x7f-\x9f][^/\x00-\x1f\x7f-\x9f]*|\.[^/.\x00-\x1f\x7f-\x9f][^/\x00-\x1f\x7f-\x9f]*|\.\.[^/\x00-\x1f\x7f-\x9f]+)",
    r"(/([^/.\x00-\x1f\x7f-\x9f][^/\x00-\x1f\x7f-\x9f]*|\.[^/.\x00-\x1f\x7f-\x9f][^/\x00-\x1f\x7f-\x9f]*|\.\.[^/\x00-\x1f\x7f-\x9f]+))*$",
);

/// One program to run: `code`, `files` or `command`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunRequest {
    /// A source by itself.
    pub code: Option<Bytes>,
    /// Sources by their relative paths; `entry` says with which the program begins.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 1000, "propertyNames" = { "pattern": FILE, "maxLength": 512 }))]
    pub files: Option<BTreeMap<String, Bytes>>,
    /// A program of the cell and its arguments, instead of sources.
    #[schemars(length(min = 1, max = 1024), inner(regex(pattern = WORD)))]
    pub command: Option<Vec<String>>,
    /// Without it, the extension of `entry`, or of the only file, decides; `code` alone is Python.
    pub language: Option<String>,
    pub entry: Option<String>,
    #[schemars(length(max = 1024), inner(regex(pattern = WORD)))]
    pub args: Vec<String>,
    pub stdin: Option<Bytes>,
    #[schemars(extend("maxProperties" = 256, "propertyNames" = { "pattern": r"^[^=\x00]+$" }, "additionalProperties" = { "type": "string", "pattern": WORD }))]
    pub environment: BTreeMap<String, String>,
    /// One of the key's; the key's first, or the service's, where it is left out.
    #[schemars(regex(pattern = ID))]
    pub policy_id: Option<String>,
    /// Lower than the policy's.
    pub limits: LowerLimits,
    /// As far as the policy allows: less than its own.
    pub network: Option<NetworkPolicy>,
    /// `name:port`, for `restricted`: some of the policy's. All of them, when none are given.
    pub allowed_hosts: Vec<String>,
    /// Stricter than the policy's.
    pub on_violation: Option<OnViolation>,
    /// The key's own, or nothing.
    #[schemars(regex(pattern = ID))]
    pub tenant_id: Option<String>,
    #[schemars(regex(pattern = ID))]
    pub user_id: Option<String>,
    #[schemars(regex(pattern = ID))]
    pub run_id: Option<String>,
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub request_id: Option<String>,
    /// 1 to 3: which attempt at the same this is.
    #[schemars(range(min = 1, max = 3))]
    pub attempt: Option<u32>,
    /// The caller's own: returned with the run. 16 KiB at most.
    pub metadata: Option<serde_json::Map<String, serde_json::Value>>,
    /// A lease, to the letter as it was issued.
    pub lease: Option<String>,
    /// Globs of the files that the program leaves: which of them are kept as artifacts. None, when empty.
    pub collect: Vec<String>,
    /// What `ctx.read_state` answers from, under a policy with a capsule.
    pub state: Option<serde_json::Map<String, serde_json::Value>>,
    /// For a verification: how it goes about it.
    pub checks: Option<Checks>,
    /// The program has a terminal of this size, with `attach`: all that it says is `stdout` then.
    pub terminal: Option<TerminalSize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    #[schemars(range(min = 1, max = 1000))]
    pub rows: u16,
    #[schemars(range(min = 1, max = 1000))]
    pub columns: u16,
}

impl TerminalSize {
    pub const MOST: u16 = 1000;

    /// One that a screen can have.
    pub fn is_usual(self) -> bool {
        let known = 1..=TerminalSize::MOST;
        known.contains(&self.rows) && known.contains(&self.columns)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Checks {
    /// How often the tests are run, to find those that cannot decide: 1 to 20.
    #[schemars(range(min = 1, max = 20))]
    pub repeat: Option<u32>,
    /// The tests were generated with the code: they alone prove little.
    pub generated_tests: bool,
    /// A command for L2, for the shell.
    pub l2: Option<String>,
}

/// Text, or bytes as base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Bytes {
    Text(String),
    Base64(Base64),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Base64 {
    /// Of the standard alphabet, padded.
    #[schemars(regex(pattern = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"))]
    pub base64: String,
}

/// What is left out is the policy's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = with_bounds)]
pub struct LowerLimits {
    pub wall_ms: Option<u64>,
    pub grace_ms: Option<u64>,
    pub cpu_ms: Option<u64>,
    pub cpus: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub processes: Option<u64>,
    pub open_files: Option<u64>,
    pub file_size_bytes: Option<u64>,
    pub scratch_bytes: Option<u64>,
    pub scratch_inodes: Option<u64>,
    pub output_bytes: Option<u64>,
    pub compile_wall_ms: Option<u64>,
    pub compile_memory_bytes: Option<u64>,
}

/// Of `cpus`.
const CPUS: (f64, f64) = (0.01, 4096.0);

impl LowerLimits {
    /// Each whole number with its name, and what it can be.
    fn whole(&self) -> [(&'static str, Option<u64>, u64, u64); 12] {
        const DAY: u64 = 24 * 3600 * 1000;
        const PIB: u64 = 1 << 50;
        [
            ("wall_ms", self.wall_ms, 1, 30 * DAY),
            ("grace_ms", self.grace_ms, 0, 3_600_000),
            ("cpu_ms", self.cpu_ms, 1, 365 * DAY),
            ("memory_bytes", self.memory_bytes, 4 << 20, PIB / 2),
            ("processes", self.processes, 1, 1 << 20),
            ("open_files", self.open_files, 8, 1 << 20),
            ("file_size_bytes", self.file_size_bytes, 1, PIB),
            ("scratch_bytes", self.scratch_bytes, 0, PIB / 2),
            ("scratch_inodes", self.scratch_inodes, 1, 1 << 31),
            ("output_bytes", self.output_bytes, 1, PIB),
            ("compile_wall_ms", self.compile_wall_ms, 1, 30 * DAY),
            ("compile_memory_bytes", self.compile_memory_bytes, 4 << 20, PIB / 2),
        ]
    }

    /// The first that is nothing that could be held: its name, and what is wrong.
    pub fn out_of_range(&self) -> Option<(&'static str, String)> {
        let wrong = |(name, value, least, most): (_, Option<u64>, u64, u64)| {
            let value = value.filter(|value| !(least..=most).contains(value))?;
            Some((name, format!("it is {value}: give {least} to {most}")))
        };
        let cpus = self.cpus.filter(|cpus| !(CPUS.0..=CPUS.1).contains(cpus));
        let cpus = cpus.map(|cpus| ("cpus", format!("it is {cpus}: give {} to {}", CPUS.0, CPUS.1)));
        self.whole().into_iter().find_map(wrong).or(cpus)
    }
}

fn with_bounds(schema: &mut schemars::Schema) {
    let Some(fields) = schema.get_mut("properties") else { return };
    for (name, _, least, most) in LowerLimits::default().whole() {
        (fields[name]["minimum"], fields[name]["maximum"]) = (least.into(), most.into());
    }
    (fields["cpus"]["minimum"], fields["cpus"]["maximum"]) = (CPUS.0.into(), CPUS.1.into());
}
