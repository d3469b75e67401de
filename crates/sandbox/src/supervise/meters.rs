//! Sampling: how much is used now, from the group's files, or from the cell's own proc where there is no group.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use crate::cgroup::Meter;
use crate::report::Moved;
use crate::tasks;

use super::memory_files::MemoryFiles;

/// What can be read of a cell while it runs.
pub(super) struct Meters {
    pub(super) group: Vec<(Meter, OwnedFd)>,
    /// The cell's own /proc: it lists the cell's processes only.
    pub(super) proc: Option<OwnedFd>,
    /// They are those of a kernel of its own, whose tasks say nothing of the program's, and whose memory is the program's.
    pub(super) own_kernel: bool,
}

/// Bytes in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    pub(super) anonymous: u64,
    /// Shared memory; mapped pages of the scratch are in it too.
    pub(super) shared: u64,
}

impl Memory {
    /// Without as much of the shared part as the scratch may account for.
    pub(super) fn without_scratch(self, in_scratch: u64) -> u64 {
        self.anonymous + self.shared.saturating_sub(in_scratch)
    }
}

/// What a look through the cell's /proc adds up to.
#[derive(Clone, Debug, Default)]
pub(super) struct Census {
    /// Processes and threads, without init.
    pub(super) tasks: u64,
    pub(super) seen: Vec<tasks::Process>,
    /// Pages counted for each that has them: an upper bound.
    pub(super) memory: Memory,
    /// Of the living, with what they waited for.
    pub(super) cpu: Duration,
    /// Of each process alone.
    pub(super) each_cpu: Vec<(u32, Duration)>,
}

impl Meters {
    fn text(&self, meter: Meter, buf: &mut [u8; 8192]) -> Option<usize> {
        let (_, fd) = self.group.iter().find(|(m, _)| *m == meter)?;
        rustix::io::pread(fd, buf, 0).ok()
    }

    fn keyed(&self, meter: Meter, key: &str) -> Option<u64> {
        let mut buf = [0u8; 8192];
        let n = self.text(meter, &mut buf)?;
        let text = std::str::from_utf8(&buf[..n]).ok()?;
        if key.is_empty() {
            return text.trim().parse().ok();
        }
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok())
    }

    pub(super) fn has_group(&self) -> bool {
        self.group.iter().any(|(meter, _)| *meter == Meter::MemoryCurrent)
    }

    pub(super) fn memory_charged(&self) -> Option<u64> {
        self.keyed(Meter::MemoryCurrent, "")
    }

    /// Page cache that the kernel would take back rather than kill for.
    pub(super) fn memory_reclaimable(&self) -> u64 {
        let mut buf = [0u8; 8192];
        let n = self.text(Meter::MemoryStat, &mut buf).unwrap_or(0);
        let text = std::str::from_utf8(&buf[..n]).unwrap_or_default();
        let of = |line: &str| {
            let (key, bytes) = line.split_once(' ')?;
            matches!(key, "active_file" | "inactive_file").then(|| bytes.parse::<u64>().ok())?
        };
        text.lines().filter_map(of).sum()
    }

    /// Tasks of the program, as its group counts them: init is in it too.
    pub(super) fn tasks(&self) -> Option<u64> {
        if self.own_kernel {
            return None;
        }
        Some(self.keyed(Meter::PidsCurrent, "")?.saturating_sub(1))
    }

    pub(super) fn oom_kills(&self) -> u64 {
        self.keyed(Meter::OomKills, "oom_kill").unwrap_or(0)
    }

    pub(super) fn forks_refused(&self) -> u64 {
        if self.own_kernel {
            return 0;
        }
        self.keyed(Meter::PidsRefused, "max").unwrap_or(0)
    }

    pub(super) fn cpu(&self) -> Option<Duration> {
        self.keyed(Meter::CpuStat, "usage_usec")
            .map(Duration::from_micros)
            .or_else(|| self.keyed(Meter::CpuNanos, "").map(Duration::from_nanos))
    }

    pub(super) fn census(&self) -> Census {
        let mut sum = Census::default();
        let Some(proc) = &self.proc else { return sum };
        let mut files = MemoryFiles::default();
        tasks::each(proc.as_fd(), |process| {
            let (pid, ticks) = (process.pid, |place| Duration::from_millis(process.field(place) * 10));
            sum.cpu += ticks(14) + ticks(15) + ticks(16) + ticks(17);
            if process.is_init {
                return;
            }
            sum.each_cpu.push((pid, ticks(14) + ticks(15)));
            sum.tasks += process.threads();
            sum.seen.push(process.clone());
            let status = living(proc.as_fd(), pid, "status");
            let anonymous = kilobytes(&status, "RssAnon:");
            sum.memory.anonymous += anonymous;
            match self.own_kernel {
                true => files.add(proc.as_fd(), pid, anonymous),
                false => sum.memory.shared += kilobytes(&status, "RssShmem:"),
            }
        });
        sum.memory.anonymous += files.bytes();
        sum
    }

    /// Of the tasks of a census, those that were there at one moment.
    pub(super) fn at_once(&self, census: &Census) -> u64 {
        self.proc.as_ref().map_or(0, |proc| tasks::at_once(proc.as_fd(), &census.seen))
    }

    /// The same memory, each page counted once: exact, and slower to get.
    pub(super) fn memory_exact(&self) -> Memory {
        let mut sum = Memory::default();
        let Some(proc) = &self.proc else { return sum };
        let mut files = MemoryFiles::default();
        tasks::each(proc.as_fd(), |&tasks::Process { pid, .. }| {
            let rollup = living(proc.as_fd(), pid, "smaps_rollup");
            let anonymous = kilobytes(&rollup, "Pss_Anon:");
            sum.anonymous += anonymous;
            match self.own_kernel {
                true => files.add(proc.as_fd(), pid, anonymous),
                false => sum.shared += kilobytes(&rollup, "Pss_Shmem:"),
            }
        });
        sum.anonymous += files.bytes();
        sum
    }

    /// What read and write calls of the cell's processes have moved. Calls and not blocks: a cell writes to memory and to
    /// pipes, and a disk sees none of it.
    pub(super) fn moved(&self) -> Option<Moved> {
        let proc = self.proc.as_ref()?;
        let mut sum = None;
        for pid in tasks::pids(proc.as_fd()).filter(|pid| *pid != 1) {
            let Some(text) = tasks::read(proc.as_fd(), &format!("{pid}/io")) else { continue };
            let bytes = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.trim().parse::<u64>().ok());
            if let (Some(read), Some(written)) = (bytes("rchar:"), bytes("wchar:")) {
                let all: &mut Moved = sum.get_or_insert_default();
                (all.read, all.written) = (all.read + read, all.written + written);
            }
        }
        sum
    }
}

/// A file of a process, or of a thread of it when the first one has ended: then the process's own says nothing of its
/// memory, which is all there still.
fn living(proc: BorrowedFd<'_>, pid: u32, name: &str) -> String {
    let own = tasks::read(proc, &format!("{pid}/{name}")).unwrap_or_default();
    if own.contains("RssAnon:") || own.contains("Pss_Anon:") {
        return own;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let tasks = rustix::fs::openat(proc, format!("{pid}/task"), flags, Mode::empty());
    let Ok(dir) = tasks.and_then(rustix::fs::Dir::new) else { return own };
    dir.flatten()
        .filter_map(|entry| entry.file_name().to_str().ok()?.parse::<u32>().ok())
        .filter(|tid| *tid != pid)
        .filter_map(|tid| tasks::read(proc, &format!("{pid}/task/{tid}/{name}")))
        .find(|text| text.contains("RssAnon:") || text.contains("Pss_Anon:"))
        .unwrap_or(own)
}

/// Bytes of a line such as `RssAnon:    12 kB`.
fn kilobytes(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|l| l.strip_prefix(key)?.trim().strip_suffix(" kB"));
    line.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
}
