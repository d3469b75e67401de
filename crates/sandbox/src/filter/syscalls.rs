//! The system calls of x86_64 in four lists, each group with its reason.
//!
//! What stands in none of them, tomorrow's kernels' calls included, gets ENOSYS. Calls whose arguments decide
//! (open, clone, ioctl, socket, ...) are in `rules`.

#![allow(non_upper_case_globals)]

use libc::*;

pub(crate) struct Entry {
    pub(crate) nr: c_long,
    pub(crate) name: &'static str,
    /// What a quiet refusal answers.
    pub(crate) errno: u16,
}

macro_rules! calls {
    ($errno:expr; $($sys:ident)*) => {
        &[$(Entry { nr: $sys, name: stringify!($sys), errno: $errno as u16 }),*]
    };
}

const SYS_io_pgetevents: c_long = 333;
const SYS_cachestat: c_long = 451;
const SYS_map_shadow_stack: c_long = 453;
const SYS_futex_wake: c_long = 454;
const SYS_futex_wait: c_long = 455;
const SYS_futex_requeue: c_long = 456;
const SYS_statmount: c_long = 457;
const SYS_listmount: c_long = 458;
const SYS_open_tree_attr: c_long = 467;
const SYS_setxattrat: c_long = 463;
const SYS_removexattrat: c_long = 466;
const SYS_file_setattr: c_long = 469;

/// What ordinary programs do. Reading is bounded by what is mounted, writing by read-only mounts and Landlock,
/// memory and processes by the cgroup, reach by the namespaces.
pub(crate) const ALLOWED: &[Entry] = calls! { 0;
    // Open files: the fd was checked when it was opened.
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev SYS_preadv2 SYS_pwritev2
    SYS_lseek SYS_close SYS_close_range SYS_dup SYS_dup2 SYS_dup3 SYS_pipe SYS_pipe2 SYS_flock SYS_fsync SYS_fdatasync
    SYS_sync SYS_syncfs SYS_sync_file_range SYS_ftruncate SYS_fallocate SYS_fadvise64 SYS_readahead
    SYS_sendfile SYS_splice SYS_tee SYS_vmsplice SYS_copy_file_range SYS_cachestat
    // Looking at files: bounded by what is mounted.
    SYS_stat SYS_fstat SYS_lstat SYS_newfstatat SYS_statx SYS_statfs SYS_fstatfs SYS_access SYS_faccessat
    SYS_faccessat2 SYS_readlink SYS_readlinkat SYS_getdents SYS_getdents64 SYS_getcwd SYS_chdir SYS_fchdir SYS_umask
    SYS_getxattr SYS_lgetxattr SYS_fgetxattr SYS_listxattr SYS_llistxattr SYS_flistxattr
    // Waiting.
    SYS_poll SYS_ppoll SYS_select SYS_pselect6 SYS_epoll_create SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_wait
    SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd SYS_eventfd2 SYS_signalfd SYS_signalfd4 SYS_timerfd_create
    SYS_timerfd_settime SYS_timerfd_gettime
    // Memory of its own.
    SYS_mmap SYS_mprotect SYS_munmap SYS_mremap SYS_brk SYS_madvise SYS_mincore SYS_msync SYS_mlock SYS_mlock2
    SYS_munlock SYS_mlockall SYS_munlockall SYS_memfd_create SYS_membarrier SYS_pkey_alloc SYS_pkey_free
    SYS_pkey_mprotect SYS_get_mempolicy SYS_map_shadow_stack SYS_mseal
    // Signals and processes, all inside its own pid namespace.
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigpending SYS_rt_sigtimedwait SYS_rt_sigqueueinfo
    SYS_rt_tgsigqueueinfo SYS_rt_sigsuspend SYS_sigaltstack SYS_kill SYS_tkill SYS_tgkill SYS_pause SYS_alarm
    SYS_getitimer SYS_setitimer SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_wait4 SYS_waitid
    SYS_getpid SYS_getppid SYS_gettid SYS_getpgid SYS_getpgrp SYS_setpgid SYS_getsid SYS_setsid SYS_pidfd_open
    SYS_pidfd_send_signal SYS_restart_syscall SYS_set_tid_address SYS_set_robust_list SYS_get_robust_list SYS_rseq
    SYS_arch_prctl SYS_prctl SYS_futex SYS_futex_waitv SYS_futex_wake SYS_futex_wait SYS_futex_requeue
    // Who it is: one id, no capability, nothing to become.
    SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid SYS_getgroups SYS_setuid SYS_setgid
    SYS_setreuid SYS_setregid SYS_setresuid SYS_setresgid SYS_setfsuid SYS_setfsgid SYS_setgroups SYS_capget SYS_capset
    // Time and limits: reading, and lowering its own.
    SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday SYS_time SYS_times
    SYS_timer_create SYS_timer_settime SYS_timer_gettime SYS_timer_getoverrun SYS_timer_delete
    SYS_getrlimit SYS_getrusage SYS_sysinfo SYS_uname SYS_getcpu SYS_getrandom
    SYS_getpriority SYS_setpriority SYS_ioprio_get SYS_ioprio_set SYS_sched_yield SYS_sched_getaffinity
    SYS_sched_setaffinity SYS_sched_getparam SYS_sched_setparam SYS_sched_getscheduler SYS_sched_setscheduler
    SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_sched_rr_get_interval SYS_sched_getattr
    SYS_sched_setattr
    // Sockets that exist: which can be made is decided by family.
    SYS_connect SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_getsockname SYS_getpeername SYS_getsockopt
    SYS_setsockopt SYS_shutdown SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_recvfrom SYS_recvmsg SYS_recvmmsg
    // Narrowing itself further.
    SYS_seccomp SYS_landlock_create_ruleset SYS_landlock_add_rule SYS_landlock_restrict_self
};

/// What runtimes probe for and can do without, as if the kernel did not have it.
pub(crate) const QUIET_MISSING: &[Entry] = calls! { ENOSYS;
    // BPF can't read its struct; glibc falls back to clone, whose flags are checked.
    SYS_clone3
    // libuv and others fall back to epoll; its operations would pass no filter.
    SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register
    SYS_io_setup SYS_io_submit SYS_io_getevents SYS_io_cancel SYS_io_destroy SYS_io_pgetevents
    // Watching files that are shared with the host shows what the host does.
    SYS_inotify_init SYS_inotify_init1 SYS_inotify_add_watch SYS_inotify_rm_watch
    // System V objects and message queues have no limit that is ours.
    SYS_shmget SYS_shmat SYS_shmctl SYS_shmdt SYS_semget SYS_semop SYS_semctl SYS_semtimedop
    SYS_msgget SYS_msgsnd SYS_msgrcv SYS_msgctl
    SYS_mq_open SYS_mq_unlink SYS_mq_timedsend SYS_mq_timedreceive SYS_mq_notify SYS_mq_getsetattr
    // Old or rare, with histories of bugs.
    SYS_modify_ldt SYS_memfd_secret SYS_remap_file_pages SYS_statmount SYS_listmount SYS_process_mrelease
    SYS_process_madvise SYS_kcmp SYS_name_to_handle_at SYS_sysfs SYS_ustat SYS_uselib
};

/// What libraries try on the chance of being allowed to.
pub(crate) const QUIET_REFUSED: &[Entry] = calls! { EPERM;
    // numactl, OpenMP and JVMs place memory when they may.
    SYS_set_mempolicy SYS_mbind SYS_set_mempolicy_home_node SYS_migrate_pages SYS_move_pages
    // ntp-style look at the clock, the kernel log.
    SYS_adjtimex SYS_clock_adjtime SYS_syslog
};

/// No honest program in a cell calls these: each attempt is a SyscallViolation.
pub(crate) const NEVER_HONEST: &[Entry] = calls! { EPERM;
    // Other processes' memory, registers and files.
    SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_pidfd_getfd
    // The shape of the file system.
    SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_open_tree SYS_open_tree_attr SYS_move_mount SYS_fsopen
    SYS_fsconfig SYS_fsmount SYS_fspick SYS_mount_setattr SYS_open_by_handle_at SYS_fanotify_init SYS_fanotify_mark
    // Namespaces.
    SYS_unshare SYS_setns
    // The kernel's keys.
    SYS_add_key SYS_request_key SYS_keyctl
    // The kernel's inside: its most productive sources of escapes.
    SYS_bpf SYS_perf_event_open SYS_userfaultfd SYS_lookup_dcookie
    // The machine.
    SYS_kexec_load SYS_kexec_file_load SYS_init_module SYS_finit_module SYS_delete_module SYS_reboot SYS_swapon
    SYS_swapoff SYS_quotactl SYS_quotactl_fd SYS_acct SYS_sethostname SYS_setdomainname SYS_settimeofday
    SYS_clock_settime SYS_iopl SYS_ioperm SYS_vhangup SYS_nfsservctl
};

/// Calls that change a file or directory by their very name; the supervisor looks where.
pub(crate) const WRITES: &[Entry] = calls! { 0;
    SYS_creat SYS_mkdir SYS_mkdirat SYS_rmdir SYS_unlink SYS_unlinkat SYS_rename SYS_renameat SYS_renameat2 SYS_link
    SYS_linkat SYS_symlink SYS_symlinkat SYS_mknod SYS_mknodat SYS_truncate SYS_chmod SYS_fchmod SYS_fchmodat
    SYS_fchmodat2 SYS_chown SYS_lchown SYS_fchown SYS_fchownat SYS_utime SYS_utimes SYS_utimensat SYS_futimesat
    SYS_setxattr SYS_lsetxattr SYS_fsetxattr SYS_setxattrat SYS_removexattr SYS_lremovexattr SYS_fremovexattr
    SYS_removexattrat SYS_file_setattr
};

/// Calls that `rules` decides by their arguments, for their names.
const BY_ARGUMENT: &[Entry] = calls! { 0;
    SYS_setrlimit SYS_prlimit64 SYS_open SYS_openat SYS_openat2 SYS_fork SYS_vfork SYS_clone SYS_ioctl SYS_fcntl SYS_personality SYS_socket
    SYS_socketpair
};

fn strip(name: &'static str) -> &'static str {
    name.strip_prefix("SYS_").unwrap_or(name)
}

/// The name of a number, or the number.
pub(crate) fn name(nr: i32) -> String {
    [NEVER_HONEST, WRITES, BY_ARGUMENT, ALLOWED, QUIET_MISSING, QUIET_REFUSED]
        .into_iter()
        .flatten()
        .find(|entry| entry.nr == c_long::from(nr))
        .map_or_else(|| format!("syscall {nr}"), |entry| strip(entry.name).to_owned())
}

pub(crate) fn is_never_honest(nr: i32) -> bool {
    NEVER_HONEST.iter().any(|entry| entry.nr == c_long::from(nr))
}

/// Names and numbers of the calls of which each attempt is a violation.
pub fn never_honest() -> impl Iterator<Item = (&'static str, i64)> {
    NEVER_HONEST.iter().map(|entry| (strip(entry.name), entry.nr))
}
