//! The service manager is told when there is something to connect to, and when it ends (sd_notify): one datagram to the socket
//! that NOTIFY_SOCKET names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

pub(crate) const STOPPING: &str = "STOPPING=1\nSTATUS=ending: nothing new is taken";

pub(crate) fn ready(address: std::net::SocketAddr) -> String {
    format!("READY=1\nSTATUS=listening on http://{address}")
}

/// Where there is no such manager, nothing. One that cannot be told has its own time-out for that.
pub(crate) fn tell(what: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else { return };
    if let Err(error) = send(&socket, what) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}

fn send(socket: &OsStr, what: &str) -> io::Result<()> {
    // A name that begins with `@` is in the abstract namespace.
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let from = UnixDatagram::unbound()?;
    // A manager that does not read must not keep the service from serving.
    from.set_nonblocking(true)?;
    from.send_to_addr(what.as_bytes(), &address).map(drop)
}
