//! Leases, approvals and intents in the store.

use hotcell_contract::{Approval, ApprovalStatus, ExecutionRecord, Intent, IntentStatus, Lease};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::owner::{OWNER, Owner};
use super::store::{Store, StoreError};
use crate::keys::hex;
use crate::lease::LeaseRefusal;

pub(super) const SCHEMA: &str = "
CREATE TABLE leases (
  lease_id TEXT PRIMARY KEY, actor TEXT NOT NULL, intent_id TEXT, issued_at TEXT NOT NULL, expires_at TEXT NOT NULL,
  max_runs BIGINT NOT NULL);
CREATE TABLE lease_runs (
  fingerprint TEXT NOT NULL, lease_id TEXT NOT NULL, record_id TEXT NOT NULL, PRIMARY KEY (fingerprint, record_id));
CREATE INDEX lease_runs_by_record ON lease_runs (record_id);
CREATE TABLE revocations (lease_id TEXT PRIMARY KEY, by_whom TEXT NOT NULL, reason TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE approvals (
  approval_id TEXT PRIMARY KEY, policy_id TEXT NOT NULL, tenant_id TEXT NOT NULL, request_hash TEXT NOT NULL,
  status TEXT NOT NULL, expires_ms BIGINT NOT NULL, body TEXT NOT NULL);
CREATE INDEX approvals_by_request ON approvals (request_hash, policy_id, tenant_id, status);
CREATE TABLE intents (intent_id TEXT PRIMARY KEY, status TEXT NOT NULL, proposed_ms BIGINT NOT NULL, body TEXT NOT NULL);
";

/// A lease that was issued here.
#[derive(Clone, Debug, serde::Serialize)]
pub struct IssuedLease {
    pub lease_id: String,
    pub actor: String,
    pub intent_id: Option<String>,
    pub issued_at: String,
    pub expires_at: String,
    pub max_runs: u64,
    pub runs: u64,
    pub revoked_by: Option<String>,
}

/// Looks whether every lease of a chain still stands, and counts the run for each of them.
pub(super) fn take_run(
    db: &Connection,
    lease: &Lease,
    record: &ExecutionRecord,
) -> Result<Option<LeaseRefusal>, StoreError> {
    for lease in lease.chain() {
        let id = lease.lease_id.clone();
        if let Some((by, reason)) = revocation(db, &id)? {
            return Ok(Some(LeaseRefusal::Revoked { id, by, reason }));
        }
        let sql = "SELECT EXISTS (SELECT 1 FROM leases WHERE lease_id = ?1)";
        if lease.parent.is_some() && db.prepare_cached(sql)?.query_row([&id], |row| row.get(0))? {
            return Ok(Some(LeaseRefusal::NotAPart("its lease_id is that of another lease".into())));
        }
        let sql = "SELECT COUNT(*) FROM lease_runs WHERE fingerprint = ?1";
        let runs: i64 = db.prepare_cached(sql)?.query_row([fingerprint(lease)], |row| row.get(0))?;
        if runs as u64 >= lease.limits.max_runs {
            return Ok(Some(LeaseRefusal::UsedUp { id, most: lease.limits.max_runs }));
        }
    }
    for lease in lease.chain() {
        let sql = "INSERT INTO lease_runs (fingerprint, lease_id, record_id) VALUES (?1, ?2, ?3)";
        db.execute(sql, params![fingerprint(lease), lease.lease_id, record.record_id])?;
    }
    Ok(None)
}

/// A lease by what it says: its id was chosen by whoever made it. Without the cosigners, so that one more of them does
/// not make it another lease.
fn fingerprint(lease: &Lease) -> String {
    let bare = Lease { cosigners: vec![], ..lease.clone() };
    hex(&Sha256::digest(crate::lease::text_of(&bare).unwrap_or_default().as_bytes()))
}

fn revocation(db: &Connection, id: &str) -> Result<Option<(String, String)>, StoreError> {
    let sql = "SELECT by_whom, reason FROM revocations WHERE lease_id = ?1";
    Ok(db.prepare_cached(sql)?.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// Uses up an approval of very this request, if there is one. Otherwise the one that is asked for: a new one, or the one
/// that somebody is asked for already.
pub(super) fn take_approval(
    db: &Connection,
    asked: &Approval,
    record: &ExecutionRecord,
    now_ms: i64,
) -> Result<Option<Approval>, StoreError> {
    let tenant = asked.tenant_id.as_deref().unwrap_or("");
    let find = |status: &str| -> Result<Option<Approval>, StoreError> {
        let sql = "SELECT body FROM approvals WHERE request_hash = ?1 AND policy_id = ?2 AND tenant_id = ?3 AND status = ?4 \
                   AND expires_ms > ?5 ORDER BY expires_ms LIMIT 1";
        let values = params![asked.request_hash, asked.policy_id, tenant, status, now_ms];
        Ok(db.prepare_cached(sql)?.query_row(values, body).optional()?)
    };
    if let Some(mut granted) = find("granted")? {
        (granted.status, granted.record_id) = (ApprovalStatus::Used, Some(record.record_id.clone()));
        put_approval(db, &granted, 0)?;
        return Ok(None);
    }
    if let Some(pending) = find("pending")? {
        return Ok(Some(pending));
    }
    let expires = super::parse_time(&asked.expires_at).unwrap_or(now_ms);
    put_approval(db, asked, expires)?;
    Ok(Some(asked.clone()))
}

fn put_approval(db: &Connection, approval: &Approval, expires_ms: i64) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO approvals (approval_id, policy_id, tenant_id, request_hash, status, expires_ms, body) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (approval_id) DO UPDATE SET status = ?5, expires_ms = ?6, body = ?7",
        params![
            approval.approval_id,
            approval.policy_id,
            approval.tenant_id.as_deref().unwrap_or(""),
            approval.request_hash,
            name(&approval.status),
            expires_ms,
            text(approval),
        ],
    )?;
    Ok(())
}

/// The word that it is in JSON.
fn name(status: &impl serde::Serialize) -> String {
    match serde_json::to_value(status) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn body<T: DeserializeOwned>(row: &Row<'_>) -> rusqlite::Result<T> {
    let text: String = row.get(0)?;
    serde_json::from_str(&text)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(e)))
}

impl Store {
    pub(super) fn put_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        self.db.execute(
            "INSERT INTO leases (lease_id, actor, intent_id, issued_at, expires_at, max_runs) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                lease.lease_id,
                lease.actor,
                lease.intent_id,
                lease.issued_at,
                lease.expires_at,
                lease.limits.max_runs as i64
            ],
        )?;
        Ok(())
    }

    pub(super) fn leases(&self) -> Result<Vec<IssuedLease>, StoreError> {
        let sql = "SELECT lease_id, actor, intent_id, issued_at, expires_at, max_runs, \
                   (SELECT COUNT(*) FROM lease_runs r WHERE r.lease_id = l.lease_id), \
                   (SELECT by_whom FROM revocations v WHERE v.lease_id = l.lease_id) \
                   FROM leases l ORDER BY lease_id DESC LIMIT 1000";
        let mut asked = self.db.prepare_cached(sql)?;
        let rows = asked.query_map([], |row| {
            Ok(IssuedLease {
                lease_id: row.get(0)?,
                actor: row.get(1)?,
                intent_id: row.get(2)?,
                issued_at: row.get(3)?,
                expires_at: row.get(4)?,
                max_runs: row.get::<_, i64>(5)? as u64,
                runs: row.get::<_, i64>(6)? as u64,
                revoked_by: row.get(7)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Of a chain, the first that was revoked: by whom and why.
    pub(super) fn revocation(&self, lease: &Lease) -> Result<Option<(String, String, String)>, StoreError> {
        for lease in lease.chain() {
            if let Some((by, reason)) = revocation(&self.db, &lease.lease_id)? {
                return Ok(Some((lease.lease_id.clone(), by, reason)));
            }
        }
        Ok(None)
    }

    /// By the id that a record has: what was handed on is revoked with what it was made from.
    pub(super) fn revocation_of_run(&self, record_id: &str) -> Result<Option<(String, String)>, StoreError> {
        let sql = "SELECT v.by_whom, v.reason FROM lease_runs r JOIN revocations v ON v.lease_id = r.lease_id WHERE r.record_id = ?1 LIMIT 1";
        Ok(self.db.prepare_cached(sql)?.query_row([record_id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    /// Revokes, and returns the processes that run something under it.
    pub(super) fn revoke(&self, id: &str, by: &str, reason: &str, at: &str) -> Result<Vec<Owner>, StoreError> {
        self.db.execute(
            "INSERT INTO revocations (lease_id, by_whom, reason, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (lease_id) DO NOTHING",
            params![id, by, reason, at],
        )?;
        self.owners_under_lease(id)
    }

    pub(super) fn owners_under_lease(&self, id: &str) -> Result<Vec<Owner>, StoreError> {
        let sql = format!(
            "SELECT DISTINCT {OWNER} FROM records JOIN lease_runs USING (record_id) \
             WHERE status = 'running' AND lease_runs.lease_id = ?1"
        );
        let mut asked = self.db.prepare_cached(&sql)?;
        let rows = asked.query_map([id], |row| Owner::of(row, 0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether a lease of this id was issued here, or used.
    pub(super) fn knows_lease(&self, id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM leases WHERE lease_id = ?1) OR EXISTS (SELECT 1 FROM lease_runs WHERE lease_id = ?1)";
        Ok(self.db.prepare_cached(sql)?.query_row([id], |row| row.get(0))?)
    }

    pub(super) fn approvals(&self, now_ms: i64) -> Result<Vec<Approval>, StoreError> {
        let mut asked =
            self.db.prepare_cached("SELECT body, expires_ms FROM approvals ORDER BY approval_id DESC LIMIT 1000")?;
        let rows = asked.query_map([], |row| Ok((body::<Approval>(row)?, row.get::<_, i64>(1)?)))?;
        let all = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(all.into_iter().map(|(approval, expires)| as_of(approval, expires, now_ms)).collect())
    }

    pub(super) fn approval(&self, id: &str, now_ms: i64) -> Result<Option<Approval>, StoreError> {
        let sql = "SELECT body, expires_ms FROM approvals WHERE approval_id = ?1";
        let found =
            self.db.prepare_cached(sql)?.query_row([id], |row| Ok((body::<Approval>(row)?, row.get::<_, i64>(1)?)));
        Ok(found.optional()?.map(|(approval, expires)| as_of(approval, expires, now_ms)))
    }

    /// Keeps a decision, if nobody has decided meanwhile and it can be written down.
    pub(super) fn decide<E>(
        &mut self,
        approval: &Approval,
        write_down: impl FnOnce() -> Result<(), E>,
    ) -> Result<Option<Result<(), E>>, StoreError> {
        let expires = super::parse_time(&approval.expires_at).unwrap_or(0);
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let changed = tx.execute(
            "UPDATE approvals SET status = ?2, expires_ms = ?3, body = ?4 WHERE approval_id = ?1 AND status = 'pending'",
            params![approval.approval_id, name(&approval.status), expires, text(approval)],
        )?;
        if changed == 0 {
            return Ok(None);
        }
        let written = write_down();
        if written.is_ok() {
            tx.commit()?;
        }
        Ok(Some(written))
    }

    /// Keeps an intent; `was` is the status that it must still have, or none when it is new.
    pub(super) fn put_intent(
        &self,
        intent: &Intent,
        proposed_ms: i64,
        was: Option<IntentStatus>,
    ) -> Result<bool, StoreError> {
        let changed = match was {
            None => self.db.execute(
                "INSERT INTO intents (intent_id, status, proposed_ms, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                params![intent.intent_id, name(&intent.status), proposed_ms, text(intent)],
            )?,
            Some(was) => self.db.execute(
                "UPDATE intents SET status = ?2, body = ?3 WHERE intent_id = ?1 AND status = ?4",
                params![intent.intent_id, name(&intent.status), text(intent), name(&was)],
            )?,
        };
        Ok(changed > 0)
    }

    pub(super) fn intents(&self) -> Result<Vec<(Intent, i64)>, StoreError> {
        let mut asked =
            self.db.prepare_cached("SELECT body, proposed_ms FROM intents ORDER BY proposed_ms DESC LIMIT 1000")?;
        let rows = asked.query_map([], |row| Ok((body(row)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(super) fn intent(&self, id: &str) -> Result<Option<(Intent, i64)>, StoreError> {
        let sql = "SELECT body, proposed_ms FROM intents WHERE intent_id = ?1";
        Ok(self.db.prepare_cached(sql)?.query_row([id], |row| Ok((body(row)?, row.get(1)?))).optional()?)
    }
}

/// What nobody has decided, or used, in time.
fn as_of(mut approval: Approval, expires_ms: i64, now_ms: i64) -> Approval {
    let waits = matches!(approval.status, ApprovalStatus::Pending | ApprovalStatus::Granted);
    if waits && expires_ms <= now_ms {
        approval.status = ApprovalStatus::Expired;
    }
    approval
}
