//! Calls that change files: where they would, resolved inside the cell as the kernel will resolve it.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::FileType;

use super::{Seen, Witness, read_array, read_string};
use crate::filter;
use crate::report::{Detail, Kind};
use crate::sys::files::{self, Resolve};
use crate::sys::seccomp::{Answer, Notification};

pub(super) const NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

const CWD: u64 = libc::AT_FDCWD as u32 as u64;
const MAX_LINKS: usize = 8;

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

/// A directory fd (or the working directory) and the address of a path.
struct Target {
    dir: u64,
    path: u64,
    change: Change,
}

/// Files of its own in /proc that runtimes write when they may.
const OWN_PROC: [&str; 5] = ["comm", "oom_score_adj", "timerslack_ns", "coredump_filter", "clear_refs"];

impl Witness {
    pub(super) fn write(&self, call: &Notification) -> Seen {
        for target in targets(call) {
            let Some(path) = self.absolute(call.pid, &target) else {
                continue;
            };
            if self.is_in_order(call.pid, &path, target.change) || is_habit(&path) {
                continue;
            }
            let detail = Detail {
                syscall: Some(filter::name(call.nr)),
                path: Some(path),
                pid: Some(call.pid),
                ..Detail::default()
            };
            return Seen::Attempt { kind: Kind::Write, detail, answer: Answer::Continue };
        }
        Seen::Nothing(Answer::Continue)
    }

    /// The path from the cell's root. `None`: unreadable, or a file that has none; the kernel will say.
    fn absolute(&self, pid: i32, target: &Target) -> Option<String> {
        let path = match target.path {
            0 => String::new(),
            address => String::from_utf8_lossy(&read_string(pid, address)?).into_owned(),
        };
        if path.starts_with('/') {
            return Some(path);
        }
        let base = if target.dir as u32 == CWD as u32 {
            host_link(pid, "cwd")?
        } else {
            host_link(pid, &format!("fd/{}", target.dir as u32))?
        };
        match (base.starts_with('/'), path.is_empty()) {
            (false, _) => None,
            (true, true) => Some(base),
            (true, false) => Some(format!("{}/{path}", base.trim_end_matches('/'))),
        }
    }

    /// Whether the change lies in the scratch, on a harmless device, or would not happen at all.
    fn is_in_order(&self, pid: i32, path: &str, change: Change) -> bool {
        let Some(mut path) = own_magic(pid, path) else {
            return true;
        };
        for _ in 0..MAX_LINKS {
            let found = self.open(&path);
            match change {
                Change::New | Change::Appears if found.is_some() => return true,
                Change::File if found.is_none() => return true,
                Change::Goes if self.open_entry(&path).is_none() => return true,
                Change::File | Change::FileOrNew => {
                    if let Some(file) = found {
                        return self.may_change(&file);
                    }
                }
                _ => {}
            }
            if change == Change::FileOrNew
                && let Some(next) = self.dangling(&path)
            {
                path = next;
                continue;
            }
            // An entry is a matter of the directory it is in, or of the nearest one that is there.
            return self.nearest_directory(&path).is_some_and(|dir| self.may_change(&dir));
        }
        true
    }

    fn open(&self, path: &str) -> Option<OwnedFd> {
        let name = CString::new(path).ok()?;
        files::open_beneath(self.root.as_fd(), &name, libc::O_PATH, 0, Resolve::InRoot).ok()
    }

    /// The entry itself, link or not.
    fn open_entry(&self, path: &str) -> Option<OwnedFd> {
        let name = CString::new(path).ok()?;
        files::open_beneath(self.root.as_fd(), &name, libc::O_PATH | libc::O_NOFOLLOW, 0, Resolve::InRoot).ok()
    }

    /// Where a link to nothing points: a file made through it would appear there.
    fn dangling(&self, path: &str) -> Option<String> {
        let entry = self.open_entry(path)?;
        let to = rustix::fs::readlinkat(&entry, c"", Vec::new()).ok()?.into_string().ok()?;
        if to.starts_with('/') {
            return Some(to);
        }
        let (dir, _) = path.trim_end_matches('/').rsplit_once('/')?;
        Some(format!("{dir}/{to}"))
    }

    fn nearest_directory(&self, path: &str) -> Option<OwnedFd> {
        let mut path = path.trim_end_matches('/');
        while let Some((above, _)) = path.rsplit_once('/') {
            if let Some(dir) = self.open(if above.is_empty() { "/" } else { above }) {
                return Some(dir);
            }
            path = above.trim_end_matches('/');
        }
        None
    }

    fn may_change(&self, file: &OwnedFd) -> bool {
        let Ok(stat) = rustix::fs::fstat(file) else {
            return true;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::CharacterDevice | FileType::Fifo | FileType::Socket => true,
            _ => self.scratch == Some(stat.st_dev),
        }
    }
}

/// Names that lead through the caller's own /proc, which only the caller can follow. `None`: to no file at all.
fn own_magic(pid: i32, path: &str) -> Option<String> {
    let own = match path {
        "/dev/stdin" => "fd/0",
        "/dev/stdout" => "fd/1",
        "/dev/stderr" => "fd/2",
        _ => {
            let own = ["/proc/self/", "/proc/thread-self/"].iter().find_map(|p| path.strip_prefix(p));
            match own.or_else(|| path.strip_prefix("/dev/").filter(|p| p.starts_with("fd/"))) {
                Some(own) => own,
                None => return Some(path.to_owned()),
            }
        }
    };
    let mut parts = own.splitn(3, '/');
    let (link, rest) = match (parts.next(), parts.next(), parts.next()) {
        (Some("fd"), Some(n), rest) => (format!("fd/{n}"), rest.map(str::to_owned)),
        (Some(name @ ("cwd" | "root" | "exe")), a, b) => {
            let rest: Vec<&str> = a.into_iter().chain(b).collect();
            (name.to_owned(), (!rest.is_empty()).then(|| rest.join("/")))
        }
        _ => return Some(path.to_owned()),
    };
    // Of the root and of trees in it the host sees the path from the cell's root: what we want.
    let to = host_link(pid, &link).filter(|to| to.starts_with('/'))?;
    Some(match rest {
        Some(rest) => format!("{}/{rest}", to.trim_end_matches('/')),
        None => to,
    })
}

fn host_link(pid: i32, name: &str) -> Option<String> {
    let link = rustix::fs::readlink(format!("/proc/{pid}/{name}"), Vec::new()).ok()?;
    link.into_string().ok()
}

/// Attempts that runtimes make out of habit and do without.
fn is_habit(path: &str) -> bool {
    let in_own_proc = path.starts_with("/proc/") && OWN_PROC.iter().any(|name| path.ends_with(&format!("/{name}")));
    in_own_proc || path.split('/').any(|part| part == "__pycache__")
}

fn targets(call: &Notification) -> Vec<Target> {
    let a = call.args;
    let at = |dir, path, change| vec![Target { dir, path, change }];
    let here = |path, change| at(CWD, path, change);
    match i64::from(call.nr) {
        libc::SYS_open => open_change(a[1]).map_or(vec![], |c| here(a[0], c)),
        libc::SYS_openat => open_change(a[2]).map_or(vec![], |c| at(a[0], a[1], c)),
        libc::SYS_openat2 => read_array::<8>(call.pid, a[2])
            .and_then(|flags| open_change(u64::from_ne_bytes(flags)))
            .map_or(vec![], |c| at(a[0], a[1], c)),
        libc::SYS_creat => here(a[0], Change::FileOrNew),
        libc::SYS_mkdir | libc::SYS_mknod => here(a[0], Change::Appears),
        libc::SYS_mkdirat | libc::SYS_mknodat => at(a[0], a[1], Change::Appears),
        libc::SYS_rmdir | libc::SYS_unlink => here(a[0], Change::Goes),
        libc::SYS_unlinkat => at(a[0], a[1], Change::Goes),
        libc::SYS_rename => [here(a[0], Change::Goes), here(a[1], Change::Replaced)].into_iter().flatten().collect(),
        libc::SYS_renameat | libc::SYS_renameat2 => {
            [at(a[0], a[1], Change::Goes), at(a[2], a[3], Change::Replaced)].into_iter().flatten().collect()
        }
        libc::SYS_link => here(a[1], Change::Appears),
        libc::SYS_linkat => at(a[2], a[3], Change::Appears),
        libc::SYS_symlink => here(a[1], Change::Appears),
        libc::SYS_symlinkat => at(a[1], a[2], Change::Appears),
        libc::SYS_truncate
        | libc::SYS_chmod
        | libc::SYS_chown
        | libc::SYS_lchown
        | libc::SYS_utime
        | libc::SYS_utimes
        | libc::SYS_setxattr
        | libc::SYS_lsetxattr
        | libc::SYS_removexattr
        | libc::SYS_lremovexattr => here(a[0], Change::File),
        libc::SYS_fchmod | libc::SYS_fchown | libc::SYS_fsetxattr | libc::SYS_fremovexattr => at(a[0], 0, Change::File),
        // All others of the list name a directory and a path.
        _ => at(a[0], a[1], Change::File),
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
