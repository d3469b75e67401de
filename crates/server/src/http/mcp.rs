//! Messages of MCP: for whoever may run something, and no slower than other bodies.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::Request;
use hotcell_contract::KeyScope;
use http_body_util::Full;

use super::{Answer, body};
use crate::auth::Caller;
use crate::mcp;
use crate::service::Service;
use crate::settings::{MAX_MESSAGE, MESSAGE_WEIGHT};

pub(super) async fn message(State(service): State<Arc<Service>>, caller: Caller, request: Request<Body>) -> Answer {
    caller.may(KeyScope::Run)?;
    body::is_json(request.headers())?;
    let (parts, body) = request.into_parts();
    let read = body::read_at_most(&service, &caller, &parts.headers, body, MAX_MESSAGE, MESSAGE_WEIGHT).await?;
    let (bytes, counted) = read.into_parts();
    let bytes = Bytes::from(bytes);
    mcp::post(&service, caller, Request::from_parts(parts, Full::new(bytes.clone())), &bytes, counted).await
}
