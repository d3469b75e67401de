//! The porter: lays the container's root out, calls the runtime, and stays until nothing of it is left.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::bundle::Bundle;
use super::layout::Laid;
use super::visit::Visit;
use crate::cell::{self, Birth, Step};
use crate::cgroup;
use crate::spec::RuntimeKind;
use crate::sys::{mount, process, signal};
use crate::wire::{self, Failure, FromCell, Order, Plan};

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
        process::become_user(0, 0, false).step("become root of a namespace", "")?;
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
    let trees = more.split_off(order.joins.min(more.len()));
    visit.groups = more;
    let (plan, contents) = Plan::read(visit.plan.as_fd()).step("read the plan", "")?;
    let Some(runtime) = plan.runtime.clone() else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL)).step("call the runtime", "");
    };
    let laid = Laid::new(&plan, order, (visit.plan.as_fd(), contents), trees)?;
    let group = cgroup::Loan::new();
    let bundle = Bundle { plan: &plan, order, rootfs: &laid.root(), shm: &laid.shm(), group: group.path() };
    let config = bundle.config(runtime.kind)?.to_string();
    std::fs::write(laid.bundle().join("config.json"), config).step("write the bundle", "")?;
    if runtime.kind == RuntimeKind::Crun {
        // It takes a host with both kinds of groups for one with neither.
        cgroup::cover_second_kind().step("cover the second kind of cgroups", "")?;
    }
    let mounts_ns = wire::now_ns() - start;
    match runtime.kind {
        RuntimeKind::Runsc => visit.watch_from_outside(&runtime, &laid, &plan, mounts_ns),
        _ => visit.send_in(&runtime, &laid, order, mounts_ns),
    }
}
