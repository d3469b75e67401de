//! Leases: made, handed on, cosigned, verified, and what one allows of a request.

mod keys;
mod scope;
mod staging;
mod verify;

use std::time::Duration;

use hotcell_contract::{Lease, LeaseLimits, LeaseNetwork, Problem, Runner, Scope, Signed};
use serde_json::Value;

pub use keys::{KeyError, Keys, Role, SecretKey, Trusted};
pub(crate) use scope::REPO_AT;
pub use scope::{Granted, Leased};
pub(crate) use staging::PACK;
pub use staging::{LeasedRun, Staging};
pub(crate) use verify::{Verifier, verify};
pub use verify::{is_part, read};

/// Why a lease does not count, or not for this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseRefusal {
    #[error("the lease `{0}` cannot be read")]
    NotFound(String),
    #[error("the lease is malformed: {0}")]
    Malformed(String),
    #[error("the lease is signed with the key {0}, which is not trusted here")]
    UnknownKey(String),
    #[error("a signature of the lease is not that of the key {0}")]
    BadSignature(String),
    #[error("the lease is not valid before {0}")]
    NotYetValid(String),
    #[error("the lease expired at {0}")]
    Expired(String),
    #[error("the lease is for {given} minutes: {most} at most are allowed here")]
    TooLong { given: i64, most: i64 },
    #[error("the lease {id} was revoked by {by}: {reason}")]
    Revoked { id: String, by: String, reason: String },
    #[error("the lease has no command like `{0}`")]
    Command(String),
    #[error("the lease does not allow the path `{path}`: {why}")]
    Path { path: String, why: String },
    #[error("the lease does not allow the variable `{0}`")]
    Environment(String),
    #[error("the lease does not allow this network: {0}")]
    Network(String),
    #[error("{what} {given} is more than the lease's {most}: give {most} or less")]
    Limit { what: &'static str, given: String, most: String },
    #[error("the {most} runs of the lease {id} are used up")]
    UsedUp { id: String, most: u64 },
    #[error("the lease is not a part of its parent: {0}")]
    NotAPart(String),
    #[error("a lease is wanted that a human and an agent have signed: the signature of the {0} is missing")]
    Cosigner(&'static str),
    #[error("the intent of the lease does not stand: {0}")]
    Intent(String),
}

impl LeaseRefusal {
    /// For machines.
    pub fn reason(&self) -> &'static str {
        match self {
            LeaseRefusal::NotFound(_) => "not_found",
            LeaseRefusal::Malformed(_) => "malformed",
            LeaseRefusal::UnknownKey(_) => "unknown_key",
            LeaseRefusal::BadSignature(_) => "bad_signature",
            LeaseRefusal::NotYetValid(_) => "not_yet_valid",
            LeaseRefusal::Expired(_) => "expired",
            LeaseRefusal::TooLong { .. } => "too_long",
            LeaseRefusal::Revoked { .. } => "revoked",
            LeaseRefusal::Command(_) => "command_not_allowed",
            LeaseRefusal::Path { .. } => "path_not_allowed",
            LeaseRefusal::Environment(_) => "variable_not_allowed",
            LeaseRefusal::Network(_) => "network_not_allowed",
            LeaseRefusal::Limit { .. } => "limit_exceeded",
            LeaseRefusal::UsedUp { .. } => "run_count_used_up",
            LeaseRefusal::NotAPart(_) => "not_a_subset",
            LeaseRefusal::Cosigner(_) => "cosigner_missing",
            LeaseRefusal::Intent(_) => "intent_not_approved",
        }
    }
}

fn malformed(problems: &[Problem]) -> LeaseRefusal {
    LeaseRefusal::Malformed(problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))
}

/// What a key signs: the lease as canonical JSON, without these fields of its outermost level.
fn signed_bytes(lease: &Lease, without: &[&str]) -> Result<Vec<u8>, LeaseRefusal> {
    let failed = |e: serde_json::Error| LeaseRefusal::Malformed(e.to_string());
    let mut value = serde_json::to_value(lease).map_err(failed)?;
    if let Value::Object(fields) = &mut value {
        fields.retain(|name, _| !without.contains(&name.as_str()));
    }
    serde_json_canonicalizer::to_vec(&value).map_err(failed)
}

fn for_signature(lease: &Lease) -> Result<Vec<u8>, LeaseRefusal> {
    signed_bytes(lease, &["sig", "cosigners"])
}

fn for_cosignature(lease: &Lease) -> Result<Vec<u8>, LeaseRefusal> {
    signed_bytes(lease, &["cosigners"])
}

/// A lease as it is written: canonical, with a line's end.
pub fn text_of(lease: &Lease) -> Result<String, LeaseRefusal> {
    let bytes = signed_bytes(lease, &[])?;
    String::from_utf8(bytes).map(|text| text + "\n").map_err(|e| LeaseRefusal::Malformed(e.to_string()))
}

/// What a new lease says; what is left open is little.
#[derive(Clone, Debug, Default)]
pub struct NewLease {
    pub actor: String,
    pub intent_id: Option<String>,
    pub commands: Vec<Vec<String>>,
    pub paths_allowlist: Vec<String>,
    pub paths_denylist: Vec<String>,
    pub env_allowlist: Vec<String>,
    pub hosts: Vec<String>,
    pub valid_for: Option<Duration>,
    pub cpus: Option<f64>,
    pub memory_mb: Option<u64>,
    pub timeout_s: Option<u64>,
    pub open_files: Option<u64>,
    pub max_runs: Option<u64>,
    pub workdir: Option<String>,
    pub readonly_mounts: Vec<String>,
    pub writable_mounts: Vec<String>,
    pub holder_key: Option<String>,
}

/// A lease from now on, without a signature; `None` beyond the calendar.
pub fn new_lease(new: NewLease) -> Option<Lease> {
    let issued_at = crate::state::now();
    Some(Lease {
        lease_id: format!("lease-{}", crate::new_id()),
        intent_id: new.intent_id,
        actor: new.actor,
        expires_at: crate::state::after(&issued_at, new.valid_for.unwrap_or(Duration::from_secs(300)))?,
        issued_at,
        scope: Scope {
            commands_allowlist: new.commands,
            paths_allowlist: new.paths_allowlist,
            paths_denylist: new.paths_denylist,
            env_allowlist: new.env_allowlist,
            network: if new.hosts.is_empty() { LeaseNetwork::DenyAll } else { LeaseNetwork::Hosts(new.hosts) },
        },
        limits: LeaseLimits {
            cpu_quota: new.cpus.unwrap_or(1.0),
            mem_quota_mb: new.memory_mb.unwrap_or(256),
            wallclock_timeout_s: new.timeout_s.unwrap_or(60),
            fd_limit: new.open_files.unwrap_or(256),
            max_runs: new.max_runs.unwrap_or(1),
        },
        runner: Runner {
            workdir: new.workdir.unwrap_or_else(|| "/work".into()),
            readonly_mounts: new.readonly_mounts,
            writable_mounts: new.writable_mounts,
        },
        holder_key: new.holder_key,
        parent: None,
        cosigners: vec![],
        sig: unsigned(),
    })
}

/// Before it is signed.
fn unsigned() -> Signed {
    Signed { alg: keys::ALG.into(), kid: String::new(), value: String::new() }
}

/// Signs a lease that is complete but for that.
pub fn sign(mut lease: Lease, key: &SecretKey) -> Result<Lease, LeaseRefusal> {
    let problems = lease.problems();
    if !problems.is_empty() {
        return Err(malformed(&problems));
    }
    lease.sig = key.sign(&for_signature(&lease)?);
    Ok(lease)
}

/// Adds one more signature, once for each key.
pub(crate) fn cosign(mut lease: Lease, key: &SecretKey) -> Result<Lease, LeaseRefusal> {
    lease.cosigners.retain(|cosigner| cosigner.kid != key.kid());
    let signed = key.sign(&for_cosignature(&lease)?);
    lease.cosigners.push(signed);
    Ok(lease)
}
