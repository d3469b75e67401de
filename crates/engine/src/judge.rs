//! From a Report to a verdict, by a fixed precedence, and never from what the program printed.
//!
//! set-up failure > violation recorded by us > kernel counter > signal > exit code. The first two and the third are
//! in the report's violations in the order in which they were seen; what we killed for comes before all.

use hotcell_contract::{FailureClass, RetryClass, TerminalEvent};
use hotcell_sandbox::{End, Kill, Kind, Report, Violation};

use hotcell_contract::OnViolation;

/// Everything that follows from the evidence.
pub(crate) struct Verdict {
    pub(crate) class: Option<FailureClass>,
    pub(crate) terminal: Option<TerminalEvent>,
    pub(crate) evidence: Option<String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) message: Option<String>,
}

pub(crate) fn judge(report: &Report, on_violation: OnViolation, program: &str) -> Verdict {
    let (exit_code, signal) = match report.end {
        End::Exited(code) => (Some(code), None),
        End::Signaled(signal) => (None, Some(signal)),
        End::Killed => (None, Some(9)),
        End::NotExecuted { .. } => (None, None),
    };
    let mut verdict = Verdict { class: None, terminal: None, evidence: None, exit_code, signal, message: None };
    if let End::NotExecuted { errno } = report.end {
        verdict.class = Some(FailureClass::SetupFailure);
        verdict.message = Some(not_executed(program, errno));
        verdict.evidence = Some(if matches!(errno, ENOENT | ELIBACC) { NOT_FOUND } else { NOT_EXECUTABLE }.into());
        return verdict;
    }
    if let Some(violation) = decisive(report, on_violation) {
        let class = class(violation.kind);
        verdict.class = Some(class);
        verdict.evidence = Some(violation.evidence.to_owned());
        verdict.terminal = terminal(report, violation);
        // How its main process took a SIGTERM of ours is no exit of its own. SIGKILL nobody takes in any way.
        let is_term = matches!(report.killed, Some(Kill::WallTime | Kill::CpuTime));
        if is_term || matches!(report.killed, Some(Kill::Cancelled { after_its_end: false, .. })) {
            verdict.exit_code = None;
            verdict.signal = verdict.signal.or(Some(15));
        }
        return verdict;
    }
    if let Some(Kill::Cancelled { signal, after_its_end }) = report.killed {
        verdict.class = Some(FailureClass::Signaled);
        verdict.terminal = Some(TerminalEvent::Cancelled);
        verdict.evidence = Some("the caller's signal".into());
        // One that took it as a reason to exit did not exit of its own.
        if !after_its_end {
            verdict.exit_code = None;
            verdict.signal = verdict.signal.or(Some(signal));
        }
        return verdict;
    }
    verdict.class = match report.end {
        End::Exited(0) => None,
        End::Exited(_) => Some(FailureClass::RuntimeError),
        _ => Some(FailureClass::Signaled),
    };
    verdict
}

/// The same for a compiler: one that ends badly by itself refuses the program, whatever its way to say so.
pub(crate) fn judge_compiler(report: &Report, program: &str) -> Verdict {
    let mut verdict = judge(report, OnViolation::Fail, program);
    if matches!(verdict.class, Some(FailureClass::RuntimeError))
        || (verdict.class == Some(FailureClass::Signaled) && verdict.terminal.is_none())
    {
        verdict.class = Some(FailureClass::CompileError);
        verdict.message = verdict.signal.map(|signal| format!("the compiler was ended by signal {signal}"));
    }
    verdict
}

/// The violation that the verdict is named after.
fn decisive(report: &Report, on_violation: OnViolation) -> Option<&Violation> {
    let limits = |v: &&Violation| is_limit(v.kind);
    let killed_for = match report.killed {
        Some(Kill::WallTime | Kill::CpuTime) => Some(Kind::Timeout),
        Some(Kill::Memory) => Some(Kind::Memory),
        _ => None,
    };
    if on_violation == OnViolation::Note {
        // Attempts are listed only; a limit that ended the program is still what ended it.
        let ended = report.killed.is_some() || matches!(report.end, End::Killed | End::Signaled(_));
        let by = |kind| report.violations.iter().find(|v| v.kind == kind);
        // Time that is over is over, also for who ended before anybody came.
        let first = by(killed_for.unwrap_or(Kind::Timeout));
        return first.or_else(|| report.violations.iter().filter(limits).find(|_| ended));
    }
    report.violations.first()
}

/// What ended the run: not always what it is judged by, which is what happened first.
fn terminal(report: &Report, decisive: &Violation) -> Option<TerminalEvent> {
    let seen = |kind| report.violations.iter().any(|v| v.kind == kind);
    match (report.killed, report.end) {
        (Some(Kill::WallTime | Kill::CpuTime), _) => Some(TerminalEvent::TimeoutViolation),
        (Some(Kill::Cancelled { .. }), _) => Some(TerminalEvent::Cancelled),
        // It was faster.
        (Some(Kill::Memory | Kill::Violation), End::Exited(_)) => None,
        (Some(Kill::Memory), _) => Some(TerminalEvent::MemoryLimitViolation),
        (Some(Kill::Violation), _) => Some(event(decisive.kind)),
        (None, End::Killed | End::Signaled(9)) if seen(Kind::Memory) => Some(TerminalEvent::MemoryLimitViolation),
        (None, End::Signaled(25)) if seen(Kind::Disk) => Some(TerminalEvent::DiskLimitViolation),
        _ => None,
    }
}

fn is_limit(kind: Kind) -> bool {
    matches!(kind, Kind::Timeout | Kind::Memory | Kind::Disk)
}

pub(crate) fn class(kind: Kind) -> FailureClass {
    match kind {
        Kind::Timeout => FailureClass::TimeoutViolation,
        Kind::Memory => FailureClass::MemoryLimitViolation,
        Kind::Processes => FailureClass::ProcessLimitViolation,
        Kind::Output => FailureClass::OutputLimitViolation,
        Kind::Disk => FailureClass::DiskLimitViolation,
        Kind::Network => FailureClass::NetworkAccessViolation,
        Kind::Write => FailureClass::FilesystemWriteViolation,
        Kind::Syscall => FailureClass::SyscallViolation,
    }
}

fn event(kind: Kind) -> TerminalEvent {
    match kind {
        Kind::Timeout => TerminalEvent::TimeoutViolation,
        Kind::Memory => TerminalEvent::MemoryLimitViolation,
        Kind::Processes => TerminalEvent::ProcessLimitViolation,
        Kind::Output => TerminalEvent::OutputLimitViolation,
        Kind::Disk => TerminalEvent::DiskLimitViolation,
        Kind::Network => TerminalEvent::NetworkAccessViolation,
        Kind::Write => TerminalEvent::FilesystemWriteViolation,
        Kind::Syscall => TerminalEvent::SyscallViolation,
    }
}

/// Whether trying again could help.
pub(crate) fn retry(class: Option<FailureClass>) -> Option<RetryClass> {
    use FailureClass::*;
    match class? {
        SyntaxError => Some(RetryClass::Syntax),
        CompileError | RuntimeError | Signaled | TestFailure => Some(RetryClass::Deterministic),
        TimeoutViolation => Some(RetryClass::Timeout),
        SetupFailure => None,
        _ => Some(RetryClass::Policy),
    }
}

/// The evidence of a program that is not in the cell.
pub const NOT_FOUND: &str = "execve: not found";
/// The evidence of a program that is there and can't be executed.
pub const NOT_EXECUTABLE: &str = "execve: refused";

pub(crate) const ENOENT: i32 = 2;
const EACCES: i32 = 13;
/// What the cell says of a program whose interpreter is not there.
const ELIBACC: i32 = 79;
const ENOEXEC: i32 = 8;

/// The same of one that is not in an image.
pub(crate) fn not_in_image(program: &str) -> String {
    format!(
        "`{program}` is not found in the image: give the path of a program in it, or of one under /src with --input"
    )
}

fn not_executed(program: &str, errno: i32) -> String {
    match errno {
        ENOENT => format!(
            "`{program}` is not found in the cell: give the name of a program under /usr, or of one under /src with --input"
        ),
        ELIBACC => {
            format!("`{program}` asks for an interpreter, in its #! line or its header, that is not in the cell")
        }
        EACCES => {
            format!("`{program}` cannot be executed: it is not a program or not marked executable")
        }
        ENOEXEC => format!("`{program}` is not in a format that the kernel executes: does it lack a #! line?"),
        _ => format!("`{program}` cannot be executed: {}", std::io::Error::from_raw_os_error(errno)),
    }
}
