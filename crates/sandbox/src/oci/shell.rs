//! The init of a container: this program again, which builds a cell inside of what a runtime, or an engine, has made.
//!
//! It has a pid namespace, a root, no capability and nobody's id. In a user namespace of its own it may mount: so it makes
//! the same root as every cell has, in which nothing is of the container's but /proc.
//! What was mounted into the container, this program among it, is not there any more.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::inside::{AT, BUILT, JOINED, PORTER};
use crate::cell::{self, Aside, GID, Step, UID, c_path, root};
use crate::spec::{CALL_AT, Network};
use crate::sys::process::{self, CArray};
use crate::sys::{identity, signal, socket};
use crate::wire::{self, Failure, Plan, Shell};

const NAMESPACES: i32 = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

pub(super) fn live(of: Maker) {
    let porter = match of {
        Maker::Runtime => process::adopt(PORTER),
        Maker::Engine => call().map_err(Into::into),
    };
    // Nobody hears why not: that nobody calls is what he hears.
    let Ok(porter) = porter else { return };
    if let Err(failure) = build(&porter) {
        let _ = wire::send(&porter, &failure, &[]);
    }
}

/// Who has made the container: one passes a socket on, for the other there is a place to call at.
#[derive(Clone, Copy)]
pub(super) enum Maker {
    Runtime,
    Engine,
}

fn call() -> rustix::io::Result<OwnedFd> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(CALL_AT)?)?;
    Ok(socket)
}

/// Returns only when something went wrong, or when nobody wants a cell any more.
fn build(porter: &OwnedFd) -> Result<(), Failure> {
    let Some((shell, mut fds)) = wire::receive::<Shell>(porter, true).step("hear the porter", "")? else {
        return Ok(());
    };
    let more = fds.split_off(1.min(fds.len()));
    let Some(plan_fd) = fds.pop() else { return Ok(()) };
    let (groups, more) = more.split_at(shell.joins.min(more.len()));
    let (image, trees) = more.split_at(usize::from(shell.has_image).min(more.len()));
    let (plan, contents) = Plan::read(plan_fd.as_fd()).step("read the plan", "")?;
    let own = rustix::fs::open("/proc/self/exe", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let own = own.step("open", "/proc/self/exe")?;

    be_alone()?;
    let mut aside = Aside::unless(plan.network == Network::Full)?;
    signal::reset();
    rustix::process::umask(Mode::empty());
    process::new_session_keyring().step("new keyring", "")?;
    process::set_host_name("cell").step("set the host name", "")?;
    let joined = process::cpu_time();
    cell::join(groups)?;
    // After that, so that the cell sees its own group as the root.
    process::unshare(libc::CLONE_NEWCGROUP).step("new cgroup namespace", "")?;
    let mut container = root::build_within(image.first().map(AsFd::as_fd))?;
    let scratch = cell::furnish(&plan, (plan_fd.as_fd(), contents), trees)?;
    cell::let_go(&mut container, &mut aside)?;
    if let Some(aside) = aside {
        aside.finish()?;
    }
    if plan.network.has_loopback() {
        socket::loopback_up().step("bring up loopback", "")?;
    }
    root::seal()?;
    identity::drop_capabilities().step("drop all capabilities", "")?;
    socket::send(porter.as_fd(), BUILT, &[scratch.as_fd()]).step("tell the porter", "")?;
    begin_again(own.as_fd(), porter, joined)
}

/// In namespaces of its own, as the one user there is in them.
fn be_alone() -> Result<(), Failure> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    process::unshare(NAMESPACES).step("new namespaces in the container", "")?;
    let write = |name: &str, text: String| std::fs::write(format!("/proc/self/{name}"), text);
    // Where it is denied already, it stays so.
    let _ = write("setgroups", "deny".into());
    write("uid_map", format!("{UID} {uid} 1")).step("write the id maps", "")?;
    write("gid_map", format!("{GID} {gid} 1")).step("write the id maps", "")?;
    identity::become_user(UID, GID, false).step("become an unprivileged user", "")
}

/// What is in /proc of this process belongs to the root of the namespace in which it was executed: hence again.
fn begin_again(own: BorrowedFd<'_>, porter: &OwnedFd, joined: Duration) -> Result<(), Failure> {
    let kept = process::duplicate_above(porter.as_fd(), 16).step("begin again", "")?;
    process::place(kept.as_fd(), PORTER).step("begin again", "")?;
    let argv = CArray::new(vec![c_path(AT).step("begin again", "")?]);
    let joined = c_path(format!("{JOINED}={}", joined.as_nanos())).step("begin again", "")?;
    Err(process::execute(own, &argv, &CArray::new(vec![joined]))).step("begin again", "")
}
