//! What was run and what was refused: a tenant's own, and everybody's for the operator.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use hotcell_contract::{KeyScope, RecordList, RecordStatus};
use hotcell_engine::{Filter, parse_time};
use serde::Deserialize;

use super::{Answer, Id, json, query};
use crate::auth::Caller;
use crate::problem::Problem;
use crate::service::Service;

/// Of a page.
const USUAL: u64 = 50;
const MOST: u64 = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    tenant_id: Option<String>,
    user_id: Option<String>,
    run_id: Option<String>,
    status: Option<String>,
    language: Option<String>,
    policy_id: Option<String>,
    since: Option<String>,
    until: Option<String>,
    before: Option<String>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whose {
    tenant_id: Option<String>,
}

/// The operator may look at any tenant, and at all of them; others at their own.
fn tenant(caller: &Caller, asked: Option<String>) -> Result<Option<String>, Problem> {
    match asked {
        asked if caller.has(KeyScope::Admin) => Ok(asked),
        Some(other) if other != caller.tenant => {
            let problem = Problem::field("tenant_id", "this is not the tenant of this key: leave it out");
            Err(Problem { status: StatusCode::FORBIDDEN, ..problem })
        }
        _ => Ok(Some(caller.tenant.clone())),
    }
}

pub(super) async fn list(State(service): State<Arc<Service>>, caller: Caller, uri: Uri) -> Answer {
    caller.may(KeyScope::Read)?;
    let which: Which = query(&uri)?;
    let status = which.status.map(|name| {
        let all = || RecordStatus::ALL.map(RecordStatus::name).join(", ");
        RecordStatus::named(&name).ok_or_else(|| Problem::field("status", format!("it is none: use one of {}", all())))
    });
    let time = |field: &'static str, text: Option<String>| {
        let wrong = || Problem::field(field, "it is no time: write 2026-11-15 or 2026-11-15T12:00:00Z");
        text.map(|text| parse_time(&text).ok_or_else(wrong)).transpose()
    };
    let limit = which.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::field("limit", format!("it is {limit}: give 1 to {MOST}")));
    }
    let filter = Filter {
        tenant: tenant(&caller, which.tenant_id)?,
        user: which.user_id,
        run: which.run_id,
        status: status.transpose()?,
        language: which.language,
        policy: which.policy_id,
        since: time("since", which.since)?,
        until: time("until", which.until)?,
        before: which.before,
        // One more, to know whether there is another page.
        limit: limit + 1,
    };
    let mut records = service.look(move |_, state| Ok(state.records(&filter)?)).await?;
    let is_more = records.len() as u64 > limit;
    records.truncate(limit as usize);
    let next = records.last().filter(|_| is_more).map(|record| record.record_id.clone());
    json(StatusCode::OK, &RecordList { records, next })
}

pub(super) async fn show(State(service): State<Arc<Service>>, caller: Caller, Id(id): Id) -> Answer {
    caller.may(KeyScope::Read)?;
    let record = service.look(move |_, state| {
        let is_shown = caller.has(KeyScope::Admin);
        let found = state.record(&id)?.filter(|record| is_shown || record.tenant_id.as_deref() == Some(&caller.tenant));
        found.ok_or_else(|| Problem::not_found("record"))
    });
    json(StatusCode::OK, &record.await?)
}

pub(super) async fn stats(State(service): State<Arc<Service>>, caller: Caller, uri: Uri) -> Answer {
    caller.may(KeyScope::Read)?;
    let Whose { tenant_id } = query(&uri)?;
    let whose = tenant(&caller, tenant_id)?;
    json(StatusCode::OK, &service.look(move |_, state| Ok(state.stats(whose.as_deref())?)).await?)
}
