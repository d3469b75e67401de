//! Records in SQLite: one row a run or refusal. The SQL is plain, so that another database can have it too.

use std::path::Path;
use std::time::{Duration, Instant};

use hotcell_contract::{ExecutionRecord, FailureClass, RecordStatus, Stats};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, TransactionBehavior, params};

use super::owner::{Living, OWNER, Owner};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the records cannot be used, so nothing runs: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("the records are of a newer version of hotcell ({0}): use that one")]
    Newer(i64),
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

pub(super) struct Store {
    pub(super) db: Connection,
    /// Whose runs are written down here.
    pub(super) owner: Owner,
}

/// For others who are at it.
const PATIENCE: Duration = Duration::from_secs(10);

/// From one version to the next, in order: each is carried out once, and none is ever changed.
const MIGRATIONS: [&str; 5] = [
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
    "ALTER TABLE records ADD COLUMN raised_by TEXT;",
    super::api_keys::SCHEMA,
];

const COLUMNS: &str = "record_id, sandbox_id, tenant_id, user_id, run_id, language, code_hash, policy_id, status, exit_code, \
     wall_time_seconds, cpu_seconds, memory_peak_mb, created_at, completed_at, error_message, failure_class, lease_id, \
     memory_average_mb, cpu_cores_average, cpu_cores_peak, processes_average, processes_peak, raised_by";

/// More than there are.
const STATEMENTS: usize = 64;

impl Store {
    pub(super) fn open(path: &Path) -> Result<Store, StoreError> {
        let mut db = Connection::open(path)?;
        db.set_prepared_statement_cache_capacity(STATEMENTS);
        db.busy_timeout(PATIENCE)?;
        // Most runs are alone here: each would put the log of what was written into the file, and throw the log away, in
        // more time than the rest of it takes. It is done once in so many pages, which is what the next one has to read.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        db.pragma_update(None, "wal_autocheckpoint", 64)?;
        write_ahead(&db)?;
        // A crash of the host may lose the newest records, never the file; the audit log has them too.
        db.pragma_update(None, "synchronous", "NORMAL")?;
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match usize::try_from(version) {
            Ok(known) if known == MIGRATIONS.len() => {}
            Ok(older) if older < MIGRATIONS.len() => migrate(&mut db)?,
            _ => return Err(StoreError::Newer(version)),
        }
        Ok(Store { db, owner: Owner::this() })
    }

    /// For a process that stays: the log of what was written may grow, because nobody who comes has to read it first, and
    /// each time that it is put into the file waits for the disk.
    pub(super) fn serve(&mut self) -> Result<(), StoreError> {
        self.owner.is_service = true;
        Ok(self.db.pragma_update(None, "wal_autocheckpoint", 1000)?)
    }

    /// Whether anything was refused, or has ended.
    pub(super) fn has_ended(&self) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM records WHERE status <> 'running')";
        Ok(self.db.query_row(sql, [], |row| row.get(0))? || !self.orphans()?.is_empty())
    }

    /// Runs whose process is gone without a word.
    pub(super) fn orphans(&self) -> Result<Vec<String>, StoreError> {
        let sql = format!("SELECT record_id, {OWNER} FROM records WHERE status = 'running'");
        let mut asked = self.db.prepare_cached(&sql)?;
        let rows = asked.query_map([], |row| Ok((row.get::<_, String>(0)?, Owner::of(row, 1)?)))?;
        let all = rows.collect::<Result<Vec<_>, _>>()?;
        let mut living = Living::default();
        Ok(all.into_iter().filter(|(_, owner)| !living.has(*owner)).map(|(id, _)| id).collect())
    }

    pub(super) fn bury(&self, id: &str, now: &str) -> Result<(), StoreError> {
        self.db.execute(
            "UPDATE records SET status = 'killed', completed_at = ?2, error_message = ?3 WHERE record_id = ?1 AND status = 'running'",
            params![id, now, "the process that ran it is gone"],
        )?;
        Ok(())
    }

    pub(super) fn put(&self, record: &ExecutionRecord, now_ms: i64) -> Result<(), StoreError> {
        insert(&self.db, record, now_ms, None)
    }

    pub(super) fn finish(&self, record: &ExecutionRecord) -> Result<(), StoreError> {
        let mut update = self.db.prepare_cached(
            "UPDATE records SET status = ?2, exit_code = ?3, wall_time_seconds = ?4, cpu_seconds = ?5, memory_peak_mb = ?6, \
             completed_at = ?7, error_message = ?8, failure_class = ?9, memory_average_mb = ?10, cpu_cores_average = ?11, \
             cpu_cores_peak = ?12, processes_average = ?13, processes_peak = ?14 WHERE record_id = ?1",
        )?;
        update.execute(params![
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
        ])?;
        Ok(())
    }

    pub(super) fn list(&self, filter: &Filter) -> Result<Vec<ExecutionRecord>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM records WHERE (?1 IS NULL OR tenant_id = ?1) AND (?2 IS NULL OR user_id = ?2) \
             AND (?3 IS NULL OR run_id = ?3) AND (?4 IS NULL OR status = ?4) AND (?5 IS NULL OR COALESCE(language, 'command') = ?5) \
             AND (?6 IS NULL OR policy_id = ?6) AND (?7 IS NULL OR created_ms >= ?7) AND (?8 IS NULL OR created_ms < ?8) \
             AND (?9 IS NULL OR record_id < ?9) ORDER BY record_id DESC LIMIT ?10"
        );
        let mut asked = self.db.prepare_cached(&sql)?;
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
        Ok(self.db.prepare_cached(&sql)?.query_row([record_id], record_of).optional()?)
    }

    pub(super) fn stats(&self, tenant: Option<&str>) -> Result<Stats, StoreError> {
        let mut stats = Stats::default();
        let mut times: Vec<f64> = vec![];
        // One look at each row, and no text of it copied but the first of its kind: counting in SQL takes a look for each.
        let sql = "SELECT status, COALESCE(language, 'command'), policy_id, failure_class, wall_time_seconds \
                   FROM records WHERE (?1 IS NULL OR tenant_id = ?1)";
        let mut asked = self.db.prepare_cached(sql)?;
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
}

/// Many may open a new file at once, and one of them changes it: SQLite refuses the others without waiting as it does otherwise.
fn write_ahead(db: &Connection) -> Result<(), rusqlite::Error> {
    let until = Instant::now() + PATIENCE;
    loop {
        match db.pragma_update(None, "journal_mode", "WAL") {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
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

pub(super) fn insert(
    db: &Connection,
    record: &ExecutionRecord,
    now_ms: i64,
    owner: Option<Owner>,
) -> Result<(), StoreError> {
    let sql = format!(
        "INSERT INTO records ({COLUMNS}, created_ms, {OWNER}) VALUES \
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)"
    );
    db.prepare_cached(&sql)?.execute(params![
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
        record.raised_by,
        now_ms,
        owner.map(|owner| owner.pid),
        owner.map(|owner| owner.start),
        owner.map(|owner| i64::from(owner.is_service)),
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
        raised_by: row.get(23)?,
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
