//! The supervisor's side: starts the launcher, asks it for cells, waits for its end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};

use super::{ENOUGH, MORE, SERVE, SERVED, live};
use crate::sys::process::{self, Pid, Side};
use crate::sys::socket;

pub(crate) struct Process {
    socket: Option<OwnedFd>,
    pid: Pid,
}

impl Process {
    /// Forks the launcher. The caller has checked that it is single-threaded.
    pub(crate) fn start(ahead: usize) -> io::Result<Process> {
        let (ours, theirs) = socket::pair()?;
        match process::fork()? {
            Side::Parent(pid) => Ok(Process { socket: Some(ours), pid }),
            Side::Child => {
                let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| live(theirs, ahead)));
                process::exit_now(if matches!(lived, Ok(Ok(()))) { 0 } else { 70 })
            }
        }
    }

    /// Hands a request over, with what the launcher may expect next.
    pub(crate) fn ask(&self, fds: &[BorrowedFd<'_>], next: Next) -> io::Result<()> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        socket::send(socket.as_fd(), if next == Next::Likely { MORE } else { ENOUGH }, fds)?;
        if next == Next::Never {
            rustix::net::shutdown(socket, rustix::net::Shutdown::Write)?;
        }
        Ok(())
    }

    pub(crate) fn is_up(&self) -> bool {
        let Some(socket) = &self.socket else { return false };
        let mut fds = [PollFd::new(socket, PollFlags::empty())];
        let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        // The other end is the launcher's alone.
        !matches!(rustix::event::poll(&mut fds, Some(&at_once)), Ok(1..)) || !fds[0].revents().contains(PollFlags::HUP)
    }

    /// From here on cells are those of this user. Returns when they are.
    pub(crate) fn serve_for(&self, uid: u32, gid: u32) -> io::Result<()> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let ids = [uid.to_ne_bytes(), gid.to_ne_bytes()].concat();
        socket::send(socket.as_fd(), &[&[SERVE], ids.as_slice()].concat(), &[])?;
        let mut word = [0u8; 16];
        match socket::receive(socket.as_fd(), &mut word, true)? {
            Some((n, _)) if &word[..n] == SERVED => Ok(()),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.socket.take());
        process::wait_for(self.pid);
    }
}

/// What comes after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Others: cells are built ahead for them.
    Likely,
    /// Probably nothing: no cell is built ahead, because it would only be in the way.
    Unlikely,
    /// Nothing, for sure: the launcher clears up beside the caller's own work, and ends.
    Never,
}
