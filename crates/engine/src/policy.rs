//! Named sets of limits and rules. A request may only lower what its policy says.

use hotcell_contract::{Limits, NetworkPolicy, OnViolation};

use crate::request::{Capsule, Request, default_limits};

/// One built-in policy.
#[derive(Clone, Debug)]
pub struct Policy {
    pub name: &'static str,
    limits: Limits,
    on_violation: OnViolation,
    capsule: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("`{0}` is not a policy that is known here: use yellow_lane")]
    Unknown(String),
    #[error("the policy {policy} has no network: leave out --network")]
    Network { policy: &'static str },
}

impl Policy {
    pub fn named(name: &str) -> Result<Policy, PolicyError> {
        match name {
            // Unverified capsules that only look on: a tenth of a processor, 128 MiB, five seconds, one process, and
            // the first attempt at anything else is the last.
            "yellow_lane" => Ok(Policy {
                name: "yellow_lane",
                limits: Limits { wall_ms: 5_000, cpus: 0.1, memory_bytes: 128 << 20, processes: 1, ..default_limits() },
                on_violation: OnViolation::Kill,
                capsule: true,
            }),
            other => Err(PolicyError::Unknown(other.to_owned())),
        }
    }

    /// Brings a request down to what the policy allows.
    pub fn apply(&self, request: &mut Request) -> Result<(), PolicyError> {
        if request.network != NetworkPolicy::None {
            return Err(PolicyError::Network { policy: self.name });
        }
        let (asked, most) = (&mut request.limits, &self.limits);
        asked.wall_ms = asked.wall_ms.min(most.wall_ms);
        asked.cpus = asked.cpus.min(most.cpus);
        asked.memory_bytes = asked.memory_bytes.min(most.memory_bytes);
        asked.processes = asked.processes.min(most.processes);
        asked.open_files = asked.open_files.min(most.open_files);
        asked.file_size_bytes = asked.file_size_bytes.min(most.file_size_bytes);
        asked.scratch_bytes = asked.scratch_bytes.min(most.scratch_bytes);
        asked.scratch_inodes = asked.scratch_inodes.min(most.scratch_inodes);
        asked.output_bytes = asked.output_bytes.min(most.output_bytes);
        request.on_violation = self.on_violation;
        if self.capsule {
            request.capsule.get_or_insert_with(Capsule::default);
        }
        Ok(())
    }
}
