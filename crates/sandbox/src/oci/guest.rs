//! A container that an engine has started: its init has called, and is the porter's guest until it is dead.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::visit::{Heard, LINGER, Visit};
use crate::cell::Step;
use crate::error::RUNTIME;
use crate::sys::{process, socket};
use crate::wire::{Failure, Order};

/// The process on the other side.
fn find(init: &OwnedFd) -> io::Result<OwnedFd> {
    let guest = process::pidfd_open(socket::peer(init.as_fd())?.pid)?;
    // It lives, so that its number is nobody else's.
    let mut fds = [PollFd::new(init, PollFlags::empty())];
    rustix::event::poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    match fds[0].revents().contains(PollFlags::HUP) {
        true => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        false => Ok(guest),
    }
}

fn is_dead_within(guest: &OwnedFd, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        let left = rustix::event::Timespec::try_from(until.saturating_duration_since(Instant::now()));
        match rustix::event::poll(&mut [PollFd::new(guest, PollFlags::IN)], left.ok().as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return ready.is_ok_and(|n| n > 0),
        }
    }
}

impl Visit {
    /// Hands everything over, and returns when the last process of the container is dead.
    pub(super) fn receive_guest(
        &mut self,
        init: OwnedFd,
        order: &Order,
        parts: (Option<&OwnedFd>, &[OwnedFd]),
        start: u64,
    ) -> Result<(), Failure> {
        let guest = find(&init).step("find the container", "")?;
        let served = self.hand_in(&init, parts).and_then(|()| self.attend(&init, &guest, order, start));
        // Its end is init's too, and init's is everybody's; who is dead already cannot be killed.
        drop(init);
        let _ = process::pidfd_signal(guest.as_fd(), libc::SIGKILL);
        match is_dead_within(&guest, LINGER) {
            true => served,
            // Whoever has frozen it: the engine is told to remove it.
            false => Err(Failure {
                step: RUNTIME.into(),
                what: "the container does not end: is it paused?".into(),
                errno: libc::EBUSY,
            }),
        }
    }

    /// Until it is dead, or nobody wants it any more.
    fn attend(&mut self, init: &OwnedFd, guest: &OwnedFd, order: &Order, start: u64) -> Result<(), Failure> {
        let (mut scratch, mut heard) = (None, Heard::Waits);
        loop {
            let mut polled = vec![PollFd::new(&self.leash, PollFlags::IN), PollFd::new(guest, PollFlags::IN)];
            if heard != Heard::Gone {
                polled.push(PollFd::new(init, PollFlags::IN));
            }
            match rustix::event::poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e).step("wait for the container", ""),
            }
            let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready.get(2) == Some(&true) {
                heard = self.hear(init, &mut scratch, order, start)?;
            }
            if ready[0] || ready[1] {
                return Ok(());
            }
        }
    }
}
