//! One connection of the program's, from its first byte to its end.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_contract::{Host, HostPort};
use hotcell_sandbox::{Detail, Kind, Recorder};
use rustix::event::PollFlags;
use serde_json::json;

use super::body::Body;
use super::head::{self, Malformed, Target};
use super::resolve::Unknown;
use super::stop::{Cut, Stop};
use super::{Shared, admission, connect, event, relay};

const EVIDENCE: &str = "egress broker";
const BAD_BODY: &str = "was sent a malformed body";
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const TOO_LONG: &str = "was asked for in a head of more than 16 KiB";
const LATE: &str = "the head did not come within 10 s";
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// For the program to read the answer before the connection goes.
const LINGER: Duration = Duration::from_secs(1);

/// What the program said until its head was complete, or would not be.
struct Heard {
    bytes: Vec<u8>,
    /// Where the head ends, when it does.
    end: Option<usize>,
    /// It may still be there to be answered.
    late: bool,
}

pub(super) fn serve(client: TcpStream, number: u64, shared: &Shared, record: &Recorder) {
    if client.set_nonblocking(true).is_ok() {
        let _ = client.set_nodelay(true);
        Connection { client: &Arc::new(client), number, shared, record }.serve();
    }
}

struct Connection<'a> {
    client: &'a Arc<TcpStream>,
    /// Which one of the run it is.
    number: u64,
    shared: &'a Shared,
    record: &'a Recorder,
}

impl Connection<'_> {
    fn serve(&self) {
        let heard = hear(self.client, &self.shared.stop);
        let Some(end) = heard.end else { return self.unfinished(&heard) };
        let (head, rest) = heard.bytes.split_at(end);
        let request = match head::parse(head) {
            Ok(request) => request,
            Err(malformed) => return self.reject("400 Bad Request", head, &malformed),
        };
        let place = match admission::by_name(&self.shared.hosts, &request.target) {
            Ok(place) => place,
            Err(why) => return self.refuse("403 Forbidden", &request.target, why),
        };
        let mut body = request.body;
        let Ok(of_body) = body.take(rest) else {
            return self.refuse("400 Bad Request", &request.target, BAD_BODY);
        };
        let first = [&request.head, &rest[..of_body]].concat();
        // Nobody shuts his side of a tunnel before there is one, but of a request that he has made.
        let gone = if body == Body::Endless { PollFlags::RDHUP } else { PollFlags::empty() };
        let stop = self.shared.stop.or_gone(self.client, gone);
        let Some((host, address)) = self.reach(place, &request.target, &stop) else { return };
        let _ = host.set_nodelay(true);
        let begun = Instant::now();
        let told = if body == Body::Endless { self.say(ESTABLISHED) } else { Ok(()) };
        let passed =
            told.map(|()| relay::relay(self.client, &host, &first, body, &self.shared.stop)).unwrap_or_default();
        let (sent, received) = (passed.sent, passed.received);
        let fields = json!({
            "host": place.host.to_string(),
            "port": place.port,
            "address": address.to_string(),
            "bytes_sent": sent,
            "bytes_received": received,
            "ms": begun.elapsed().as_millis() as u64,
        });
        let message = format!("{place} was sent {sent} bytes and sent {received}");
        self.shared.tell(self.number, event("egress.admitted", message, fields));
        drop(host);
        match (passed.malformed, received) {
            (true, 0) => self.refuse("400 Bad Request", &request.target, BAD_BODY),
            // The host has begun to answer: nothing of ours may stand behind that.
            (true, _) if !self.put(&request.target, BAD_BODY) => self.rest(),
            _ => self.part(),
        }
    }

    /// To the host, by an address that may be reached. `None` when the program has been told why not.
    fn reach(&self, place: &HostPort, target: &Target, stop: &Stop) -> Option<(TcpStream, std::net::SocketAddr)> {
        let found = match &place.host {
            Host::Address(ip) => Ok(vec![*ip]),
            Host::Name(name) => self.shared.resolver.look_up(name, stop),
        };
        let found = match found {
            Ok(found) => found,
            Err(Unknown::Stopped) => return None,
            Err(Unknown::Because(why)) => {
                self.fail("502 Bad Gateway", place, &why);
                return None;
            }
        };
        let addresses = match admission::by_address(place, &found) {
            Ok(addresses) => addresses,
            Err(ip) => {
                // Which one it is tells of the host's own network.
                let note = format!("points to {ip}, which is not public");
                self.refuse_quietly("403 Forbidden", target, &note, "points to an address that is not public");
                return None;
            }
        };
        match connect::connect(&addresses, stop) {
            Ok(connected) => return Some(connected),
            Err(Cut::Stopped) => {}
            Err(Cut::Late) => self.fail("504 Gateway Timeout", place, "it does not answer"),
            Err(Cut::Failed(e)) => self.fail("502 Bad Gateway", place, &e.to_string()),
        }
        None
    }

    /// Half a head is no request; but whoever named a host that is not allowed, or nothing that can be understood, has tried.
    fn unfinished(&self, heard: &Heard) {
        let too_long = heard.bytes.len() >= head::MOST_BYTES;
        match head::target(&heard.bytes) {
            Some(Ok(target)) => match admission::by_name(&self.shared.hosts, &target) {
                Err(why) => self.refuse("403 Forbidden", &target, why),
                Ok(_) if too_long => self.refuse("431 Request Header Fields Too Large", &target, TOO_LONG),
                Ok(_) if heard.late => self.answer("408 Request Timeout", LATE),
                Ok(_) => {}
            },
            Some(Err(malformed)) => self.reject("400 Bad Request", &heard.bytes, &malformed),
            None if too_long => {
                let malformed = Malformed { target: None, why: "the first line has more than 16 KiB" };
                self.reject("431 Request Header Fields Too Large", &heard.bytes, &malformed);
            }
            None if heard.late => self.answer("408 Request Timeout", LATE),
            None => {}
        }
    }

    /// What cannot be understood is a connection that was refused: to whom, as far as that can be read, or else its words.
    fn reject(&self, status: &str, head: &[u8], malformed: &Malformed) {
        let why = format!("was asked for in a malformed head: {}", malformed.why);
        match malformed.target.clone().or_else(|| head::guess(head)) {
            Some(target) => self.refuse(status, &target, &why),
            None => {
                let note = format!("a malformed head, `{}`: {}", head::beginning(head), malformed.why);
                match self.record.put(Kind::Network, Detail { note: Some(note), ..Detail::default() }, EVIDENCE) {
                    true => self.answer(status, malformed.why),
                    false => self.rest(),
                }
            }
        }
    }

    /// On record, then in a sentence to the program; unless the run ends for it, when nobody is to go on.
    fn refuse(&self, status: &str, target: &Target, why: &str) {
        self.refuse_quietly(status, target, why, why);
    }

    /// The same, where the record says more than the program is to know.
    fn refuse_quietly(&self, status: &str, target: &Target, note: &str, why: &str) {
        match self.put(target, note) {
            true => self.answer(status, &format!("{} {why}", target.shown)),
            false => self.rest(),
        }
    }

    fn put(&self, target: &Target, note: &str) -> bool {
        let (address, note) = (Some(target.shown.clone()), Some(note.to_owned()));
        self.record.put(Kind::Network, Detail { address, note, ..Detail::default() }, EVIDENCE)
    }

    /// Until the run is over, which is now.
    fn rest(&self) {
        self.shared.stop.rest(Instant::now() + Duration::from_secs(3600));
    }

    /// An allowed host that can't be reached is nobody's fault.
    fn fail(&self, status: &str, place: &HostPort, why: &str) {
        let fields = json!({ "host": place.host.to_string(), "port": place.port });
        self.shared.tell(self.number, event("egress.failed", format!("{place} cannot be reached: {why}"), fields));
        self.answer(status, &format!("{place} cannot be reached: {why}"));
    }

    fn answer(&self, status: &str, sentence: &str) {
        let text = format!("hotcell: {sentence}\n");
        let length = text.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n");
        if self.say(format!("{head}Connection: close\r\n\r\n{text}").as_bytes()).is_ok() {
            self.part();
        }
    }

    fn say(&self, mut bytes: &[u8]) -> Result<(), Cut> {
        let (mut client, until) = (&**self.client, Some(Instant::now() + HEAD_WITHIN));
        while !bytes.is_empty() {
            match client.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.shared.stop.wait(self.client, PollFlags::OUT, until)?;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Closing a connection with something unread in it takes away what was said last: so it is read first.
    fn part(&self) {
        let (mut client, until) = (&**self.client, Some(Instant::now() + LINGER));
        let _ = self.client.shutdown(std::net::Shutdown::Write);
        let mut buf = [0u8; 4096];
        while self.shared.stop.wait(self.client, PollFlags::IN, until).is_ok() {
            match client.read(&mut buf) {
                Ok(1..) => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                _ => return,
            }
        }
    }
}

/// Reads until the head is there, or will not be. After the end of the run, what is there already.
fn hear(mut client: &TcpStream, stop: &Stop) -> Heard {
    let until = Instant::now() + HEAD_WITHIN;
    let (mut bytes, mut buf, mut stopped) = (vec![], [0u8; 4096], false);
    loop {
        let room = (head::MOST_BYTES - bytes.len()).min(buf.len());
        let read: io::Result<usize> = client.read(&mut buf[..room]);
        match read {
            Ok(n @ 1..) => {
                bytes.extend_from_slice(&buf[..n]);
                let end = head::end(&bytes);
                if end.is_some() || bytes.len() >= head::MOST_BYTES {
                    return Heard { bytes, end, late: false };
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock && !stopped => {
                match stop.wait(client, PollFlags::IN, Some(until)) {
                    Ok(()) => {}
                    Err(Cut::Stopped) => stopped = true,
                    Err(_) => return Heard { bytes, end: None, late: true },
                }
            }
            _ => return Heard { bytes, end: None, late: false },
        }
    }
}
