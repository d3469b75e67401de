//! A runtime at work, and who waits for it.

use std::ffi::{CString, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{MemfdFlags, Mode, OFlags};

use super::inside::{BUILT, HERE, PORTER};
use super::layout::Laid;
use super::log::{self, NotStarted};
use crate::cell::{Step, c_path};
use crate::error::RUNTIME;
use crate::spec::{Runtime, RuntimeKind};
use crate::sys::process::{self, CArray, Pid};
use crate::sys::{signal, socket};
use crate::wire::{self, Entry, Failure, FromCell, Order, Plan, Rusage, SIGNAL, Shell, TERMINATE, Took};

/// As much of what a runtime says as fits into a sentence.
const SAID: usize = 400;

/// So long a runtime may take to see that its container is over.
pub(super) const LINGER: Duration = Duration::from_secs(5);

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
    usage: Rusage,
    said: std::fs::File,
    signals: OwnedFd,
}

/// What has become of an init of ours.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// It has everything, and tells the rest itself.
    Served,
    /// It is still at it.
    Waits,
    /// It is dead, or about to be.
    Gone,
}

impl Visit {
    /// The init that the runtime starts is ours: it is given everything, and tells the rest itself.
    pub(super) fn send_in(
        &mut self,
        runtime: &Runtime,
        laid: &Laid,
        order: &Order,
        parts: (Option<&OwnedFd>, &[OwnedFd]),
        start: u64,
    ) -> Result<(), Failure> {
        let (ours, theirs) = socket::pair().step("make a socket", "")?;
        self.hand_in(&ours, parts)?;
        let mut called = self.call(runtime, laid, Some(theirs.as_fd()))?;
        drop(theirs);
        let mut ours = Some(ours);
        // Whether there is anything to complain about: it runs, or nobody wants it to.
        let (mut served, mut scratch, mut until) = (false, None, None);
        let told = loop {
            let fds = [Some(self.leash.as_fd()), ours.as_ref().map(AsFd::as_fd)];
            let Some((word, dead)) = called.wait(fds, until)? else {
                // Init is gone, so is everybody; what lingers has nothing to wait for.
                break Ok(());
            };
            if word[0] {
                served = true;
                break Ok(());
            }
            if let (true, Some(init)) = (word[1], &ours) {
                match self.hear(init, &mut scratch, order, start) {
                    Ok(Heard::Waits) => {}
                    Ok(Heard::Served) => served = true,
                    // The runtime will say so.
                    Ok(Heard::Gone) => (ours, until) = (None, Some(Instant::now() + LINGER)),
                    Err(failure) => break Err(failure),
                }
            }
            if dead {
                break Ok(());
            }
        };
        // Its end is init's too.
        drop(ours);
        called.end();
        match told {
            Ok(()) if !served => Err(called.complaint(runtime)),
            told => told,
        }
    }

    /// What a cell is built from, to an init that is there or will be. It joins the groups before anything else.
    pub(super) fn hand_in(
        &mut self,
        init: &OwnedFd,
        (image, trees): (Option<&OwnedFd>, &[OwnedFd]),
    ) -> Result<(), Failure> {
        let shell = Shell { joins: self.groups.len(), has_image: image.is_some() };
        let fds = [&self.plan].into_iter().chain(&self.groups).chain(image).chain(trees);
        let fds = fds.map(AsFd::as_fd).collect::<Vec<_>>();
        wire::send(init, &shell, &fds).step("tell init", "")?;
        self.groups = vec![];
        Ok(())
    }

    /// A word of its.
    pub(super) fn hear(
        &mut self,
        init: &OwnedFd,
        scratch: &mut Option<OwnedFd>,
        order: &Order,
        start: u64,
    ) -> Result<Heard, Failure> {
        let mut buf = [0u8; wire::MESSAGE];
        match socket::receive(init.as_fd(), &mut buf, false) {
            Ok(Some((n, mut fds))) if &buf[..n] == BUILT => {
                *scratch = fds.pop();
                Ok(Heard::Waits)
            }
            Ok(Some((n, _))) if &buf[..n] == HERE => match scratch.take() {
                Some(scratch) => self.tell(init, &scratch, order, Took::since(start)).map(|()| Heard::Served),
                None => Ok(Heard::Gone),
            },
            Ok(Some((n, _))) => Err(wire::decode(&buf[..n]).step("hear init", "")?),
            _ => Ok(Heard::Gone),
        }
    }

    fn tell(&mut self, init: &OwnedFd, scratch: &OwnedFd, order: &Order, mounts: Took) -> Result<(), Failure> {
        let entry = Entry { landlock: order.landlock, count_clones: order.count_clones, mounts };
        let fds = [&self.supervisor, &self.plan].into_iter().chain(&self.streams);
        let fds = fds.chain([scratch]).map(AsFd::as_fd).collect::<Vec<_>>();
        wire::send(init, &entry, &fds).step("tell init", "")?;
        self.streams = vec![];
        Ok(())
    }

    /// Nothing of ours can be inside: the start is the runtime's, and the end is what it says.
    pub(super) fn watch_from_outside(
        &mut self,
        runtime: &Runtime,
        laid: &Laid,
        plan: &Plan,
        view: [&OwnedFd; 2],
        mounts: Took,
    ) -> Result<(), Failure> {
        let started = FromCell::Starting { mounts: [mounts, Took::default()], at_ns: wire::now_ns(), set_up: None };
        wire::send(&self.supervisor, &started, &view.map(AsFd::as_fd)).step("tell the supervisor", "")?;
        let mut called = self.call(runtime, laid, None)?;
        (self.streams, self.groups) = (vec![], vec![]);
        let status = loop {
            let fds = [Some(self.leash.as_fd()), Some(self.supervisor.as_fd())];
            let Some((word, dead)) = called.wait(fds, None)? else { break None };
            if word[1] {
                let mut byte = [0u8; 16];
                match rustix::net::recv(&self.supervisor, &mut byte, rustix::net::RecvFlags::DONTWAIT) {
                    // It passes signals on.
                    Ok((1.., _)) if byte[0] == TERMINATE => signal::send(called.pid, libc::SIGTERM),
                    Ok((2.., _)) if byte[0] == SIGNAL => signal::send(called.pid, byte[1].into()),
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
        // The program's signal is a number of the runtime's own: a signal that it has itself is not the program's.
        let Some(status) = status.filter(|status| !libc::WIFSIGNALED(*status)) else { return Ok(()) };
        if !laid.state().join(PID_FILE).exists() {
            return Err(called.complaint(runtime));
        }
        let error = log::last_error(&called.said().unwrap_or_default());
        let ended = match error.as_deref().and_then(log::not_started) {
            // Of its memory most is mapped from files, or by several: samples tell it better.
            None => {
                let usage = Rusage { max_rss: 0, ..called.usage };
                FromCell::Ended { status, usage, at_ns: wire::now_ns(), tasks: None }
            }
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
        let env = CArray::new(environment(laid).step("call the runtime", &runtime.path)?);
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
                process::close_on_exec_from(PORTER)?;
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
        Ok(Called { pid, status: None, usage: Rusage::default(), said: said.into(), signals })
    }
}

/// What a runtime writes down for itself is gone with the bundle, however it ends. The last is where runc and crun make a copy of
/// themselves.
fn environment(laid: &Laid) -> io::Result<Vec<CString>> {
    let own = |name: &str| {
        let mut word = OsString::from(format!("{name}="));
        word.push(laid.temporary());
        c_path(word)
    };
    let path = Ok(c"PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
    let all = ["TMPDIR", "XDG_RUNTIME_DIR", "_LIBCONTAINER_STATEDIR"].map(own);
    std::iter::once(path).chain(all).collect()
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
    // gVisor has a socket of that name, which is the host's: nobody is to know it before.
    let chance = RandomState::new().build_hasher().finish();
    words.push(format!("hotcell-{}-{chance:016x}", std::process::id()).into());
    words.into_iter().map(c_path).collect()
}

impl Called {
    /// Waits until one of `fds` is readable or the runtime is dead, and no longer than that.
    fn wait(
        &mut self,
        fds: [Option<BorrowedFd<'_>>; 2],
        until: Option<Instant>,
    ) -> Result<Option<([bool; 2], bool)>, Failure> {
        let mut polled = vec![PollFd::new(&self.signals, PollFlags::IN)];
        polled.extend(fds.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| rustix::event::Timespec::try_from(left).ok());
        match rustix::event::poll(&mut polled, left.as_ref()) {
            Ok(0) => return Ok(None),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e).step("wait for the runtime", ""),
        }
        let mut ready = polled[1..].iter().map(|fd| !fd.revents().is_empty());
        let word = fds.map(|fd| fd.is_some() && ready.next().unwrap_or(false));
        while signal::read(self.signals.as_fd()).is_some() {}
        self.reap();
        Ok(Some((word, self.status.is_some())))
    }

    fn reap(&mut self) {
        while let Some(dead) = process::reap() {
            self.usage.add(&dead.usage);
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
