//! A program, waited for: the answer has its stages.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use hotcell_contract::KeyScope;
use serde_json::Value;

use super::answer::Answer;
use super::request::Asked;
use super::{Caller, Refusal, json};
use crate::http::body;
use crate::run::How;
use crate::service::Service;
use crate::transcript::Transcript;
use crate::waiting;

pub(super) async fn execute(
    State(service): State<Arc<Service>>,
    Caller(caller): Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    caller.may(KeyScope::Run)?;
    let read = body::read(&service, &caller, &headers, body).await?;
    let bytes = read.bytes().len();
    let body = match read.bytes() {
        // As if it were `{}`.
        [] => Value::Null,
        bytes => serde_json::from_slice(bytes).map_err(|e| Refusal::bad(format!("the body is not JSON: {e}")))?,
    };
    drop(read);
    let by = caller.clone();
    let asked = service
        .blocking(move |service| Ok(Asked::of(service, &body, bytes).and_then(|asked| asked.with_input(service, &by))));
    let asked = asked.await??;
    let runtime = asked.runtime.clone();
    let transcript = Arc::new(Transcript::default());
    let how = How { transcript: Some(Arc::clone(&transcript)), ..How::default() };
    let submitted = waiting::submit(&service, move |service| asked.submit(service, &caller, how, Ok));
    let (run, waiting) = submitted.await?;
    let ended = run.end().await;
    drop(waiting);
    let outcome = ended?;
    // Up to forty megabytes of text.
    service.blocking(move |_| Ok(json(&Answer::of(&runtime, &outcome, &transcript.take())))).await?
}
