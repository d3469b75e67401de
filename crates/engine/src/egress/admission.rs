//! Who may be reached: names and ports by the list, addresses by what they are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hotcell_contract::{AllowedHost, Host, HostPort, is_never_reached, without_tunnel};

use super::head::Target;

/// The first question, answered without a look at the network.
pub(super) fn by_name<'a>(hosts: &[AllowedHost], target: &'a Target) -> Result<&'a HostPort, &'static str> {
    let place = target.place.as_ref().ok_or("is neither a name nor an address in plain form")?;
    if hosts.iter().any(|allowed| allowed.admits(place)) { Ok(place) } else { Err("is not one of the allowed hosts") }
}

/// The second: where the connection may go. An address that the operator has named himself may be a private one. A name
/// that points to one that is not public, among others, is not to be trusted with any. The error is that address.
pub(super) fn by_address(place: &HostPort, found: &[IpAddr]) -> Result<Vec<SocketAddr>, IpAddr> {
    let named = matches!(place.host, Host::Address(_));
    let refused = |ip: &&IpAddr| is_never_reached(**ip) || !(named || is_public(**ip));
    match found.iter().find(refused) {
        Some(ip) => Err(*ip),
        None => Ok(found.iter().map(|ip| SocketAddr::new(*ip, place.port)).collect()),
    }
}

/// Whether an address is one of the internet's, in whatever form it is written.
pub(super) fn is_public(ip: IpAddr) -> bool {
    !is_never_reached(ip)
        && match without_tunnel(ip) {
            IpAddr::V4(ip) => is_public_v4(ip),
            IpAddr::V6(ip) => is_public_v6(ip),
        }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !matches!(
        (a, b, c),
        // This host, private, loopback.
        (0 | 10 | 127, ..)
            // Carriers' own.
            | (100, 64..=127, _)
            // Link-local: the metadata of clouds.
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 168, _)
            // Protocol assignments, documentation, relays of 6to4.
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 51, 100)
            | (203, 0, 113)
            // Benchmarks.
            | (198, 18..=19, _)
            // Multicast, reserved, broadcast.
            | (224..=255, ..)
    )
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        // Protocol assignments, Teredo and benchmarks among them; documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // What is given out to hosts at all. No loopback, no compatible form, no private, link-local or multicast one.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn what_is_not_public() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::1",
            "2002:c0a8:1::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(!is_public(ip(text)), "{text}");
        }
    }

    #[test]
    fn what_is_public() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "126.1.1.1",
            "128.0.0.1",
            "169.253.1.1",
            "172.15.1.1",
            "172.32.1.1",
            "192.0.1.1",
            "192.167.1.1",
            "198.17.1.1",
            "198.20.1.1",
            "223.255.255.1",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:4860:4860::8888",
            "2001:200::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
        ] {
            assert!(is_public(ip(text)), "{text}");
        }
    }

    #[test]
    fn one_bad_address_spoils_a_name() {
        let name = HostPort::parse("example.org:443").expect("a host");
        assert_eq!(by_address(&name, &[ip("8.8.8.8")]), Ok(vec![SocketAddr::new(ip("8.8.8.8"), 443)]));
        for bad in ["127.0.0.1", "169.254.169.254", "::1", "10.0.0.1"] {
            assert!(by_address(&name, &[ip("8.8.8.8"), ip(bad)]).is_err(), "{bad}");
            assert!(by_address(&name, &[ip(bad), ip("8.8.8.8")]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_named_address_may_be_private_and_never_link_local() {
        for (text, good) in
            [("127.0.0.1", true), ("10.0.0.1", true), ("[::1]", true), ("169.254.169.254", false), ("[fe80::1]", false)]
        {
            let place = HostPort::parse(&format!("{text}:80")).expect("a host");
            let Host::Address(ip) = place.host else { panic!("{text} is an address") };
            assert_eq!(by_address(&place, &[ip]).is_ok(), good, "{text}");
        }
    }
}
