//! From the lists of `syscalls` and the needs of one cell to a rule for each number.

use std::collections::BTreeMap;

use super::bpf::{Action, Rule, Test};
use super::syscalls::{ALLOWED, NEVER_HONEST, QUIET_MISSING, QUIET_REFUSED, WRITES};
use crate::Network;

/// What differs between cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) network: Network,
    /// No cgroup counts processes here: tell us of each new one.
    pub(crate) count_clones: bool,
    /// The fd number through which the listener itself is handed over, beyond the program's own RLIMIT_NOFILE,
    /// so that the program can never have an fd there.
    pub(crate) handover_fd: u32,
}

/// Opening with any of these can change something.
pub(crate) const OPEN_WRITES: u32 =
    (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// A new namespace of any kind.
const CLONE_NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;

pub(crate) fn rules(needs: Needs) -> BTreeMap<u32, Rule> {
    let mut rules = BTreeMap::new();
    let mut put = |nr: libc::c_long, rule: Rule| {
        rules.insert(nr as u32, rule);
    };
    for entry in ALLOWED {
        put(entry.nr, Rule::plain(Action::Allow));
    }
    for entry in QUIET_MISSING.iter().chain(QUIET_REFUSED) {
        put(entry.nr, Rule::plain(Action::Errno(entry.errno)));
    }
    for entry in NEVER_HONEST.iter().chain(WRITES) {
        put(entry.nr, Rule::plain(Action::Notify));
    }

    let notify_if = |arg, test| Rule { tests: vec![(arg, test, Action::Notify)], otherwise: Action::Allow };
    put(libc::SYS_open, notify_if(1, Test::AnyBit(OPEN_WRITES)));
    put(libc::SYS_openat, notify_if(2, Test::AnyBit(OPEN_WRITES)));
    // Its flags are behind a pointer: always ask.
    put(libc::SYS_openat2, Rule::plain(Action::Notify));

    let new_process = if needs.count_clones { Action::Notify } else { Action::Allow };
    put(libc::SYS_fork, Rule::plain(new_process));
    put(libc::SYS_vfork, Rule::plain(new_process));
    put(
        libc::SYS_clone,
        Rule { tests: vec![(0, Test::AnyBit(CLONE_NAMESPACES), Action::Notify)], otherwise: new_process },
    );

    // The kernel compares the low 32 bits of an ioctl number only.
    let ioctl = [libc::TIOCSTI as u32, libc::TIOCLINUX as u32, libc::TIOCSETD as u32];
    put(
        libc::SYS_ioctl,
        Rule {
            tests: ioctl.iter().map(|nr| (1, Test::Equal(*nr), Action::Notify)).collect(),
            otherwise: Action::Allow,
        },
    );
    // Leases and directory notification on files shared with the host and other cells are a side channel.
    let fcntl = [libc::F_SETLEASE as u32, libc::F_NOTIFY as u32];
    put(
        libc::SYS_fcntl,
        Rule {
            tests: fcntl.iter().map(|cmd| (1, Test::Equal(*cmd), Action::Errno(libc::EPERM as u16))).collect(),
            otherwise: Action::Allow,
        },
    );
    // RLIMIT_CORE stays at 1: the only value with which the kernel starts no core handler of the host's (with 0 it does).
    let core = Test::Equal(libc::RLIMIT_CORE);
    let keep_core = Rule { tests: vec![(0, core, Action::Errno(libc::EPERM as u16))], otherwise: Action::Allow };
    put(libc::SYS_setrlimit, keep_core);
    // Told, because whether it sets or only asks is another argument.
    put(libc::SYS_prlimit64, notify_if(1, core));
    // 0 is what a process has, all ones asks for it; anything else weakens address randomisation or more.
    put(
        libc::SYS_personality,
        Rule {
            tests: vec![(0, Test::Equal(0), Action::Allow), (0, Test::Equal(u32::MAX), Action::Allow)],
            otherwise: Action::Errno(libc::EPERM as u16),
        },
    );
    network(needs, &mut put);
    rules
}

/// Sockets by family. Where there is a network at all, the namespace decides what is reachable; the
/// notification is for the record.
fn network(needs: Needs, put: &mut impl FnMut(libc::c_long, Rule)) {
    let allow = |family: i32| (0, Test::Equal(family as u32), Action::Allow);
    let mut families = vec![allow(libc::AF_UNIX)];
    match needs.network {
        // Told, so that a raw socket is on record; an ordinary one harms nobody where there is no interface.
        Network::None | Network::Local => {}
        Network::Full => families.extend([allow(libc::AF_INET), allow(libc::AF_INET6)]),
    }
    put(libc::SYS_socket, Rule { tests: families, otherwise: Action::Notify });
    put(
        libc::SYS_socketpair,
        Rule { tests: vec![allow(libc::AF_UNIX)], otherwise: Action::Errno(libc::EAFNOSUPPORT as u16) },
    );
    let told = Rule::plain(Action::Notify);
    let with_address = Rule { tests: vec![(4, Test::NotNull, Action::Notify)], otherwise: Action::Allow };
    match needs.network {
        Network::None => {
            for nr in [libc::SYS_connect, libc::SYS_bind, libc::SYS_sendmmsg] {
                put(nr, told.clone());
            }
            let handover = (0, Test::Equal(needs.handover_fd), Action::Allow);
            put(libc::SYS_sendmsg, Rule { tests: vec![handover], otherwise: Action::Notify });
            put(libc::SYS_sendto, with_address);
        }
        Network::Local => {
            put(libc::SYS_connect, told);
            put(libc::SYS_sendto, with_address);
        }
        Network::Full => {}
    }
}
