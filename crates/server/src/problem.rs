//! Why something was not done, as the client is told (RFC 9457). What the log says is another message: nothing of the host,
//! and no error of ours, is in here.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hotcell_contract::{FailureClass, HttpProblem};
use hotcell_engine::{
    BackendError, ConfigError, ExecuteError, PlanError, PolicyError, SandboxError, StateError, StoreError,
};

#[derive(Clone, Debug)]
pub struct Problem {
    pub status: StatusCode,
    /// A word that stays the same, for machines.
    pub kind: &'static str,
    pub detail: String,
    pub field: Option<String>,
    pub failure_class: Option<FailureClass>,
    pub record_id: Option<String>,
    pub again_in: Option<Duration>,
}

/// What the engine calls what a caller says, and the field that says it here.
const FIELDS: [(&str, &str); 17] = [
    ("--compile-timeout", "limits.compile_wall_ms"),
    ("--compile-memory", "limits.compile_memory_bytes"),
    ("--timeout", "limits.wall_ms"),
    ("--grace", "limits.grace_ms"),
    ("--cpu-time", "limits.cpu_ms"),
    ("--cpus", "limits.cpus"),
    ("--memory", "limits.memory_bytes"),
    ("--processes", "limits.processes"),
    ("--open-files", "limits.open_files"),
    ("--file-size", "limits.file_size_bytes"),
    ("--scratch-inodes", "limits.scratch_inodes"),
    ("--scratch", "limits.scratch_bytes"),
    ("--output-limit", "limits.output_bytes"),
    ("--network", "network"),
    ("--allow-host", "allowed_hosts"),
    ("--on-violation", "on_violation"),
    ("--lease FILE", "lease"),
];

/// A sentence, however long what it quotes is.
const MAX_DETAIL: usize = 1000;
const MAX_FIELD: usize = 100;

/// What a client wrote, as it can stand in a sentence.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}

/// One line, and not longer than that.
fn cut(text: &str, most: usize) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect()
}

impl Problem {
    pub fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Problem {
        let detail = detail.into();
        Problem { status, kind, detail, field: None, failure_class: None, record_id: None, again_in: None }
    }

    /// Something in the request is not as it must be.
    /// It may be different the next time.
    pub(crate) fn is_for_now(&self) -> bool {
        matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
    }

    pub fn field(name: impl Into<String>, detail: impl Into<String>) -> Problem {
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad-field", detail);
        Problem { field: Some(name.into()), ..problem }
    }

    /// Also for what is another tenant's: that there is such a thing is nobody else's business.
    pub(crate) fn not_found(what: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not-found", format!("there is no such {what} here"))
    }

    pub(crate) fn busy(kind: &'static str, detail: impl Into<String>) -> Problem {
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, kind, detail);
        Problem { again_in: Some(Duration::from_secs(1)), ..problem }
    }

    pub(crate) fn unavailable(kind: &'static str, detail: impl Into<String>) -> Problem {
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, kind, detail);
        Problem { again_in: Some(Duration::from_secs(1)), ..problem }
    }

    /// An error of ours: told to the log, and not to the client.
    pub(crate) fn internal(error: &dyn std::fmt::Display) -> Problem {
        // As a text, which is written with its control characters escaped: a client's words may be in it.
        tracing::error!(error = error.to_string(), "a request could not be served");
        let detail = "the service has failed at this: its log says why";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    pub fn of_record(self, record_id: &str) -> Problem {
        Problem { record_id: Some(record_id.to_owned()), ..self }
    }

    fn refused(class: FailureClass, why: &str) -> Problem {
        let status = match class {
            FailureClass::QuotaExceeded => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::FORBIDDEN,
        };
        // One flag at most is in a sentence.
        let flag = FIELDS.iter().find(|(flag, _)| why.contains(flag));
        let detail = flag.map_or_else(|| why.to_owned(), |(flag, field)| why.replace(flag, field));
        let field = flag.map(|(_, field)| (*field).to_owned());
        Problem { failure_class: Some(class), field, ..Problem::new(status, "refused", detail) }
    }

    pub fn to_contract(&self) -> HttpProblem {
        HttpProblem {
            kind: format!("urn:hotcell:problem:{}", self.kind),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: cut(&self.detail, MAX_DETAIL),
            field: self.field.as_deref().map(|field| cut(field, MAX_FIELD)),
            failure_class: self.failure_class,
            record_id: self.record_id.clone(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.to_contract()).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        self.put_headers(response.headers_mut());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

impl Problem {
    /// What is said beside the body.
    pub(crate) fn put_headers(&self, headers: &mut HeaderMap) {
        if let Some(again_in) = self.again_in {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(again_in.as_secs_f64().ceil().max(1.0) as u64));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"hotcell\""));
        }
    }
}

impl From<StateError> for Problem {
    fn from(error: StateError) -> Problem {
        match error {
            StateError::Refused { class, why, again_in } => Problem { again_in, ..Problem::refused(class, &why) },
            StateError::Lease(why) => Problem::refused(FailureClass::LeaseViolation, &why.to_string()),
            StateError::LeaseRequired => {
                let problem =
                    Problem::refused(FailureClass::LeaseViolation, "a run needs a lease here: give --lease FILE");
                Problem { field: Some("lease".into()), ..problem }
            }
            StateError::NotEnabled(what) => {
                Problem::refused(FailureClass::PolicyViolation, &format!("`{what}` is not enabled here"))
            }
            StateError::Unknown { what, .. } => Problem::not_found(what),
            StateError::Decided { .. } => {
                Problem::new(StatusCode::CONFLICT, "decided", "it waits for no decision any more")
            }
            StateError::Intent(why) => Problem::new(StatusCode::CONFLICT, "intent", why),
            StateError::LeaseForVerify => Problem::field("lease", "a lease is for runs: leave it out"),
            other => Problem::internal(&other),
        }
    }
}

impl From<PolicyError> for Problem {
    fn from(error: PolicyError) -> Problem {
        match error {
            PolicyError::Refused { policy, class, why } => {
                Problem::refused(class, &format!("the policy {policy} refuses this: {why}"))
            }
            PolicyError::Unknown { name, known } => {
                let detail = format!("`{}` is not a policy that is known here: use one of {known}", shown(&name));
                Problem::field("policy_id", detail)
            }
            PolicyError::NoHosts => Problem::field("allowed_hosts", "a network that is restricted needs hosts"),
            PolicyError::HostsOfNothing => {
                Problem::field("allowed_hosts", "hosts are for a network that is restricted: leave them out")
            }
            PolicyError::BuiltIn(id) => {
                Problem::new(StatusCode::CONFLICT, "built-in", format!("`{id}` is built in: use another policy_id"))
            }
            error @ (PolicyError::Syntax(_) | PolicyError::Wrong(_)) => Problem::field("policy", error.to_string()),
            PolicyError::Backend(BackendError::Network { network }) => {
                Problem::field("network", format!("`{network}` is not possible with the runtime of this policy"))
            }
            // These name a place of the host's.
            PolicyError::Backend(
                error @ (BackendError::NotOne { .. } | BackendError::NoVersion { .. } | BackendError::Image(_)),
            ) => {
                tracing::error!(error = error.to_string(), "a policy cannot be met");
                Problem::unavailable("backend", "this host cannot meet the policy: its log says why")
            }
            PolicyError::Backend(error) => Problem::unavailable("backend", error.to_string()),
            PolicyError::File { .. } => Problem::internal(&error),
        }
    }
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Problem {
        Problem::internal(&error)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        Problem::internal(&error)
    }
}

impl From<ExecuteError> for Problem {
    fn from(error: ExecuteError) -> Problem {
        match error {
            ExecuteError::Plan(PlanError::Limit { name, value, range }) => {
                Problem::field("limits", format!("the {name} limit of {value} is out of range: give {range}"))
            }
            ExecuteError::Plan(PlanError::BadEnvironment(name)) => {
                let detail = format!("`{name}` has a name that is empty or has `=` or NUL in it, or NUL in its value");
                Problem::field("environment", detail)
            }
            ExecuteError::Plan(PlanError::NulByte) => Problem::field("args", "an argument has a NUL byte in it"),
            ExecuteError::Plan(PlanError::NoProgram) => Problem::field("command", "no program was given"),
            // These name a language, a tool or a package.
            ExecuteError::Plan(
                error @ (PlanError::Language(_) | PlanError::NotOfTheSystem(_) | PlanError::CapsuleOfWhat),
            ) => Problem::field("language", error.to_string()),
            ExecuteError::Plan(PlanError::State(why)) => Problem::field("state", why),
            ExecuteError::NothingToCheck { why, .. } => {
                Problem::field("files", format!("nothing of it could be checked: {why}"))
            }
            ExecuteError::Sandbox(SandboxError::Cancelled { .. }) => {
                Problem::new(StatusCode::CONFLICT, "cancelled", "it was called off before the program began")
            }
            ExecuteError::Sandbox(SandboxError::NoTerminal) => Problem::field("terminal", error.to_string()),
            ExecuteError::Sandbox(SandboxError::Missing { layer }) => {
                Problem::unavailable("layer", format!("`{layer}` is required and this host does not give it"))
            }
            ExecuteError::Sandbox(SandboxError::SetUp { error, .. } | SandboxError::Io { error, .. })
                if is_shortage(&error) =>
            {
                Problem::unavailable("shortage", format!("the host is short of something: {}", plain(&error)))
            }
            other => Problem::internal(&other),
        }
    }
}

/// Of files, processes or memory: it passes.
pub(crate) fn is_shortage(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM | Errno::NOSPC))
}

fn plain(error: &std::io::Error) -> &'static str {
    use rustix::io::Errno;
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE | Errno::NFILE) => "open files",
        Some(Errno::AGAIN) => "processes",
        _ => "memory",
    }
}
