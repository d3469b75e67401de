//! What this host gives: ids, Landlock, groups; asked once by the launcher, carried by every report.

use crate::cgroup::Base;
use crate::launcher::host_id_base;
use crate::report::Applied;
use crate::spec::{Network, Runtime, RuntimeKind};
use crate::sys::{files, process};
use crate::wire::Plan;

/// Who the program is, seen from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// The caller is root: an id of its own for each cell, derived from its init's pid, which is unique while the
    /// cell lives. Accounting by user (pipes, locked memory, keys) then is by cell.
    PerCell,
    /// The caller is root of a container with few ids: nobody.
    Nobody,
    /// The caller is an ordinary user: the caller's own.
    Caller { uid: u32, gid: u32 },
}

const NOBODY: u32 = 65534;

impl Ids {
    pub(crate) fn find() -> Ids {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        if uid != 0 {
            return Ids::Caller { uid, gid };
        }
        if are_mapped(&[host_id_base(), host_id_base() + (1 << 22)]) {
            Ids::PerCell
        } else if are_mapped(&[NOBODY]) {
            Ids::Nobody
        } else {
            Ids::Caller { uid, gid }
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        !matches!(self, Ids::Caller { .. })
    }

    pub(crate) fn outside(&self, init: i32) -> (u32, u32) {
        match *self {
            Ids::PerCell => (host_id_base() + init as u32, host_id_base() + init as u32),
            Ids::Nobody => (NOBODY, NOBODY),
            Ids::Caller { uid, gid } => (uid, gid),
        }
    }
}

/// The one before those of cells.
pub(crate) fn service_id() -> u32 {
    let own = host_id_base() - 1;
    if are_mapped(&[own]) { own } else { NOBODY }
}

/// And the one before that, as which a service is counted that is `uid` otherwise.
pub(crate) fn counted_id(uid: u32) -> u32 {
    let own = host_id_base() - 2;
    if are_mapped(&[own]) { own } else { uid }
}

/// Whether this namespace has these ids, as users and as groups.
fn are_mapped(ids: &[u32]) -> bool {
    let has = |map: &[(u32, u32)], id: u32| map.iter().any(|(first, count)| id >= *first && id - first < *count);
    [map("/proc/self/uid_map"), map("/proc/self/gid_map")].iter().all(|map| ids.iter().all(|id| has(map, *id)))
}

/// (first, count) of each line of an id map, as seen from inside.
fn map(file: &str) -> Vec<(u32, u32)> {
    let text = files::read_proc(file).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            Some((fields.next()?.parse().ok()?, fields.nth(1)?.parse().ok()?))
        })
        .collect()
}

/// The version of Landlock that the kernel has on, if any.
pub(crate) fn landlock_abi() -> Option<u32> {
    crate::sys::seccomp::landlock_abi()
}

/// The same where a runtime makes the cell.
pub(crate) fn layers_of(
    runtime: &Runtime,
    base: &Base,
    landlock: Option<u32>,
    ids: &Ids,
) -> (Vec<Applied>, Vec<Applied>) {
    // Where it is on the host is nobody's business who reads a report.
    let name = runtime.path.file_name().unwrap_or_default().to_string_lossy();
    let (mut on, mut off) = layers(base, landlock, ids);
    let mut put = |layer: &str, mechanism: String| {
        on.retain(|known| known.layer != layer);
        on.push(Applied::new(layer, mechanism));
    };
    put("filesystem", "a read-only root in a mount namespace of its own; one writable tmpfs".into());
    if runtime.kind == RuntimeKind::Runsc {
        put("namespaces", format!("pid, mount, network, ipc, uts, and a kernel of its own by {name}"));
        put("syscalls", "served by a kernel of its own".into());
        put("limits", "rlimits FSIZE, NOFILE, NPROC inside".into());
        on.retain(|known| !matches!(known.layer.as_str(), "landlock" | "processes" | "identity"));
        off.retain(|known| !matches!(known.layer.as_str(), "landlock" | "processes"));
        if let Base::None { why } = base {
            let sampled =
                "a sample every 10 to 100 ms of what the runtime's processes and its kernel's memory file take";
            off.retain(|known| known.layer != "memory");
            off.push(Applied::new("memory", format!("{sampled}, instead of a cgroup, because {why}")));
        }
        let unseen =
            "what is refused inside a kernel of its own is not told to anybody: network, writes and system calls";
        off.push(Applied::new("witness", format!("{unseen} are contained and not on record")));
        let held = "RLIMIT_NPROC, held by the runtime's own kernel, which tells nobody when it refuses one";
        off.push(Applied::new("processes", held));
    } else {
        put("namespaces", format!("user, pid, mount, network, ipc, uts, cgroup, by {name}"));
    }
    (on, off)
}

/// The same in a container that an engine has made: a cell inside of it.
pub(crate) fn layers_in(engine: &str, base: &Base, landlock: Option<u32>, ids: &Ids) -> (Vec<Applied>, Vec<Applied>) {
    let (mut on, off) = layers(base, landlock, ids);
    on.retain(|known| known.layer != "namespaces");
    let own = "user, mount, network, ipc, uts, cgroup of its own within those of";
    on.push(Applied::new("namespaces", format!("pid of, and {own} a container of {engine}'s")));
    on.push(Applied::new("container", "no capability, no_new_privs, a read-only root"));
    (on, off)
}

/// What of it a cell has no need for, or this host no room.
pub(crate) fn as_planned(layers: &mut (Vec<Applied>, Vec<Applied>), plan: &Plan, cpu_group: bool) {
    let (on, off) = layers;
    for Applied { layer, mechanism } in on {
        match layer.as_str() {
            "namespaces" if plan.network == Network::Full => *mechanism = mechanism.replace("network, ", ""),
            "filesystem" if plan.limits.scratch == 0 => {
                *mechanism = mechanism.replace("one writable tmpfs", "nothing that can be written");
            }
            "cpu" if !cpu_group => *mechanism = "no quota: the host has no more processors".into(),
            _ => {}
        }
    }
    let (asked, most) = (plan.limits.open_files, process::most_open_files());
    if asked > most {
        off.push(Applied::new(
            "limits",
            format!("{most} open files instead of {asked}: this process may have no more"),
        ));
    }
}

/// What is enforced in every cell on this host, and what is weaker than it should be.
pub(crate) fn layers(base: &Base, landlock: Option<u32>, ids: &Ids) -> (Vec<Applied>, Vec<Applied>) {
    let mut on = vec![
        Applied::new("namespaces", "user, pid, mount, network, ipc, uts, cgroup"),
        Applied::new(
            "identity",
            match ids {
                Ids::PerCell => "a host id of the cell's own, that owns nothing",
                Ids::Nobody => "nobody",
                Ids::Caller { .. } => "the caller's id, without any capability",
            },
        ),
        Applied::new("filesystem", "a root of its own by pivot_root; read-only trees, one writable tmpfs"),
        Applied::new("capabilities", "none, and no_new_privs"),
        Applied::new("syscalls", "seccomp allowlist with user notification"),
        Applied::new("limits", "rlimits CORE, FSIZE, NOFILE, NPROC, MEMLOCK, MSGQUEUE, RTPRIO, SIGPENDING"),
    ];
    let (mut cgroup_on, mut off) = base.describe();
    on.append(&mut cgroup_on);
    match landlock {
        Some(abi) => on.push(Applied::new("landlock", format!("ABI {abi}"))),
        None => off.push(Applied::new("landlock", "not in this kernel or not on; read-only mounts hold alone")),
    }
    (on, off)
}
