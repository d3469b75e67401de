//! Calls that change files: where they would.

use std::os::fd::OwnedFd;

use rustix::fs::FileType;

use super::walk::{Lost, Place, Walk, name_of};
use super::{Seen, Witness, read_array, read_string};
use crate::filter;
use crate::report::{Detail, Kind};
use crate::sys::seccomp::{Answer, Notification};

const RESOLVE_IN_ROOT: u64 = 0x10;

/// What about a path makes the call a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The file itself; nothing happens when it is not there.
    File,
    /// The file itself, which is made when it is not there.
    FileOrNew,
    /// Only if it has to be made.
    New,
    /// An entry that appears; nothing happens when it is there.
    Appears,
    /// An entry that goes; nothing happens when it is not there.
    Goes,
    /// An entry that appears or is replaced.
    Replaced,
}

/// A directory fd (or the working directory) and the address of a path; no path is the fd itself.
struct Target {
    dir: Option<i32>,
    path: u64,
    change: Change,
    follow: bool,
    /// openat2's: the directory is the root.
    in_root: bool,
    /// AT_EMPTY_PATH: an empty path is the directory fd itself. Without it, an error.
    empty_is_dir: bool,
}

/// Files of its own in /proc that runtimes write when they may.
const OWN_PROC: [&[u8]; 5] = [b"comm", b"oom_score_adj", b"timerslack_ns", b"coredump_filter", b"clear_refs"];

/// null, zero, full, random, urandom: what a cell has.
const DEVICES: [u32; 5] = [3, 5, 7, 8, 9];
/// Majors of the program's end of one: a cell has its own at most.
const TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;

impl Witness {
    pub(super) fn write(&self, call: &Notification) -> Seen {
        let mut blind = false;
        for target in targets(call) {
            match self.place(call.pid, &target) {
                Ok(place) if self.is_in_order(&place, target.change) || self.is_habit(&place) => {}
                Ok(place) => {
                    let detail = Detail {
                        syscall: Some(filter::name(call.nr)),
                        path: Some(path_of(&place)),
                        pid: Some(call.pid),
                        ..Detail::default()
                    };
                    return Seen::Attempt { kind: Kind::Write, detail: Box::new(detail), answer: Answer::Continue };
                }
                Err(Lost::Refused) => {}
                Err(Lost::Blind) => blind = true,
            }
        }
        if blind { Seen::Blind(Answer::Continue) } else { Seen::Nothing(Answer::Continue) }
    }

    fn place(&self, pid: i32, target: &Target) -> Result<Place, Lost> {
        let path = match target.path {
            0 => vec![],
            address => read_string(pid, address)?,
        };
        let walk = self.walk(pid);
        if path.is_empty() && target.path != 0 && !target.empty_is_dir {
            return Err(Lost::Refused);
        }
        if path.is_empty() {
            let file = walk.base(target.dir)?;
            let dir = file.try_clone().map_err(|_| Lost::Refused)?;
            return Ok(Place { dir, name: vec![], file: Some(file), by_fd: true });
        }
        if target.in_root {
            let base = walk.base(target.dir)?;
            let start = base.try_clone().map_err(|_| Lost::Refused)?;
            return Walk { root: &base, ..walk }.locate(start, &path, target.follow);
        }
        let start = match path[0] {
            b'/' => self.root.try_clone().map_err(|_| Lost::Refused)?,
            _ => walk.base(target.dir)?,
        };
        walk.locate(start, &path, target.follow)
    }

    pub(super) fn walk(&self, pid: i32) -> Walk<'_> {
        Walk { pid, root: &self.root, proc: self.proc }
    }

    /// Whether the change lies in the scratch, on a harmless device, or would not happen at all.
    fn is_in_order(&self, place: &Place, change: Change) -> bool {
        match (change, &place.file) {
            (Change::New | Change::Appears, Some(_)) | (Change::File | Change::Goes, None) => true,
            (Change::File | Change::FileOrNew, Some(file)) => self.may_change(file, place),
            // An entry is a matter of the directory it is in.
            _ => rustix::fs::fstat(&place.dir).is_ok_and(|stat| self.scratch == Some(stat.st_dev)),
        }
    }

    fn may_change(&self, file: &OwnedFd, place: &Place) -> bool {
        let Ok(stat) = rustix::fs::fstat(file) else { return true };
        if self.scratch == Some(stat.st_dev) {
            return true;
        }
        match FileType::from_raw_mode(stat.st_mode) {
            // A mask over a file of /proc is a device too, and no place to write.
            FileType::CharacterDevice => {
                let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
                let of_the_cell = TERMINALS.contains(&major) || (major == 1 && DEVICES.contains(&minor));
                place.by_fd || (of_the_cell && !self.is_in_proc(place))
            }
            FileType::Fifo | FileType::Socket => place.by_fd,
            // A memory file, or one that was unlinked while open, has no name to be outside with.
            _ => place.by_fd && stat.st_nlink == 0,
        }
    }

    fn is_in_proc(&self, place: &Place) -> bool {
        rustix::fs::fstat(&place.dir).is_ok_and(|stat| stat.st_dev == self.proc.0)
    }

    /// Attempts that runtimes make out of habit and do without.
    fn is_habit(&self, place: &Place) -> bool {
        if self.is_in_proc(place) {
            return !place.by_fd && OWN_PROC.contains(&place.name.as_slice());
        }
        let dir = name_of(&place.dir);
        // Shells and getpass ask whether there is a terminal.
        (place.name == b"tty" && dir == "/dev")
            || place.name == b"__pycache__"
            || dir.split('/').any(|part| part == "__pycache__")
            || self.quiet.iter().any(|place| std::path::Path::new(&dir).starts_with(place))
    }
}

fn path_of(place: &Place) -> String {
    match &place.file {
        Some(file) if place.by_fd || place.name.is_empty() => name_of(file),
        _ => format!("{}/{}", name_of(&place.dir).trim_end_matches('/'), String::from_utf8_lossy(&place.name)),
    }
}

fn targets(call: &Notification) -> Vec<Target> {
    let a = call.args;
    let has = |flags: u64, bit: i32| flags as i32 & bit != 0;
    let fd = |raw: u64| (raw as i32 != libc::AT_FDCWD).then_some(raw as i32);
    let one =
        |dir, path, change, follow| vec![Target { dir, path, change, follow, in_root: false, empty_is_dir: false }];
    let by_flags = |flags: u64| {
        let mut targets = one(fd(a[0]), a[1], Change::File, !has(flags, libc::AT_SYMLINK_NOFOLLOW));
        targets.iter_mut().for_each(|t| t.empty_is_dir = has(flags, libc::AT_EMPTY_PATH));
        targets
    };
    let open = |dir, path, flags: u64| {
        // O_EXCL with O_CREAT, and O_NOFOLLOW, take a link for what it is.
        let exclusive = has(flags, libc::O_CREAT) && has(flags, libc::O_EXCL);
        let follow = !exclusive && !has(flags, libc::O_NOFOLLOW);
        open_change(flags).map_or(vec![], |change| one(dir, path, change, follow))
    };
    match i64::from(call.nr) {
        libc::SYS_open => open(None, a[0], a[1]),
        libc::SYS_openat => open(fd(a[0]), a[1], a[2]),
        libc::SYS_openat2 => {
            let Some(how) = read_array::<24>(call.pid, a[2]) else { return vec![] };
            let word = |at: usize| u64::from_ne_bytes(how[at..at + 8].try_into().unwrap_or_default());
            let mut targets = open(fd(a[0]), a[1], word(0));
            targets.iter_mut().for_each(|t| t.in_root = word(16) & RESOLVE_IN_ROOT != 0);
            targets
        }
        libc::SYS_creat => one(None, a[0], Change::FileOrNew, true),
        libc::SYS_mkdir | libc::SYS_mknod => one(None, a[0], Change::Appears, false),
        libc::SYS_mkdirat | libc::SYS_mknodat => one(fd(a[0]), a[1], Change::Appears, false),
        libc::SYS_rmdir | libc::SYS_unlink => one(None, a[0], Change::Goes, false),
        libc::SYS_unlinkat => one(fd(a[0]), a[1], Change::Goes, false),
        libc::SYS_rename => [one(None, a[0], Change::Goes, false), one(None, a[1], Change::Replaced, false)]
            .into_iter()
            .flatten()
            .collect(),
        libc::SYS_renameat | libc::SYS_renameat2 => {
            let from = one(fd(a[0]), a[1], Change::Goes, false);
            from.into_iter().chain(one(fd(a[2]), a[3], Change::Replaced, false)).collect()
        }
        libc::SYS_link | libc::SYS_symlink => one(None, a[1], Change::Appears, false),
        libc::SYS_linkat => one(fd(a[2]), a[3], Change::Appears, false),
        libc::SYS_symlinkat => one(fd(a[1]), a[2], Change::Appears, false),
        libc::SYS_lchown | libc::SYS_lsetxattr | libc::SYS_lremovexattr => one(None, a[0], Change::File, false),
        libc::SYS_truncate
        | libc::SYS_chmod
        | libc::SYS_chown
        | libc::SYS_utime
        | libc::SYS_utimes
        | libc::SYS_setxattr
        | libc::SYS_removexattr => one(None, a[0], Change::File, true),
        libc::SYS_fchmod | libc::SYS_fchown | libc::SYS_fsetxattr | libc::SYS_fremovexattr => {
            one(fd(a[0]), 0, Change::File, true)
        }
        libc::SYS_fchownat => by_flags(a[4]),
        libc::SYS_utimensat | libc::SYS_fchmodat2 => by_flags(a[3]),
        // All others of the list name a directory and a path; their flags, where they have any, come third.
        _ => by_flags(a[2]),
    }
}

/// What opening with these flags changes, if anything.
fn open_change(flags: u64) -> Option<Change> {
    let flags = flags as i32;
    if flags & libc::O_PATH != 0 {
        return None;
    }
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0;
    match (writes, flags & libc::O_CREAT != 0) {
        (true, true) => Some(Change::FileOrNew),
        (true, false) => Some(Change::File),
        (false, true) => Some(Change::New),
        (false, false) => None,
    }
}
