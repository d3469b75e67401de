//! `hotcell approve`, `hotcell intent` and `hotcell rollback`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use hotcell_contract::{Approval, Intent, IntentStatus, Limits, Review, RiskLevel, show_duration, show_size};
use hotcell_engine::{after, new_id, now};
use serde_json::json;

use crate::args::Output;
use crate::args::grants::{
    ApproveArgs, ApproveVerb, DecisionArgs, IntentArgs, IntentVerb, OneArgs, Risk, RollbackArgs,
};
use crate::lease::{commands, say};
use crate::show::{ascii_json, harmless};
use crate::state;

pub(crate) fn approve(args: ApproveArgs) -> anyhow::Result<ExitCode> {
    match args.verb {
        ApproveVerb::List(state) => {
            let all = state::look(state.state_dir.as_deref())?.map_or(Ok(vec![]), |kept| kept.approvals())?;
            if state.output == Output::Json {
                return say(&state, "", &serde_json::to_value(&all)?);
            }
            let mut out = std::io::stdout().lock();
            if all.is_empty() {
                writeln!(out, "nothing was asked for")?;
            }
            for approval in &all {
                writeln!(out, "{}", line(approval))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        ApproveVerb::Show(OneArgs { id, state }) => {
            let approval = state::open(state.state_dir.as_deref())?.approval(&id)?;
            say(&state, &shown(&approval), &serde_json::to_value(&approval)?)
        }
        ApproveVerb::Grant { id, valid_for, decision } => decide(&id, Some(valid_for), &decision),
        ApproveVerb::Deny { id, decision } => decide(&id, None, &decision),
    }
}

fn decide(id: &str, valid_for: Option<Duration>, decision: &DecisionArgs) -> anyhow::Result<ExitCode> {
    let until = valid_for.map(|time| after(&now(), time).context("--for leads out of the calendar: give less"));
    let until = until.transpose()?;
    let DecisionArgs { reason, by, state } = decision;
    let mut kept = state::open(state.state_dir.as_deref())?;
    let decided = kept.decide(id, until.as_deref(), &by.name(), reason.as_deref())?;
    say(state, &line(&decided), &serde_json::to_value(&decided)?)
}

fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn line(approval: &Approval) -> String {
    let what = approval.what.language.clone().unwrap_or_else(|| approval.what.argv.join(" "));
    let who = approval.decided_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let status = word(&approval.status);
    harmless(&format!(
        "{}  {status:<8}{who}  {}  {what}  until {}",
        approval.approval_id, approval.policy_id, approval.expires_at
    ))
}

fn shown(approval: &Approval) -> String {
    let mut text = vec![line(approval), format!("hash {}", harmless(&approval.request_hash))];
    let id = |id: &Option<String>| id.as_deref().map_or("none".into(), harmless);
    text.push(format!("tenant {}, user {}", id(&approval.tenant_id), id(&approval.user_id)));
    let words = |words: &[String]| words.iter().map(|word| harmless(word)).collect::<Vec<_>>().join(" ");
    if !approval.what.argv.is_empty() {
        text.push(format!("arguments {}", words(&approval.what.argv)));
    }
    for (name, value) in &approval.what.environment {
        text.push(format!("variable {}={}", harmless(name), harmless(value)));
    }
    text.push(format!("network {}, standard input empty", harmless(&approval.what.network)));
    text.push(limits(&approval.what.limits));
    if let Some(state) = &approval.what.capsule {
        text.push("capsule, with the state".into());
        text.extend(state.lines().map(harmless));
    }
    if let Some(lease) = &approval.what.lease_id {
        text.push(format!("lease {}", harmless(lease)));
    }
    for (name, source) in &approval.what.files {
        text.push(format!("--- {}", harmless(name)));
        text.extend(source.lines().map(harmless));
    }
    text.join("\n")
}

fn limits(limits: &Limits) -> String {
    let time = |ms: u64| show_duration(Duration::from_millis(ms));
    let cpu_time = limits.cpu_ms.map(|ms| format!("{} of cpu time, ", time(ms))).unwrap_or_default();
    format!(
        "limits {} of wall time, {cpu_time}{} cpus, {} of memory, {} processes, {} open files, {} of scratch, {} of output",
        time(limits.wall_ms),
        limits.cpus,
        show_size(limits.memory_bytes),
        limits.processes,
        limits.open_files,
        show_size(limits.scratch_bytes),
        show_size(limits.output_bytes),
    )
}

pub(crate) fn intent(args: IntentArgs) -> anyhow::Result<ExitCode> {
    match args.verb {
        IntentVerb::Propose { goal, rollback_plan, intent_type, risk, command, path, by, state, command_words } => {
            let intent = Intent {
                intent_id: format!("intent-{}", new_id()),
                proposed_by: by.unwrap_or_else(state::user),
                proposed_at: now(),
                intent_type,
                goal,
                commands: commands(command_words, &command)?,
                paths: path,
                risk_level: match risk {
                    Risk::Low => RiskLevel::Low,
                    Risk::Medium => RiskLevel::Medium,
                    Risk::High => RiskLevel::High,
                },
                rollback_plan,
                reviews: vec![],
                status: IntentStatus::Proposed,
            };
            let intent = state::open(state.state_dir.as_deref())?.propose(intent)?;
            say(&state, &intent.intent_id, &serde_json::to_value(&intent)?)
        }
        IntentVerb::Review { id, approve, comment, by, state, .. } => {
            let review = Review { by: by.name(), at: now(), approves: approve, comment };
            let intent = state::open(state.state_dir.as_deref())?.review(&id, review)?;
            say(&state, &intent_line(&intent), &serde_json::to_value(&intent)?)
        }
        IntentVerb::List(state) => {
            let all = state::look(state.state_dir.as_deref())?.map_or(Ok(vec![]), |mut kept| kept.intents())?;
            let lines: Vec<String> = all.iter().map(intent_line).collect();
            let text = if lines.is_empty() { "nothing was proposed".into() } else { lines.join("\n") };
            say(&state, &text, &serde_json::to_value(&all)?)
        }
        IntentVerb::Show(OneArgs { id, state }) => {
            let intent = state::open(state.state_dir.as_deref())?.intent(&id)?;
            say(&state, &ascii_json(&intent)?, &serde_json::to_value(&intent)?)
        }
    }
}

fn intent_line(intent: &Intent) -> String {
    let (status, risk) = (word(&intent.status), word(&intent.risk_level));
    harmless(&format!("{}  {status:<11}  {risk:<6}  {}  {}", intent.intent_id, intent.proposed_by, intent.goal))
}

pub(crate) fn rollback(args: &RollbackArgs) -> anyhow::Result<ExitCode> {
    let mut kept = state::open(args.state.state_dir.as_deref())?;
    let restored = kept.rollback(&args.run, args.repo.as_deref(), args.force, &args.by.name())?;
    let repository = restored.repository.display().to_string();
    let text = format!("{} files of {} are as they were before", restored.files, harmless(&repository));
    say(&args.state, &text, &json!({ "run_id": args.run, "repository": repository, "files": restored.files }))
}
