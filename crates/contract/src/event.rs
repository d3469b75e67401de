//! What is told of a run while it is going: one stream for the terminal, for files and for the audit log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FailureClass, Limits, Status, TerminalEvent, Usage, Violation};

/// One line of the stream. The last is `FINISHED`, `TIMEOUT`, `KILLED` or `DENIED`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEvent {
    /// RFC 3339, UTC.
    pub at: String,
    pub request_id: String,
    /// `compile` or `run`, or the name of a check; null for what is of no cell.
    pub phase: Option<String>,
    /// Since the phase's program started; 0 before.
    pub since_start_ms: u64,
    #[serde(flatten)]
    pub happened: Happened,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", content = "data")]
pub enum Happened {
    #[serde(rename = "exec_event.ADMITTED")]
    Admitted(Admitted),
    #[serde(rename = "exec_event.DENIED")]
    Denied(Denied),
    #[serde(rename = "exec_event.STARTED")]
    Started(Started),
    #[serde(rename = "exec_event.OUTPUT")]
    Output(Said),
    #[serde(rename = "exec_event.SAMPLE")]
    Sample(Sample),
    #[serde(rename = "exec_event.VIOLATION")]
    Violation(Violation),
    #[serde(rename = "resource_event.ALERT")]
    Alert(Alert),
    #[serde(rename = "exec_event.FINISHED")]
    Finished(Finished),
    /// A limit of time ended it.
    #[serde(rename = "exec_event.TIMEOUT")]
    Timeout(Finished),
    /// Its caller or the kill switch ended it.
    #[serde(rename = "exec_event.KILLED")]
    Killed(Finished),
}

impl Happened {
    /// As it stands in the stream.
    pub fn name(&self) -> &'static str {
        match self {
            Happened::Admitted(_) => "exec_event.ADMITTED",
            Happened::Denied(_) => "exec_event.DENIED",
            Happened::Started(_) => "exec_event.STARTED",
            Happened::Output(_) => "exec_event.OUTPUT",
            Happened::Sample(_) => "exec_event.SAMPLE",
            Happened::Violation(_) => "exec_event.VIOLATION",
            Happened::Alert(_) => "resource_event.ALERT",
            Happened::Finished(_) => "exec_event.FINISHED",
            Happened::Timeout(_) => "exec_event.TIMEOUT",
            Happened::Killed(_) => "exec_event.KILLED",
        }
    }
}

/// How the run is watched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Admitted {
    pub sample_every_ms: u64,
    /// The share of a limit at which there is an alert.
    pub alert_at: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denied {
    pub failure_class: FailureClass,
    pub message: String,
}

/// A program begins, under these limits; a runtime's own threads are in `processes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    pub limits: Limits,
}

/// A piece of what the program said, in whole characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// `stdout` or `stderr`
    pub stream: String,
    /// Bytes that were before it on this stream.
    pub offset: u64,
    /// Bytes that are not UTF-8 replaced.
    pub text: String,
}

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// User and system time of all processes so far.
    pub cpu_ms: u64,
    /// Processors in use, over the last tenth of a second or more; null before that.
    pub cpu_cores: Option<f64>,
    /// Neither scratch nor a cache that the kernel would give back.
    pub memory_bytes: u64,
    /// Processes and threads; null where nothing counts them.
    pub processes: Option<u64>,
    pub scratch_bytes: u64,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    /// What read and write calls have moved so far, pipes and scratch included: at least that much, because what an orphan
    /// moved is not known after its end. Null where the kernel does not tell.
    pub io_read_bytes: Option<u64>,
    pub io_written_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Milliseconds.
    WallTime,
    /// Milliseconds.
    CpuTime,
    /// Bytes.
    Memory,
    Processes,
    /// Bytes.
    Scratch,
    /// Bytes, of the stream that has more.
    Output,
}

/// Not far from a limit any more. Once for each resource of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    pub resource: Resource,
    pub limit: u64,
    pub observed: u64,
    /// Of the limit.
    pub share: f64,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finished {
    pub status: Status,
    pub failure_class: Option<FailureClass>,
    pub terminal_event: Option<TerminalEvent>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub message: Option<String>,
    /// Null when nothing ran.
    pub usage: Option<Usage>,
    pub averages: Averages,
}

/// What the samples of the last phase add up to; null where there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Averages {
    pub memory_average_bytes: Option<u64>,
    pub cpu_cores_average: Option<f64>,
    pub cpu_cores_peak: Option<f64>,
    pub processes_average: Option<f64>,
    pub processes_peak: Option<u64>,
}
