//! The egress broker: the only way out of a cell whose network is `restricted`.
//!
//!   cell                       | supervisor's process
//!   program -> 127.0.0.1:3128  | accept -> head -> admission -> resolve -> connect -> relay
//!
//! The socket that listens was made inside the cell's network namespace, and everything else happens outside of it. A name
//! is looked up once, all its addresses are looked at, and the connection goes to one of these very addresses. Every wait
//! is for a socket and for the end of the run, so that nothing outlives it.

mod admission;
mod body;
mod connect;
mod connection;
mod head;
mod relay;
mod resolve;
mod stop;

use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hotcell_contract::{AllowedHost, Event};
use hotcell_sandbox::{Egress, Recorder};
use rustix::event::{EventfdFlags, PollFlags};
use serde_json::json;

use resolve::{Resolver, Unknown};
use stop::Stop;

/// Connections at one time; those above wait.
const MOST_CONNECTIONS: u32 = 64;
/// Connections that are listed.
const MOST_EVENTS: usize = 1000;
const STACK: usize = 256 * 1024;
/// After an error that may pass: too many open files, say.
const BREATH: Duration = Duration::from_millis(100);

/// For our own use, of a name as the operator writes it. Not by the C library: see `resolve`.
pub fn addresses_of(name: &str) -> Result<Vec<IpAddr>, String> {
    let stop = Stop::new().map_err(|e| e.to_string())?;
    Resolver::of_this_host().look_up(name, &stop).map_err(|unknown| match unknown {
        Unknown::Because(why) => why,
        Unknown::Stopped => "it was called off".into(),
    })
}

/// For one run.
pub(crate) struct Broker {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the threads of a broker have in common.
struct Shared {
    hosts: Vec<AllowedHost>,
    resolver: Resolver,
    stop: Stop,
    log: Mutex<Log>,
}

/// The connections of a run, in the order in which they were begun; each is told of when it ends.
#[derive(Default)]
pub(crate) struct Log {
    events: Vec<(u64, Event)>,
    dropped: u64,
}

impl Broker {
    pub(crate) fn new(hosts: &[AllowedHost]) -> io::Result<Broker> {
        let (resolver, stop, log) = (Resolver::of_this_host(), Stop::new()?, Mutex::default());
        let shared = Shared { hosts: hosts.to_vec(), resolver, stop, log };
        Ok(Broker { shared: Arc::new(shared), thread: Mutex::new(None) })
    }

    /// What it has done so far.
    pub(crate) fn log(&self) -> Log {
        let mut log = std::mem::take(&mut *lock(&self.shared.log));
        log.events.sort_by_key(|(number, _)| *number);
        log
    }
}

impl Log {
    pub(crate) fn append(&mut self, later: Log) {
        self.dropped += later.dropped;
        later.events.into_iter().for_each(|(number, event)| self.put(number, event));
    }

    fn put(&mut self, number: u64, event: Event) {
        if self.events.len() < MOST_EVENTS {
            self.events.push((number, event));
        } else {
            self.dropped += 1;
        }
    }

    pub(crate) fn events(self) -> Vec<Event> {
        let mut events: Vec<Event> = self.events.into_iter().map(|(_, event)| event).collect();
        if self.dropped > 0 {
            let message = format!("{} more connections are not listed", self.dropped);
            events.push(event("egress.dropped", message, json!({ "count": self.dropped })));
        }
        events
    }
}

impl Egress for Broker {
    fn begin(&self, listener: OwnedFd, record: Recorder) -> io::Result<()> {
        let listener = TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
        let free = rustix::event::eventfd(MOST_CONNECTIONS, flags)?;
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().stack_size(STACK);
        let thread = thread.spawn(move || accept_all(&listener, &free, &shared, &record))?;
        *lock(&self.thread) = Some(thread);
        Ok(())
    }

    fn end(&self) {
        self.shared.stop.set();
        if let Some(thread) = lock(&self.thread).take() {
            // One that panicked is over as well.
            let _ = thread.join();
        }
    }
}

/// A broker that nobody ended ends here.
impl Drop for Broker {
    fn drop(&mut self) {
        self.end();
    }
}

/// One of so many; free again when it is dropped.
struct Slot<'a> {
    free: &'a OwnedFd,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let _ = rustix::io::write(self.free, &1u64.to_ne_bytes());
    }
}

/// Returns when the run is over and every connection with it.
fn accept_all(listener: &TcpListener, free: &OwnedFd, shared: &Shared, record: &Recorder) {
    let mut number = 0;
    std::thread::scope(|scope| {
        while shared.stop.wait(free, PollFlags::IN, None).is_ok() {
            if rustix::io::read(free, &mut [0u8; 8]).is_err() {
                continue;
            }
            let slot = Slot { free };
            if shared.stop.wait(listener, PollFlags::IN, None).is_err() {
                break;
            }
            number += 1;
            let begun = listener.accept().and_then(|(client, _)| {
                let serve = move || {
                    let _slot = slot;
                    connection::serve(client, number, shared, record);
                };
                std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, serve).map(drop)
            });
            let may_pass = |e: &io::Error| !matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            if begun.is_err_and(|e| may_pass(&e)) {
                shared.stop.rest(Instant::now() + BREATH);
            }
        }
        // Nobody is left to be answered; but what was asked for last counts as well.
        while let Ok((client, _)) = listener.accept() {
            number += 1;
            connection::serve(client, number, shared, record);
        }
    });
}

impl Shared {
    fn tell(&self, number: u64, event: Event) {
        lock(&self.log).put(number, event);
    }
}

fn event(kind: &str, message: String, fields: serde_json::Value) -> Event {
    let fields = fields.as_object().cloned().unwrap_or_default();
    Event { kind: kind.into(), message: Some(message), what: None, line: None, fields }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_says_how_much_is_left_out() {
        let mut log = Log::default();
        for number in 0..MOST_EVENTS + 2 {
            let mut one = Log::default();
            one.put(0, event("egress.admitted", String::new(), json!({ "number": number })));
            log.append(one);
        }
        let events = log.events();
        assert_eq!(events.len(), MOST_EVENTS + 1);
        let last = events.last().expect("there are some");
        assert_eq!((last.kind.as_str(), last.fields.get("count")), ("egress.dropped", Some(&json!(2))));
    }
}
