//! Control groups: where they can be made on this host, and what each offers.
//!
//! One interface over what hosts have: `v2` (root, or a subtree delegated to a user), `v1` with a v2 group beside
//! it for kill and cpu.stat where the host is hybrid, and nothing at all. A group lives as long as its cell and is
//! locked (flock) by the launcher that made it: a group whose lock can be had belongs to nobody and is swept.

mod dir;
mod loan;
mod v1;
mod v2;

pub(crate) use loan::{Loan, cover_second_kind};

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};

use crate::report::Applied;
use crate::spec::Limits;
use crate::sys::files;

/// The place under which this process can make groups.
pub(crate) enum Base {
    V2(v2::Base),
    V1(v1::Base),
    None { why: String },
}

/// As much of a group as must be there when the child is cloned; the rest is made while the child is at work.
pub(crate) enum Seed {
    V2(v2::Group),
    V1(v1::Seed),
    None,
}

/// The group of one cell.
pub(crate) enum Group {
    V2(v2::Group),
    V1(v1::Group),
    None,
}

/// What the kernel counted in a group that was new when the cell began: each value is a delta from zero.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counters {
    pub(crate) oom_kills: u64,
    pub(crate) pids_refused: u64,
    pub(crate) memory_peak: Option<u64>,
    pub(crate) processes_peak: Option<u64>,
    pub(crate) cpu_user_us: Option<u64>,
    pub(crate) cpu_system_us: Option<u64>,
}

/// What an open file of a group says, so that the supervisor can sample it without rights of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Meter {
    /// Bytes charged, caches included.
    MemoryCurrent,
    /// `active_file` and `inactive_file`: what the kernel could take back.
    MemoryStat,
    /// `usage_usec`.
    CpuStat,
    /// Nanoseconds.
    CpuNanos,
    /// `oom_kill`
    OomKills,
    /// `max`: forks that were refused.
    PidsRefused,
    /// Tasks, with init.
    PidsCurrent,
}

impl Base {
    /// Looks at the mounts once. Never fails: a host without groups is a host with fewer layers.
    pub(crate) fn find() -> Base {
        let mounts = match dir::mounts() {
            Ok(mounts) => mounts,
            Err(e) => {
                return Base::None { why: format!("cannot read /proc/self/mountinfo: {e}") };
            }
        };
        if let Some(unified) = mounts.v2.as_deref()
            && v2::has_controllers(unified)
        {
            return v2::Base::find(unified).map_or_else(|why| Base::None { why }, Base::V2);
        }
        v1::Base::find(&mounts).map_or_else(|why| Base::None { why }, Base::V1)
    }

    /// `cloned` is whether the child is cloned into it; if not, it goes there by itself.
    pub(crate) fn begin(&self, cloned: bool) -> io::Result<Seed> {
        match self {
            Base::V2(base) => base.make().map(Seed::V2),
            Base::V1(base) => base.begin(cloned).map(Seed::V1),
            Base::None { .. } => Ok(Seed::None),
        }
    }

    /// The whole group, and the files into which the child writes `0` to join what it is not in yet.
    pub(crate) fn complete(&self, seed: Seed, with_cpu: bool) -> Result<(Group, Vec<OwnedFd>), (io::Error, Seed)> {
        match (self, seed) {
            (Base::V1(base), Seed::V1(seed)) => match base.complete(seed, with_cpu) {
                Ok((group, joins)) => Ok((Group::V1(group), joins)),
                Err((e, seed)) => Err((e, Seed::V1(seed))),
            },
            (_, Seed::V2(group)) => Ok((Group::V2(group), vec![])),
            _ => Ok((Group::None, vec![])),
        }
    }

    /// Removes what a launcher that died without cleaning up has left.
    pub(crate) fn sweep(&self) {
        match self {
            Base::V2(base) => base.sweep(),
            Base::V1(base) => base.sweep(),
            Base::None { .. } => {}
        }
    }

    pub(crate) fn has_limits(&self) -> bool {
        !matches!(self, Base::None { .. })
    }

    /// What it gives and what it lacks, in words.
    pub(crate) fn describe(&self) -> (Vec<Applied>, Vec<Applied>) {
        match self {
            Base::V2(base) => base.describe(),
            Base::V1(base) => base.describe(),
            Base::None { why } => {
                let weaker = |layer, how: &str| Applied::new(layer, format!("{how}, because {why}"));
                (
                    vec![],
                    vec![
                        weaker(
                            "memory",
                            "RLIMIT_AS and a sample of resident memory every 10 to 100 ms instead of a cgroup",
                        ),
                        weaker("processes", "RLIMIT_NPROC, counted threads and samples instead of a cgroup"),
                        weaker("cpu", "cpu time is sampled and `cpus` is not enforced"),
                    ],
                )
            }
        }
    }
}

impl Seed {
    /// The group that clone3 puts the child in.
    pub(crate) fn clone_into(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Seed::V2(group) => Some(group.fd()),
            Seed::V1(seed) => seed.clone_into(),
            Seed::None => None,
        }
    }

    pub(crate) fn remove(self) {
        match self {
            Seed::V2(group) => group.remove(),
            Seed::V1(seed) => seed.remove(),
            Seed::None => {}
        }
    }
}

impl Group {
    /// `tasks` is how many may be in it.
    pub(crate) fn limit(&self, limits: &Limits, tasks: u64) -> io::Result<()> {
        match self {
            Group::V2(group) => group.limit(limits, tasks),
            Group::V1(group) => group.limit(limits, tasks),
            Group::None => Ok(()),
        }
    }

    /// Where one who was not cloned into it writes `0`, besides the files that `complete` gave.
    pub(crate) fn entrance(&self) -> io::Result<Option<OwnedFd>> {
        match self {
            Group::V2(group) => dir::open_file(group.fd(), "cgroup.procs", rustix::fs::OFlags::WRONLY).map(Some),
            Group::V1(_) | Group::None => Ok(None),
        }
    }

    pub(crate) fn meters(&self) -> Vec<(Meter, OwnedFd)> {
        match self {
            Group::V2(group) => group.meters(),
            Group::V1(group) => group.meters(),
            Group::None => vec![],
        }
    }

    /// SIGKILL to everything inside, where the kernel has a switch for it.
    pub(crate) fn kill(&self) {
        match self {
            Group::V2(group) => group.kill(),
            Group::V1(group) => group.kill(),
            Group::None => {}
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        match self {
            Group::V2(group) => group.counters(),
            Group::V1(group) => group.counters(),
            Group::None => Counters::default(),
        }
    }

    pub(crate) fn remove(self) {
        match self {
            Group::V2(group) => group.remove(),
            Group::V1(group) => group.remove(),
            Group::None => {}
        }
    }
}

/// The kernel's hard line. Scratch pages are charged to the group that writes them, so that the line lies above
/// both caps together: a full scratch then is ENOSPC and never an OOM kill. Between the two caps and the line the
/// supervisor samples what is not scratch and not cache.
fn memory_line(limits: &Limits) -> u64 {
    if limits.scratch == 0 {
        return limits.memory;
    }
    limits.memory.saturating_add(limits.scratch).saturating_add(limits.scratch_inodes.saturating_mul(INODE_COST))
}

/// Kernel memory that a file in the scratch takes besides its contents: inode and directory entry, generously.
pub(crate) const INODE_COST: u64 = 2048;

/// The init of the cell is one of the group's tasks and none of the program's.
pub(crate) fn tasks_line(limits: &Limits) -> u64 {
    limits.processes.saturating_add(1)
}

/// The same where a kernel of its own is between. The program's limit is held inside: this line is for the host. gVisor has
/// a process for each of the program's and, where it traces them, in each of these a thread for every thread of its own that
/// has ever run it; its own are two for each of the program's tasks, one for each processor, and some more. But no cell takes
/// more than a quarter of all the numbers that the host has for processes.
pub(crate) fn kernel_tasks_line(limits: &Limits, processors: u64) -> u64 {
    let own = limits.processes.saturating_mul(2).saturating_add(processors).saturating_add(64);
    let all = limits.processes.saturating_mul(own).saturating_add(processors.saturating_mul(8)).saturating_add(256);
    let numbers = files::read_proc("/proc/sys/kernel/pid_max").ok().and_then(|text| text.trim().parse::<u64>().ok());
    all.min(numbers.unwrap_or(PID_MAX) / 4)
}

/// Where the kernel does not tell: the least that it has.
const PID_MAX: u64 = 32768;

/// Microseconds in each period of 100 ms. The kernel takes no less than 1 ms.
fn cpu_quota(limits: &Limits) -> u64 {
    (limits.milli_cpus * 100).max(1000)
}

const CPU_PERIOD_US: u64 = 100_000;
