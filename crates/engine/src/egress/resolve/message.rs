//! Questions to a name server, and answers that may be anybody's: every length is looked at, every pointer leads back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    A = 1,
    Aaaa = 28,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Not to this question: whoever sent it.
    NotOurs,
    /// Not all of it.
    Truncated,
    /// The server can't say, or what it says can't be read.
    Failed,
    NoSuchName,
    Addresses(Vec<IpAddr>),
}

const CNAME: u16 = 5;
const INTERNET: u16 = 1;
const NO_SUCH_NAME: u16 = 3;
const MOST_NAME: usize = 255;
const MOST_ALIASES: usize = 8;
const MOST_RECORDS: u16 = 256;
const MOST_ADDRESSES: usize = 32;

/// A question for a name whose labels have been looked at.
pub(super) fn query(id: u16, name: &str, record: Record) -> Vec<u8> {
    let mut packet = id.to_be_bytes().to_vec();
    // Recursion is desired; one question and nothing else.
    packet.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    packet.extend(wire(name));
    packet.extend((record as u16).to_be_bytes());
    packet.extend(INTERNET.to_be_bytes());
    packet
}

/// As it stands in a packet: each label behind its length, and an empty one.
fn wire(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

pub(super) fn answer(packet: &[u8], id: u16, name: &str, record: Record) -> Answer {
    let mut at = Reader { packet, at: 0 };
    let Some(header) = at.header() else { return Answer::NotOurs };
    let is_answer = header.flags & 0xf800 == 0x8000;
    let asked = wire(name);
    let question = at.question();
    if header.id != id
        || !is_answer
        || header.questions != 1
        || question != Some((asked.clone(), record as u16, INTERNET))
    {
        return Answer::NotOurs;
    }
    match header.flags & 0xf {
        _ if header.flags & 0x200 != 0 => Answer::Truncated,
        0 => at.addresses(asked, record, header.answers.min(MOST_RECORDS)).map_or(Answer::Failed, Answer::Addresses),
        NO_SUCH_NAME => Answer::NoSuchName,
        _ => Answer::Failed,
    }
}

struct Header {
    id: u16,
    flags: u16,
    questions: u16,
    answers: u16,
}

struct Reader<'a> {
    packet: &'a [u8],
    at: usize,
}

/// One answer of a kind that matters.
enum Data {
    Address(IpAddr),
    Alias(Vec<u8>),
}

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.packet.get(self.at..self.at.checked_add(N)?)?.try_into().ok()?;
        self.at += N;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_be_bytes)
    }

    fn header(&mut self) -> Option<Header> {
        let header =
            Header { id: self.number()?, flags: self.number()?, questions: self.number()?, answers: self.number()? };
        self.bytes::<4>()?;
        Some(header)
    }

    fn question(&mut self) -> Option<(Vec<u8>, u16, u16)> {
        Some((self.name()?, self.number()?, self.number()?))
    }

    /// In small letters, and in the form of a packet: a dot inside a label is no dot between two.
    fn name(&mut self) -> Option<Vec<u8>> {
        let mut name = vec![];
        let mut at = self.at;
        // Each pointer leads to before all that was read of the name so far: so there is an end.
        let mut before = self.at;
        let mut behind = None;
        loop {
            let length = *self.packet.get(at)?;
            match length {
                0 => {
                    name.push(0);
                    self.at = behind.unwrap_or(at + 1);
                    return (name.len() <= MOST_NAME).then_some(name);
                }
                1..=63 => {
                    let end = at + 1 + usize::from(length);
                    name.extend(self.packet.get(at..end)?.to_ascii_lowercase());
                    at = end;
                }
                192.. => {
                    let to = usize::from(u16::from_be_bytes([length & 0x3f, *self.packet.get(at + 1)?]));
                    behind.get_or_insert(at + 2);
                    if to >= before {
                        return None;
                    }
                    (at, before) = (to, to);
                }
                // Of a kind that nobody uses.
                _ => return None,
            }
            if name.len() > MOST_NAME {
                return None;
            }
        }
    }

    /// `None` when something in it can't be read: then nothing of it is believed.
    fn addresses(&mut self, asked: Vec<u8>, record: Record, count: u16) -> Option<Vec<IpAddr>> {
        let mut records = vec![];
        for _ in 0..count {
            let owner = self.name()?;
            let (kind, class) = (self.number()?, self.number()?);
            self.bytes::<4>()?;
            let end = usize::from(self.number()?) + self.at;
            if end > self.packet.len() {
                return None;
            }
            let data = match (kind, record) {
                _ if class != INTERNET => None,
                (CNAME, _) => Some(Data::Alias(self.name()?)),
                (1, Record::A) => Some(Data::Address(Ipv4Addr::from(self.bytes::<4>()?).into())),
                (28, Record::Aaaa) => Some(Data::Address(Ipv6Addr::from(self.bytes::<16>()?).into())),
                _ => None,
            };
            if data.is_some() && self.at != end {
                return None;
            }
            self.at = end;
            records.extend(data.map(|data| (owner, data)));
        }
        let mut name = asked;
        for _ in 0..=MOST_ALIASES {
            let own = || records.iter().filter(|(owner, _)| *owner == name).map(|(_, data)| data);
            let found: Vec<IpAddr> =
                own().filter_map(|data| if let Data::Address(ip) = data { Some(*ip) } else { None }).collect();
            if !found.is_empty() {
                return (found.len() <= MOST_ADDRESSES).then_some(found);
            }
            match own().find_map(|data| if let Data::Alias(to) = data { Some(to.clone()) } else { None }) {
                Some(next) => name = next,
                None => return Some(vec![]),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: u16 = 0x1234;
    const NAME: &str = "www.example.org";

    /// An answer to our question, with these records as they are.
    fn packet(flags: u16, count: u16, records: &[u8]) -> Vec<u8> {
        let mut packet = query(ID, NAME, Record::A);
        packet[2..4].copy_from_slice(&flags.to_be_bytes());
        packet[6..8].copy_from_slice(&count.to_be_bytes());
        packet.extend(records);
        packet
    }

    fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u16).to_be_bytes();
        [owner, &kind.to_be_bytes(), &[0, 1, 0, 0, 0, 60], &length, data].concat()
    }

    fn read(packet: &[u8]) -> Answer {
        answer(packet, ID, NAME, Record::A)
    }

    /// A pointer to the question.
    const ASKED: &[u8] = &[0xc0, 12];

    fn found(addresses: &[[u8; 4]]) -> Answer {
        Answer::Addresses(addresses.iter().map(|ip| Ipv4Addr::from(*ip).into()).collect())
    }

    #[test]
    fn addresses_are_read_behind_aliases() {
        let two = [record(ASKED, 1, &[1, 2, 3, 4]), record(ASKED, 1, &[5, 6, 7, 8])].concat();
        assert_eq!(read(&packet(0x8180, 2, &two)), found(&[[1, 2, 3, 4], [5, 6, 7, 8]]));
        let alias = [record(&wire("b.net"), 1, &[1, 2, 3, 4]), record(ASKED, 5, &wire("B.net"))].concat();
        assert_eq!(read(&packet(0x8180, 2, &alias)), found(&[[1, 2, 3, 4]]));
        assert_eq!(read(&packet(0x8180, 0, &[])), found(&[]));
        // Somebody else's address, put beside.
        assert_eq!(read(&packet(0x8180, 1, &record(&wire("b.net"), 1, &[1, 2, 3, 4]))), found(&[]));
        // Of another kind, of another class.
        assert_eq!(read(&packet(0x8180, 1, &record(ASKED, 16, b"text"))), found(&[]));
        let mut chaos = record(ASKED, 1, &[1, 2, 3, 4]);
        chaos[5] = 3;
        assert_eq!(read(&packet(0x8180, 1, &chaos)), found(&[]));
    }

    #[test]
    fn what_is_not_an_answer_to_us() {
        let good = packet(0x8180, 1, &record(ASKED, 1, &[1, 2, 3, 4]));
        assert_eq!(answer(&good, ID + 1, NAME, Record::A), Answer::NotOurs);
        assert_eq!(answer(&good, ID, "www.example.com", Record::A), Answer::NotOurs);
        assert_eq!(answer(&good, ID, NAME, Record::Aaaa), Answer::NotOurs);
        for flags in [0x0100, 0x8980] {
            assert_eq!(read(&packet(flags, 0, &[])), Answer::NotOurs, "{flags:x}");
        }
        for questions in [0, 2] {
            let mut packet = good.clone();
            packet[5] = questions;
            assert_eq!(read(&packet), Answer::NotOurs);
        }
        assert_eq!(read(b""), Answer::NotOurs);
    }

    #[test]
    fn what_a_server_can_say_instead() {
        assert_eq!(read(&packet(0x8183, 0, &[])), Answer::NoSuchName);
        assert_eq!(read(&packet(0x8182, 0, &[])), Answer::Failed);
        assert_eq!(read(&packet(0x8185, 0, &[])), Answer::Failed);
        assert_eq!(read(&packet(0x8380, 0, &[])), Answer::Truncated);
    }

    #[test]
    fn hostile_names() {
        let here = query(ID, NAME, Record::A).len() as u8;
        let too_long = [[63u8; 64].as_slice(); 5].concat();
        for (what, owner) in [
            ("a pointer to itself", vec![0xc0, here]),
            ("a pointer forward", vec![0xc0, here + 2]),
            ("a pointer out of the packet", vec![0xff, 0xff]),
            ("half a pointer", vec![0xc0]),
            ("two that point at each other", vec![0xc0, here + 2, 0xc0, here]),
            ("a label of a kind that nobody uses", vec![0x41, b'a', 0]),
            ("a label longer than the packet", vec![63, b'a', 0]),
            ("a name that is too long", too_long),
        ] {
            assert_eq!(read(&packet(0x8180, 1, &record(&owner, 1, &[1, 2, 3, 4]))), Answer::Failed, "{what}");
        }
        // A dot inside a label does not make it the name that was asked for.
        let dotted = [&[15], NAME.as_bytes(), &[0]].concat();
        assert_eq!(read(&packet(0x8180, 1, &record(&dotted, 1, &[1, 2, 3, 4]))), found(&[]));
    }

    #[test]
    fn hostile_records() {
        assert_eq!(read(&packet(0x8180, 1, &[])), Answer::Failed);
        assert_eq!(read(&packet(0x8180, 2, &record(ASKED, 1, &[1, 2, 3, 4]))), Answer::Failed);
        for data in [&[1, 2, 3][..], &[1, 2, 3, 4, 5], &[]] {
            assert_eq!(read(&packet(0x8180, 1, &record(ASKED, 1, data))), Answer::Failed);
        }
        let mut lies = record(ASKED, 1, &[1, 2, 3, 4]);
        lies[11] = 200;
        assert_eq!(read(&packet(0x8180, 1, &lies)), Answer::Failed);
        let circle = [record(ASKED, 5, &wire("b.net")), record(&wire("b.net"), 5, &wire(NAME))].concat();
        assert_eq!(read(&packet(0x8180, 2, &circle)), Answer::Failed);
        let many = record(ASKED, 1, &[1, 2, 3, 4]).repeat(33);
        assert_eq!(read(&packet(0x8180, 33, &many)), Answer::Failed);
    }

    #[test]
    fn no_packet_makes_it_panic() {
        let records = [record(ASKED, 5, &wire("b.net")), record(&wire("b.net"), 1, &[1, 2, 3, 4])].concat();
        let whole = packet(0x8180, 2, &records);
        for cut in 0..whole.len() {
            let _ = read(&whole[..cut]);
            for byte in 0..=255 {
                let mut packet = whole.clone();
                packet[cut] = byte;
                let _ = read(&packet);
            }
        }
    }
}
