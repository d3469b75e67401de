//! From the lists of `syscalls` and the needs of one cell to a rule for each number.

use super::bpf::{Action, Rule, Test};
use super::syscalls::{ALLOWED, NEVER_HONEST, QUIET_MISSING, QUIET_REFUSED, WRITES};
use crate::Network;

/// What differs between cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) network: Network,
    /// No cgroup counts processes here: tell us of each new thread.
    pub(crate) count_clones: bool,
    /// The fd number through which the listener itself is handed over, beyond the program's own RLIMIT_NOFILE,
    /// so that the program can never have an fd there.
    pub(crate) handover_fd: u32,
}

/// Opening with any of these can change something.
pub(crate) const OPEN_WRITES: u32 =
    (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// A new namespace of any kind.
pub(crate) const CLONE_NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;

/// Numbers above this have no rule; the highest call of Linux 6.18 is 470.
const HIGHEST: usize = 511;

/// The rule of each number, by number.
pub(crate) fn rules(needs: Needs) -> Vec<Option<Rule>> {
    let mut rules = vec![const { None }; HIGHEST + 1];
    let mut put = |nr: libc::c_long, rule: Rule| rules[nr as usize] = Some(rule);
    for entry in ALLOWED {
        put(entry.nr, Rule::plain(Action::Allow));
    }
    for entry in QUIET_MISSING.iter().chain(QUIET_REFUSED) {
        put(entry.nr, Rule::plain(Action::Errno(entry.errno)));
    }
    for entry in NEVER_HONEST.iter().chain(WRITES) {
        put(entry.nr, Rule::plain(Action::Notify));
    }
    // Done by us: a lock on a file that is shared with the host would be seen there.
    put(libc::SYS_flock, Rule::plain(Action::Notify));

    let notify_if = |arg, test| Rule { tests: vec![(arg, test, Action::Notify)], otherwise: Action::Allow };
    put(libc::SYS_open, notify_if(1, Test::AnyBit(OPEN_WRITES)));
    put(libc::SYS_openat, notify_if(2, Test::AnyBit(OPEN_WRITES)));
    // Its flags are behind a pointer: always ask.
    put(libc::SYS_openat2, Rule::plain(Action::Notify));

    if needs.count_clones {
        // A memory file that is not mapped is in no process's account, and here there is no other.
        put(libc::SYS_memfd_create, Rule::plain(Action::Errno(libc::ENOSYS as u16)));
    }
    // Threads can be told of: every library makes them with all signals blocked. A fork that waits for us could be
    // interrupted; see `cell/crowd`.
    let told = if needs.count_clones { CLONE_NAMESPACES | libc::CLONE_VM as u32 } else { CLONE_NAMESPACES };
    put(libc::SYS_fork, Rule::plain(Action::Allow));
    put(libc::SYS_vfork, Rule::plain(Action::Allow));
    put(libc::SYS_clone, notify_if(0, Test::AnyBit(told)));

    // The kernel compares the low 32 bits of an ioctl number only.
    let ioctl = [libc::TIOCSTI as u32, libc::TIOCLINUX as u32, libc::TIOCSETD as u32];
    put(
        libc::SYS_ioctl,
        Rule {
            tests: ioctl.iter().map(|nr| (1, Test::Equal(*nr), Action::Notify)).collect(),
            otherwise: Action::Allow,
        },
    );
    // Whether it was the kernel who sent this one, to who writes beyond the limit of a file, or the program itself.
    for (nr, signal) in [
        (libc::SYS_kill, 1),
        (libc::SYS_tkill, 1),
        (libc::SYS_tgkill, 2),
        (libc::SYS_rt_sigqueueinfo, 1),
        (libc::SYS_rt_tgsigqueueinfo, 2),
        (libc::SYS_pidfd_send_signal, 1),
    ] {
        put(nr, notify_if(signal, Test::Equal(libc::SIGXFSZ as u32)));
    }
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
    // An errno of 0 is success: who turns core files off believes that he has.
    let keep_core = (0, core, Action::Errno(0));
    // Who dies by a limit of his own has not met ours.
    let files = Test::Equal(libc::RLIMIT_FSIZE);
    put(libc::SYS_setrlimit, Rule { tests: vec![keep_core, (0, files, Action::Notify)], otherwise: Action::Allow });
    // Told, because whether it sets or only asks is another argument.
    let refuse_init = (0, Test::Equal(1), Action::Errno(libc::EPERM as u16));
    let told = [(1, core, Action::Notify), (1, files, Action::Notify)];
    put(libc::SYS_prlimit64, Rule { tests: [refuse_init].into_iter().chain(told).collect(), otherwise: Action::Allow });
    // Init has the program's id: nothing else keeps it from being starved or bound hand and foot.
    for nr in
        [libc::SYS_sched_setaffinity, libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr]
    {
        put(nr, Rule { tests: vec![refuse_init], otherwise: Action::Allow });
    }
    let (who_init, all_of_user) = ((1, Test::Equal(1), Action::Errno(libc::EPERM as u16)), libc::PRIO_USER);
    let by_user = |which: u32| (0, Test::Equal(which), Action::Errno(libc::EPERM as u16));
    put(libc::SYS_setpriority, Rule { tests: vec![who_init, by_user(all_of_user)], otherwise: Action::Allow });
    // IOPRIO_WHO_USER
    put(libc::SYS_ioprio_set, Rule { tests: vec![who_init, by_user(3)], otherwise: Action::Allow });
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

/// Sockets. Which can be made is decided by numbers, connections are made by us, and sends are told of where the
/// network is not the host's: the namespace decides what is reachable, the notification is for the record.
fn network(needs: Needs, put: &mut impl FnMut(libc::c_long, Rule)) {
    let told = Rule::plain(Action::Notify);
    for nr in [libc::SYS_socket, libc::SYS_socketpair, libc::SYS_connect] {
        put(nr, told.clone());
    }
    if needs.network == Network::Full {
        return;
    }
    put(libc::SYS_sendmmsg, told.clone());
    put(libc::SYS_sendto, Rule { tests: vec![(4, Test::NotNull, Action::Notify)], otherwise: Action::Allow });
    let handover = (0, Test::Equal(needs.handover_fd), Action::Allow);
    put(libc::SYS_sendmsg, Rule { tests: vec![handover], otherwise: Action::Notify });
    if needs.network == Network::None {
        put(libc::SYS_bind, told);
    }
}
