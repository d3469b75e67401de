//! What a cell is made like, by what its plan asks for.

use crate::spec::Network;
use crate::sys::process;
use crate::wire::Plan;

/// What can't be changed about a cell once it is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) own_network: bool,
    pub(super) cpu_group: bool,
    /// Made by a runtime, whom a porter calls, or in a container that an engine has made.
    pub(super) porter: bool,
    /// The porter is the first of a pid namespace: all that its runtime starts is in it, and dies with it.
    pub(super) own_pids: bool,
    /// In groups of ours. Out of an engine's only root can take a process.
    pub(super) grouped: bool,
}

impl Shape {
    pub(super) fn of(plan: &Plan, root: bool) -> Shape {
        Shape {
            own_network: plan.network != Network::Full,
            cpu_group: needs_cpu_group(plan.limits.milli_cpus),
            porter: plan.runtime.is_some() || plan.engine.is_some(),
            own_pids: plan.runtime.as_ref().is_some_and(|runtime| runtime.kind.has_own_kernel()),
            grouped: root || plan.engine.is_none(),
        }
    }

    /// What most runs want.
    pub(super) fn usual() -> Shape {
        Shape { own_network: true, cpu_group: needs_cpu_group(2000), porter: false, own_pids: false, grouped: true }
    }
}

/// Without it a program on a host of that many processors is not slowed down anyway.
fn needs_cpu_group(milli_cpus: u64) -> bool {
    milli_cpus < u64::from(process::processors()) * 1000
}
