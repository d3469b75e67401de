//! A cell is made: cloned, given its ids and groups; later, its orders.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::shape::Shape;
use super::{Cell, Launcher, abandon, failed};
use crate::cell::{self, Birth, GID, UID};
use crate::cgroup::{Group, Seed};
use crate::oci;
use crate::spec::Tree;
use crate::sys::process::{self, Pid, Side};
use crate::sys::{identity, socket};
use crate::wire::{self, Failure, Order, Plan};

const CELL_NAMESPACES: i32 =
    libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

impl Launcher {
    pub(super) fn make_cell(&self, shape: Shape) -> Result<Cell, Failure> {
        let seed = self.base(shape).begin(!shape.porter).map_err(failed("make the cgroup", ""))?;
        let (leash, theirs) = match socket::pair() {
            Ok(pair) => pair,
            Err(e) => {
                seed.remove();
                return Err(failed("make a socket", "")(e));
            }
        };
        let root = self.ids.is_root();
        // A porter is none of those whom the limits are for.
        let (flags, group) = match shape.porter {
            true if root => (libc::CLONE_NEWNS, None),
            true => (libc::CLONE_NEWUSER | libc::CLONE_NEWNS, None),
            false => (CELL_NAMESPACES, seed.clone_into()),
        };
        let flags = if shape.own_pids { flags | libc::CLONE_NEWPID } else { flags };
        let cloned = match self.owner {
            Some(owner) => process::clone_for(owner, flags, group),
            None => process::clone(flags, group),
        };
        match cloned {
            Ok(Side::Child) => {
                let birth = Birth {
                    leash: theirs.as_fd(),
                    launcher: self.own.as_fd(),
                    own_network: shape.own_network,
                    root,
                    count_clones: !self.base(shape).has_limits(),
                };
                if shape.porter { oci::live(&birth) } else { cell::live(&birth) }
            }
            Ok(Side::Parent((pid, pidfd))) => self.give_birth(pid, pidfd, leash, seed, shape),
            Err(e) => {
                seed.remove();
                Err(failed("clone into new namespaces", "")(e))
            }
        }
    }

    /// The child exists: its ids, without which it can't go on, then its groups, which it joins later.
    fn give_birth(&self, pid: Pid, pidfd: OwnedFd, leash: OwnedFd, seed: Seed, shape: Shape) -> Result<Cell, Failure> {
        let mapped = match shape.porter && self.ids.is_root() {
            true => Ok(()),
            false => self.write_id_maps(pid, shape).and_then(|()| socket::send(leash.as_fd(), b"m", &[])),
        };
        let clears_up = shape.porter && !shape.own_pids;
        let mut cell = Cell { pid, pidfd, leash, group: Group::None, joins: vec![], run: None, clears_up };
        if let Err(e) = mapped {
            abandon(cell);
            seed.remove();
            return Err(failed("write the id maps", "")(e));
        }
        match self.base(shape).complete(seed, shape.cpu_group) {
            Ok((group, joins)) => {
                (cell.group, cell.joins) = (group, joins);
                match self.ways_in(&mut cell, shape) {
                    Ok(joins) => Ok(Cell { joins, ..cell }),
                    Err(e) => {
                        abandon(cell);
                        Err(failed("open the cgroup", "")(e))
                    }
                }
            }
            Err((e, seed)) => {
                abandon(cell);
                seed.remove();
                Err(failed("make the cgroup", "")(e))
            }
        }
    }

    /// What a porter gets it hands to a runtime. With files that root has opened, whoever that is could move any process of
    /// the host: so they are opened for its user, who can move his own.
    fn ways_in(&self, cell: &mut Cell, shape: Shape) -> io::Result<Vec<OwnedFd>> {
        let joins = std::mem::take(&mut cell.joins);
        if !shape.porter {
            return Ok(joins);
        }
        let joins = joins.into_iter().chain(cell.group.entrance()?);
        match self.owner {
            Some(owner) => joins.map(|way| identity::reopen_for(owner, way.as_fd())).collect(),
            None => Ok(joins.collect()),
        }
    }

    /// A porter is root of its namespace; who is in a cell is not.
    fn write_id_maps(&self, pid: Pid, shape: Shape) -> io::Result<()> {
        let (uid, gid) = self.ids.outside(pid);
        let inside = if shape.porter { (0, 0) } else { (UID, GID) };
        let proc = |name: &str| format!("/proc/{pid}/{name}");
        if !self.ids.is_root() {
            std::fs::write(proc("setgroups"), "deny")?;
        }
        std::fs::write(proc("uid_map"), format!("{} {uid} 1", inside.0))?;
        std::fs::write(proc("gid_map"), format!("{} {gid} 1", inside.1))
    }

    pub(super) fn order(
        &self,
        cell: &Cell,
        shape: Shape,
        plan: &Plan,
        run_fds: [BorrowedFd<'_>; 5],
        init: Option<BorrowedFd<'_>>,
    ) -> Result<(), Failure> {
        // Who the engine's init is, the engine has decided.
        let outside = match init {
            Some(init) => {
                socket::peer(init).map(|peer| peer.owner).map_err(failed("ask for the container's id", ""))?
            }
            None => self.ids.outside(cell.pid),
        };
        let mut trees = vec![];
        if self.ids.is_root() {
            // The streams are the program's own, so that it may open /dev/stdout again.
            let owner = (rustix::fs::Uid::from_raw(outside.0), rustix::fs::Gid::from_raw(outside.1));
            for stream in &run_fds[2..] {
                rustix::fs::fchown(stream, Some(owner.0), Some(owner.1))
                    .map_err(|e| failed("give the streams away", "")(e.into()))?;
            }
            for tree in &plan.trees {
                trees.push(open_tree(tree)?);
            }
        }
        let order = Order {
            joins: cell.joins.len(),
            trees_opened: self.ids.is_root(),
            landlock: self.landlock.is_some(),
            owner: outside,
            root: self.ids.is_root(),
            count_clones: !self.base(shape).has_limits(),
        };
        let fds = run_fds.into_iter().chain(cell.joins.iter().chain(&trees).map(AsFd::as_fd)).chain(init);
        let fds: Vec<_> = fds.collect();
        wire::send(&cell.leash, &order, &fds).map_err(failed("give the order", ""))
    }
}

fn open_tree(tree: &Tree) -> Result<OwnedFd, Failure> {
    use rustix::fs::{Mode, OFlags};
    let open = || {
        let root = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        cell::open_tree(root.as_fd(), tree)
    };
    open().map_err(failed("open", &tree.host.to_string_lossy()))
}
