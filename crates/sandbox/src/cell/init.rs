//! PID 1 of the cell: forks the program, reaps what is orphaned, passes SIGTERM on, tells the end.
//!
//! It has no capability, is not dumpable, and reads nothing that the program could have written. When it exits, the
//! kernel kills everything else in the pid namespace: so nothing outlives the program's main process.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};

use super::{Run, Step, crowd, payload};
use crate::spec::Limits;
use crate::sys::{process, signal};
use crate::wire::{self, COUNT, Failure, FromCell, Plan, Rusage, SIGNAL};

pub(crate) fn live(run: Run, plan: &Plan) -> Result<(), (Failure, OwnedFd)> {
    let started = start(&run, plan);
    // The program's streams are the program's alone: their ends must be seen when it closes them.
    let Run { supervisor, launcher, stdio, view, egress, count_clones, .. } = run;
    drop((stdio, view, egress));
    let crowd = count_clones.then_some(&plan.limits);
    match started {
        Err(failure) => Err((failure, supervisor)),
        Ok((main, signals)) => {
            watch(main, &signals, &supervisor, &launcher, crowd);
            Ok(())
        }
    }
}

fn start(run: &Run, plan: &Plan) -> Result<(process::Pid, OwnedFd), Failure> {
    let signals = signal::watch(&[libc::SIGCHLD]).step("watch for children", "")?;
    let set_up = process::cpu_time().saturating_sub(run.joined);
    let main = process::spawn(&mut || {
        if let Err(failure) = payload::become_program(run, plan, set_up) {
            let _ = wire::send(&run.supervisor, &FromCell::Failed(failure), &[]);
        }
        process::exit_now(127)
    });
    let main = main.step("fork the program", "")?;
    if run.count_clones {
        process::limit(libc::RLIMIT_NPROC, crowd::line(&plan.limits)).step("set a limit", "NPROC")?;
    }
    Ok((main, signals))
}

/// `crowded`: the limits, where nobody else sees when there are too many tasks.
fn watch(main: process::Pid, signals: &OwnedFd, supervisor: &OwnedFd, launcher: &OwnedFd, crowded: Option<&Limits>) {
    let tell_too_many = || {
        if let Some(tasks) = crowded.and_then(crowd::too_many) {
            let _ = wire::send(supervisor, &FromCell::TooMany { tasks }, &[]);
        }
    };
    let (mut usage, mut tasks) = (Rusage::default(), None);
    loop {
        let mut fds = [
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(supervisor, PollFlags::IN),
            PollFd::new(launcher, PollFlags::IN),
        ];
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            // Never seen; an init that can't hear must not live.
            Err(_) => return,
        }
        let [signal, order, death] = fds.map(|fd| !fd.revents().is_empty());
        if death {
            return;
        }
        if order {
            let mut byte = [0u8; 16];
            match rustix::net::recv(supervisor.as_fd(), &mut byte, rustix::net::RecvFlags::DONTWAIT) {
                Ok((1.., _)) if byte[0] == COUNT => tell_too_many(),
                Ok((2.., _)) if byte[0] == SIGNAL => signal::send(main, byte[1].into()),
                Ok((1.., _)) => {
                    signal::send_to_everyone_else(libc::SIGTERM);
                    // One that stopped itself could not hear it otherwise.
                    signal::send_to_everyone_else(libc::SIGCONT);
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                // The supervisor is gone, and so is everybody's reason to be here.
                _ => return,
            }
        }
        if signal {
            while signal::read(signals.as_fd()).is_some() {}
            // As long as it is not reaped, the main process counts.
            if crowded.is_some() && process::is_dead(main) {
                tasks = crowd::at_once();
                tell_too_many();
            }
            while let Some(dead) = process::reap() {
                usage.add(&dead.usage);
                if dead.pid == main {
                    let ended = FromCell::Ended { status: dead.status, usage, at_ns: wire::now_ns(), tasks };
                    let _ = wire::send(supervisor, &ended, &[]);
                    return;
                }
            }
        }
    }
}
