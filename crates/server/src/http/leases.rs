//! Leases: issued, listed, taken back; by the operator alone. One that is issued here shows nothing of the host to a program:
//! no path of it comes over the network.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use hotcell_contract::{IssuedLeaseText, KeyScope, LeaseList, LeaseRequest, LeaseSummary, RevokedLease};
use hotcell_engine::{NewLease, Role, State as Kept, StateError, capabilities, new_lease, text_of};
use serde::Deserialize;

use super::{Answer, Id, body, json, query};
use crate::auth::Caller;
use crate::problem::Problem;
use crate::service::Service;

pub(super) async fn list(State(service): State<Arc<Service>>, caller: Caller) -> Answer {
    caller.may(KeyScope::Admin)?;
    let leases = service.look(|_, state| Ok(state.leases()?)).await?;
    let leases = leases.into_iter().map(|lease| LeaseSummary {
        lease_id: lease.lease_id,
        actor: lease.actor,
        intent_id: lease.intent_id,
        issued_at: lease.issued_at,
        expires_at: lease.expires_at,
        max_runs: lease.max_runs,
        runs: lease.runs,
        revoked_by: lease.revoked_by,
    });
    json(StatusCode::OK, &LeaseList { leases: leases.collect() })
}

pub(super) async fn issue(
    State(service): State<Arc<Service>>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    caller.may(KeyScope::Admin)?;
    let asked: LeaseRequest = body::read(&service, &caller, &headers, body).await?.json(&headers)?;
    let issued = service.look(move |service, state| {
        let new = NewLease {
            actor: asked.actor,
            intent_id: asked.intent_id,
            commands: asked.commands,
            env_allowlist: asked.environment,
            hosts: asked.hosts,
            valid_for: asked.valid_for_seconds.map(Duration::from_secs),
            cpus: asked.cpus,
            memory_mb: asked.memory_mb,
            timeout_s: asked.timeout_seconds,
            open_files: asked.open_files,
            max_runs: asked.max_runs,
            holder_key: asked.holder_key,
            ..NewLease::default()
        };
        let far = || Problem::field("valid_for_seconds", "it leads out of the calendar: give less");
        let lease = new_lease(new).ok_or_else(far)?;
        let settings = &service.settings;
        let capabilities = capabilities(Some(&settings.state_dir), settings.config_dir.as_deref())?;
        let no_key = |_| {
            Problem::new(
                StatusCode::CONFLICT,
                "no-key",
                "there is no key to sign with: `hotcell lease keygen` makes one",
            )
        };
        let key = state.keys().current(Role::Issuer).map_err(no_key)?;
        let lease = state.issue(lease, &key, &capabilities).map_err(|error| match error {
            // What is wrong with what was asked is no violation of a lease.
            StateError::Lease(why) => Problem::field("lease", why.to_string()),
            other => other.into(),
        })?;
        let text = text_of(&lease).map_err(|e| Problem::internal(&e))?;
        Ok(IssuedLeaseText { lease_id: lease.lease_id, expires_at: lease.expires_at, lease: text })
    });
    json(StatusCode::CREATED, &issued.await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Why {
    reason: Option<String>,
}

pub(super) async fn revoke(State(service): State<Arc<Service>>, caller: Caller, uri: Uri, Id(id): Id) -> Answer {
    caller.may(KeyScope::Admin)?;
    let Why { reason } = query(&uri)?;
    let reason = reason.unwrap_or_else(|| "by the API".into());
    let revoked = service.blocking(move |service| {
        // It waits for runs to end: nobody else is to wait for it.
        let mut state = Kept::open(&service.settings.state_dir)?;
        let done = state.revoke(&id, &caller.name(), &reason)?;
        Ok(RevokedLease { lease_id: id, told: done.told as u64, known: done.known })
    });
    json(StatusCode::OK, &revoked.await?)
}
