//! Exit statuses: the program's own; 128+n for a signal; 124 timeout; 123 another violation; 125 refused; 126, 127.

use std::process::ExitCode;

use hotcell_contract::{FailureClass, Outcome};
use hotcell_engine::NOT_FOUND;

/// Refused, bad usage, or Hotcell itself failed.
pub(crate) fn refused() -> ExitCode {
    ExitCode::from(125)
}

pub(crate) fn code(outcome: &Outcome) -> ExitCode {
    ExitCode::from(match outcome.failure_class {
        Some(FailureClass::TimeoutViolation) => 124,
        Some(class) if class.is_violation() => 123,
        // The only set-up failure that is an Outcome: the program could not be executed.
        Some(FailureClass::SetupFailure) if outcome.evidence.as_deref() == Some(NOT_FOUND) => 127,
        Some(FailureClass::SetupFailure) => 126,
        _ => match (outcome.exit_code, outcome.signal) {
            (Some(code), _) => code as u8,
            (None, Some(signal)) => 128u8.saturating_add(signal as u8),
            (None, None) => 125,
        },
    })
}
