//! The porter: lays the container's root out, calls the runtime, and stays until nothing of it is left.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::bundle;
use super::layout::Laid;
use super::visit::Visit;
use crate::cell::root::{self, Host};
use crate::cell::{self, Birth, Step};
use crate::cgroup;
use crate::spec::{RuntimeKind, Tree};
use crate::sys::{identity, mount, process, signal};
use crate::wire::{self, Failure, FromCell, Order, Plan, Took};

/// The whole life of the porter. Never returns, never unwinds into the launcher's stack.
pub(crate) fn live(birth: &Birth<'_>) -> ! {
    let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        if let Err((failure, told)) = run(birth) {
            let _ = match told {
                Some(supervisor) => wire::send(supervisor, &FromCell::Failed(failure), &[]),
                None => cell::adopt_leash().and_then(|leash| wire::send(leash, &failure, &[])),
            };
        }
    }));
    process::exit_now(if lived.is_ok() { 0 } else { 70 })
}

fn run(birth: &Birth<'_>) -> Result<(), (Failure, Option<OwnedFd>)> {
    let before = |failure| (failure, None);
    let leash = prepare(birth).map_err(before)?;
    let Some((order, mut fds)) = wire::receive::<Order>(&leash, true).step("order", "").map_err(before)? else {
        process::exit_now(0)
    };
    let more = fds.split_off(5.min(fds.len()));
    let Ok([supervisor, plan, stdin, stdout, stderr]) = <[OwnedFd; 5]>::try_from(fds) else { process::exit_now(70) };
    let mut visit =
        Visit { leash, supervisor, plan, streams: vec![stdin, stdout, stderr], groups: vec![], root: order.root };
    let done = carry_out(&mut visit, &order, more);
    done.map_err(|failure| (failure, Some(visit.supervisor)))
}

fn prepare(birth: &Birth<'_>) -> Result<OwnedFd, Failure> {
    let (leash, launcher) = cell::take_over(birth)?;
    if !birth.root {
        cell::wait_for_map(&leash)?;
        identity::become_user(0, 0, false).step("become root of a namespace", "")?;
    }
    process::set_name(c"hotcell-porter");
    process::die_with_parent().step("tie the porter to the launcher", "")?;
    if cell::is_dead(&launcher) {
        process::exit_now(0);
    }
    signal::reset();
    rustix::process::umask(rustix::fs::Mode::empty());
    process::adopt_orphans().step("adopt orphans", "")?;
    mount::make_private().step("make mounts private", "/")?;
    Ok(leash)
}

fn carry_out(visit: &mut Visit, order: &Order, mut more: Vec<OwnedFd>) -> Result<(), Failure> {
    let start = wire::now_ns();
    let mut trees = more.split_off(order.joins.min(more.len()));
    visit.groups = more;
    let (plan, contents) = Plan::read(visit.plan.as_fd()).step("read the plan", "")?;
    let guest = if plan.engine.is_some() { trees.pop() } else { None };
    // Everything of the host's by its fd, before anything is covered.
    let host = Host::here()?;
    let trees = if order.trees_opened { trees } else { root::open_trees(&host, &plan.trees)? };
    let image = plan.root.as_ref().map(|dir| Tree::new(dir, "/"));
    let image = root::open_trees(&host, image.as_slice())?.pop();
    if let Some(init) = guest {
        return visit.receive_guest(init, order, (image.as_ref(), &trees), start);
    }
    let Some(runtime) = plan.runtime.clone() else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL)).step("call the runtime", "");
    };
    if runtime.kind.has_own_kernel() {
        let proc = own_proc()?;
        let files = (visit.plan.as_fd(), contents);
        let (laid, scratch) = Laid::of_program(&runtime, &plan, order, files, (image.as_ref(), &trees))?;
        write(&laid, &bundle::of_program(&plan, order, &laid)?)?;
        return visit.watch_from_outside(&runtime, &laid, &plan, [&scratch, &proc], Took::since(start));
    }
    let group = cgroup::Loan::new();
    let laid = Laid::of_shell(&runtime)?;
    write(&laid, &bundle::of_shell(runtime.kind, &plan, order, &laid, group.path()))?;
    if runtime.kind == RuntimeKind::Crun {
        // It takes a host with both kinds of groups for one with neither.
        cgroup::cover_second_kind().step("cover the second kind of cgroups", "")?;
    }
    visit.send_in(&runtime, &laid, order, (image.as_ref(), &trees), start)
}

/// Of the pid namespace that this process is the first of: it lists what the runtime starts, and nobody else.
fn own_proc() -> Result<OwnedFd, Failure> {
    let flags = mount::MS_NOSUID | mount::MS_NODEV | mount::MS_NOEXEC;
    mount::mount_new(c"proc", c"/proc", flags, c"").step("mount", "/proc")?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open("/proc", flags, Mode::empty()).step("open", "/proc")
}

fn write(laid: &Laid, config: &serde_json::Value) -> Result<(), Failure> {
    std::fs::write(laid.bundle().join("config.json"), config.to_string()).step("write the bundle", "")
}
