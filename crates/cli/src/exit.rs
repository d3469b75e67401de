//! Exit statuses: the program's own; 128+n for a signal; 124 timeout; 123 another violation; 125 refused; 126, 127; 141 closed pipe.

use std::process::ExitCode;

use hotcell_contract::{FailureClass, Outcome, TerminalEvent};
use hotcell_engine::{ExecuteError, NOT_FOUND, SandboxError};

/// Refused, bad usage, or Hotcell itself failed.
pub(crate) fn refused() -> ExitCode {
    ExitCode::from(125)
}

/// As of a process that SIGPIPE has ended.
pub(crate) fn closed_pipe() -> ExitCode {
    ExitCode::from(141)
}

pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe))
}

/// 125, but for a run that was called off before it began, which is what the caller's signal makes it.
pub(crate) fn of_error(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref() {
        Some(ExecuteError::Sandbox(SandboxError::Cancelled { signal })) => {
            ExitCode::from(128u8.saturating_add(*signal as u8))
        }
        _ => refused(),
    }
}

/// `signal` is what the caller has called it off with: a shell goes by that, whatever the program was ended with then.
pub(crate) fn code(outcome: &Outcome, signal: Option<i32>) -> ExitCode {
    let called_off = matches!(outcome.terminal_event, Some(TerminalEvent::Cancelled | TerminalEvent::KillSwitch));
    ExitCode::from(match outcome.failure_class {
        Some(FailureClass::TimeoutViolation) => 124,
        Some(class) if class.is_violation() => 123,
        // The only set-up failure that is an Outcome: the program could not be executed.
        Some(FailureClass::SetupFailure) if outcome.evidence.as_deref() == Some(NOT_FOUND) => 127,
        Some(FailureClass::SetupFailure) => 126,
        _ => match (outcome.exit_code, signal.filter(|_| called_off).or(outcome.signal)) {
            // A compiler or a test runner that said yes and was not believed.
            (Some(0), _) if outcome.failure_class.is_some() => 1,
            (Some(code), _) => code as u8,
            (None, Some(signal)) => 128u8.saturating_add(signal as u8),
            (None, None) => 125,
        },
    })
}
