//! The headers of a tar archive, one entry at a time; what is in an entry is read by whoever wants it.
//!
//! ustar, PAX and GNU long names. A sparse file is refused: no builder of images writes one, and what it would be read as
//! otherwise is not what it is.

use std::io::{self, Read};

use super::error::{ImageError, shown};

const BLOCK: usize = 512;
/// A long name or a PAX header; a path has at most 4096 bytes, attributes that are not wanted may have more.
const MAX_EXTENSION: u64 = 1 << 20;

/// A stream in which one can go forward without reading.
pub(super) trait Stream: Read {
    fn skip(&mut self, bytes: u64) -> io::Result<()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Symlink,
    HardLink,
    /// A device or a FIFO.
    Special,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    /// Where a link leads.
    pub(super) link: Vec<u8>,
    pub(super) kind: Kind,
    pub(super) size: u64,
    pub(super) mode: u32,
    /// Seconds since 1970.
    pub(super) modified: i64,
}

/// What a header before the entry said of it.
#[derive(Default)]
struct Ahead {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    modified: Option<i64>,
}

pub(super) struct Tar<R> {
    from: R,
    /// Of the entry that was returned last.
    unread: u64,
    padding: u64,
}

/// What is in the entry that was returned last.
impl<R: Read> Read for Tar<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let most = to.len().min(usize::try_from(self.unread).unwrap_or(usize::MAX));
        let read = self.from.read(&mut to[..most])?;
        if read == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.unread -= read as u64;
        Ok(read)
    }
}

impl<R: Stream> Tar<R> {
    pub(super) fn new(from: R) -> Tar<R> {
        Tar { from, unread: 0, padding: 0 }
    }

    pub(super) fn stream(&mut self) -> &mut R {
        &mut self.from
    }

    pub(super) fn into_stream(self) -> R {
        self.from
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut ahead = Ahead::default();
        loop {
            self.from.skip(std::mem::take(&mut self.unread))?;
            self.from.skip(std::mem::take(&mut self.padding))?;
            let Some(block) = self.block()? else { return Ok(None) };
            let header = Header(&block);
            header.check_sum()?;
            let size = header.unsigned(124, 12, "size")?;
            match block[156] {
                b'x' => {
                    let text = self.extension(size)?;
                    ahead.read_pax(&text)?;
                }
                b'L' => ahead.name = Some(until_nul(&self.extension(size)?).to_vec()),
                b'K' => ahead.link = Some(until_nul(&self.extension(size)?).to_vec()),
                // Of all entries that follow: comments in practice, and container tools leave it aside.
                b'g' => {
                    self.extension(size)?;
                }
                flag => {
                    let entry = header.entry(flag, size, ahead)?;
                    self.enter(entry.size);
                    return Ok(Some(entry));
                }
            }
        }
    }

    fn enter(&mut self, size: u64) {
        self.unread = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    /// `None` at the end, whether it is marked or not: what is missing is noticed by its digest.
    fn block(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let mut block = [0; BLOCK];
        let mut have = 0;
        while have < BLOCK {
            match self.from.read(&mut block[have..])? {
                0 if have == 0 => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => have += n,
            }
        }
        Ok(Some(block).filter(|block| block.iter().any(|byte| *byte != 0)))
    }

    fn extension(&mut self, size: u64) -> io::Result<Vec<u8>> {
        if size > MAX_EXTENSION {
            return Err(bad(format!("a header of {size} bytes")));
        }
        self.enter(size);
        let mut bytes = vec![];
        self.take(size).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Ahead {
    /// Records of `LENGTH KEY=VALUE\n`, where the length is that of the whole record.
    fn read_pax(&mut self, mut text: &[u8]) -> io::Result<()> {
        while !text.is_empty() {
            let (key, value, rest) = record(text).ok_or_else(|| bad("a PAX header that is none".into()))?;
            text = rest;
            let number = || std::str::from_utf8(value).ok().and_then(|value| value.split('.').next()?.parse().ok());
            let wrong = || bad(format!("a PAX header whose `{}` is `{}`", shown(key), shown(value)));
            match key {
                // An empty value takes an earlier one back.
                _ if value.is_empty() => {}
                b"path" => self.name = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => {
                    let size: i64 = number().ok_or_else(wrong)?;
                    self.size = Some(size.try_into().map_err(|_| wrong())?);
                }
                b"mtime" => self.modified = Some(number().ok_or_else(wrong)?),
                _ if key.starts_with(b"GNU.sparse.") => return Err(sparse()),
                _ => {}
            }
        }
        Ok(())
    }
}

fn record(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = text.iter().take(20).position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&text[..space]).ok()?.parse().ok()?;
    let (record, rest) = text.split_at_checked(length)?;
    let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((&record[..equals], &record[equals + 1..], rest))
}

struct Header<'a>(&'a [u8; BLOCK]);

impl Header<'_> {
    fn field(&self, at: usize, length: usize) -> &[u8] {
        &self.0[at..at + length]
    }

    fn entry(&self, flag: u8, size: u64, ahead: Ahead) -> io::Result<Entry> {
        let name = ahead.name.unwrap_or_else(|| self.name());
        let kind = match flag {
            // A directory, before there was a flag for it.
            0 if name.ends_with(b"/") => Kind::Directory,
            0 | b'0' | b'7' => Kind::File,
            b'1' => Kind::HardLink,
            b'2' => Kind::Symlink,
            b'3' | b'4' | b'6' => Kind::Special,
            b'5' => Kind::Directory,
            b'S' => return Err(sparse()),
            _ => return Err(bad(format!("`{}`, which is of an unknown kind", shown(&name)))),
        };
        let link = ahead.link.unwrap_or_else(|| until_nul(self.field(157, 100)).to_vec());
        let size = ahead.size.unwrap_or(size);
        Ok(Entry {
            name,
            link,
            kind,
            // Whatever else a link or a directory says, nothing follows it.
            size: if kind == Kind::File { size } else { 0 },
            mode: (self.unsigned(100, 8, "mode")? & 0o7777) as u32,
            modified: ahead.modified.unwrap_or(self.number(136, 12, "time")?),
        })
    }

    fn name(&self) -> Vec<u8> {
        let name = until_nul(self.field(0, 100));
        // GNU's own format has other things where the prefix is.
        let prefix = if self.field(257, 6) == b"ustar\0" { until_nul(self.field(345, 155)) } else { b"" };
        if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
    }

    fn unsigned(&self, at: usize, length: usize, what: &str) -> io::Result<u64> {
        self.number(at, length, what)?.try_into().map_err(|_| bad(format!("a {what} below zero")))
    }

    /// Octal digits between spaces and zeros; or, with the highest bit set, a number as computers write it.
    fn number(&self, at: usize, length: usize, what: &str) -> io::Result<i64> {
        let field = self.field(at, length);
        let wrong = || bad(format!("a {what} that is no number"));
        if field[0] & 0x80 != 0 {
            let negative = field[0] & 0x40 != 0;
            let start = if negative { -1 } else { i64::from(field[0] & 0x3f) };
            let add = |so_far: i64, byte: &u8| so_far.checked_mul(256)?.checked_add(i64::from(*byte));
            return field[1..].iter().try_fold(start, add).ok_or_else(wrong);
        }
        let digits = std::str::from_utf8(until_nul(field)).map_err(|_| wrong())?.trim_matches(' ');
        if digits.is_empty() { Ok(0) } else { i64::from_str_radix(digits, 8).map_err(|_| wrong()) }
    }

    /// All bytes of the header, those of the sum itself taken as spaces. Some old writers added signed bytes.
    fn check_sum(&self) -> io::Result<()> {
        let stated = self.number(148, 8, "checksum")?;
        let bytes = || self.0.iter().enumerate().map(|(n, byte)| if (148..156).contains(&n) { b' ' } else { *byte });
        let unsigned: i64 = bytes().map(i64::from).sum();
        let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
        if stated == unsigned || stated == signed { Ok(()) } else { Err(bad("a header with a wrong checksum".into())) }
    }
}

fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn bad(why: String) -> io::Error {
    io::Error::other(ImageError::corrupt(format!("the archive has {why}")))
}

fn sparse() -> io::Error {
    let instead = "write the archive without them";
    io::Error::other(ImageError::Unsupported { what: "an archive with sparse files".into(), instead })
}
