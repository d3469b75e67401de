//! What is kept of every run and of every refusal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FailureClass;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordStatus {
    Pending,
    Running,
    Completed,
    Failed,
    Timeout,
    Killed,
    Denied,
}

impl RecordStatus {
    pub const ALL: [RecordStatus; 7] = [
        RecordStatus::Pending,
        RecordStatus::Running,
        RecordStatus::Completed,
        RecordStatus::Failed,
        RecordStatus::Timeout,
        RecordStatus::Killed,
        RecordStatus::Denied,
    ];

    pub fn name(self) -> &'static str {
        match self {
            RecordStatus::Pending => "pending",
            RecordStatus::Running => "running",
            RecordStatus::Completed => "completed",
            RecordStatus::Failed => "failed",
            RecordStatus::Timeout => "timeout",
            RecordStatus::Killed => "killed",
            RecordStatus::Denied => "denied",
        }
    }

    pub fn named(name: &str) -> Option<RecordStatus> {
        RecordStatus::ALL.into_iter().find(|status| status.name() == name)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionRecord {
    /// A UUIDv7: newer ones sort behind older ones.
    pub record_id: String,
    /// The request's id.
    pub sandbox_id: String,
    pub tenant_id: Option<String>,
    pub user_id: Option<String>,
    pub run_id: Option<String>,
    /// Null for a command.
    pub language: Option<String>,
    /// sha256 of what was to run.
    pub code_hash: String,
    pub policy_id: String,
    pub status: RecordStatus,
    pub exit_code: Option<i64>,
    pub wall_time_seconds: Option<f64>,
    pub cpu_seconds: Option<f64>,
    pub memory_peak_mb: Option<f64>,
    /// Averages, and peaks that only samples show: null for what was over before the first one.
    pub memory_average_mb: Option<f64>,
    pub cpu_cores_average: Option<f64>,
    pub cpu_cores_peak: Option<f64>,
    pub processes_average: Option<f64>,
    pub processes_peak: Option<i64>,
    /// RFC 3339, UTC.
    pub created_at: String,
    pub completed_at: Option<String>,
    pub error_message: Option<String>,
    pub failure_class: Option<FailureClass>,
    pub lease_id: Option<String>,
    /// What of the policy's `strict_when` raised the run to a kernel of its own.
    pub raised_by: Option<String>,
}

/// Everything together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    pub total_executions: u64,
    pub by_status: std::collections::BTreeMap<String, u64>,
    pub by_language: std::collections::BTreeMap<String, u64>,
    pub by_policy: std::collections::BTreeMap<String, u64>,
    pub by_failure_class: std::collections::BTreeMap<String, u64>,
    pub avg_wall_time_seconds: Option<f64>,
    pub p50_wall_time_seconds: Option<f64>,
    pub p95_wall_time_seconds: Option<f64>,
    pub p99_wall_time_seconds: Option<f64>,
}
