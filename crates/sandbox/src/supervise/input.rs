//! The program's standard input: copied through a pipe of ours, or into its terminal, never the caller's own open file.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::output::{CHUNK, FIRST_CHUNK};

/// What a terminal takes for the end of its input, at the beginning of a line; elsewhere, for the end of that.
const END_OF_INPUT: u8 = 4;

#[derive(Default)]
pub(super) struct Input {
    source: Option<OwnedFd>,
    /// Or our end of the terminal.
    pipe: Option<OwnedFd>,
    pending: Vec<u8>,
    terminal: bool,
    /// The last byte was no end of a line.
    in_line: bool,
}

impl Input {
    /// Without a source it ends at once: an empty input.
    pub(super) fn new(source: Option<OwnedFd>, pipe: OwnedFd, terminal: bool) -> std::io::Result<Input> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let is_empty = source.is_none();
        let mut input = Input { source, pipe: Some(pipe), terminal, ..Input::default() };
        if is_empty {
            input.end();
        }
        Ok(input)
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
                self.in_line = !matches!(buf[n - 1], b'\n' | b'\r');
                if n == buf.len() && n < CHUNK {
                    buf.resize(2 * n, 0);
                }
                self.write();
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            _ => self.end(),
        }
    }

    /// Nothing more comes. A terminal cannot be closed for that: the program may still write to it.
    fn end(&mut self) {
        if !self.terminal {
            return self.close();
        }
        self.source = None;
        self.pending.extend(std::iter::repeat_n(END_OF_INPUT, if self.in_line { 2 } else { 1 }));
        self.write();
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
