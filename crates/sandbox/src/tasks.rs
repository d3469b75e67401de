//! The processes of a cell, from its own /proc, which lists no others.

use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};

/// The numbers of all processes.
pub(crate) fn pids(proc: BorrowedFd<'_>) -> impl Iterator<Item = u32> {
    // Read anew each time: an iterator of its own does not move the shared position of the fd.
    let dir = rustix::fs::Dir::read_from(proc).into_iter().flatten().flatten();
    dir.filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok())
}

/// Calls `look` for each process, with its number and the fields of its `stat` that follow the name, from the third on.
pub(crate) fn each(proc: BorrowedFd<'_>, mut look: impl FnMut(u32, &[u64])) {
    for pid in pids(proc) {
        let Some(stat) = read(proc, &format!("{pid}/stat")) else { continue };
        // The name, in parentheses, may hold anything: what follows the last one is numbers.
        let Some((_, fields)) = stat.rsplit_once(") ") else { continue };
        let fields: Vec<u64> = fields.split(' ').map(|f| f.parse().unwrap_or(0)).collect();
        look(pid, &fields);
    }
}

/// The field that proc(5) gives this number.
pub(crate) fn field(fields: &[u64], number: usize) -> u64 {
    fields.get(number - 3).copied().unwrap_or(0)
}

/// Its threads.
pub(crate) fn threads(fields: &[u64]) -> u64 {
    field(fields, 20)
}

/// Processes and threads, without init.
pub(crate) fn count(proc: BorrowedFd<'_>) -> u64 {
    let mut tasks = 0;
    each(proc, |pid, fields| tasks += if pid == 1 { 0 } else { threads(fields) });
    tasks
}

/// A small file. Lossy: a process can give itself any bytes for a name, and must not get out of the count by that.
pub(crate) fn read(proc: BorrowedFd<'_>, name: &str) -> Option<String> {
    let mut buf = [0u8; 2048];
    let fd = rustix::fs::openat(proc, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let n = rustix::io::read(&fd, &mut buf).ok()?;
    Some(String::from_utf8_lossy(&buf[..n]).into_owned())
}
