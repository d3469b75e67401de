//! Receipts: an in-toto Statement about one Outcome, in a DSSE envelope. Plain data; who signs and verifies is elsewhere.
//!
//! Fields that are not known are refused everywhere, which is more than in-toto and DSSE ask for: what nobody looked at
//! must not stand in what was verified.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    FailureClass, Layer, Limits, Mode, NetworkPolicy, OnViolation, Outcome, Status, StreamInfo, TerminalEvent, Tier,
    Usage,
};

pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
pub const PREDICATE_TYPE: &str = "urn:hotcell:receipt:v1";

/// DSSE v1: what is in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    /// A [`Statement`] as JSON, in base64.
    pub payload: String,
    pub signatures: Vec<EnvelopeSignature>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeSignature {
    /// sha256 of the 32 bytes of the public key, in hex.
    pub keyid: String,
    /// Ed25519, in base64.
    pub sig: String,
}

/// An in-toto Statement, version 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// "https://in-toto.io/Statement/v1"
    #[serde(rename = "_type")]
    pub statement_type: String,
    /// `artifact:PATH` for each file that was collected, `stream:stdout` and `stream:stderr` (`stream:stdout:kept` when
    /// not all of it was kept), and `result`: the result as it is written, to the byte.
    pub subject: Vec<Subject>,
    /// "urn:hotcell:receipt:v1"
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    pub predicate: Receipt,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    pub name: String,
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Digest {
    /// 64 digits, lower case.
    pub sha256: String,
}

/// What is said about one run. All fields, always; nulls explicit. No number in it is beyond 2^53: every reader of JSON
/// reads the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// The version that ran it.
    pub hotcell: String,
    pub request_id: String,
    /// RFC 3339, UTC.
    pub created_at: String,
    pub completed_at: String,
    /// sha256 of what was asked, as canonical JSON.
    pub request_hash: String,
    /// Null without a policy.
    #[serde(deserialize_with = "explicit")]
    pub policy_id: Option<String>,
    /// sha256 of the policy as canonical JSON.
    #[serde(deserialize_with = "explicit")]
    pub policy_hash: Option<String>,
    pub mode: Mode,
    pub network_policy: NetworkPolicy,
    pub on_violation: OnViolation,
    pub limits: Limits,
    pub enforced: Vec<Layer>,
    pub degraded: Vec<Layer>,
    pub usage: Usage,
    pub verdict: Verdict,
    pub stdout: StreamDigest,
    pub stderr: StreamDigest,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub attempt: u32,
    pub status: Status,
    pub tier: Tier,
    #[serde(deserialize_with = "explicit")]
    pub failure_class: Option<FailureClass>,
    #[serde(deserialize_with = "explicit")]
    pub terminal_event: Option<TerminalEvent>,
    #[serde(deserialize_with = "explicit")]
    pub exit_code: Option<i32>,
    #[serde(deserialize_with = "explicit")]
    pub signal: Option<i32>,
    /// In the order in which the classes were first met.
    pub violations: Vec<ViolationCount>,
    /// How many more there were than could be listed by class.
    pub violations_dropped: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ViolationCount {
    pub class: FailureClass,
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamDigest {
    /// Of all that the program wrote; of what was kept, its head and its tail, when it is not complete.
    pub sha256: String,
    /// All that the program wrote.
    pub bytes: u64,
    pub complete: bool,
}

/// A field that may be null and may not be absent.
fn explicit<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

impl Verdict {
    pub fn of(outcome: &Outcome) -> Verdict {
        let mut violations: Vec<ViolationCount> = vec![];
        for violation in &outcome.violations {
            match violations.iter_mut().find(|known| known.class == violation.class) {
                Some(known) => known.count += 1,
                None => violations.push(ViolationCount { class: violation.class, count: 1 }),
            }
        }
        Verdict {
            attempt: outcome.attempt,
            status: outcome.status,
            tier: outcome.tier,
            failure_class: outcome.failure_class,
            terminal_event: outcome.terminal_event,
            exit_code: outcome.exit_code,
            signal: outcome.signal,
            violations,
            violations_dropped: outcome.violations_dropped,
        }
    }
}

impl StreamDigest {
    pub fn of(stream: &StreamInfo) -> StreamDigest {
        StreamDigest { sha256: stream.sha256.clone(), bytes: stream.bytes, complete: stream.dropped == 0 }
    }
}

/// 64 digits, lower case.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

impl Statement {
    /// What is wrong with it, beyond its shape.
    pub fn problem(&self) -> Option<String> {
        let receipt = &self.predicate;
        let hashes = [("request_hash", &receipt.request_hash), ("stdout.sha256", &receipt.stdout.sha256)];
        let hashes = hashes.into_iter().chain([("stderr.sha256", &receipt.stderr.sha256)]);
        let hashes = hashes.chain(receipt.policy_hash.as_ref().map(|hash| ("policy_hash", hash)));
        let hashes = hashes.chain(self.subject.iter().map(|subject| ("subject.digest.sha256", &subject.digest.sha256)));
        for (field, hash) in hashes {
            if !is_sha256(hash) {
                return Some(format!("{field} is no sha256"));
            }
        }
        if receipt.policy_id.is_some() != receipt.policy_hash.is_some() {
            return Some("policy_id and policy_hash must be null together".into());
        }
        if (receipt.verdict.status == Status::Pass) != receipt.verdict.failure_class.is_none() {
            return Some("verdict.status and verdict.failure_class contradict each other".into());
        }
        let streams = [("stdout", &receipt.stdout), ("stderr", &receipt.stderr)];
        let streams = streams.map(|(name, stream)| subject_of_stream(name, stream));
        if let Some(stream) = streams.iter().find(|stream| self.subject.iter().filter(|s| s == stream).count() != 1) {
            return Some(format!("subject {} must be there once, with the hash in the predicate", stream.name));
        }
        if self.subject.iter().filter(|subject| subject.name == RESULT).count() != 1 {
            return Some("subject result must be there once".into());
        }
        let rest = self.subject.iter().filter(|s| s.name != RESULT && !s.name.starts_with(ARTIFACT));
        (rest.count() != streams.len()).then(|| "subject has a name that is not known".into())
    }
}

/// Before the path of an artifact.
pub const ARTIFACT: &str = "artifact:";
pub const RESULT: &str = "result";

/// A stream as a subject: one that is not complete is called so.
pub fn subject_of_stream(name: &str, stream: &StreamDigest) -> Subject {
    let kept = if stream.complete { "" } else { ":kept" };
    Subject { name: format!("stream:{name}{kept}"), digest: Digest { sha256: stream.sha256.clone() } }
}
