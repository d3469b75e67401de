//! What a leased run leaves: its output, its result, and how to take back what it changed. Never overwritten.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hotcell_contract::{Artifact, FailureClass, Outcome, Status, TerminalEvent};
use hotcell_sandbox::Report;
use serde_json::json;

use super::Leased;
use crate::repo::{Changes, Manifest, changes};
use crate::request::Request;

/// The directory of one run.
pub struct Staging {
    dir: PathBuf,
    run_id: String,
}

/// A run under a lease.
#[derive(Clone, Copy)]
pub struct LeasedRun<'a> {
    pub leased: &'a Leased,
    pub staging: &'a Staging,
}

/// Where the pack of a run is.
pub(crate) const PACK: &str = "rollback";

impl Staging {
    pub fn make(state: &Path, lease_id: &str, run_id: &str) -> io::Result<Staging> {
        let above = state.join("staging_runs").join(lease_id);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&above)?;
        let dir = above.join(run_id);
        fs::DirBuilder::new().mode(0o700).create(&dir)?;
        Ok(Staging { dir, run_id: run_id.to_owned() })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Where the rollback pack is, if the run has changed anything.
    pub fn pack(&self) -> Option<PathBuf> {
        Some(self.dir.join(PACK)).filter(|pack| pack.is_dir())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.dir.join(name))?;
        file.write_all(bytes)
    }

    /// The rest, when everything is known.
    pub fn seal(&self, leased: &Leased, outcome: &Outcome) -> io::Result<()> {
        let code = outcome.exit_code.map_or_else(|| "none".into(), |code| code.to_string());
        self.write("exit_code.txt", format!("{code}\n").as_bytes())?;
        let lease = &leased.lease;
        let meta = json!({
            "run_id": self.run_id,
            "lease_id": lease.lease_id,
            "chain": lease.chain().map(|lease| &lease.lease_id).collect::<Vec<_>>(),
            "intent_id": lease.intent_id,
            "actor": lease.actor,
            "repository": leased.repository.as_ref().map(|repo| repo.root.display().to_string()),
            "argv": outcome.runtime_config.argv,
            "created_at": outcome.created_at,
            "duration_ms": outcome.duration_ms,
            "status": outcome.status,
            "failure_class": outcome.failure_class,
            "message": outcome.message,
            "rollback": self.pack().is_some(),
        });
        self.write("meta.json", &serde_json::to_vec_pretty(&meta)?)?;
        self.write("verification_result.json", &serde_json::to_vec_pretty(outcome)?)
    }
}

impl LeasedRun<'_> {
    /// What the program said, byte for byte; and, when the run has passed, what it changed, into the repository.
    pub(crate) fn finish(&self, request: &Request, report: &Report, outcome: &mut Outcome) -> io::Result<()> {
        for (name, said) in [("stdout.log", &report.stdout), ("stderr.log", &report.stderr)] {
            self.staging.write(name, &[said.head.as_slice(), &said.tail].concat())?;
        }
        if outcome.terminal_event == Some(TerminalEvent::TimeoutViolation) && self.leased.is_over() {
            outcome.failure_class = Some(FailureClass::LeaseViolation);
            outcome.message = Some("the lease expired while the program ran".into());
            outcome.evidence = Some("wall clock".into());
        }
        if outcome.status == Status::Pass
            && let Err(why) = self.take_over(request, report, outcome)
        {
            outcome.status = Status::Fail;
            outcome.failure_class = Some(FailureClass::LeaseViolation);
            outcome.message = Some(format!("the repository was not changed: {why}"));
        }
        Ok(())
    }

    /// The pack is complete before anything is changed: whatever happens then can be taken back.
    fn take_over(&self, request: &Request, report: &Report, outcome: &mut Outcome) -> Result<(), String> {
        let (Some(repo), Some(shown)) = (&self.leased.repository, &request.granted.shown) else { return Ok(()) };
        if shown.selection.writable.is_empty() {
            return Ok(());
        }
        let Some(scratch) = &report.scratch else { return Err("the cell's scratch is gone".into()) };
        let found: Changes = changes(&shown.selection, scratch, &|path| self.leased.denies(path))?;
        if found.list.is_empty() {
            return Ok(());
        }
        let said = |e: io::Error| e.to_string();
        let _alone = repo.lock().map_err(said)?;
        // Waiting may have taken a while.
        if self.leased.is_over() {
            return Err("the lease has expired".into());
        }
        if let Some(path) = found.moved_on(repo)? {
            return Err(format!("`{path}` was changed by somebody else meanwhile"));
        }
        // What somebody who was killed has left here.
        shown.selection.writable.iter().for_each(|(dir, _)| repo.sweep(dir));
        let lease = &self.leased.lease;
        let manifest = Manifest {
            lease_id: lease.lease_id.clone(),
            run_id: self.staging.run_id.clone(),
            intent_id: lease.intent_id.clone(),
            repository: repo.root.clone(),
            writable: shown.selection.writable.iter().map(|(dir, _)| dir.display().to_string()).collect(),
            changes: found.list.clone(),
            directories: found.new_directories(repo),
        };
        found.pack(&manifest, &self.staging.dir.join(PACK)).map_err(said)?;
        found.carry_out(repo, &manifest.directories).map_err(|e| {
            format!("it was begun, and stopped: {e}: `hotcell rollback {}` restores it", self.staging.run_id)
        })?;
        let after = found.list.iter().filter_map(|change| Some((change, change.after.as_ref()?)));
        outcome.artifacts.extend(after.map(|(change, after)| Artifact {
            path: format!("repo://{}", change.path),
            bytes: after.bytes,
            sha256: after.sha256.clone(),
        }));
        Ok(())
    }
}
