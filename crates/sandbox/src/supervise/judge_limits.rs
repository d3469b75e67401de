//! Limits that the kernel does not enforce by itself, from samples whose distance follows what is left of them.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use super::meters::{Census, Meters};
use crate::cgroup::INODE_COST;
use crate::report::{Detail, Kind};
use crate::spec::Limits;
use crate::sys::files;

/// The fastest that memory is filled: what is left of a limit lasts at least so long.
const BYTES_PER_MS: u64 = 4 << 20;
const CLOSEST: Duration = Duration::from_millis(2);
const FARTHEST: Duration = Duration::from_millis(100);
/// Without a group a sample is a walk through the cell's /proc: dearer, and the only line there is.
const WITHOUT_GROUP: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));

/// Most of what goes wrong does so at the beginning.
const YOUNG: Duration = Duration::from_millis(300);

#[derive(Default)]
pub(super) struct Samples {
    next: Option<Instant>,
    began: Option<Instant>,
    memory_peak: u64,
    scratch_peak: u64,
    tasks_peak: u64,
    /// Tasks at the last census, and how many were made since: an upper bound of what there is.
    tasks: u64,
    tasks_since: u64,
    /// Of those made before the last census, as many as it may have missed because they were still on their way.
    tasks_missed: u64,
    /// Processor time of every process ever seen, by pid: what nobody waited for is counted nowhere else.
    cpu_seen: std::collections::HashMap<u32, Duration>,
    counts_tasks: bool,
    cpu: Duration,
    cpu_before: Duration,
    last: Last,
}

/// What the last sample found.
#[derive(Clone, Copy, Default)]
pub(super) struct Last {
    pub(super) cpu: Duration,
    pub(super) memory: u64,
    /// Caches of the group are in it; without a group, pages that several processes share are in it for each.
    pub(super) memory_is_rough: bool,
    pub(super) scratch: u64,
    /// Where no group counts.
    pub(super) processes: usize,
    pub(super) tasks: u64,
}

pub(super) type Breach = (Kind, Detail, &'static str);

/// What the kernel's own counters say.
pub(super) fn counted(oom_kills: u64, forks_refused: u64, limits: &Limits) -> Vec<Breach> {
    let breach = |kind, limit, observed, note: &str, evidence| {
        let detail =
            Detail { limit: Some(limit), observed: Some(observed), note: Some(note.into()), ..Detail::default() };
        (kind, detail, evidence)
    };
    let mut breaches = vec![];
    if oom_kills > 0 {
        breaches.push(breach(Kind::Memory, limits.memory, oom_kills, "oom kills", "cgroup oom_kill count"));
    }
    if forks_refused > 0 {
        let evidence = "cgroup pids.events max";
        breaches.push(breach(Kind::Processes, limits.processes, forks_refused, "forks refused", evidence));
    }
    breaches
}

impl Samples {
    /// The program starts now: what its group has used so far was the cell's set-up.
    pub(super) fn begin(&mut self, now: Instant, cpu_before: Duration) {
        self.next = Some(now + CLOSEST);
        self.began = Some(now);
        self.cpu_before = cpu_before;
        self.tasks = 1;
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    pub(super) fn last(&self) -> Last {
        self.last
    }

    pub(super) fn memory_peak(&self) -> u64 {
        self.memory_peak
    }

    /// Processor time at the last sample, where there is no group to ask.
    pub(super) fn cpu(&self) -> Duration {
        self.cpu
    }

    pub(super) fn scratch_peak(&self) -> u64 {
        self.scratch_peak
    }

    pub(super) fn processes_peak(&self) -> Option<u64> {
        self.counts_tasks.then_some(self.tasks_peak.max(1))
    }

    /// One look at everything; returns the limits that are passed.
    pub(super) fn take(
        &mut self,
        now: Instant,
        meters: &Meters,
        scratch: Option<&OwnedFd>,
        limits: &Limits,
    ) -> Vec<Breach> {
        let mut breaches = vec![];
        if let Some((detail, evidence)) = self.disk(scratch, limits) {
            breaches.push((Kind::Disk, detail, evidence));
        }
        breaches.extend(counted(meters.oom_kills(), meters.forks_refused(), limits));
        // Asked for after each look at memory: what was written meanwhile would be taken for memory otherwise.
        let in_scratch = || scratch.and_then(|fd| files::usage(fd.as_fd()).ok()).unwrap_or_default();
        let ((memory, memory_is_rough), cpu) = if meters.has_group() {
            (self.group_memory(meters, &in_scratch, limits), self.group_cpu(meters))
        } else {
            self.census(meters, &in_scratch, limits)
        };
        let in_scratch = in_scratch().bytes_used;
        self.memory_peak = self.memory_peak.max(memory);
        let (cpu_so_far, tasks) = (cpu.max(self.last.cpu), self.tasks);
        self.last = Last { cpu: cpu_so_far, memory, memory_is_rough, scratch: in_scratch, tasks, ..self.last };
        if memory > limits.memory {
            let detail = Detail { limit: Some(limits.memory), observed: Some(memory), ..Detail::default() };
            let evidence = if meters.has_group() { "cgroup memory, sampled" } else { "resident memory, sampled" };
            breaches.push((Kind::Memory, detail, evidence));
        }
        let mut until_cpu = FARTHEST;
        if let Some(limit) = limits.cpu_time {
            if cpu >= limit {
                let detail = Detail {
                    limit: Some(limit.as_millis() as u64),
                    observed: Some(cpu.as_millis() as u64),
                    note: Some("cpu time".into()),
                    ..Detail::default()
                };
                breaches.push((Kind::Timeout, detail, "cpu time, sampled"));
            }
            let processors = limits.milli_cpus.div_ceil(1000).max(1) as u32;
            until_cpu = (limit.saturating_sub(cpu)) / processors;
        }
        let room = limits.memory.saturating_sub(memory).min(limits.scratch.saturating_sub(in_scratch).max(1 << 20));
        let until_full = Duration::from_millis(room / BYTES_PER_MS);
        let (closest, farthest) = if meters.has_group() { (CLOSEST, FARTHEST) } else { WITHOUT_GROUP };
        // Half of the tasks that it may have, or nobody knows yet: what is too much may come and go quickly.
        let is_young = self.began.is_some_and(|began| now.duration_since(began) < YOUNG) && !meters.has_group();
        let farthest = if is_young || self.tasks * 2 > limits.processes { closest } else { farthest };
        self.next = Some(now + until_full.min(until_cpu).clamp(closest, farthest));
        breaches
    }

    fn group_cpu(&self, meters: &Meters) -> Duration {
        meters.cpu().unwrap_or_default().saturating_sub(self.cpu_before)
    }

    /// What is neither scratch nor a cache that the kernel would give back; or, under the limit, more than that.
    fn group_memory(&self, meters: &Meters, in_scratch: &dyn Fn() -> files::Usage, limits: &Limits) -> (u64, bool) {
        let charged = meters.memory_charged().unwrap_or(0);
        let used = in_scratch();
        let charged = charged.saturating_sub(used.bytes_used + used.inodes_used * INODE_COST);
        match charged > limits.memory {
            true => (charged.saturating_sub(meters.memory_reclaimable()), false),
            false => (charged, true),
        }
    }

    fn census(
        &mut self,
        meters: &Meters,
        in_scratch: &dyn Fn() -> files::Usage,
        limits: &Limits,
    ) -> ((u64, bool), Duration) {
        let census = meters.census();
        if !meters.own_kernel {
            self.counted(&census, meters);
        }
        self.last.processes = census.each_cpu.len();
        self.cpu_seen.extend(census.each_cpu);
        // Both are less than the truth or equal to it: one misses the dead that nobody waited for, the other what
        // happened between two samples.
        let cpu = census.cpu.max(self.cpu_seen.values().sum());
        self.cpu = self.cpu.max(cpu);
        // Forks share pages, and a sum counts them for each: look closely before accusing.
        let bound = census.memory.without_scratch(in_scratch().bytes_used);
        let memory = match bound > limits.memory {
            true => (meters.memory_exact().without_scratch(in_scratch().bytes_used), false),
            false => (bound, true),
        };
        (memory, cpu)
    }

    fn counted(&mut self, census: &Census, meters: &Meters) {
        self.tasks = census.tasks;
        self.tasks_missed = self.tasks_since;
        self.tasks_since = 0;
        if census.tasks > self.tasks_peak {
            self.were_at_once(meters.at_once(census));
        }
    }

    pub(super) fn were_at_once(&mut self, tasks: u64) {
        self.counts_tasks = true;
        self.tasks_peak = self.tasks_peak.max(tasks);
    }

    /// Whether the last census, which may count what was replaced meanwhile twice, is above the limit.
    pub(super) fn seem_too_many(&self, limit: u64) -> bool {
        self.counts_tasks && self.tasks > limit
    }

    /// A thread is about to be made. Says how many there are when there is no room for it.
    pub(super) fn new_task(&mut self, meters: &Meters, limit: u64) -> Option<u64> {
        if self.tasks + self.tasks_since + self.tasks_missed >= limit {
            self.counted(&meters.census(), meters);
            if self.tasks >= limit {
                return Some(self.tasks);
            }
        }
        self.tasks_since += 1;
        None
    }

    /// A scratch in which nothing is free any more.
    pub(super) fn disk(&mut self, scratch: Option<&OwnedFd>, limits: &Limits) -> Option<(Detail, &'static str)> {
        if limits.scratch == 0 {
            return None;
        }
        let used = files::usage(scratch?.as_fd()).ok()?;
        self.scratch_peak = self.scratch_peak.max(used.bytes_used);
        if used.bytes_free == 0 {
            let detail = Detail { limit: Some(limits.scratch), observed: Some(used.bytes_used), ..Detail::default() };
            return Some((detail, "scratch is full"));
        }
        if used.inodes_free == 0 {
            let detail =
                Detail { limit: Some(limits.scratch_inodes), observed: Some(used.inodes_used), ..Detail::default() };
            return Some((detail, "scratch has no inode left"));
        }
        None
    }
}
