//! HTTP as it is on the wire: nothing is corrected on the way, so that what a test sends is what arrives.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::harness::DEADLINE;

pub struct Answer {
    pub status: u16,
    /// By their names in small letters.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {} {}", self.status, self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A problem of this status, with these parts in its sentence.
    #[track_caller]
    pub fn is_problem(&self, status: u16, field: Option<&str>, parts: &[&str]) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["type"].as_str().is_some_and(|kind| kind.starts_with("urn:hotcell:problem:")), "{problem}");
        assert_eq!(problem["field"].as_str(), field, "{problem}");
        let detail = problem["detail"].as_str().expect("a sentence");
        for part in parts {
            assert!(detail.contains(part), "`{part}` is not in: {detail}");
        }
        problem
    }
}

/// A connection that stays.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    #[track_caller]
    pub fn open(address: &str) -> Connection {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a socket");
        Connection { stream: BufReader::new(stream) }
    }

    pub fn socket(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).expect("it is open");
    }

    /// One answer, whole.
    #[track_caller]
    pub fn answer(&mut self) -> Answer {
        let (status, headers) = self.head();
        let mut body = vec![];
        if headers.get("transfer-encoding").is_some_and(|how| how == "chunked") {
            while let Some(chunk) = self.chunk() {
                body.extend(chunk);
            }
        } else if let Some(length) = headers.get("content-length") {
            body.resize(length.parse().expect("a number"), 0);
            self.stream.read_exact(&mut body).expect("it is all there");
        } else {
            self.stream.read_to_end(&mut body).expect("it ends");
        }
        Answer { status, headers, body }
    }

    #[track_caller]
    pub fn head(&mut self) -> (u16, BTreeMap<String, String>) {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {first:?}"));
        let mut headers = BTreeMap::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { return (status, headers) };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }

    #[track_caller]
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line comes");
        line.trim_end().to_owned()
    }

    /// A piece of a body that comes in pieces; nothing at its end.
    #[track_caller]
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line(), 16).expect("a size");
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk).expect("it is all there");
        self.line();
        (size > 0).then_some(chunk)
    }

    #[track_caller]
    pub fn exact(&mut self, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        self.stream.read_exact(&mut bytes).expect("it is all there");
        bytes
    }

    /// Whether the other side has closed it, without a word more.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.fill_buf(), Ok([]) | Err(_))
    }
}

/// A request as it is written. `headers` are lines.
pub fn request(method: &str, path: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|line| line.to_ascii_lowercase().starts_with("host:")) {
        text.push_str("Host: localhost\r\n");
    }
    for line in headers {
        text.push_str(line);
        text.push_str("\r\n");
    }
    if !body.is_empty() || method == "POST" {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    [text.as_bytes(), body].concat()
}
