//! When Hotcell itself fails. What the program does is never an error: it is in the report.

use std::io;

use crate::wire::Failure;

/// The step of a layer that is required and missing.
pub(crate) const REQUIRED: &str = "require";
/// The step of a runtime that ended before there was a program.
pub(crate) const RUNTIME: &str = "runtime";

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error(
        "the launcher must be started before the first thread, and this process has {threads}: start it first in main"
    )]
    Threads { threads: usize },
    #[error("cannot start the launcher: {0}")]
    Start(#[source] io::Error),
    #[error("the launcher died, and every cell with it")]
    LauncherDied,
    #[error("cannot {what}: {error}")]
    Io { what: &'static str, error: io::Error },
    /// A step of the set-up was refused: nothing ran.
    #[error("cannot {step}{}{what}{}: {error}", if .what.is_empty() { "" } else { " `" }, if .what.is_empty() { "" } else { "`" })]
    SetUp { step: String, what: String, error: io::Error },
    #[error("`{layer}` is required and this host does not give it: `hotcell doctor` says what would")]
    Missing { layer: String },
    #[error("the runtime could not make the container: {said}")]
    Runtime { said: String },
    #[error("the cell died while it was set up{}", if *.oom_kills > 0 { ", of the memory limit: give it more" } else { "" })]
    DiedInSetUp { oom_kills: u64 },
    #[error("a kernel of its own gives no terminal: ask for none, or for another backend")]
    NoTerminal,
    /// Neither by us nor by a limit: nobody knows how the program would have ended.
    #[error("the cell was killed from outside, which says nothing of the program: run it again")]
    KilledFromOutside,
    #[error("called off by signal {signal} before the program started")]
    Cancelled { signal: i32 },
}

impl From<Failure> for SandboxError {
    fn from(failure: Failure) -> Self {
        if failure.step == REQUIRED {
            return SandboxError::Missing { layer: failure.what };
        }
        if failure.step == RUNTIME {
            return SandboxError::Runtime { said: failure.what };
        }
        let error = io::Error::from_raw_os_error(failure.errno);
        SandboxError::SetUp { step: failure.step, what: failure.what, error }
    }
}
