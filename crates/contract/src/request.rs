//! What is asked of the service: content only, never a path of the host's.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{NetworkPolicy, OnViolation};

/// One program to run: `code`, `files` or `command`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunRequest {
    /// A source by itself.
    pub code: Option<Bytes>,
    /// Sources by their relative paths; `entry` says with which the program begins.
    pub files: Option<BTreeMap<String, Bytes>>,
    /// A program of the cell and its arguments, instead of sources.
    pub command: Option<Vec<String>>,
    /// Without it, the extension of `entry`, or of the only file, decides; `code` alone is Python.
    pub language: Option<String>,
    pub entry: Option<String>,
    pub args: Vec<String>,
    pub stdin: Option<Bytes>,
    pub environment: BTreeMap<String, String>,
    /// One of the key's; the key's first, or the service's, where it is left out.
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
    pub tenant_id: Option<String>,
    pub user_id: Option<String>,
    pub run_id: Option<String>,
    pub request_id: Option<String>,
    /// 1 to 3: which attempt at the same this is.
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
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Checks {
    /// How often the tests are run, to find those that cannot decide: 1 to 20.
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
    pub base64: String,
}

/// What is left out is the policy's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
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
