//! To the collector, from a thread of its own: no run waits for it, and what it does not take is dropped and counted.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use hotcell_engine::addresses_of;
use serde_json::json;

use super::Told;
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
    Spans(Told),
    Flush(Sender<()>),
}

impl Exporter {
    pub(crate) fn start(target: Target) -> io::Result<Exporter> {
        let (say, heard) = sync_channel(WAITING);
        let counted = Arc::new(Counted::default());
        let mut sender =
            Pending { target, spans: vec![], count: 0, counted: Arc::clone(&counted), due: None, failures: 0 };
        std::thread::Builder::new().name("traces".into()).spawn(move || sender.serve(&heard))?;
        Ok(Exporter { say, counted })
    }

    pub(crate) fn put(&self, told: Told) {
        let count = told.count as u64;
        if self.say.try_send(Word::Spans(told)).is_err() {
            self.counted.dropped.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// What is there is sent now, or never.
    pub(crate) fn flush(&self) {
        let (done, waits) = channel();
        let is_heard = self.say.try_send(Word::Flush(done)).is_ok();
        if !is_heard || waits.recv_timeout(LAST_PATIENCE).is_err() {
            tracing::error!("the last traces are lost: the collector does not take them in time");
        }
    }

    /// Sent, and dropped.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counted.sent.load(Ordering::Relaxed), self.counted.dropped.load(Ordering::Relaxed))
    }
}

struct Pending {
    target: Target,
    /// Those of a run each, and how many they are together.
    spans: Vec<String>,
    count: usize,
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
                Ok(Word::Spans(told)) => self.take(told),
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

    fn take(&mut self, Told { count, json }: Told) {
        if self.count + count > MAX_PENDING {
            self.counted.dropped.fetch_add(count as u64, Ordering::Relaxed);
            return;
        }
        self.spans.push(json);
        self.count += count;
        let now = Instant::now();
        if self.count >= BATCH && self.failures == 0 {
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
        let count = self.count as u64;
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
        (self.spans, self.count, self.failures) = (vec![], 0, 0);
    }

    fn post(&self) -> Result<(), Failed> {
        let scope = json!({ "name": "hotcell", "version": env!("CARGO_PKG_VERSION") });
        let (resource, spans) = (&self.target.resource, self.spans.join(","));
        let body = format!(
            r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":[{spans}]}}]}}]}}"#
        );
        let until = Instant::now() + self.target.time;
        let mut stream = connect(&self.target, until).map_err(Failed::ForNow)?;
        let later = |error: io::Error| {
            Failed::ForNow(match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not answer in time".into(),
                _ => error.to_string(),
            })
        };
        let status = converse(&mut stream, &self.target, body.as_bytes(), until).map_err(later)?;
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
    let no_http = || io::Error::other("it does not speak HTTP");
    let mut left_of_answer = MAX_ANSWER;
    loop {
        let first = line(stream, until, &mut left_of_answer)?;
        let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        match status.ok_or_else(no_http)? {
            // Not the answer yet.
            100..=199 => while !line(stream, until, &mut left_of_answer)?.trim_end().is_empty() {},
            status => return Ok(status),
        }
    }
}

fn line(stream: &mut TcpStream, until: Instant, most: &mut usize) -> io::Result<String> {
    let mut line = vec![];
    while !line.ends_with(b"\n") {
        stream.set_read_timeout(Some(left(until)?))?;
        let mut byte = [0u8];
        *most = most.checked_sub(1).ok_or(io::ErrorKind::InvalidData)?;
        if stream.read(&mut byte)? == 0 {
            break;
        }
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
