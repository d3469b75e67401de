//! Names to addresses, by this host's own means: /etc/hosts, then the servers of /etc/resolv.conf.
//!
//! Not by the C library: in a static binary it would load the host's modules into this process. No search list: a name
//! without a dot is looked for in /etc/hosts alone.

mod message;

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::connect::connect_one;
use super::stop::{Cut, Stop};
use message::{Answer, Record, answer, query};

/// One server, one time.
const TRY: Duration = Duration::from_secs(2);
const TRIES: usize = 2;
/// All of it.
const WITHIN: Duration = Duration::from_secs(10);
const MOST_SERVERS: usize = 3;
const MOST_BYTES: u64 = 4 << 20;

pub(super) struct Resolver {
    hosts: PathBuf,
    config: PathBuf,
    port: u16,
}

pub(super) enum Unknown {
    Stopped,
    Because(String),
}

impl Resolver {
    pub(super) fn of_this_host() -> Resolver {
        Resolver { hosts: "/etc/hosts".into(), config: "/etc/resolv.conf".into(), port: 53 }
    }

    /// All addresses of a name that is in small letters and has no dot at its end; never none.
    pub(super) fn look_up(&self, name: &str, stop: &Stop) -> Result<Vec<IpAddr>, Unknown> {
        // What it is, whatever a file or a server says.
        if name == "localhost" || name.ends_with(".localhost") {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let known = in_hosts(&read(&self.hosts), name);
        if !known.is_empty() {
            return Ok(known);
        }
        if !name.contains('.') {
            return Err(Unknown::Because("a name without a dot must be in /etc/hosts".into()));
        }
        let servers = self.servers();
        let end = Instant::now() + WITHIN;
        let four = self.ask_all(&servers, name, Record::A, end, stop);
        let six = match four {
            Err(Cut::Stopped) | Ok(None) => Ok(None),
            _ => self.ask_all(&servers, name, Record::Aaaa, end, stop),
        };
        let mut found = vec![];
        let mut failed = None;
        for answered in [four, six] {
            match answered {
                Ok(addresses) => found.extend(addresses.unwrap_or_default()),
                Err(Cut::Stopped) => return Err(Unknown::Stopped),
                Err(Cut::Late) => failed = Some("no name server answers".to_owned()),
                Err(Cut::Failed(e)) => failed = Some(format!("the name servers do not know: {e}")),
            }
        }
        match failed {
            _ if !found.is_empty() => Ok(found),
            Some(why) => Err(Unknown::Because(why)),
            None => Err(Unknown::Because("there is no such name".into())),
        }
    }

    fn servers(&self) -> Vec<SocketAddr> {
        let text = read(&self.config);
        let words = text.lines().map(|line| line.split_ascii_whitespace());
        let named =
            words.filter_map(|mut words| (words.next()? == "nameserver").then(|| words.next()?.parse().ok())?);
        let mut servers: Vec<IpAddr> = named.take(MOST_SERVERS).collect();
        if servers.is_empty() {
            servers.push(Ipv4Addr::LOCALHOST.into());
        }
        servers.into_iter().map(|ip| SocketAddr::new(ip, self.port)).collect()
    }

    /// `None`: there is no such name.
    fn ask_all(
        &self,
        servers: &[SocketAddr],
        name: &str,
        record: Record,
        end: Instant,
        stop: &Stop,
    ) -> Result<Option<Vec<IpAddr>>, Cut> {
        let mut last = Cut::Late;
        for server in servers.iter().cycle().take(servers.len() * TRIES) {
            let until = end.min(Instant::now() + TRY);
            match ask(*server, name, record, until, stop) {
                Ok(Answer::Addresses(found)) => return Ok(Some(found)),
                Ok(Answer::NoSuchName) => return Ok(None),
                Ok(_) => last = Cut::Failed(io::Error::other("a server answers with an error")),
                Err(Cut::Stopped) => return Err(Cut::Stopped),
                Err(other) => last = other,
            }
        }
        Err(last)
    }
}

fn ask(server: SocketAddr, name: &str, record: Record, until: Instant, stop: &Stop) -> Result<Answer, Cut> {
    let mut id = [0u8; 2];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut id)?;
    let id = u16::from_be_bytes(id);
    let query = query(id, name, record);
    // A port of the kernel's choice, and nobody else's answers: it is connected.
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(server)?;
    socket.send(&query)?;
    let mut packet = [0u8; 4096];
    loop {
        stop.wait(&socket, PollFlags::IN, Some(until))?;
        let n = match socket.recv(&mut packet) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
            Err(e) => return Err(e.into()),
        };
        match answer(&packet[..n], id, name, record) {
            // Somebody guesses, or an old one comes late.
            Answer::NotOurs => {}
            Answer::Truncated => return ask_whole(server, &query, id, name, record, until, stop),
            other => return Ok(other),
        }
    }
}

/// By TCP, where an answer may be as long as it is.
fn ask_whole(
    server: SocketAddr,
    query: &[u8],
    id: u16,
    name: &str,
    record: Record,
    until: Instant,
    stop: &Stop,
) -> Result<Answer, Cut> {
    let mut stream = connect_one(server, until, stop)?;
    let mut left = &[&(query.len() as u16).to_be_bytes(), query].concat()[..];
    while !left.is_empty() {
        stop.wait(&stream, PollFlags::OUT, Some(until))?;
        left = &left[stream.write(left)?..];
    }
    let length = u16::from_be_bytes(receive(&mut stream, 2, until, stop)?.try_into().unwrap_or_default());
    let packet = receive(&mut stream, length.into(), until, stop)?;
    match answer(&packet, id, name, record) {
        Answer::NotOurs | Answer::Truncated => Ok(Answer::Failed),
        other => Ok(other),
    }
}

fn receive(stream: &mut TcpStream, length: usize, until: Instant, stop: &Stop) -> Result<Vec<u8>, Cut> {
    let mut bytes = vec![0u8; length];
    let mut at = 0;
    while at < length {
        stop.wait(&*stream, PollFlags::IN, Some(until))?;
        match stream.read(&mut bytes[at..]) {
            Ok(0) => return Err(Cut::Failed(io::ErrorKind::UnexpectedEof.into())),
            Ok(n) => at += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(bytes)
}

/// What can't be read says nothing.
fn read(path: &Path) -> String {
    let mut bytes = vec![];
    let _ = std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn in_hosts(text: &str, name: &str) -> Vec<IpAddr> {
    let mut found = vec![];
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
        let Some(ip) = words.next().and_then(|word| word.parse().ok()) else { continue };
        let is_it = |word: &str| word.strip_suffix('.').unwrap_or(word).eq_ignore_ascii_case(name);
        if words.any(is_it) && !found.contains(&ip) {
            found.push(ip);
        }
    }
    found
}

#[cfg(test)]
mod tests;
