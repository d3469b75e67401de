//! The inside of the cell: what the child of the launcher does between its first instruction and exec.
//!
//!   build   generic, possibly long before there is a program: become nobody, mount a root
//!   (wait)  for the launcher's order
//!   enter   for this program: its groups, its trees, its scratch, its files; let go of the host; drop everything
//!   init    PID 1: fork the program, reap, pass SIGTERM on, tell the end
//!
//! Each step either happens or ends the cell with (step, errno), from which the supervisor makes the sentence.

mod aside;
mod crowd;
pub(crate) mod init;
mod landlock;
mod payload;
pub(crate) mod root;

pub(crate) use root::open_tree;

use std::ffi::{CString, OsStr};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use crate::filter::Filter;
use crate::spec::{BROKER_PORT, Network};
use crate::sys::{identity, process, signal, socket};
use crate::wire::{self, Failure, FromCell, Order, Plan, Took};
pub(crate) use aside::Aside;

/// Ids inside the cell; outside they are the caller's, or nobody's when the caller is root.
pub(crate) const UID: u32 = 1000;
pub(crate) const GID: u32 = 1000;

const LEASH: i32 = 3;
const LAUNCHER: i32 = 4;
const FIRST_FREE: i32 = 5;

/// What the launcher gives a cell at birth.
pub(crate) struct Birth<'a> {
    /// To and from the launcher, until there is an order.
    pub(crate) leash: BorrowedFd<'a>,
    /// Readable when the launcher is dead.
    pub(crate) launcher: BorrowedFd<'a>,
    /// A network namespace of its own: made by a second thread while the first one mounts, because it takes as long.
    pub(crate) own_network: bool,
    /// The launcher is root: it opens the trees, and the group list can, and must, be emptied.
    pub(crate) root: bool,
    /// No cgroup counts processes here.
    pub(crate) count_clones: bool,
}

/// The whole life of the child. Never returns, never unwinds into the launcher's stack.
pub(crate) fn live(birth: &Birth<'_>) -> ! {
    let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        if let Err((failure, told)) = run(birth) {
            let _ = match told {
                Some(supervisor) => wire::send(supervisor, &FromCell::Failed(failure), &[]),
                None => adopt_leash().and_then(|leash| wire::send(leash, &failure, &[])),
            };
        }
    }));
    process::exit_now(if lived.is_ok() { 0 } else { 70 })
}

/// A second handle for the message of a failure before there was an order.
pub(crate) fn adopt_leash() -> io::Result<OwnedFd> {
    process::adopt(LEASH)
}

type Failed = (Failure, Option<OwnedFd>);

fn run(birth: &Birth<'_>) -> Result<(), Failed> {
    let before = |failure| (failure, None);
    let (leash, launcher) = take_over(birth).map_err(before)?;
    let start = wire::now_ns();
    let built = build(birth, &leash, &launcher).map_err(before)?;
    let ahead = Took::since(start);

    let Some((order, mut fds)) = wire::receive::<Order>(&leash, true).step("order", "").map_err(before)? else {
        process::exit_now(0)
    };
    if fds.len() < 5 {
        return Err(before(Failure { step: "order".into(), what: "too few fds".into(), errno: libc::EINVAL }));
    }
    let more = fds.split_off(5);
    let [supervisor, plan_fd, stdin, stdout, stderr]: [OwnedFd; 5] = match fds.try_into() {
        Ok(fds) => fds,
        Err(_) => process::exit_now(70),
    };
    drop(leash);
    let start = wire::now_ns();
    let joined = process::cpu_time();
    let entered = enter(&order, built, plan_fd.as_fd(), &more);
    drop((more, plan_fd));
    match entered {
        Err(failure) => Err((failure, Some(supervisor))),
        Ok(Entered { plan, filter, view, egress }) => {
            let mounts = [ahead, Took::since(start)];
            let stdio = [stdin, stdout, stderr];
            let count_clones = birth.count_clones;
            let run = Run { supervisor, stdio, launcher, filter, view, egress, mounts, joined, count_clones };
            init::live(run, &plan).map_err(|(failure, supervisor)| (failure, Some(supervisor)))
        }
    }
}

/// A cell that is ready for its program.
struct Entered {
    plan: Plan,
    filter: Filter,
    view: [OwnedFd; 3],
    egress: Option<OwnedFd>,
}

/// What the program's start needs.
pub(crate) struct Run {
    pub(crate) supervisor: OwnedFd,
    pub(crate) stdio: [OwnedFd; 3],
    /// Readable when there is no launcher any more.
    pub(crate) launcher: OwnedFd,
    pub(crate) filter: Filter,
    /// Scratch, root and proc of the cell, for the supervisor.
    pub(crate) view: [OwnedFd; 3],
    /// Where the program calls its broker, for the supervisor.
    pub(crate) egress: Option<OwnedFd>,
    pub(crate) mounts: [Took; 2],
    /// The processor time of init when it came into the group of the cell.
    pub(crate) joined: Duration,
    pub(crate) count_clones: bool,
}

/// Keeps the two fds of ours and forgets everything else the launcher had open: other cells' sockets included.
pub(crate) fn take_over(birth: &Birth<'_>) -> Result<(OwnedFd, OwnedFd), Failure> {
    let take = || -> io::Result<_> {
        // Away from the two numbers first, so that neither overwrites the other.
        let leash = process::duplicate_above(birth.leash, 16)?;
        let launcher = process::duplicate_above(birth.launcher, 16)?;
        process::place(leash.as_fd(), LEASH)?;
        process::place(launcher.as_fd(), LAUNCHER)?;
        std::mem::forget((leash, launcher));
        process::close_from(FIRST_FREE)?;
        Ok((process::adopt(LEASH)?, process::adopt(LAUNCHER)?))
    };
    take().step("close the launcher's fds", "")
}

/// What is ready before there is an order.
struct Built {
    host: root::Host,
    aside: Option<Aside>,
    /// The filter that most programs get: it takes longer to make than to install.
    filter: Filter,
}

/// Everything that needs no knowledge of the program.
fn build(birth: &Birth<'_>, leash: &OwnedFd, launcher: &OwnedFd) -> Result<Built, Failure> {
    let mut aside = Aside::unless(!birth.own_network)?;
    wait_for_map(leash)?;
    identity::become_user(UID, GID, birth.root).step("become an unprivileged user", "")?;
    process::set_undumpable().step("hide init", "")?;
    process::die_with_parent().step("tie init to the launcher", "")?;
    if is_dead(launcher) {
        process::exit_now(0);
    }
    process::set_name(c"hotcell-init");
    process::forget_arguments();
    // The kernel keeps signals of the program's from an init that has no handler for them; ours had the runtime's.
    signal::reset();
    process::setsid().step("leave the terminal", "")?;
    process::new_session_keyring().step("new keyring", "")?;
    process::set_host_name("cell").step("set the host name", "")?;
    rustix::process::umask(rustix::fs::Mode::empty());
    let mut host = root::build()?;
    if birth.root {
        // The trees will come as fds: nothing more is needed from there.
        let_go(&mut host, &mut aside)?;
    }
    Ok(Built { host, aside, filter: Filter::usual(birth.count_clones) })
}

/// The host disappears: by the second thread where there is one, because the kernel takes its time.
pub(crate) fn let_go(host: &mut root::Host, aside: &mut Option<Aside>) -> Result<(), Failure> {
    match aside {
        Some(aside) => {
            aside.detach(host.take());
            Ok(())
        }
        None => host.detach(),
    }
}

/// Everything for this program, up to the point where nothing can be mounted any more.
fn enter(order: &Order, built: Built, plan_fd: BorrowedFd<'_>, fds: &[OwnedFd]) -> Result<Entered, Failure> {
    let Built { mut host, mut aside, filter } = built;
    let (groups, trees) = fds.split_at(order.joins.min(fds.len()));
    join(groups)?;
    // After that, so that the cell sees its own group as the root.
    process::unshare(libc::CLONE_NEWCGROUP).step("new cgroup namespace", "")?;
    let (plan, contents) = Plan::read(plan_fd).step("read the plan", "")?;
    let opened = (!order.trees_opened).then(|| root::open_trees(&host, &plan.trees)).transpose()?;
    if opened.is_some() {
        let_go(&mut host, &mut aside)?;
    }
    let scratch = furnish(&plan, (plan_fd, contents), opened.as_deref().unwrap_or(trees))?;
    if let Some(aside) = aside {
        aside.finish()?;
    }
    if plan.network.has_loopback() {
        socket::loopback_up().step("bring up loopback", "")?;
    }
    let egress = listen_if_brokered(&plan)?;
    let (root_dir, proc_dir) = root::seal()?;
    give_up(&plan, order.landlock)?;
    Ok(Entered { plan, filter, view: [scratch, root_dir, proc_dir], egress })
}

/// The root of this program, with its scratch, which is returned. `files` are the contents of the plan's, and where they begin.
pub(crate) fn furnish(plan: &Plan, files: (BorrowedFd<'_>, u64), trees: &[OwnedFd]) -> Result<OwnedFd, Failure> {
    root::links(&plan.links)?;
    root::attach_trees(&plan.trees, trees)?;
    let scratch = root::scratch(&plan.limits, &plan.writable)?;
    root::write_files(&plan.files, files.0, files.1)?;
    Ok(scratch)
}

/// What an init gives up before there is a program, whoever made its namespaces.
pub(crate) fn give_up(plan: &Plan, landlock: bool) -> Result<(), Failure> {
    identity::drop_capabilities().step("drop all capabilities", "")?;
    process::set_no_new_privs().step("set no_new_privs", "")?;
    if landlock {
        landlock::restrict(plan).step("restrict with Landlock", "")?;
    }
    Ok(())
}

pub(crate) fn listen_if_brokered(plan: &Plan) -> Result<Option<OwnedFd>, Failure> {
    (plan.network == Network::Brokered).then(listen).transpose().step("listen for the broker", "")
}

/// Before there is a program that could be here first. A port that somebody listens at is nobody else's, whatever
/// options he sets: both would have had to ask to share it.
fn listen() -> io::Result<OwnedFd> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, BROKER_PORT))?.into())
}

/// A word from the launcher: the ids mean something now.
pub(crate) fn wait_for_map(leash: &OwnedFd) -> Result<(), Failure> {
    let mut word = [0u8; 16];
    match socket::receive(leash.as_fd(), &mut word, true).step("wait for the id maps", "")? {
        Some(_) => Ok(()),
        None => process::exit_now(0),
    }
}

pub(crate) fn join(groups: &[OwnedFd]) -> Result<(), Failure> {
    // Writing 0 into `tasks` moves the writer itself, without the global lock that moving another process takes (10 ms
    // on an idle host).
    groups.iter().try_for_each(|tasks| rustix::io::write(tasks, b"0").map(drop)).step("join the cgroup", "")
}

pub(crate) fn is_dead(launcher: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(launcher, PollFlags::IN)];
    matches!(rustix::event::poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(n) if n > 0)
}

/// Names the step that failed.
pub(crate) trait Step<T> {
    fn step(self, step: &str, what: impl AsRef<OsStr>) -> Result<T, Failure>;
}

impl<T> Step<T> for io::Result<T> {
    fn step(self, step: &str, what: impl AsRef<OsStr>) -> Result<T, Failure> {
        self.map_err(|e| Failure {
            step: step.into(),
            what: what.as_ref().to_string_lossy().into_owned(),
            errno: e.raw_os_error().unwrap_or(libc::EIO),
        })
    }
}

impl<T> Step<T> for rustix::io::Result<T> {
    fn step(self, step: &str, what: impl AsRef<OsStr>) -> Result<T, Failure> {
        self.map_err(io::Error::from).step(step, what)
    }
}

/// A path as the kernel wants it; a NUL inside is refused as the kernel would refuse it.
pub(crate) fn c_path(path: impl AsRef<OsStr>) -> io::Result<CString> {
    CString::new(path.as_ref().as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
