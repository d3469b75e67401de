//! `hotcell lease`: keys, and leases from their issue to their end.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use hotcell_contract::{Lease, LeaseNetwork};
use hotcell_engine::{
    IssuedLease, NewLease, Role, SecretKey, Trusted, is_part, new_id, now, read_lease, sign, text_of,
};
use serde_json::json;

use crate::args::Output;
use crate::args::grants::{KeyRole, LeaseArgs, LeaseVerb, ScopeArgs, Without};
use crate::args::state::StateArgs;
use crate::show::{ascii_json, harmless};
use crate::{grants, state};

/// A lease that does not count, as a look-up that finds nothing.
const NOT_VALID: u8 = 1;

pub(crate) fn lease(args: LeaseArgs) -> anyhow::Result<ExitCode> {
    match args.verb {
        LeaseVerb::Keygen { role, out, state } => keygen(role, out.as_deref(), &state),
        LeaseVerb::Issue { actor, intent, workdir, scope, key, out, state, command_words } => {
            let lease = new_lease(actor, intent, workdir, &scope, command_words)?;
            let mut kept = state::open(state.state_dir.as_deref())?;
            let key = match key {
                Some(path) => SecretKey::read(&path)?,
                None => kept.keys().current(Role::Issuer)?,
            };
            let lease = kept.issue(lease, &key, &grants::switches(state.state_dir.as_deref())?)?;
            put(&lease, out.as_deref())
        }
        LeaseVerb::Delegate { lease, key, without, actor, scope, out, command_words } => {
            let parent = read(&lease)?;
            let key = SecretKey::read(&key)?;
            if parent.holder_key.as_deref() != Some(key.public().as_str()) {
                bail!("the key is not that of the lease's holder: only he can hand it on");
            }
            let smaller = smaller(parent, actor, &scope, &without, command_words)?;
            put(&sign(smaller, &key)?, out.as_deref())
        }
        LeaseVerb::Cosign { lease, key, out, state } => {
            let mut kept = state::open(state.state_dir.as_deref())?;
            let lease = kept.cosign(read(&lease)?, &SecretKey::read(&key)?)?;
            put(&lease, out.as_deref())
        }
        LeaseVerb::Verify { lease, state } => verify(&lease, &state),
        LeaseVerb::Show { lease } => {
            let lease = read(&lease)?;
            writeln!(std::io::stdout(), "{}", ascii_json(&lease)?)?;
            Ok(ExitCode::SUCCESS)
        }
        LeaseVerb::Revoke { id, reason, by, state } => {
            let done = state::open(state.state_dir.as_deref())?.revoke(&id, &by.name(), &reason)?;
            let value = json!({ "lease_id": id, "told": done.told, "known": done.known });
            if done.known {
                let text = format!("{} is revoked; {} running processes were told", harmless(&id), done.told);
                return say(&state, &text, &value);
            }
            let doubt = format!(
                "{} is refused from now on, but no lease of that id was issued or used here: is it the right one?",
                harmless(&id)
            );
            say(&state, &doubt, &value)?;
            Ok(ExitCode::from(NOT_VALID))
        }
        LeaseVerb::List(state) => list(&state),
    }
}

pub(crate) fn say(state: &StateArgs, text: &str, value: &serde_json::Value) -> anyhow::Result<ExitCode> {
    match state.output {
        Output::Text => writeln!(std::io::stdout(), "{text}")?,
        Output::Json => writeln!(std::io::stdout(), "{}", ascii_json(value)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn keygen(role: KeyRole, out: Option<&Path>, state: &StateArgs) -> anyhow::Result<ExitCode> {
    let role = match role {
        KeyRole::Issuer => Role::Issuer,
        KeyRole::Human => Role::Human,
        KeyRole::Agent => Role::Agent,
        KeyRole::Holder => Role::Holder,
    };
    if role == Role::Holder && out.is_none() {
        bail!("a holder's key is the holder's alone: give --out FILE");
    }
    let made = state::open(state.state_dir.as_deref())?.make_key(role, out, &state::user())?;
    let text = format!("{} key {}\npublic {}", role.name(), made.kid, made.public);
    say(state, &text, &serde_json::to_value(&made)?)
}

fn read(path: &Path) -> anyhow::Result<Lease> {
    let bytes = grants::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(read_lease(&bytes)?)
}

/// Whole or not at all, and over nothing that is there.
fn put(lease: &Lease, out: Option<&Path>) -> anyhow::Result<ExitCode> {
    let text = text_of(lease)?;
    match out {
        None => std::io::stdout().write_all(text.as_bytes())?,
        Some(path) => {
            let what = || format!("cannot write `{}`", path.display());
            let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path).with_context(what)?;
            (&file).write_all(text.as_bytes()).with_context(what)?;
            let (id, until) = (harmless(&lease.lease_id), harmless(&lease.expires_at));
            writeln!(std::io::stdout(), "{id} until {until}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Commands that were given as words and as JSON.
pub(crate) fn commands(words: Vec<String>, more: &[String]) -> anyhow::Result<Vec<Vec<String>>> {
    let mut all: Vec<Vec<String>> = Some(words).into_iter().filter(|words| !words.is_empty()).collect();
    for text in more {
        let words = serde_json::from_str(text);
        all.push(words.with_context(|| format!("--command `{}` is no JSON array of words", harmless(text)))?);
    }
    Ok(all)
}

fn new_lease(
    actor: String,
    intent_id: Option<String>,
    workdir: Option<String>,
    scope: &ScopeArgs,
    words: Vec<String>,
) -> anyhow::Result<Lease> {
    let new = NewLease {
        actor,
        intent_id,
        commands: commands(words, &scope.command)?,
        paths_allowlist: scope.allow.clone(),
        paths_denylist: scope.deny.clone(),
        env_allowlist: scope.env.clone(),
        hosts: scope.host.clone(),
        valid_for: scope.valid_for,
        cpus: scope.cpus,
        memory_mb: scope.memory.map(megabytes),
        timeout_s: scope.timeout.map(|time| time.as_secs().max(1)),
        open_files: scope.open_files,
        max_runs: scope.runs,
        workdir,
        readonly_mounts: scope.mount.clone(),
        writable_mounts: scope.write.clone(),
        holder_key: scope.holder.clone(),
    };
    hotcell_engine::new_lease(new).context("--for leads out of the calendar: give less")
}

fn network(hosts: &[String]) -> LeaseNetwork {
    if hosts.is_empty() { LeaseNetwork::DenyAll } else { LeaseNetwork::Hosts(hosts.to_vec()) }
}

fn megabytes(bytes: u64) -> u64 {
    bytes >> 20
}

fn after(moment: &str, time: std::time::Duration) -> anyhow::Result<String> {
    hotcell_engine::after(moment, time).context("--for leads out of the calendar: give less")
}

fn smaller(
    parent: Lease,
    actor: Option<String>,
    scope: &ScopeArgs,
    without: &[Without],
    words: Vec<String>,
) -> anyhow::Result<Lease> {
    let mut lease = Lease { parent: None, cosigners: vec![], holder_key: None, ..parent.clone() };
    lease.lease_id = format!("lease-{}", new_id());
    lease.issued_at = now();
    if let Some(time) = scope.valid_for {
        lease.expires_at = after(&lease.issued_at, time)?;
    }
    if let Some(actor) = actor {
        lease.actor = actor;
    }
    let commands = commands(words, &scope.command)?;
    if !commands.is_empty() {
        lease.scope.commands_allowlist = commands;
    }
    let replace = |slot: &mut Vec<String>, given: &[String]| {
        if !given.is_empty() {
            *slot = given.to_vec();
        }
    };
    replace(&mut lease.scope.paths_allowlist, &scope.allow);
    lease.scope.paths_denylist.extend(scope.deny.iter().cloned());
    replace(&mut lease.scope.env_allowlist, &scope.env);
    replace(&mut lease.runner.writable_mounts, &scope.write);
    replace(&mut lease.runner.readonly_mounts, &scope.mount);
    if !scope.host.is_empty() {
        lease.scope.network = network(&scope.host);
    }
    for what in without {
        match what {
            Without::Env => lease.scope.env_allowlist.clear(),
            Without::Hosts => lease.scope.network = LeaseNetwork::DenyAll,
            Without::Mounts => lease.runner.readonly_mounts.clear(),
            Without::Write => lease.runner.writable_mounts.clear(),
        }
    }
    let limits = &mut lease.limits;
    limits.cpu_quota = scope.cpus.unwrap_or(limits.cpu_quota);
    limits.mem_quota_mb = scope.memory.map_or(limits.mem_quota_mb, megabytes);
    limits.wallclock_timeout_s = scope.timeout.map_or(limits.wallclock_timeout_s, |time| time.as_secs());
    limits.fd_limit = scope.open_files.unwrap_or(limits.fd_limit);
    limits.max_runs = scope.runs.unwrap_or(limits.max_runs);
    lease.holder_key.clone_from(&scope.holder);
    // What was narrowed by hand must not name what the smaller scope leaves out.
    let allowed = lease.scope.paths_allowlist.clone();
    lease.runner.writable_mounts.retain(|dir| {
        allowed.iter().any(|pattern| hotcell_contract::covers_path(pattern, &format!("{dir}/**")))
            || scope.write.contains(dir)
    });
    is_part(&lease, &parent)?;
    lease.parent = Some(Box::new(parent));
    Ok(lease)
}

fn verify(path: &Path, state: &StateArgs) -> anyhow::Result<ExitCode> {
    let bytes = grants::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let switches = grants::switches(state.state_dir.as_deref())?;
    let verified = state::open(state.state_dir.as_deref())?.verify_lease(&bytes, &switches, None);
    match verified {
        Ok(lease) => {
            let [id, until, actor] = [&lease.lease_id, &lease.expires_at, &lease.actor].map(|text| harmless(text));
            let text = format!("{id} is valid until {until}, for {actor}");
            say(state, &text, &json!({ "valid": true, "lease_id": lease.lease_id, "expires_at": lease.expires_at }))
        }
        Err(hotcell_engine::StateError::Lease(why)) => {
            say(
                state,
                &harmless(&why.to_string()),
                &json!({ "valid": false, "reason": why.reason(), "message": why.to_string() }),
            )?;
            Ok(ExitCode::from(NOT_VALID))
        }
        Err(e) => Err(e.into()),
    }
}

fn list(state: &StateArgs) -> anyhow::Result<ExitCode> {
    let (leases, keys): (Vec<IssuedLease>, Vec<Trusted>) = match state::look(state.state_dir.as_deref())? {
        Some(kept) => (kept.leases()?, kept.keys().trusted()?),
        None => (vec![], vec![]),
    };
    if state.output == Output::Json {
        return say(state, "", &json!({ "leases": leases, "keys": keys }));
    }
    let mut out = std::io::stdout().lock();
    for key in &keys {
        let which = if key.current { "current" } else { "previous" };
        let (kid, since) = (harmless(&key.kid), harmless(&key.since));
        writeln!(out, "key {kid}  {:<6}  {which:<8}  since {since}", key.role.name())?;
    }
    if leases.is_empty() {
        writeln!(out, "no lease was issued here")?;
    }
    let current = now();
    for lease in &leases {
        let status = match &lease.revoked_by {
            Some(by) => format!("revoked by {}", harmless(by)),
            None if lease.expires_at <= current => "expired".into(),
            None => format!("until {}", harmless(&lease.expires_at)),
        };
        writeln!(
            out,
            "{}  {:<16}  {}/{} runs  {status}",
            harmless(&lease.lease_id),
            harmless(&lease.actor),
            lease.runs,
            lease.max_runs
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
