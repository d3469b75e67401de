//! Policies: those that a caller may run under; all of them, and new ones, for the operator.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use hotcell_contract::{KeyScope, KnownPolicy, Policy, PolicyList};
use hotcell_engine::{Known, PolicyError, refused_here};
use serde_json::json;

use super::{Answer, Id, body, json};
use crate::auth::Caller;
use crate::problem::Problem;
use crate::service::Service;

fn is_shown(service: &Service, caller: &Caller, known: &Known) -> bool {
    caller.has(KeyScope::Admin) || service.policy_for(caller, Some(&known.policy.policy_id)).is_ok()
}

/// Why not may name a place of the host's: that is for the operator.
fn told(caller: &Caller, known: Known) -> KnownPolicy {
    let refused = refused_here(&known.policy);
    let refused = match caller.has(KeyScope::Admin) {
        true => refused,
        false => refused.map(|_| "this host cannot meet it".into()),
    };
    KnownPolicy { built_in: known.built_in, refused, policy: known.policy }
}

pub(super) async fn list(State(service): State<Arc<Service>>, caller: Caller) -> Answer {
    caller.may(KeyScope::Read)?;
    let policies = service.blocking(move |service| {
        let all = service.policies.list()?;
        let shown = all.into_iter().filter(|known| is_shown(service, &caller, known));
        Ok(shown.map(|known| told(&caller, known)).collect())
    });
    json(StatusCode::OK, &PolicyList { policies: policies.await? })
}

pub(super) async fn show(State(service): State<Arc<Service>>, caller: Caller, Id(id): Id) -> Answer {
    caller.may(KeyScope::Read)?;
    let found = service.blocking(move |service| {
        let unknown = || Problem::not_found("policy");
        let known = match service.policies.get(&id) {
            Err(PolicyError::Unknown { .. }) => return Err(unknown()),
            known => known?,
        };
        if is_shown(service, &caller, &known) { Ok(told(&caller, known)) } else { Err(unknown()) }
    });
    json(StatusCode::OK, &found.await?)
}

pub(super) async fn define(
    State(service): State<Arc<Service>>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    caller.may(KeyScope::Admin)?;
    let policy: Policy = body::read(&service, &caller, &headers, body).await?.json(&headers)?;
    let defined = service.look(move |service, state| {
        let policy = service.policies.define_as(&policy)?;
        state.note("policy_event.DEFINED", json!({ "policy": policy, "by": caller.name() }))?;
        Ok(KnownPolicy { built_in: false, refused: refused_here(&policy), policy })
    });
    json(StatusCode::CREATED, &defined.await?)
}

pub(super) async fn delete(State(service): State<Arc<Service>>, caller: Caller, Id(id): Id) -> Answer {
    caller.may(KeyScope::Admin)?;
    let deleted = service.look(move |service, state| {
        let policy = match service.policies.delete(&id) {
            Err(PolicyError::Unknown { .. }) => return Err(Problem::not_found("policy")),
            deleted => deleted?,
        };
        state.note("policy_event.DELETED", json!({ "policy": policy, "by": caller.name() }))?;
        Ok(KnownPolicy { built_in: false, refused: None, policy })
    });
    json(StatusCode::OK, &deleted.await?)
}
