//! An outcome as an agent can read it: the verdict first, in lines that the program has no part in, then what the program
//! said, each stream in a piece of its own.
//!
//! The structured answer has the program's words as they were. In the text, what is unseen is written out: somebody may look at
//! it on a terminal.

use std::time::Duration;

use hotcell_contract::{
    FailureClass, LanguageList, Outcome, Phase, PhaseSummary, RunSummary, Status, attempt, harmless, is_unseen, reason,
    show_duration, show_size,
};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

use crate::problem::Problem;

/// Of each stream: what an agent can read. All of it is in the run's result.
const MAX_STREAM: usize = 32 << 10;
/// Of the phases that failed before the last one, together.
const MAX_PHASES: usize = 16 << 10;
const MAX_VIOLATIONS: usize = 10;

pub(super) fn of_outcome(run_id: &str, outcome: &Outcome) -> CallToolResult {
    let summary = summary(run_id, outcome);
    let mut pieces = vec![ContentBlock::text(verdict(outcome, &summary))];
    for (name, text) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        if !text.is_empty() {
            let (text, _) = cut(&visible(text), MAX_STREAM);
            pieces.push(ContentBlock::text(format!("{name}:\n{text}")));
        }
    }
    // Nothing is said about the program then.
    let is_error = summary.failure_class == Some(FailureClass::SetupFailure);
    answer(pieces, &summary, is_error)
}

pub(super) fn of_languages(found: &LanguageList) -> CallToolResult {
    let line = |language: &hotcell_contract::LanguageSummary| {
        let state = match (&language.version, &language.missing) {
            (_, Some(missing)) => format!("not here: {missing}"),
            (Some(version), None) => version.clone(),
            (None, None) => "available".to_owned(),
        };
        harmless(&format!("{}: {state}", language.name))
    };
    let lines: Vec<String> = found.languages.iter().map(line).collect();
    answer(vec![ContentBlock::text(lines.join("\n"))], found, false)
}

/// Why nothing ran. It is text alone: a structured answer would have to be a summary of a run.
pub(super) fn of_problem(problem: &Problem) -> CallToolResult {
    let told = problem.to_contract();
    let mut notes = vec![];
    notes.extend(told.failure_class.map(|class| format!("{class:?}")));
    notes.extend(told.field.map(|field| format!("field {field}")));
    notes.extend(told.record_id.map(|id| format!("record {id}")));
    notes.extend(problem.again_in.map(|time| format!("again in {} s", time.as_secs_f64().ceil().max(1.0))));
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    CallToolResult::error(vec![ContentBlock::text(harmless(&format!("not run: {}{notes}", told.detail)))])
}

fn answer(pieces: Vec<ContentBlock>, structured: &impl Serialize, is_error: bool) -> CallToolResult {
    let mut result = if is_error { CallToolResult::error(pieces) } else { CallToolResult::success(pieces) };
    result.structured_content = Some(serde_json::to_value(structured).unwrap_or(Value::Null));
    result
}

fn summary(run_id: &str, outcome: &Outcome) -> RunSummary {
    let (stdout, is_cut) = cut(&outcome.stdout, MAX_STREAM);
    let (stderr, is_cut_too) = cut(&outcome.stderr, MAX_STREAM);
    let mut room = MAX_PHASES;
    let last = outcome.phases.len().saturating_sub(1);
    let mut truncated = outcome.output.truncated || is_cut || is_cut_too;
    let mut phases = vec![];
    for (at, phase) in outcome.phases.iter().enumerate() {
        // What the last one said is the outcome's own.
        let said = (phase.status == Status::Fail && at < last).then(|| said(phase));
        let said = said.map(|text| cut(&text, room));
        room -= said.as_ref().map_or(0, |(text, _)| text.len().min(room));
        truncated |= said.as_ref().is_some_and(|(_, is_cut)| *is_cut);
        phases.push(PhaseSummary {
            name: phase.name.clone(),
            tier: phase.tier,
            status: phase.status,
            failure_class: phase.failure_class,
            exit_code: phase.exit_code,
            duration_ms: phase.duration_ms,
            output: said.map(|(text, _)| text),
            tests: phase.tests.clone(),
        });
    }
    let more = outcome.violations.len().saturating_sub(MAX_VIOLATIONS) as u64;
    RunSummary {
        run_id: run_id.to_owned(),
        status: outcome.status,
        tier: outcome.tier,
        failure_class: outcome.failure_class,
        terminal_event: outcome.terminal_event,
        exit_code: outcome.exit_code,
        signal: outcome.signal,
        message: outcome.message.clone(),
        duration_ms: outcome.duration_ms,
        cpu_ms: outcome.usage.cpu_ms,
        memory_peak_bytes: outcome.usage.memory_peak_bytes,
        stdout,
        stderr,
        stdout_bytes: outcome.output.stdout.bytes,
        stderr_bytes: outcome.output.stderr.bytes,
        truncated,
        violations: outcome.violations.iter().take(MAX_VIOLATIONS).cloned().collect(),
        violations_dropped: outcome.violations_dropped + more,
        phases,
        skipped_checks: outcome.skipped_checks.clone(),
        retry_class: outcome.retry_class,
    }
}

fn said(phase: &Phase) -> String {
    format!("{}{}", phase.stdout, phase.stderr)
}

/// Lines of ours: what the program chose is in them only where it is escaped.
fn verdict(outcome: &Outcome, summary: &RunSummary) -> String {
    let mark = word(&outcome.status);
    let is_verification = outcome.phases.iter().any(|phase| phase.tier.is_some());
    let tier = if is_verification { format!(" {}", word(&outcome.tier)) } else { String::new() };
    let class = outcome.failure_class.map(|class| format!(" {class:?}")).unwrap_or_default();
    let is_compiling = outcome.phases.last().is_some_and(|phase| phase.name == "compile" && phase.tier.is_none());
    let end = match (outcome.exit_code, outcome.signal) {
        (Some(code), _) => Some(format!("exit {code}")),
        (None, signal) => signal.map(|signal| format!("signal {signal}")),
    };
    let why = match (reason(outcome).filter(|why| Some(why) != end.as_ref()), is_compiling) {
        (Some(why), true) => format!(": while compiling, {why}"),
        (Some(why), false) => format!(": {why}"),
        (None, true) => ": while compiling".to_owned(),
        (None, false) => String::new(),
    };
    let end = end.map(|end| format!("{end}, ")).unwrap_or_default();
    let time = |ms| show_duration(Duration::from_millis(ms));
    let (wall, cpu, peak) =
        (time(summary.duration_ms), time(summary.cpu_ms), show_size(outcome.usage.memory_peak_bytes));
    let mut lines = vec![format!("{mark}{tier}{class}{why} ({end}{wall} wall, {cpu} cpu, {peak} peak)")];
    lines.extend(summary.violations.iter().map(|violation| format!("{:?}: {}", violation.class, attempt(violation))));
    if is_verification {
        lines.extend(summary.phases.iter().map(check));
    }
    let left_out = |skipped: &hotcell_contract::SkippedCheck| {
        harmless(&format!("{} is left out: {}", skipped.check, skipped.reason))
    };
    lines.extend(summary.skipped_checks.iter().map(left_out));
    let cut = if summary.truncated { ", cut in the middle here" } else { "" };
    lines.push(format!("{} bytes of stdout, {} of stderr{cut}", summary.stdout_bytes, summary.stderr_bytes));
    lines.join("\n")
}

fn check(phase: &PhaseSummary) -> String {
    let tier = phase.tier.map(|tier| format!("{} ", word(&tier))).unwrap_or_default();
    let tests = phase.tests.as_ref().map(|tests| {
        let failing = if tests.failing.is_empty() { String::new() } else { format!(": {}", tests.failing.join(", ")) };
        format!(", {} tests passed, {} failed{failing}", tests.passed, tests.failed)
    });
    let status = word(&phase.status);
    harmless(&format!("{tier}{}: {status}{}", phase.name, tests.unwrap_or_default()))
}

/// As it is called everywhere.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| Some(value.as_str()?.to_owned())).unwrap_or_default()
}

/// What is unseen is written out; lines and their indentation stay.
pub(super) fn visible(text: &str) -> String {
    let shown = |c: char| {
        if is_unseen(c) && !matches!(c, '\n' | '\t') { c.escape_default().collect::<Vec<_>>() } else { vec![c] }
    };
    text.chars().flat_map(shown).collect()
}

/// Head and tail, with a word between them, and whether there had to be one.
fn cut(text: &str, most: usize) -> (String, bool) {
    if text.len() <= most {
        return (text.to_owned(), false);
    }
    let is_between = |at: &usize| text.is_char_boundary(*at);
    let head = (0..=most / 2).rev().find(is_between).unwrap_or(0);
    let tail = (text.len() - most / 2..text.len()).find(is_between).unwrap_or(text.len());
    (format!("{}\n[... {} bytes left out ...]\n{}", &text[..head], tail - head, &text[tail..]), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_between_characters_and_says_so() {
        assert_eq!(cut("short", 5), ("short".into(), false));
        let (text, is_cut) = cut(&"\u{e4}".repeat(100), 11);
        assert!(is_cut);
        assert_eq!(text, format!("{0}\n[... 192 bytes left out ...]\n{0}", "\u{e4}".repeat(2)));
    }

    #[test]
    fn nothing_in_the_text_steers_a_terminal() {
        assert_eq!(visible("a\u{1b}[2J\tb\r\nc\u{202e}"), "a\\u{1b}[2J\tb\\r\nc\\u{202e}");
    }
}
