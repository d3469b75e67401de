//! Policies: the built-in ones and the operator's own, and what follows from one for a request.
//!
//! A request may only lower what its policy says. Without a policy the caller is the operator: the defaults are those of
//! `balanced`, and nothing is a ceiling.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotcell_contract::{
    AllowedHost, FailureClass, Limits, NetworkPolicy, OnViolation, Policy, Problem, PythonLayer, is_id, show_duration,
    show_size,
};

use crate::backend::{AskedBackend, BackendError, Container, KERNEL_BYTES, choose};
use crate::files::{open_regular, read_text};
use crate::request::{Capsule, Program, Request, compile_limits, default_limits};
use crate::trigger::{self, Trigger};

/// By `policy_id`.
const BUILT_IN: [(&str, &str); 8] = [
    ("balanced", include_str!("../policies/balanced.toml")),
    ("fast", include_str!("../policies/fast.toml")),
    ("high_security", include_str!("../policies/high_security.toml")),
    ("permissive", include_str!("../policies/permissive.toml")),
    ("restricted", include_str!("../policies/restricted.toml")),
    ("standard", include_str!("../policies/standard.toml")),
    ("strict", include_str!("../policies/strict.toml")),
    ("yellow_lane", include_str!("../policies/yellow_lane.toml")),
];

/// A policy file is a page, not a book.
const MAX_FILE: u64 = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("`{name}` is not a policy that is known here: use one of {known}")]
    Unknown { name: String, known: String },
    #[error("`{0}` is built in: define one of another policy_id")]
    BuiltIn(String),
    #[error("the policy is wrong: {0}")]
    Syntax(String),
    #[error("the policy is wrong: {}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))]
    Wrong(Vec<Problem>),
    #[error("`{}` cannot be used: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("a network that is restricted needs hosts that may be reached: give --allow-host NAME:PORT")]
    NoHosts,
    #[error("--allow-host is for a network that is restricted: give --network restricted, or leave it out")]
    HostsOfNothing,
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error("the policy {policy} refuses this: {why}")]
    Refused { policy: String, class: FailureClass, why: String },
}

impl PolicyError {
    /// As what a refusal for this reason is written down.
    pub(crate) fn class(&self) -> FailureClass {
        match self {
            PolicyError::Refused { class, .. } => *class,
            _ => FailureClass::PolicyViolation,
        }
    }
}

/// Where policies are found: built in, and as files of the operator's.
pub struct Policies {
    own: Option<PathBuf>,
}

/// One of them, with the text that it was written in.
pub struct Known {
    pub policy: Policy,
    pub text: String,
    pub built_in: bool,
}

impl Policies {
    /// `own` need not exist.
    pub fn new(own: Option<PathBuf>) -> Policies {
        Policies { own }
    }

    pub fn list(&self) -> Result<Vec<Known>, PolicyError> {
        let mut known = vec![];
        for (_, text) in BUILT_IN {
            known.push(Known { policy: parse(text)?, text: text.to_owned(), built_in: true });
        }
        let files = self.own.iter().flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten());
        for path in files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|e| e == "toml")) {
            let text = read(&path)?;
            known.push(Known { policy: parse(&text)?, text, built_in: false });
        }
        known.sort_by(|a, b| (!a.built_in, &a.policy.policy_id).cmp(&(!b.built_in, &b.policy.policy_id)));
        Ok(known)
    }

    pub fn get(&self, name: &str) -> Result<Known, PolicyError> {
        if let Some((_, text)) = BUILT_IN.into_iter().find(|(id, _)| *id == name) {
            return Ok(Known { policy: parse(text)?, text: text.to_owned(), built_in: true });
        }
        if let Some(path) = self.file(name).filter(|path| path.exists()) {
            let text = read(&path)?;
            return Ok(Known { policy: parse(&text)?, text, built_in: false });
        }
        let known = self.list()?.iter().map(|known| known.policy.policy_id.clone()).collect::<Vec<_>>().join(", ");
        Err(PolicyError::Unknown { name: name.to_owned(), known })
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        self.own.as_ref().filter(|_| is_id(name)).map(|dir| dir.join(format!("{name}.toml")))
    }

    /// Keeps a policy under its id; one of the operator's own may be replaced.
    pub fn define(&self, text: &str) -> Result<Policy, PolicyError> {
        let policy = parse(text)?;
        if self.get(&policy.policy_id).is_ok_and(|known| known.built_in) {
            return Err(PolicyError::BuiltIn(policy.policy_id));
        }
        let path = self.file(&policy.policy_id).unwrap_or_default();
        let failed = |error| PolicyError::File { path: path.clone(), error };
        let dir = path.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(dir).map_err(failed)?;
        let new = dir.join(format!(".{}-{}", policy.policy_id, std::process::id()));
        let written = fs::File::create(&new).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&new, &path)).map_err(|error| {
            let _ = fs::remove_file(&new);
            failed(error)
        })?;
        Ok(policy)
    }

    /// The same, for one that came in another shape.
    pub fn define_as(&self, policy: &Policy) -> Result<Policy, PolicyError> {
        self.define(&toml::to_string(policy).map_err(|e| PolicyError::Syntax(e.to_string()))?)
    }

    pub fn delete(&self, name: &str) -> Result<Policy, PolicyError> {
        let known = self.get(name)?;
        if known.built_in {
            return Err(PolicyError::BuiltIn(name.to_owned()));
        }
        let path = self.file(name).unwrap_or_default();
        fs::remove_file(&path).map_err(|error| PolicyError::File { path, error })?;
        Ok(known.policy)
    }
}

/// The text of a policy file.
pub fn read(path: &Path) -> Result<String, PolicyError> {
    let failed = |error| PolicyError::File { path: path.to_owned(), error };
    open_regular(path).and_then(|file| read_text(&file, MAX_FILE)).map_err(failed)
}

/// A policy file, understood and found to be without contradiction.
pub fn parse(text: &str) -> Result<Policy, PolicyError> {
    if text.len() as u64 > MAX_FILE {
        return Err(PolicyError::Syntax(format!("it has more than {MAX_FILE} bytes")));
    }
    let policy: Policy = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        // The field is what people look for; the parser knows its line.
        let field = text.lines().nth(line - 1).and_then(|text| Some(text.split_once('=')?.0.trim().to_owned()));
        let field = field.filter(|field| !field.is_empty() && !e.message().contains(field.as_str()));
        let field = field.map(|field| format!("{field}: ")).unwrap_or_default();
        PolicyError::Syntax(format!("line {line}: {field}{}", e.message().replace('\n', " ")))
    })?;
    let problems = policy.problems();
    if problems.is_empty() { Ok(policy) } else { Err(PolicyError::Wrong(problems)) }
}

/// What the caller says about limits; what is left open is the policy's, or that of `balanced`.
#[derive(Clone, Debug, Default)]
pub struct AskedLimits {
    pub wall_ms: Option<u64>,
    pub grace_ms: Option<u64>,
    pub scratch_inodes: Option<u64>,
    pub cpu_ms: Option<u64>,
    pub cpus: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub processes: Option<u64>,
    pub open_files: Option<u64>,
    pub file_size_bytes: Option<u64>,
    pub scratch_bytes: Option<u64>,
    pub output_bytes: Option<u64>,
    pub compile_wall_ms: Option<u64>,
    pub compile_memory_bytes: Option<u64>,
    pub compile_cpu_ms: Option<u64>,
    pub network: Option<NetworkPolicy>,
    /// For `restricted`: all of the policy's, when none are given.
    pub allowed_hosts: Vec<AllowedHost>,
    pub on_violation: Option<OnViolation>,
    pub backend: AskedBackend,
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

/// The limits of a policy, as cells have them.
pub fn limits_of(policy: &Policy) -> Limits {
    let scratch = if policy.allow_file_write { policy.scratch_mb << 20 } else { 0 };
    Limits {
        wall_ms: millis(policy.max_wall_time_seconds),
        cpu_ms: policy.max_cpu_seconds.map(millis),
        cpus: policy.cpus,
        memory_bytes: policy.max_memory_mb << 20,
        processes: policy.max_processes,
        open_files: policy.max_open_files,
        file_size_bytes: policy.max_file_size_mb.map_or(scratch.saturating_add(1 << 20), |mb| mb << 20),
        scratch_bytes: scratch,
        output_bytes: policy.max_output_mb << 20,
        ..default_limits()
    }
}

/// Settles limits and rules of a request: the caller's wishes, under the policy when there is one.
pub fn settle(policy: Option<&Policy>, asked: &AskedLimits, request: &mut Request) -> Result<(), PolicyError> {
    let mut limits = policy.map_or_else(default_limits, limits_of);
    let mut compile = compile_limits();
    if let Some(policy) = policy {
        compile.wall_ms = millis(policy.compile.max_wall_time_seconds);
        compile.memory_bytes = policy.compile.max_memory_mb << 20;
        admit(policy, request)?;
    }
    if let Some(policy) = policy.filter(|policy| policy.require_approval && asked.backend.is_of_the_callers_own()) {
        let (policy, class) = (policy.policy_id.clone(), FailureClass::ApprovalRequired);
        let why = "an approval is for code that was seen whole: leave --image and --runtime PATH out".into();
        return Err(PolicyError::Refused { policy, class, why });
    }
    isolate(policy, asked, request)?;
    let refuse = |what: &str, given: String, most: String| match policy {
        Some(policy) => Err(PolicyError::Refused {
            policy: policy.policy_id.clone(),
            class: FailureClass::PolicyViolation,
            why: format!("{what} {given} is more than its {most}: give {most} or less"),
        }),
        None => Ok(()),
    };
    let in_ms = |ms: u64| show_duration(Duration::from_millis(ms));
    let number = |n: u64| n.to_string();
    let lower = |what: &str, slot: &mut u64, asked: Option<u64>, show: fn(u64) -> String| -> Result<(), PolicyError> {
        let Some(asked) = asked else { return Ok(()) };
        if asked > *slot {
            refuse(what, show(asked), show(*slot))?;
        }
        *slot = asked;
        Ok(())
    };
    lower("--timeout", &mut limits.wall_ms, asked.wall_ms, in_ms)?;
    lower("--scratch-inodes", &mut limits.scratch_inodes, asked.scratch_inodes, number)?;
    lower("--grace", &mut limits.grace_ms, asked.grace_ms, in_ms)?;
    let mut cpu = limits.cpu_ms.unwrap_or(u64::MAX);
    lower("--cpu-time", &mut cpu, asked.cpu_ms, in_ms)?;
    limits.cpu_ms = Some(cpu).filter(|ms| *ms != u64::MAX);
    if let Some(cpus) = asked.cpus {
        if cpus > limits.cpus {
            refuse("--cpus", cpus.to_string(), limits.cpus.to_string())?;
        }
        limits.cpus = cpus;
    }
    lower("--memory", &mut limits.memory_bytes, asked.memory_bytes, show_size)?;
    lower("--processes", &mut limits.processes, asked.processes, number)?;
    lower("--open-files", &mut limits.open_files, asked.open_files, number)?;
    lower("--output-limit", &mut limits.output_bytes, asked.output_bytes, show_size)?;
    lower("--scratch", &mut limits.scratch_bytes, asked.scratch_bytes, show_size)?;
    if policy.is_none() {
        limits.file_size_bytes = limits.scratch_bytes.saturating_add(1 << 20).min(1 << 50);
    }
    lower("--file-size", &mut limits.file_size_bytes, asked.file_size_bytes, show_size)?;
    lower("--compile-timeout", &mut compile.wall_ms, asked.compile_wall_ms, in_ms)?;
    lower("--compile-memory", &mut compile.memory_bytes, asked.compile_memory_bytes, show_size)?;
    // No policy says anything about it.
    compile.cpu_ms = asked.compile_cpu_ms;
    let most = policy.map_or(NetworkPolicy::None, |policy| policy.network_policy);
    let network = asked.network.unwrap_or(most);
    if network > most {
        refuse("--network", format!("{network:?}").to_lowercase(), format!("{most:?}").to_lowercase())?;
    }
    // From kill to note it gets milder.
    let least = policy.map_or(OnViolation::Fail, |policy| policy.on_violation);
    let on_violation = asked.on_violation.unwrap_or(least);
    if on_violation > least {
        refuse("--on-violation", format!("{on_violation:?}").to_lowercase(), format!("{least:?}").to_lowercase())?;
    }
    request.allowed_hosts = hosts(policy, network, asked)?;
    (request.limits, request.compile) = (limits, compile);
    (request.network, request.on_violation) = (network, on_violation);
    request.policy = policy.cloned();
    can_have_own_kernel(policy, request)
}

/// Who makes the cell, by the policy, by what the caller asks for and by what is run.
fn isolate(policy: Option<&Policy>, asked: &AskedLimits, request: &mut Request) -> Result<(), PolicyError> {
    let trigger = policy.and_then(|policy| trigger::of(policy, request));
    request.raised_by = trigger.as_ref().map(Trigger::to_string);
    request.container = choose(policy, &asked.backend, &request.require, trigger.as_ref())?;
    Ok(())
}

/// The same again for a settled request that has been given more to see, or another network.
pub(crate) fn isolate_again(
    policy: Option<&Policy>,
    asked: &AskedLimits,
    request: &mut Request,
) -> Result<(), PolicyError> {
    if policy.is_some_and(|policy| !policy.strict_when.is_empty()) && request.raised_by.is_none() {
        isolate(policy, asked, request)?;
    }
    can_have_own_kernel(policy, request)
}

/// A kernel of its own reaches nobody, and needs room for itself.
fn can_have_own_kernel(policy: Option<&Policy>, request: &Request) -> Result<(), PolicyError> {
    if !request.container.as_ref().is_some_and(Container::has_own_kernel) {
        return Ok(());
    }
    let error = if request.network != NetworkPolicy::None {
        BackendError::Network { network: format!("{:?}", request.network).to_lowercase() }
    } else if request.limits.memory_bytes < KERNEL_BYTES {
        BackendError::Memory { memory: show_size(request.limits.memory_bytes), least: show_size(KERNEL_BYTES) }
    } else {
        return Ok(());
    };
    match (policy, &request.raised_by) {
        (Some(policy), Some(trigger)) => Err(PolicyError::Refused {
            policy: policy.policy_id.clone(),
            class: FailureClass::PolicyViolation,
            why: format!("{error} (raised by {trigger})"),
        }),
        _ => Err(error.into()),
    }
}

/// Who may be reached: under a policy that names hosts, those of them that are asked for, or all.
fn hosts(
    policy: Option<&Policy>,
    network: NetworkPolicy,
    asked: &AskedLimits,
) -> Result<Vec<AllowedHost>, PolicyError> {
    let asked = &asked.allowed_hosts;
    if network != NetworkPolicy::Restricted {
        return if asked.is_empty() { Ok(vec![]) } else { Err(PolicyError::HostsOfNothing) };
    }
    let Some(policy) = policy.filter(|policy| policy.network_policy == NetworkPolicy::Restricted) else {
        return if asked.is_empty() { Err(PolicyError::NoHosts) } else { Ok(asked.clone()) };
    };
    let known: Vec<AllowedHost> =
        policy.allowed_hosts.iter().filter_map(|host| AllowedHost::parse(host).ok()).collect();
    if let Some(other) = asked.iter().find(|host| !known.iter().any(|known| known.covers(host))) {
        let all = known.iter().map(AllowedHost::to_string).collect::<Vec<_>>().join(", ");
        let (policy, class) = (policy.policy_id.clone(), FailureClass::PolicyViolation);
        let why = format!("--allow-host {other} is more than its {all}: give some of these or none");
        return Err(PolicyError::Refused { policy, class, why });
    }
    Ok(if asked.is_empty() { known } else { asked.clone() })
}

/// Why nothing can run under a policy here, by this version or for want of a layer of the host's.
pub fn refused_here(policy: &Policy) -> Option<String> {
    let lacks = || {
        let layers = if policy.require.is_empty() { vec![] } else { hotcell_sandbox::probe() };
        let lacking =
            policy.require.iter().find(|name| layers.iter().any(|layer| layer.name == **name && !layer.present));
        lacking.map(|name| format!("{name} is required, and this host has none"))
    };
    let refused = match choose(Some(policy), &AskedBackend::default(), &policy.require, None) {
        Ok(_) => None,
        Err(PolicyError::Refused { why, .. }) => Some(why),
        Err(e) => Some(e.to_string()),
    };
    refused.or_else(lacks)
}

/// What a policy says about a request besides its limits.
fn admit(policy: &Policy, request: &mut Request) -> Result<(), PolicyError> {
    let refuse = |class, why: String| Err(PolicyError::Refused { policy: policy.policy_id.clone(), class, why });
    if policy.require_approval && request.input.is_some() {
        let why = "an approval is for code that was seen whole: give a file instead of a directory";
        return refuse(FailureClass::ApprovalRequired, why.into());
    }
    let allowed = |language: &str| policy.allowed_languages.iter().any(|known| known == language);
    match &request.program {
        _ if policy.allowed_languages.is_empty() => {}
        Program::Source { language, .. } if allowed(&language.name) => {}
        Program::Source { language, .. } => {
            let why = format!("{} is not one of its languages: {}", language.name, policy.allowed_languages.join(", "));
            return refuse(FailureClass::PolicyViolation, why);
        }
        Program::Command(_) => {
            let why = format!("a command is none of its languages: {}", policy.allowed_languages.join(", "));
            return refuse(FailureClass::PolicyViolation, why);
        }
    }
    if policy.python == PythonLayer::Capsule {
        request.capsule.get_or_insert_with(Capsule::default);
    }
    request.mode = policy.mode;
    request.require.extend(policy.require.iter().cloned());
    Ok(())
}
