//! What the service says of itself: keys, runs, and why something was not done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FailureClass, Outcome, RecordStatus};

/// What the holder of a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    /// Run and verify, and call off what is the tenant's own.
    Run,
    /// Look at what is the tenant's own.
    Read,
    /// What is everybody's: policies, leases, approvals, the kill switch, the records of all tenants. Includes the others.
    Admin,
}

impl KeyScope {
    pub const ALL: [KeyScope; 3] = [KeyScope::Run, KeyScope::Read, KeyScope::Admin];

    pub fn name(self) -> &'static str {
        match self {
            KeyScope::Run => "run",
            KeyScope::Read => "read",
            KeyScope::Admin => "admin",
        }
    }

    pub fn named(name: &str) -> Option<KeyScope> {
        KeyScope::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// A key of the service, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiKey {
    pub key_id: String,
    pub tenant_id: String,
    pub scopes: Vec<KeyScope>,
    /// Under which it may run; the first where a request names none. Empty: the policy of the service alone.
    pub policies: Vec<String>,
    /// RFC 3339, UTC.
    pub created_at: String,
    pub created_by: String,
    pub revoked_at: Option<String>,
    pub revoked_by: Option<String>,
}

/// A run as the service tells of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// A UUIDv7; the record of the run has the same.
    pub id: String,
    pub tenant_id: String,
    /// The caller's, or the run's own.
    pub request_id: String,
    pub policy_id: String,
    /// `pending` while it waits in the queue.
    pub status: RecordStatus,
    /// RFC 3339, UTC: when it was asked for.
    pub created_at: String,
    /// When it left the queue.
    pub started_at: Option<String>,
    pub completed_at: Option<String>,
    /// Null until it has ended, and where nothing ran.
    pub outcome: Option<Outcome>,
    /// Why there is no outcome.
    pub problem: Option<HttpProblem>,
}

/// Why something was not done (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpProblem {
    /// `urn:hotcell:problem:` and a word that stays the same.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// One sentence: what, which value, what to do.
    pub detail: String,
    /// The field of the request that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_class: Option<FailureClass>,
    /// Of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_id: Option<String>,
}
