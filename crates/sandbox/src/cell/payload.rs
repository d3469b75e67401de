//! The last steps before exec, in the process that becomes the program.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::{Run, Step, crowd};
use crate::filter::Needs;
use crate::spec::Limits;
use crate::sys::process::{self, CArray};
use crate::sys::{seccomp, signal};
use crate::wire::{self, Failure, FromCell, Plan, TTY};

/// Becomes the program, or says why not. `set_up` is what init has used so far.
pub(super) fn become_program(run: &Run, plan: &Plan, set_up: Duration) -> Result<(), Failure> {
    process::setsid().step("new session", "")?;
    signal::unblock();
    // A name that can't be entered is the caller's mistake, named like one.
    rustix::process::chdir(plan.cwd.as_path()).step("enter the working directory", &plan.cwd)?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let open_files = plan.limits.open_files.min(process::most_open_files());
    let supervisor =
        process::duplicate_above(run.supervisor.as_fd(), open_files as i32).step("hand over the listener", "")?;
    let handover = std::os::fd::AsRawFd::as_raw_fd(&supervisor) as u32;
    let terminal = plan.terminal.then(take_terminal).transpose().step("take the terminal", TTY)?;
    for (fd, number) in run.stdio.iter().zip(0..) {
        process::place(terminal.as_ref().unwrap_or(fd).as_fd(), number).step("place the streams", "")?;
    }
    limits(&plan.limits, run.count_clones)?;
    process::close_on_exec_from(3).step("close other fds", "")?;

    let argv = strings(&plan.argv)?;
    let candidates = candidates(plan)?;
    let env = CArray::new(strings(&plan.env)?);
    let argv = CArray::new(argv);
    let needs = Needs { network: plan.network, count_clones: run.count_clones, handover_fd: handover };
    let program = run.filter.program_for(needs);

    let listener = seccomp::install(&program).step("install the seccomp filter", "")?;
    let [scratch, root, proc_dir] = run.view.each_ref().map(AsFd::as_fd);
    let fds = [scratch, proc_dir, root, listener.as_fd()].into_iter().chain(run.egress.as_ref().map(AsFd::as_fd));
    let set_up = Some(set_up + process::cpu_time());
    let starting = FromCell::Starting { mounts: run.mounts, at_ns: wire::now_ns(), set_up };
    wire::send(&supervisor, &starting, &fds.collect::<Vec<_>>()).step("hand over the listener", "")?;
    drop(listener);
    // Only now: an fd on its way in a socket counts for the whole user, against the limit of whoever sends.
    process::limit(libc::RLIMIT_NOFILE, open_files).step("set a limit", "NOFILE")?;
    let errno = execute(&candidates, &argv, &env);
    let _ = wire::send(&supervisor, &FromCell::NotExecuted { errno }, &[]);
    process::exit_now(127)
}

/// By its name in the cell, where it is read-only: by the fd that was handed in, whose mount is the host's, it could be opened to
/// others with fchmod.
fn take_terminal() -> io::Result<OwnedFd> {
    let terminal = rustix::fs::open(TTY, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::process::ioctl_tiocsctty(&terminal)?;
    Ok(terminal)
}

fn strings(bytes: &[Vec<u8>]) -> Result<Vec<CString>, Failure> {
    bytes
        .iter()
        .map(|b| CString::new(b.clone()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL)))
        .collect::<io::Result<_>>()
        .step("read the arguments", "")
}

/// A name with a slash is itself; another is looked for along the cell's PATH, as a shell would.
fn candidates(plan: &Plan) -> Result<Vec<CString>, Failure> {
    let name = plan.argv.first().map(Vec::as_slice).unwrap_or_default();
    if name.contains(&b'/') {
        return strings(&[name.to_vec()]);
    }
    let path = plan.env.iter().find_map(|kv| kv.strip_prefix(b"PATH=")).unwrap_or(b"/usr/bin:/bin");
    strings(&path.split(|b| *b == b':').map(|dir| [dir, b"/", name].concat()).collect::<Vec<_>>())
}

/// Returns only with the reason: "not found" unless one was found and refused.
fn execute(candidates: &[CString], argv: &CArray, env: &CArray) -> i32 {
    let mut reason = libc::ENOENT;
    for path in candidates {
        match process::execve(path, argv, env).raw_os_error().unwrap_or(libc::EIO) {
            // It is there: what its first line, or its header, asks for is not.
            libc::ENOENT if rustix::fs::access(path, rustix::fs::Access::EXISTS).is_ok() => return libc::ELIBACC,
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => reason = libc::EACCES,
            other => return other,
        }
    }
    reason
}

fn limits(limits: &Limits, without_cgroup: bool) -> Result<(), Failure> {
    let set = |name: &str, resource, value| process::limit(resource, value).step("set a limit", name);
    // Not 0: a core_pattern that is a pipe starts the host's handler even then, and only 1 says no to it.
    set("CORE", libc::RLIMIT_CORE, 1)?;
    set("FSIZE", libc::RLIMIT_FSIZE, limits.file_size)?;
    set("MSGQUEUE", libc::RLIMIT_MSGQUEUE, 0)?;
    set("RTPRIO", libc::RLIMIT_RTPRIO, 0)?;
    // Counted by user, and cells may have one in common: timers and queued signals of one are not to be all there are.
    set("SIGPENDING", libc::RLIMIT_SIGPENDING, 1024)?;
    set("MEMLOCK", libc::RLIMIT_MEMLOCK, 8 << 20)?;
    if let Some(cpu) = limits.cpu_time {
        // A backstop for one process; what counts is all of them together.
        set("CPU", libc::RLIMIT_CPU, cpu.as_secs() + 2)?;
    }
    if without_cgroup {
        set("NPROC", libc::RLIMIT_NPROC, crowd::line(limits))?;
        // Address space is not memory: runtimes reserve gigabytes that they never touch. Sampling is what holds
        // the line; this only bounds what fits between two samples.
        set("AS", libc::RLIMIT_AS, limits.memory.saturating_mul(4).saturating_add(8 << 30))?;
    } else {
        // Above the cgroup's line, so that it is the cgroup which refuses, and counts.
        set("NPROC", libc::RLIMIT_NPROC, limits.processes.saturating_add(64))?;
    }
    Ok(())
}
