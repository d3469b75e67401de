//! Bodies: as large as they may be, within the time they may take, of the kind they must be, understood field by field.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use hotcell_contract::{Decision, LeaseRequest, Policy, RunRequest, SwitchRequest};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::problem::Problem;
use crate::service::Service;
use crate::settings::{BODY_TIME, MAX_BODY};

/// Reads a body. As long as it is held, its size is counted among all that are.
pub(super) struct Read {
    bytes: Vec<u8>,
    _counted: tokio::sync::OwnedSemaphorePermit,
}

pub(super) async fn read(service: &Arc<Service>, headers: &HeaderMap, body: Body) -> Result<Read, Problem> {
    let too_large = || {
        let detail = format!("the body has more than {MAX_BODY} bytes: give less");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    };
    let said = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    // One that does not say its size may have the largest.
    let size = said.unwrap_or(MAX_BODY);
    if size > MAX_BODY {
        return Err(too_large());
    }
    let permits = u32::try_from(size.div_ceil(1024).max(1)).unwrap_or(u32::MAX);
    let counted = Arc::clone(&service.bodies)
        .try_acquire_many_owned(permits)
        .map_err(|_| Problem::unavailable("busy", "too many large requests are being read: come back later"))?;
    match timeout(BODY_TIME, Limited::new(body, MAX_BODY).collect()).await {
        Err(_) => {
            let detail = format!("the body did not come within {} s", BODY_TIME.as_secs());
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", detail))
        }
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::new(StatusCode::BAD_REQUEST, "body", "the body ended before it was whole")),
        Ok(Ok(whole)) => Ok(Read { bytes: whole.to_bytes().into(), _counted: counted }),
    }
}

impl Read {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Of what was asked, and where.
    pub(super) fn sha256(&self, path: &str) -> String {
        let hash = Sha256::new().chain_update(path).chain_update([0]).chain_update(&self.bytes).finalize();
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// As JSON. What is wrong is named by its field.
    pub(super) fn json<T: Fields>(&self, headers: &HeaderMap) -> Result<T, Problem> {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_json = kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json");
        if !is_json {
            let detail = "the body must be JSON: send it with `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail));
        }
        let list = |field: String| Problem::field(field.clone(), format!("`{field}` is wrong: it is a list"));
        let misplaced = self.misplaced_list(T::LISTS, T::FREE);
        if misplaced.as_deref() == Some(WHOLE) {
            return Err(list(WHOLE.into()));
        }
        let mut reader = serde_json::Deserializer::from_slice(&self.bytes);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let inner = error.into_inner();
            match inner.classify() {
                serde_json::error::Category::Data => {
                    let why = inner.to_string();
                    let field = unknown_field(&why).map(|name| name.to_owned()).unwrap_or(path);
                    let field = if field == "." { WHOLE.to_owned() } else { field };
                    Problem::field(field.clone(), format!("`{field}` is wrong: {}", why))
                }
                _ => Problem::new(StatusCode::BAD_REQUEST, "json", format!("the body is not JSON: {inner}")),
            }
        })?;
        reader.end().map_err(|e| {
            Problem::new(StatusCode::BAD_REQUEST, "json", format!("there is something behind the JSON: {e}"))
        })?;
        misplaced.map_or(Ok(value), |field| Err(list(field)))
    }
}

/// What the body itself is called in a problem.
const WHOLE: &str = "body";

/// What can come as a body.
pub(super) trait Fields: DeserializeOwned {
    /// Those that are lists: of the outermost level, and `field.part` of the next.
    const LISTS: &'static [&'static str];
    /// The caller's own: anything may be in them.
    const FREE: &'static [&'static str] = &[];
}

impl Fields for RunRequest {
    const LISTS: &'static [&'static str] = &["command", "args", "allowed_hosts", "collect"];
    const FREE: &'static [&'static str] = &["metadata", "state"];
}

impl Fields for Policy {
    const LISTS: &'static [&'static str] =
        &["allowed_hosts", "allowed_languages", "require", "strict_when.paths", "strict_when.words"];
}

impl Fields for LeaseRequest {
    const LISTS: &'static [&'static str] = &["commands", "environment", "hosts"];
}

impl Fields for Decision {
    const LISTS: &'static [&'static str] = &[];
}

impl Fields for SwitchRequest {
    const LISTS: &'static [&'static str] = &[];
}

impl Read {
    /// A list in the place of an object would be read as its fields in their order, which nobody means. What is no JSON is
    /// found by who reads it.
    fn misplaced_list(&self, lists: &[&str], free: &[&str]) -> Option<String> {
        let fields = match serde_json::from_slice(&self.bytes).ok()? {
            Value::Object(fields) => fields,
            Value::Array(_) => return Some(WHOLE.into()),
            _ => return None,
        };
        for (name, value) in fields.iter().filter(|(name, _)| !free.contains(&name.as_str())) {
            match value {
                Value::Array(_) if !lists.contains(&name.as_str()) => return Some(name.clone()),
                Value::Object(inner) => {
                    let parts = inner.iter().filter(|(_, value)| value.is_array());
                    let mut parts = parts.map(|(part, _)| format!("{name}.{part}"));
                    if let Some(part) = parts.find(|part| !lists.contains(&part.as_str())) {
                        return Some(part);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

fn unknown_field(why: &str) -> Option<&str> {
    why.strip_prefix("unknown field `")?.split('`').next()
}
