//! To the collector, from a thread of its own: no run waits for it, and what it does not take is dropped and counted.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use hotcell_engine::addresses_of;
use serde_json::{Value, json};

use super::target::Target;

/// Runs whose spans wait for the thread.
const WAITING: usize = 1024;
/// Spans that wait to be sent: what a collector misses that is away for long.
const MAX_PENDING: usize = 16 << 10;
/// So many are sent at once without waiting for more.
const BATCH: usize = 512;
const LINGER: Duration = Duration::from_secs(1);
/// A batch is tried again after 1, 2, 4, 8 and 16 seconds.
const TRIES: u32 = 6;
const MAX_ANSWER: usize = 64 << 10;
/// At the end of the service.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Exporter {
    say: SyncSender<Word>,
    counted: Arc<Counted>,
}

#[derive(Default)]
struct Counted {
    sent: AtomicU64,
    dropped: AtomicU64,
}

enum Word {
    Spans(Vec<Value>),
    Flush(Sender<()>),
}

impl Exporter {
    pub(crate) fn start(target: Target) -> io::Result<Exporter> {
        let (say, heard) = sync_channel(WAITING);
        let counted = Arc::new(Counted::default());
        let mut sender = Pending { target, spans: vec![], counted: Arc::clone(&counted), due: None, failures: 0 };
        std::thread::Builder::new().name("traces".into()).spawn(move || sender.serve(&heard))?;
        Ok(Exporter { say, counted })
    }

    pub(crate) fn put(&self, spans: Vec<Value>) {
        let count = spans.len() as u64;
        if self.say.try_send(Word::Spans(spans)).is_err() {
            self.counted.dropped.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// What is there is sent now, or never.
    pub(crate) fn flush(&self) {
        let (done, waits) = channel();
        if self.say.try_send(Word::Flush(done)).is_ok() {
            let _ = waits.recv_timeout(LAST_PATIENCE);
        }
    }

    /// Sent, and dropped.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counted.sent.load(Ordering::Relaxed), self.counted.dropped.load(Ordering::Relaxed))
    }
}

struct Pending {
    target: Target,
    spans: Vec<Value>,
    counted: Arc<Counted>,
    /// When they are to be sent, or tried again.
    due: Option<Instant>,
    failures: u32,
}

enum Failed {
    /// It may do later.
    ForNow(String),
    ForGood(String),
}

impl Pending {
    fn serve(&mut self, heard: &Receiver<Word>) {
        loop {
            let word = match self.due {
                None => heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => heard.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match word {
                Ok(Word::Spans(spans)) => self.take(spans),
                Ok(Word::Flush(done)) => {
                    self.failures = TRIES;
                    self.send();
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => self.send(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&mut self, spans: Vec<Value>) {
        if self.spans.len() + spans.len() > MAX_PENDING {
            self.counted.dropped.fetch_add(spans.len() as u64, Ordering::Relaxed);
            return;
        }
        self.spans.extend(spans);
        let now = Instant::now();
        if self.spans.len() >= BATCH && self.failures == 0 {
            self.due = Some(now);
        }
        self.due.get_or_insert(now + LINGER);
    }

    fn send(&mut self) {
        self.due = None;
        if self.spans.is_empty() {
            self.failures = 0;
            return;
        }
        let count = self.spans.len() as u64;
        let sent = self.post();
        match sent {
            Ok(()) => {
                self.counted.sent.fetch_add(count, Ordering::Relaxed);
            }
            Err(Failed::ForNow(why)) if self.failures + 1 < TRIES => {
                if self.failures == 0 {
                    tracing::warn!(target = %self.target, why, "traces cannot be sent now");
                }
                self.due = Some(Instant::now() + Duration::from_secs(1 << self.failures));
                self.failures += 1;
                return;
            }
            Err(Failed::ForNow(why) | Failed::ForGood(why)) => {
                tracing::error!(target = %self.target, why, spans = count, "traces are lost");
                self.counted.dropped.fetch_add(count, Ordering::Relaxed);
            }
        }
        (self.spans, self.failures) = (vec![], 0);
    }

    fn post(&self) -> Result<(), Failed> {
        let scope = json!({ "name": "hotcell", "version": env!("CARGO_PKG_VERSION") });
        let body = json!({ "resourceSpans": [{
            "resource": self.target.resource,
            "scopeSpans": [{ "scope": scope, "spans": self.spans }],
        }] });
        let until = Instant::now() + self.target.time;
        let mut stream = connect(&self.target, until).map_err(Failed::ForNow)?;
        let later = |error: io::Error| Failed::ForNow(error.to_string());
        let status = converse(&mut stream, &self.target, body.to_string().as_bytes(), until).map_err(later)?;
        match status {
            200..=299 => Ok(()),
            429 | 502 | 503 | 504 => Err(Failed::ForNow(format!("it answers {status}"))),
            _ => Err(Failed::ForGood(format!("it answers {status}"))),
        }
    }
}

fn connect(target: &Target, until: Instant) -> Result<TcpStream, String> {
    let addresses = match target.host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => addresses_of(&target.host)?,
    };
    let mut last = String::new();
    for address in addresses {
        match TcpStream::connect_timeout(
            &SocketAddr::new(address, target.port),
            left(until).map_err(|e| e.to_string())?,
        ) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

/// The status of the answer, whose rest is of no use to anybody.
fn converse(stream: &mut TcpStream, target: &Target, body: &[u8], until: Instant) -> io::Result<u16> {
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    let mut message = format!(
        "POST {} HTTP/1.1\r\nHost: {host}:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n",
        target.path,
        target.port,
        body.len(),
    )
    .into_bytes();
    for (name, value) in &target.headers {
        message.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    message.extend(b"\r\n");
    message.extend(body);
    let mut rest = message.as_slice();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        let written = stream.write(rest)?;
        rest = rest.get(written..).filter(|_| written > 0).ok_or(io::ErrorKind::WriteZero)?;
    }
    let mut answer = vec![];
    while !answer.ends_with(b"\n") && answer.len() < MAX_ANSWER {
        stream.set_read_timeout(Some(left(until)?))?;
        let mut byte = [0u8];
        if stream.read(&mut byte)? == 0 {
            break;
        }
        answer.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&answer);
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    status.ok_or_else(|| io::Error::other("it does not speak HTTP"))
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
