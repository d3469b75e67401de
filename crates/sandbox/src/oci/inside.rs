//! The init of a container: this program again, from where a runtime has left it to the program's start.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Mode, OFlags};

use crate::cell::{self, GID, Run, Step, UID, c_path};
use crate::filter::Filter;
use crate::sys::process::{self, CArray};
use crate::sys::{signal, socket};
use crate::wire::{self, Entry, Failure, FromCell, Plan};

/// Where this program is in the container until it runs; the porter removes it then.
pub(super) const AT: &str = "/.hotcell-init";

/// To and from the porter.
pub(super) const PORTER: i32 = 3;

/// What init says when it runs, and its file is needed no more.
pub(super) const HERE: &[u8] = b"h";

/// What it says before that, in a user namespace that has no ids yet, with a pidfd of its own.
pub(super) const ALONE: &[u8] = b"a";

/// Fds of an entry before the groups.
pub(super) const ENTRY_FDS: usize = 6;

pub(crate) fn live_if_asked() {
    if std::env::args_os().next().is_some_and(|name| name.as_bytes() == AT.as_bytes()) {
        let lived = std::panic::catch_unwind(live);
        process::exit_now(if lived.is_ok() { 0 } else { 70 })
    }
}

fn live() {
    let Ok(porter) = process::adopt(PORTER) else { return };
    let entry = match prepare(&porter) {
        Ok(Some(entry)) => entry,
        Ok(None) => return,
        Err(failure) => return drop(wire::send(&porter, &failure, &[])),
    };
    let (entry, mut fds) = entry;
    let groups = fds.split_off(ENTRY_FDS.min(fds.len()));
    let Ok([supervisor, plan_fd, stdin, stdout, stderr, scratch]) = <[OwnedFd; ENTRY_FDS]>::try_from(fds) else {
        return;
    };
    let lived = match enter(&entry, &plan_fd, &groups) {
        Err(failure) => Err((failure, supervisor)),
        Ok(Entered { plan, root, proc, egress }) => {
            drop((plan_fd, groups));
            let run = Run {
                supervisor,
                stdio: [stdin, stdout, stderr],
                // The porter dies with the launcher, and we with it.
                launcher: porter,
                filter: Filter::usual(entry.count_clones),
                view: [scratch, root, proc],
                egress,
                mounts_ns: entry.mounts_ns,
                count_clones: entry.count_clones,
            };
            cell::init::live(run, &plan)
        }
    };
    if let Err((failure, supervisor)) = lived {
        let _ = wire::send(supervisor, &FromCell::Failed(failure), &[]);
    }
}

/// Becomes an init that nobody inside can look into, and waits for what there is to do.
fn prepare(porter: &OwnedFd) -> Result<Option<(Entry, Vec<OwnedFd>)>, Failure> {
    process::close_from(PORTER + 1).step("close the runtime's fds", "")?;
    if rustix::process::getuid().is_root() {
        begin_again(porter)?;
    }
    process::set_undumpable().step("hide init", "")?;
    process::die_with_parent().step("tie init to the runtime", "")?;
    process::set_name(c"hotcell-init");
    process::forget_arguments();
    signal::reset();
    process::raise_open_files();
    rustix::process::umask(Mode::empty());
    socket::send(porter.as_fd(), HERE, &[]).step("tell the porter", "")?;
    wire::receive(porter, true).step("hear the porter", "")
}

/// In a namespace in which the program is nobody's root, and whose processes the kernel counts by themselves; the porter
/// writes its ids. What is in /proc of this process belongs to the root of the namespace in which it was executed: hence
/// again.
fn begin_again(porter: &OwnedFd) -> Result<(), Failure> {
    process::unshare(libc::CLONE_NEWUSER).step("new user namespace", "")?;
    let own = process::pidfd_open(std::process::id() as process::Pid).step("tell the porter", "")?;
    socket::send(porter.as_fd(), ALONE, &[own.as_fd()]).step("tell the porter", "")?;
    let mut word = [0u8; 16];
    if socket::receive(porter.as_fd(), &mut word, true).step("hear the porter", "")?.is_none() {
        process::exit_now(0);
    }
    process::become_user(UID, GID, false).step("become an unprivileged user", "")?;
    // A new user namespace has them all, and after exec there is none left to drop the others with.
    process::drop_capabilities().step("drop all capabilities", "")?;
    let path = c_path(AT).step("begin again", "")?;
    let kept = process::duplicate_above(porter.as_fd(), 16).step("begin again", "")?;
    process::place(kept.as_fd(), PORTER).step("begin again", "")?;
    let error = process::execve(&path, &CArray::new(vec![path.clone()]), &CArray::new(vec![]));
    Err(error).step("begin again", "")
}

struct Entered {
    plan: Plan,
    root: OwnedFd,
    proc: OwnedFd,
    egress: Option<OwnedFd>,
}

fn enter(entry: &Entry, plan_fd: &OwnedFd, groups: &[OwnedFd]) -> Result<Entered, Failure> {
    cell::join(groups)?;
    let (plan, _) = Plan::read(plan_fd.as_fd()).step("read the plan", "")?;
    let egress = cell::listen_if_brokered(&plan)?;
    let open = |path: &str, flags: OFlags| {
        rustix::fs::open(path, flags | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).step("open", path)
    };
    let (root, proc) = (open("/", OFlags::PATH)?, open("/proc", OFlags::RDONLY)?);
    // The runtime has dropped them all: this says so, or ends it here.
    cell::give_up(&plan, entry.landlock)?;
    Ok(Entered { plan, root, proc, egress })
}
