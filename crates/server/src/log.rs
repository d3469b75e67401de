//! The events of one run, numbered, for any number of readers who may come late and come again.
//!
//! What is written never waits for who reads: the oldest are dropped when there are too many, and a reader is told so.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use hotcell_contract::{Happened, RunEvent};
use tokio::sync::watch;

/// A run of a minute has 600 samples, and few have more violations.
const MAX_EVENTS: usize = 1024;
/// Of text that the program said: the result has all of it in the end.
const MAX_TEXT: usize = 1 << 20;

#[derive(Clone)]
pub struct Numbered {
    /// From 1.
    pub number: u64,
    pub event: Arc<RunEvent>,
}

#[derive(Default)]
struct Held {
    events: VecDeque<Numbered>,
    text: usize,
    next: u64,
    closed: bool,
}

pub struct Log {
    held: Mutex<Held>,
    /// The number of the newest, for those who wait.
    newest: watch::Sender<u64>,
}

/// What a reader gets at once.
pub struct Page {
    /// How many he has missed.
    pub missed: u64,
    pub events: Vec<Numbered>,
    /// Nothing comes after these.
    pub closed: bool,
}

impl Log {
    pub(crate) fn new() -> Log {
        Log { held: Mutex::default(), newest: watch::Sender::new(0) }
    }

    pub(crate) fn push(&self, event: RunEvent) {
        let number = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            if held.closed {
                return;
            }
            held.next += 1;
            held.text += text_of(&event);
            let number = held.next;
            held.events.push_back(Numbered { number, event: Arc::new(event) });
            while held.events.len() > MAX_EVENTS || held.text > MAX_TEXT {
                let Some(old) = held.events.pop_front() else { break };
                held.text -= text_of(&old.event);
            }
            number
        };
        self.newest.send_replace(number);
    }

    /// Nothing comes any more.
    pub(crate) fn close(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.newest.send_modify(|_| {});
    }

    /// All after this number.
    pub fn after(&self, seen: u64) -> Page {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let first = held.events.front().map_or(held.next + 1, |first| first.number);
        let events = held.events.iter().filter(|event| event.number > seen).cloned().collect();
        Page { missed: first.saturating_sub(seen.saturating_add(1)), events, closed: held.closed }
    }

    /// Changes when there is something new.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

fn text_of(event: &RunEvent) -> usize {
    match &event.happened {
        Happened::Output(said) => said.text.len(),
        _ => 0,
    }
}
