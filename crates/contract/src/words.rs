//! Outcomes in words, for people and for agents.

use std::time::Duration;

use crate::{FailureClass, Outcome, Status, TerminalEvent, Violation, is_unseen, show_duration, show_size};

/// What happened, in a few words, where there is more to say than the class.
pub fn reason(outcome: &Outcome) -> Option<String> {
    if let Some(message) = &outcome.message {
        return Some(harmless(message));
    }
    if outcome.status == Status::Pass {
        return None;
    }
    if let (Some(TerminalEvent::Cancelled), Some(signal)) = (outcome.terminal_event, outcome.signal) {
        return Some(format!("called off, signal {signal}"));
    }
    let decisive = outcome.violations.iter().find(|v| Some(v.class) == outcome.failure_class);
    match (decisive, outcome.exit_code, outcome.signal) {
        (Some(violation), ..) => Some(attempt(violation)),
        (None, Some(code), _) => Some(format!("exit {code}")),
        (None, None, Some(signal)) => Some(format!("signal {signal}")),
        _ => None,
    }
}

/// What a program chose must not steer a terminal, nor look like a line of ours.
pub fn harmless(text: &str) -> String {
    text.chars().flat_map(|c| if is_unseen(c) { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

/// What was refused, or which limit was met.
pub fn attempt(violation: &Violation) -> String {
    use FailureClass::*;
    let detail = &violation.detail;
    let limit = detail.limit.unwrap_or(0);
    match violation.class {
        TimeoutViolation => {
            let what = detail.note.as_deref().unwrap_or("wall time");
            format!("{what} over {}", show_duration(Duration::from_millis(limit)))
        }
        MemoryLimitViolation => format!("memory over {}", show_size(limit)),
        ProcessLimitViolation => format!("more than {limit} processes"),
        OutputLimitViolation => {
            format!("{} over {}", detail.note.as_deref().unwrap_or("output"), show_size(limit))
        }
        DiskLimitViolation => format!("{} ({})", violation.evidence, show_size(limit)),
        _ => [&detail.syscall, &detail.path, &detail.address, &detail.note]
            .into_iter()
            .flatten()
            .map(|text| harmless(text))
            .collect::<Vec<_>>()
            .join(" "),
    }
}
