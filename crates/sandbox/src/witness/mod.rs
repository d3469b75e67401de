//! The witness: what each notified call tried to do, and whether that is a violation.
//!
//! It never decides what is possible: mounts, namespaces and Landlock do. A call that they refuse is let through to
//! be refused by them; so a program that changes its arguments under our eyes changes what is on record, at most. The
//! two calls that none of them stops are made by us instead: see `proxy`.

mod net;
mod paths;
mod proxy;
mod walk;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

pub(crate) use proxy::Pending;
use walk::Lost;

use crate::filter::{self, AUDIT_ARCH};
use crate::report::{Detail, Kind};
use crate::spec::Network;
use crate::sys::seccomp::{self, Answer, Notification};

/// What is known of the cell that the calls come from.
pub(crate) struct Witness {
    /// The cell's root directory.
    pub(crate) root: OwnedFd,
    /// The device number of its scratch, the only place where writing is in order; `None` without one.
    pub(crate) scratch: Option<u64>,
    /// Device and inode of its /proc.
    pub(crate) proc: (u64, u64),
    pub(crate) network: Network,
    /// Places that are refused without a record.
    pub(crate) quiet: Vec<PathBuf>,
    /// Written to when something begun for the program is done.
    pub(crate) wake: OwnedFd,
}

/// What a call was.
pub(crate) enum Seen {
    /// In order, or refused without a word.
    Nothing(Answer),
    /// Not to be seen: the program is one that nobody may read.
    Blind(Answer),
    /// Begun for the program, and not finished yet.
    Pending(Pending),
    /// A new thread, in a cell where nobody else counts them.
    NewTask,
    /// The program sends SIGXFSZ, or has a limit of its own for files.
    FileSignal,
    Attempt {
        kind: Kind,
        detail: Box<Detail>,
        answer: Answer,
    },
}

impl Witness {
    /// `is_current` says whether the thread that called is still the one that waits.
    pub(crate) fn look(&self, call: &Notification, is_current: &dyn Fn() -> bool) -> Seen {
        let nr = i64::from(call.nr);
        if call.arch != AUDIT_ARCH || call.nr < 0 || call.nr >= 0x4000_0000 {
            let abi = if call.arch == AUDIT_ARCH { "x32" } else { "32-bit" };
            return attempt(Kind::Syscall, call, libc::ENOSYS, |d| {
                d.syscall = Some(format!("{abi} call {}", call.nr & 0x3fff_ffff));
            });
        }
        if filter::is_never_honest(call.nr) {
            return attempt(Kind::Syscall, call, libc::EPERM, |_| {});
        }
        match nr {
            libc::SYS_clone if call.args[0] as u32 & filter::CLONE_NAMESPACES != 0 => {
                attempt(Kind::Syscall, call, libc::EPERM, |d| d.note = Some(format!("flags {:#x}", call.args[0])))
            }
            libc::SYS_clone => Seen::NewTask,
            libc::SYS_kill
            | libc::SYS_tkill
            | libc::SYS_tgkill
            | libc::SYS_rt_sigqueueinfo
            | libc::SYS_rt_tgsigqueueinfo
            | libc::SYS_pidfd_send_signal
            | libc::SYS_setrlimit => Seen::FileSignal,
            libc::SYS_ioctl => {
                attempt(Kind::Syscall, call, libc::EPERM, |d| d.note = Some(format!("request {:#x}", call.args[1])))
            }
            // Asking; both arguments are values that nobody can change under us.
            libc::SYS_prlimit64 if call.args[2] == 0 => Seen::Nothing(Answer::Continue),
            libc::SYS_prlimit64 if call.args[1] as u32 == libc::RLIMIT_FSIZE => Seen::FileSignal,
            // Programs that turn core files off believe that they have.
            libc::SYS_prlimit64 => Seen::Nothing(Answer::Value(0)),
            libc::SYS_socket | libc::SYS_socketpair => net::socket(call, self.network),
            libc::SYS_connect => self.connect(call, is_current),
            libc::SYS_flock => self.flock(call, is_current),
            libc::SYS_bind | libc::SYS_sendto | libc::SYS_sendmsg | libc::SYS_sendmmsg => {
                net::address(call, self.network)
            }
            _ => self.write(call),
        }
    }
}

/// A violation of `kind` by this call, answered with `errno`.
fn attempt(kind: Kind, call: &Notification, errno: i32, more: impl FnOnce(&mut Detail)) -> Seen {
    let mut detail = Detail { syscall: Some(filter::name(call.nr)), pid: Some(call.pid), ..Detail::default() };
    more(&mut detail);
    Seen::Attempt { kind, detail: Box::new(detail), answer: Answer::Errno(errno) }
}

/// A C string in the caller's memory, at most PATH_MAX long.
fn read_string(pid: i32, address: u64) -> Result<Vec<u8>, Lost> {
    const PATH_MAX: usize = 4096;
    let page = crate::sys::files::page_size() as u64;
    let mut text = Vec::new();
    while text.len() < PATH_MAX {
        let at = address.checked_add(text.len() as u64).ok_or(Lost::Refused)?;
        // Never over a page's end in one go: the next page may not be there.
        let want = (page - at % page).min((PATH_MAX - text.len()) as u64) as usize;
        let mut chunk = [0u8; PATH_MAX];
        let n = seccomp::read_memory(pid, at, &mut chunk[..want]).map_err(|e| match e.raw_os_error() {
            Some(libc::EPERM) => Lost::Blind,
            _ => Lost::Refused,
        })?;
        if let Some(end) = chunk[..n].iter().position(|b| *b == 0) {
            text.extend_from_slice(&chunk[..end]);
            return Ok(text);
        }
        text.extend_from_slice(&chunk[..n]);
        if n < want {
            break;
        }
    }
    Err(Lost::Refused)
}

fn read_array<const N: usize>(pid: i32, address: u64) -> Option<[u8; N]> {
    let mut bytes = [0u8; N];
    (seccomp::read_memory(pid, address, &mut bytes).ok()? == N).then_some(bytes)
}

/// Keeps what a listener says only when the caller that was looked at is still the one waiting.
pub(crate) fn is_current(listener: BorrowedFd<'_>, call: &Notification) -> bool {
    seccomp::still_waiting(listener, call.id)
}
