//! The processes of a cell, from its own /proc, which lists no others.

use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};

/// The numbers of all processes.
pub(crate) fn pids(proc: BorrowedFd<'_>) -> impl Iterator<Item = u32> {
    // Read anew each time: an iterator of its own does not move the shared position of the fd.
    let dir = rustix::fs::Dir::read_from(proc).into_iter().flatten().flatten();
    dir.filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok())
}

#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Init, or what it forks to see whether there is room. The program begins a session of its own, and nobody comes
    /// back into one that was left.
    pub(crate) is_init: bool,
    stat: Vec<u64>,
}

impl Process {
    fn read(proc: BorrowedFd<'_>, pid: u32) -> Option<Process> {
        let stat = read(proc, &format!("{pid}/stat"))?;
        // The name, in parentheses, may hold anything: what follows the last one is numbers.
        let (_, fields) = stat.rsplit_once(") ")?;
        Some(Process { pid, is_init: false, stat: fields.split(' ').map(|f| f.parse().unwrap_or(0)).collect() })
    }

    /// The number of its `stat` that has this place in proc(5).
    pub(crate) fn field(&self, place: usize) -> u64 {
        self.stat.get(place - 3).copied().unwrap_or(0)
    }

    pub(crate) fn threads(&self) -> u64 {
        self.field(20)
    }

    fn session(&self) -> u64 {
        self.field(6)
    }

    fn began(&self) -> u64 {
        self.field(22)
    }
}

pub(crate) fn each(proc: BorrowedFd<'_>, mut look: impl FnMut(&Process)) {
    let mut session_of_init = None;
    for mut process in pids(proc).filter_map(|pid| Process::read(proc, pid)) {
        // The kernel lists it first.
        if process.pid == 1 {
            session_of_init = Some(process.session());
        }
        process.is_init = session_of_init == Some(process.session());
        look(&process);
    }
}

/// How many processes and threads of the program there were at one moment, of those that a walk has seen: who is there still
/// was there when it ended. The walk alone counts twice what was replaced meanwhile.
pub(crate) fn at_once(proc: BorrowedFd<'_>, seen: &[Process]) -> u64 {
    let still = |before: &Process| {
        let now = Process::read(proc, before.pid).filter(|now| now.began() == before.began())?;
        Some(now.threads().min(before.threads()))
    };
    seen.iter().filter(|process| !process.is_init).filter_map(still).sum()
}

/// Processes and threads of the program, by one walk.
pub(crate) fn count(proc: BorrowedFd<'_>) -> u64 {
    let mut tasks = 0;
    each(proc, |process| tasks += if process.is_init { 0 } else { process.threads() });
    tasks
}

/// A small file. Lossy: a process can give itself any bytes for a name, and must not get out of the count by that.
pub(crate) fn read(proc: BorrowedFd<'_>, name: &str) -> Option<String> {
    let mut buf = [0u8; 2048];
    let fd = rustix::fs::openat(proc, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let n = rustix::io::read(&fd, &mut buf).ok()?;
    Some(String::from_utf8_lossy(&buf[..n]).into_owned())
}
