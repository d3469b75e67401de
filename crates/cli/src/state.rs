//! `hotcell records`, `stats`, `audit`, `killswitch`; and what a run leaves there.

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{Context, bail};
use hotcell_contract::{Averages, ExecutionRecord, Outcome, RecordStatus, is_id, show_duration};
use hotcell_engine::{Begun, ExecuteError, Filter, Leased, Request, State, Switch, Who, become_user, is_there};
use serde_json::json;

use crate::args::Output;
use crate::args::cell::CellArgs;
use crate::args::state::{AuditArgs, AuditVerb, KillswitchArgs, KillswitchVerb, RecordsArgs, StateArgs, StatsArgs};
use crate::policy::{named, state_dir};
use crate::service_user::{of_operator, owner_instead_of_root, reach};
use crate::show::{self, ascii_json, harmless, painted};

/// The operator's directory, made when it is not there.
pub(crate) fn open(flag: Option<&Path>) -> anyhow::Result<State> {
    open_as_owner(&of_operator(flag)?)
}

/// What root does in a state that is somebody else's must be theirs too.
fn open_as_owner(dir: &Path) -> anyhow::Result<State> {
    // Whose act it is, while that can be seen.
    user();
    if let Some((uid, gid)) = owner_instead_of_root(dir)? {
        become_user(uid, gid)?;
        reach(dir, uid)?;
    }
    Ok(State::open(dir)?)
}

/// What is there, for those who only look: nothing is made for them.
pub(crate) fn look(flag: Option<&Path>) -> anyhow::Result<Option<State>> {
    let dir = of_operator(flag)?;
    if dir.exists() { open_as_owner(&dir).map(Some) } else { Ok(None) }
}

/// Where a run is written down: in a directory that was named, or that is there because somebody uses it.
pub(crate) fn of_run(args: &CellArgs) -> anyhow::Result<Option<State>> {
    Ok(place_of_run(args)?.map(|dir| State::open(&dir)).transpose()?)
}

/// Whether there is such a place.
pub(crate) fn is_kept(args: &CellArgs) -> anyhow::Result<bool> {
    Ok(place_of_run(args)?.is_some())
}

fn place_of_run(args: &CellArgs) -> anyhow::Result<Option<PathBuf>> {
    let named = args.state_dir.is_some() || std::env::var_os("HOTCELL_STATE_DIR").is_some_and(|dir| !dir.is_empty());
    match state_dir(args.state_dir.as_deref()) {
        Some(dir) if named || is_there(&dir)? => Ok(Some(dir)),
        _ => Ok(None),
    }
}

pub(crate) fn who(args: &CellArgs) -> anyhow::Result<Who> {
    for (flag, id) in [("--tenant", &args.tenant), ("--user", &args.user), ("--run-id", &args.run_id)] {
        if let Some(id) = id.as_ref().filter(|id| !is_id(id)) {
            bail!("{flag} `{}` is no id: give 1 to 64 letters, digits, `_` or `-`", harmless(id));
        }
    }
    Ok(Who { tenant_id: args.tenant.clone(), user_id: args.user.clone(), run_id: args.run_id.clone() })
}

/// A run that is written down, and where.
pub(crate) struct Kept<'a> {
    pub(crate) state: State,
    pub(crate) begun: Begun<'a>,
}

pub(crate) fn begin<'a>(
    args: &CellArgs,
    request: &Request,
    leased: Option<&'a Leased>,
) -> anyhow::Result<Option<Kept<'a>>> {
    let who = who(args)?;
    let policy = named(args)?;
    let state = of_run(args)?;
    let limited = policy.as_ref().is_some_and(|policy| {
        policy.max_executions_per_minute.is_some()
            || policy.max_executions_per_hour.is_some()
            || policy.max_concurrent.is_some()
    });
    let Some(mut state) = state else {
        if who.tenant_id.is_some() || who.user_id.is_some() || who.run_id.is_some() {
            bail!("--tenant, --user and --run-id are for records, and there is no place for them: give --state-dir");
        }
        if limited {
            bail!("the policy counts runs, and there is no place to count them: give --state-dir");
        }
        if policy.is_some_and(|policy| policy.require_approval) {
            bail!("the policy asks for an approval, and there is no place to ask for it: give --state-dir");
        }
        return Ok(None);
    };
    let begun = hotcell_engine::begin(&mut state, request, &who, policy.as_ref(), leased)?;
    Ok(Some(Kept { state, begun }))
}

pub(crate) fn end(
    kept: Option<Kept<'_>>,
    mut outcome: Result<Outcome, ExecuteError>,
    averages: &Averages,
    quiet: bool,
) -> anyhow::Result<Outcome> {
    let Some(Kept { mut state, mut begun }) = kept else { return Ok(outcome?) };
    hotcell_engine::end(&mut state, &mut begun, &mut outcome, averages)?;
    let outcome = outcome?;
    hotcell_engine::leave(&mut state, &begun, &outcome)?;
    if begun.has_pack() && !quiet && std::io::stderr().is_terminal() {
        let changed = outcome.artifacts.iter().filter(|file| file.path.starts_with("repo://")).count();
        let record_id = begun.record_id();
        show::note(&format!(
            "{changed} files written into the repository: `hotcell rollback {record_id}` takes it back"
        ));
    }
    Ok(outcome)
}

/// Who sits here.
pub(crate) fn user() -> String {
    static CALLER: OnceLock<String> = OnceLock::new();
    let name = || std::env::var("USER").ok().filter(|name| is_id(name));
    let number = || format!("uid {}", rustix::process::geteuid().as_raw());
    CALLER.get_or_init(|| name().unwrap_or_else(number)).clone()
}

fn print_json(value: &impl serde::Serialize) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stdout(), "{}", ascii_json(value)?)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn records(args: &RecordsArgs) -> anyhow::Result<ExitCode> {
    if let Some(id) = &args.record {
        return one_record(id, &args.state);
    }
    let status = match &args.status {
        None => None,
        Some(name) => Some(RecordStatus::named(name).with_context(|| {
            let all = RecordStatus::ALL.map(RecordStatus::name).join(", ");
            format!("`{}` is no status: use one of {all}", harmless(name))
        })?),
    };
    let filter = Filter {
        tenant: args.tenant.clone(),
        user: args.user.clone(),
        run: args.run_id.clone(),
        status,
        language: args.language.clone(),
        policy: args.policy.clone(),
        since: args.since.as_deref().map(|text| time("--since", text)).transpose()?,
        until: args.until.as_deref().map(|text| time("--until", text)).transpose()?,
        before: args.before.clone(),
        limit: args.limit,
    };
    let records = match look(args.state.state_dir.as_deref())? {
        Some(mut state) => state.records(&filter)?,
        None => vec![],
    };
    if args.state.output == Output::Json {
        return print_json(&json!({ "records": records }));
    }
    let colour = std::io::stdout().is_terminal();
    let mut out = std::io::stdout().lock();
    let head = format!(
        "{:<19}  {:<9} {:<24} {:<10} {:<13} {:>7}  {}",
        "time", "status", "why", "language", "policy", "wall", "record"
    );
    writeln!(out, "{}", painted(&head, Style::new().bold(), colour))?;
    for record in &records {
        writeln!(out, "{}", row(record, colour))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn one_record(id: &str, args: &StateArgs) -> anyhow::Result<ExitCode> {
    let found = match look(args.state_dir.as_deref())? {
        Some(mut state) => state.record(id)?,
        None => None,
    };
    let record = found.with_context(|| format!("there is no record `{id}`: see `hotcell records`"))?;
    if args.output == Output::Json {
        return print_json(&record);
    }
    let mut out = std::io::stdout().lock();
    // By the names that they have in JSON.
    if let serde_json::Value::Object(fields) = serde_json::to_value(&record)? {
        for (name, value) in &fields {
            let text = match value {
                serde_json::Value::Null => "-".into(),
                serde_json::Value::String(text) => harmless(text),
                other => harmless(&other.to_string()),
            };
            writeln!(out, "{name:<18} {text}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A date, or a moment with its offset.
fn time(flag: &str, text: &str) -> anyhow::Result<i64> {
    hotcell_engine::parse_time(text)
        .with_context(|| format!("{flag} `{}` is no time: write 2026-11-15 or 2026-11-15T12:00:00Z", harmless(text)))
}

fn row(record: &ExecutionRecord, colour: bool) -> String {
    let style = match record.status {
        RecordStatus::Completed => AnsiColor::Green.on_default(),
        RecordStatus::Running | RecordStatus::Pending => Style::new(),
        RecordStatus::Denied | RecordStatus::Killed => AnsiColor::Yellow.on_default(),
        RecordStatus::Failed | RecordStatus::Timeout => AnsiColor::Red.on_default(),
    };
    let wall =
        record.wall_time_seconds.map(|s| show_duration(Duration::from_secs_f64(s.clamp(0.0, 1e9)))).unwrap_or_default();
    format!(
        "{:<19}  {} {:<24} {:<10} {:<13} {wall:>7}  {}",
        harmless(record.created_at.get(..19).unwrap_or(&record.created_at)),
        painted(&format!("{:<9}", record.status.name()), style, colour),
        record.failure_class.map(|class| format!("{class:?}")).unwrap_or_default(),
        harmless(record.language.as_deref().unwrap_or("command")),
        harmless(&record.policy_id),
        harmless(&record.record_id),
    )
}

pub(crate) fn stats(args: &StatsArgs) -> anyhow::Result<ExitCode> {
    let stats = match look(args.state.state_dir.as_deref())? {
        Some(mut state) => state.stats(args.tenant.as_deref())?,
        None => Default::default(),
    };
    if args.state.output == Output::Json {
        return print_json(&stats);
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} runs and refusals", stats.total_executions)?;
    for (name, counts) in [
        ("status", &stats.by_status),
        ("language", &stats.by_language),
        ("policy", &stats.by_policy),
        ("failure", &stats.by_failure_class),
    ] {
        for (index, (value, count)) in counts.iter().enumerate() {
            writeln!(out, "{:<10} {:<26} {count:>8}", if index == 0 { name } else { "" }, harmless(value))?;
        }
    }
    let time = |s: Option<f64>| s.map_or("-".into(), |s| show_duration(Duration::from_secs_f64(s.clamp(0.0, 1e9))));
    let (p50, p95) = (time(stats.p50_wall_time_seconds), time(stats.p95_wall_time_seconds));
    let p99 = time(stats.p99_wall_time_seconds);
    writeln!(out, "wall time  average {}, p50 {p50}, p95 {p95}, p99 {p99}", time(stats.avg_wall_time_seconds))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn audit(args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let log = |state: &StateArgs| look(state.state_dir.as_deref());
    let mut out = std::io::stdout().lock();
    match &args.verb {
        AuditVerb::Tail { number, state } => {
            let mut last = VecDeque::new();
            for line in log(state)?.iter().flat_map(|state| state.audit().lines()) {
                last.push_back(line?);
                if last.len() > *number {
                    last.pop_front();
                }
            }
            for line in last {
                match (state.output, serde_json::from_str::<hotcell_engine::Entry>(&line)) {
                    (Output::Text, Ok(entry)) => {
                        let data = harmless(&entry.data.to_string());
                        let (at, event) = (harmless(&entry.at), harmless(&entry.event));
                        writeln!(out, "{:>6} {at} {event} {data}", entry.seq)?;
                    }
                    (Output::Text, Err(_)) => writeln!(out, "{}", harmless(&line))?,
                    (Output::Json, _) => writeln!(out, "{line}")?,
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        AuditVerb::Export(state) => {
            for line in log(state)?.iter().flat_map(|state| state.audit().lines()) {
                writeln!(out, "{}", line?)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        AuditVerb::Verify(state) => {
            let found = log(state)?.map(|state| state.verify_audit()).transpose()?.unwrap_or_default();
            let whole = found.flaws.is_empty();
            if state.output == Output::Json {
                let flaws: Vec<_> =
                    found.flaws.iter().map(|f| json!({ "file": f.file, "line": f.line, "what": f.what })).collect();
                writeln!(out, "{}", json!({ "ok": whole, "entries": found.entries, "flaws": flaws }))?;
            } else if whole {
                writeln!(out, "{} entries, none changed, none missing", found.entries)?;
            } else {
                for flaw in found.flaws.iter().take(20) {
                    writeln!(out, "{}:{}: {}", harmless(&flaw.file), flaw.line, harmless(&flaw.what))?;
                }
            }
            Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

pub(crate) fn killswitch(args: &KillswitchArgs) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let is_tenant = |tenant: &Option<String>| match tenant.as_ref().filter(|tenant| !is_id(tenant)) {
        Some(bad) => bail!("--tenant `{}` is no id: give 1 to 64 letters, digits, `_` or `-`", harmless(bad)),
        None => Ok(()),
    };
    match &args.verb {
        KillswitchVerb::On { reason, by, tenant, state } => {
            is_tenant(tenant)?;
            let mut here = open(state.state_dir.as_deref())?;
            let since = now();
            let told =
                here.switch_on(&Switch { tenant: tenant.clone(), reason: reason.clone(), by: by.name(), since })?;
            writeln!(out, "the kill switch is on; {told} running were stopped")?;
        }
        KillswitchVerb::Off { by, tenant, state } => {
            is_tenant(tenant)?;
            let mut here = open(state.state_dir.as_deref())?;
            let was = here.switch_off(tenant.as_deref(), &by.name())?;
            writeln!(out, "{}", if was { "the kill switch is off" } else { "the kill switch was off already" })?;
            for tenant in here.switches()?.iter().filter_map(|switch| switch.tenant.as_deref()) {
                writeln!(out, "it is on for the tenant {0}: give --tenant {0}", harmless(tenant))?;
            }
        }
        KillswitchVerb::Status(state) => {
            let switches = match look(state.state_dir.as_deref())? {
                Some(state) => state.switches()?,
                None => vec![],
            };
            if state.output == Output::Json {
                let on: Vec<_> = switches
                    .iter()
                    .map(|s| json!({ "tenant_id": s.tenant, "reason": s.reason, "by": s.by, "since": s.since }))
                    .collect();
                writeln!(out, "{}", json!({ "on": on }))?;
            } else if switches.is_empty() {
                writeln!(out, "off")?;
            }
            for switch in switches.iter().filter(|_| state.output == Output::Text) {
                let whom =
                    switch.tenant.as_ref().map_or("everybody".into(), |tenant| format!("tenant {}", harmless(tenant)));
                let (reason, by) = (harmless(&switch.reason), harmless(&switch.by));
                writeln!(out, "on for {whom} since {}, by {by}: {reason}", harmless(&switch.since))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn now() -> String {
    hotcell_engine::now()
}
