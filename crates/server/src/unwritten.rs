//! Ends that could not be written down when they came: a disk was full, or somebody else had the records. They are tried again
//! until they are written; as long as there are many of them, nothing new begins.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::sync::{Arc, Mutex};

use hotcell_engine::{StateError, Ticket};

use crate::run::Run;
use crate::service::{Service, held};

#[derive(Default)]
pub(crate) struct Unwritten {
    records: Mutex<VecDeque<Ticket>>,
    /// As long as one is here, it is told from memory.
    results: Mutex<VecDeque<Arc<Run>>>,
}

impl Unwritten {
    pub(crate) fn put_record(&self, ticket: Ticket) {
        held(&self.records).push_back(ticket);
    }

    pub(crate) fn put_result(&self, run: &Arc<Run>) {
        held(&self.results).push_back(Arc::clone(run));
    }

    pub(crate) fn len(&self) -> usize {
        held(&self.records).len() + held(&self.results).len()
    }
}

impl Service {
    /// For a thread that may wait: for who has the records, it does.
    pub(crate) fn write_ends(&self) {
        if self.unwritten.len() == 0 {
            return;
        }
        // One at a time: what another has begun to write is written when this is over.
        let mut state = self.looks();
        let Unwritten { records, results } = &self.unwritten;
        let record = |ticket: &mut Ticket| {
            state.write_end(ticket)?;
            tracing::info!(run = ticket.record_id(), "the end of a run is on record now");
            Ok::<_, StateError>(())
        };
        let result = |run: &mut Arc<Run>| {
            self.results.put(run.view(), run.how.idempotency.clone())?;
            self.forget(run);
            tracing::info!(run = run.id, "a result is kept now");
            Ok::<_, io::Error>(())
        };
        write_all(records, record);
        write_all(results, result);
    }
}

/// In their order, up to the first that cannot be written still.
fn write_all<T, E: Display>(list: &Mutex<VecDeque<T>>, mut write: impl FnMut(&mut T) -> Result<(), E>) {
    loop {
        let Some(mut first) = held(list).pop_front() else { return };
        if let Err(error) = write(&mut first) {
            tracing::debug!(error = error.to_string(), "an end cannot be written down still");
            held(list).push_front(first);
            return;
        }
    }
}
