//! A connection to one of the addresses that were looked at, and to no other.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::stop::{Cut, Stop};

const WITHIN: Duration = Duration::from_secs(10);

/// The first that answers. Each gets its part of the time.
pub(super) fn connect(addresses: &[SocketAddr], stop: &Stop) -> Result<(TcpStream, SocketAddr), Cut> {
    let end = Instant::now() + WITHIN;
    let mut last = Cut::Late;
    for (address, left) in addresses.iter().zip((1..=addresses.len() as u32).rev()) {
        let share = end.saturating_duration_since(Instant::now()) / left;
        match connect_one(*address, Instant::now() + share, stop) {
            Ok(stream) => return Ok((stream, *address)),
            Err(Cut::Stopped) => return Err(Cut::Stopped),
            Err(other) => last = other,
        }
    }
    Err(last)
}

/// Does not block, neither here nor later.
pub(super) fn connect_one(address: SocketAddr, until: Instant, stop: &Stop) -> Result<TcpStream, Cut> {
    if stop.is_set() {
        return Err(Cut::Stopped);
    }
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None).map_err(io::Error::from)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => {}
        Err(rustix::io::Errno::INPROGRESS) => {
            stop.wait(&socket, PollFlags::OUT, Some(until))?;
            sockopt::socket_error(&socket).and_then(|done| done).map_err(io::Error::from)?;
        }
        Err(e) => return Err(Cut::Failed(e.into())),
    }
    Ok(TcpStream::from(socket))
}
