//! One run as the service knows it, from the queue to its end.
//!
//!   pending -> running -> completed | failed | timeout | killed
//!        \-> denied (refused when its turn came), killed (called off, or waited too long)

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use hotcell_contract::{Outcome, RecordStatus, Run as RunView};
use hotcell_engine::{Passed, Stop, Terminal, now};
use tokio::sync::watch;

use crate::log::Log;
use crate::problem::Problem;
use crate::trace::Trace;
use crate::transcript::Transcript;

/// How a run was asked for.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// Somebody comes back for it: it is in the state directory before it begins, and its output is told while it goes.
    pub is_kept: bool,
    /// Somebody reads its events while it goes, and does not come back: its output is told, too.
    pub is_followed: bool,
    pub idempotency: Option<Idempotency>,
    /// For who wants all of its output in its order.
    pub transcript: Option<Arc<Transcript>>,
    /// The caller's own.
    pub metadata: Option<serde_json::Map<String, serde_json::Value>>,
}

/// The caller's word for this request, and what the request was.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Idempotency {
    pub key: String,
    pub body_sha256: String,
}

pub struct Run {
    pub id: String,
    pub tenant: String,
    pub request_id: String,
    pub policy_id: String,
    pub created_at: String,
    pub how: How,
    pub log: Arc<Log>,
    pub(crate) trace: Option<Trace>,
    /// For the one who attaches first.
    pub(crate) to_stdin: Mutex<Option<OwnedFd>>,
    pub(crate) passed: Option<Passed>,
    pub(crate) terminal: Option<Terminal>,
    stop: Stop,
    stage: Mutex<Stage>,
    ended: watch::Sender<bool>,
}

#[derive(Clone, Default)]
pub(crate) struct Stage {
    started_at: Option<String>,
    completed_at: Option<String>,
    status: Option<RecordStatus>,
    result: Option<Result<Box<Outcome>, Problem>>,
    /// Why it was called off, where it is not the caller who did.
    called_off: Option<&'static str>,
}

impl Run {
    pub(crate) fn new(id: String, tenant: String, request_id: String, policy_id: String, how: How) -> io::Result<Run> {
        Ok(Run {
            to_stdin: Mutex::default(),
            passed: None,
            terminal: None,
            id,
            tenant,
            request_id,
            policy_id,
            created_at: now(),
            how,
            log: Arc::new(Log::new()),
            trace: None,
            stop: Stop::new()?,
            stage: Mutex::default(),
            ended: watch::Sender::new(false),
        })
    }

    fn stage(&self) -> std::sync::MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begins(&self) {
        let mut stage = self.stage();
        (stage.started_at, stage.status) = (Some(now()), Some(RecordStatus::Running));
    }

    /// How it will stand when it has ended so.
    pub(crate) fn last_stage(&self, status: RecordStatus, result: Result<Box<Outcome>, Problem>) -> Stage {
        let mut stage = self.stage().clone();
        (stage.completed_at, stage.status, stage.result) = (Some(now()), Some(status), Some(result));
        stage
    }

    /// It has ended so: from here on whoever waits is told, and whoever looks sees it.
    pub(crate) fn ends(&self, stage: Stage) {
        *self.stage() = stage;
        self.log.close();
        self.ended.send_replace(true);
    }

    /// Calls it off: the first time with grace, the second time at once.
    pub fn cancel(&self) {
        self.stop.now();
    }

    /// The same, by us.
    pub(crate) fn call_off(&self, why: &'static str) {
        self.stage().called_off.get_or_insert(why);
        self.stop.now();
    }

    pub(crate) fn called_off(&self) -> Option<&'static str> {
        self.stage().called_off
    }

    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    pub fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits for its end, whatever it is.
    pub async fn ended(&self) {
        // The sender lives as long as this.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Waits for its end, which is an Outcome, or why there is none.
    pub async fn end(&self) -> Result<Box<Outcome>, Problem> {
        self.ended().await;
        let none = || Err(Problem::internal(&"a run ended without a result"));
        self.stage().result.clone().unwrap_or_else(none)
    }

    pub fn view(&self) -> RunView {
        let stage = self.stage().clone();
        self.view_at(stage)
    }

    pub(crate) fn view_at(&self, stage: Stage) -> RunView {
        let (outcome, problem) = match stage.result {
            None => (None, None),
            Some(Ok(outcome)) => (Some(*outcome), None),
            Some(Err(problem)) => (None, Some(problem.to_contract())),
        };
        RunView {
            id: self.id.clone(),
            tenant_id: self.tenant.clone(),
            request_id: self.request_id.clone(),
            policy_id: self.policy_id.clone(),
            status: stage.status.unwrap_or(RecordStatus::Pending),
            created_at: self.created_at.clone(),
            started_at: stage.started_at,
            completed_at: stage.completed_at,
            metadata: self.how.metadata.clone(),
            outcome,
            problem,
        }
    }
}
