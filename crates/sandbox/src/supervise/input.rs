//! The program's standard input: copied through a pipe of ours, never the caller's own open file.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::output::{CHUNK, FIRST_CHUNK};

#[derive(Default)]
pub(super) struct Input {
    source: Option<OwnedFd>,
    pipe: Option<OwnedFd>,
    pending: Vec<u8>,
}

impl Input {
    /// Without a source the pipe is closed at once: an empty input.
    pub(super) fn new(source: Option<OwnedFd>, pipe: OwnedFd) -> std::io::Result<Input> {
        if source.is_none() {
            return Ok(Input::default());
        }
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Input { source, pipe: Some(pipe), pending: vec![] })
    }

    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        if self.pending.is_empty() && self.pipe.is_some() { self.source.as_ref().map(AsFd::as_fd) } else { None }
    }

    /// The program's end: for writing when something waits, else only to learn that nobody reads.
    pub(super) fn sink(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.pipe.as_ref().map(|pipe| (pipe.as_fd(), !self.pending.is_empty()))
    }

    pub(super) fn read(&mut self, buf: &mut Vec<u8>) {
        let Some(source) = &self.source else { return };
        buf.resize(buf.len().max(FIRST_CHUNK), 0);
        match rustix::io::read(source, &mut buf[..]) {
            Ok(n @ 1..) => {
                self.pending.extend_from_slice(&buf[..n]);
                if n == buf.len() && n < CHUNK {
                    buf.resize(2 * n, 0);
                }
                self.write();
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            _ => self.close(),
        }
    }

    pub(super) fn write(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        match rustix::io::write(pipe, &self.pending) {
            Ok(n) => drop(self.pending.drain(..n)),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => self.close(),
        }
    }

    pub(super) fn close(&mut self) {
        *self = Input::default();
    }
}
