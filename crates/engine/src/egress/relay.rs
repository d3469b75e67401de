//! Bytes both ways, counted.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::body::Body;
use super::stop::{Cut, Stop};

const CHUNK: usize = 64 * 1024;
/// How long a host may say nothing to a program that has shut its side. TCP does not tell one that still listens from one
/// that has left, until something is sent to it.
const QUIET: Duration = Duration::from_secs(10);
/// How long a host may take nothing of what there is for it.
const STALLED: Duration = Duration::from_secs(60);

/// One direction.
struct Way<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    /// What of it is to be passed on.
    body: Body,
    buf: Vec<u8>,
    /// Read and not yet written: from here to there.
    start: usize,
    end: usize,
    /// Nothing more will be read.
    ended: bool,
    passed: u64,
}

impl<'a> Way<'a> {
    fn new(from: &'a TcpStream, to: &'a TcpStream, first: &[u8], body: Body) -> Way<'a> {
        let mut buf = first.to_vec();
        buf.resize(first.len().max(CHUNK), 0);
        Way { from, to, ended: body.is_over(), body, buf, start: 0, end: first.len(), passed: 0 }
    }

    /// What it waits for; nothing when it is through.
    fn awaits(&self) -> Option<PollFd<'a>> {
        match (self.start < self.end, self.ended) {
            (true, _) => Some(PollFd::new(self.to, PollFlags::OUT)),
            (false, false) => Some(PollFd::new(self.from, PollFlags::IN)),
            (false, true) => None,
        }
    }

    /// Writes what there is, or reads when there is nothing. True when that was the last of it.
    fn go(&mut self) -> io::Result<bool> {
        if self.start < self.end {
            let n = self.to.write(&self.buf[self.start..self.end])?;
            self.start += n;
            self.passed += n as u64;
        } else {
            let n = self.from.read(&mut self.buf)?;
            // Whoever leaves before he has said all has asked for nothing.
            if n == 0 && self.body != Body::Endless {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // What comes behind the body is passed to nobody.
            (self.start, self.end) = (0, self.body.take(&self.buf[..n])?);
            self.ended = n == 0 || self.body.is_over();
        }
        Ok(self.ended && self.start == self.end)
    }
}

/// What went to the host and what came from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) sent: u64,
    pub(super) received: u64,
    /// The program's body was none; what there was of it has gone no further.
    pub(super) malformed: bool,
}

/// Until both are through, one of them breaks off or keeps the other waiting, or the run is over. `first` goes to the host before anything else; of
/// what the program says after that, as much as is of the body.
pub(super) fn relay(program: &TcpStream, host: &TcpStream, first: &[u8], body: Body, stop: &Stop) -> Passed {
    let is_tunnel = body == Body::Endless;
    let mut out = Way::new(program, host, first, body);
    let mut back = Way::new(host, program, &[], Body::Endless);
    // However it ends, it is over.
    let ended = pump(&mut out, &mut back, is_tunnel, stop);
    let malformed = matches!(ended, Err(Cut::Failed(e)) if e.kind() == io::ErrorKind::InvalidData);
    Passed { sent: out.passed, received: back.passed, malformed }
}

fn pump(out: &mut Way<'_>, back: &mut Way<'_>, is_tunnel: bool, stop: &Stop) -> Result<(), Cut> {
    let mut is_shut = false;
    loop {
        let both = [out.awaits(), back.awaits()];
        // The answer to a request is its end; a tunnel has two.
        if both[1].is_none() && (both[0].is_none() || !is_tunnel) {
            return Ok(());
        }
        // Whether the program is there is of interest until it has got everything. An error is told of in any case.
        let watched = if is_shut { PollFlags::empty() } else { PollFlags::RDHUP };
        let watched = both[1].is_some().then(|| PollFd::new(out.from, watched));
        let patience = match (is_shut, out.start < out.end) {
            (true, _) => Some(QUIET),
            (false, true) => Some(STALLED),
            (false, false) => None,
        };
        let fds = both.iter().chain([&watched]).flatten().cloned().collect();
        let mut ready = stop.wait_for_any(fds, patience.map(|time| Instant::now() + time))?.into_iter();
        let [go_out, go_back] = both.map(|awaited| awaited.is_some() && ready.next() == Some(true));
        if ready.next() == Some(true) {
            if is_shut {
                return Err(Cut::Stopped);
            }
            is_shut = true;
        }
        // Many servers take a client that has shut its side for one that has left.
        if go_out && step(out)? && is_tunnel {
            out.to.shutdown(Shutdown::Write)?;
        }
        if go_back && step(back)? {
            back.to.shutdown(Shutdown::Write)?;
        }
    }
}

fn step(way: &mut Way<'_>) -> io::Result<bool> {
    match way.go() {
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
        done => done,
    }
}
