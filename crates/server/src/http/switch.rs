//! The kill switch: seen by those whom it is for, turned by the operator.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use hotcell_contract::{KeyScope, SwitchList, SwitchRequest, SwitchState, is_id};
use hotcell_engine::{State as Kept, Switch, now};
use serde::Deserialize;

use super::{Answer, body, json, query};
use crate::auth::Caller;
use crate::problem::Problem;
use crate::service::Service;

/// A sentence.
const MAX_REASON: usize = 1000;

fn told(caller: &Caller, switches: Vec<Switch>) -> SwitchList {
    let is_shown = |switch: &Switch| {
        caller.has(KeyScope::Admin) || switch.tenant.as_ref().is_none_or(|tenant| *tenant == caller.tenant)
    };
    let on = switches.into_iter().filter(is_shown);
    let on = on.map(|s| SwitchState { tenant_id: s.tenant, reason: s.reason, by: s.by, since: s.since });
    SwitchList { on: on.collect() }
}

fn is_tenant(tenant: Option<&String>) -> Result<(), Problem> {
    match tenant.filter(|tenant| !is_id(tenant)) {
        Some(_) => Err(Problem::field("tenant_id", "it is no id: give 1 to 64 letters, digits, `_` or `-`")),
        None => Ok(()),
    }
}

pub(super) async fn status(State(service): State<Arc<Service>>, caller: Caller) -> Answer {
    caller.may(KeyScope::Read)?;
    let switches = service.look(|_, state| Ok(state.switches()?)).await?;
    json(StatusCode::OK, &told(&caller, switches))
}

pub(super) async fn on(State(service): State<Arc<Service>>, caller: Caller, headers: HeaderMap, body: Body) -> Answer {
    caller.may(KeyScope::Admin)?;
    let asked: SwitchRequest = body::read(&service, &caller, &headers, body).await?.json(&headers)?;
    is_tenant(asked.tenant_id.as_ref())?;
    if asked.reason.is_empty() || asked.reason.len() > MAX_REASON {
        return Err(Problem::field("reason", format!("give 1 to {MAX_REASON} bytes")));
    }
    let switches = service.blocking(move |service| {
        // It waits for runs to end: nobody else is to wait for it.
        let mut state = Kept::open(&service.settings.state_dir)?;
        let switch = Switch { tenant: asked.tenant_id, reason: asked.reason, by: caller.name(), since: now() };
        state.switch_on(&switch)?;
        Ok(told(&caller, state.switches()?))
    });
    json(StatusCode::OK, &switches.await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whose {
    tenant_id: Option<String>,
}

pub(super) async fn off(State(service): State<Arc<Service>>, caller: Caller, uri: Uri) -> Answer {
    caller.may(KeyScope::Admin)?;
    let Whose { tenant_id } = query(&uri)?;
    is_tenant(tenant_id.as_ref())?;
    let switches = service.look(move |_, state| {
        state.switch_off(tenant_id.as_deref(), &caller.name())?;
        Ok(told(&caller, state.switches()?))
    });
    json(StatusCode::OK, &switches.await?)
}
