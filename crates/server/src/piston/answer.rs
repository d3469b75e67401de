//! From an Outcome to Piston's stages: what each said, how it ended, what it used.

use hotcell_contract::{FailureClass, Outcome, Phase, TerminalEvent, Usage, ViolationDetail};
use serde::Serialize;

use super::runtimes::Runtime;
use crate::signals::name;
use crate::transcript::Piece;

#[derive(Serialize)]
pub(super) struct Answer {
    language: String,
    version: String,
    run: Stage,
    #[serde(skip_serializing_if = "Option::is_none")]
    compile: Option<Stage>,
}

/// Milliseconds and bytes.
#[derive(Clone, Serialize)]
pub(super) struct Stage {
    stdout: String,
    stderr: String,
    /// Both, in the order in which they came.
    output: String,
    pub(super) code: Option<i32>,
    pub(super) signal: Option<&'static str>,
    pub(super) message: Option<String>,
    status: Option<&'static str>,
    cpu_time: u64,
    wall_time: u64,
    memory: u64,
    /// The message says what Piston would not.
    #[serde(skip)]
    pub(super) is_of_ours: bool,
}

impl Answer {
    pub(super) fn of(runtime: &Runtime, outcome: &Outcome, said: &[Piece]) -> Answer {
        let mut compile = None;
        let mut run = None;
        for (number, phase) in outcome.phases.iter().enumerate() {
            let is_last = number + 1 == outcome.phases.len();
            let mut stage = if is_last { Stage::last(outcome) } else { Stage::passed(phase) };
            (stage.stdout, stage.stderr) = (phase.stdout.clone(), phase.stderr.clone());
            stage.output = output(&phase.name, said);
            *(if phase.name == "compile" { &mut compile } else { &mut run }) = Some(stage);
        }
        // What did not come to run repeats what it came to.
        let run = run.or_else(|| compile.clone()).unwrap_or_else(|| Stage::last(outcome));
        Answer { language: runtime.language.clone(), version: runtime.version.clone(), run, compile }
    }
}

/// All that was said in a phase.
fn output(phase: &str, said: &[Piece]) -> String {
    let mut is_in = false;
    let mut all = String::new();
    for piece in said {
        match piece {
            Piece::Began(name) => is_in = name == phase,
            Piece::Said { text, .. } if is_in => all.push_str(text),
            Piece::Said { .. } => {}
        }
    }
    all
}

impl Stage {
    fn with(usage: &Usage) -> Stage {
        Stage {
            stdout: String::new(),
            stderr: String::new(),
            output: String::new(),
            code: None,
            signal: None,
            message: None,
            status: None,
            cpu_time: usage.cpu_ms,
            wall_time: usage.wall_ms,
            memory: usage.memory_peak_bytes,
            is_of_ours: false,
        }
    }

    /// One that others came after.
    pub(super) fn passed(phase: &Phase) -> Stage {
        Stage { code: Some(0), ..Stage::with(&phase.usage) }
    }

    /// The one with which the run ended, by the evidence for it.
    pub(super) fn last(outcome: &Outcome) -> Stage {
        let stage = Stage::with(&outcome.usage);
        let Some(class) = outcome.failure_class else {
            return Stage { code: outcome.exit_code, signal: outcome.signal.and_then(name), ..stage };
        };
        let (status, message) = match cut_off(outcome) {
            Some((status, message)) => (status, Some(message)),
            None => by_its_end(class, outcome),
        };
        let ours = ours(class, outcome);
        let is_of_ours = ours.is_some();
        let message = [message, ours].into_iter().flatten().collect::<Vec<String>>().join("; ");
        // There, what a limit ended has been killed, and has no exit of its own.
        let is_cut = matches!(status, "TO" | "OL" | "EL");
        Stage {
            code: outcome.exit_code.filter(|_| !is_cut),
            signal: if is_cut { Some("SIGKILL") } else { outcome.signal.and_then(name) },
            message: Some(message).filter(|message| !message.is_empty()),
            status: Some(status),
            is_of_ours,
            ..stage
        }
    }
}

/// A limit that Piston has a status for.
fn cut_off(outcome: &Outcome) -> Option<(&'static str, String)> {
    let seen = |class: FailureClass| outcome.violations.iter().find(|violation| violation.class == class);
    if outcome.failure_class == Some(FailureClass::TimeoutViolation)
        || outcome.terminal_event == Some(TerminalEvent::TimeoutViolation)
    {
        let by_clock = seen(FailureClass::TimeoutViolation).is_some_and(|violation| violation.evidence == "wall clock");
        return Some(("TO", format!("Time limit exceeded{}", if by_clock { " (wall clock)" } else { "" })));
    }
    if outcome.failure_class == Some(FailureClass::OutputLimitViolation) {
        let note = seen(FailureClass::OutputLimitViolation).and_then(|violation| violation.detail.note.as_deref());
        let (status, stream) = if note == Some("stderr") { ("EL", "stderr") } else { ("OL", "stdout") };
        return Some((status, format!("{stream} length exceeded")));
    }
    None
}

/// One that ended well after something of it was refused has failed all the same.
fn by_its_end(class: FailureClass, outcome: &Outcome) -> (&'static str, Option<String>) {
    match (class, outcome.signal, outcome.exit_code) {
        (FailureClass::SetupFailure, ..) => ("XX", None),
        (_, Some(signal), _) => ("SG", Some(format!("Caught fatal signal {signal}"))),
        (_, None, Some(code)) if code != 0 => ("RE", Some(format!("Exited with error status {code}"))),
        (_, None, _) => ("RE", None),
    }
}

/// What Piston's own sentence does not say: that we ended it, what was refused, and how we know.
fn ours(class: FailureClass, outcome: &Outcome) -> Option<String> {
    use FailureClass::*;
    match class {
        SyntaxError | RuntimeError | Signaled | TimeoutViolation | OutputLimitViolation | CompileError => {
            outcome.message.clone()
        }
        other => {
            let decisive = outcome.violations.iter().find(|violation| violation.class == other);
            let what = outcome.message.clone().or_else(|| Some(words(&decisive?.detail)));
            let why = [what, outcome.evidence.clone()].into_iter().flatten().filter(|words| !words.is_empty());
            Some(format!("{other:?}: {}", why.collect::<Vec<String>>().join(", ")))
        }
    }
}

/// What was tried.
fn words(detail: &ViolationDetail) -> String {
    let words = [&detail.syscall, &detail.path, &detail.address, &detail.note];
    words.into_iter().flatten().map(String::as_str).collect::<Vec<&str>>().join(" ")
}
