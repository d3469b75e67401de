//! What is kept of runs, in the state directory: one JSON file each, and a directory of its artifacts. Names are ids of ours,
//! which sort by age. The oldest go when they are too old; when there are too many, or they take too much room, those of the tenant
//! who has the most: nobody can drive out what is another's.
//!
//! A run that somebody comes back for is written before it begins. So what a killed service was about to do is found when the
//! next one starts, and ends there.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use hotcell_contract::{ExecutionRecord, FailureClass, HttpProblem, RecordStatus, Run as RunView};
use hotcell_engine::now;
use rustix::fs::{FlockOperation, Mode, OFlags, ResolveFlags};
use serde::{Deserialize, Serialize};

use crate::run::Idempotency;
use crate::settings::Keep;

const RUNS: &str = "runs";
const ARTIFACTS: &str = "artifacts";
/// What is being written and has no name yet.
const UNFINISHED: &str = ".new-";

#[derive(Serialize, Deserialize)]
struct Stored {
    run: RunView,
    idempotency: Option<Idempotency>,
}

pub(crate) struct Results {
    dir: PathBuf,
    /// Nothing is kept where there is none.
    keep: Option<Keep>,
    /// Of the one service that keeps something here: it goes with the process.
    _lock: Option<File>,
    index: Mutex<Index>,
}

#[derive(Default)]
struct Index {
    tenants: HashMap<String, Shelf>,
    runs: usize,
    bytes: u64,
    /// By tenant and key.
    idempotent: HashMap<(String, String), (Idempotency, String)>,
}

/// What is kept of one tenant.
#[derive(Default)]
struct Shelf {
    /// Oldest first.
    kept: VecDeque<Kept>,
    ids: HashSet<String>,
    bytes: u64,
}

struct Kept {
    id: String,
    bytes: u64,
    at: SystemTime,
    idempotency_key: Option<String>,
}

impl Index {
    fn take(&mut self, tenant: &str, at: usize) -> Option<Kept> {
        let shelf = self.tenants.get_mut(tenant)?;
        let kept = shelf.kept.remove(at)?;
        shelf.ids.remove(&kept.id);
        shelf.bytes -= kept.bytes;
        if shelf.kept.is_empty() {
            self.tenants.remove(tenant);
        }
        self.runs -= 1;
        self.bytes -= kept.bytes;
        Some(kept)
    }

    fn find(&self, tenant: &str, id: &str) -> Option<usize> {
        let shelf = self.tenants.get(tenant).filter(|shelf| shelf.ids.contains(id))?;
        // It is a new one, most of the time.
        shelf.kept.iter().rposition(|kept| kept.id == id)
    }

    fn put(&mut self, tenant: &str, kept: Kept) {
        self.runs += 1;
        self.bytes += kept.bytes;
        let shelf = self.tenants.entry(tenant.to_owned()).or_default();
        shelf.bytes += kept.bytes;
        shelf.ids.insert(kept.id.clone());
        shelf.kept.push_back(kept);
    }

    /// Whose oldest one has to go, if any has.
    fn surplus(&self, keep: &Keep) -> Option<String> {
        let age = |shelf: &Shelf| shelf.kept.front().and_then(|first| first.at.elapsed().ok()).unwrap_or_default();
        let whose = |found: Option<(&String, &Shelf)>| found.map(|(tenant, _)| tenant.clone());
        let old = || self.tenants.iter().find(|(_, shelf)| age(shelf) > keep.time);
        let many = || self.tenants.iter().max_by_key(|(_, shelf)| shelf.kept.len()).filter(|_| self.runs > keep.runs);
        let large = || self.tenants.iter().max_by_key(|(_, shelf)| shelf.bytes).filter(|_| self.bytes > keep.bytes);
        whose(many()).or_else(|| whose(large())).or_else(|| whose(old()))
    }
}

impl Results {
    /// Finds what is there. What had not ended when the service did, ends now: `record_of` says how far it had come.
    pub(crate) fn open(
        state_dir: &Path,
        keep: Option<Keep>,
        mut record_of: impl FnMut(&str) -> io::Result<Option<ExecutionRecord>>,
    ) -> io::Result<Results> {
        let dir = state_dir.join("service");
        if keep.is_none() {
            return Ok(Results { dir, keep, _lock: None, index: Mutex::default() });
        }
        for part in [RUNS, ARTIFACTS] {
            DirBuilder::new().recursive(true).mode(0o700).create(dir.join(part))?;
        }
        let lock = File::create(dir.join("lock"))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(io::ErrorKind::ResourceBusy.into()),
            locked => locked?,
        }
        let results = Results { dir, keep, _lock: Some(lock), index: Mutex::default() };
        let mut names: Vec<String> = fs::read_dir(results.dir.join(RUNS))?
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        for name in names {
            match name.strip_suffix(".json").filter(|id| is_id(id)) {
                Some(id) => results.find_again(id, &mut record_of)?,
                None if name.starts_with(UNFINISHED) => fs::remove_file(results.dir.join(RUNS).join(name))?,
                None => {}
            }
        }
        results.drop_strays()?;
        Ok(results)
    }

    fn find_again(
        &self,
        id: &str,
        record_of: &mut impl FnMut(&str) -> io::Result<Option<ExecutionRecord>>,
    ) -> io::Result<()> {
        let Some(mut stored) = self.read(id) else { return Ok(()) };
        if stored.run.completed_at.is_none() {
            // It is written when a run begins, or is refused.
            let record = record_of(id)?;
            let begun = record.as_ref().filter(|record| record.status != RecordStatus::Denied);
            stored.run.started_at = begun.map(|record| record.created_at.clone());
            stored.run.status = RecordStatus::Killed;
            stored.run.completed_at = Some(now());
            stored.run.problem = Some(HttpProblem {
                kind: "urn:hotcell:problem:service-ended".into(),
                title: "Service Unavailable".into(),
                status: 503,
                detail: "the service ended before the run did: ask for it again".into(),
                field: None,
                failure_class: Some(FailureClass::SetupFailure),
                record_id: record.map(|record| record.record_id),
            });
            self.write(&stored)?;
        }
        self.enter(&stored);
        Ok(())
    }

    /// Artifacts of no run that is known.
    fn drop_strays(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.dir.join(ARTIFACTS))?.flatten() {
            let is_known = entry.file_name().to_str().is_some_and(|id| is_id(id) && self.path(id).exists());
            if !is_known {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    fn path(&self, id: &str) -> PathBuf {
        self.dir.join(RUNS).join(format!("{id}.json"))
    }

    /// Where the artifacts of a run are, or will be, if they are kept.
    pub(crate) fn artifacts(&self, id: &str) -> PathBuf {
        self.dir.join(ARTIFACTS).join(id)
    }

    /// Takes a key for a run, or says for which run it was used before, and what was asked then.
    pub(crate) fn claim(&self, tenant: &str, asked: &Idempotency, id: &str) -> Option<(Idempotency, String)> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (tenant.to_owned(), asked.key.clone());
        let before = index.idempotent.get(&name).cloned();
        if before.is_none() {
            index.idempotent.insert(name, (asked.clone(), id.to_owned()));
        }
        before
    }

    /// Nothing came of it: it may be used again.
    pub(crate) fn unclaim(&self, tenant: &str, asked: &Idempotency) {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.idempotent.remove(&(tenant.to_owned(), asked.key.clone()));
    }

    /// Whole or not at all.
    pub(crate) fn put(&self, run: RunView, idempotency: Option<Idempotency>) -> io::Result<()> {
        if self.keep.is_none() {
            return Ok(());
        }
        let stored = Stored { run, idempotency };
        self.write(&stored)?;
        self.enter(&stored);
        Ok(())
    }

    fn write(&self, stored: &Stored) -> io::Result<()> {
        let new = self.dir.join(RUNS).join(format!("{UNFINISHED}{}", stored.run.id));
        let write = || {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(&serde_json::to_vec(stored)?)?;
            fs::rename(&new, self.path(&stored.run.id))
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&new);
        })
    }

    fn enter(&self, stored: &Stored) {
        let id = &stored.run.id;
        let meta = fs::metadata(self.path(id));
        let at = meta.as_ref().ok().and_then(|meta| meta.modified().ok()).unwrap_or_else(SystemTime::now);
        let artifacts: u64 =
            stored.run.outcome.iter().flat_map(|outcome| &outcome.artifacts).map(|file| file.bytes).sum();
        let bytes = meta.map_or(0, |meta| meta.len()) + artifacts;
        let tenant = &stored.run.tenant_id;
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(is) = &stored.idempotency {
            index.idempotent.insert((tenant.clone(), is.key.clone()), (is.clone(), id.clone()));
        }
        if let Some(at) = index.find(tenant, id) {
            index.take(tenant, at);
        }
        let idempotency_key = stored.idempotency.as_ref().map(|is| is.key.clone());
        index.put(tenant, Kept { id: id.clone(), bytes, at, idempotency_key });
    }

    /// As if it had never been.
    pub(crate) fn remove(&self, tenant: &str, id: &str) {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = index.find(tenant, id) {
            index.take(tenant, at);
        }
        drop(index);
        let _ = fs::remove_file(self.path(id));
    }

    pub(crate) fn get(&self, id: &str) -> Option<RunView> {
        self.read(id).map(|stored| stored.run)
    }

    fn read(&self, id: &str) -> Option<Stored> {
        let mut bytes = vec![];
        File::open(self.path(id)).and_then(|mut file| file.read_to_end(&mut bytes)).ok()?;
        let read = serde_json::from_slice(&bytes);
        if let Err(error) = &read {
            tracing::error!(id, %error, "a kept run cannot be read");
        }
        read.ok()
    }

    /// A file that a run left: through no link, and nowhere else.
    pub(crate) fn open_artifact(&self, id: &str, path: &str) -> io::Result<File> {
        let dir = File::open(self.artifacts(id))?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve)?.into())
    }

    /// Drops what is too old or too much; `is_going` are runs that are not over.
    pub(crate) fn sweep(&self, is_going: impl Fn(&str) -> bool) {
        let Some(keep) = &self.keep else { return };
        loop {
            let oldest = {
                let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(tenant) = index.surplus(keep) else { return };
                let ids = index.tenants.get(&tenant).into_iter().flat_map(|shelf| &shelf.kept);
                let Some(at) = ids.map(|kept| &kept.id).position(|id| !is_going(id)) else { return };
                let Some(oldest) = index.take(&tenant, at) else { return };
                if let Some(key) = &oldest.idempotency_key {
                    let name = (tenant, key.clone());
                    if index.idempotent.get(&name).is_some_and(|(_, id)| *id == oldest.id) {
                        index.idempotent.remove(&name);
                    }
                }
                oldest.id
            };
            // A reader who has one of them open reads on.
            let _ = fs::remove_file(self.path(&oldest));
            let _ = fs::remove_dir_all(self.artifacts(&oldest));
        }
    }
}

/// As we make them: 36 digits and hyphens, which is no path.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}
