//! The kill switch in the store: for everybody, or for one tenant.

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::owner::{OWNER, Owner};
use super::store::{Store, StoreError};

pub struct Switch {
    /// `None`: for everybody.
    pub tenant: Option<String>,
    pub reason: String,
    pub by: String,
    pub since: String,
}

impl Store {
    /// Turns a switch on (again), and returns the processes that run something it is for.
    pub(super) fn switch_on(&mut self, switch: &Switch) -> Result<Vec<Owner>, StoreError> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute(
            "INSERT INTO switches (tenant_id, reason, by_whom, since) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (tenant_id) DO UPDATE SET reason = ?2, by_whom = ?3, since = ?4",
            params![switch.tenant.as_deref().unwrap_or(""), switch.reason, switch.by, switch.since],
        )?;
        let owners = owners_under_switch(&tx, switch.tenant.as_deref())?;
        tx.commit()?;
        Ok(owners)
    }

    pub(super) fn owners_under_switch(&self, tenant: Option<&str>) -> Result<Vec<Owner>, StoreError> {
        owners_under_switch(&self.db, tenant)
    }

    /// Which runs of this process a switch or a revoked lease is for.
    pub(super) fn called_off(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT record_id FROM records WHERE status = 'running' AND owner_pid = ?1 AND owner_start = ?2 AND (\
                   EXISTS (SELECT 1 FROM switches s WHERE s.tenant_id = '' OR s.tenant_id = records.tenant_id) OR \
                   EXISTS (SELECT 1 FROM lease_runs JOIN revocations USING (lease_id) \
                   WHERE lease_runs.record_id = records.record_id))";
        let mut asked = self.db.prepare_cached(sql)?;
        let rows = asked.query_map([self.owner.pid, self.owner.start], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Another number after every change by another connection.
    pub(super) fn version_of_data(&self) -> Result<i64, StoreError> {
        Ok(self.db.pragma_query_value(None, "data_version", |row| row.get(0))?)
    }

    pub(super) fn switch_off(&self, tenant: Option<&str>) -> Result<bool, StoreError> {
        Ok(self.db.execute("DELETE FROM switches WHERE tenant_id = ?1", [tenant.unwrap_or("")])? > 0)
    }

    pub(super) fn switches(&self) -> Result<Vec<Switch>, StoreError> {
        let mut asked =
            self.db.prepare_cached("SELECT tenant_id, reason, by_whom, since FROM switches ORDER BY tenant_id")?;
        let rows = asked.query_map([], switch_of)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(super) fn switch_for(&self, tenant: Option<&str>) -> Result<Option<Switch>, StoreError> {
        switch_for(&self.db, tenant)
    }
}

fn owners_under_switch(db: &Connection, tenant: Option<&str>) -> Result<Vec<Owner>, StoreError> {
    let sql =
        format!("SELECT DISTINCT {OWNER} FROM records WHERE status = 'running' AND (?1 IS NULL OR tenant_id = ?1)");
    let mut asked = db.prepare_cached(&sql)?;
    let rows = asked.query_map([tenant], |row| Owner::of(row, 0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn switch_for(db: &Connection, tenant: Option<&str>) -> Result<Option<Switch>, StoreError> {
    let sql = "SELECT tenant_id, reason, by_whom, since FROM switches WHERE tenant_id = '' OR tenant_id = ?1 ORDER BY tenant_id LIMIT 1";
    Ok(db.prepare_cached(sql)?.query_row([tenant.unwrap_or("")], switch_of).optional()?)
}

fn switch_of(row: &Row<'_>) -> rusqlite::Result<Switch> {
    let tenant: String = row.get(0)?;
    Ok(Switch {
        tenant: Some(tenant).filter(|t| !t.is_empty()),
        reason: row.get(1)?,
        by: row.get(2)?,
        since: row.get(3)?,
    })
}
