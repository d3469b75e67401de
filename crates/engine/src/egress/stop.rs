//! Waiting for a socket, for a moment, and always for the end of the run too.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

/// Once set, it stays: everybody who waits sees it.
#[derive(Clone)]
pub(super) struct Stop {
    fd: Arc<OwnedFd>,
    /// Whose leaving ends the wait as well, and what it is seen by.
    client: Option<(Arc<TcpStream>, PollFlags)>,
}

/// Why a wait was in vain.
#[derive(Debug)]
pub(super) enum Cut {
    /// Nobody waits any more: the run is over, or the program has left the connection.
    Stopped,
    Late,
    Failed(io::Error),
}

impl From<io::Error> for Cut {
    fn from(error: io::Error) -> Cut {
        Cut::Failed(error)
    }
}

impl Stop {
    pub(super) fn new() -> io::Result<Stop> {
        let fd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Stop { fd: Arc::new(fd), client: None })
    }

    /// The same, for what is done for this client alone. An error on its socket is always its end; `flags` says what else.
    pub(super) fn or_gone(&self, client: &Arc<TcpStream>, flags: PollFlags) -> Stop {
        Stop { fd: self.fd.clone(), client: Some((client.clone(), flags)) }
    }

    pub(super) fn set(&self) {
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    pub(super) fn is_set(&self) -> bool {
        matches!(self.wait_for_any(vec![], Some(Instant::now())), Err(Cut::Stopped))
    }

    /// Does nothing until then.
    pub(super) fn rest(&self, until: Instant) {
        let _ = self.wait_for_any(vec![], Some(until));
    }

    pub(super) fn wait(&self, fd: impl AsFd, flags: PollFlags, until: Option<Instant>) -> Result<(), Cut> {
        self.wait_for_any(vec![PollFd::new(&fd, flags)], until).map(drop)
    }

    /// Which of them are ready.
    pub(super) fn wait_for_any<'a>(
        &'a self,
        mut fds: Vec<PollFd<'a>>,
        until: Option<Instant>,
    ) -> Result<Vec<bool>, Cut> {
        let awaited = fds.len();
        fds.extend(self.client.iter().map(|(client, flags)| PollFd::new(client, *flags)));
        fds.push(PollFd::new(&*self.fd, PollFlags::IN));
        loop {
            let left = until.map(|at| {
                let left = at.saturating_duration_since(Instant::now());
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
            });
            match rustix::event::poll(&mut fds, left.as_ref()) {
                Ok(0) => return Err(Cut::Late),
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(Cut::Failed(e.into())),
            }
        }
        let mut ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready.drain(awaited..).any(|over| over) { Err(Cut::Stopped) } else { Ok(ready) }
    }
}
