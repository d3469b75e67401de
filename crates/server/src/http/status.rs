//! Whether the service is there, whether it takes runs, what it is, and its numbers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use hotcell_contract::{Health, KeyScope, SCHEMA_VERSION, Version};

use super::{Answer, json};
use crate::auth::Caller;
use crate::problem::Problem;
use crate::service::Service;

/// The process answers.
pub(super) async fn healthz() -> Answer {
    json(StatusCode::OK, &Health { status: "ok".into() })
}

/// Runs are taken and can be written down.
pub(super) async fn readyz(State(service): State<Arc<Service>>) -> Answer {
    if *service.closing.borrow() {
        return Err(Problem::unavailable("closing", "the service is about to end"));
    }
    if !service.launcher.is_up() {
        return Err(Problem::unavailable(
            "launcher",
            "nothing can run here any more: the service has to be started again",
        ));
    }
    let switches = service.look(|_, state| Ok(state.switches()?)).await?;
    if switches.iter().any(|switch| switch.tenant.is_none()) {
        return Err(Problem::unavailable("kill-switch", "the kill switch is on: nothing runs"));
    }
    json(StatusCode::OK, &Health { status: "ready".into() })
}

pub(super) async fn version() -> Answer {
    let (name, version) = ("hotcell".into(), env!("CARGO_PKG_VERSION").into());
    json(StatusCode::OK, &Version { name, version, schema_version: SCHEMA_VERSION.into() })
}

pub(super) async fn metrics(State(service): State<Arc<Service>>, caller: Caller) -> Answer {
    caller.may(KeyScope::Admin)?;
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4");
    Ok(([(header::CONTENT_TYPE, content_type)], service.metrics.text(&service)).into_response())
}
