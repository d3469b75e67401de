//! What outlives a run: records, the audit log, the kill switch. One directory, the operator's own.
//!
//! A run is written down before it begins and when it ends; a refusal is written down too. What cannot be written down
//! does not run.

mod admission;
mod api_keys;
mod audit;
mod grants;
mod owner;
mod permits;
mod store;
mod switches;

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotcell_contract::{
    Averages, ExecutionRecord, FailureClass, Lease, Outcome, Policy, RecordStatus, Stats, Status, TerminalEvent,
};
use serde_json::{Value, json};

pub use audit::{Audit, AuditError, Entry, Flaw, Verified};
pub use grants::IssuedLease;
pub use permits::Revoked;
pub use store::{Filter, StoreError};
pub use switches::Switch;

use crate::keys;
use crate::lease::{KeyError, LeaseRefusal};
use crate::receipt::ReceiptKey;
use crate::repo::RollbackError;
use crate::request::{Program, Request};
use admission::{Refusal, Wanted};
pub(crate) use owner::Owner;
use owner::stop;
use store::Store;

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("the state directory `{}` cannot be used: {error}", path.display())]
    Directory { path: PathBuf, error: io::Error },
    #[error("`{}` {why}: it must be yours alone", path.display())]
    NotOurs { path: PathBuf, why: &'static str },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error("{why}")]
    Refused {
        class: FailureClass,
        why: String,
        /// When it is worth another try.
        again_in: Option<Duration>,
    },
    #[error(transparent)]
    Lease(#[from] LeaseRefusal),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("there is no {what} `{id}` here")]
    Unknown { what: &'static str, id: String },
    #[error("`{id}` waits for no decision any more: see `hotcell approve list`")]
    Decided { id: String },
    #[error("the intent does not stand: {0}")]
    Intent(String),
    #[error(transparent)]
    Rollback(#[from] RollbackError),
    #[error("the request cannot be written as canonical JSON: {0}")]
    Canonical(#[from] serde_json::Error),
    #[error("a run needs a lease here: give --lease FILE")]
    LeaseRequired,
    #[error("`{0}` is not enabled here: it is in [capabilities] of hotcell.toml")]
    NotEnabled(&'static str),
    #[error("a lease is for run and exec: leave --lease out")]
    LeaseForVerify,
    #[error("a lease is verified with the keys of a state directory, and there is none: give --state-dir")]
    NoKeys,
    #[error("there is no place for what the run leaves: {0}")]
    Staging(io::Error),
}

/// On whose behalf.
#[derive(Clone, Debug, Default)]
pub struct Who {
    pub tenant_id: Option<String>,
    pub user_id: Option<String>,
    pub run_id: Option<String>,
}

pub struct State {
    dir: PathBuf,
    store: Store,
    audit: Audit,
}

/// A run that was admitted, and whose end is not written down yet.
pub struct Ticket {
    record: ExecutionRecord,
    /// What the audit log is still to be told of its end.
    entries: VecDeque<(String, Value)>,
}

impl Ticket {
    pub fn record_id(&self) -> &str {
        &self.record.record_id
    }

    /// It has ended as its record says now.
    fn ends(&mut self, name: &str) {
        self.record.completed_at = Some(now());
        self.entries.push_back((format!("exec_event.{name}"), event(&self.record)));
    }
}

impl State {
    /// Makes the directory when it is not there.
    pub fn open(dir: &Path) -> Result<State, StateError> {
        let failed = |error| StateError::Directory { path: dir.to_owned(), error };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        let meta = fs::metadata(dir).map_err(failed)?;
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(StateError::NotOurs { path: dir.to_owned(), why: "belongs to somebody else" });
        }
        if meta.mode() & 0o022 != 0 {
            return Err(StateError::NotOurs { path: dir.to_owned(), why: "can be written by others" });
        }
        let key = keys::key(&dir.join("keys"), "audit").map_err(failed)?;
        let audit = Audit::open(dir.join("audit"), key)?;
        let store = Store::open(&dir.join("records.db"))?;
        Ok(State { dir: dir.to_owned(), store, audit })
    }

    /// The same, for a process that runs many things. It is not killed for the sake of one: it has to ask [`State::called_off`]
    /// at least ten times a second, and to end what that names.
    pub fn open_for_service(dir: &Path) -> Result<State, StateError> {
        let mut state = State::open(dir)?;
        state.store.serve()?;
        Ok(state)
    }

    /// The records of runs of this process that the kill switch or a revoked lease is for. Nothing is looked at again as long
    /// as nobody has changed anything since `seen`.
    pub fn called_off(&self, seen: &mut Option<i64>) -> Result<Vec<String>, StateError> {
        let version = self.store.version_of_data()?;
        if *seen == Some(version) {
            return Ok(vec![]);
        }
        let called_off = self.store.called_off()?;
        *seen = Some(version);
        Ok(called_off)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The key that signs receipts, made now if it was not there.
    pub fn receipt_key(&self) -> Result<ReceiptKey, StateError> {
        let failed = |error| StateError::Directory { path: self.dir.clone(), error };
        ReceiptKey::open(&self.dir.join("keys")).map_err(failed)
    }

    /// A log that is gone altogether is missed by the records of what has ended. One of what is going says nothing: its
    /// process may be about to write the first entry. Those who have ended have written before, so the log is looked at last.
    fn has_lost_its_log(&self) -> Result<bool, StateError> {
        Ok(self.audit.is_empty() && self.store.has_ended()? && self.audit.is_empty())
    }

    pub fn verify_audit(&self) -> Result<Verified, StateError> {
        let mut found = self.audit.verify().map_err(|error| AuditError::Io { path: self.dir.clone(), error })?;
        if self.has_lost_its_log()? {
            found.flaws.push(Flaw {
                file: "head".into(),
                line: 1,
                what: "is gone, with every entry: there are records".into(),
            });
        }
        Ok(found)
    }

    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Runs that ended without anybody to say so.
    fn sweep(&mut self) -> Result<(), StateError> {
        for record_id in self.store.orphans()? {
            self.audit.append("exec_event.KILLED", json!({ "record_id": record_id, "why": "its process is gone" }))?;
            self.store.bury(&record_id, &now())?;
        }
        Ok(())
    }

    /// Writes a run down, if it may begin.
    pub(crate) fn begin(
        &mut self,
        request: &Request,
        who: &Who,
        policy: Option<&Policy>,
        lease: Option<&Lease>,
    ) -> Result<Ticket, StateError> {
        if self.has_lost_its_log()? {
            return Err(AuditError::Damaged("there are records, and no log of them".into()).into());
        }
        self.sweep()?;
        let record = record(request, who, policy, lease);
        let asks = policy.is_some_and(|policy| policy.require_approval);
        if let Some(why) = permits::cannot_be_shown(request).filter(|_| asks) {
            self.deny_record(record, FailureClass::ApprovalRequired, why)?;
            let class = FailureClass::ApprovalRequired;
            return Err(StateError::Refused { class, why: why.into(), again_in: None });
        }
        let question = policy.filter(|policy| policy.require_approval);
        let question = question.map(|policy| permits::question(request, who, policy)).transpose()?;
        let wanted = Wanted { policy, lease, approval: question.as_ref() };
        if let Err(refusal) = self.store.admit(&record, &wanted, now_ms())? {
            let class = match &refusal {
                Refusal::Quota { .. } | Refusal::Concurrency { .. } => FailureClass::QuotaExceeded,
                Refusal::KillSwitch { .. } => FailureClass::PolicyViolation,
                Refusal::Lease(_) => FailureClass::LeaseViolation,
                Refusal::Approval { .. } => FailureClass::ApprovalRequired,
            };
            if let (Refusal::Approval { id }, Some(question)) = (&refusal, &question)
                && *id == question.approval_id
            {
                let data = json!({ "approval_id": id, "policy_id": question.policy_id, "request_hash": question.request_hash });
                self.audit.append("approval_event.ASKED", data)?;
            }
            if let Refusal::Lease(why) = &refusal {
                self.deny_lease(lease, why)?;
            }
            self.deny_record(record, class, &refusal.to_string())?;
            return Err(StateError::Refused { class, why: refusal.to_string(), again_in: refusal.again_in() });
        }
        let ticket = Ticket { record, entries: VecDeque::new() };
        let verified = lease.map(|lease| json!({ "lease_id": lease.lease_id, "record_id": ticket.record.record_id }));
        let told = verified.map_or(Ok(()), |data| self.audit.append("lease_event.VERIFIED", data));
        if let Err(e) = told.and_then(|()| self.audit.append("exec_event.ADMITTED", event(&ticket.record))) {
            // Nobody will run it: it must not look as if somebody did.
            let mut record = ticket.record;
            (record.status, record.error_message) = (RecordStatus::Denied, Some(e.to_string()));
            record.completed_at = Some(now());
            self.store.finish(&record)?;
            return Err(e.into());
        }
        Ok(ticket)
    }

    /// Writes a refusal down.
    pub fn deny(
        &mut self,
        request: &Request,
        who: &Who,
        policy: Option<&Policy>,
        lease: Option<&Lease>,
        class: FailureClass,
        why: &str,
    ) -> Result<(), StateError> {
        self.deny_record(record(request, who, policy, lease), class, why)
    }

    /// Writes down that a lease was not taken.
    pub fn deny_lease(&mut self, lease: Option<&Lease>, why: &LeaseRefusal) -> Result<(), StateError> {
        let id = lease.map(|lease| lease.lease_id.as_str());
        let data = json!({ "lease_id": id, "reason": why.reason(), "message": why.to_string() });
        Ok(self.audit.append("lease_event.DENIED", data)?)
    }

    fn deny_record(&mut self, mut record: ExecutionRecord, class: FailureClass, why: &str) -> Result<(), StateError> {
        (record.status, record.failure_class) = (RecordStatus::Denied, Some(class));
        (record.error_message, record.completed_at) = (Some(why.to_owned()), Some(now()));
        self.audit.append("exec_event.DENIED", event(&record))?;
        Ok(self.store.put(&record, now_ms())?)
    }

    /// What the kill switch or a revocation ended is told as such.
    fn say_who_called_it_off(&self, record: &ExecutionRecord, outcome: &mut Outcome) -> Result<(), StateError> {
        if outcome.terminal_event != Some(TerminalEvent::Cancelled) {
            return Ok(());
        }
        if let Some(switch) = self.store.switch_for(record.tenant_id.as_deref())? {
            outcome.terminal_event = Some(TerminalEvent::KillSwitch);
            outcome.message = Some(format!("the kill switch is on, by {}: {}", switch.by, switch.reason));
        } else if let Some((by, reason)) = self.store.revocation_of_run(&record.record_id)? {
            outcome.failure_class = Some(FailureClass::LeaseViolation);
            outcome.message = Some(format!("the lease was revoked by {by}: {reason}"));
        }
        Ok(())
    }

    /// Writes the end down, see [`State::write_end`].
    pub(crate) fn finish(
        &mut self,
        ticket: &mut Ticket,
        outcome: &mut Outcome,
        averages: &Averages,
    ) -> Result<(), StateError> {
        let known = self.say_who_called_it_off(&ticket.record, outcome);
        let record = &mut ticket.record;
        if (outcome.failure_class, outcome.terminal_event)
            == (Some(FailureClass::LeaseViolation), Some(TerminalEvent::TimeoutViolation))
        {
            let data =
                json!({ "lease_id": record.lease_id, "record_id": record.record_id, "message": outcome.message });
            ticket.entries.push_back(("lease_event.EXPIRED".into(), data));
        }
        record.status = status_of(outcome);
        let name = match record.status {
            RecordStatus::Killed => "KILLED",
            RecordStatus::Timeout => "TIMEOUT",
            _ => "FINISHED",
        };
        record.sandbox_id.clone_from(&outcome.request_id);
        record.exit_code = outcome.exit_code.map(i64::from);
        record.wall_time_seconds = Some(outcome.usage.wall_ms as f64 / 1e3);
        record.cpu_seconds = Some(outcome.usage.cpu_ms as f64 / 1e3);
        record.memory_peak_mb = Some(outcome.usage.memory_peak_bytes as f64 / 1048576.0);
        record.memory_average_mb = averages.memory_average_bytes.map(|bytes| (bytes / 1024) as f64 / 1024.0);
        (record.cpu_cores_average, record.cpu_cores_peak) = (averages.cpu_cores_average, averages.cpu_cores_peak);
        record.processes_average = averages.processes_average;
        record.processes_peak = outcome.usage.processes_peak.or(averages.processes_peak).map(|n| n as i64);
        record.failure_class = outcome.failure_class;
        record.error_message.clone_from(&outcome.message);
        ticket.ends(name);
        known?;
        self.write_end(ticket)
    }

    /// A run that was admitted and could not be carried out.
    pub(crate) fn fail(&mut self, ticket: &mut Ticket, why: &str) -> Result<(), StateError> {
        let record = &mut ticket.record;
        (record.status, record.failure_class) = (RecordStatus::Failed, Some(FailureClass::SetupFailure));
        record.error_message = Some(why.to_owned());
        ticket.ends("FINISHED");
        self.write_end(ticket)
    }

    /// A run that was admitted, and called off before its program began.
    pub(crate) fn cancel(&mut self, ticket: &mut Ticket, why: &str) -> Result<(), StateError> {
        let record = &mut ticket.record;
        (record.status, record.error_message) = (RecordStatus::Killed, Some(why.to_owned()));
        ticket.ends("KILLED");
        self.write_end(ticket)
    }

    /// What is not written down yet of an end. It may be tried until it succeeds: nothing is written twice.
    pub fn write_end(&mut self, ticket: &mut Ticket) -> Result<(), StateError> {
        // It was written down when it began.
        if self.audit.is_empty() {
            return Err(AuditError::Damaged("its entries are gone".into()).into());
        }
        while let Some((name, data)) = ticket.entries.front() {
            self.audit.append(name, data.clone())?;
            ticket.entries.pop_front();
        }
        Ok(self.store.finish(&ticket.record)?)
    }

    /// Something that an operator did.
    pub fn note(&mut self, event: &str, data: Value) -> Result<(), StateError> {
        Ok(self.audit.append(event, data)?)
    }

    pub fn records(&mut self, filter: &Filter) -> Result<Vec<ExecutionRecord>, StateError> {
        self.sweep()?;
        Ok(self.store.list(filter)?)
    }

    pub fn record(&mut self, record_id: &str) -> Result<Option<ExecutionRecord>, StateError> {
        self.sweep()?;
        Ok(self.store.get(record_id)?)
    }

    pub fn stats(&mut self, tenant: Option<&str>) -> Result<Stats, StateError> {
        self.sweep()?;
        Ok(self.store.stats(tenant)?)
    }

    pub fn switches(&self) -> Result<Vec<Switch>, StateError> {
        Ok(self.store.switches()?)
    }

    /// Refuses what is new and ends what is going, within a second. Returns how many processes were told.
    pub fn switch_on(&mut self, switch: &Switch) -> Result<usize, StateError> {
        let data = json!({ "tenant_id": switch.tenant, "reason": switch.reason, "by": switch.by });
        // Stopping comes first: a log that can't be written must not keep anything running.
        let owners = self.store.switch_on(switch)?;
        let told = stop(&owners, || self.store.owners_under_switch(switch.tenant.as_deref()))?;
        self.audit.append("killswitch_event.ON", data)?;
        Ok(told)
    }

    pub fn switch_off(&mut self, tenant: Option<&str>, by: &str) -> Result<bool, StateError> {
        self.audit.append("killswitch_event.OFF", json!({ "tenant_id": tenant, "by": by }))?;
        Ok(self.store.switch_off(tenant)?)
    }
}

fn record(request: &Request, who: &Who, policy: Option<&Policy>, lease: Option<&Lease>) -> ExecutionRecord {
    ExecutionRecord {
        record_id: request.record_id.clone().unwrap_or_else(crate::new_id),
        sandbox_id: request.request_id.clone().unwrap_or_default(),
        tenant_id: who.tenant_id.clone(),
        user_id: who.user_id.clone(),
        run_id: who.run_id.clone(),
        language: match &request.program {
            Program::Source { language, .. } => Some(language.name.clone()),
            Program::Command(_) => None,
        },
        code_hash: crate::build::code_hash(request),
        policy_id: policy.map_or("none", |policy| policy.policy_id.as_str()).to_owned(),
        status: RecordStatus::Running,
        exit_code: None,
        wall_time_seconds: None,
        cpu_seconds: None,
        memory_peak_mb: None,
        memory_average_mb: None,
        cpu_cores_average: None,
        cpu_cores_peak: None,
        processes_average: None,
        processes_peak: None,
        created_at: now(),
        completed_at: None,
        error_message: None,
        failure_class: None,
        lease_id: lease.map(|lease| lease.lease_id.clone()),
        raised_by: request.raised_by.clone(),
    }
}

/// As what a run is kept that ended so.
pub fn status_of(outcome: &Outcome) -> RecordStatus {
    match (outcome.status, outcome.failure_class, outcome.terminal_event) {
        (Status::Pass, ..) => RecordStatus::Completed,
        (_, _, Some(TerminalEvent::Cancelled | TerminalEvent::KillSwitch)) => RecordStatus::Killed,
        (_, Some(FailureClass::TimeoutViolation), _) => RecordStatus::Timeout,
        _ => RecordStatus::Failed,
    }
}

fn event(record: &ExecutionRecord) -> Value {
    serde_json::to_value(record).unwrap_or_default()
}

/// RFC 3339, UTC.
pub fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// A moment so much later; `None` beyond the calendar.
pub fn after(moment: &str, time: Duration) -> Option<String> {
    let moment: jiff::Timestamp = moment.parse().ok()?;
    moment.checked_add(jiff::SignedDuration::try_from(time).ok()?).ok().map(|at| at.to_string())
}

/// Milliseconds since 1970 of a date (its beginning, UTC) or of a moment with its offset.
pub fn parse_time(text: &str) -> Option<i64> {
    let moment = text.parse::<jiff::Timestamp>().ok();
    moment.or_else(|| format!("{text}T00:00:00Z").parse().ok()).map(|at| at.as_millisecond())
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
