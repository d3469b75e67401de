//! Sockets and addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Seen, attempt, read_array};
use crate::report::Kind;
use crate::spec::Network;
use crate::sys::seccomp::{Answer, Notification};

const DNS: u16 = 53;

/// A family that the filter does not let pass by itself.
pub(super) fn socket(call: &Notification) -> Seen {
    let (family, kind, protocol) = (call.args[0] as i32, call.args[1] as i32 & 0xf, call.args[2] as i32);
    match family {
        // Making one reaches nobody, and runtimes make them to see what the host can do; using it is another call.
        libc::AF_INET | libc::AF_INET6
            if matches!(kind, libc::SOCK_STREAM | libc::SOCK_DGRAM)
                && matches!(protocol, 0 | libc::IPPROTO_TCP | libc::IPPROTO_UDP | libc::IPPROTO_UDPLITE) =>
        {
            Seen::Nothing(Answer::Continue)
        }
        // glibc asks the kernel for its addresses in getaddrinfo and getifaddrs, and does without.
        libc::AF_NETLINK if protocol == libc::NETLINK_ROUTE => Seen::Nothing(Answer::Errno(libc::EAFNOSUPPORT)),
        _ => {
            let errno = if matches!(family, libc::AF_INET | libc::AF_INET6) { libc::EPERM } else { libc::EAFNOSUPPORT };
            attempt(Kind::Network, call, errno, |d| {
                d.address = Some(format!("family {}, type {kind}, protocol {protocol}", family_name(family)));
            })
        }
    }
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

/// connect, bind, or a send that names its destination.
pub(super) fn address(call: &Notification, network: Network) -> Seen {
    let Some(address) = destination(call) else {
        return Seen::Nothing(Answer::Continue);
    };
    let is_loopback = match address.ip() {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(ip.is_loopback(), |ip| ip.is_loopback()),
        ip => ip.is_loopback(),
    };
    let bind = i64::from(call.nr) == libc::SYS_bind;
    // getaddrinfo connects datagram sockets to port 0 to sort its results: nothing is sent.
    let sorting = address.port() == 0 && !bind;
    // Nobody in a cell serves port 53, which needs a capability: it is a name being looked up.
    let own_loopback = network == Network::Local && is_loopback && address.port() != DNS;
    if sorting || own_loopback {
        return Seen::Nothing(Answer::Continue);
    }
    let errno = if bind { libc::EACCES } else { libc::ENETUNREACH };
    attempt(Kind::Network, call, errno, |d| d.address = Some(address.to_string()))
}

/// The internet address that the call names, if it names one.
fn destination(call: &Notification) -> Option<SocketAddr> {
    let (pid, args) = (call.pid, call.args);
    let (at, len) = match i64::from(call.nr) {
        libc::SYS_connect | libc::SYS_bind => (args[1], args[2]),
        libc::SYS_sendto => (args[4], args[5]),
        // msghdr and mmsghdr both begin with the name and its length.
        libc::SYS_sendmsg | libc::SYS_sendmmsg => {
            let header: [u8; 16] = read_array(pid, args[1])?;
            let (name, len) = header.split_at(8);
            (u64::from_ne_bytes(name.try_into().ok()?), u64::from(u32::from_ne_bytes(len[..4].try_into().ok()?)))
        }
        _ => return None,
    };
    if at == 0 || len < 2 {
        return None;
    }
    let family: [u8; 2] = read_array(pid, at)?;
    match i32::from(u16::from_ne_bytes(family)) {
        libc::AF_INET => {
            let raw: [u8; 8] = read_array(pid, at)?;
            let ip = Ipv4Addr::new(raw[4], raw[5], raw[6], raw[7]);
            Some(SocketAddr::from((ip, u16::from_be_bytes([raw[2], raw[3]]))))
        }
        libc::AF_INET6 => {
            let raw: [u8; 24] = read_array(pid, at)?;
            let ip: [u8; 16] = raw[8..24].try_into().ok()?;
            Some(SocketAddr::from((Ipv6Addr::from(ip), u16::from_be_bytes([raw[2], raw[3]]))))
        }
        _ => None,
    }
}
