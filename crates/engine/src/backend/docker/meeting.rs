//! Where the init of a container calls: a socket in a directory of the caller's own, for as long as it takes to be called.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::state::Owner;

pub(super) struct Meeting {
    path: PathBuf,
    listener: OwnedFd,
}

impl Meeting {
    pub(super) fn new() -> Result<Meeting, String> {
        let path = new_name(&directory()?, "");
        let made = || -> std::io::Result<OwnedFd> {
            let socket =
                rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
            rustix::net::bind(&socket, &SocketAddrUnix::new(&path)?)?;
            // The directory keeps others away; in the container it is nobody who calls.
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))?;
            rustix::net::listen(&socket, 1)?;
            Ok(socket)
        };
        let listener = made().map_err(|e| format!("cannot listen at `{}`: {e}", path.display()))?;
        Ok(Meeting { path, listener })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whoever has called within `time`; an error when `cancel` is readable.
    pub(super) fn called(&self, time: Duration, cancel: Option<BorrowedFd<'_>>) -> std::io::Result<Option<OwnedFd>> {
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(cancel.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        match rustix::event::poll(&mut fds, Some(&time)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(None),
            Ok(_) if fds[0].revents().is_empty() => Err(std::io::Error::other("it was called off")),
            Ok(_) => Ok(Some(rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC)?)),
            Err(e) => Err(e.into()),
        }
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A directory that is this user's alone, and that an engine on this host can see.
fn directory() -> Result<PathBuf, String> {
    let uid = rustix::process::geteuid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let dir = match (uid.is_root(), runtime) {
        (true, _) => "/run/hotcell".into(),
        (false, Some(dir)) => dir.join("hotcell"),
        (false, None) => PathBuf::from(format!("/tmp/hotcell-{}", uid.as_raw())),
    };
    match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(format!("cannot make `{}`, where containers call: {e}", dir.display()));
        }
        _ => {}
    }
    let meta = dir.symlink_metadata().map_err(|e| format!("cannot use `{}`: {e}", dir.display()))?;
    if !meta.is_dir() || meta.uid() != uid.as_raw() || meta.mode() & 0o077 != 0 {
        return Err(format!(
            "`{}` is not a directory of yours alone: remove it, or set XDG_RUNTIME_DIR to one that is",
            dir.display()
        ));
    }
    Ok(dir)
}

/// A name that nobody else has. What those have left there who died is removed.
pub(super) fn new_name(dir: &Path, prefix: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(numbers) = name.strip_prefix(prefix) else { continue };
        let mut numbers = numbers.split('-').map_while(|part| part.parse().ok());
        if let (Some(pid), Some(start)) = (numbers.next(), numbers.next())
            && !Owner::once(pid, start).is_alive()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let owner = Owner::this();
    dir.join(format!("{prefix}{}-{}-{}", owner.pid, owner.start, COUNT.fetch_add(1, Ordering::Relaxed)))
}
