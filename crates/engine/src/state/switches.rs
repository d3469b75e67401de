//! The kill switch in the store: for everybody, or for one tenant.

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::owner::Owner;
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
        let sql = "SELECT DISTINCT owner_pid, owner_start FROM records WHERE status = 'running' AND (?1 IS NULL OR tenant_id = ?1)";
        let owners = {
            let mut asked = tx.prepare(sql)?;
            let rows = asked.query_map([&switch.tenant], |row| Ok(Owner { pid: row.get(0)?, start: row.get(1)? }))?;
            rows.collect::<Result<Vec<_>, _>>()?
        };
        tx.commit()?;
        Ok(owners)
    }

    pub(super) fn switch_off(&self, tenant: Option<&str>) -> Result<bool, StoreError> {
        Ok(self.db.execute("DELETE FROM switches WHERE tenant_id = ?1", [tenant.unwrap_or("")])? > 0)
    }

    pub(super) fn switches(&self) -> Result<Vec<Switch>, StoreError> {
        let mut asked = self.db.prepare("SELECT tenant_id, reason, by_whom, since FROM switches ORDER BY tenant_id")?;
        let rows = asked.query_map([], switch_of)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(super) fn switch_for(&self, tenant: Option<&str>) -> Result<Option<Switch>, StoreError> {
        switch_for(&self.db, tenant)
    }
}

pub(super) fn switch_for(db: &Connection, tenant: Option<&str>) -> Result<Option<Switch>, StoreError> {
    let sql = "SELECT tenant_id, reason, by_whom, since FROM switches WHERE tenant_id = '' OR tenant_id = ?1 ORDER BY tenant_id LIMIT 1";
    Ok(db.prepare(sql)?.query_row([tenant.unwrap_or("")], switch_of).optional()?)
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
