//! Records in SQLite: one row a run or refusal. The SQL is plain, so that another database can have it too.

use std::path::Path;
use std::time::Duration;

use hotcell_contract::{Approval, ExecutionRecord, FailureClass, Lease, Policy, RecordStatus, Stats};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::grants::{take_approval, take_run};
use crate::lease::LeaseRefusal;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the records cannot be used, so nothing runs: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("the records are of a newer version of hotcell ({0}): use that one")]
    Newer(i64),
}

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

/// Which records, newest first.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub tenant: Option<String>,
    pub user: Option<String>,
    pub run: Option<String>,
    pub status: Option<RecordStatus>,
    pub language: Option<String>,
    pub policy: Option<String>,
    /// Milliseconds since 1970.
    pub since: Option<i64>,
    pub until: Option<i64>,
    /// Only what is older than this record.
    pub before: Option<String>,
    pub limit: u64,
}

pub struct Switch {
    /// `None`: for everybody.
    pub tenant: Option<String>,
    pub reason: String,
    pub by: String,
    pub since: String,
}

/// The process that a running record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) pid: i64,
    /// Ticks since the host's start, so that another process of that number is not taken for it.
    pub(super) start: i64,
}

impl Owner {
    pub(super) fn this() -> Owner {
        let pid = i64::from(std::process::id());
        Owner { pid, start: start_of(pid).unwrap_or(0) }
    }

    pub(super) fn is_alive(self) -> bool {
        start_of(self.pid) == Some(self.start)
    }
}

fn start_of(pid: i64) -> Option<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold blanks and parentheses; 22 is the start, and the third field follows the name.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    // A zombie runs nothing any more.
    (fields.first() != Some(&"Z")).then(|| fields.get(19)?.parse().ok())?
}

pub(super) struct Store {
    pub(super) db: Connection,
}

/// From one version to the next, in order: each is carried out once, and none is ever changed.
const MIGRATIONS: [&str; 3] = [
    "CREATE TABLE records (
  record_id TEXT PRIMARY KEY, sandbox_id TEXT NOT NULL, tenant_id TEXT, user_id TEXT, run_id TEXT, language TEXT,
  code_hash TEXT NOT NULL, policy_id TEXT NOT NULL, status TEXT NOT NULL, exit_code BIGINT,
  wall_time_seconds DOUBLE PRECISION, cpu_seconds DOUBLE PRECISION, memory_peak_mb DOUBLE PRECISION,
  created_at TEXT NOT NULL, completed_at TEXT, error_message TEXT, failure_class TEXT, lease_id TEXT,
  created_ms BIGINT NOT NULL, owner_pid BIGINT, owner_start BIGINT);
CREATE INDEX records_by_quota ON records (tenant_id, policy_id, created_ms);
CREATE INDEX records_by_status ON records (status);
CREATE TABLE switches (tenant_id TEXT PRIMARY KEY, reason TEXT NOT NULL, by_whom TEXT NOT NULL, since TEXT NOT NULL);",
    "ALTER TABLE records ADD COLUMN memory_average_mb DOUBLE PRECISION;
ALTER TABLE records ADD COLUMN cpu_cores_average DOUBLE PRECISION;
ALTER TABLE records ADD COLUMN cpu_cores_peak DOUBLE PRECISION;
ALTER TABLE records ADD COLUMN processes_average DOUBLE PRECISION;
ALTER TABLE records ADD COLUMN processes_peak BIGINT;",
    super::grants::SCHEMA,
];

const COLUMNS: &str = "record_id, sandbox_id, tenant_id, user_id, run_id, language, code_hash, policy_id, status, exit_code, \
     wall_time_seconds, cpu_seconds, memory_peak_mb, created_at, completed_at, error_message, failure_class, lease_id, \
     memory_average_mb, cpu_cores_average, cpu_cores_peak, processes_average, processes_peak";

impl Store {
    pub(super) fn open(path: &Path) -> Result<Store, StoreError> {
        let mut db = Connection::open(path)?;
        db.busy_timeout(Duration::from_secs(10))?;
        // Most runs are alone here: each would put the log of what was written into the file, and throw the log away, in
        // more time than the rest of it takes. It is done once in so many pages, which is what the next one has to read.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        db.pragma_update(None, "wal_autocheckpoint", 64)?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        // A crash of the host may lose the newest records, never the file; the audit log has them too.
        db.pragma_update(None, "synchronous", "NORMAL")?;
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match usize::try_from(version) {
            Ok(known) if known == MIGRATIONS.len() => {}
            Ok(older) if older < MIGRATIONS.len() => migrate(&mut db)?,
            _ => return Err(StoreError::Newer(version)),
        }
        Ok(Store { db })
    }

    /// Whether anything was refused, or has ended.
    pub(super) fn has_ended(&self) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM records WHERE status <> 'running')";
        Ok(self.db.query_row(sql, [], |row| row.get(0))? || !self.orphans()?.is_empty())
    }

    /// Runs whose process is gone without a word.
    pub(super) fn orphans(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT record_id, owner_pid, owner_start FROM records WHERE status = 'running'";
        let mut asked = self.db.prepare(sql)?;
        let rows = asked
            .query_map([], |row| Ok((row.get::<_, String>(0)?, Owner { pid: row.get(1)?, start: row.get(2)? })))?;
        let all = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(all.into_iter().filter(|(_, owner)| !owner.is_alive()).map(|(id, _)| id).collect())
    }

    pub(super) fn bury(&self, id: &str, now: &str) -> Result<(), StoreError> {
        self.db.execute(
            "UPDATE records SET status = 'killed', completed_at = ?2, error_message = ?3 WHERE record_id = ?1 AND status = 'running'",
            params![id, now, "the process that ran it is gone"],
        )?;
        Ok(())
    }

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
            None => insert(&tx, record, now_ms, Some(Owner::this()))?,
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

    pub(super) fn put(&self, record: &ExecutionRecord, now_ms: i64) -> Result<(), StoreError> {
        insert(&self.db, record, now_ms, None)
    }

    pub(super) fn finish(&self, record: &ExecutionRecord) -> Result<(), StoreError> {
        self.db.execute(
            "UPDATE records SET status = ?2, exit_code = ?3, wall_time_seconds = ?4, cpu_seconds = ?5, memory_peak_mb = ?6, \
             completed_at = ?7, error_message = ?8, failure_class = ?9, memory_average_mb = ?10, cpu_cores_average = ?11, \
             cpu_cores_peak = ?12, processes_average = ?13, processes_peak = ?14 WHERE record_id = ?1",
            params![
                record.record_id,
                record.status.name(),
                record.exit_code,
                record.wall_time_seconds,
                record.cpu_seconds,
                record.memory_peak_mb,
                record.completed_at,
                record.error_message,
                record.failure_class.map(class_name),
                record.memory_average_mb,
                record.cpu_cores_average,
                record.cpu_cores_peak,
                record.processes_average,
                record.processes_peak,
            ],
        )?;
        Ok(())
    }

    pub(super) fn list(&self, filter: &Filter) -> Result<Vec<ExecutionRecord>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM records WHERE (?1 IS NULL OR tenant_id = ?1) AND (?2 IS NULL OR user_id = ?2) \
             AND (?3 IS NULL OR run_id = ?3) AND (?4 IS NULL OR status = ?4) AND (?5 IS NULL OR COALESCE(language, 'command') = ?5) \
             AND (?6 IS NULL OR policy_id = ?6) AND (?7 IS NULL OR created_ms >= ?7) AND (?8 IS NULL OR created_ms < ?8) \
             AND (?9 IS NULL OR record_id < ?9) ORDER BY record_id DESC LIMIT ?10"
        );
        let mut asked = self.db.prepare(&sql)?;
        let rows = asked.query_map(
            params![
                filter.tenant,
                filter.user,
                filter.run,
                filter.status.map(RecordStatus::name),
                filter.language,
                filter.policy,
                filter.since,
                filter.until,
                filter.before,
                filter.limit.min(10_000) as i64,
            ],
            record_of,
        )?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(super) fn get(&self, record_id: &str) -> Result<Option<ExecutionRecord>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM records WHERE record_id = ?1");
        Ok(self.db.prepare(&sql)?.query_row([record_id], record_of).optional()?)
    }

    pub(super) fn stats(&self, tenant: Option<&str>) -> Result<Stats, StoreError> {
        let mut stats = Stats::default();
        let mut times: Vec<f64> = vec![];
        // One look at each row, and no text of it copied but the first of its kind: counting in SQL takes a look for each.
        let sql = "SELECT status, COALESCE(language, 'command'), policy_id, failure_class, wall_time_seconds \
                   FROM records WHERE (?1 IS NULL OR tenant_id = ?1)";
        let mut asked = self.db.prepare(sql)?;
        let mut rows = asked.query([tenant])?;
        while let Some(row) = rows.next()? {
            let counts =
                [&mut stats.by_status, &mut stats.by_language, &mut stats.by_policy, &mut stats.by_failure_class];
            for (column, counts) in counts.into_iter().enumerate() {
                let Some(name) = row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)? else {
                    continue;
                };
                match counts.get_mut(name) {
                    Some(count) => *count += 1,
                    None => drop(counts.insert(name.to_owned(), 1)),
                }
            }
            times.extend(row.get::<_, Option<f64>>(4)?);
            stats.total_executions += 1;
        }
        if !times.is_empty() {
            times.sort_by(f64::total_cmp);
            let at = |share: f64| Some(times[((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1]);
            stats.avg_wall_time_seconds = Some(times.iter().sum::<f64>() / times.len() as f64);
            (stats.p50_wall_time_seconds, stats.p95_wall_time_seconds) = (at(0.5), at(0.95));
            stats.p99_wall_time_seconds = at(0.99);
        }
        Ok(stats)
    }

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

/// All that is missing, in one transaction.
fn migrate(db: &mut Connection) -> Result<(), StoreError> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Somebody else may have been faster.
    let done: i64 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in MIGRATIONS.iter().skip(usize::try_from(done).unwrap_or_default()) {
        tx.execute_batch(step)?;
    }
    if (done as usize) < MIGRATIONS.len() {
        tx.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    }
    Ok(tx.commit()?)
}

fn switch_for(db: &Connection, tenant: Option<&str>) -> Result<Option<Switch>, StoreError> {
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
            .prepare(sql)?
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
        let sql =
            "SELECT owner_pid, owner_start FROM records WHERE COALESCE(tenant_id, '') = ?1 AND status = 'running'";
        let mut asked = db.prepare(sql)?;
        let rows = asked.query_map([record.tenant_id.as_deref().unwrap_or("")], |row| {
            Ok(Owner { pid: row.get(0)?, start: row.get(1)? })
        })?;
        let going = rows.collect::<Result<Vec<_>, _>>()?.into_iter().filter(|owner| owner.is_alive()).count() as u64;
        if going >= limit {
            return Ok(Some(Refusal::Concurrency { limit }));
        }
    }
    Ok(None)
}

fn insert(db: &Connection, record: &ExecutionRecord, now_ms: i64, owner: Option<Owner>) -> Result<(), StoreError> {
    let sql = format!(
        "INSERT INTO records ({COLUMNS}, created_ms, owner_pid, owner_start) VALUES \
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)"
    );
    db.prepare(&sql)?.execute(params![
        record.record_id,
        record.sandbox_id,
        record.tenant_id,
        record.user_id,
        record.run_id,
        record.language,
        record.code_hash,
        record.policy_id,
        record.status.name(),
        record.exit_code,
        record.wall_time_seconds,
        record.cpu_seconds,
        record.memory_peak_mb,
        record.created_at,
        record.completed_at,
        record.error_message,
        record.failure_class.map(class_name),
        record.lease_id,
        record.memory_average_mb,
        record.cpu_cores_average,
        record.cpu_cores_peak,
        record.processes_average,
        record.processes_peak,
        now_ms,
        owner.map(|owner| owner.pid),
        owner.map(|owner| owner.start),
    ])?;
    Ok(())
}

fn class_name(class: FailureClass) -> String {
    format!("{class:?}")
}

fn record_of(row: &Row<'_>) -> rusqlite::Result<ExecutionRecord> {
    let status: String = row.get(8)?;
    let class: Option<String> = row.get(16)?;
    Ok(ExecutionRecord {
        record_id: row.get(0)?,
        sandbox_id: row.get(1)?,
        tenant_id: row.get(2)?,
        user_id: row.get(3)?,
        run_id: row.get(4)?,
        language: row.get(5)?,
        code_hash: row.get(6)?,
        policy_id: row.get(7)?,
        status: RecordStatus::named(&status).unwrap_or(RecordStatus::Failed),
        exit_code: row.get(9)?,
        wall_time_seconds: row.get(10)?,
        cpu_seconds: row.get(11)?,
        memory_peak_mb: row.get(12)?,
        created_at: row.get(13)?,
        completed_at: row.get(14)?,
        error_message: row.get(15)?,
        failure_class: class.and_then(|name| serde_json::from_value(serde_json::Value::String(name)).ok()),
        lease_id: row.get(17)?,
        memory_average_mb: row.get(18)?,
        cpu_cores_average: row.get(19)?,
        cpu_cores_peak: row.get(20)?,
        processes_average: row.get(21)?,
        processes_peak: row.get(22)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("hotcell-store-{}-{name}.db", std::process::id()));
        remove(&path);
        path
    }

    fn remove(path: &Path) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
    }

    fn version(path: &Path) -> i64 {
        let db = Connection::open(path).expect("it is there");
        db.pragma_query_value(None, "user_version", |row| row.get(0)).expect("it has one")
    }

    #[test]
    fn records_of_the_first_version_are_kept() {
        let path = file("first");
        {
            let db = Connection::open(&path).expect("it can be made");
            db.execute_batch(MIGRATIONS[0]).expect("it is SQL");
            db.execute_batch(
                "INSERT INTO records (record_id, sandbox_id, code_hash, policy_id, status, memory_peak_mb, created_at, \
                 created_ms) VALUES ('1', 's', 'h', 'none', 'completed', 12.5, 'then', 7); PRAGMA user_version = 1;",
            )
            .expect("it is SQL");
        }
        for _ in 0..2 {
            let store = Store::open(&path).expect("it is brought up to date");
            let all = store.list(&Filter { limit: 10, ..Filter::default() }).expect("it can be read");
            assert_eq!(all.len(), 1);
            assert_eq!((all[0].memory_peak_mb, all[0].memory_average_mb), (Some(12.5), None));
            let averages = ExecutionRecord { memory_average_mb: Some(3.5), processes_peak: Some(2), ..all[0].clone() };
            store.finish(&averages).expect("it can be written");
            let all = store.list(&Filter { limit: 10, ..Filter::default() }).expect("it can be read");
            assert_eq!(all, [averages]);
            store
                .finish(&ExecutionRecord { memory_average_mb: None, processes_peak: None, ..all[0].clone() })
                .expect("it can be written");
        }
        assert_eq!(version(&path), MIGRATIONS.len() as i64);
        remove(&path);
    }

    #[test]
    fn what_is_new_has_every_step_and_what_is_newer_is_left_alone() {
        let path = file("newer");
        drop(Store::open(&path).expect("it can be made"));
        assert_eq!(version(&path), MIGRATIONS.len() as i64);
        let newer = MIGRATIONS.len() as i64 + 1;
        Connection::open(&path).and_then(|db| db.pragma_update(None, "user_version", newer)).expect("ours");
        assert!(matches!(Store::open(&path), Err(StoreError::Newer(found)) if found == newer));
        remove(&path);
    }
}
