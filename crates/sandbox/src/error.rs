//! When Hotcell itself fails. What the program does is never an error: it is in the report.

use std::io;

use crate::wire::Failure;

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
    #[error("cannot {what}: {source}")]
    Io { what: &'static str, source: io::Error },
    /// A step of the set-up was refused: nothing ran.
    #[error("cannot {step}{}{what}{}: {source}", if .what.is_empty() { "" } else { " `" }, if .what.is_empty() { "" } else { "`" })]
    SetUp { step: String, what: String, source: io::Error },
    #[error("the cell died while it was set up ({oom_kills} oom kills): give it more memory")]
    DiedInSetUp { oom_kills: u64 },
    #[error("called off by signal {signal} before the program started")]
    Cancelled { signal: i32 },
}

impl From<Failure> for SandboxError {
    fn from(failure: Failure) -> Self {
        SandboxError::SetUp {
            step: failure.step,
            what: failure.what,
            source: io::Error::from_raw_os_error(failure.errno),
        }
    }
}
