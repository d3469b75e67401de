//! Hosts, as policies name them and as programs ask for them: one way to write each, or none.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A name or an address. Names are in small letters and without the dot at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    Name(String),
    Address(IpAddr),
}

/// Where somebody wants to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    pub host: Host,
    pub port: u16,
}

/// One of `allowed_hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    /// `*.`: every name below the host's, at any depth, and not the host itself.
    pub below: bool,
    pub host: Host,
    pub port: u16,
}

impl Host {
    /// An address of version 6 stands in brackets. What some libraries take for an address and others for a name
    /// (`127.1`, `0x7f000001`, `2130706433`) is neither.
    pub fn parse(text: &str) -> Option<Host> {
        if let Some(inner) = text.strip_prefix('[') {
            let ip: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
            return Some(Host::Address(IpAddr::V6(ip).to_canonical()));
        }
        if let Ok(ip) = text.parse::<Ipv4Addr>() {
            return Some(Host::Address(ip.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        let last = name.rsplit('.').next().unwrap_or_default();
        let number = last.bytes().all(|b| b.is_ascii_digit()) || last.to_ascii_lowercase().starts_with("0x");
        let is_name = name.len() <= 253 && name.split('.').all(is_label) && !number;
        is_name.then(|| Host::Name(name.to_ascii_lowercase()))
    }
}

/// Digits alone: no sign, no blank.
pub fn parse_port(text: &str) -> Option<u16> {
    let digits = (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0)
}

impl HostPort {
    pub fn parse(text: &str) -> Option<HostPort> {
        let (host, port) = text.rsplit_once(':')?;
        Some(HostPort { host: Host::parse(host)?, port: parse_port(port)? })
    }
}

impl AllowedHost {
    /// The error is what to do instead.
    pub fn parse(text: &str) -> Result<AllowedHost, &'static str> {
        let (below, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        let wrong = "give NAME:PORT, *.NAME:PORT, ADDRESS:PORT or [ADDRESS]:PORT";
        let HostPort { host, port } = HostPort::parse(rest).ok_or(wrong)?;
        match host {
            Host::Address(_) if below => Err(wrong),
            Host::Address(ip) if is_never_reached(ip) => {
                Err("link-local, unspecified, multicast and broadcast addresses are never reached: give another host")
            }
            host => Ok(AllowedHost { below, host, port }),
        }
    }

    pub fn admits(&self, target: &HostPort) -> bool {
        let same = match (&self.host, &target.host) {
            (Host::Name(own), Host::Name(name)) if self.below => is_below(name, own),
            (own, host) => own == host,
        };
        same && self.port == target.port
    }

    /// Whether everything that `other` admits is admitted by this one.
    pub fn covers(&self, other: &AllowedHost) -> bool {
        if other.below && !self.below {
            return false;
        }
        let same = self.below && other.below && self.host == other.host && self.port == other.port;
        same || self.admits(&HostPort { host: other.host.clone(), port: other.port })
    }
}

fn is_below(name: &str, own: &str) -> bool {
    name.strip_suffix(own).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// Where clouds tell a host its secrets, besides the link-local addresses.
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Where no cell is let to, whoever says so, in whatever form the address is written.
pub fn is_never_reached(ip: IpAddr) -> bool {
    let ip = without_tunnel(ip);
    let kind = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.octets()[0] == 0 || ip.is_multicast() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.is_unspecified() || ip.is_multicast(),
    };
    kind || METADATA.contains(&ip)
}

/// The address of version 4 that one of version 6 leads to: mapped, behind a translator (NAT64), through a tunnel (6to4).
pub fn without_tunnel(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = ip.to_canonical() else { return ip.to_canonical() };
    let [_, _, a, b, c, d, ..] = six.octets();
    let [.., w, x, y, z] = six.octets();
    match six.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => Ipv4Addr::new(w, x, y, z).into(),
        [0x2002, ..] => Ipv4Addr::new(a, b, c, d).into(),
        _ => six.into(),
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(ip)) => write!(f, "{ip}"),
            Host::Address(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}:{}", if self.below { "*." } else { "" }, self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(allowed: &str, target: &str) -> bool {
        AllowedHost::parse(allowed).expect("a host").admits(&HostPort::parse(target).expect("a target"))
    }

    #[test]
    fn one_host_is_written_in_one_way() {
        for (text, shown) in [
            ("Example.ORG.:443", "example.org:443"),
            ("a_b-c:1", "a_b-c:1"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("[2001:DB8::0:1]:80", "[2001:db8::1]:80"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
        ] {
            assert_eq!(HostPort::parse(text).map(|target| target.to_string()).as_deref(), Some(shown));
        }
    }

    #[test]
    fn what_is_no_host() {
        let long = format!("{}:1", ["a"; 127].join(".") + "bc");
        for text in [
            "",
            ":",
            "a",
            "a:",
            ":1",
            "a:0",
            "a:65536",
            "a:+1",
            "a: 1",
            "a:1 ",
            "a:00443x",
            "a:000443",
            "a..b:1",
            ".a:1",
            "a..:1",
            "*.a:1",
            "a*:1",
            "127.1:80",
            "0x7f.0.0.1:80",
            "127.0.0.0x1:80",
            "2130706433:80",
            "0177.0.0.1:80",
            "1.2.3.4.5:80",
            "::1:80",
            "[::1:80",
            "::1]:80",
            "[fe80::1%1]:80",
            "[127.0.0.1]:80",
            "[a]:1",
            "a b:1",
            "a/b:1",
            "u@a:1",
            "\u{e4}:1",
            "a\0:1",
            "a\r\n:1",
            &long,
        ] {
            assert_eq!(HostPort::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn names_and_ports_are_admitted_exactly() {
        assert!(admits("example.org:443", "EXAMPLE.org.:443"));
        assert!(admits("[::1]:80", "[0::1]:80"));
        for target in ["example.org:80", "a.example.org:443", "example.org.evil:443", "xexample.org:443", "org:443"] {
            assert!(!admits("example.org:443", target), "{target}");
        }
        // An address is no name, wherever names point.
        assert!(!admits("localhost:80", "127.0.0.1:80"));
        assert!(!admits("127.0.0.1:80", "localhost:80"));
    }

    #[test]
    fn a_star_is_for_what_is_below() {
        assert!(admits("*.example.org:443", "a.example.org:443"));
        assert!(admits("*.example.org:443", "a.b.example.org:443"));
        for target in ["example.org:443", "xexample.org:443", "a.example.org:80", "a.example.org.evil:443"] {
            assert!(!admits("*.example.org:443", target), "{target}");
        }
        for text in ["*:443", "*.:443", "a.*.org:443", "**.org:443", "*.*.org:443", "*.192.0.2.1:80", "*.[::1]:80"] {
            assert!(AllowedHost::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_can_only_be_narrowed() {
        let covers =
            |a: &str, b: &str| AllowedHost::parse(a).expect("a host").covers(&AllowedHost::parse(b).expect("a host"));
        assert!(covers("a.org:1", "A.org.:1"));
        assert!(covers("*.a.org:1", "b.a.org:1"));
        assert!(covers("*.a.org:1", "*.a.org:1"));
        assert!(covers("*.a.org:1", "*.b.a.org:1"));
        for (a, b) in [("a.org:1", "*.a.org:1"), ("*.a.org:1", "a.org:1"), ("*.b.a.org:1", "*.a.org:1")] {
            assert!(!covers(a, b), "{a} {b}");
        }
        assert!(!covers("a.org:1", "a.org:2"));
    }

    #[test]
    fn what_is_never_reached_can_not_be_allowed() {
        for host in
            ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "0.0.0.0", "[::]", "224.0.0.1", "[ff02::1]"]
        {
            assert!(AllowedHost::parse(&format!("{host}:80")).is_err(), "{host}");
        }
        for host in ["127.0.0.1", "10.0.0.1", "[::1]", "192.0.2.1"] {
            assert!(AllowedHost::parse(&format!("{host}:80")).is_ok(), "{host}");
        }
    }
}
