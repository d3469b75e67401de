//! Somebody who waits for a run. When he goes away, so does the run, be it going or only about to be.

use std::sync::{Arc, Mutex, PoisonError};

use crate::problem::Problem;
use crate::run::Run;
use crate::service::Service;

/// As long as he has this, he waits.
pub(crate) struct Waiting {
    service: Arc<Service>,
    slot: Arc<Slot>,
}

/// Where the one who waits and the one who makes the run meet.
#[derive(Default)]
struct Slot(Mutex<Met>);

#[derive(Default)]
enum Met {
    #[default]
    Nobody,
    Run(Arc<Run>),
    /// He has gone before there was a run.
    Gone,
}

/// Makes a run in a thread that may wait, for somebody who waits for its end; one that is kept goes on without him.
pub(crate) async fn submit<F>(service: &Arc<Service>, submit: F) -> Result<(Arc<Run>, Waiting), Problem>
where
    F: FnOnce(&Arc<Service>) -> Result<Arc<Run>, Problem> + Send + 'static,
{
    let slot = Arc::new(Slot::default());
    let waiting = Waiting { service: Arc::clone(service), slot: Arc::clone(&slot) };
    let submitted = service.blocking(move |service| {
        let run = submit(service)?;
        if !run.how.is_kept {
            slot.put(service, &run);
        }
        Ok(run)
    });
    Ok((submitted.await?, waiting))
}

impl Slot {
    fn put(&self, service: &Service, run: &Arc<Run>) {
        let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*met {
            Met::Gone => service.cancel(run),
            _ => *met = Met::Run(Arc::clone(run)),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut met = self.slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has ended is not harmed by it.
        if let Met::Run(run) = std::mem::replace(&mut *met, Met::Gone) {
            self.service.cancel(&run);
        }
    }
}
