//! As much of the Engine API as five requests need, over its socket.
//!
//! HTTP/1.0: an answer then is the rest of the connection, as Docker and Podman give it to everybody who asks so.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

/// An engine that is busy takes its time; one that is stuck must not take ours.
const PATIENCE: Duration = Duration::from_secs(60);
/// What an engine says about one image or one container is less by far.
const MOST: usize = 16 << 20;
const MOST_HEAD: usize = 64 << 10;
/// As an image that is given as a file.
const MOST_SAVED: u64 = 64 << 30;
/// Docker 20.10 and Podman 4 have it, and everything since.
const VERSION: &str = "v1.40";

#[derive(Clone, Debug)]
pub(super) struct Api {
    socket: PathBuf,
}

pub(super) struct Answer {
    pub(super) status: u16,
    body: Vec<u8>,
}

impl Api {
    pub(super) fn at(socket: &Path) -> Api {
        Api { socket: socket.to_owned() }
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(super) fn get(&self, path: &str) -> Result<Answer, String> {
        self.ask("GET", path, "application/json", &[])
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Answer, String> {
        self.ask("POST", path, "application/json", body.to_string().as_bytes())
    }

    /// Without a body: one that is not read ends the connection before its answer.
    pub(super) fn tell(&self, path: &str) -> Result<Answer, String> {
        self.ask("POST", path, "application/json", &[])
    }

    pub(super) fn post_archive(&self, path: &str, archive: &[u8]) -> Result<Answer, String> {
        self.ask("POST", path, "application/x-tar", archive)
    }

    pub(super) fn delete(&self, path: &str) -> Result<Answer, String> {
        self.ask("DELETE", path, "application/json", &[])
    }

    /// What is answered, into a file.
    pub(super) fn save(&self, path: &str, to: &mut File) -> Result<(), String> {
        let head = || -> std::io::Result<Option<(Answer, UnixStream)>> {
            let mut stream = self.send("GET", path, "application/json", &[])?;
            let mut head = vec![];
            while !head.ends_with(b"\r\n\r\n") && head.len() < MOST_HEAD {
                let mut byte = [0];
                stream.read_exact(&mut byte)?;
                head.push(byte[0]);
            }
            let answer = Answer::parse(&head);
            Ok(answer.map(|answer| (answer, stream)))
        };
        let (answer, mut stream) = head().map_err(|e| self.silent(&e))?.ok_or_else(|| self.none())?;
        if !answer.is_ok() {
            return Err(answer.complaint());
        }
        let (mut part, mut left) = ([0; 64 << 10], MOST_SAVED);
        loop {
            let n = stream.read(&mut part).map_err(|e| self.silent(&e))?;
            if n == 0 {
                return Ok(());
            }
            left = left.checked_sub(n as u64).ok_or("the engine sends more than an image can be")?;
            to.write_all(&part[..n]).map_err(|e| format!("what the engine sends cannot be kept: {e}"))?;
        }
    }

    fn ask(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<Answer, String> {
        let asked = || -> std::io::Result<Vec<u8>> {
            let until = Instant::now() + PATIENCE;
            let (mut stream, mut answer, mut part) = (self.send(method, path, kind, body)?, vec![], [0; 16 << 10]);
            loop {
                // For all of it: a word now and then is no answer.
                let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
                stream.set_read_timeout(Some(left))?;
                match stream.read(&mut part)? {
                    0 => return Ok(answer),
                    _ if answer.len() > MOST || Instant::now() > until => {
                        return Err(std::io::ErrorKind::TimedOut.into());
                    }
                    n => answer.extend_from_slice(&part[..n]),
                }
            }
        };
        Answer::parse(&asked().map_err(|e| self.silent(&e))?).ok_or_else(|| self.none())
    }

    fn send(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> std::io::Result<UnixStream> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let length = body.len();
        let head = format!(
            "{method} /{VERSION}{path} HTTP/1.0\r\nHost: engine\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        Ok(stream)
    }

    fn silent(&self, error: &std::io::Error) -> String {
        format!("the engine at `{}` does not answer: {error}", self.socket.display())
    }

    fn none(&self) -> String {
        format!("what listens at `{}` is no engine", self.socket.display())
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Option<Answer> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut words = head.lines().next()?.split(' ');
        words.next().filter(|word| word.starts_with("HTTP/1."))?;
        let status = words.next()?.parse().ok()?;
        Some(Answer { status, body: bytes[end + 4..].to_vec() })
    }

    pub(super) fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Why not, as the engine says it.
    pub(super) fn complaint(&self) -> String {
        let said = self.json()["message"].as_str().map(str::to_owned);
        said.unwrap_or_else(|| format!("the engine answers {}", self.status))
    }
}

/// A name as a part of a path or of a query.
pub(super) fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|b| if plain(b) { (b as char).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_or_are_none() {
        let answer = Answer::parse(b"HTTP/1.0 404 Not Found\r\nA: b\r\n\r\n{\"message\":\"none\"}").expect("it is one");
        assert_eq!((answer.status, answer.is_ok(), answer.complaint()), (404, false, "none".into()));
        for none in [&b""[..], b"HTTP/1.0 200 OK\r\n", b"SSH-2.0\r\n\r\n", b"HTTP/1.0 many\r\n\r\n", b"\xff\r\n\r\n"] {
            assert!(Answer::parse(none).is_none());
        }
    }

    #[test]
    fn names_stay_one_word() {
        assert_eq!(escape("a/b:1@sha256?x y"), "a%2Fb%3A1%40sha256%3Fx%20y");
    }
}
