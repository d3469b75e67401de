//! `hotcell policy`: what is known, what is wrong with a file, and policies of the operator's own.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anstyle::Style;
use hotcell_contract::{Policy, show_duration, show_size};
use hotcell_engine::{Known, Policies, parse_policy, read_policy, refused_here};
use serde_json::json;

use crate::args::Output;
use crate::args::cell::CellArgs;
use crate::args::state::{PolicyArgs, PolicyVerb};
use crate::service_user::of_operator;
use crate::show::{harmless, painted};
use crate::state;

/// Where the operator's things are: the flag, the environment, the usual place.
pub(crate) fn state_dir(flag: Option<&Path>) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    flag.map(Path::to_owned).or_else(|| absolute("HOTCELL_STATE_DIR")).or_else(|| Some(usual()?.join("hotcell")))
}

/// The policy of a run: by the flag or the environment.
pub(crate) fn named(args: &CellArgs) -> anyhow::Result<Option<Policy>> {
    let named = args.policy.clone().or_else(|| std::env::var("HOTCELL_POLICY").ok().filter(|name| !name.is_empty()));
    let known = named.map(|name| policies(args.state_dir.as_deref()).get(&name)).transpose()?;
    Ok(known.map(|known| known.policy))
}

pub(crate) fn policies(flag: Option<&Path>) -> Policies {
    Policies::new(state_dir(flag).map(|dir| dir.join("policies")))
}

pub(crate) fn policy(args: &PolicyArgs) -> anyhow::Result<ExitCode> {
    let flag = args.state.state_dir.as_deref();
    // Those that are built in need no place.
    let dir = state_dir(flag).map(|_| of_operator(flag)).transpose()?;
    let policies = policies(dir.as_deref());
    let mut out = std::io::stdout().lock();
    match &args.verb {
        PolicyVerb::List => list(&mut out, &policies.list()?, args.state.output)?,
        PolicyVerb::Show { name } => {
            let known = policies.get(name)?;
            match args.state.output {
                Output::Text => write!(out, "{}", known.text)?,
                Output::Json => writeln!(out, "{}", serde_json::to_string_pretty(&known.policy)?)?,
            }
        }
        PolicyVerb::Check { file } => {
            let policy = parse_policy(&read_policy(file)?)?;
            writeln!(out, "{} is a policy: {}", harmless(&file.display().to_string()), policy.policy_id)?;
        }
        PolicyVerb::Define { file } => {
            let text = read_policy(file)?;
            parse_policy(&text)?;
            let mut state = state::open(flag)?;
            let policy = policies.define(&text)?;
            state.note("policy_event.DEFINED", json!({ "policy": policy, "by": state::user() }))?;
            writeln!(out, "{} is defined", policy.policy_id)?;
        }
        PolicyVerb::Delete { name } => {
            let mut state = state::open(flag)?;
            let policy = policies.delete(name)?;
            state.note("policy_event.DELETED", json!({ "policy": policy, "by": state::user() }))?;
            writeln!(out, "{name} is gone")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(out: &mut impl Write, known: &[Known], how: Output) -> anyhow::Result<()> {
    if how == Output::Json {
        let one = |k: &Known| json!({ "built_in": k.built_in, "refused": refused_here(&k.policy), "policy": k.policy });
        let all: Vec<_> = known.iter().map(one).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&json!({ "policies": all }))?)?;
        return Ok(());
    }
    let colour = std::io::stdout().is_terminal();
    let head = row(["policy", "isolation", "net", "wall", "cpu", "memory", "procs", "languages and more"]);
    writeln!(out, "{}", painted(&head, Style::new().bold(), colour))?;
    for Known { policy, .. } in known {
        let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let seconds = |s: f64| show_duration(Duration::from_secs_f64(s.clamp(0.0, 1e9)));
        writeln!(
            out,
            "{}",
            row([
                &policy.policy_id,
                &word(serde_json::to_value(policy.isolation_level)?),
                &word(serde_json::to_value(policy.network_policy)?),
                &seconds(policy.max_wall_time_seconds),
                &policy.max_cpu_seconds.map(seconds).unwrap_or_default(),
                &show_size(policy.max_memory_mb << 20),
                &policy.max_processes.to_string(),
                &more(policy),
            ])
        )?;
    }
    Ok(())
}

fn row([id, level, net, wall, cpu, memory, procs, more]: [&str; 8]) -> String {
    format!("{id:<14} {level:<10} {net:<10} {wall:>6} {cpu:>6} {memory:>9} {procs:>5}  {more}")
}

fn more(policy: &Policy) -> String {
    let mut words = match policy.allowed_languages.is_empty() {
        true => vec!["all".to_owned()],
        false => vec![harmless(&policy.allowed_languages.join(" "))],
    };
    let mut say = |is: bool, word: &str| words.extend(is.then(|| word.to_owned()));
    say(!policy.allow_file_write, "no writing");
    say(policy.require_approval, "approval");
    say(policy.python == hotcell_contract::PythonLayer::Capsule, "capsule");
    say(!policy.strict_when.is_empty(), "strict for some");
    say(policy.on_violation == hotcell_contract::OnViolation::Kill, "kill");
    let refused = refused_here(policy).map(|why| format!("; refused here: {}", harmless(&why))).unwrap_or_default();
    words.join(", ") + &refused
}
