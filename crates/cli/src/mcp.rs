//! `hotcell mcp`: standard output carries the protocol, and nothing else.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use hotcell_contract::is_id;
use hotcell_engine::Launcher;
use hotcell_server::{Caller, Service, Settings, log_to_stderr, serve_stdio};

use crate::args::service::McpArgs;
use crate::serve::concurrency;
use crate::service_user::{owner_instead_of_root, reach};
use crate::show::harmless;
use crate::{grants, languages, policy, run};

/// Calls of one agent that may wait: half of it is a tenant's, and there is one.
const QUEUE: usize = 128;

pub(crate) fn mcp(args: &McpArgs, launcher: Launcher) -> anyhow::Result<ExitCode> {
    log_to_stderr(false, &args.log_level).with_context(|| {
        format!("--log-level `{}` is none: use error, warn, info or debug", harmless(&args.log_level))
    })?;
    if !is_id(&args.tenant) {
        bail!("--tenant `{}` is no id: give 1 to 64 letters, digits, `_` or `-`", harmless(&args.tenant));
    }
    let state_dir = policy::state_dir(args.state_dir.as_deref())
        .context("there is no place for the state: give --state-dir, or set HOME")?;
    let user = owner_instead_of_root(&state_dir)?;
    if let Some((uid, gid)) = user {
        launcher.give_up_root(uid, gid)?;
        reach(&state_dir, uid)?;
    }
    let settings = Settings {
        // Nobody does.
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        // What is in root's home is closed to anybody else.
        config_dir: grants::config_dir().filter(|_| user.is_none()),
        cache: if user.is_some() { Some(state_dir.join("cache")) } else { run::cache_dir() },
        state_dir,
        concurrency: concurrency(args.concurrency),
        queue: QUEUE,
        policy: args.policy.clone(),
        // The agent has its answer; so any number of these, and a service, can have one state directory.
        keep: None,
        traces: hotcell_server::Target::of(|name| std::env::var(name).ok())?,
        // Whoever has gone reads no answer.
        grace: Duration::ZERO,
    };
    let service = Service::start(settings, launcher, languages::catalogue(args.languages.as_deref())?)?;
    serve_stdio(service, Caller::of_tenant(args.tenant.clone()))?;
    Ok(ExitCode::SUCCESS)
}
