//! The launcher: a small, single-threaded process that makes cells, reaps them and clears up after them.
//!
//! It is forked before the supervisor has threads, so that clone is cheap and the child may do as it likes. It owns
//! what must not outlive a cell: the init process, the groups. It ends when the supervisor's socket does, after the
//! last cell; a run whose own socket ends is killed.

mod birth;
mod handle;
mod shape;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};

use crate::cgroup::{self, Base, Group};
use crate::error::REQUIRED;
use crate::host;
use crate::report::Applied;
use crate::spec::Layer;
use crate::sys::process::{self, Pid};
use crate::sys::{identity, signal, socket};
use crate::wire::{self, Failure, FromLauncher, Plan, REQUEST_FDS, Took};

pub use handle::Next;
pub(crate) use handle::Process;
use shape::Shape;

const SOCKET: i32 = 3;

const MORE: &[u8] = b"m";
const ENOUGH: &[u8] = b"e";
/// Behind it, a user id and a group id.
const SERVE: u8 = b's';
const SERVED: &[u8] = b"s";

/// What root needs to make groups, and namespaces of somebody else's: write into the groups, end what is in them, act as the
/// owner, write the id maps.
const KEPT_CAPABILITIES: [u32; 5] = [CAP_DAC_OVERRIDE, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN];
const CAP_DAC_OVERRIDE: u32 = 1;
const CAP_KILL: u32 = 5;
const CAP_SETGID: u32 = 6;
const CAP_SETUID: u32 = 7;
const CAP_SYS_ADMIN: u32 = 21;

/// Above anything a user database gives out, so that no file of the host is owned by it.
const HOST_ID_BASE: u32 = 0x7000_0000;

fn live(socket: OwnedFd, ahead: usize) -> io::Result<()> {
    process::set_name(c"hotcell-launch");
    // A terminal's Ctrl-C is for the supervisor to hear; it decides what it means.
    process::setsid()?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
    for number in 0..3 {
        process::place(null.as_fd(), number)?;
    }
    process::place(process::duplicate_above(socket.as_fd(), 16)?.as_fd(), SOCKET)?;
    std::mem::forget((socket, null));
    process::close_from(SOCKET + 1)?;
    process::raise_open_files();
    process::share_one_heap();
    Launcher::new(process::adopt(SOCKET)?, ahead)?.serve()
}

struct Launcher {
    socket: Option<OwnedFd>,
    signals: OwnedFd,
    /// Readable when this process is dead: given to every cell.
    own: OwnedFd,
    base: Base,
    /// For who cannot be in a group of ours.
    no_groups: Base,
    ids: host::Ids,
    /// Whose the cells are, where the supervisor was root and has become somebody else.
    owner: Option<(u32, u32)>,
    landlock: Option<u32>,
    enforced: Vec<Applied>,
    degraded: Vec<Applied>,
    cells: Vec<Cell>,
    /// So many cells are built before anybody asks for them, as long as somebody may.
    ahead: usize,
    wanted: usize,
    /// What a launcher that died has left is removed once the first run is on its way.
    swept: bool,
    /// Cells that are built, or being built, and wait for an order.
    spares: Vec<Spare>,
}

struct Spare {
    cell: Cell,
    shape: Shape,
}

/// A cell at work.
struct Cell {
    pid: Pid,
    pidfd: OwnedFd,
    leash: OwnedFd,
    group: Group,
    /// Where the cell writes `0` to join what it was not cloned into.
    joins: Vec<OwnedFd>,
    /// `None` once the supervisor has let go of the run.
    run: Option<OwnedFd>,
    /// This is who calls a runtime, and what it started does not die with it.
    clears_up: bool,
}

impl Launcher {
    fn new(socket: OwnedFd, ahead: usize) -> io::Result<Launcher> {
        let base = Base::find();
        let landlock = host::landlock_abi();
        let ids = host::Ids::find();
        let (enforced, degraded) = host::layers(&base, landlock, &ids);
        Ok(Launcher {
            socket: Some(socket),
            signals: signal::watch(&[libc::SIGCHLD])?,
            own: process::pidfd_open(std::process::id() as Pid)?,
            base,
            no_groups: Base::None { why: "a user's runtime or engine has no way into a group of root's".into() },
            ids,
            owner: None,
            landlock,
            enforced,
            degraded,
            cells: vec![],
            ahead,
            wanted: ahead,
            swept: false,
            spares: vec![],
        })
    }

    fn serve(&mut self) -> io::Result<()> {
        while self.socket.is_some() || !self.cells.is_empty() {
            let (request, dead, asked) = self.wait()?;
            if dead {
                while signal::read(self.signals.as_fd()).is_some() {}
                while let Some(dead) = process::reap() {
                    self.bury(dead.pid);
                }
            }
            for pid in asked {
                self.kill(pid);
            }
            if request {
                self.accept();
                if !std::mem::replace(&mut self.swept, true) {
                    self.base.sweep();
                }
            } else if self.is_short() {
                self.make_spare();
            }
        }
        self.spares.drain(..).for_each(|spare| abandon(spare.cell));
        Ok(())
    }

    /// Fewer cells are ahead than were asked for.
    fn is_short(&self) -> bool {
        self.spares.len() < self.wanted && self.socket.is_some()
    }

    /// Built while nobody waits for it. That it can't be is said to the first who asks for a cell.
    fn make_spare(&mut self) {
        let shape = Shape::usual();
        match self.make_cell(shape) {
            Ok(cell) => self.spares.push(Spare { cell, shape }),
            Err(_) => (self.ahead, self.wanted) = (0, 0),
        }
    }

    fn base(&self, shape: Shape) -> &Base {
        // A file of a v2 group moves whom its writer names, whoever he is: no runtime of a user's gets one that root opened.
        let no_way_in = shape.porter && self.owner.is_some() && matches!(self.base, Base::V2(_));
        if shape.grouped && !no_way_in { &self.base } else { &self.no_groups }
    }

    /// Waits for a request, a death, or a word on the socket of a run (whose pids are returned).
    fn wait(&self) -> io::Result<(bool, bool, Vec<Pid>)> {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let mut pids = vec![];
        for cell in &self.cells {
            if let Some(run) = &cell.run {
                fds.push(PollFd::new(run, PollFlags::IN));
                pids.push(cell.pid);
            }
        }
        if let Some(socket) = &self.socket {
            fds.push(PollFd::new(socket, PollFlags::IN));
        }
        // Cells are made ahead when nothing else is to be done: then only look.
        let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        match rustix::event::poll(&mut fds, self.is_short().then_some(&at_once)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let asked = pids.iter().zip(&fds[1..]).filter(|(_, fd)| ready(fd)).map(|(pid, _)| *pid).collect();
        let request = self.socket.is_some() && fds.last().is_some_and(ready);
        Ok((request, ready(&fds[0]), asked))
    }

    fn accept(&mut self) {
        let Some(socket) = &self.socket else { return };
        let mut byte = [0u8; 16];
        match socket::receive(socket.as_fd(), &mut byte, false) {
            Ok(Some((n, _))) if byte[..n].first() == Some(&SERVE) => {
                if self.serve_for(&byte[1..n]).is_err() {
                    // What it would do next might be done with rights that it should not have.
                    self.socket = None;
                }
            }
            Ok(Some((n, mut fds))) => {
                self.wanted = if &byte[..n] == MORE { self.ahead } else { 0 };
                let init = fds.split_off(REQUEST_FDS.min(fds.len())).pop();
                if let Ok(fds) = <[OwnedFd; REQUEST_FDS]>::try_from(fds) {
                    self.launch(fds, init);
                }
            }
            // Nothing after all; or so many fds open here that it could not be received whole: that run alone fails.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock || e.raw_os_error() == Some(libc::EMSGSIZE) => {}
            // The supervisor asks for nothing more: serve what is going, then end.
            _ => self.socket = None,
        }
    }

    /// From here on cells are those of a user, as if a user had started this; only groups are made with root's rights. The
    /// plans that come are a user's too: nothing in them is opened or run by root.
    fn serve_for(&mut self, ids: &[u8]) -> io::Result<()> {
        let (uid, gid) = ids.split_at_checked(size_of::<u32>()).ok_or(io::ErrorKind::InvalidData)?;
        let id = |bytes: &[u8]| bytes.try_into().map(u32::from_ne_bytes).map_err(|_| io::ErrorKind::InvalidData);
        let (uid, gid) = (id(uid)?, id(gid)?);
        if !self.ids.is_root() || uid == 0 || self.owner.is_some() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        identity::leave_groups()?;
        identity::keep_capabilities(&KEPT_CAPABILITIES)?;
        self.spares.drain(..).for_each(|spare| abandon(spare.cell));
        self.ids = host::Ids::Caller { uid, gid };
        self.owner = Some((uid, gid));
        (self.enforced, self.degraded) = host::layers(&self.base, self.landlock, &self.ids);
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        socket::send(socket.as_fd(), SERVED, &[])
    }

    /// Everything of the run is closed here when this returns: only the cell has it.
    fn launch(&mut self, fds: [OwnedFd; REQUEST_FDS], init: Option<OwnedFd>) {
        let [run, supervisor, plan, stdin, stdout, stderr] = fds;
        let fds = [supervisor.as_fd(), plan.as_fd(), stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        match self.try_launch(fds, init.as_ref().map(AsFd::as_fd), &run) {
            Ok(cell) => self.cells.push(Cell { run: Some(run), joins: vec![], ..cell }),
            Err(failure) => drop(wire::send(&run, &FromLauncher::Failed(failure), &[])),
        }
    }

    fn try_launch(
        &mut self,
        run_fds: [BorrowedFd<'_>; 5],
        init: Option<BorrowedFd<'_>>,
        run: &OwnedFd,
    ) -> Result<Cell, Failure> {
        let start = wire::now_ns();
        let (plan, _) = Plan::read(run_fds[1]).map_err(failed("read the plan", ""))?;
        let shape = Shape::of(&plan, self.ids.is_root());
        self.check_required(&plan, shape)?;
        let cell = match self.spares.iter().position(|spare| spare.shape == shape) {
            Some(at) => self.spares.remove(at).cell,
            None => self.make_cell(shape)?,
        };
        let cloned = Took::since(start);
        let start = wire::now_ns();
        let tasks = match shape.own_pids {
            true => cgroup::kernel_tasks_line(&plan.limits, process::processors().into()),
            false => cgroup::tasks_line(&plan.limits),
        };
        if let Err(e) = cell.group.limit(&plan.limits, tasks) {
            abandon(cell);
            return Err(failed("write the cgroup's limits", "")(e));
        }
        let grouped = Took::since(start);
        let mut layers = match (&plan.runtime, &plan.engine) {
            (Some(runtime), _) => host::layers_of(runtime, &self.base, self.landlock, &self.ids),
            (None, Some(engine)) => host::layers_in(&engine.name, self.base(shape), self.landlock, &self.ids),
            (None, None) => (self.enforced.clone(), self.degraded.clone()),
        };
        host::as_planned(&mut layers, &plan, shape.cpu_group);
        let (enforced, degraded) = layers;
        let launched = self.order(&cell, shape, &plan, run_fds, init).and_then(|()| {
            let meters = cell.group.meters();
            let message = FromLauncher::Launched {
                pid: cell.pid,
                meters: meters.iter().map(|(meter, _)| *meter).collect(),
                enforced,
                degraded,
                clone: cloned,
                cgroup: grouped,
            };
            let fds: Vec<_> = meters.iter().map(|(_, fd)| fd.as_fd()).collect();
            wire::send(run, &message, &fds).map_err(failed("tell the supervisor", ""))
        });
        match launched {
            Ok(()) => Ok(cell),
            Err(failure) => {
                abandon(cell);
                Err(failure)
            }
        }
    }

    fn check_required(&self, plan: &Plan, shape: Shape) -> Result<(), Failure> {
        for layer in &plan.require {
            let (name, missing) = match layer {
                Layer::Cgroup => ("cgroup", !self.base(shape).has_limits()),
                Layer::Landlock => ("landlock", self.landlock.is_none()),
            };
            if missing {
                return Err(Failure { step: REQUIRED.into(), what: name.into(), errno: libc::EOPNOTSUPP });
            }
        }
        Ok(())
    }

    fn kill(&mut self, pid: Pid) {
        let Some(cell) = self.cells.iter_mut().find(|cell| cell.pid == pid) else {
            return;
        };
        let mut word = [0u8; 16];
        let gone = match &cell.run {
            Some(run) => !matches!(socket::receive(run.as_fd(), &mut word, false), Ok(Some(_))),
            None => true,
        };
        if gone {
            cell.run = None;
        }
        kill(cell);
    }

    /// After the death of an init: everything in its pid namespace is dead too.
    fn bury(&mut self, pid: Pid) {
        if let Some(at) = self.spares.iter().position(|spare| spare.cell.pid == pid) {
            // It could not be built: no more ahead, then. Who asks for a cell gets the reason.
            self.spares.remove(at).cell.group.remove();
            (self.ahead, self.wanted) = (0, 0);
        }
        let Some(at) = self.cells.iter().position(|cell| cell.pid == pid) else {
            return;
        };
        let cell = self.cells.swap_remove(at);
        let counters = cell.group.counters();
        let failure = wire::receive::<Failure>(&cell.leash, false).ok().flatten();
        if let Some(run) = cell.run {
            if let Some((failure, _)) = failure {
                let _ = wire::send(&run, &FromLauncher::Failed(failure), &[]);
            }
            let _ = wire::send(&run, &FromLauncher::Gone(counters), &[]);
        }
        // While the supervisor makes its report.
        cell.group.remove();
    }
}

fn kill(cell: &Cell) {
    cell.group.kill();
    if cell.clears_up {
        // It clears up, and ends when nothing of the container is left. EPIPE: it has.
        let _ = socket::send(cell.leash.as_fd(), b"k", &[]);
        return;
    }
    // ESRCH: it is dead and waits to be buried.
    let _ = process::pidfd_signal(cell.pidfd.as_fd(), libc::SIGKILL);
}

/// A cell that never got to work.
fn abandon(cell: Cell) {
    kill(&cell);
    process::wait_for(cell.pid);
    cell.group.remove();
}

fn failed<'a>(step: &'a str, what: &'a str) -> impl Fn(io::Error) -> Failure + use<'a> {
    move |e| Failure { step: step.into(), what: what.into(), errno: e.raw_os_error().unwrap_or(libc::EIO) }
}

pub(crate) const fn host_id_base() -> u32 {
    HOST_ID_BASE
}
