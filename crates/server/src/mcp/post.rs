//! MCP over HTTP: each request by itself. The answer is JSON, or a stream of events where there is progress to tell.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use hotcell_engine::new_id;
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;
use tokio::sync::watch;

use super::agent::{Agent, Held};
use super::open::Name;
use super::progress::MAX_WORD;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::service::Service;
use crate::settings::{MAX_MESSAGE, STREAM_PULSE};
use crate::share::Share;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// As much of a message as has to be known before it is handed over.
#[derive(Deserialize)]
struct Message {
    method: Option<String>,
    id: Option<Value>,
}

#[derive(Deserialize)]
struct Cancelled {
    params: CancelledParams,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request_id: Value,
}

/// `request` is one whose caller is known and whose body is whole, and JSON by its name.
pub(crate) async fn post(
    service: &Arc<Service>,
    caller: Caller,
    request: Request<Full<axum::body::Bytes>>,
    bytes: &[u8],
    counted: Share,
) -> Result<Response, Problem> {
    let bad = |why: String| Problem::new(StatusCode::BAD_REQUEST, "json", why);
    let message: Message = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Data => bad("the body is no message of JSON-RPC: send one at a time".into()),
        _ => bad(format!("the body is not JSON: {error}")),
    })?;
    if message.id.as_ref().and_then(Value::as_str).is_some_and(|id| id.len() > MAX_WORD) {
        return Err(bad(format!("the `id` of the message has more than {MAX_WORD} bytes: give less")));
    }
    let session = session_of(request.headers());
    let name = |id: &Value| {
        let (tenant, session) = (caller.tenant.clone(), session.clone()?);
        Some(Name { tenant, session, id: id.to_string() })
    };
    let method = message.method.as_deref().unwrap_or_default();
    if method == "notifications/cancelled" {
        let cancelled: Option<Cancelled> = serde_json::from_slice(bytes).ok();
        if let Some(name) = cancelled.and_then(|cancelled| name(&cancelled.params.request_id)) {
            service.calls.take_back(&name);
        }
    }
    let (taken_back, gone) = watch::channel(false);
    let listed = message.id.as_ref().and_then(name).and_then(|name| service.calls.list(name, taken_back));
    let held = Arc::new(Held { _listed: listed, size: bytes.len(), counted: Mutex::new(Some(counted)) });
    let for_agent = Arc::clone(service);
    let make = move || {
        let held = Arc::clone(&held);
        Ok(Agent { service: Arc::clone(&for_agent), caller: caller.clone(), gone: gone.clone(), held })
    };
    let answer = StreamableHttpService::new(make, Arc::new(NeverSessionManager::default()), config());
    let mut response = answer.handle(request).await.map(Body::new);
    if response.status().is_client_error() || response.status().is_server_error() {
        return told(response).await;
    }
    if method == "initialize" {
        let word = HeaderValue::from_str(&new_id()).map_err(|e| Problem::internal(&e))?;
        response.headers_mut().insert(SESSION, word);
    }
    Ok(response)
}

/// Hosts, origins and keys have been looked at before, as for every other request.
fn config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(Some(STREAM_PULSE))
        .with_max_request_body_bytes(MAX_MESSAGE)
}

fn session_of(headers: &HeaderMap) -> Option<String> {
    let word = headers.get(SESSION)?.to_str().ok()?;
    (1..=MAX_WORD).contains(&word.len()).then(|| word.to_owned())
}

/// An error of the protocol is told as it is; what is no JSON becomes a problem like every other.
async fn told(response: Response) -> Result<Response, Problem> {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/json") {
        return Ok(response);
    }
    // The kind was looked at before: it is the message that it could not read.
    let status = match response.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
        status => status,
    };
    let why = response.into_body().collect().await.map_err(|e| Problem::internal(&e))?.to_bytes();
    Err(Problem::new(status, "mcp", String::from_utf8_lossy(&why)))
}
