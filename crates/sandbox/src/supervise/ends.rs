//! Both ends of the program's three streams: pipes, or a terminal, where what it says is one stream.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::PipeFlags;

use crate::terminal::Terminal;

pub(super) struct Ends {
    /// Input, output, errors.
    pub(super) theirs: [OwnedFd; 3],
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: Option<OwnedFd>,
    /// The program's end of a terminal: held for as long as there is anybody who could open it again.
    pub(super) held: Option<OwnedFd>,
}

impl Ends {
    pub(super) fn new(terminal: Option<&Terminal>) -> io::Result<Ends> {
        let Some(terminal) = terminal else {
            let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
            let ((input, stdin), (stdout, output), (stderr, errors)) = (pipe()?, pipe()?, pipe()?);
            return Ok(Ends { theirs: [input, output, errors], stdin, stdout, stderr: Some(stderr), held: None });
        };
        let theirs = terminal.program_end()?;
        Ok(Ends {
            theirs: [theirs.try_clone()?, theirs.try_clone()?, theirs.try_clone()?],
            stdin: terminal.our_end()?,
            stdout: terminal.our_end()?,
            stderr: None,
            held: Some(theirs),
        })
    }
}
