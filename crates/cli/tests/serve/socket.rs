//! A WebSocket as it is on the wire.

use serde_json::Value;

use crate::client::Connection;
use crate::harness::Service;

/// A client's side of a WebSocket, as it is on the wire.
pub struct Socket {
    connection: Connection,
}

impl Socket {
    #[track_caller]
    pub fn open(service: &Service<'_>, path: &str) -> Socket {
        Socket::open_saying(service, path, &[])
    }

    /// With words that are there as soon as the socket is: who has only so much time for them has them in time.
    #[track_caller]
    pub fn open_saying(service: &Service<'_>, path: &str, words: &[&[u8]]) -> Socket {
        let mut connection = service.connect();
        let key = service.key.as_ref().map(|key| format!("X-API-Key: {key}\r\n")).unwrap_or_default();
        let mut all = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\n{key}Connection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        .into_bytes();
        words.iter().for_each(|word| all.extend(frame(1, word)));
        connection.send(all);
        let (status, headers) = connection.head();
        assert_eq!(status, 101);
        assert_eq!(headers["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        Socket { connection }
    }

    pub fn send(&mut self, kind: u8, bytes: &[u8]) {
        self.connection.send(frame(kind, bytes));
    }

    pub fn say(&mut self, word: &Value) {
        self.send(1, word.to_string().as_bytes());
    }

    /// The next frame: its kind, and what is in it.
    #[track_caller]
    pub fn frame(&mut self) -> (u8, Vec<u8>) {
        let head = self.connection.exact(2);
        let length = match head[1] {
            126 => u16::from_be_bytes(self.connection.exact(2).try_into().expect("two")) as usize,
            127 => u64::from_be_bytes(self.connection.exact(8).try_into().expect("eight")) as usize,
            n => n as usize,
        };
        (head[0] & 15, self.connection.exact(length))
    }

    /// Why it was closed.
    #[track_caller]
    pub fn closed(&mut self) -> (u16, String) {
        loop {
            if let (8, bytes) = self.frame() {
                let code = u16::from_be_bytes([bytes[0], bytes[1]]);
                return (code, String::from_utf8_lossy(&bytes[2..]).into_owned());
            }
        }
    }
}

fn frame(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let mut frame = vec![0x80 | kind];
    match bytes.len() {
        n @ 0..126 => frame.push(0x80 | n as u8),
        n => frame.extend([&[0x80 | 126][..], &(n as u16).to_be_bytes()].concat()),
    }
    frame.extend(mask);
    frame.extend(bytes.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
    frame
}
