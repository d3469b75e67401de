//! What takes the kernel as long as all the rest of a cell is done beside it, by a second thread: a network namespace,
//! from the first moment on, and then letting go of the host's mounts. It is gone before the cell is sealed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use rustix::fs::{Mode, OFlags};

use super::root::Host;
use super::{Failure, Step};
use crate::sys::process;

pub(crate) struct Aside {
    host: Sender<Host>,
    thread: JoinHandle<Result<(OwnedFd, process::Pid), Failure>>,
}

impl Aside {
    /// Where the program has the host's network there is nothing to make, and nothing to do beside.
    pub(crate) fn unless(shared: bool) -> Result<Option<Aside>, Failure> {
        (!shared).then(Aside::start).transpose().step("start a thread", "")
    }

    fn start() -> io::Result<Aside> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc_dir = rustix::fs::open("/proc", flags, Mode::empty())?;
        let (host, detach) = channel::<Host>();
        let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            let network = process::new_network(proc_dir.as_fd()).step("new network namespace", "")?;
            drop(proc_dir);
            // A working directory of its own, from which to let go.
            process::unshare(libc::CLONE_FS).step("step aside", "")?;
            let host = detach.recv().map_err(|_| io::Error::from_raw_os_error(libc::ESRCH));
            host.step("detach the host", "")?.detach()?;
            Ok((network, process::thread_id()))
        })?;
        Ok(Aside { host, thread })
    }

    pub(super) fn detach(&mut self, host: Host) {
        // A thread that failed before has its own reason to give.
        let _ = self.host.send(host);
    }

    /// Waits until both are done, or says why not, and enters the network.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        drop(self.host);
        let ended = self.thread.join();
        let failed = |_| Err(io::Error::from_raw_os_error(libc::EIO)).step("step aside", "");
        let (network, thread) = ended.unwrap_or_else(failed)?;
        process::wait_for_thread(thread);
        process::enter_network(network.as_fd()).step("new network namespace", "")
    }
}
