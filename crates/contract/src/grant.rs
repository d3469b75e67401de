//! What stands before a run: an intent that others have looked at, an approval of very this code, the operator's switches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pattern::{covers_path, covers_words};
use crate::policy::{Problem, quoted};
use crate::{Lease, Limits, is_id, repo_path};

/// What somebody means to do, before there is a lease for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    pub intent_id: String,
    pub proposed_by: String,
    pub proposed_at: String,
    /// A word of the operator's own: `refactor`, `experiment`.
    pub intent_type: String,
    pub goal: String,
    /// As in a lease.
    pub commands: Vec<Vec<String>>,
    /// `repo://dir/**`
    pub paths: Vec<String>,
    pub risk_level: RiskLevel,
    /// How it would be taken back.
    pub rollback_plan: String,
    pub reviews: Vec<Review>,
    pub status: IntentStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RiskLevel {
    Low,
    Medium,
    High,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IntentStatus {
    Proposed,
    Approved,
    Rejected,
    /// Nobody has begun it within 24 hours.
    Stale,
    Implemented,
    RolledBack,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Review {
    pub by: String,
    pub at: String,
    pub approves: bool,
    pub comment: String,
}

/// What a person or an agent is called: nothing that only looks like somebody else.
pub fn is_name(text: &str) -> bool {
    (1..=200).contains(&text.len()) && text.trim() == text && !text.chars().any(is_unseen)
}

pub const NAME: &str = "give 1 to 200 printable characters, without blanks around them";

/// Characters that are not shown, or change how others are shown.
pub fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

impl Review {
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = vec![];
        if !is_name(&self.by) {
            found.push(Problem { field: "by", given: quoted(&self.by), allowed: NAME.into() });
        }
        if self.comment.len() > 4000 || self.comment.chars().any(|c| is_unseen(c) && c != '\n') {
            let allowed = "give at most 4000 printable characters".into();
            found.push(Problem { field: "comment", given: quoted(&self.comment), allowed });
        }
        found
    }
}

impl Intent {
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = vec![];
        let mut bad = |field, given: String, allowed: &str| {
            found.push(Problem { field, given, allowed: allowed.to_owned() });
        };
        if !is_name(&self.proposed_by) {
            bad("proposed_by", quoted(&self.proposed_by), NAME);
        }
        if !is_id(&self.intent_id) {
            bad("intent_id", quoted(&self.intent_id), "give 1 to 64 letters, digits, `_` or `-`");
        }
        if !is_id(&self.intent_type) {
            bad("intent_type", quoted(&self.intent_type), "give 1 to 64 letters, digits, `_` or `-`");
        }
        for (field, text, most) in [("goal", &self.goal, 4000), ("rollback_plan", &self.rollback_plan, 4000)] {
            if text.trim().is_empty() || text.len() > most || text.chars().any(|c| is_unseen(c) && c != '\n') {
                bad(field, quoted(text), &format!("give 1 to {most} printable characters"));
            }
        }
        if self.commands.is_empty() || self.commands.len() > 1000 || self.commands.iter().any(Vec::is_empty) {
            bad("commands", format!("{} commands", self.commands.len()), "give 1 to 1000, each with a word at least");
        }
        if let Some(wrong) = self.paths.iter().find(|path| repo_path(path, true).is_none()) {
            bad("paths", quoted(wrong), "give repo://PATTERN, without `..`");
        }
        found
    }

    /// In which respects a lease goes beyond it.
    pub fn exceeded_by(&self, lease: &Lease) -> Vec<&'static str> {
        let scope = &lease.scope;
        let commands = scope.commands_allowlist.iter().all(|c| self.commands.iter().any(|own| covers_words(own, c)));
        let paths = scope.paths_allowlist.iter().all(|path| self.paths.iter().any(|own| covers_path(own, path)));
        // What it does not speak of was looked at by nobody.
        let nothing_else = lease.runner.readonly_mounts.is_empty()
            && scope.env_allowlist.is_empty()
            && scope.network == crate::LeaseNetwork::DenyAll;
        [(commands, "commands"), (paths, "paths"), (nothing_else, "mounts, variables or hosts")]
            .into_iter()
            .filter(|(is_part, _)| !is_part)
            .map(|(_, w)| w)
            .collect()
    }
}

/// A run that somebody must allow before it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    pub approval_id: String,
    pub policy_id: String,
    pub tenant_id: Option<String>,
    pub user_id: Option<String>,
    /// Of everything that is to run: the approval is for that and for nothing else.
    pub request_hash: String,
    pub status: ApprovalStatus,
    pub asked_at: String,
    /// Of the question; of the answer, once it is given.
    pub expires_at: String,
    pub decided_by: Option<String>,
    pub decided_at: Option<String>,
    pub reason: Option<String>,
    /// The run that has used it.
    pub record_id: Option<String>,
    pub what: Asked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    Pending,
    Granted,
    Denied,
    Used,
    Expired,
}

/// What is to be approved, for whoever decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    pub language: Option<String>,
    pub argv: Vec<String>,
    /// Names and contents.
    pub files: Vec<(String, String)>,
    pub environment: Vec<(String, String)>,
    pub network: String,
    pub limits: Limits,
    /// Python under restricted builtins, and the state that it may read.
    pub capsule: Option<String>,
    /// The lease that it is to run under.
    pub lease_id: Option<String>,
}

/// The operator's switchboard, `[capabilities]` in his `hotcell.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Capabilities {
    pub run: bool,
    pub exec: bool,
    pub verify: bool,
    pub exec_with_lease: bool,
    /// Whether `run` and `exec` need a lease.
    pub lease_required: bool,
    /// Whether every lease needs a human's and an agent's signature.
    pub two_key_lease: bool,
    /// Whether a lease is issued for an approved intent only, and within it.
    pub lease_requires_intent: bool,
    /// `restricted` and `full`.
    pub network: bool,
    pub writable_mounts: bool,
    /// How long a lease may be valid.
    pub max_lease_minutes: u32,
}

impl Default for Capabilities {
    fn default() -> Self {
        Capabilities {
            run: true,
            exec: true,
            verify: true,
            exec_with_lease: true,
            lease_required: false,
            two_key_lease: false,
            lease_requires_intent: false,
            network: true,
            writable_mounts: true,
            max_lease_minutes: 10,
        }
    }
}
