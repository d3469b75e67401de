//! What the service says of itself: keys, runs, and why something was not done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::ID;
use crate::{Approval, Artifact, ExecutionRecord, FailureClass, Outcome, Policy, RecordStatus};

/// Printable, and without blanks around it.
const NAME: &str = concat!(
    r"^[^\s\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]",
    r"([^\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]*[^\s\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb])?$",
);

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
    /// As the caller gave it.
    pub metadata: Option<serde_json::Map<String, serde_json::Value>>,
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

/// Newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RecordList {
    pub records: Vec<ExecutionRecord>,
    /// Where the next page begins: give it as `before`. Null at the end.
    pub next: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactList {
    pub artifacts: Vec<Artifact>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnownPolicy {
    pub built_in: bool,
    /// Why nothing can run under it on this host.
    pub refused: Option<String>,
    pub policy: Policy,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyList {
    pub policies: Vec<KnownPolicy>,
}

/// Newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalList {
    pub approvals: Vec<Approval>,
}

/// What is decided about a run that waits for an approval.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Yes to one run of it, or no.
    pub grant: bool,
    /// How long a yes stands: 1 to 86400, an hour where it is left out.
    #[schemars(range(min = 1, max = 86_400))]
    pub valid_for_seconds: Option<u64>,
    pub reason: Option<String>,
}

/// A permission to be signed. What is left out is little.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// Who may use it.
    #[schemars(length(min = 1, max = 200), regex(pattern = NAME))]
    pub actor: String,
    #[schemars(regex(pattern = ID))]
    pub intent_id: Option<String>,
    /// Words of each; `*` is anything in a word, `**` as the last one any number of words.
    #[schemars(
        length(min = 1, max = 1000),
        inner(length(min = 1, max = 1000), inner(length(max = 4096), regex(pattern = r"^[^\x00]*$")))
    )]
    pub commands: Vec<Vec<String>>,
    /// Names of variables that may be given.
    #[serde(default)]
    #[schemars(inner(length(min = 1, max = 256), regex(pattern = "^[A-Za-z0-9_]*$")))]
    pub environment: Vec<String>,
    /// `name:port`
    #[serde(default)]
    pub hosts: Vec<String>,
    /// 300 where it is left out.
    #[schemars(range(min = 1))]
    pub valid_for_seconds: Option<u64>,
    #[schemars(range(min = 0.01, max = 4096.0))]
    pub cpus: Option<f64>,
    #[schemars(range(min = 4, max = 536870912))]
    pub memory_mb: Option<u64>,
    #[schemars(range(min = 1, max = 2_592_000))]
    pub timeout_seconds: Option<u64>,
    #[schemars(range(min = 8, max = 1048576))]
    pub open_files: Option<u64>,
    /// 1 where it is left out.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_runs: Option<u64>,
    /// A public key, in hex: whoever has the other half may hand on a smaller lease.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub holder_key: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IssuedLeaseText {
    pub lease_id: String,
    pub expires_at: String,
    /// To the letter: it is signed. This is what a request carries as `lease`.
    pub lease: String,
}

/// A lease that was issued here.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LeaseSummary {
    pub lease_id: String,
    pub actor: String,
    pub intent_id: Option<String>,
    pub issued_at: String,
    pub expires_at: String,
    pub max_runs: u64,
    pub runs: u64,
    pub revoked_by: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LeaseList {
    pub leases: Vec<LeaseSummary>,
}

/// What a revocation did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RevokedLease {
    pub lease_id: String,
    /// How many processes were told.
    pub told: u64,
    /// Whether a lease of that id was issued or used here.
    pub known: bool,
}

/// The kill switch, to be turned on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchRequest {
    /// Null: for everybody.
    #[schemars(regex(pattern = ID))]
    pub tenant_id: Option<String>,
    #[schemars(length(min = 1, max = 1000))]
    pub reason: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SwitchState {
    /// Null: for everybody.
    pub tenant_id: Option<String>,
    pub reason: String,
    pub by: String,
    pub since: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SwitchList {
    pub on: Vec<SwitchState>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LanguageSummary {
    pub name: String,
    pub aliases: Vec<String>,
    pub extensions: Vec<String>,
    pub compiled: bool,
    pub available: bool,
    /// What the tool says of itself.
    pub version: Option<String>,
    /// Why it cannot be run.
    pub missing: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LanguageList {
    pub languages: Vec<LanguageSummary>,
}

/// `ok` or `ready`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub status: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    pub name: String,
    pub version: String,
    /// Of outcomes.
    pub schema_version: String,
}
