//! A terminal of the run's own. The program has one end of it and its supervisor the other: nobody's shell reads there, and
//! what a program pushes into its own input it alone will read.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

pub struct Terminal {
    master: OwnedFd,
}

impl Terminal {
    pub fn new(rows: u16, columns: u16) -> io::Result<Terminal> {
        let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        rustix::pty::unlockpt(&master)?;
        let terminal = Terminal { master };
        terminal.resize(rows, columns)?;
        Ok(terminal)
    }

    /// The program is told by a SIGWINCH.
    pub fn resize(&self, rows: u16, columns: u16) -> io::Result<()> {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(rustix::termios::tcsetwinsize(&self.master, size)?)
    }

    pub(crate) fn our_end(&self) -> io::Result<OwnedFd> {
        self.master.try_clone()
    }

    /// Without a name, which could be of another one where /dev/pts is not the place of what /dev/ptmx makes.
    pub(crate) fn program_end(&self) -> io::Result<OwnedFd> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        Ok(rustix::pty::ioctl_tiocgptpeer(&self.master, flags)?)
    }

    /// Where the host has that end, if it has it anywhere.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let path = rustix::pty::ptsname(&self.master, vec![]).ok()?.into_bytes();
        let path = PathBuf::from(OsString::from_vec(path));
        let (named, ours) = (rustix::fs::stat(&path).ok()?, rustix::fs::fstat(self.program_end().ok()?).ok()?);
        ((named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)).then_some(path)
    }
}
