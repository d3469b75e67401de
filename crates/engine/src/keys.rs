//! Keys that sign: Ed25519, one file each, made at the first need. Nobody else may read them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ed25519_dalek::SigningKey;

use crate::files::open_regular;

/// A file that is longer is no key.
const MAX_FILE: u64 = 4096;

/// The key `NAME.key` of a directory; its public half is beside it as `NAME.pub`.
pub(crate) fn key(dir: &Path, name: &str) -> io::Result<SigningKey> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    if fs::metadata(dir)?.mode() & 0o022 != 0 {
        return Err(io::Error::other(format!("{} can be written by others: chmod 700 it", dir.display())));
    }
    let path = dir.join(format!("{name}.key"));
    for _ in 0..2 {
        match open_regular(&path) {
            Ok(file) => return read(&path, file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => make(dir, name, &path)?,
            Err(e) => return Err(named(&path, e)),
        }
    }
    Err(io::Error::other(format!("{} cannot be made", path.display())))
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{} cannot be used: {error}", path.display()))
}

fn read(path: &Path, file: File) -> io::Result<SigningKey> {
    if file.metadata()?.mode() & 0o077 != 0 {
        return Err(io::Error::other(format!("{} can be read by others: chmod 600 it", path.display())));
    }
    let bytes = short_text(&file)?.and_then(|text| <[u8; 32]>::try_from(unhex(text.trim())?).ok());
    let none = || io::Error::other(format!("{} is no key", path.display()));
    bytes.map(|bytes| SigningKey::from_bytes(&bytes)).ok_or_else(none)
}

/// `None`: too long, or no text.
fn short_text(file: &File) -> io::Result<Option<String>> {
    let mut bytes = vec![];
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= MAX_FILE).and_then(|bytes| String::from_utf8(bytes).ok()))
}

/// Whole or not at all, and never over one that is there.
fn make(dir: &Path, name: &str, path: &Path) -> io::Result<()> {
    let mut bytes = [0u8; 32];
    File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes))?;
    let new = write(dir, 0o600, &bytes)?;
    let linked = fs::hard_link(&new, path);
    fs::remove_file(&new)?;
    match linked {
        // What is there under this name belongs to a key that is gone.
        Ok(()) => write_public(dir, name, &SigningKey::from_bytes(&bytes)),
        // Somebody else was faster: theirs it is.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
}

/// The path of the public half, which is there and the key's own: people give it away, and another would make every
/// signature look forged.
pub(crate) fn published(dir: &Path, name: &str, key: &SigningKey) -> io::Result<PathBuf> {
    let path = public_path(dir, name);
    match open_regular(&path) {
        Ok(file) if short_text(&file)?.is_some_and(|text| text.trim() == hex(key.verifying_key().as_bytes())) => {}
        Ok(_) => {
            let why = format!("{} does not belong to the key beside it: remove it", path.display());
            return Err(io::Error::other(why));
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => write_public(dir, name, key)?,
        Err(e) => return Err(named(&path, e)),
    }
    Ok(path)
}

fn public_path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.pub"))
}

fn write_public(dir: &Path, name: &str, key: &SigningKey) -> io::Result<()> {
    fs::rename(write(dir, 0o644, key.verifying_key().as_bytes())?, public_path(dir, name))
}

/// A new file under a name that nobody else has.
fn write(dir: &Path, mode: u32, bytes: &[u8]) -> io::Result<PathBuf> {
    let path = dir.join(format!(".new-{}", uuid::Uuid::now_v7()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
    file.write_all(format!("{}\n", hex(bytes)).as_bytes()).and_then(|()| file.sync_all()).inspect_err(|_| {
        let _ = fs::remove_file(&path);
    })?;
    Ok(path)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    text.len().is_multiple_of(2).then(|| text.as_bytes().chunks_exact(2).map(pair).collect())?
}
