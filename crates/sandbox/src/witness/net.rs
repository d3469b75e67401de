//! Sockets and addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Seen, attempt};
use crate::report::Kind;
use crate::spec::Network;
use crate::sys::seccomp::{Answer, Notification, read_memory};

const DNS: u16 = 53;
const IPPROTO_MPTCP: i32 = 262;
/// More messages in one sendmmsg than are looked at; the kernel takes 1024.
const MAX_BATCH: u64 = 1024;

/// Which sockets can be made. The arguments are plain numbers, so that what is looked at is what happens.
pub(super) fn socket(call: &Notification, network: Network) -> Seen {
    let (family, kind, protocol) = (call.args[0] as i32, call.args[1] as i32 & 0xf, call.args[2] as i32);
    let quiet = |errno| Seen::Nothing(Answer::Errno(errno));
    match family {
        libc::AF_UNIX if matches!(kind, libc::SOCK_STREAM | libc::SOCK_SEQPACKET) => Seen::Nothing(Answer::Continue),
        // A datagram can be sent to any socket of the host's that has a name in a given tree; no namespace and no
        // read-only mount stands between.
        libc::AF_UNIX => quiet(libc::EPROTONOSUPPORT),
        libc::AF_INET | libc::AF_INET6 if network == Network::Full => Seen::Nothing(Answer::Continue),
        // Making one reaches nobody, and runtimes make them to see what the host can do; using it is another call.
        libc::AF_INET | libc::AF_INET6 if matches!(kind, libc::SOCK_STREAM | libc::SOCK_DGRAM) => match protocol {
            0 | libc::IPPROTO_TCP | libc::IPPROTO_UDP | libc::IPPROTO_UDPLITE => Seen::Nothing(Answer::Continue),
            // Go asks for it first and takes TCP.
            IPPROTO_MPTCP => quiet(libc::EPROTONOSUPPORT),
            _ => strange(call, family, kind, protocol),
        },
        // glibc asks the kernel for its addresses in getaddrinfo and getifaddrs, and does without.
        libc::AF_NETLINK if protocol == libc::NETLINK_ROUTE => quiet(libc::EAFNOSUPPORT),
        _ => strange(call, family, kind, protocol),
    }
}

fn strange(call: &Notification, family: i32, kind: i32, protocol: i32) -> Seen {
    let errno = if matches!(family, libc::AF_INET | libc::AF_INET6) { libc::EPERM } else { libc::EAFNOSUPPORT };
    attempt(Kind::Network, call, errno, |d| {
        d.address = Some(format!("family {}, type {kind}, protocol {protocol}", family_name(family)));
    })
}

fn family_name(family: i32) -> String {
    match family {
        libc::AF_INET => "inet".into(),
        libc::AF_INET6 => "inet6".into(),
        libc::AF_NETLINK => "netlink".into(),
        libc::AF_PACKET => "packet".into(),
        libc::AF_VSOCK => "vsock".into(),
        libc::AF_ALG => "alg".into(),
        libc::AF_BLUETOOTH => "bluetooth".into(),
        other => other.to_string(),
    }
}

/// Whether an address may be used where the network is this one. Beyond a cell's own loopback nothing is reachable
/// anyway; this is for the record.
pub(super) fn is_allowed(address: SocketAddr, network: Network) -> bool {
    let own = |ip: Ipv4Addr| ip.is_loopback() || ip.is_unspecified();
    let is_own = match address.ip() {
        IpAddr::V4(ip) => own(ip),
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(ip.is_loopback() || ip.is_unspecified(), own),
    };
    match network {
        Network::None => false,
        // Nobody in a cell serves port 53, which needs a capability: it is a name being looked up.
        Network::Local | Network::Brokered => is_own && address.port() != DNS,
        Network::Full => true,
    }
}

pub(super) fn is_loopback(address: SocketAddr) -> bool {
    is_allowed(address, Network::Local)
}

/// bind, or a send that names its destination.
pub(super) fn address(call: &Notification, network: Network) -> Seen {
    let Ok(destinations) = destinations(call) else { return Seen::Blind(Answer::Continue) };
    match destinations.into_iter().find(|address| !is_allowed(*address, network)) {
        None => Seen::Nothing(Answer::Continue),
        // Whether the host has IPv6 is asked so; nobody can call at a port that is not known yet.
        Some(address) if i64::from(call.nr) == libc::SYS_bind && address.port() == 0 && is_loopback(address) => {
            Seen::Nothing(Answer::Errno(libc::EADDRNOTAVAIL))
        }
        Some(address) => {
            let errno = if i64::from(call.nr) == libc::SYS_bind { libc::EACCES } else { libc::ENETUNREACH };
            attempt(Kind::Network, call, errno, |d| d.address = Some(address.to_string()))
        }
    }
}

/// The internet addresses that the call names.
fn destinations(call: &Notification) -> Result<Vec<SocketAddr>, Blind> {
    let (pid, args) = (call.pid, call.args);
    // msghdr begins with the name and its length; mmsghdr is a msghdr and a count, 64 bytes.
    let message = |at: u64| {
        let mut header = [0u8; 12];
        if read(pid, at, &mut header)? < header.len() {
            return Ok(None);
        }
        let (name, len) = header.split_at(8);
        let name = name.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let len = len.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        parse(pid, name, len)
    };
    match i64::from(call.nr) {
        libc::SYS_bind => Ok(parse(pid, args[1], args[2])?.into_iter().collect()),
        libc::SYS_sendto => Ok(parse(pid, args[4], args[5])?.into_iter().collect()),
        libc::SYS_sendmsg => Ok(message(args[1])?.into_iter().collect()),
        libc::SYS_sendmmsg => {
            let all = (0..args[2].min(MAX_BATCH)).map(|i| message(args[1].saturating_add(64 * i)));
            Ok(all.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
        _ => Ok(vec![]),
    }
}

/// The caller's memory may not be read.
struct Blind;

/// Reads what is there; nothing where nothing is mapped, which the kernel will say to the caller.
fn read(pid: i32, at: u64, buf: &mut [u8]) -> Result<usize, Blind> {
    match read_memory(pid, at, buf) {
        Ok(n) => Ok(n),
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => Err(Blind),
        Err(_) => Ok(0),
    }
}

fn parse(pid: i32, at: u64, len: u64) -> Result<Option<SocketAddr>, Blind> {
    if at == 0 || len < 2 {
        return Ok(None);
    }
    let mut bytes = [0u8; 128];
    let len = len.min(128) as usize;
    let n = read(pid, at, &mut bytes[..len])?;
    Ok(address_of(&bytes[..n]))
}

/// An internet address in a sockaddr. Without a family, the kernel takes it for an IPv4 one.
pub(super) fn address_of(raw: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(raw.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(raw.get(2..4)?.try_into().ok()?);
    match family {
        libc::AF_INET | libc::AF_UNSPEC => {
            let ip: [u8; 4] = raw.get(4..8)?.try_into().ok()?;
            Some(SocketAddr::from((Ipv4Addr::from(ip), port)))
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = raw.get(8..24)?.try_into().ok()?;
            Some(SocketAddr::from((Ipv6Addr::from(ip), port)))
        }
        _ => None,
    }
}
