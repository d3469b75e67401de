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

use crate::auth::Caller;
use crate::problem::Problem;
use crate::service::Service;
use crate::settings::{BODY_TIME, MAX_BODY, MAX_MARKS};
use crate::share::Share;

/// Reads a body. As long as it is held, its size is counted among all that are.
pub(crate) struct Read {
    bytes: Vec<u8>,
    counted: Share,
}

pub(crate) async fn read(
    service: &Arc<Service>,
    caller: &Caller,
    headers: &HeaderMap,
    body: Body,
) -> Result<Read, Problem> {
    read_at_most(service, caller, headers, body, MAX_BODY, 1).await
}

/// `weight` is how much of what all bodies may have is taken for each byte of this one.
pub(super) async fn read_at_most(
    service: &Arc<Service>,
    caller: &Caller,
    headers: &HeaderMap,
    body: Body,
    most: usize,
    weight: usize,
) -> Result<Read, Problem> {
    let too_large = || {
        let detail = format!("the body has more than {most} bytes: give less");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    };
    let said = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if said.is_some_and(|size| size > most) {
        return Err(too_large());
    }
    // What has come is counted, and not what was announced: who sends nothing keeps nobody else from it.
    let mut read = Read { bytes: vec![], counted: Share::new(service, &caller.tenant) };
    let mut body = Limited::new(body, most);
    let coming = async {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
                Some(_) => too_large(),
                None => Problem::new(StatusCode::BAD_REQUEST, "body", "the body ended before it was whole"),
            })?;
            let Ok(part) = frame.into_data() else { continue };
            read.counted.take(part.len() * weight)?;
            read.bytes.extend_from_slice(&part);
        }
        Ok(())
    };
    timeout(BODY_TIME, coming).await.unwrap_or_else(|_| {
        let detail = format!("the body did not come within {} s", BODY_TIME.as_secs());
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", detail))
    })?;
    if marks(&read.bytes) > MAX_MARKS {
        let detail = format!("the JSON has more than {MAX_MARKS} commas, colons and brackets: give less");
        return Err(Problem::field(WHOLE, detail));
    }
    Ok(read)
}

/// What stands between values, outside of strings: a value takes a hundred times as much memory as the three bytes that it
/// can be written in, so they are counted before any is made.
fn marks(json: &[u8]) -> usize {
    let (mut marks, mut in_string, mut escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b':' | b'[' | b'{' if !in_string => marks += 1,
            _ => {}
        }
    }
    marks
}

impl Read {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// It is counted as long as the second is held.
    pub(super) fn into_parts(self) -> (Vec<u8>, Share) {
        (self.bytes, self.counted)
    }

    /// Of what was asked, and where.
    pub(super) fn sha256(&self, path: &str) -> String {
        let hash = Sha256::new().chain_update(path).chain_update([0]).chain_update(&self.bytes).finalize();
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// As JSON. What is wrong is named by its field.
    pub(super) fn json<T: Fields>(&self, headers: &HeaderMap) -> Result<T, Problem> {
        is_json(headers)?;
        understand(&self.bytes)
    }
}

pub(super) fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = "the body must be JSON: send it with `Content-Type: application/json`";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail))
}

/// What was written, field by field. What is wrong is named by its field.
fn understand<T: Fields>(bytes: &[u8]) -> Result<T, Problem> {
    // What is no JSON is found by who reads it.
    let misplaced = serde_json::from_slice(bytes).ok().and_then(|value| misplaced_list::<T>(&value));
    if misplaced.as_deref() == Some(WHOLE) {
        return Err(list(WHOLE.into()));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(wrong)?;
    reader.end().map_err(|e| {
        Problem::new(StatusCode::BAD_REQUEST, "json", format!("there is something behind the JSON: {e}"))
    })?;
    misplaced.map_or(Ok(value), |field| Err(list(field)))
}

/// The same, of what is JSON already.
pub(crate) fn understand_value<T: Fields>(value: Value) -> Result<T, Problem> {
    let misplaced = misplaced_list::<T>(&value);
    let value = serde_path_to_error::deserialize(value).map_err(wrong)?;
    misplaced.map_or(Ok(value), |field| Err(list(field)))
}

fn list(field: String) -> Problem {
    Problem::field(field.clone(), format!("`{field}` is wrong: it is a list"))
}

fn wrong(error: serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let path = error.path().to_string();
    let inner = error.into_inner();
    match inner.classify() {
        serde_json::error::Category::Data => {
            let field = if path == "." { WHOLE.to_owned() } else { path };
            Problem::field(field.clone(), format!("`{field}` is wrong: {inner}"))
        }
        _ => Problem::new(StatusCode::BAD_REQUEST, "json", format!("the body is not JSON: {inner}")),
    }
}

/// What the body itself is called in a problem.
const WHOLE: &str = "body";

/// What can come as a body.
pub(crate) trait Fields: DeserializeOwned {
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

/// A list in the place of an object would be read as its fields in their order, which nobody means.
fn misplaced_list<T: Fields>(value: &Value) -> Option<String> {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Array(_) => return Some(WHOLE.into()),
        _ => return None,
    };
    for (name, value) in fields.iter().filter(|(name, _)| !T::FREE.contains(&name.as_str())) {
        match value {
            Value::Array(_) if !T::LISTS.contains(&name.as_str()) => return Some(name.clone()),
            Value::Object(inner) => {
                let parts = inner.iter().filter(|(_, value)| value.is_array());
                let mut parts = parts.map(|(part, _)| format!("{name}.{part}"));
                if let Some(part) = parts.find(|part| !T::LISTS.contains(&part.as_str())) {
                    return Some(part);
                }
            }
            _ => {}
        }
    }
    None
}
