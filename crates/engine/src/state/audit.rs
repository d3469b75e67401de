//! The audit log: lines that can be added to, and not changed without being found out.
//!
//! Each line carries the hash of the one before; the newest hash is signed, in a file beside the log, at every addition. So
//! an edit, an insertion, a deletion or a changed order breaks the chain at its place, and a log that was cut short does
//! not reach its signed head. One file a day; the chain goes on from file to file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::keys::{hex, unhex};

/// Before the first entry.
const ORIGIN: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// `,"hash":"` and 64 digits and `"}`.
const TAIL: usize = 9 + 64 + 2;
/// A line longer than this is not ours.
const MAX_LINE: usize = 1 << 20;
/// Most are shorter than this.
const USUAL_LINE: usize = 8 << 10;

#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("the audit log cannot be written, so nothing runs: `{}`: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("the audit log is not as it was left, so nothing runs: {0}: see `hotcell audit verify`")]
    Damaged(String),
}

/// One entry as it is hashed: in this order, without blanks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    pub seq: u64,
    /// RFC 3339, UTC.
    pub at: String,
    pub event: String,
    pub data: Value,
    /// The hash of the entry before.
    pub prev: String,
    /// Can be made only with the key: a line that was never signed for, because of a crash, is known by it to be ours.
    #[serde(default)]
    pub tag: String,
}

/// The newest entry, signed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    seq: u64,
    hash: String,
    sig: String,
}

/// Any number of them may be at one log, here and in other processes.
#[derive(Clone)]
pub struct Audit {
    dir: PathBuf,
    key: SigningKey,
    /// The head that was signed here last: to find it again proves as much as its signature.
    signed: Arc<Mutex<Vec<u8>>>,
}

/// What is wrong with a log, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub file: String,
    pub line: u64,
    pub what: String,
}

/// What a look at the whole log found.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    pub entries: u64,
    pub flaws: Vec<Flaw>,
}

impl Audit {
    pub(super) fn open(dir: PathBuf, key: SigningKey) -> Result<Audit, AuditError> {
        fs::create_dir_all(&dir).map_err(|error| AuditError::Io { path: dir.clone(), error })?;
        Ok(Audit { dir, key, signed: Arc::default() })
    }

    /// Adds an entry, or says why nothing may run.
    pub fn append(&self, event: &str, data: Value) -> Result<(), AuditError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| AuditError::Io { path, error }
        };
        let _lock = self.lock(FlockOperation::LockExclusive).map_err(failed(&self.dir.join("lock")))?;
        let newest = self.files().pop();
        let (seq, prev) = self.last(newest.as_deref())?;
        let at = jiff::Timestamp::now().to_string();
        // A clock that went back does not take the log back.
        let today = self.dir.join(format!("{}.jsonl", at.get(..10).unwrap_or("log")));
        let path = newest.map_or(today.clone(), |newest| newest.max(today));
        let mut entry = Entry { seq: seq + 1, at, event: event.to_owned(), data, prev, tag: String::new() };
        entry.tag = self.tag(&entry);
        let (line, hash) = sealed(&entry).map_err(failed(&path))?;
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(failed(&path))?;
        // One write: nobody sees half a line, and a full disk leaves none.
        let before = file.metadata().map_err(failed(&path))?.len();
        if let Err(e) = file.write_all(line.as_bytes()) {
            let _ = file.set_len(before);
            return Err(failed(&path)(e));
        }
        self.write_head(seq + 1, &hash).map_err(|e| {
            let _ = file.set_len(before);
            failed(&self.dir)(e)
        })
    }

    /// Until it is dropped, nobody adds to the log.
    fn lock(&self, how: FlockOperation) -> io::Result<File> {
        let path = self.dir.join("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        rustix::fs::flock(&lock, how)?;
        Ok(lock)
    }

    /// A keyed hash of everything else in the entry.
    fn tag(&self, entry: &Entry) -> String {
        let bare = Entry { tag: String::new(), ..entry.clone() };
        let body = Sha256::digest(serde_json::to_vec(&bare).unwrap_or_default());
        hex(&Sha256::new()
            .chain_update(self.key.to_bytes())
            .chain_update(b"hotcell audit tag")
            .chain_update(body)
            .finalize())
    }

    fn signed(&self) -> MutexGuard<'_, Vec<u8>> {
        self.signed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_head(&self, seq: u64, hash: &str) -> io::Result<()> {
        let sig = hex(&self.key.sign(statement(seq, hash).as_bytes()).to_bytes());
        let (path, bytes) = (self.dir.join("head"), serde_json::to_vec(&Head { seq, hash: hash.to_owned(), sig })?);
        self.signed().clone_from(&bytes);
        match OpenOptions::new().write(true).open(&path) {
            // In place: one write into one sector, which needs no room; it is never shorter than the one before, and who
            // reads it holds the lock. A new file in its place would be written out at once, which takes longer than all else.
            Ok(mut file) => file.write_all(&bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let new = self.dir.join(".head");
                fs::write(&new, bytes)?;
                fs::rename(new, path)
            }
            Err(e) => Err(e),
        }
    }

    /// Number and hash of the newest entry. A crash between an entry and its head leaves one entry more.
    fn last(&self, newest: Option<&Path>) -> Result<(u64, String), AuditError> {
        let damaged = |what: &str| AuditError::Damaged(what.to_owned());
        let line = match newest {
            Some(file) => last_line(file).map_err(|error| AuditError::Io { path: file.to_owned(), error })?,
            None => None,
        };
        let head = match fs::read(self.dir.join("head")) {
            Ok(bytes) => {
                let head = serde_json::from_slice::<Head>(&bytes).map_err(|_| damaged("its head is not readable"))?;
                if *self.signed() != bytes && !is_signed(&head, &self.key.verifying_key()) {
                    return Err(damaged("its head is not signed by the key of this place"));
                }
                Some(head)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(AuditError::Io { path: self.dir.join("head"), error }),
        };
        let known = head.as_ref().map_or((0, ORIGIN), |head| (head.seq, head.hash.as_str()));
        match line.map(|line| opened(&line)) {
            None if known.0 == 0 => Ok((0, ORIGIN.to_owned())),
            None => Err(damaged("its entries are gone")),
            Some(None) => Err(damaged("its last line is no entry")),
            Some(Some((entry, hash))) if (entry.seq, hash.as_str()) == known => Ok((entry.seq, hash)),
            Some(Some((entry, hash)))
                if (entry.seq, entry.prev.as_str()) == (known.0 + 1, known.1) && entry.tag == self.tag(&entry) =>
            {
                Ok((entry.seq, hash))
            }
            Some(Some(_)) => Err(damaged("its last entry is not the one that was signed last")),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files().is_empty() && !self.dir.join("head").exists()
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
        files.sort();
        files
    }

    /// Every line, from the oldest to the newest, as it stands.
    pub fn lines(&self) -> impl Iterator<Item = io::Result<String>> + use<> {
        self.files().into_iter().flat_map(|path| match File::open(path) {
            Ok(file) => Box::new(BufReader::new(file).lines()) as Box<dyn Iterator<Item = io::Result<String>>>,
            Err(e) => Box::new(std::iter::once(Err(e))),
        })
    }

    /// Looks at all of it, as it is at one moment: what others add meanwhile is left for the next look.
    pub fn verify(&self) -> io::Result<Verified> {
        let mut found = Verified::default();
        let mut before: Option<(u64, String)> = None;
        let lock = self.lock(FlockOperation::LockShared)?;
        let sized = |path: PathBuf| fs::metadata(&path).map(|meta| (path, meta.len()));
        let files = self.files().into_iter().map(sized).collect::<io::Result<Vec<_>>>()?;
        let head = fs::read(self.dir.join("head")).ok();
        drop(lock);
        for (path, len) in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let mut reader = BufReader::with_capacity(1 << 20, File::open(&path)?.take(len));
            let (mut line, mut number) = (Vec::new(), 0);
            loop {
                line.clear();
                if reader.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)? == 0 {
                    break;
                }
                number += 1;
                let mut flaw = |what: String| found.flaws.push(Flaw { file: name.clone(), line: number, what });
                let text = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
                let Some((entry, hash)) = text.and_then(opened) else {
                    flaw("is no entry, or its hash is not its own".into());
                    before = None;
                    continue;
                };
                let expected = before.take().or_else(|| (found.entries == 0).then(|| (0, ORIGIN.to_owned())));
                if let Some((seq, last)) = expected {
                    if entry.seq != seq + 1 {
                        flaw(format!("is entry {}, where {} should be", entry.seq, seq + 1));
                    } else if entry.prev != last {
                        flaw(format!("entry {} does not follow from the one before", entry.seq));
                    }
                }
                if entry.tag != self.tag(&entry) {
                    flaw(format!("entry {} was not written with the key of this place", entry.seq));
                }
                found.entries += 1;
                before = Some((entry.seq, hash));
            }
        }
        let flaw = |what: &str| Flaw { file: "head".into(), line: 1, what: what.into() };
        match head.map(|bytes| serde_json::from_slice::<Head>(&bytes)) {
            None if found.entries == 0 => {}
            None => found.flaws.push(flaw("is gone")),
            Some(Err(_)) => found.flaws.push(flaw("is not readable")),
            Some(Ok(head)) if !is_signed(&head, &self.key.verifying_key()) => {
                found.flaws.push(flaw("is not signed by the key of this place"));
            }
            Some(Ok(head)) => match &before {
                Some((seq, hash)) if (*seq, hash) == (head.seq, &head.hash) => {}
                Some((seq, _)) if *seq < head.seq => {
                    found.flaws.push(flaw(&format!("says {} entries, the log ends with {seq}: it was cut", head.seq)));
                }
                Some((seq, _)) => {
                    found.flaws.push(flaw(&format!("says {} entries, the log goes on to {seq}", head.seq)))
                }
                None if found.flaws.is_empty() => {
                    found.flaws.push(flaw("says that there are entries, and there are none"))
                }
                None => {}
            },
        }
        Ok(found)
    }
}

fn statement(seq: u64, hash: &str) -> String {
    format!("hotcell audit head\n{seq}\n{hash}\n")
}

fn is_signed(head: &Head, key: &VerifyingKey) -> bool {
    let sig = unhex(&head.sig).and_then(|bytes| Signature::from_slice(&bytes).ok());
    sig.is_some_and(|sig| key.verify_strict(statement(head.seq, &head.hash).as_bytes(), &sig).is_ok())
}

/// A line and its hash. The hash is over the very bytes before it.
fn sealed(entry: &Entry) -> io::Result<(String, String)> {
    let body = serde_json::to_string(entry)?;
    let hash = hex(&Sha256::digest(body.as_bytes()));
    let open = body.strip_suffix('}').unwrap_or(&body);
    Ok((format!("{open},\"hash\":\"{hash}\"}}\n"), hash))
}

/// The entry of a line whose hash is its own.
fn opened(line: &str) -> Option<(Entry, String)> {
    let at = line.len().checked_sub(TAIL)?;
    let (open, tail) = line.split_at_checked(at)?;
    let hash = tail.strip_prefix(",\"hash\":\"")?.strip_suffix("\"}")?;
    let body = format!("{open}}}");
    if hex(&Sha256::digest(body.as_bytes())) != hash {
        return None;
    }
    Some((serde_json::from_str(&body).ok()?, hash.to_owned()))
}

/// The last line of a file, without its end. One that has no end, or is no text, is an empty one: no entry either.
fn last_line(path: &Path) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    let mut bytes = last_bytes(&mut file, USUAL_LINE)?;
    if bytes.iter().filter(|byte| **byte == b'\n').count() < 2 {
        bytes = last_bytes(&mut file, MAX_LINE)?;
    }
    let line = match bytes.strip_suffix(b"\n") {
        _ if bytes.is_empty() => return Ok(None),
        Some(lines) => lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default(),
        None => b"",
    };
    Ok(Some(std::str::from_utf8(line).unwrap_or_default().to_owned()))
}

fn last_bytes(file: &mut File, most: usize) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(most as u64)))?;
    let mut bytes = vec![];
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry is read again before its tag is made again: every number must come back as it was.
    #[test]
    fn numbers_of_all_kinds_are_not_taken_for_a_forgery() {
        let dir = std::env::temp_dir().join(format!("hotcell-audit-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let audit = Audit::open(dir.clone(), SigningKey::from_bytes(&[7; 32])).expect("it can be made");
        let mut number = 0.1_f64 + 0.2;
        for _ in 0..200 {
            number = (number * 1_103.515_245 + 12.345_678).fract() * 100.0 + f64::EPSILON;
            audit.append("test", serde_json::json!({ "one": number, "other": 1.0 / number })).expect("it is written");
        }
        let found = audit.verify().expect("it can be read");
        assert_eq!((found.entries, found.flaws), (200, vec![]));
        let _ = fs::remove_dir_all(&dir);
    }
}
