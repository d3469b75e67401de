//! Whether a run may begin: the kill switch, quotas, its lease and its approval, in one transaction with its record.

use std::time::Duration;

use hotcell_contract::{Approval, ExecutionRecord, Lease, Policy};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::grants::{take_approval, take_run};
use super::owner::{Living, OWNER, Owner};
use super::store::{Store, StoreError, insert};
use super::switches::switch_for;
use crate::lease::LeaseRefusal;

/// Why a run may not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Quota { limit: u64, what: &'static str, again_in: Duration },
    Concurrency { limit: u64 },
    KillSwitch { reason: String, by: String },
    Lease(LeaseRefusal),
    Approval { id: String },
}

/// What a run is admitted under.
pub(super) struct Wanted<'a> {
    pub(super) policy: Option<&'a Policy>,
    pub(super) lease: Option<&'a Lease>,
    /// The question to ask, where the policy asks one.
    pub(super) approval: Option<&'a Approval>,
}

impl Refusal {
    /// When it is worth another try, where that is known; a run that is going may end at any moment.
    pub(super) fn again_in(&self) -> Option<Duration> {
        match self {
            Refusal::Quota { again_in, .. } => Some(*again_in),
            Refusal::Concurrency { .. } => Some(Duration::from_secs(1)),
            _ => None,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Quota { limit, what, again_in } => {
                write!(f, "{limit} runs {what} are used up: come back in {} s", again_in.as_secs_f64().ceil())
            }
            Refusal::Concurrency { limit } => write!(f, "{limit} runs are going already: come back when one has ended"),
            Refusal::KillSwitch { reason, by } => write!(f, "the kill switch is on, by {by}: {reason}"),
            Refusal::Lease(why) => write!(f, "{why}"),
            Refusal::Approval { id } => {
                write!(
                    f,
                    "the policy asks for an approval: see `hotcell approve show {id}`, and run the same again when it is granted"
                )
            }
        }
    }
}

impl Store {
    /// Reserves a place under the policy's quotas and writes the record, in one transaction: of fifty callers who come at
    /// once, only as many are admitted as there is room for.
    pub(super) fn admit(
        &mut self,
        record: &ExecutionRecord,
        wanted: &Wanted<'_>,
        now_ms: i64,
    ) -> Result<Result<(), Refusal>, StoreError> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let refusal = match switch_for(&tx, record.tenant_id.as_deref())? {
            Some(switch) => Some(Refusal::KillSwitch { reason: switch.reason, by: switch.by }),
            None => refusal(&tx, record, wanted, now_ms)?,
        };
        match &refusal {
            None => insert(&tx, record, now_ms, Some(self.owner))?,
            // The question stays.
            Some(Refusal::Approval { .. }) => {}
            // Neither an approval nor a run of a lease was used.
            Some(_) => {
                tx.rollback()?;
                return Ok(refusal.map_or(Ok(()), Err));
            }
        }
        tx.commit()?;
        Ok(refusal.map_or(Ok(()), Err))
    }
}

/// An approval comes last: it is not used for a run that is refused for another reason.
fn refusal(
    db: &Connection,
    record: &ExecutionRecord,
    wanted: &Wanted<'_>,
    now_ms: i64,
) -> Result<Option<Refusal>, StoreError> {
    if let Some(policy) = wanted.policy
        && let Some(refusal) = over_quota(db, record, policy, now_ms)?
    {
        return Ok(Some(refusal));
    }
    if let Some(lease) = wanted.lease
        && let Some(why) = take_run(db, lease, record)?
    {
        return Ok(Some(Refusal::Lease(why)));
    }
    match wanted.approval {
        Some(asked) => match take_approval(db, asked, record, now_ms)? {
            // The run of the lease was counted for nothing.
            Some(waiting) => {
                db.execute("DELETE FROM lease_runs WHERE record_id = ?1", [&record.record_id])?;
                Ok(Some(Refusal::Approval { id: waiting.approval_id }))
            }
            None => Ok(None),
        },
        None => Ok(None),
    }
}

fn over_quota(
    db: &Connection,
    record: &ExecutionRecord,
    policy: &Policy,
    now_ms: i64,
) -> Result<Option<Refusal>, StoreError> {
    for (limit, window, what) in
        [(policy.max_executions_per_minute, 60_000, "a minute"), (policy.max_executions_per_hour, 3_600_000, "an hour")]
    {
        let Some(limit) = limit else { continue };
        // The oldest of the newest `limit` runs: when it leaves the window, there is room again.
        let sql = "SELECT created_ms FROM records WHERE COALESCE(tenant_id, '') = ?1 AND policy_id = ?2 AND created_ms > ?3 \
                   AND status <> 'denied' ORDER BY created_ms DESC LIMIT 1 OFFSET ?4";
        let oldest: Option<i64> = db
            .prepare_cached(sql)?
            .query_row(
                params![record.tenant_id.as_deref().unwrap_or(""), record.policy_id, now_ms - window, limit as i64 - 1],
                |row| row.get(0),
            )
            .optional()?;
        if let Some(oldest) = oldest {
            let again_in = Duration::from_millis((oldest + window - now_ms).max(1) as u64);
            return Ok(Some(Refusal::Quota { limit, what, again_in }));
        }
    }
    if let Some(limit) = policy.max_concurrent {
        let sql = format!("SELECT {OWNER} FROM records WHERE COALESCE(tenant_id, '') = ?1 AND status = 'running'");
        let mut asked = db.prepare_cached(&sql)?;
        let rows = asked.query_map([record.tenant_id.as_deref().unwrap_or("")], |row| Owner::of(row, 0))?;
        let mut living = Living::default();
        let going = rows.collect::<Result<Vec<_>, _>>()?.into_iter().filter(|owner| living.has(*owner)).count() as u64;
        if going >= limit {
            return Ok(Some(Refusal::Concurrency { limit }));
        }
    }
    Ok(None)
}
