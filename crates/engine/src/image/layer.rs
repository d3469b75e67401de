//! One layer: read once, decompressed, measured and verified on its way into the root.

use std::io::{self, BufReader, Read};

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::error::ImageError;
use super::manifest::{Layer, same};
use super::root::Root;
use super::source::{Source, compression};
use super::tar::{Stream, Tar};
use super::unpack::unpack;
use crate::keys::hex;

const BUFFER: usize = 128 << 10;

/// What the layers of an image may still take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Of the layers, uncompressed: a small file that becomes a large one is stopped by it as well.
    pub(super) bytes: u64,
    pub(super) entries: u64,
}

impl Room {
    pub(super) const WHOLE: Room = Room { bytes: 64 << 30, entries: 10_000_000 };
}

struct Hashed<R> {
    from: R,
    hash: Sha256,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(to)?;
        self.hash.update(&to[..read]);
        Ok(read)
    }
}

impl<R> Hashed<R> {
    fn new(from: R) -> Hashed<R> {
        Hashed { from, hash: Sha256::new() }
    }

    fn digest(self) -> String {
        hex(&self.hash.finalize())
    }
}

struct Measured<'a, R> {
    from: R,
    left: &'a mut u64,
}

impl<R: Read> Read for Measured<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(to)?;
        *self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let why = format!("its layers have more than {} GiB", Room::WHOLE.bytes >> 30);
            io::Error::other(ImageError::TooLarge { why })
        })?;
        Ok(read)
    }
}

impl<R: Read> Stream for BufReader<R> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.take(bytes), &mut io::sink())?;
        if skipped == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// Puts a layer over what is in the root, and returns how many devices and FIFOs of it were left out.
pub(super) fn apply(
    source: &Source,
    layer: &Layer,
    number: usize,
    to: &Root,
    room: &mut Room,
) -> Result<u64, ImageError> {
    let what = format!("layer {number}");
    let window = source.open(&layer.name)?;
    let compression = compression(&window)?;
    let mut blob = Hashed::new(window);
    let unpacked = content(&mut blob, compression, to, room);
    if let Some(expected) = &layer.blob {
        // What is damaged is told as damaged, whatever it looked like.
        io::copy(&mut blob, &mut io::sink())?;
        same(&what, &blob.digest(), expected)?;
    }
    let (digest, left_out) = unpacked?;
    same(&format!("the content of {what}"), &digest, &layer.content)?;
    Ok(left_out)
}

fn content(
    blob: &mut dyn Read,
    compression: Option<&'static str>,
    to: &Root,
    room: &mut Room,
) -> Result<(String, u64), ImageError> {
    let plain: Box<dyn Read + '_> = match compression {
        None => Box::new(blob),
        Some("gzip") => Box::new(MultiGzDecoder::new(blob)),
        Some(other) => {
            let what = format!("a layer in {other}");
            return Err(ImageError::Unsupported { what, instead: "save the image with layers in gzip" });
        }
    };
    let Room { bytes, entries } = room;
    let measured = Measured { from: Hashed::new(plain), left: bytes };
    let mut tar = Tar::new(BufReader::with_capacity(BUFFER, measured));
    let left_out = unpack(&mut tar, to, entries)?;
    // What follows the end of the archive is part of what has the digest.
    let mut rest = tar.into_stream();
    io::copy(&mut rest, &mut io::sink())?;
    Ok((rest.into_inner().from.digest(), left_out))
}
