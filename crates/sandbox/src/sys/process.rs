//! Processes: clone3, fork, exec, limits, waiting.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use super::{check, identity, owned};

pub(crate) type Pid = i32;

/// libc's constant is of a type too narrow for it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Which side of a fork this is.
pub(crate) enum Side<T> {
    Child,
    Parent(T),
}

/// A child in the namespaces of `flags`, in the v2 cgroup of `cgroup` from its first instruction.
///
/// The caller must be single-threaded, so that the child may allocate and take locks.
pub(crate) fn clone(flags: i32, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Side<(Pid, OwnedFd)>> {
    let mut pidfd: RawFd = -1;
    // SAFETY: an all-zero clone_args is valid; without CLONE_VM the child gets its own copy of everything,
    // and the only pointer handed over is to `pidfd`, which outlives the call.
    let pid = check(unsafe {
        let mut args: libc::clone_args = std::mem::zeroed();
        args.flags = (flags as u32 as u64) | libc::CLONE_PIDFD as u64;
        args.pidfd = &mut pidfd as *mut RawFd as u64;
        args.exit_signal = libc::SIGCHLD as u64;
        if let Some(group) = cgroup {
            args.flags |= CLONE_INTO_CGROUP;
            args.cgroup = group.as_raw_fd() as u64;
        }
        libc::syscall(libc::SYS_clone3, &mut args as *mut libc::clone_args, size_of::<libc::clone_args>())
    })?;
    if pid == 0 {
        return Ok(Side::Child);
    }
    Ok(Side::Parent((pid as Pid, owned(pidfd.into())?)))
}

/// The same by root, for somebody else: a user namespace belongs to whom the kernel takes for its maker, and its owner may
/// look into it and end what is in it. Our own rights are kept all the while.
pub(crate) fn clone_for(
    owner: (u32, u32),
    flags: i32,
    cgroup: Option<BorrowedFd<'_>>,
) -> io::Result<Side<(Pid, OwnedFd)>> {
    identity::act_as(owner)?;
    let cloned = clone(flags, cgroup);
    if !matches!(cloned, Ok(Side::Child)) && identity::act_as((0, 0)).is_err() {
        // Nobody knows any more who this is.
        exit_now(70);
    }
    cloned
}

/// A plain fork. The caller must be single-threaded.
pub(crate) fn fork() -> io::Result<Side<Pid>> {
    // SAFETY: the child is a full copy of a single-threaded process.
    match check(unsafe { libc::fork() }.into())? {
        0 => Ok(Side::Child),
        pid => Ok(Side::Parent(pid as Pid)),
    }
}

/// A child that shares our memory, on a stack of its own, until it execs or exits; we stand still as long (vfork).
/// Copying the memory of even a small process costs more than all that the child does before exec.
///
/// The caller must be single-threaded. What the child allocates and does not free stays with us.
pub(crate) fn spawn(child: &mut dyn FnMut()) -> io::Result<Pid> {
    extern "C" fn enter(arg: *mut libc::c_void) -> libc::c_int {
        // SAFETY: `arg` points to the closure reference below, which outlives the child's use of it: the parent does
        // not run before the child has left this memory.
        let child = unsafe { &mut *arg.cast::<&mut dyn FnMut()>() };
        child();
        exit_now(127)
    }
    const STACK: usize = 256 * 1024;
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
    let mut child = child;
    // SAFETY: the top is the aligned end of an allocation that outlives the call; CLONE_VFORK holds this thread until
    // the child has a memory of its own or is gone, so that nothing here is used by two at a time.
    let pid = check(unsafe {
        let top = stack.as_mut_ptr().byte_add(STACK);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(enter, top.cast(), flags, (&raw mut child).cast()).into()
    })?;
    Ok(pid as Pid)
}

pub(crate) fn unshare(flags: i32) -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::unshare(flags) }.into())?;
    Ok(())
}

/// What this process has used of processors, all its threads together.
pub(crate) fn cpu_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// How many processors this process may use.
pub(crate) fn processors() -> u32 {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count())
}

/// No heap of its own for a second thread: 128 MiB of addresses, mapped and trimmed, for a few strings.
pub(crate) fn share_one_heap() {
    // SAFETY: takes no pointers.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// A new network namespace for the calling thread alone, by its fd. `proc` is a directory of the host's proc.
pub(crate) fn new_network(proc: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    unshare(libc::CLONE_NEWNET)?;
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is static and NUL-terminated, the fd is borrowed for the call.
    owned(unsafe { libc::openat(proc.as_raw_fd(), c"thread-self/ns/net".as_ptr(), flags) }.into())
}

pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }.into())?;
    Ok(())
}

/// Ends the process at once: no destructors, no buffers, nothing of the parent's state run twice.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: takes no pointers and does not return.
    unsafe { libc::_exit(code) }
}

/// NUL-terminated strings and the array of pointers that execve wants.
pub(crate) struct CArray {
    strings: Vec<CString>,
}

impl CArray {
    pub(crate) fn new(strings: Vec<CString>) -> Self {
        CArray { strings }
    }

    fn pointers(&self) -> Vec<*const libc::c_char> {
        self.strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
    }
}

/// Replaces the process; returns only to say why it could not.
pub(crate) fn execve(path: &CStr, argv: &CArray, env: &CArray) -> io::Error {
    let (argv, env) = (argv.pointers(), env.pointers());
    // SAFETY: path and every string are NUL-terminated, both arrays end in a null pointer.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// The same with a program that is open, wherever it is, or is no more.
pub(crate) fn execute(program: BorrowedFd<'_>, argv: &CArray, env: &CArray) -> io::Error {
    let (argv, env) = (argv.pointers(), env.pointers());
    // SAFETY: as in `execve`; the path is empty, so that the fd alone decides.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            argv.as_ptr(),
            env.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}

pub(crate) fn setsid() -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::setsid() }.into())?;
    Ok(())
}

pub(super) fn prctl(option: libc::c_int, value: libc::c_ulong) -> io::Result<libc::c_long> {
    // SAFETY: only options that take plain integers are passed in this module.
    check(unsafe { libc::prctl(option, value, 0 as libc::c_ulong, 0 as libc::c_ulong, 0 as libc::c_ulong) }.into())
}

/// No /proc/PID/{exe,fd,environ,mem,...} for others of the same user, no core file.
pub(crate) fn set_undumpable() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0).map(drop)
}

/// Orphans among our descendants become our children.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1).map(drop)
}

/// SIGKILL when the parent thread dies. A change of credentials clears it: call it after the last one.
pub(crate) fn die_with_parent() -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong).map(drop)
}

pub(crate) fn set_no_new_privs() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map(drop)
}

/// The name that ps and top show.
pub(crate) fn set_name(name: &CStr) {
    // SAFETY: the kernel reads at most 16 bytes of a NUL-terminated string. A name is cosmetic.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// A limit that can't be raised again. One already lower stays as it is.
pub(crate) fn limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    // SAFETY: both structs are live and of the type that the calls expect.
    unsafe {
        let mut now: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(resource, &mut now).into())?;
        let value = value.min(now.rlim_max);
        let new = libc::rlimit { rlim_cur: value, rlim_max: value };
        check(libc::setrlimit(resource, &new).into())?;
    }
    Ok(())
}

/// Raises the number of files this process may open to the most that it is allowed.
pub(crate) fn raise_open_files() {
    // SAFETY: the struct is live for both calls. Failing leaves the limit as it was, which is safe.
    unsafe {
        let mut now: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut now) == 0 {
            now.rlim_cur = now.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &now);
        }
    }
}

/// One less than this process may open: the number right above must be free for a listener that is handed over.
pub(crate) fn most_open_files() -> u64 {
    let now = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    now.current.unwrap_or(1 << 20).saturating_sub(1).min(1 << 20)
}

/// Puts `fd` at the number `to` and keeps it there over exec.
pub(crate) fn place(fd: BorrowedFd<'_>, to: RawFd) -> io::Result<()> {
    // SAFETY: callers place fds at numbers that no owned fd of theirs has (0 to 2, or ones they gave up).
    check(unsafe { libc::dup2(fd.as_raw_fd(), to) }.into())?;
    Ok(())
}

/// A copy of `fd` whose number is at least `from`, close-on-exec.
pub(crate) fn duplicate_above(fd: BorrowedFd<'_>, from: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers; the result is new.
    owned(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, from) }.into())
}

/// Closes every fd whose number is at least `from`, whoever thinks that he owns it: only for a child that is
/// about to forget everything its parent had.
pub(crate) fn close_from(from: RawFd) -> io::Result<()> {
    // SAFETY: takes no pointers; the caller is a fresh child which uses none of the fds above.
    check(unsafe { libc::syscall(libc::SYS_close_range, from as libc::c_uint, libc::c_uint::MAX, 0) })?;
    Ok(())
}

/// An fd that was put at a known number by the parent of this process.
pub(crate) fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers; it only asks whether the number is open.
    check(unsafe { libc::fcntl(fd, libc::F_GETFD) }.into())?;
    owned(fd.into())
}

/// Wipes the command line and the environment of this process, which is a copy of its parent: what stands in
/// /proc/PID/cmdline and what a reader of our memory would find is nothing of the host's.
pub(crate) fn forget_arguments() {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return };
    // arg_start, arg_end, env_start, env_end are fields 48 to 51; the name in parentheses may hold blanks.
    let fields: Vec<usize> =
        stat.rsplit(") ").next().unwrap_or_default().split(' ').map(|f| f.parse().unwrap_or(0)).collect();
    let field = |n: usize| fields.get(n - 3).copied().unwrap_or(0);
    for (start, end) in [(field(48), field(49)), (field(50), field(51))] {
        if start != 0 && start < end {
            // SAFETY: the kernel says that these addresses are our own argument strings, which are writable memory of
            // the initial stack; nothing in this process reads them any more.
            unsafe { std::ptr::write_bytes(start as *mut u8, 0, end - start) };
        }
    }
}

/// Every later exec closes every fd from `from` on.
pub(crate) fn close_on_exec_from(from: RawFd) -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe {
        libc::syscall(
            libc::SYS_close_range,
            from as libc::c_uint,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC as libc::c_uint,
        )
    })?;
    Ok(())
}

pub(crate) fn pidfd_open(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// A copy of descriptor `fd` of the process that thread `tid` belongs to.
pub(crate) fn copy_descriptor(tid: Pid, fd: RawFd) -> io::Result<OwnedFd> {
    // The name in it may be any bytes.
    let status = String::from_utf8_lossy(&std::fs::read(format!("/proc/{tid}/status"))?).into_owned();
    let process = status.lines().find_map(|l| l.strip_prefix("Tgid:")?.trim().parse().ok()).unwrap_or(tid);
    let pidfd = pidfd_open(process)?;
    // SAFETY: takes no pointers; the result is new.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) })
}

pub(crate) fn pidfd_signal(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // SAFETY: a null siginfo is allowed.
    check(unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, std::ptr::null::<libc::siginfo_t>(), 0)
    })?;
    Ok(())
}

/// What a dead child left.
pub(crate) struct Dead {
    pub(crate) pid: Pid,
    pub(crate) status: i32,
    pub(crate) usage: libc::rusage,
}

/// Reaps one dead child without waiting. `None`: nobody is dead, or nobody is left.
pub(crate) fn reap() -> Option<Dead> {
    // SAFETY: an all-zero rusage is valid and the kernel fills what it is given.
    unsafe {
        let mut status = 0;
        let mut usage: libc::rusage = std::mem::zeroed();
        let pid = libc::wait4(-1, &mut status, libc::WNOHANG | libc::__WALL, &mut usage);
        (pid > 0).then_some(Dead { pid, status, usage })
    }
}

/// Whether a child has ended; it stays to be reaped.
pub(crate) fn is_dead(child: Pid) -> bool {
    // SAFETY: an all-zero siginfo is valid, the kernel fills it; its pid stays 0 when there is nothing to tell.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, child as libc::id_t, &mut info, flags) == 0 && info.si_pid() == child
    }
}

pub(crate) fn thread_id() -> Pid {
    // SAFETY: takes no pointers.
    unsafe { libc::gettid() }
}

/// Waits until a thread that was joined is no longer counted by the pids cgroup: it is joined when it has let go of its
/// memory, which is earlier, and a fork that the group has no room for meanwhile would be on record as one too many.
pub(crate) fn wait_for_thread(thread: Pid) {
    // SAFETY: takes no pointers; signal 0 is never sent.
    while unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) } == 0 {
        std::thread::yield_now();
    }
}

/// Kills every child, and those who become our children by that, until there are none.
pub(crate) fn end_children() {
    let own = format!("/proc/self/task/{}/children", thread_id());
    loop {
        for child in super::files::read_proc(&own).unwrap_or_default().split_whitespace() {
            if let Ok(pid) = child.parse() {
                super::signal::send(pid, libc::SIGKILL);
            }
        }
        // SAFETY: a null status is allowed.
        let waited = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::__WALL) };
        if waited < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

/// Waits for one child of this process and forgets it.
pub(crate) fn wait_for(pid: Pid) {
    // SAFETY: a null status is allowed. ECHILD means that it is gone already.
    unsafe {
        while libc::waitpid(pid, std::ptr::null_mut(), 0) < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}

/// A keyring of its own, so that nothing of the caller's session is reachable by a key id.
pub(crate) fn new_session_keyring() -> io::Result<()> {
    // SAFETY: a null name asks for an anonymous keyring.
    let made = check(unsafe {
        libc::syscall(libc::SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, 0 as libc::c_ulong)
    });
    match made {
        // A kernel without keys has none to leak. And a user may have 200 keys, which as many cells use up: the filter
        // refuses every call that could use the caller's keyring, which then stays.
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EDQUOT)) => Ok(()),
        other => other.map(drop),
    }
}

pub(crate) fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: the pointer and the length are of the same live string.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }.into())?;
    Ok(())
}
