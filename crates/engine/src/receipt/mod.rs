//! Receipts: a signed statement about one Outcome, for whoever has the public key and trusts nothing else.
//!
//!   Outcome + hash of what was asked + policy -> Statement -> JSON -> signed as it stands -> envelope
//!   envelope -> signature over the bytes -> JSON -> Statement -> compared with files
//!
//! A receipt says what this host's Hotcell saw. It is worth as much as the host and its key are.

mod asked;
mod base64;
mod compare;
mod envelope;

use hotcell_contract::{
    ARTIFACT, Digest, Outcome, PREDICATE_TYPE, Policy, RESULT, Receipt, STATEMENT_TYPE, Statement, StreamDigest,
    Subject, Verdict, subject_of_stream,
};
use serde_json::json;

pub use asked::request_hash;
pub use compare::{Mismatch, compare_artifacts, compare_result};
pub use envelope::{PublicKey, ReceiptError, ReceiptFlaw, ReceiptKey, unverified_statement, verify_receipt};

use crate::state::{State, now};
pub(crate) use asked::canonical_hash;
use asked::sha256;

/// Signs for an Outcome whose streams were kept up to their limit, and writes down that it did. Returns the file.
pub fn sign_receipt(
    state: &mut State,
    key: &ReceiptKey,
    outcome: &Outcome,
    request_hash: &str,
    policy: Option<&Policy>,
) -> Result<Vec<u8>, ReceiptError> {
    let file = key.sign(&statement(outcome, request_hash, policy)?)?;
    let data = json!({ "request_id": outcome.request_id, "sha256": sha256(&file), "keyid": key.public().id() });
    state.note("receipt_event.SIGNED", data)?;
    Ok(file)
}

fn statement(outcome: &Outcome, request_hash: &str, policy: Option<&Policy>) -> Result<Statement, ReceiptError> {
    let [stdout, stderr] = [&outcome.output.stdout, &outcome.output.stderr].map(StreamDigest::of);
    let subject = |name: String, sha256: String| Subject { name, digest: Digest { sha256 } };
    let artifact = |file: &hotcell_contract::Artifact| subject(format!("{ARTIFACT}{}", file.path), file.sha256.clone());
    let mut subjects: Vec<Subject> = outcome.artifacts.iter().map(artifact).collect();
    subjects.push(subject_of_stream("stdout", &stdout));
    subjects.push(subject_of_stream("stderr", &stderr));
    subjects.push(subject(RESULT.into(), sha256(&outcome.to_json()?)));
    Ok(Statement {
        statement_type: STATEMENT_TYPE.into(),
        subject: subjects,
        predicate_type: PREDICATE_TYPE.into(),
        predicate: Receipt {
            hotcell: env!("CARGO_PKG_VERSION").into(),
            request_id: outcome.request_id.clone(),
            created_at: outcome.created_at.clone(),
            completed_at: now(),
            request_hash: request_hash.to_owned(),
            policy_id: policy.map(|policy| policy.policy_id.clone()),
            policy_hash: policy.map(canonical_hash).transpose()?,
            mode: outcome.mode,
            network_policy: outcome.runtime_config.network_policy,
            on_violation: outcome.runtime_config.on_violation,
            limits: outcome.runtime_config.limits.clone(),
            enforced: outcome.enforced.clone(),
            degraded: outcome.degraded.clone(),
            usage: outcome.usage,
            verdict: Verdict::of(outcome),
            stdout,
            stderr,
        },
    })
}
