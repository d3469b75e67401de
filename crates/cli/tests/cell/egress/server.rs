//! A server of the test's own, on the host's loopback, and the programs that may reach it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use super::restricted;
use crate::harness::*;

/// A server on the host's loopback, for as long as the tests run.
pub struct Server {
    pub port: u16,
    visits: Arc<AtomicUsize>,
}

impl Server {
    /// Serves each connection on a thread of its own.
    pub fn new(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the test's own");
        let port = listener.local_addr().expect("bound").port();
        let visits = Arc::new(AtomicUsize::new(0));
        let (serve, counted) = (Arc::new(serve), visits.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                let serve = serve.clone();
                std::thread::spawn(move || serve(stream));
            }
        });
        Server { port, visits }
    }

    /// Answers a request with its own head and body.
    pub fn mirror() -> Server {
        Server::new(|mut stream| {
            let mut from = BufReader::new(stream.try_clone().expect("a socket"));
            let head = read_head(&mut from);
            let body = read_body(&mut from, &head);
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len() + body.len());
            let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.write_all(&body));
        })
    }

    /// Sends back whatever comes, to the end.
    pub fn echo() -> Server {
        Server::new(|mut stream| {
            let mut back = stream.try_clone().expect("a socket");
            let _ = std::io::copy(&mut stream, &mut back);
            let _ = back.shutdown(Shutdown::Write);
        })
    }

    /// Takes connections and says nothing; tells of each, and again when it is cut.
    pub fn silent() -> (Server, Receiver<&'static str>) {
        let (tell, told) = channel();
        let tell = Mutex::new(tell);
        let server = Server::new(move |mut stream| {
            let tell = tell.lock().expect("no panic").clone();
            let mut buf = [0u8; 4096];
            let _ = stream.read(&mut buf).map(|_| tell.send("visited"));
            while stream.read(&mut buf).is_ok_and(|n| n > 0) {}
            let _ = tell.send("cut");
        });
        (server, told)
    }

    pub fn here(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }

    /// A Python program that may reach this server alone, whose address is `HERE` in it.
    pub fn program(&self, source: &str) -> Cell {
        let here = self.here();
        restricted(&[&here], &source.replace("HERE", &here))
    }
}

fn read_head(from: &mut impl BufRead) -> String {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") && from.read_until(b'\n', &mut head).is_ok_and(|n| n > 0) {}
    String::from_utf8(head).expect("heads here are ASCII")
}

fn read_body(from: &mut impl BufRead, head: &str) -> Vec<u8> {
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0u8; length.unwrap_or(0)];
    from.read_exact(&mut body).expect("as much as was said");
    if lower.contains("transfer-encoding: chunked") {
        while !body.ends_with(b"0\r\n\r\n") {
            assert!(from.read_until(b'\n', &mut body).expect("a socket") > 0, "chunks to their end");
        }
    }
    body
}
