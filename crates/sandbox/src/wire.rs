//! What the processes say to each other. All of it stays inside one host and one version of this program.
//!
//! supervisor -> launcher   one message a run: [`REQUEST_FDS`] fds; the plan itself is in a memory file
//! launcher  -> supervisor  [`FromLauncher`], on a socket of the run's own
//! supervisor -> launcher   on that socket: any byte is "kill"; its end is "kill" too
//! launcher  -> cell        [`Order`], with the run's fds, to a cell that is built and waits, or to a porter
//! porter    -> init        [`Shell`], then [`Entry`], with them, in a container
//! cell      -> supervisor  [`FromCell`]: fds of the cell, the start, the end
//! supervisor -> cell       a byte or two: [`TERMINATE`], [`COUNT`], [`SIGNAL`]

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::MemfdFlags;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cgroup::{Counters, Meter};
use crate::report::Applied;
use crate::spec::{Layer, Limits, Network, OnViolation, Runtime, Spec, Tree};
use crate::sys::socket;
use crate::terminal::Terminal;

/// run socket, cell socket, plan, stdin, stdout, stderr. Behind them, the socket of a container's init, where an engine has
/// made one.
pub(crate) const REQUEST_FDS: usize = 6;
/// Messages are small; what is not is in the plan.
pub(crate) const MESSAGE: usize = 16 * 1024;

/// A Spec as the launcher and the cell read it: bytes instead of OS strings, contents beside it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) argv: Vec<Vec<u8>>,
    /// `K=V`
    pub(crate) env: Vec<Vec<u8>>,
    pub(crate) cwd: PathBuf,
    pub(crate) trees: Vec<Tree>,
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    pub(crate) files: Vec<PlannedFile>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) limits: Limits,
    pub(crate) network: Network,
    pub(crate) on_violation: OnViolation,
    pub(crate) require: Vec<Layer>,
    pub(crate) runtime: Option<Runtime>,
    pub(crate) root: Option<PathBuf>,
    pub(crate) engine: Option<PlannedEngine>,
    /// The streams are one.
    pub(crate) terminal: bool,
}

/// Whose container it is.
#[derive(Serialize, Deserialize)]
pub(crate) struct PlannedEngine {
    pub(crate) name: String,
}

/// A file whose contents are `len` bytes behind the plan.
#[derive(Serialize, Deserialize)]
pub(crate) struct PlannedFile {
    pub(crate) path: PathBuf,
    pub(crate) mode: u32,
    pub(crate) len: u64,
}

/// Where programs look for their terminal.
pub(crate) const TTY: &str = "/dev/tty";

const LENGTH: usize = size_of::<u64>();

impl Plan {
    /// Into a memory file: its length, the plan, the contents of the files.
    pub(crate) fn write(spec: &Spec, terminal: Option<&Terminal>) -> io::Result<OwnedFd> {
        let pair = |(k, v): &(OsString, OsString)| [k.as_bytes(), b"=", v.as_bytes()].concat();
        let tty = terminal.map(Terminal::path).transpose()?;
        let tty = tty.map(|path| Tree { has_devices: true, ..Tree::new(path, TTY) });
        let plan = Plan {
            argv: spec.argv.iter().map(|a| a.clone().into_vec()).collect(),
            env: spec.env.iter().map(pair).collect(),
            cwd: spec.cwd.clone(),
            trees: spec.trees.iter().cloned().chain(tty).collect(),
            links: spec.links.clone(),
            files: spec
                .files
                .iter()
                .map(|f| PlannedFile { path: f.path.clone(), mode: f.mode, len: f.bytes.len() as u64 })
                .collect(),
            writable: spec.writable.clone(),
            limits: spec.limits.clone(),
            network: spec.network,
            on_violation: spec.on_violation,
            require: spec.require.clone(),
            runtime: spec.runtime.clone(),
            root: spec.root.clone(),
            engine: spec.engine.as_ref().map(|engine| PlannedEngine { name: engine.name().into() }),
            terminal: terminal.is_some(),
        };
        let bytes = encode(&plan)?;
        let fd = rustix::fs::memfd_create(c"hotcell-plan", MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(fd);
        file.write_all(&(bytes.len() as u64).to_ne_bytes())?;
        file.write_all(&bytes)?;
        for source in &spec.files {
            file.write_all(&source.bytes)?;
        }
        Ok(file.into())
    }

    /// The plan and the offset at which the contents of its files begin.
    pub(crate) fn read(fd: BorrowedFd<'_>) -> io::Result<(Plan, u64)> {
        let mut length = [0u8; LENGTH];
        read_at(fd, &mut length, 0)?;
        let length = u64::from_ne_bytes(length);
        let mut bytes = vec![0u8; length as usize];
        read_at(fd, &mut bytes, LENGTH as u64)?;
        Ok((decode(&bytes)?, LENGTH as u64 + length))
    }
}

fn read_at(fd: BorrowedFd<'_>, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buf.is_empty() {
        let n = rustix::io::pread(fd, &mut *buf, offset)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buf = &mut buf[n..];
        offset += n as u64;
    }
    Ok(())
}

/// To a cell that waits: the fds are cell socket, plan, stdin, stdout, stderr, then the groups to join, then one for
/// each tree that the launcher has opened for it; last, the socket of a container's init.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    /// How many of the fds are groups to join.
    pub(crate) joins: usize,
    /// Without it the cell opens the trees itself, with the caller's own rights.
    pub(crate) trees_opened: bool,
    pub(crate) landlock: bool,
    /// Who the program is, seen from the launcher.
    pub(crate) owner: (u32, u32),
    /// The launcher is root.
    pub(crate) root: bool,
    /// No cgroup counts processes here.
    pub(crate) count_clones: bool,
}

/// From the porter to the init of a container that has built its cell: the fds are cell socket, plan, stdin, stdout, stderr,
/// scratch.
#[derive(Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) landlock: bool,
    pub(crate) count_clones: bool,
    /// The way here.
    pub(crate) mounts: Took,
}

/// From the porter to the init of a container, before that: what the cell is built from. The fds are the plan, the groups
/// to join, the image, a tree each.
#[derive(Serialize, Deserialize)]
pub(crate) struct Shell {
    pub(crate) joins: usize,
    pub(crate) has_image: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum FromLauncher {
    /// The cell has its orders. Behind it come the fds of `meters`.
    Launched { pid: i32, meters: Vec<Meter>, enforced: Vec<Applied>, degraded: Vec<Applied>, clone: Took, cgroup: Took },
    /// Nothing ran.
    Failed(Failure),
    /// The last process of the cell is dead; its groups are being removed.
    Gone(Counters),
}

/// What the supervisor says to init: SIGTERM for all; whether there are too many tasks; a signal, which the next byte is, for the
/// program's main process.
pub(crate) const TERMINATE: u8 = b't';
pub(crate) const COUNT: u8 = b'c';
pub(crate) const SIGNAL: u8 = b's';

#[derive(Serialize, Deserialize)]
pub(crate) enum FromCell {
    /// exec comes next. Fds: scratch, proc; where the kernel is the host's, root and the listener of the seccomp filter; the
    /// socket of the broker, where there is one.
    Starting {
        /// Ahead of the order, and after it.
        mounts: [Took; 2],
        /// By the clock of [`now_ns`]: whoever hears of it may hear late.
        at_ns: u64,
        /// What of the group's processor time was the cell's own, at most.
        set_up: Option<Duration>,
    },
    /// exec was refused; the program never ran.
    NotExecuted {
        errno: i32,
    },
    Failed(Failure),
    /// The program stands above its limit of tasks.
    TooMany {
        tasks: u64,
    },
    Ended {
        status: i32,
        usage: Rusage,
        at_ns: u64,
        /// Processes and threads that were there when the first one ended, where no group counts.
        tasks: Option<u64>,
    },
}

/// What wait4 told of the program and its children.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rusage {
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    pub(crate) max_rss: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
}

impl Rusage {
    pub(crate) fn add(&mut self, one: &libc::rusage) {
        let micros = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
        self.user_us += micros(one.ru_utime);
        self.system_us += micros(one.ru_stime);
        self.max_rss = self.max_rss.max(one.ru_maxrss as u64 * 1024);
        self.read_bytes += one.ru_inblock as u64 * 512;
        self.write_bytes += one.ru_oublock as u64 * 512;
    }
}

/// A step of the set-up that the kernel refused; the parent makes the sentence.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) step: String,
    pub(crate) what: String,
    pub(crate) errno: i32,
}

pub(crate) fn encode<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    postcard::to_allocvec(value).map_err(io::Error::other)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    postcard::from_bytes(bytes).map_err(io::Error::other)
}

pub(crate) fn send<T: Serialize>(to: impl AsFd, message: &T, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    socket::send(to.as_fd(), &encode(message)?, fds)
}

/// The next message and its fds; `None` when the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(from: impl AsFd, wait: bool) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut buf = [0u8; MESSAGE];
    match socket::receive(from.as_fd(), &mut buf, wait)? {
        None => Ok(None),
        Some((n, fds)) => Ok(Some((decode(&buf[..n])?, fds))),
    }
}

/// When something began, by [`now_ns`], and how long it took.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Took {
    pub(crate) began_ns: u64,
    pub(crate) ns: u64,
}

impl Took {
    pub(crate) fn since(began_ns: u64) -> Took {
        Took { began_ns, ns: now_ns().saturating_sub(began_ns) }
    }
}

/// Nanoseconds of the monotonic clock, which is one for all processes of a host.
pub(crate) fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
