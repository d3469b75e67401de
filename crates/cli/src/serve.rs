//! `hotcell serve` and `hotcell keys`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};
use hotcell_contract::{ApiKey, KeyScope};
use hotcell_engine::{Launcher, diagnose};
use hotcell_server::{Keep, Service, Settings};
use serde_json::json;

use crate::args::Output;
use crate::args::service::{KeysArgs, KeysVerb, Log, ServeArgs};
use crate::show::harmless;
use crate::{grants, languages, policy, run, service_user, state};

/// Runs at once for each processor: most wait for something most of the time.
const RUNS_OF_PROCESSOR: usize = 4;

pub(crate) fn serve(args: &ServeArgs, launcher: Launcher) -> anyhow::Result<ExitCode> {
    hotcell_server::log_to_stderr(args.log == Log::Json, &args.log_level).with_context(|| {
        format!("--log-level `{}` is none: use error, warn, info or debug", harmless(&args.log_level))
    })?;
    let state_dir = service_user::state_dir(args.state_dir.as_deref())?;
    let found = diagnose(&launcher);
    if !found.ok {
        bail!("cells cannot run here: see `hotcell doctor`");
    }
    let catalogue = languages::catalogue(args.languages.as_deref())?;
    // Nothing that anybody sends is read by root.
    let user = service_user::choose(args.user.as_deref(), &state_dir)?;
    if let Some((uid, gid)) = user {
        launcher.give_up_root(uid, gid)?;
        service_user::reach(&state_dir, uid)?;
    }
    let settings = Settings {
        listen: args.listen,
        // What is in root's home is closed to anybody else.
        config_dir: grants::config_dir().filter(|_| user.is_none()),
        cache: if user.is_some() { Some(state_dir.join("cache")) } else { run::cache_dir() },
        state_dir,
        concurrency: concurrency(args.concurrency),
        queue: args.queue as usize,
        policy: args.policy.clone(),
        keep: Some(Keep { runs: args.keep_runs as usize, time: args.keep_for, bytes: args.keep_size }),
        traces: hotcell_server::Target::of(|name| std::env::var(name).ok())?,
        grace: args.grace,
    };
    let weak: Vec<&str> = found.checks.iter().filter(|check| !check.present).map(|check| check.name.as_str()).collect();
    let weak = if weak.is_empty() { "all is there".to_owned() } else { format!("missing: {}", weak.join(", ")) };
    let (concurrency, queue, policy) = (settings.concurrency, settings.queue, settings.policy.clone());
    let traces = settings.traces.as_ref().map(|target| format!("traces to {target}\n")).unwrap_or_default();
    let service = Service::start(settings, launcher, catalogue)?;
    let keys = if service.has_keys()? { "with a key" } else { "without keys, for this machine alone" };
    hotcell_server::serve(service, |address| {
        let mut out = std::io::stdout().lock();
        // Nobody needs to read it.
        let _ = writeln!(
            out,
            "listening on http://{address}, {keys}\npolicy {}, {concurrency} runs at once, {queue} may wait\n{traces}doctor: {weak}",
            harmless(&policy)
        );
        let _ = out.flush();
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn concurrency(asked: Option<u32>) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    asked.map_or((RUNS_OF_PROCESSOR * processors).max(2), |n| n as usize)
}

pub(crate) fn keys(args: &KeysArgs) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    match &args.verb {
        KeysVerb::Create { tenant, scope, policy, by, state } => {
            let scopes = scopes(scope)?;
            let dir = service_user::state_dir(state.state_dir.as_deref())?;
            for name in policy {
                policy::policies(Some(&dir)).get(name)?;
            }
            let (key, token) = state::open(Some(&dir))?.make_api_key(tenant, &scopes, policy, &by.name())?;
            match state.output {
                Output::Json => writeln!(out, "{}", json!({ "key": key, "token": token }))?,
                Output::Text => writeln!(out, "{token}")?,
            }
        }
        KeysVerb::List(state) => {
            let dir = service_user::state_dir(state.state_dir.as_deref())?;
            let keys = state::look(Some(&dir))?.map_or(Ok(vec![]), |state| state.api_keys())?;
            match state.output {
                Output::Json => writeln!(out, "{}", json!({ "keys": keys }))?,
                Output::Text => {
                    for key in &keys {
                        writeln!(out, "{}", line(key))?;
                    }
                }
            }
        }
        KeysVerb::Revoke { key, by, state } => {
            let dir = service_user::state_dir(state.state_dir.as_deref())?;
            state::open(Some(&dir))?.revoke_api_key(key, &by.name())?;
            writeln!(out, "{} is revoked", harmless(key))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn scopes(names: &[String]) -> anyhow::Result<Vec<KeyScope>> {
    if names.is_empty() {
        return Ok(vec![KeyScope::Run, KeyScope::Read]);
    }
    let known = |name: &String| {
        let all = KeyScope::ALL.map(KeyScope::name).join(", ");
        KeyScope::named(name).with_context(|| format!("--scope `{}` is none: use one of {all}", harmless(name)))
    };
    names.iter().map(known).collect()
}

fn line(key: &ApiKey) -> String {
    let scopes = key.scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(",");
    let policies = if key.policies.is_empty() { "-".to_owned() } else { key.policies.join(",") };
    let end = key.revoked_at.as_ref().map(|at| format!("  revoked {}", harmless(at))).unwrap_or_default();
    let (id, tenant, at) = (harmless(&key.key_id), harmless(&key.tenant_id), harmless(&key.created_at));
    format!("{id}  {tenant:<16} {scopes:<15} {:<20} {at}{end}", harmless(&policies))
}
