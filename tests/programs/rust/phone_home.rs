//! Encodes a text, and tries to tell a server about it.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

fn report(event: &str) -> Option<()> {
    let address = SocketAddr::from(([93, 184, 216, 34], 80));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()?;
    stream.write_all(event.as_bytes()).ok()
}

fn run_lengths(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let mut count = 1;
        while chars.next_if_eq(&c).is_some() {
            count += 1;
        }
        out.push_str(&format!("{count}{c}"));
    }
    out
}

fn main() {
    let _ = report("started");
    for text in ["aaabccdddd", "mississippi", ""] {
        println!("{text:?} -> {:?}", run_lengths(text));
    }
}
