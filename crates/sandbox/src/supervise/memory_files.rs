//! Where a kernel of its own keeps the program's memory: in files that have no name, which its processes map as they need.
//!
//! Neither a sum of what is mapped nor each page's share tells how much there is: a page that a hundred processes map is one,
//! and one that nobody maps at the moment, because the program has made it inaccessible, is there all the same. What the file
//! itself takes is both.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Mode, OFlags};

/// Who has less memory of its own than that is no kernel, but a process that one has made for the program: it has the kernel's
/// own files, and a hundred of them would be looked through a hundred times.
const OF_A_KERNEL: u64 = 64 << 10;

/// Each by what it is, however many have it open, with the bytes that it takes.
#[derive(Default)]
pub(super) struct MemoryFiles {
    seen: HashMap<(u64, u64), u64>,
}

impl MemoryFiles {
    /// Those of a process that has so much memory of its own.
    pub(super) fn add(&mut self, proc: BorrowedFd<'_>, pid: u32, anonymous: u64) {
        if anonymous < OF_A_KERNEL {
            return;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // It is gone, and its memory with it.
        let Ok(dir) = rustix::fs::openat(proc, format!("{pid}/fd"), flags, Mode::empty()) else { return };
        for entry in rustix::fs::Dir::read_from(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_memory =
                rustix::fs::readlinkat(&dir, name, [0u8; 64]).is_ok_and(|link| link.to_bytes().starts_with(b"/memfd:"));
            if let (true, Ok(stat)) = (is_memory, rustix::fs::statat(&dir, name, AtFlags::empty())) {
                self.seen.insert((stat.st_dev, stat.st_ino), stat.st_blocks as u64 * 512);
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.seen.values().sum()
    }
}
