//! One stream of the program's output: counted, kept at both ends, passed on with back-pressure.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::pipe::{PipeFlags, SpliceFlags};

use crate::report::Output;
use crate::sys::socket;

/// What is read at once: little at first, because most programs say little and memory must be paid for.
pub(super) const FIRST_CHUNK: usize = 4 * 1024;
pub(super) const CHUNK: usize = 64 * 1024;
const DIRECT: usize = 1 << 20;

/// Keeps the first half and the last half of its budget; never holds more than that.
struct Keep {
    head: Vec<u8>,
    head_cap: usize,
    tail: VecDeque<u8>,
    tail_cap: usize,
}

impl Keep {
    fn new(budget: usize) -> Keep {
        Keep { head: vec![], head_cap: budget.div_ceil(2), tail: VecDeque::new(), tail_cap: budget / 2 }
    }

    fn is_nothing(&self) -> bool {
        self.head_cap + self.tail_cap == 0
    }

    fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_cap - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.tail_cap)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_cap);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }
}

/// The caller's end, written to without ever waiting for it. O_NONBLOCK would be a change of the open file, which we
/// share with our parent: so the file is opened again, for us alone, where that can be.
enum Sink {
    /// Our own open file of a terminal; or one that does not block (a regular file).
    File(OwnedFd),
    Socket(OwnedFd),
    Pipe {
        to: OwnedFd,
        /// For a pipe of somebody else's, which can't be opened again.
        relay: Option<Relay>,
    },
}

/// A pipe of ours before the caller's: splice takes "do not wait" with each call.
struct Relay {
    from: OwnedFd,
    by: OwnedFd,
    /// Bytes that are in it.
    held: usize,
}

impl Sink {
    fn open(fd: BorrowedFd<'_>) -> io::Result<Sink> {
        let own = || {
            let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty())
        };
        match FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode) {
            FileType::Socket => Ok(Sink::Socket(fd.try_clone_to_owned()?)),
            FileType::Fifo => match own() {
                Ok(to) => Ok(Sink::Pipe { to, relay: None }),
                Err(_) => {
                    let (from, by) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                    Ok(Sink::Pipe { to: fd.try_clone_to_owned()?, relay: Some(Relay { from, by, held: 0 }) })
                }
            },
            // A terminal that is somebody else's can't be opened again: then it is written to as it is.
            FileType::CharacterDevice => Ok(Sink::File(own().or_else(|_| rustix::io::fcntl_dupfd_cloexec(fd, 3))?)),
            _ => Ok(Sink::File(fd.try_clone_to_owned()?)),
        }
    }

    /// Takes some of the bytes; they may be on their way still, see `is_empty`.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::File(fd) | Sink::Pipe { to: fd, relay: None } => Ok(rustix::io::write(fd, bytes)?),
            Sink::Socket(fd) => socket::send_now(fd.as_fd(), bytes),
            Sink::Pipe { to, relay: Some(relay) } => relay.write(to.as_fd(), bytes),
        }
    }

    fn is_empty(&self) -> bool {
        !matches!(self, Sink::Pipe { relay: Some(Relay { held: 1.., .. }), .. })
    }

    /// A pipe that has everything it was given.
    fn idle_pipe(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Sink::Pipe { to, .. } if self.is_empty() => Some(to.as_fd()),
            _ => None,
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Sink::File(fd) | Sink::Socket(fd) | Sink::Pipe { to: fd, .. } => fd.as_fd(),
        }
    }
}

impl Relay {
    fn write(&mut self, to: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        if self.held == 0 && !bytes.is_empty() {
            // A splice takes a whole slot of the caller's pipe, of which there are 16, for however little: a caller who
            // reads later would get no more than 16 lines. A write fills the last one up first, and can be told not to
            // wait since Linux 6.4.
            let plain = [io::IoSlice::new(bytes)];
            match rustix::io::pwritev2(to, &plain, u64::MAX, rustix::io::ReadWriteFlags::NOWAIT) {
                Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
                done => return Ok(done?),
            }
            taken = rustix::io::write(&self.by, bytes)?;
            self.held = taken;
        }
        match rustix::pipe::splice(&self.from, None, to, None, self.held, SpliceFlags::NONBLOCK) {
            Ok(n) => self.held -= n,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        Ok(taken)
    }
}

pub(super) struct Stream {
    pipe: Option<OwnedFd>,
    sink: Option<Sink>,
    /// Read from the program, not yet taken by the caller. While there is any, nothing more is read.
    pending: Vec<u8>,
    /// Nobody is left who could say more.
    is_last: bool,
    /// The caller's pipe is full of what went there directly.
    full: bool,
    keep: Keep,
    total: u64,
    limit: u64,
    failed: Option<io::Error>,
}

impl Stream {
    pub(super) fn new(
        pipe: Option<OwnedFd>,
        sink: Option<BorrowedFd<'_>>,
        keep: usize,
        limit: u64,
    ) -> io::Result<Stream> {
        let sink = sink.map(Sink::open).transpose()?;
        Ok(Stream {
            pipe,
            sink,
            pending: vec![],
            is_last: false,
            full: false,
            keep: Keep::new(keep),
            total: 0,
            limit,
            failed: None,
        })
    }

    /// The program's end, when there is room for what it says.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        if self.waits() { None } else { self.pipe.as_ref().map(AsFd::as_fd) }
    }

    /// What to wait for there: a terminal of which no more comes can always be written to, so that it is looked at.
    pub(super) fn awaited(&self) -> PollFlags {
        if self.is_last { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    }

    /// The caller's end, when something waits for it.
    pub(super) fn sink(&self) -> Option<BorrowedFd<'_>> {
        if self.waits() { self.sink.as_ref().map(Sink::fd) } else { None }
    }

    pub(super) fn is_done(&self) -> bool {
        self.pipe.is_none() && !self.waits()
    }

    /// Something is to be taken by the caller before more is read.
    fn waits(&self) -> bool {
        self.full || !self.pending.is_empty() || self.sink.as_ref().is_some_and(|sink| !sink.is_empty())
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn is_over(&self) -> bool {
        self.total > self.limit
    }

    /// Reads once and passes on what is under the limit. The end of the stream closes it. Returns how much of the buffer
    /// went nowhere else.
    pub(super) fn read(&mut self, buf: &mut Vec<u8>) -> usize {
        if self.pass_directly() {
            return 0;
        }
        let Some(pipe) = &self.pipe else { return 0 };
        buf.resize(buf.len().max(FIRST_CHUNK), 0);
        let n = match rustix::io::read(pipe, &mut buf[..]) {
            Ok(n) => n,
            // The kernel has brought what was on its way before it says so.
            Err(rustix::io::Errno::AGAIN) if self.is_last => 0,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return 0,
            Err(_) => 0,
        };
        if n == 0 {
            self.pipe = None;
            return 0;
        }
        let room = self.limit.saturating_sub(self.total).min(n as u64) as usize;
        self.total += n as u64;
        self.keep.push(&buf[..n]);
        let (filled, is_passed_on) = (n == buf.len(), self.sink.is_some());
        if is_passed_on && room > 0 {
            self.pending.extend_from_slice(&buf[..room]);
            self.write();
        }
        if filled && buf.len() < CHUNK {
            buf.resize(2 * buf.len(), 0);
        }
        if is_passed_on { 0 } else { room }
    }

    /// All that it has said is there. Another process of the host's may hold it open: nobody waits for that one.
    pub(super) fn end_of_terminal(&mut self) {
        self.is_last = true;
    }

    /// From the program's pipe to the caller's, where nothing is to be kept: no byte is copied. False: not possible here.
    fn pass_directly(&mut self) -> bool {
        let room = self.limit.saturating_sub(self.total).min(DIRECT as u64) as usize;
        let (Some(pipe), Some(to)) = (&self.pipe, self.sink.as_ref().and_then(Sink::idle_pipe)) else { return false };
        if !self.keep.is_nothing() || !self.pending.is_empty() || room == 0 {
            return false;
        }
        // Only much at a time is worth a slot, see `Relay`; or some, as long as the caller keeps up.
        let waiting = rustix::io::ioctl_fionread(pipe).unwrap_or(0);
        let keeps_up = || rustix::io::ioctl_fionread(to).is_ok_and(|unread| unread == 0);
        if waiting < FIRST_CHUNK as u64 || (waiting < CHUNK as u64 / 2 && !keeps_up()) {
            return false;
        }
        match rustix::pipe::splice(pipe, None, to, None, room, SpliceFlags::NONBLOCK | SpliceFlags::MOVE) {
            Ok(0) => self.pipe = None,
            Ok(n) => self.total += n as u64,
            // The source has something, or we would not be here.
            Err(rustix::io::Errno::AGAIN) => self.full = true,
            Err(rustix::io::Errno::INTR) => {}
            // A reader who left is found by the ordinary way, as is everything else.
            Err(_) => return false,
        }
        true
    }

    /// Passes on what the caller takes now. A caller who closed his end ends the program's too.
    pub(super) fn write(&mut self) {
        self.full = false;
        let Some(sink) = &mut self.sink else { return };
        match sink.write(&self.pending) {
            Ok(n) => drop(self.pending.drain(..n)),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(e) => {
                // A reader who left is no failure; a full disk is, and must not pass for output that arrived.
                if e.raw_os_error() != Some(libc::EPIPE) {
                    self.failed = Some(e);
                }
                self.pending.clear();
                self.sink = None;
                self.pipe = None;
            }
        }
    }

    /// What the caller has not taken yet he still may.
    pub(super) fn close(&mut self) {
        self.pipe = None;
    }

    /// The caller has called the run off: what it did not take yet is dropped.
    pub(super) fn give_up(&mut self) {
        self.pending.clear();
        self.full = false;
        self.sink = None;
    }

    pub(super) fn finish(self) -> Output {
        let failed = self.failed.map(|e| e.to_string());
        Output { head: self.keep.head, tail: self.keep.tail.into(), total: self.total, failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(budget: usize, writes: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        let mut keep = Keep::new(budget);
        writes.iter().for_each(|bytes| keep.push(bytes));
        (keep.head, keep.tail.into())
    }

    #[test]
    fn under_the_budget_everything_is_kept() {
        let (head, tail) = kept(10, &[b"abc", b"defg", b"hij"]);
        assert_eq!([head, tail].concat(), b"abcdefghij");
    }

    #[test]
    fn over_it_both_ends_are() {
        assert_eq!(kept(4, &[b"abcdefgh"]), (b"ab".to_vec(), b"gh".to_vec()));
        assert_eq!(kept(5, &[b"a", b"bcdefgh", b"i"]), (b"abc".to_vec(), b"hi".to_vec()));
        assert_eq!(kept(0, &[b"abc"]), (vec![], vec![]));
    }
}
