//! Questions that a policy asks before a run: a tenant sees his own, the operator all, and answers them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use hotcell_contract::{Approval, ApprovalList, Decision, KeyScope};
use hotcell_engine::{after, now};

use super::{Answer, Id, body, json};
use crate::auth::Caller;
use crate::problem::Problem;
use crate::service::Service;

/// How long a yes stands, and how long it may.
const USUAL: u64 = 3600;
const LONGEST: u64 = 24 * 3600;

fn is_shown(caller: &Caller, approval: &Approval) -> bool {
    caller.has(KeyScope::Admin) || approval.tenant_id.as_deref() == Some(&caller.tenant)
}

pub(super) async fn list(State(service): State<Arc<Service>>, caller: Caller) -> Answer {
    caller.may(KeyScope::Read)?;
    let approvals = service.look(move |_, state| {
        Ok(state.approvals()?.into_iter().filter(|approval| is_shown(&caller, approval)).collect())
    });
    json(StatusCode::OK, &ApprovalList { approvals: approvals.await? })
}

pub(super) async fn show(State(service): State<Arc<Service>>, caller: Caller, Id(id): Id) -> Answer {
    caller.may(KeyScope::Read)?;
    let approval = service.look(move |_, state| {
        let approval = state.approval(&id)?;
        if is_shown(&caller, &approval) { Ok(approval) } else { Err(Problem::not_found("approval")) }
    });
    json(StatusCode::OK, &approval.await?)
}

pub(super) async fn decide(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Id(id): Id,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    caller.may(KeyScope::Admin)?;
    let asked: Decision = body::read(&service, &caller, &headers, body).await?.json(&headers)?;
    let seconds = asked.valid_for_seconds.unwrap_or(USUAL);
    if !(1..=LONGEST).contains(&seconds) {
        return Err(Problem::field("valid_for_seconds", format!("it is {seconds}: give 1 to {LONGEST}")));
    }
    let decided = service.look(move |_, state| {
        let until = asked.grant.then(|| after(&now(), Duration::from_secs(seconds))).flatten();
        Ok(state.decide(&id, until.as_deref(), &caller.name(), asked.reason.as_deref())?)
    });
    json(StatusCode::OK, &decided.await?)
}
