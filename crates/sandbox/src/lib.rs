//! The cell: runs one untrusted program on Linux, lets nothing out, and says with evidence what happened.
//!
//! # How it works
//!
//! Four processes take part in a run:
//!
//! ```text
//!     supervisor   the caller's own process, any number of threads, one blocking `run` a thread
//!        | one socket for requests, and a pair of sockets a run
//!     launcher     forked before the first thread; makes the groups, clones cells, reaps, clears up
//!        | clone3 into user, pid, mount, network, ipc and uts namespaces (cgroup a moment later)
//!     init         PID 1 of the cell: mounts its root, lets go of the host, drops everything, reaps
//!        | fork
//!     program      new session, rlimits, seccomp, exec
//! ```
//!
//! The launcher has the caller's privilege and needs no more: as an ordinary user it works through the user
//! namespace; as root it maps each cell to a host id of its own that owns nothing. Init and program have none.
//!
//! Everything that stops the program is the kernel's: namespaces, read-only mounts, Landlock, cgroups, rlimits,
//! seccomp. Everything that says why is evidence of ours: flags set before we kill, counters of a cgroup that was
//! new, bytes counted on a pipe, and seccomp notifications, which the supervisor answers and writes down.
//!
//! A brokered cell has a loopback, and on it a socket that init listens at before there is a program and that only the
//! supervisor keeps. Whoever the caller says ([`Egress`]) serves it from outside, puts what it refuses on the record of the
//! run ([`Recorder`]), and is ended with it. Whom it lets through is none of this crate's business.
//!
//! Who dies with whom: the program with init (pid namespace), init with the launcher (PDEATHSIG and a pidfd), a cell
//! with its run's socket, the launcher with the supervisor's socket. Groups that are left by a launcher that was
//! killed are unlocked, and swept by the next one.

mod cell;
mod cgroup;
mod error;
mod filter;
mod host;
mod launcher;
mod oci;
mod probe;
mod recorder;
mod report;
mod scratch;
mod signals;
mod spec;
mod supervise;
mod sys;
mod tasks;
mod terminal;
mod wire;
mod witness;

pub use error::SandboxError;
pub use filter::never_honest;
pub use launcher::Next;
pub use probe::{Primitive, confinement, probe};
pub use recorder::Recorder;
pub use report::*;
pub use scratch::{Found, Scratch, Unlisted};
pub use signals::{Cancel, Passed, Resized, Signals, Stop};
pub use spec::*;
pub use terminal::Terminal;

/// Raises the number of files that this process may have open to the most that it is allowed: a run takes twenty, and what
/// the program makes us look at takes more. For programs of which all that run is cells.
pub fn raise_open_files() {
    sys::process::raise_open_files();
}

/// Closes all files but the three streams: for a service that becomes somebody else, and is to have nothing of whoever started it.
/// Called first, before anything of this process's own is open.
pub fn close_inherited_files() {
    // EINVAL and the like cannot be: then they stay, as they do elsewhere.
    let _ = sys::process::close_from(3);
}

/// Does not return in a container that a runtime made for a cell: there, this program is its init. [`Launcher::start`] asks
/// too; for programs that do not always start one.
pub fn become_init_if_asked() {
    oci::inside::live_if_asked();
}

/// This process becomes an ordinary user for good: no groups, no capabilities, and no way to have more again. Refuses when
/// there are threads, which would stay who they are.
pub fn become_user(uid: u32, gid: u32) -> Result<(), SandboxError> {
    single_threaded()?;
    become_for_good(uid, uid, gid)
}

fn become_for_good(real: u32, uid: u32, gid: u32) -> Result<(), SandboxError> {
    let done = sys::identity::become_user_counted_as(real, uid, gid).and_then(|()| sys::process::set_no_new_privs());
    done.map_err(|error| SandboxError::Io { what: "become another user", error })
}

/// An id that no user database gives out, for a service that root has started: it owns nothing but what the service makes.
/// In a container that has few ids it is nobody's.
pub fn service_id() -> u32 {
    host::service_id()
}

fn single_threaded() -> Result<(), SandboxError> {
    let threads = std::fs::read_dir("/proc/self/task").map_err(SandboxError::Start)?.count();
    if threads > 1 { Err(SandboxError::Threads { threads }) } else { Ok(()) }
}

/// Makes cells. One for each process that wants any, started before its first thread.
pub struct Launcher {
    process: launcher::Process,
}

impl Launcher {
    /// Forks the launcher process, which keeps `ahead` cells built before they are asked for. Refuses when there are threads already: a fork of a process with threads copies
    /// locks that nobody will ever release.
    pub fn start(ahead: usize) -> Result<Launcher, SandboxError> {
        single_threaded()?;
        become_init_if_asked();
        Ok(Launcher { process: launcher::Process::start(ahead).map_err(SandboxError::Start)? })
    }

    /// False when it has died, and nothing can run any more.
    pub fn is_up(&self) -> bool {
        self.process.is_up()
    }

    /// Gives up root for good: this process becomes an ordinary user, and cells are that user's. Only the launcher stays root,
    /// with no more than it takes to make groups and namespaces. Refuses, like [`Launcher::start`], when there are threads.
    pub fn give_up_root(&self, uid: u32, gid: u32) -> Result<(), SandboxError> {
        single_threaded()?;
        self.process.serve_for(uid, gid).map_err(|error| SandboxError::Io { what: "prepare the launcher", error })?;
        // Cells are counted as that user: what they use up is not to be ours.
        become_for_good(host::counted_id(uid), uid, gid)
    }

    /// Runs one program to its end. May be called from any number of threads at once.
    pub fn run(&self, spec: &Spec, streams: Streams<'_>) -> Result<Report, SandboxError> {
        self.run_before(Next::Likely, spec, streams)
    }

    /// The same, with a word about what comes after it.
    pub fn run_before(&self, next: Next, spec: &Spec, streams: Streams<'_>) -> Result<Report, SandboxError> {
        supervise::run(&self.process, spec, streams, next)
    }
}
