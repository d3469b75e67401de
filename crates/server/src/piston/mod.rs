//! The API of Piston, version 2, over the same runs: for clients that speak it already.
//!
//!   runtimes   GET /api/v2/runtimes: what can be run here, in Piston's words
//!   execute    POST /api/v2/execute: a program, waited for
//!   connect    /api/v2/connect: a WebSocket to a program that goes
//!
//!   request    from Piston's fields and their limits to a Job
//!   answer     from an Outcome to Piston's stages
//!   selector   versions, as npm selects them
//!
//! Nothing is decided here. The policy, quotas, keys and tenants are those of every run.

mod answer;
mod connect;
mod execute;
mod request;
mod runtimes;
mod selector;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde::Serialize;
use serde_json::json;

use crate::auth;
use crate::problem::Problem;
use crate::service::Service;

pub(crate) fn router() -> Router<Arc<Service>> {
    let nothing = || async { Refusal::not_found() };
    let routes = Router::new()
        .route("/runtimes", get(runtimes::list))
        .route("/execute", post(execute::execute))
        .route("/connect", get(connect::connect))
        .method_not_allowed_fallback(nothing)
        .fallback(nothing);
    Router::new().nest("/api/v2", routes).route("/api/v2/", any(nothing)).layer(from_fn(only_json))
}

/// Also before anything is looked for, as there.
async fn only_json(request: Request, next: Next) -> Response {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_question = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    if !is_question && !kind.starts_with("application/json") {
        let message = "requests must be of type application/json";
        return Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).into_response();
    }
    next.run(request).await
}

/// Why something was not done, as Piston says it: `{"message": "..."}`.
pub(super) struct Refusal(Problem);

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Refusal {
        Refusal(Problem::new(status, "piston", message))
    }

    fn bad(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, message)
    }

    fn not_found() -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, "Not Found")
    }

    fn message(&self) -> String {
        self.0.to_contract().detail
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        // A field that is wrong has no status of its own there.
        let status = match problem.status {
            StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
            other => other,
        };
        Refusal(Problem { status, ..problem })
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.0.status, json!({ "message": self.message() }).to_string()).into_response();
        let headers = response.headers_mut();
        self.0.put_headers(headers);
        headers.insert(header::CONTENT_TYPE, JSON);
        response
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

fn json<T: Serialize>(value: &T) -> Result<Response, Refusal> {
    let body = serde_json::to_vec(value).map_err(|e| Problem::internal(&e))?;
    Ok(([(header::CONTENT_TYPE, JSON)], body).into_response())
}

/// Who asks: its clients send a key as `Authorization` by itself.
pub(super) struct Caller(auth::Caller);

impl FromRequestParts<Arc<Service>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Caller, Refusal> {
        Ok(Caller(auth::caller_with_bare_key(service, &parts.headers)?))
    }
}
