//! What happened, with the evidence for it.

use std::time::{Duration, Instant};

use crate::scratch::Scratch;

/// One finished run. A misbehaving program is never an error: it is here.
#[derive(Debug)]
pub struct Report {
    pub end: End,
    /// Why we killed it, noted before we did.
    pub killed: Option<Kill>,
    /// Attempts that were refused and limits that were met, in order, at most [`MAX_VIOLATIONS`], and the first of each kind that
    /// came later.
    pub violations: Vec<Violation>,
    /// How many more there were.
    pub violations_dropped: u64,
    pub stdout: Output,
    pub stderr: Output,
    pub usage: Usage,
    pub enforced: Vec<Applied>,
    pub degraded: Vec<Applied>,
    pub stages: Vec<Stage>,
    /// The scratch, still readable now that nothing can change it.
    pub scratch: Option<Scratch>,
}

pub const MAX_VIOLATIONS: usize = 100;

/// How the program's main process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    Signaled(i32),
    /// It was there, and was killed with the whole cell before its own status could be read.
    Killed,
    /// exec itself was refused: the program never ran.
    NotExecuted {
        errno: i32,
    },
}

/// Our own reason to end a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    WallTime,
    CpuTime,
    Memory,
    Violation,
    Cancelled {
        signal: i32,
        /// Only its output was left.
        after_its_end: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Timeout,
    Memory,
    Processes,
    Output,
    Disk,
    Network,
    Write,
    Syscall,
}

#[derive(Clone, Debug)]
pub struct Violation {
    pub kind: Kind,
    pub at: Duration,
    pub detail: Detail,
    /// Which witness says so.
    pub evidence: &'static str,
}

#[derive(Clone, Debug, Default)]
pub struct Detail {
    pub syscall: Option<String>,
    pub path: Option<String>,
    pub address: Option<String>,
    pub limit: Option<u64>,
    pub observed: Option<u64>,
    pub pid: Option<i32>,
    pub note: Option<String>,
}

/// One stream of output: everything up to the cap, else its beginning and its end.
#[derive(Clone, Debug, Default)]
pub struct Output {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    /// All that the program wrote.
    pub total: u64,
    /// Why it could not be passed on to the caller, when it could not.
    pub failed: Option<String>,
}

impl Output {
    /// Bytes between head and tail that were not kept.
    pub fn dropped(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub wall: Duration,
    pub cpu_user: Duration,
    pub cpu_system: Duration,
    pub memory_peak: u64,
    /// `None` where nothing counted them.
    pub processes_peak: Option<u64>,
    pub scratch: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
}

/// What an observer is told, in the order in which it happens.
#[derive(Clone, Copy, Debug)]
pub enum Observed<'a> {
    /// The program is about to be executed.
    Started,
    Sample(Sample),
    /// As it is put on record.
    Violation(&'a Violation),
    /// What the program said, as far as its limit goes, where the caller has no end of the stream himself.
    Output {
        stream: &'static str,
        at: Duration,
        bytes: &'a [u8],
    },
}

/// How much is used at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Since the start.
    pub at: Duration,
    /// User and system time so far.
    pub cpu: Duration,
    /// Neither scratch nor a cache that the kernel would give back.
    pub memory: u64,
    /// Tasks of the program; `None` where nothing counts them.
    pub processes: Option<u64>,
    pub scratch: u64,
    pub stdout: u64,
    pub stderr: u64,
    pub io: Option<Moved>,
}

/// Bytes that read and write calls have moved: of the living, and of the dead that one of them waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub read: u64,
    pub written: u64,
}

/// A layer and the mechanism that it has, or lacks, in this run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Applied {
    pub layer: String,
    pub mechanism: String,
}

impl Applied {
    pub(crate) fn new(layer: &str, mechanism: impl Into<String>) -> Self {
        Applied { layer: layer.into(), mechanism: mechanism.into() }
    }
}

/// Where the time went: a step, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    pub step: Step,
    /// Before the run was asked for, where a cell was built ahead.
    pub began: Instant,
    pub took: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A cell that is there already takes next to nothing.
    Clone,
    Cgroup,
    Mounts,
    /// From the request to the program's first step: the three before are in it.
    Exec,
    Run,
    Collect,
}

impl Step {
    pub fn name(self) -> &'static str {
        match self {
            Step::Clone => "clone",
            Step::Cgroup => "cgroup",
            Step::Mounts => "mounts",
            Step::Exec => "exec",
            Step::Run => "run",
            Step::Collect => "collect",
        }
    }
}

impl Report {
    /// By all parts of a step together.
    pub fn took(&self, step: Step) -> Duration {
        self.stages.iter().filter(|stage| stage.step == step).map(|stage| stage.took).sum()
    }
}
