//! How much of what follows a head belongs to it.

use std::io;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A tunnel: everything.
    Endless,
    Length(u64),
    Chunked(Chunks),
}

/// Where in a chunked body we are. No extension and no trailer is let through.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chunks {
    Size { digits: u8, size: u64 },
    SizeEnd { size: u64 },
    Data { left: u64 },
    DataReturn,
    DataEnd,
    LastReturn,
    LastEnd,
    Over,
}

impl Chunks {
    pub(super) const BEGIN: Chunks = Chunks::Size { digits: 0, size: 0 };

    fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at).filter(|_| *self != Chunks::Over) {
            *self = match (&*self, byte) {
                (Chunks::Data { left }, _) => {
                    let n = (bytes.len() - at).min(usize::try_from(*left).unwrap_or(usize::MAX));
                    at += n;
                    let left = left - n as u64;
                    *self = if left == 0 { Chunks::DataReturn } else { Chunks::Data { left } };
                    continue;
                }
                // Fifteen digits are less than what overflows.
                (Chunks::Size { digits: digits @ 0..15, size }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                    let value = u64::from(char::from(*byte).to_digit(16).unwrap_or(0));
                    Chunks::Size { digits: digits + 1, size: size * 16 + value }
                }
                (Chunks::Size { digits: 1.., size }, b'\r') => Chunks::SizeEnd { size: *size },
                (Chunks::SizeEnd { size: 0 }, b'\n') => Chunks::LastReturn,
                (Chunks::SizeEnd { size }, b'\n') => Chunks::Data { left: *size },
                (Chunks::DataReturn, b'\r') => Chunks::DataEnd,
                (Chunks::DataEnd, b'\n') => Chunks::BEGIN,
                (Chunks::LastReturn, b'\r') => Chunks::LastEnd,
                (Chunks::LastEnd, b'\n') => Chunks::Over,
                _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "a chunk is malformed")),
            };
            at += 1;
        }
        Ok(at)
    }
}

impl Body {
    /// How many of these bytes are of the body; the rest is nobody's.
    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Body::Endless => Ok(bytes.len()),
            Body::Length(left) => {
                let n = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= n as u64;
                Ok(n)
            }
            Body::Chunked(chunks) => chunks.take(bytes),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self, Body::Length(0) | Body::Chunked(Chunks::Over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_kept_to() {
        let mut body = Body::Length(5);
        assert_eq!((body.take(b"abc").ok(), body.is_over()), (Some(3), false));
        assert_eq!((body.take(b"deGET /").ok(), body.is_over()), (Some(2), true));
    }

    #[test]
    fn chunks_end_where_they_end() {
        let bytes = b"3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\n";
        let with_more = [&bytes[..], b"GET http://evil/ HTTP/1.1\r\n"].concat();
        for piece in 1..with_more.len() {
            let mut body = Body::Chunked(Chunks::BEGIN);
            let mut taken = 0;
            for part in with_more.chunks(piece) {
                taken += body.take(part).expect("good chunks");
            }
            assert_eq!((taken, body.is_over()), (bytes.len(), true), "in pieces of {piece}");
        }
    }

    #[test]
    fn other_chunks_are_refused() {
        for bytes in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "+1\r\n",
            " 1\r\n",
            "1 \r\n",
            "1;a=b\r\n",
            "1\n",
            "0x1\r\n",
            "1\r\nab\r\n",
            "1\r\na\n",
            "ffffffffffffffff\r\n",
            "1\r\r\n",
            "0\r\nTrailer: x\r\n\r\n",
            "0\r\n\n",
        ] {
            assert!(Body::Chunked(Chunks::BEGIN).take(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
    }
}
