//! The fixed vocabularies: classes, events, modes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a run is a fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum FailureClass {
    SyntaxError,
    CompileError,
    /// Exited non-zero by itself.
    RuntimeError,
    /// Ended by a signal that was not ours.
    Signaled,
    TestFailure,
    TimeoutViolation,
    NetworkAccessViolation,
    FilesystemWriteViolation,
    ProcessLimitViolation,
    MemoryLimitViolation,
    OutputLimitViolation,
    SyscallViolation,
    DiskLimitViolation,
    PolicyViolation,
    QuotaExceeded,
    LeaseViolation,
    ApprovalRequired,
    StrictModeUnavailable,
    StrictModeRequired,
    /// Hotcell could not run it: nothing is said about the program.
    SetupFailure,
}

impl FailureClass {
    /// A limit or a rule of the cell was met, as opposed to a program that failed by itself.
    pub fn is_violation(self) -> bool {
        use FailureClass::*;
        matches!(
            self,
            TimeoutViolation
                | NetworkAccessViolation
                | FilesystemWriteViolation
                | ProcessLimitViolation
                | MemoryLimitViolation
                | OutputLimitViolation
                | SyscallViolation
                | DiskLimitViolation
                | LeaseViolation
        )
    }
}

/// What ended the run, when it did not end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TerminalEvent {
    TimeoutViolation,
    NetworkAccessViolation,
    FilesystemWriteViolation,
    ProcessLimitViolation,
    MemoryLimitViolation,
    OutputLimitViolation,
    SyscallViolation,
    DiskLimitViolation,
    MaxRetriesExceeded,
    BudgetExceeded,
    KillSwitch,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Fast,
    Balanced,
    Strict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pass,
    Fail,
}

/// The highest tier that was executed and passed its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Tier {
    /// Parses, lints, type-checks; a plain run.
    L0,
    /// The user's own unit tests.
    L1,
    /// Integration, end to end.
    L2,
    /// Only generated tests ran: needs a human.
    #[serde(rename = "AI_TESTS_ONLY")]
    AiTestsOnly,
}

/// Whether another attempt is worth it: for the first two only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryClass {
    Syntax,
    Deterministic,
    Timeout,
    Policy,
    Flake,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkPolicy {
    /// Not even loopback.
    None,
    /// Loopback inside the cell.
    Local,
    /// Named hosts, through the egress broker.
    Restricted,
    /// The host's own network.
    Full,
}

/// What a refused attempt does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnViolation {
    /// The run ends at once.
    Kill,
    /// The program goes on; the run is a fail.
    Fail,
    /// It is listed only.
    Note,
}
