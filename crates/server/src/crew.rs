//! Threads that run what comes: as many as may go at once, and the line of those who wait for one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use hotcell_contract::{FailureClass, RecordStatus};

use crate::problem::Problem;
use crate::queue::{Full, Queue, Queued};
use crate::service::{Service, held};
use crate::settings::{IDLE_THREAD, MAX_BODIES};
use crate::work;

#[derive(Default)]
pub(crate) struct Crew {
    pub(crate) work: Mutex<Work>,
    /// That something was handed to a thread that waits, or that none will be.
    pub(crate) handed: Condvar,
    threads: AtomicU64,
}

#[derive(Default)]
pub(crate) struct Work {
    pub(crate) queue: Queue,
    pub(crate) running: usize,
    /// Threads that wait for something to run.
    idle: usize,
    /// For them: never more than there are.
    handed: Vec<Queued>,
    pub(crate) closed: bool,
}

impl Service {
    pub(crate) fn enqueue(self: &Arc<Self>, queued: Queued) -> Result<(), (Problem, Box<Queued>)> {
        let mut work = held(&self.crew.work);
        if work.closed {
            let problem =
                Problem::unavailable("closing", "the service is about to end: come back when it is there again");
            return Err((problem, Box::new(queued)));
        }
        if work.running < self.settings.concurrency {
            work.running += 1;
            if work.idle > work.handed.len() {
                work.handed.push(queued);
                self.crew.handed.notify_one();
                return Ok(());
            }
            drop(work);
            return self.start_worker(queued);
        }
        let settings = &self.settings;
        work.queue.push(queued, settings.queue, settings.queue_of_tenant(), MAX_BODIES).map_err(|(full, queued)| {
            let detail = match full {
                Full::Queue => format!("{} runs are waiting already: come back later", settings.queue),
                Full::Tenant => {
                    format!("{} runs of this tenant are waiting already: come back later", settings.queue_of_tenant())
                }
                Full::Bytes => "what waits has too many bytes already: come back later".to_owned(),
            };
            (Problem::busy("queue-full", detail), queued)
        })
    }

    fn start_worker(self: &Arc<Self>, queued: Queued) -> Result<(), (Problem, Box<Queued>)> {
        let service = Arc::clone(self);
        // Handed over through a slot: a thread that cannot be made must not take the job with it.
        let slot = Arc::new(Mutex::new(Some(queued)));
        let theirs = Arc::clone(&slot);
        let number = self.crew.threads.fetch_add(1, Ordering::Relaxed);
        let spawned = std::thread::Builder::new().name(format!("run-{number}")).spawn(move || {
            let first = held(&theirs).take();
            work::work(&service, first);
        });
        let Err(error) = spawned else { return Ok(()) };
        held(&self.crew.work).running -= 1;
        tracing::error!(%error, "no thread for a run");
        let problem = Problem::unavailable("shortage", "the host is short of processes: come back later");
        match held(&slot).take() {
            Some(queued) => Err((problem, Box::new(queued))),
            None => Ok(()),
        }
    }

    /// For a thread that has ended a run: the next one, for which it may wait a while, or it may go.
    pub(crate) fn next_job(&self) -> Option<Queued> {
        let mut work = held(&self.crew.work);
        if let Some(next) = work.queue.pop() {
            return Some(next);
        }
        work.running -= 1;
        work.idle += 1;
        let waits = |work: &mut Work| work.handed.is_empty() && !work.closed;
        let waited = self.crew.handed.wait_timeout_while(work, IDLE_THREAD, waits);
        let (mut work, _) = waited.unwrap_or_else(PoisonError::into_inner);
        work.idle -= 1;
        work.handed.pop()
    }

    /// Those who wait for too long are told so.
    pub(crate) fn expire(&self) {
        let expired = held(&self.crew.work).queue.expired(Instant::now());
        for queued in expired {
            let seconds = queued.job.policy.request_budget_seconds;
            let problem = Problem::busy("waited", format!("its turn did not come within {seconds} s: come back later"));
            let problem = Problem { failure_class: Some(FailureClass::QuotaExceeded), ..problem };
            self.deny_queued(queued, problem);
        }
    }

    /// Nothing of it has run; that it was refused is on record.
    fn deny_queued(&self, queued: Queued, problem: Problem) {
        let class = problem.failure_class.unwrap_or(FailureClass::QuotaExceeded);
        let (job, run) = (&queued.job, &queued.run);
        let denied = self.state().deny(&job.request, &job.who, Some(&job.policy), None, class, &problem.detail);
        self.metrics.refused(&problem);
        let problem = match denied {
            Ok(()) => problem.of_record(&run.id),
            Err(error) => {
                tracing::error!(run = run.id, %error, "a refusal is not on record");
                problem
            }
        };
        self.drop_queued(queued, RecordStatus::Denied, problem);
    }
}
