//! Where an image lies: what it is, is found by looking, and its files are had by their names.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::error::{ImageError, shown};
use super::tar::{Kind, Stream, Tar};

/// An archive of an image has a few files a layer.
const MAX_PARTS: usize = 10_000;
/// What says where the rest is: index, manifest, config.
const MAX_DOCUMENT: u64 = 8 << 20;

/// What there is at a path.
pub(super) enum Found {
    /// A directory that is a root already.
    Root(PathBuf),
    Layout(Source),
    DockerArchive(Source),
}

/// The files of an image.
pub(super) struct Source {
    pub(super) path: PathBuf,
    files: Files,
}

enum Files {
    Directory(OwnedFd),
    Archive { file: Rc<File>, parts: HashMap<Vec<u8>, Part> },
}

enum Part {
    Bytes { at: u64, size: u64 },
    Link(Vec<u8>),
}

/// A part of a file, read from the beginning.
#[derive(Clone)]
pub(super) struct Window {
    file: Rc<File>,
    at: u64,
    end: u64,
}

impl Window {
    pub(super) fn size(&self) -> u64 {
        self.end - self.at
    }
}

impl Read for Window {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let most = to.len().min(usize::try_from(self.size()).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut to[..most], self.at)?;
        if read == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += read as u64;
        Ok(read)
    }
}

impl Stream for Window {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > self.size() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += bytes;
        Ok(())
    }
}

pub(super) fn find(path: &Path) -> Result<Found, ImageError> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ImageError::NotFound { path: path.to_owned() },
        _ => ImageError::Unreadable { path: path.to_owned(), error },
    };
    let real = path.canonicalize().map_err(unreadable)?;
    // Whoever made a FIFO of it shall not keep us waiting.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&real, flags, Mode::empty()).map_err(|e| unreadable(e.into()))?;
    let stat = rustix::fs::fstat(&fd).map_err(|e| unreadable(e.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => directory(real, fd),
        FileType::RegularFile => archive(real, File::from(fd)),
        _ => Err(not_an_image(real, "it is neither a directory nor a file")),
    }
}

fn not_an_image(path: PathBuf, why: &str) -> ImageError {
    ImageError::NotAnImage { path, why: why.into() }
}

fn directory(path: PathBuf, dir: OwnedFd) -> Result<Found, ImageError> {
    let is_there = |name: &str| rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    if is_there("oci-layout") && is_there("index.json") {
        return Ok(Found::Layout(Source { path, files: Files::Directory(dir) }));
    }
    // It would show the whole host to the program.
    if path == Path::new("/") {
        return Err(not_an_image(path, "it is the root of this host"));
    }
    // A directory that was named by mistake is shown to a program as little.
    if !is_there("bin") && !is_there("usr") {
        let why = "a layout has `oci-layout` and `index.json`, an unpacked root has `bin` or `usr`";
        return Err(not_an_image(path, why));
    }
    Ok(Found::Root(path))
}

fn archive(path: PathBuf, file: File) -> Result<Found, ImageError> {
    let size = file.metadata().map_err(|error| ImageError::Unreadable { path: path.clone(), error })?.len();
    let file = Rc::new(file);
    let whole = Window { file: Rc::clone(&file), at: 0, end: size };
    if let Some(name) = compression(&whole)? {
        return Err(ImageError::Unsupported { what: format!("an archive in {name}"), instead: "decompress it first" });
    }
    let parts = parts(whole).map_err(|e| match e {
        PartsError::NoTar => not_an_image(path.clone(), "it is no tar archive"),
        PartsError::Bad(e) => e,
    })?;
    let has = |name: &str| parts.contains_key(name.as_bytes());
    let (is_layout, is_docker) = (has("oci-layout") && has("index.json"), has("manifest.json"));
    let source = Source { path, files: Files::Archive { file, parts } };
    match (is_layout, is_docker) {
        // Docker writes both. The layout's digests are of what lies there, so that damage is told as damage.
        (true, _) => Ok(Found::Layout(source)),
        (false, true) => Ok(Found::DockerArchive(source)),
        _ => Err(not_an_image(source.path, "the archive has neither `index.json` nor `manifest.json`")),
    }
}

/// By the first bytes; `None` for a tar archive, and for what is nothing known.
pub(super) fn compression(window: &Window) -> Result<Option<&'static str>, ImageError> {
    let mut first = vec![];
    window.clone().take(6).read_to_end(&mut first)?;
    let known: [(&[u8], &str); 4] =
        [(b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2")];
    Ok(known.iter().find(|(magic, _)| first.starts_with(magic)).map(|(_, name)| *name))
}

enum PartsError {
    NoTar,
    Bad(ImageError),
}

fn parts(whole: Window) -> Result<HashMap<Vec<u8>, Part>, PartsError> {
    let mut found = HashMap::new();
    let mut tar = Tar::new(whole);
    loop {
        let entry = match tar.next() {
            Ok(Some(entry)) => entry,
            Ok(None) | Err(_) if found.is_empty() => return Err(PartsError::NoTar),
            Ok(None) => return Ok(found),
            Err(e) => return Err(PartsError::Bad(e.into())),
        };
        let part = match entry.kind {
            Kind::File => Some(Part::Bytes { at: tar.stream().at, size: entry.size }),
            Kind::Symlink => {
                let dir = entry.name.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |n| &entry.name[..n]);
                within(dir, &entry.link).map(Part::Link)
            }
            Kind::HardLink => within(b"", &entry.link).map(Part::Link),
            _ => None,
        };
        // What has no name in the archive is part of no image; a directory counts as something.
        let name = within(b"", &entry.name).unwrap_or_default();
        found.insert(name, part.unwrap_or(Part::Link(vec![])));
        if found.len() > MAX_PARTS {
            let why = format!("the archive has more than {MAX_PARTS} files");
            return Err(PartsError::Bad(ImageError::TooLarge { why }));
        }
    }
}

/// A name in an archive, seen from one of its directories. These are words, not places: nothing is opened by them.
fn within(dir: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let mut parts: Vec<&[u8]> = vec![];
    let dir = if name.starts_with(b"/") { b"" } else { dir };
    for part in dir.split(|byte| *byte == b'/').chain(name.split(|byte| *byte == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join(&b'/'))
}

impl Source {
    pub(super) fn open(&self, name: &str) -> Result<Window, ImageError> {
        let missing = || ImageError::corrupt(format!("`{}` is not in it", shown(name.as_bytes())));
        match &self.files {
            Files::Archive { file, parts } => {
                let part = match within(b"", name.as_bytes()).and_then(|name| parts.get(&name)) {
                    Some(Part::Link(to)) => parts.get(to),
                    part => part,
                };
                let Some(Part::Bytes { at, size }) = part else { return Err(missing()) };
                Ok(Window { file: Rc::clone(file), at: *at, end: at + size })
            }
            Files::Directory(dir) => {
                let file = open_beneath(dir, name).map_err(|e| match e.kind() {
                    io::ErrorKind::NotFound => missing(),
                    _ => ImageError::Unreadable { path: self.path.join(name), error: e },
                })?;
                let end = file.metadata()?.len();
                Ok(Window { file: Rc::new(file), at: 0, end })
            }
        }
    }

    /// A whole file, which is a document.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, ImageError> {
        let mut from = self.open(name)?;
        if from.size() > MAX_DOCUMENT {
            let why = format!("`{}` has more than {} MiB", shown(name.as_bytes()), MAX_DOCUMENT >> 20);
            return Err(ImageError::TooLarge { why });
        }
        let mut bytes = vec![];
        from.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Regular files only, and through no link: a layout may come from anywhere.
fn open_beneath(dir: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = match rustix::fs::openat2(dir, name, flags, Mode::empty(), resolve) {
        Err(Errno::LOOP) => return Err(io::Error::other("it is a link")),
        opened => File::from(opened?),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}
