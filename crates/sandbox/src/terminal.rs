//! A terminal of the run's own. The program has one end of it and its supervisor the other: nobody's shell reads there, and
//! what a program pushes into its own input it alone will read.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::pty::OpenptFlags;
use rustix::termios::{InputModes, OptionalActions, Winsize};

pub struct Terminal {
    /// Until it is hung up.
    master: Mutex<Option<OwnedFd>>,
}

impl Terminal {
    pub fn new(rows: u16, columns: u16) -> io::Result<Terminal> {
        let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        rustix::pty::unlockpt(&master)?;
        let mut modes = rustix::termios::tcgetattr(&master)?;
        // What is rubbed out is a character, however many bytes it has.
        modes.input_modes |= InputModes::IUTF8;
        rustix::termios::tcsetattr(&master, OptionalActions::Now, &modes)?;
        let terminal = Terminal { master: Mutex::new(Some(master)) };
        terminal.resize(rows, columns)?;
        Ok(terminal)
    }

    fn with<T>(&self, what: impl FnOnce(&OwnedFd) -> io::Result<T>) -> io::Result<T> {
        let master = self.master.lock().unwrap_or_else(PoisonError::into_inner);
        what(master.as_ref().ok_or(io::ErrorKind::NotConnected)?)
    }

    /// The program is told by a SIGWINCH.
    pub fn resize(&self, rows: u16, columns: u16) -> io::Result<()> {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        self.with(|master| Ok(rustix::termios::tcsetwinsize(master, size)?))
    }

    /// For who has let go of [`Terminal::our_end`] too: nobody is there any more, and the kernel tells the program so.
    pub(crate) fn hang_up(&self) {
        self.master.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    pub(crate) fn our_end(&self) -> io::Result<OwnedFd> {
        self.with(OwnedFd::try_clone)
    }

    /// Without a name, which could be of another one where /dev/pts is not the place of what /dev/ptmx makes.
    pub(crate) fn program_end(&self) -> io::Result<OwnedFd> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        self.with(|master| Ok(rustix::pty::ioctl_tiocgptpeer(master, flags)?))
    }

    /// Where the host has that end.
    pub(crate) fn path(&self) -> io::Result<PathBuf> {
        let path = self.with(|master| Ok(rustix::pty::ptsname(master, vec![])?))?.into_bytes();
        let path = PathBuf::from(OsString::from_vec(path));
        let (named, ours) = (rustix::fs::stat(&path)?, rustix::fs::fstat(self.program_end()?)?);
        match (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino) {
            true => Ok(path),
            false => Err(io::Error::other("/dev/pts is not where /dev/ptmx makes terminals")),
        }
    }
}
