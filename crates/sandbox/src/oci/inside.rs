//! The init of a container from where it has built a cell ([`super::shell`]) to the program's start.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::shell::{self, Maker};
use crate::cell::{self, Run, Step};
use crate::filter::Filter;
use crate::spec::{CALLED_BY_ENGINE, CALLED_BY_RUNTIME};
use crate::sys::{process, signal, socket};
use crate::wire::{self, Entry, Failure, FromCell, Plan, Took};

/// Where this program is in a container. No cell that it builds has it.
pub(super) const AT: &str = CALLED_BY_ENGINE[0];

/// To and from the porter.
pub(super) const PORTER: i32 = 3;

/// What init says when it has begun again, inside.
pub(super) const HERE: &[u8] = b"h";

/// What it says before that, when the cell around it is built, with its scratch.
pub(super) const BUILT: &[u8] = b"b";

/// By which name in its environment it knows what it had used, in nanoseconds, when it came into the group of the cell.
pub(super) const JOINED: &str = "JOINED";

/// Fds of an entry.
pub(super) const ENTRY_FDS: usize = 6;

pub(crate) fn live_if_asked() {
    let words: Vec<_> = std::env::args_os().take(2).collect();
    let lived = match &words[..] {
        words if words == CALLED_BY_RUNTIME => std::panic::catch_unwind(|| shell::live(Maker::Runtime)),
        words if words == CALLED_BY_ENGINE => std::panic::catch_unwind(|| shell::live(Maker::Engine)),
        [name] if name == AT => std::panic::catch_unwind(live),
        _ => return,
    };
    process::exit_now(if lived.is_ok() { 0 } else { 70 })
}

fn live() {
    let Ok(porter) = process::adopt(PORTER) else { return };
    // Before it is forgotten. Without it, what the runtime used counts as the cell's: a bound, and no more.
    let joined = std::env::var(JOINED).ok().and_then(|nanos| nanos.parse().ok()).unwrap_or(0);
    let entry = match prepare(&porter) {
        Ok(Some(entry)) => entry,
        Ok(None) => return,
        Err(failure) => return drop(wire::send(&porter, &failure, &[])),
    };
    let (entry, fds) = entry;
    let Ok([supervisor, plan_fd, stdin, stdout, stderr, scratch]) = <[OwnedFd; ENTRY_FDS]>::try_from(fds) else {
        return;
    };
    let lived = match enter(&entry, &plan_fd) {
        Err(failure) => Err((failure, supervisor)),
        Ok(Entered { plan, root, proc, egress }) => {
            drop(plan_fd);
            let run = Run {
                supervisor,
                stdio: [stdin, stdout, stderr],
                // The porter dies with the launcher, and we with it.
                launcher: porter,
                filter: Filter::usual(entry.count_clones),
                view: [scratch, root, proc],
                egress,
                mounts: [entry.mounts, Took::default()],
                joined: Duration::from_nanos(joined),
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

struct Entered {
    plan: Plan,
    root: OwnedFd,
    proc: OwnedFd,
    egress: Option<OwnedFd>,
}

fn enter(entry: &Entry, plan_fd: &OwnedFd) -> Result<Entered, Failure> {
    let (plan, _) = Plan::read(plan_fd.as_fd()).step("read the plan", "")?;
    let egress = cell::listen_if_brokered(&plan)?;
    let open = |path: &str, flags: OFlags| {
        rustix::fs::open(path, flags | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).step("open", path)
    };
    let (root, proc) = (open("/", OFlags::PATH)?, open("/proc", OFlags::RDONLY)?);
    cell::give_up(&plan, entry.landlock)?;
    Ok(Entered { plan, root, proc, egress })
}
