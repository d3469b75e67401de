//! What the caller asks for: the program, what it may see, and how much of everything it may use.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One program in one cell.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The program and its arguments. A name without `/` is looked for in the cell's own `PATH`.
    pub argv: Vec<OsString>,
    /// The whole environment of the program; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// Where the program starts, inside the cell.
    pub cwd: PathBuf,
    /// Host directories or files that the cell sees, read-only.
    pub trees: Vec<Tree>,
    /// Symbolic links in the cell's root: (where, what it says).
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Files made inside the cell, read-only for the program.
    pub files: Vec<File>,
    /// Directories of the cell that the program may change, as a part of the scratch; `files` may be in them.
    pub writable: Vec<PathBuf>,
    /// Read-only places of the cell that tools try to write, out of habit, and do without: no violation.
    pub quiet: Vec<PathBuf>,
    pub limits: Limits,
    pub network: Network,
    pub on_violation: OnViolation,
    /// Layers without which not to run at all, besides those that are never left out.
    pub require: Vec<Layer>,
    /// Who makes the cell; this crate itself, when nobody is named.
    pub runtime: Option<Runtime>,
    /// A directory that is the cell's root, instead of one that is empty but for the rest of this. In containers only.
    pub root: Option<PathBuf>,
    /// Whose container the cell is made in. Not together with a runtime.
    pub engine: Option<Arc<dyn Engine>>,
}

impl Spec {
    pub(crate) fn has_own_kernel(&self) -> bool {
        self.runtime.as_ref().is_some_and(|runtime| runtime.kind.has_own_kernel())
    }
}

/// Somebody who starts containers when asked to: a daemon, as a rule, of which this crate knows nothing.
pub trait Engine: Debug + Send + Sync {
    fn name(&self) -> &str;
    /// Starts a container whose first process is this program, with [`CALLED_BY_ENGINE`] as its arguments, and waits until it
    /// has called, or `cancel` is readable. What went wrong otherwise, in a sentence.
    fn start(&self, limits: &Limits, network: Network, cancel: Option<BorrowedFd<'_>>) -> Result<Started, String>;
}

/// How the init of a runtime's container is called: its own place in the container, and a word. It has a socket as fd 3.
pub(crate) const CALLED_BY_RUNTIME: [&str; 2] = ["/.hotcell-init", "runtime"];

/// How the init of an engine's container is called: its own place in the container, and a word. It calls back at
/// [`CALL_AT`], a socket that keeps message boundaries.
pub const CALLED_BY_ENGINE: [&str; 2] = ["/.hotcell-init", "engine"];
pub const CALL_AT: &str = "/.hotcell-call";

/// A container that waits for what is to be done in it.
pub struct Started {
    /// To its init.
    pub init: OwnedFd,
    /// Whoever removes the container, when dropped; by then its last process is dead.
    pub keeper: Box<dyn std::any::Any + Send>,
}

/// An OCI runtime: a program that makes a container from a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runtime {
    pub path: PathBuf,
    pub kind: RuntimeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuntimeKind {
    Runc,
    Crun,
    Youki,
    /// gVisor: a kernel of its own between the program and the host's.
    Runsc,
}

impl RuntimeKind {
    pub fn has_own_kernel(self) -> bool {
        self == RuntimeKind::Runsc
    }
}

/// A host path, recursively and read-only, at a place in the cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tree {
    pub host: PathBuf,
    pub cell: PathBuf,
    /// A directory beneath which `host`, relative then, is looked up through no link: for what others may be changing.
    pub beneath: Option<PathBuf>,
    /// A terminal of the run's own is one.
    pub(crate) has_devices: bool,
}

impl Tree {
    /// A path of the host's own, whose links are followed.
    pub fn new(host: impl Into<PathBuf>, cell: impl Into<PathBuf>) -> Tree {
        Tree { host: host.into(), cell: cell.into(), beneath: None, has_devices: false }
    }

    /// What others may be changing.
    pub fn beneath(root: impl Into<PathBuf>, host: impl Into<PathBuf>, cell: impl Into<PathBuf>) -> Tree {
        Tree { beneath: Some(root.into()), ..Tree::new(host, cell) }
    }
}

/// A file that is written into the cell before the program exists.
#[derive(Clone, Debug)]
pub struct File {
    /// Absolute, inside the cell.
    pub path: PathBuf,
    pub mode: u32,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    pub wall: Duration,
    /// Between the polite SIGTERM and SIGKILL.
    pub grace: Duration,
    /// User and system time of all processes together.
    pub cpu_time: Option<Duration>,
    /// Thousandths of a processor.
    pub milli_cpus: u64,
    pub memory: u64,
    /// Processes and threads at one time.
    pub processes: u64,
    pub open_files: u64,
    pub file_size: u64,
    /// Bytes of `/work`, `/tmp` and `/dev/shm` together; 0 makes them read-only.
    pub scratch: u64,
    pub scratch_inodes: u64,
    /// Bytes of stdout, and as many of stderr.
    pub output: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Not even loopback.
    None,
    /// Loopback inside the cell.
    Local,
    /// The same, and a socket that listens there at [`BROKER_PORT`], held by the caller's [`Egress`] alone.
    Brokered,
    /// The host's own network.
    Full,
}

/// Where a brokered cell finds its broker, on 127.0.0.1.
pub const BROKER_PORT: u16 = 3128;

impl Network {
    /// A loopback of the cell's own.
    pub(crate) fn has_loopback(self) -> bool {
        matches!(self, Network::Local | Network::Brokered)
    }
}

/// Whoever serves the connections of a brokered cell.
pub trait Egress {
    /// The program starts now. `listener` was made in the cell and is nobody else's any more. Must not wait.
    fn begin(&self, listener: OwnedFd, record: crate::Recorder) -> io::Result<()>;
    /// No process of the cell is left, or the run has failed: when this returns, nothing that was begun is left either.
    fn end(&self);
}

/// What a refused attempt means for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnViolation {
    Kill,
    Fail,
    Note,
}

/// A layer of isolation that a host may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Layer {
    Cgroup,
    Landlock,
}

/// The caller's ends of the program's three streams, and a way to call the run off.
#[derive(Default)]
pub struct Streams<'a> {
    /// Copied to the program's standard input; `None` is an empty input.
    pub stdin: Option<OwnedFd>,
    /// Where output goes as it comes, beside what the report keeps.
    pub stdout: Option<BorrowedFd<'a>>,
    pub stderr: Option<BorrowedFd<'a>>,
    /// Bytes of each stream that the report keeps, half from the beginning and half from the end.
    pub keep: usize,
    pub cancel: Option<&'a dyn crate::Cancel>,
    /// For [`Network::Brokered`]; without it nobody listens there.
    pub egress: Option<&'a dyn Egress>,
    pub observer: Option<Observer<'a>>,
    /// What the caller has to say to the program by signals.
    pub passed: Option<&'a crate::Passed>,
    /// Instead of pipes: all that the program says is `stdout` then. Not with a kernel of its own.
    pub terminal: Option<&'a crate::Terminal>,
}

/// Somebody who is told of the run while it is going, by the thread that supervises it. While he is at it no limit is
/// watched and no call of the program's is answered: he must not wait for anything. If he panics, the run's sockets are
/// closed on the way out, and its cell dies of that.
#[derive(Clone, Copy)]
pub struct Observer<'a> {
    /// Between two samples.
    pub every: Duration,
    pub tell: &'a dyn Fn(crate::Observed<'_>),
}
