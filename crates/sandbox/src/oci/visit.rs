//! A runtime at work, and who waits for it.

use std::ffi::CString;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{MemfdFlags, Mode, OFlags};

use super::inside::{ALONE, HERE, PORTER};
use super::layout::Laid;
use super::log::{self, NotStarted};
use crate::cell::{GID, Step, UID, c_path};
use crate::error::RUNTIME;
use crate::spec::{Runtime, RuntimeKind};
use crate::sys::process::{self, CArray, Pid};
use crate::sys::{signal, socket};
use crate::wire::{self, Entry, Failure, FromCell, Order, Plan, Rusage, TERMINATE};

/// As much of what a runtime says as fits into a sentence.
const SAID: usize = 400;

/// Written by the runtime once there is a container.
const PID_FILE: &str = "pid";

/// Where a runtime that shares its streams with the program writes what went wrong.
const LOG_FILE: &str = "log";

/// One order and what came with it.
pub(super) struct Visit {
    /// A word on it, or its end, is "stop".
    pub(super) leash: OwnedFd,
    pub(super) supervisor: OwnedFd,
    pub(super) plan: OwnedFd,
    /// The program's; given away as soon as it has them.
    pub(super) streams: Vec<OwnedFd>,
    pub(super) groups: Vec<OwnedFd>,
    /// The caller is root.
    pub(super) root: bool,
}

/// A runtime that was called, and where it writes what went wrong.
struct Called {
    pid: Pid,
    status: Option<i32>,
    said: std::fs::File,
    signals: OwnedFd,
}

impl Visit {
    /// The init that the runtime starts is ours: it is given everything, and tells the rest itself.
    pub(super) fn send_in(
        &mut self,
        runtime: &Runtime,
        laid: &Laid,
        order: &Order,
        mounts_ns: u64,
    ) -> Result<(), Failure> {
        let (mut ours, theirs) = socket::pair().map(|(a, b)| (Some(a), b)).step("make a socket", "")?;
        let mut called = self.call(runtime, laid, Some(theirs.as_fd()))?;
        drop(theirs);
        let started = wire::now_ns();
        // Whether there is anything to complain about: it runs, or nobody wants it to.
        let mut served = false;
        let mut failure = None;
        loop {
            let (word, dead) = called.wait([Some(self.leash.as_fd()), ours.as_ref().map(AsFd::as_fd)])?;
            if word[0] {
                served = true;
                break;
            }
            if let (true, Some(init)) = (word[1], &ours) {
                let mut buf = [0u8; wire::MESSAGE];
                match socket::receive(init.as_fd(), &mut buf, false) {
                    Ok(Some((n, _))) if &buf[..n] == HERE => {
                        served = true;
                        laid.take_init_away()?;
                        let mounts_ns = mounts_ns + (wire::now_ns() - started);
                        self.tell(init, laid, order, mounts_ns)?;
                    }
                    Ok(Some((n, fds))) if &buf[..n] == ALONE => {
                        map_ids(&fds)?;
                        socket::send(init.as_fd(), ALONE, &[]).step("tell init", "")?;
                    }
                    Ok(Some((n, _))) => failure = wire::decode::<Failure>(&buf[..n]).ok(),
                    // It is dead, or about to be: the runtime will say so.
                    _ => ours = None,
                }
            }
            if dead {
                break;
            }
        }
        // Its end is init's too.
        drop(ours);
        called.end();
        match failure {
            Some(failure) => Err(failure),
            None if served => Ok(()),
            None => Err(called.complaint(runtime)),
        }
    }

    fn tell(&mut self, init: &OwnedFd, laid: &Laid, order: &Order, mounts_ns: u64) -> Result<(), Failure> {
        let entry = Entry { landlock: order.landlock, count_clones: order.count_clones, mounts_ns };
        let fds = [&self.supervisor, &self.plan].into_iter().chain(&self.streams);
        let fds = fds.chain([&laid.scratch]).chain(&self.groups).map(AsFd::as_fd).collect::<Vec<_>>();
        wire::send(init, &entry, &fds).step("tell init", "")?;
        (self.streams, self.groups) = (vec![], vec![]);
        Ok(())
    }

    /// Nothing of ours can be inside: the start is the runtime's, and the end is what it says.
    pub(super) fn watch_from_outside(
        &mut self,
        runtime: &Runtime,
        laid: &Laid,
        plan: &Plan,
        mounts_ns: u64,
    ) -> Result<(), Failure> {
        let started = FromCell::Starting { mounts_ns };
        wire::send(&self.supervisor, &started, &[laid.scratch.as_fd()]).step("tell the supervisor", "")?;
        let mut called = self.call(runtime, laid, None)?;
        (self.streams, self.groups) = (vec![], vec![]);
        let status = loop {
            let (word, dead) = called.wait([Some(self.leash.as_fd()), Some(self.supervisor.as_fd())])?;
            if word[1] {
                let mut byte = [0u8; 16];
                match rustix::net::recv(&self.supervisor, &mut byte, rustix::net::RecvFlags::DONTWAIT) {
                    // It passes signals on.
                    Ok((1.., _)) if byte[0] == TERMINATE => signal::send(called.pid, libc::SIGTERM),
                    Ok((1.., _)) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                    _ => break None,
                }
            }
            if word[0] {
                break None;
            }
            if dead {
                break called.status;
            }
        };
        called.end();
        let Some(status) = status else { return Ok(()) };
        if !laid.state().join(PID_FILE).exists() {
            return Err(called.complaint(runtime));
        }
        let error = log::last_error(&called.said().unwrap_or_default());
        let ended = match error.as_deref().and_then(log::not_started) {
            None => FromCell::Ended { status, usage: Rusage::default() },
            Some(NotStarted::Refused { path, errno: libc::ENOENT })
                if path.is_some_and(|path| laid.has(plan, path)) =>
            {
                // It is there: what its first line, or its header, asks for is not.
                FromCell::NotExecuted { errno: libc::ELIBACC }
            }
            Some(NotStarted::Refused { errno, .. }) => FromCell::NotExecuted { errno },
            Some(NotStarted::Failed) => return Err(called.complaint(runtime)),
        };
        let _ = wire::send(&self.supervisor, &ended, &[]);
        Ok(())
    }
}

impl Visit {
    /// Starts the runtime. With `init` it has nothing of the program's and passes that socket on; without, it has the
    /// program's streams and is in its groups.
    fn call(&self, runtime: &Runtime, laid: &Laid, init: Option<BorrowedFd<'_>>) -> Result<Called, Failure> {
        let signals = signal::watch(&[libc::SIGCHLD]).step("watch for children", "")?;
        // Nothing of the host's, not even /dev/null: crun gives its streams to the container's user.
        let memory = || rustix::fs::memfd_create(c"hotcell-said", MemfdFlags::CLOEXEC).step("make a file", "");
        let empty = memory()?;
        let said = match init {
            Some(_) => memory()?,
            None => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(0o600);
                rustix::fs::open(laid.state().join(LOG_FILE), flags, mode).step("make a file", LOG_FILE)?
            }
        };
        let streams = match init {
            Some(_) => [empty.as_fd(), said.as_fd(), said.as_fd()],
            None => match &self.streams[..] {
                [stdin, stdout, stderr] => [stdin, stdout, stderr].map(AsFd::as_fd),
                _ => return Err(io::Error::from_raw_os_error(libc::EINVAL)).step("call the runtime", ""),
            },
        };
        let path = c_path(&runtime.path).step("call the runtime", &runtime.path)?;
        let argv = CArray::new(arguments(runtime, laid, self.root).step("call the runtime", &runtime.path)?);
        let env = CArray::new(vec![c"PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned()]);
        let groups = if init.is_some() { &[][..] } else { &self.groups[..] };
        let refused = std::cell::Cell::new(0);
        let pid = process::spawn(&mut || {
            let start = || -> io::Result<()> {
                process::die_with_parent()?;
                signal::unblock();
                for group in groups {
                    rustix::io::write(group, b"0")?;
                }
                // Away from the numbers that they are to have, so that none overwrites another.
                let high = |fd: BorrowedFd<'_>| process::duplicate_above(fd, 16);
                let placed = streams.map(high);
                let init = init.map(high).transpose()?;
                for (fd, number) in placed.into_iter().zip(0..) {
                    process::place(fd?.as_fd(), number)?;
                }
                if let Some(init) = init {
                    process::place(init.as_fd(), PORTER)?;
                }
                Err(process::execve(&path, &argv, &env))
            };
            let errno = start().err().and_then(|e| e.raw_os_error()).unwrap_or(libc::EIO);
            refused.set(errno);
            process::exit_now(127)
        })
        .step("call the runtime", &runtime.path)?;
        // The child shares our memory until it is another program.
        if refused.get() != 0 {
            process::wait_for(pid);
            return Err(io::Error::from_raw_os_error(refused.get())).step("execute the runtime", &runtime.path);
        }
        Ok(Called { pid, status: None, said: said.into(), signals })
    }
}

/// The ids of a namespace that init has made: who is root in ours is nobody's root there.
fn map_ids(pidfd: &[OwnedFd]) -> Result<(), Failure> {
    let number = pidfd.first().map_or(-1, AsRawFd::as_raw_fd);
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).step("find the container", "")?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:")).map(str::trim).unwrap_or_default();
    let proc = |name: &str| format!("/proc/{pid}/{name}");
    // Where it is denied already, it stays so.
    let _ = std::fs::write(proc("setgroups"), "deny");
    std::fs::write(proc("uid_map"), format!("{UID} 0 1")).step("write the id maps", "")?;
    std::fs::write(proc("gid_map"), format!("{GID} 0 1")).step("write the id maps", "")
}

/// How each runtime is asked to make the container and to stay with it.
fn arguments(runtime: &Runtime, laid: &Laid, root: bool) -> io::Result<Vec<CString>> {
    let (state, bundle) = (laid.state(), laid.bundle());
    let mut words = vec![runtime.path.clone().into_os_string(), "--root".into(), state.clone().into()];
    match runtime.kind {
        RuntimeKind::Runc | RuntimeKind::Youki => {}
        RuntimeKind::Crun if root => words.push("--cgroup-manager=cgroupfs".into()),
        RuntimeKind::Crun => words.push("--cgroup-manager=disabled".into()),
        RuntimeKind::Runsc => {
            let log = state.join(LOG_FILE);
            words.extend(["--network=none".into(), "--ignore-cgroups".into(), "--log".into(), log.into()]);
            if !root {
                words.push("--rootless".into());
            }
        }
    }
    words.extend(["run".into(), "--bundle".into(), bundle.into()]);
    match runtime.kind {
        RuntimeKind::Runsc => words.extend(["--pid-file".into(), state.join(PID_FILE).into()]),
        _ => words.extend(["--preserve-fds".into(), "1".into()]),
    }
    // gVisor has a socket of that name, which is the host's.
    words.push(format!("hotcell-{}", std::process::id()).into());
    words.into_iter().map(c_path).collect()
}

impl Called {
    /// Waits until one of `fds` is readable or the runtime is dead.
    fn wait(&mut self, fds: [Option<BorrowedFd<'_>>; 2]) -> Result<([bool; 2], bool), Failure> {
        let mut polled = vec![PollFd::new(&self.signals, PollFlags::IN)];
        polled.extend(fds.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        match rustix::event::poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e).step("wait for the runtime", ""),
        }
        let mut ready = polled[1..].iter().map(|fd| !fd.revents().is_empty());
        let word = fds.map(|fd| fd.is_some() && ready.next().unwrap_or(false));
        while signal::read(self.signals.as_fd()).is_some() {}
        self.reap();
        Ok((word, self.status.is_some()))
    }

    fn reap(&mut self) {
        while let Some(dead) = process::reap() {
            if dead.pid == self.pid {
                self.status = Some(dead.status);
            }
        }
    }

    /// Nothing of it is left when this returns: what it leaves becomes our child, and is killed.
    fn end(&mut self) {
        if self.status.is_none() {
            signal::send(self.pid, libc::SIGKILL);
        }
        process::end_children();
    }

    /// The beginning of all that it said.
    fn said(&mut self) -> io::Result<String> {
        let mut text = String::new();
        self.said.rewind()?;
        self.said.by_ref().take(1 << 20).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Its last words.
    fn complaint(&mut self, runtime: &Runtime) -> Failure {
        let last = match self.said() {
            Ok(text) => {
                let last = text.lines().rev().find(|line| !line.trim().is_empty());
                last.map_or("it says nothing".into(), message)
            }
            Err(_) => "what it says is not text".into(),
        };
        let what = format!("{}: {last}", runtime.path.display());
        Failure { step: RUNTIME.into(), what: what.chars().take(SAID).collect(), errno: libc::EIO }
    }
}

/// A line of a log, without what only a log needs.
fn message(line: &str) -> String {
    let quoted = line.split_once("msg=\"").and_then(|(_, rest)| rest.strip_suffix('"'));
    let json = serde_json::from_str::<serde_json::Value>(line).ok();
    let quoted = quoted.or_else(|| json.as_ref()?["msg"].as_str());
    let fatal = line.split_once("FATAL ERROR: ").map(|(_, rest)| rest);
    quoted.or(fatal).unwrap_or(line).replace("\\\"", "\"")
}
