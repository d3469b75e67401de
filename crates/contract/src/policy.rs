//! A policy: who may run what, and how much of everything it may use. Every field is enforced.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AllowedHost, Mode, NetworkPolicy, OnViolation};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Letters, digits, `_` and `-`.
    #[schemars(regex(pattern = ID))]
    pub policy_id: String,
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub name: String,
    #[serde(default = "balanced")]
    pub mode: Mode,
    #[serde(default)]
    pub isolation_level: IsolationLevel,
    /// `native`; absent: whatever the level needs.
    #[schemars(regex(pattern = "^(native|oci|docker)$"))]
    pub backend: Option<String>,
    pub network_policy: NetworkPolicy,
    /// For `restricted`: `name:port`, `*.name:port`, `address:port` or `[address]:port`.
    #[serde(default)]
    pub allowed_hosts: Vec<String>,
    /// User and system time of all processes together.
    #[schemars(range(min = 0.001, max = 2_592_000.0))]
    pub max_cpu_seconds: Option<f64>,
    #[serde(default = "two")]
    #[schemars(range(min = 0.01, max = 4096.0))]
    pub cpus: f64,
    #[serde(default = "memory")]
    #[schemars(range(min = 4, max = 536870912))]
    pub max_memory_mb: u64,
    #[serde(default = "wall")]
    #[schemars(range(min = 0.001, max = 2_592_000.0))]
    pub max_wall_time_seconds: f64,
    #[serde(default = "budget")]
    #[schemars(range(min = 0.001, max = 2_592_000.0))]
    pub request_budget_seconds: f64,
    #[serde(default = "processes")]
    #[schemars(range(min = 1, max = 1048576))]
    pub max_processes: u64,
    #[serde(default = "open_files")]
    #[schemars(range(min = 8, max = 1048576))]
    pub max_open_files: u64,
    /// Absent: as the scratch.
    #[schemars(range(min = 1, max = 536870912))]
    pub max_file_size_mb: Option<u64>,
    #[serde(default = "output")]
    #[schemars(range(min = 1, max = 536870912))]
    pub max_output_mb: u64,
    #[serde(default = "scratch")]
    #[schemars(range(min = 1, max = 536870912))]
    pub scratch_mb: u64,
    /// Empty: all.
    #[serde(default)]
    pub allowed_languages: Vec<String>,
    #[schemars(range(min = 1, max = 1000000))]
    pub max_executions_per_minute: Option<u64>,
    #[schemars(range(min = 1, max = 100000000))]
    pub max_executions_per_hour: Option<u64>,
    /// Runs of one tenant at the same time.
    #[schemars(range(min = 1, max = 100000))]
    pub max_concurrent: Option<u64>,
    #[serde(default)]
    pub allow_network: bool,
    /// Whether there is a scratch to write into.
    #[serde(default)]
    pub allow_file_write: bool,
    #[serde(default)]
    pub require_approval: bool,
    /// Only under a lease that a human and an agent have signed.
    #[serde(default)]
    pub two_key_lease: bool,
    #[serde(default = "fail")]
    pub on_violation: OnViolation,
    /// Layers without which to refuse: `cgroup`, `landlock`, `patched-runtime`.
    #[serde(default)]
    #[schemars(inner(regex(pattern = "^(cgroup|landlock|patched-runtime)$")))]
    pub require: Vec<String>,
    #[serde(default)]
    pub compile: CompileLimits,
    #[serde(default)]
    pub python: PythonLayer,
    /// What raises a run to a kernel of its own, where `isolation_level` asks for less; nothing lowers it.
    #[serde(default)]
    pub strict_when: StrictWhen,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IsolationLevel {
    /// Refused unless the operator enables it.
    None,
    /// The native cell.
    #[default]
    Process,
    /// An OCI runtime, Docker or Podman.
    Container,
    /// A runtime with a kernel of its own.
    Vm,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PythonLayer {
    #[default]
    Full,
    /// Restricted builtins, as one more layer.
    Capsule,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompileLimits {
    #[schemars(range(min = 0.001, max = 2_592_000.0))]
    pub max_wall_time_seconds: f64,
    #[schemars(range(min = 4, max = 536870912))]
    pub max_memory_mb: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        CompileLimits { max_wall_time_seconds: 120.0, max_memory_mb: 2048 }
    }
}

/// By names alone: of what is run, and in what is said of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StrictWhen {
    /// Globs: `*` and `?` stay inside one name, `**` goes through any number of directories.
    #[schemars(length(max = 1000), inner(length(min = 1, max = 1024), regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")))]
    pub paths: Vec<String>,
    /// Whole words of the request's metadata, keys or values, in capitals or not.
    #[schemars(length(max = 1000), inner(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9]*$")))]
    pub words: Vec<String>,
}

impl StrictWhen {
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.words.is_empty()
    }
}

/// Whether one of the words of a text is this one. What is neither letter nor digit is between words.
pub fn has_word(text: &str, word: &str) -> bool {
    let word = word.to_lowercase();
    text.split(|c: char| !c.is_alphanumeric()).any(|one| one.to_lowercase() == word)
}

fn balanced() -> Mode {
    Mode::Balanced
}
fn fail() -> OnViolation {
    OnViolation::Fail
}
fn two() -> f64 {
    2.0
}
fn memory() -> u64 {
    1024
}
fn wall() -> f64 {
    45.0
}
fn budget() -> f64 {
    180.0
}
fn processes() -> u64 {
    256
}
fn open_files() -> u64 {
    1024
}
fn output() -> u64 {
    10
}
fn scratch() -> u64 {
    512
}

/// A field, what it is and what it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub field: &'static str,
    pub given: String,
    pub allowed: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}: {}", self.field, self.given, self.allowed)
    }
}

impl Policy {
    /// Everything that is wrong with it, by itself or against itself.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = vec![];
        let mut bad = |field, given: String, allowed: &str| {
            found.push(Problem { field, given, allowed: allowed.to_owned() });
        };
        if !is_id(&self.policy_id) {
            bad("policy_id", quoted(&self.policy_id), "give 1 to 64 letters, digits, `_` or `-`");
        }
        if self.name.is_empty() || self.name.len() > 200 || self.name.chars().any(char::is_control) {
            bad("name", quoted(&self.name), "give 1 to 200 printable characters");
        }
        let mut seconds = |field, value: f64| {
            if !(0.001..=2_592_000.0).contains(&value) {
                bad(field, value.to_string(), "give 0.001 to 2592000 seconds");
            }
        };
        seconds("max_wall_time_seconds", self.max_wall_time_seconds);
        seconds("request_budget_seconds", self.request_budget_seconds);
        seconds("max_cpu_seconds", self.max_cpu_seconds.unwrap_or(1.0));
        seconds("compile.max_wall_time_seconds", self.compile.max_wall_time_seconds);
        if !(0.01..=4096.0).contains(&self.cpus) {
            bad("cpus", self.cpus.to_string(), "give 0.01 to 4096");
        }
        let mut whole = |field, value: u64, least: u64, most: u64| {
            if !(least..=most).contains(&value) {
                bad(field, value.to_string(), &format!("give {least} to {most}"));
            }
        };
        const MB: u64 = 1 << 29;
        whole("max_memory_mb", self.max_memory_mb, 4, MB);
        whole("compile.max_memory_mb", self.compile.max_memory_mb, 4, MB);
        whole("max_processes", self.max_processes, 1, 1 << 20);
        whole("max_open_files", self.max_open_files, 8, 1 << 20);
        whole("max_file_size_mb", self.max_file_size_mb.unwrap_or(1), 1, MB);
        whole("max_output_mb", self.max_output_mb, 1, MB);
        whole("scratch_mb", self.scratch_mb, 1, MB);
        whole("max_executions_per_minute", self.max_executions_per_minute.unwrap_or(1), 1, 1_000_000);
        whole("max_executions_per_hour", self.max_executions_per_hour.unwrap_or(1), 1, 100_000_000);
        whole("max_concurrent", self.max_concurrent.unwrap_or(1), 1, 100_000);
        found.extend(self.contradictions());
        found
    }

    fn contradictions(&self) -> Vec<Problem> {
        let mut found = vec![];
        let mut bad = |field, given: String, allowed: &str| {
            found.push(Problem { field, given, allowed: allowed.to_owned() });
        };
        let outward = matches!(self.network_policy, NetworkPolicy::Restricted | NetworkPolicy::Full);
        if outward && !self.allow_network {
            bad("network_policy", name(&self.network_policy), "allow_network is false: say true, or none or local");
        }
        match (self.network_policy, self.allowed_hosts.is_empty()) {
            (NetworkPolicy::Restricted, true) => bad("allowed_hosts", "empty".into(), "restricted needs some"),
            (NetworkPolicy::Restricted, false) | (_, true) => {}
            (_, false) => bad("allowed_hosts", format!("{:?}", self.allowed_hosts), "only restricted has any"),
        }
        for host in &self.allowed_hosts {
            if let Err(why) = AllowedHost::parse(host) {
                bad("allowed_hosts", quoted(host), why);
            }
        }
        let is_layer = |layer: &str| matches!(layer, "cgroup" | "landlock" | "patched-runtime");
        if let Some(wrong) = self.require.iter().find(|layer| !is_layer(layer)) {
            bad("require", quoted(wrong), "give cgroup, landlock or patched-runtime");
        }
        let when = &self.strict_when;
        let is_glob = |glob: &str| (1..=1024).contains(&glob.len()) && !glob.chars().any(char::is_control);
        if let Some(wrong) = when.paths.iter().find(|glob| !is_glob(glob)) {
            bad("strict_when.paths", quoted(wrong), "give globs of 1 to 1024 printable characters");
        }
        let is_word = |word: &str| (1..=64).contains(&word.len()) && word.chars().all(char::is_alphanumeric);
        if let Some(wrong) = when.words.iter().find(|word| !is_word(word)) {
            bad("strict_when.words", quoted(wrong), "give single words of 1 to 64 letters and digits");
        }
        if when.paths.len() + when.words.len() > 1000 {
            bad("strict_when", "a list of more than 1000".into(), "give fewer");
        }
        if let Some(backend) = self.backend.as_deref().filter(|name| *name != "oci" && !when.is_empty()) {
            let why = format!("backend {backend} has no kernel of its own: leave one of them out");
            bad("strict_when", "given".into(), &why);
        }
        if self.python == PythonLayer::Capsule && self.allowed_languages != ["python"] {
            bad("python", "capsule".into(), "allowed_languages must be [\"python\"]");
        }
        if self.mode == Mode::Strict && self.isolation_level != IsolationLevel::Vm {
            bad("mode", "strict".into(), "isolation_level must be vm");
        }
        if self.backend.as_deref().is_some_and(|backend| !matches!(backend, "native" | "oci" | "docker")) {
            bad("backend", quoted(self.backend.as_deref().unwrap_or_default()), "give native, oci or docker");
        }
        if self.max_executions_per_hour.zip(self.max_executions_per_minute).is_some_and(|(hour, minute)| hour < minute)
        {
            bad("max_executions_per_hour", "less than a minute's".into(), "give as much at least");
        }
        found
    }
}

pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", text.chars().take(80).flat_map(char::escape_debug).collect::<String>())
}

fn name(policy: &NetworkPolicy) -> String {
    format!("{policy:?}").to_lowercase()
}

/// As a pattern.
pub(crate) const ID: &str = "^[A-Za-z0-9_-]{1,64}$";

/// A name that is a name everywhere: in files, in tables, in logs.
pub fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}
