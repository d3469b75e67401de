//! Calls that we make for the program, on a copy of its own descriptor, because nothing else in the kernel stops what
//! must be stopped: connect (a socket of the host's with a name in a given tree) and flock (a file shared with the host
//! and with other cells). Letting the program's own call go on after a look would be a race that it can win.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, TryRecvError};

use rustix::fs::{FileType, FlockOperation};
use rustix::net::sockopt;

use super::walk::{Lost, name_of};
use super::{Seen, Witness, attempt, net};
use crate::report::Kind;
use crate::spec::Network;
use crate::sys::seccomp::{self, Answer, Notification};
use crate::sys::{process, socket};

/// A call that is not finished yet; the program waits, we do not.
pub(crate) enum Pending {
    /// A connection that a thread is making, which may have to wait: O_NONBLOCK is the open file's, and the program can
    /// take it away at any moment.
    Connect {
        socket: OwnedFd,
        result: Receiver<io::Result<()>>,
        done: bool,
    },
    Lock {
        file: OwnedFd,
        operation: FlockOperation,
    },
}

fn finished(result: io::Result<()>) -> Answer {
    match result {
        Ok(()) => Answer::Value(0),
        Err(e) => Answer::Errno(e.raw_os_error().unwrap_or(libc::EIO)),
    }
}

impl Pending {
    /// The answer, when there is one by now.
    pub(crate) fn retry(&mut self) -> Option<Answer> {
        match self {
            Pending::Connect { result, done, .. } => {
                let answer = match result.try_recv() {
                    Ok(result) => finished(result),
                    Err(TryRecvError::Empty) => return None,
                    Err(TryRecvError::Disconnected) => Answer::Errno(libc::EIO),
                };
                *done = true;
                Some(answer)
            }
            Pending::Lock { file, operation } => match rustix::fs::flock(file, *operation) {
                Err(rustix::io::Errno::WOULDBLOCK) => None,
                other => Some(finished(other.map_err(Into::into))),
            },
        }
    }
}

impl Drop for Pending {
    /// Whoever asked is gone: a thread that waits for a peer is woken, by the peer's death or by this.
    fn drop(&mut self) {
        if let Pending::Connect { socket, done: false, .. } = self {
            let _ = rustix::net::shutdown(&*socket, rustix::net::Shutdown::Both);
        }
    }
}

/// A copy of the caller's own descriptor, the first argument of the call.
fn descriptor(call: &Notification, is_current: &dyn Fn() -> bool) -> Result<OwnedFd, Seen> {
    let copy = process::copy_descriptor(call.pid, call.args[0] as i32).map_err(|e| match e.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::EMFILE | libc::ENFILE) => Seen::Blind(Answer::Errno(libc::EACCES)),
        Some(errno) => Seen::Nothing(Answer::Errno(errno)),
        None => Seen::Nothing(Answer::Errno(libc::EBADF)),
    })?;
    // A thread that died meanwhile may have left its number to somebody else.
    if is_current() { Ok(copy) } else { Err(Seen::Nothing(Answer::Errno(libc::EBADF))) }
}

impl Witness {
    pub(super) fn connect(&self, call: &Notification, is_current: &dyn Fn() -> bool) -> Seen {
        self.try_connect(call, is_current).unwrap_or_else(|seen| seen)
    }

    fn try_connect(&self, call: &Notification, is_current: &dyn Fn() -> bool) -> Result<Seen, Seen> {
        let quiet = |errno| Seen::Nothing(Answer::Errno(errno));
        let mut address = vec![0u8; call.args[2].min(128) as usize];
        match seccomp::read_memory(call.pid, call.args[1], &mut address) {
            Ok(n) if n == address.len() && n >= 2 => {}
            _ => return Err(quiet(libc::EFAULT)),
        }
        let socket = descriptor(call, is_current)?;
        let domain = sockopt::socket_domain(&socket).map_err(|_| quiet(libc::ENOTSOCK))?.as_raw();
        let family = u16::from_ne_bytes([address[0], address[1]]);
        if i32::from(domain) == libc::AF_UNIX && i32::from(family) == libc::AF_UNIX {
            return self.connect_unix(call, socket, address);
        }
        // An empty family takes a connection back.
        let to = if i32::from(family) == libc::AF_UNSPEC { None } else { net::address_of(&address) };
        if let Some(to) = to.filter(|to| !net::is_allowed(*to, self.network)) {
            // getaddrinfo connects datagram sockets to sort its results: nothing is sent.
            let datagram = sockopt::socket_type(&socket).is_ok_and(|kind| kind == rustix::net::SocketType::DGRAM);
            if (datagram && net::is_loopback(to)) || to.port() == 0 {
                return Ok(quiet(libc::ENETUNREACH));
            }
            return Ok(attempt(Kind::Network, call, libc::ENETUNREACH, |d| d.address = Some(to.to_string())));
        }
        self.connect_aside(socket, address, None)
    }

    /// On a thread of its own, which tells by `wake` that it is done.
    fn connect_aside(&self, socket: OwnedFd, address: Vec<u8>, target: Option<OwnedFd>) -> Result<Seen, Seen> {
        let failed = |_| Seen::Nothing(Answer::Errno(libc::EAGAIN));
        let copy = socket.try_clone().map_err(failed)?;
        let wake = self.wake.try_clone().map_err(failed)?;
        let (send, result) = mpsc::channel();
        let connect = move || {
            let done = socket::connect(copy.as_fd(), &address);
            drop(target);
            let _ = send.send(done);
            let _ = rustix::io::write(&wake, &1u64.to_ne_bytes());
        };
        std::thread::Builder::new().stack_size(64 * 1024).spawn(connect).map_err(failed)?;
        Ok(Seen::Pending(Pending::Connect { socket, result, done: false }))
    }

    fn connect_unix(&self, call: &Notification, socket: OwnedFd, mut address: Vec<u8>) -> Result<Seen, Seen> {
        let quiet = |errno| Seen::Nothing(Answer::Errno(errno));
        let refused = |name: String| attempt(Kind::Network, call, libc::EACCES, |d| d.address = Some(name));
        let mut target = None;
        match address.get(2) {
            None => return Ok(quiet(libc::EINVAL)),
            // Abstract names are the network namespace's. The host's has the host's: nobody is there for a cell.
            Some(0) if self.network == Network::Full => return Ok(quiet(libc::ECONNREFUSED)),
            Some(0) => {}
            Some(_) => {
                let path = address[2..].split(|b| *b == 0).next().unwrap_or_default();
                let walk = self.walk(call.pid);
                let lost = |lost| match lost {
                    Lost::Refused => quiet(libc::ENOENT),
                    Lost::Blind => Seen::Blind(Answer::Errno(libc::EACCES)),
                };
                let place = walk.base(None).and_then(|cwd| walk.locate(cwd, path, true)).map_err(lost)?;
                let file = place.file.ok_or_else(|| quiet(libc::ENOENT))?;
                let stat = rustix::fs::fstat(&file).map_err(|_| quiet(libc::ENOENT))?;
                if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
                    return Ok(quiet(libc::ECONNREFUSED));
                }
                if self.scratch != Some(stat.st_dev) {
                    return Ok(refused(name_of(&file)));
                }
                // By the very file that was looked at, under whatever name.
                address.truncate(2);
                address.extend(format!("/proc/self/fd/{}\0", file.as_raw_fd()).bytes());
                target = Some(file);
            }
        }
        self.connect_aside(socket, address, target)
    }

    /// Locks are of the open file, so that ours on a copy is the program's. Only in the scratch: elsewhere a lock is
    /// seen by the host and by other cells.
    pub(super) fn flock(&self, call: &Notification, is_current: &dyn Fn() -> bool) -> Seen {
        let quiet = |errno| Seen::Nothing(Answer::Errno(errno));
        let file = match descriptor(call, is_current) {
            Ok(file) => file,
            Err(seen) => return seen,
        };
        let wanted = call.args[1] as i32;
        if !rustix::fs::fstat(&file).is_ok_and(|stat| self.scratch == Some(stat.st_dev)) {
            // Who only reads wants that nobody writes, and nobody in the cell can: that lock is as good as held.
            return match wanted & !libc::LOCK_NB {
                libc::LOCK_SH | libc::LOCK_UN => Seen::Nothing(Answer::Value(0)),
                _ => quiet(libc::ENOLCK),
            };
        }
        let operation = match wanted & !libc::LOCK_NB {
            libc::LOCK_SH => FlockOperation::NonBlockingLockShared,
            libc::LOCK_EX => FlockOperation::NonBlockingLockExclusive,
            libc::LOCK_UN => FlockOperation::NonBlockingUnlock,
            _ => return quiet(libc::EINVAL),
        };
        match rustix::fs::flock(&file, operation) {
            Err(rustix::io::Errno::WOULDBLOCK) if wanted & libc::LOCK_NB == 0 => {
                Seen::Pending(Pending::Lock { file, operation })
            }
            other => Seen::Nothing(finished(other.map_err(Into::into))),
        }
    }
}
