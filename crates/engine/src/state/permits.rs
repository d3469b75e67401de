//! What the operator gives out and takes back: keys, leases, approvals, intents.

use std::ffi::OsString;
use std::path::Path;

use hotcell_contract::{
    Approval, ApprovalStatus, Asked, Capabilities, Intent, IntentStatus, Lease, Outcome, Policy, Problem, Review,
    Status, is_id,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::grants::IssuedLease;
use super::owner::stop;
use super::{Entry, State, StateError, Who, now, now_ms};
use crate::keys::hex;
use crate::lease::{Keys, LeaseRefusal, LeasedRun, PACK, Role, SecretKey, Trusted, Verifier, cosign, sign, verify};
use crate::receipt::{canonical_hash, request_hash};
use crate::repo::{MANIFEST, Restored, RollbackError, rollback};
use crate::request::{Program, Request, Source};

/// How long an intent stands before it must be proposed anew.
const STALE_AFTER_MS: i64 = 24 * 3600 * 1000;
/// How long a run waits for its approval.
const ASKED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// What whoever decides is shown of a source.
const MAX_SHOWN: usize = 1 << 20;

/// What a revocation did.
pub struct Revoked {
    /// How many processes were told.
    pub told: usize,
    /// Whether there was a lease of that id here: one that was handed on elsewhere may not have been seen yet.
    pub known: bool,
}

impl State {
    pub fn keys(&self) -> Keys {
        Keys::new(&self.dir)
    }

    /// A new key; the current one of its role becomes the previous, and the one before that is trusted no longer.
    pub fn make_key(&mut self, role: Role, out: Option<&Path>, by: &str) -> Result<Trusted, StateError> {
        let made = self.keys().make(role, out, &now())?;
        self.audit.append("lease_event.KEY_MADE", json!({ "kid": made.kid, "role": role.name(), "by": by }))?;
        Ok(made)
    }

    /// Signs a lease and writes down that it is out.
    pub fn issue(&mut self, lease: Lease, key: &SecretKey, capabilities: &Capabilities) -> Result<Lease, StateError> {
        if !matches!(key.role, Role::Issuer | Role::Human) {
            return Err(LeaseRefusal::UnknownKey(key.kid()).into());
        }
        self.allow_intent(&lease, capabilities)?;
        if !lease.runner.writable_mounts.is_empty() && !capabilities.writable_mounts {
            return Err(StateError::NotEnabled("writable_mounts"));
        }
        let lease = sign(lease, key)?;
        let text = crate::lease::text_of(&lease)?;
        // What is given out here counts here.
        let trusted = self.keys().trusted()?;
        // Cosigners come later.
        let verifier = Verifier { two_keys: false, ..self.verifier(&trusted, capabilities, None) };
        verify(text.as_bytes(), &verifier)?;
        self.audit.append("lease_event.ISSUED", json!({ "lease_id": lease.lease_id, "actor": lease.actor, "kid": lease.sig.kid, "expires_at": lease.expires_at, "sha256": hex(&Sha256::digest(text.as_bytes())) }))?;
        self.store.put_lease(&lease)?;
        Ok(lease)
    }

    fn allow_intent(&mut self, lease: &Lease, capabilities: &Capabilities) -> Result<(), StateError> {
        let refused = |why: String| Err(StateError::Lease(LeaseRefusal::Intent(why)));
        let Some(id) = &lease.intent_id else {
            return match capabilities.lease_requires_intent {
                true => refused("a lease is issued for an approved intent only: give --intent".into()),
                false => Ok(()),
            };
        };
        let intent = match self.intent(id) {
            Err(StateError::Unknown { .. }) => return refused(format!("{id} is not known here")),
            intent => intent?,
        };
        if !matches!(intent.status, IntentStatus::Approved | IntentStatus::Implemented) {
            return refused(format!("{id} is {}", word(&intent.status)));
        }
        match intent.exceeded_by(lease).as_slice() {
            [] => Ok(()),
            beyond => refused(format!("the lease goes beyond {id} in its {}", beyond.join(" and "))),
        }
    }

    fn verifier<'a>(
        &self,
        trusted: &'a [Trusted],
        capabilities: &Capabilities,
        policy: Option<&Policy>,
    ) -> Verifier<'a> {
        Verifier {
            trusted,
            now: Timestamp::now(),
            most_minutes: capabilities.max_lease_minutes.into(),
            two_keys: capabilities.two_key_lease || policy.is_some_and(|policy| policy.two_key_lease),
        }
    }

    /// Whether a lease counts here and now.
    pub fn verify_lease(
        &mut self,
        bytes: &[u8],
        capabilities: &Capabilities,
        policy: Option<&Policy>,
    ) -> Result<Lease, StateError> {
        let trusted = self.keys().trusted()?;
        let lease = verify(bytes, &self.verifier(&trusted, capabilities, policy))?;
        if let Some((id, by, reason)) = self.store.revocation(&lease)? {
            return Err(LeaseRefusal::Revoked { id, by, reason }.into());
        }
        // What it was issued for may have been rejected since.
        self.allow_intent(&lease, capabilities)?;
        Ok(lease)
    }

    pub fn cosign(&mut self, lease: Lease, key: &SecretKey) -> Result<Lease, StateError> {
        let lease = cosign(lease, key)?;
        self.audit.append(
            "lease_event.COSIGNED",
            json!({ "lease_id": lease.lease_id, "kid": key.kid(), "role": key.role.name() }),
        )?;
        Ok(lease)
    }

    pub fn leases(&self) -> Result<Vec<IssuedLease>, StateError> {
        Ok(self.store.leases()?)
    }

    /// Ends what runs under a lease and refuses what would. Returns how many processes were told.
    pub fn revoke(&mut self, id: &str, by: &str, reason: &str) -> Result<Revoked, StateError> {
        if !is_id(id) {
            return Err(StateError::Unknown { what: "lease", id: id.to_owned() });
        }
        // Stopping comes first: a log that can't be written must not keep anything running.
        let known = self.store.knows_lease(id)?;
        let owners = self.store.revoke(id, by, reason, &now())?;
        let told = stop(&owners, || self.store.owners_under_lease(id))?;
        self.audit.append("lease_event.REVOKED", json!({ "lease_id": id, "by": by, "reason": reason }))?;
        Ok(Revoked { told, known })
    }

    /// Where the run of this id has left its things.
    pub fn staged(&self, run_id: &str) -> Result<std::path::PathBuf, StateError> {
        let unknown = || StateError::Unknown { what: "leased run", id: run_id.to_owned() };
        if !is_id(run_id) {
            return Err(unknown());
        }
        let leases = std::fs::read_dir(self.dir.join("staging_runs")).into_iter().flatten().flatten();
        leases.map(|lease| lease.path().join(run_id)).find(|dir| dir.is_dir()).ok_or_else(unknown)
    }

    /// Takes back what a run has changed, and writes that down, before and after.
    pub fn rollback(
        &mut self,
        run_id: &str,
        repository: Option<&Path>,
        force: bool,
        by: &str,
    ) -> Result<Restored, StateError> {
        let pack = self.staged(run_id)?.join(PACK);
        self.is_as_packed(run_id, &pack)?;
        self.audit.append("rollback_event.BEGUN", json!({ "run_id": run_id, "by": by, "force": force }))?;
        let restored = match rollback(&pack, repository, force) {
            Err(e) => {
                self.audit.append("rollback_event.FAILED", json!({ "run_id": run_id, "why": e.to_string() }))?;
                return Err(e.into());
            }
            Ok(restored) => restored,
        };
        self.audit.append("rollback_event.RESTORED", json!({ "run_id": run_id, "by": by, "files": restored.files }))?;
        if let Some(intent) = &restored.intent_id {
            self.mark_intent(intent, IntentStatus::RolledBack)?;
        }
        Ok(restored)
    }

    /// Whether a pack is still what the log says of it. Of a run that was killed while it changed things it says nothing.
    fn is_as_packed(&self, run_id: &str, pack: &Path) -> Result<(), StateError> {
        let Ok(manifest) = std::fs::read(pack.join(MANIFEST)) else { return Ok(()) };
        let sum = hex(&Sha256::digest(&manifest));
        for line in self.audit.lines().map_while(Result::ok).filter(|line| line.contains(run_id)) {
            let Ok(entry) = serde_json::from_str::<Entry>(&line) else { continue };
            let is_it = entry.event == "rollback_event.PACKED" && entry.data["run_id"] == run_id;
            if is_it && entry.data["sha256"] != sum.as_str() {
                let why = "its manifest is not the one that is in the audit log".into();
                return Err(RollbackError::Damaged { path: pack.to_owned(), why }.into());
            }
        }
        Ok(())
    }

    /// Writes down what can be taken back, and that the intent is carried out.
    pub fn leave(&mut self, run: &LeasedRun<'_>, outcome: &Outcome) -> Result<(), StateError> {
        let failed = |error| StateError::Directory { path: run.staging.dir().to_owned(), error };
        run.staging.seal(run.leased, outcome).map_err(failed)?;
        if let Some(pack) = run.staging.pack() {
            let manifest = std::fs::read(pack.join(MANIFEST)).map_err(failed)?;
            let sum = hex(&Sha256::digest(&manifest));
            self.audit.append(
                "rollback_event.PACKED",
                json!({ "run_id": run.staging.run_id(), "pack": pack.display().to_string(), "sha256": sum }),
            )?;
        }
        match &run.leased.lease.intent_id {
            Some(intent) if outcome.status == Status::Pass => self.mark_intent(intent, IntentStatus::Implemented),
            _ => Ok(()),
        }
    }

    pub fn approvals(&self) -> Result<Vec<Approval>, StateError> {
        Ok(self.store.approvals(now_ms())?)
    }

    pub fn approval(&self, id: &str) -> Result<Approval, StateError> {
        let found = self.store.approval(id, now_ms())?;
        found.ok_or_else(|| StateError::Unknown { what: "approval", id: id.to_owned() })
    }

    /// Says yes to one run of it, until `expires`, or no.
    pub fn decide(
        &mut self,
        id: &str,
        expires: Option<&str>,
        by: &str,
        reason: Option<&str>,
    ) -> Result<Approval, StateError> {
        let mut approval = self.approval(id)?;
        let decided = || StateError::Decided { id: id.to_owned() };
        if approval.status != ApprovalStatus::Pending {
            return Err(decided());
        }
        let event = match expires {
            Some(expires) => {
                (approval.status, approval.expires_at) = (ApprovalStatus::Granted, expires.to_owned());
                "approval_event.GRANTED"
            }
            None => {
                approval.status = ApprovalStatus::Denied;
                "approval_event.DENIED"
            }
        };
        (approval.decided_by, approval.decided_at) = (Some(by.to_owned()), Some(now()));
        approval.reason = reason.map(str::to_owned);
        let data = json!({ "approval_id": id, "by": by, "reason": reason, "request_hash": approval.request_hash, "expires_at": approval.expires_at });
        // Written down by the one who decides, and by nobody who comes too late.
        match self.store.decide(&approval, || self.audit.append(event, data))? {
            Some(written) => written.map(|()| approval).map_err(Into::into),
            None => Err(decided()),
        }
    }

    pub fn propose(&mut self, intent: Intent) -> Result<Intent, StateError> {
        let problems = intent.problems();
        if !problems.is_empty() {
            let why = problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ");
            return Err(StateError::Intent(why));
        }
        self.audit.append(
            "intent_event.PROPOSED",
            json!({ "intent_id": intent.intent_id, "by": intent.proposed_by, "goal": intent.goal }),
        )?;
        match self.store.put_intent(&intent, now_ms(), None)? {
            true => Ok(intent),
            false => Err(StateError::Intent(format!("intent_id is {}: there is one of that name", intent.intent_id))),
        }
    }

    pub fn intents(&mut self) -> Result<Vec<Intent>, StateError> {
        let all = self.store.intents()?;
        Ok(all.into_iter().map(|(intent, proposed)| as_of(intent, proposed)).collect())
    }

    pub fn intent(&mut self, id: &str) -> Result<Intent, StateError> {
        let found = self.store.intent(id)?.map(|(intent, proposed)| as_of(intent, proposed));
        found.ok_or_else(|| StateError::Unknown { what: "intent", id: id.to_owned() })
    }

    /// One voice on an intent, and never its proposer's. The first yes approves it, a no rejects it.
    pub fn review(&mut self, id: &str, review: Review) -> Result<Intent, StateError> {
        let mut intent = self.intent(id)?;
        let was = intent.status;
        if !matches!(was, IntentStatus::Proposed | IntentStatus::Approved) {
            return Err(StateError::Intent(format!("{id} is {}: it can't be reviewed any more", word(&was))));
        }
        let problems = review.problems();
        if !problems.is_empty() {
            return Err(StateError::Intent(problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")));
        }
        if review.by == intent.proposed_by {
            return Err(StateError::Intent(format!("{} has proposed {id}: somebody else must review it", review.by)));
        }
        intent.status = if review.approves { IntentStatus::Approved } else { IntentStatus::Rejected };
        self.audit.append(
            "intent_event.REVIEWED",
            json!({ "intent_id": id, "by": review.by, "approves": review.approves, "comment": review.comment }),
        )?;
        intent.reviews.push(review);
        match self.store.put_intent(&intent, 0, Some(was))? {
            true => Ok(intent),
            false => Err(StateError::Intent(format!("{id} was changed meanwhile: look at it again"))),
        }
    }

    /// What has become of an intent that was approved.
    fn mark_intent(&mut self, id: &str, status: IntentStatus) -> Result<(), StateError> {
        let mut intent = self.intent(id)?;
        let was = std::mem::replace(&mut intent.status, status);
        if was != status
            && matches!(was, IntentStatus::Approved | IntentStatus::Implemented)
            && self.store.put_intent(&intent, 0, Some(was))?
        {
            self.audit.append("intent_event.MARKED", json!({ "intent_id": id, "status": word(&status) }))?;
        }
        Ok(())
    }
}

/// One that nobody has begun in time does not stand any more.
fn as_of(mut intent: Intent, proposed_ms: i64) -> Intent {
    let waits = matches!(intent.status, IntentStatus::Proposed | IntentStatus::Approved);
    if waits && now_ms() - proposed_ms > STALE_AFTER_MS {
        intent.status = IntentStatus::Stale;
    }
    intent
}

fn word(status: &IntentStatus) -> &'static str {
    match status {
        IntentStatus::Proposed => "proposed",
        IntentStatus::Approved => "approved",
        IntentStatus::Rejected => "rejected",
        IntentStatus::Stale => "stale",
        IntentStatus::Implemented => "implemented",
        IntentStatus::RolledBack => "rolled back",
    }
}

/// The question that a policy with `require_approval` asks about a request: bound to everything that is to run, and to the
/// policy as it is.
pub(super) fn question(request: &Request, who: &Who, policy: &Policy) -> Result<Approval, StateError> {
    let bound = json!({ "request": request_hash(request, None)?, "policy": policy, "user": who.user_id });
    let hash = canonical_hash(&bound)?;
    let (language, argv, files) = match &request.program {
        Program::Command(argv) => (None, argv.as_slice(), &[][..]),
        Program::Source { language, source, args } => {
            let files = match source {
                Source::Given { files } => files.as_slice(),
                Source::InInput { .. } => &[][..],
            };
            (Some(language.name.clone()), args.as_slice(), files)
        }
    };
    let lossy = |word: &OsString| word.to_string_lossy().into_owned();
    let capsule = request.capsule.as_ref().map(|capsule| shown(capsule.state.as_deref().unwrap_or_default()));
    let what = Asked {
        language,
        argv: argv.iter().map(lossy).collect(),
        files: files.iter().map(|(name, bytes)| (name.clone(), shown(bytes))).collect(),
        environment: request.env.iter().map(|(name, value)| (lossy(name), lossy(value))).collect(),
        network: [format!("{:?}", request.network).to_lowercase()]
            .into_iter()
            .chain(request.allowed_hosts.iter().map(ToString::to_string))
            .collect::<Vec<_>>()
            .join(" "),
        limits: request.limits.clone(),
        capsule,
        lease_id: request.granted.lease_id.clone(),
    };
    let now = Timestamp::now();
    Ok(Approval {
        approval_id: uuid::Uuid::now_v7().to_string(),
        policy_id: policy.policy_id.clone(),
        tenant_id: who.tenant_id.clone(),
        user_id: who.user_id.clone(),
        request_hash: hash,
        status: ApprovalStatus::Pending,
        asked_at: now.to_string(),
        expires_at: now.checked_add(ASKED_FOR).unwrap_or(now).to_string(),
        decided_by: None,
        decided_at: None,
        reason: None,
        record_id: None,
        what,
    })
}

/// Why whoever decides would not see all that is to run.
pub(super) fn cannot_be_shown(request: &Request) -> Option<&'static str> {
    let given = match &request.program {
        Program::Source { source: Source::Given { files }, .. } => files.iter().map(|(_, bytes)| bytes.len()).sum(),
        _ => 0,
    };
    let state = request.capsule.as_ref().and_then(|capsule| capsule.state.as_ref()).map_or(0, Vec::len);
    if request.granted.shows_something() {
        Some("an approval is for code that was seen whole, and the lease shows something of the host's")
    } else if given > MAX_SHOWN || state > MAX_SHOWN {
        Some("an approval is for code that was seen whole, and nobody reads more than 1 MiB: give less")
    } else {
        None
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
