//! The routes, and what is true of every answer.

mod approvals;
mod artifacts;
mod attach;
pub(crate) mod body;
mod events;
pub(crate) mod languages;
mod leases;
pub(crate) mod listen;
mod mcp;
mod page;
mod patient;
mod policies;
mod records;
pub(crate) mod runs;
mod status;
mod switch;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use serde::de::DeserializeOwned;

use crate::auth::{self, Caller};
use crate::piston;
use crate::problem::Problem;
use crate::service::Service;

type Answer = Result<Response, Problem>;

pub(crate) fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/v1/runs", post(runs::create))
        .route("/v1/runs/{id}", get(runs::show).delete(runs::cancel))
        .route("/v1/runs/{id}/events", get(events::stream))
        .route("/v1/runs/{id}/artifacts", get(artifacts::list))
        .route("/v1/runs/{id}/artifacts/{*name}", get(artifacts::fetch))
        .route("/v1/runs/{id}/attach", get(attach::attach))
        .route("/v1/verify", post(runs::verify))
        .route("/v1/policies", get(policies::list).post(policies::define))
        .route("/v1/policies/{id}", get(policies::show).delete(policies::delete))
        .route("/v1/leases", get(leases::list).post(leases::issue))
        .route("/v1/leases/{id}", delete(leases::revoke))
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/{id}", get(approvals::show).post(approvals::decide))
        .route("/v1/records", get(records::list))
        .route("/v1/records/{id}", get(records::show))
        .route("/v1/stats", get(records::stats))
        .route("/v1/languages", get(languages::list))
        .route("/v1/killswitch", get(switch::status).post(switch::on).delete(switch::off))
        .route("/mcp", post(mcp::message))
        .route("/", get(page::page))
        .route("/openapi.json", get(page::document))
        .route("/healthz", get(status::healthz))
        .route("/readyz", get(status::readyz))
        .route("/version", get(status::version))
        .route("/metrics", get(status::metrics))
        .merge(piston::router())
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "this can't be done here: see /openapi.json")
        })
        .fallback(|| async { Problem::not_found("place") })
        .layer(from_fn_with_state(Arc::clone(&service), around))
        .with_state(service)
}

/// Counts every answer, and says of each what a browser may do with it: nothing.
async fn around(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let method = known_method(request.method());
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let mut response = next.run(request).await;
    service.metrics.answered(method, route.as_deref().unwrap_or("none"), response.status().as_u16());
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static("default-src 'none'; sandbox"));
    response
}

/// A client may write any word: those of ours are counted by name.
fn known_method(method: &axum::http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

impl FromRequestParts<Arc<Service>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Caller, Problem> {
        auth::caller(service, &parts.headers)
    }
}

/// The id in a path. What is none is nothing that is there.
struct Id(String);

impl FromRequestParts<Arc<Service>> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Id, Problem> {
        let id = axum::extract::Path::<String>::from_request_parts(parts, service).await;
        id.map(|id| Id(id.0)).map_err(|_| Problem::not_found("thing"))
    }
}

/// What stands behind the question mark, all of it known.
fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let parsed = axum::extract::Query::try_from_uri(uri);
    parsed.map(|query| query.0).map_err(|e| Problem::field("query", format!("the query is wrong: {}", e.body_text())))
}

fn json<T: serde::Serialize>(status: StatusCode, value: &T) -> Answer {
    let body = serde_json::to_vec(value).map_err(|e| Problem::internal(&e))?;
    let content_type = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok((status, [content_type], body).into_response())
}
