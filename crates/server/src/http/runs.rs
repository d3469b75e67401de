//! Runs: asked for, looked at, called off.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use hotcell_contract::{KeyScope, RunRequest};
use hotcell_engine::{Passed, new_id};
use rustix::pipe::PipeFlags;
use serde::Deserialize;

use super::{Answer, Id, body, json, query};
use crate::auth::Caller;
use crate::convert::{Job, Stdin, job_of, verification_of};
use crate::problem::Problem;
use crate::run::{How, Idempotency, Run};
use crate::service::Service;
use crate::settings::MAX_IDEMPOTENCY_KEY;
use crate::waiting::{self, Waiting};

/// So much output is made JSON of in less time than another thread would take to begin.
const WRITTEN_AT_ONCE: usize = 16 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manner {
    /// Answer when it has ended; otherwise at once.
    #[serde(default = "yes")]
    pub(super) wait: bool,
    /// Let somebody write its input while it runs: it is not waited for then.
    #[serde(default)]
    pub(super) attach: bool,
    /// Let it go on when whoever waits for it goes away.
    #[serde(default)]
    pub(super) keep: bool,
}

fn yes() -> bool {
    true
}

pub(super) async fn create(
    State(service): State<Arc<Service>>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    caller.may(KeyScope::Run)?;
    let manner: Manner = query(&uri)?;
    let manner = Manner { wait: manner.wait && !manner.attach, ..manner };
    let Asked { request, bytes, idempotency } = read(&service, &caller, &uri, &headers, body).await?;
    let by = caller.clone();
    let attach = manner.attach;
    let make = move |service: &Arc<Service>| {
        let job = job_of(service, &by, &request, bytes)?;
        match attach {
            true => with_live_input(job),
            false if job.terminal.is_some() => {
                Err(Problem::field("terminal", "a terminal is for somebody who attaches: ask with `?attach=true`"))
            }
            false => Ok(job),
        }
    };
    ask(&service, &caller, manner, idempotency, make).await
}

pub(super) async fn verify(
    State(service): State<Arc<Service>>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    caller.may(KeyScope::Run)?;
    let manner: Manner = query(&uri)?;
    if manner.attach {
        return Err(Problem::field("query", "a verification reads no input: leave `attach` out"));
    }
    let Asked { request, bytes, idempotency } = read(&service, &caller, &uri, &headers, body).await?;
    let by = caller.clone();
    let make = move |service: &Arc<Service>| verification_of(service, &by, &request, bytes);
    ask(&service, &caller, manner, idempotency, make).await
}

struct Asked {
    request: RunRequest,
    /// What it takes in memory while it waits.
    bytes: usize,
    idempotency: Option<Idempotency>,
}

async fn read(
    service: &Arc<Service>,
    caller: &Caller,
    uri: &Uri,
    headers: &HeaderMap,
    body: Body,
) -> Result<Asked, Problem> {
    let read = body::read(service, caller, headers, body).await?;
    let request = read.json(headers)?;
    Ok(Asked { request, bytes: read.len(), idempotency: idempotency(headers, read.sha256(uri.path()))? })
}

/// What it reads is what somebody writes who attaches.
pub(crate) fn with_live_input(mut job: Job) -> Result<Job, Problem> {
    if matches!(job.stdin, Stdin::Given(_)) {
        return Err(Problem::field("stdin", "with `attach` the input is written while it runs: leave `stdin` out"));
    }
    if job.policy.require_approval {
        let detail = "the policy asks for an approval, which is not for a standard input: leave `attach` out";
        return Err(Problem::field("attach", detail));
    }
    let (from, to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|e| Problem::internal(&e))?;
    (job.stdin, job.to_stdin) = (Stdin::Live(from), Some(to));
    job.passed = Some(Passed::new().map_err(|e| Problem::internal(&e))?);
    Ok(job)
}

/// Puts a job into the queue and answers as it was asked to.
pub(super) async fn ask(
    service: &Arc<Service>,
    caller: &Caller,
    manner: Manner,
    idempotency: Option<Idempotency>,
    make: impl FnOnce(&Arc<Service>) -> Result<Job, Problem> + Send + 'static,
) -> Answer {
    let id = new_id();
    if let Some(asked) = &idempotency
        && let Some((before, id)) = service.results.claim(&caller.tenant, asked, &id)
    {
        return again(service, caller, &manner, asked, &before, &id).await;
    }
    let is_kept = !manner.wait || manner.keep;
    let how = How { is_kept, idempotency: idempotency.clone(), ..How::default() };
    let by = caller.clone();
    let submitted = waiting::submit(service, move |service| {
        let submitted = make(service).and_then(|mut job| {
            let asked_id = job.request.request_id.take().filter(|id| Some(id) != job.request.record_id.as_ref());
            job.request.request_id = Some(asked_id.unwrap_or_else(|| id.clone()));
            job.request.record_id = Some(id);
            service.submit(&by, job, how)
        });
        if submitted.is_err() {
            idempotency.iter().for_each(|asked| service.results.unclaim(&by.tenant, asked));
        }
        submitted
    });
    let (run, waiting) = submitted.await?;
    answer(service, &run, &manner, Some(waiting)).await
}

/// The same was asked before: it is not run again.
async fn again(
    service: &Arc<Service>,
    caller: &Caller,
    manner: &Manner,
    asked: &Idempotency,
    before: &Idempotency,
    id: &str,
) -> Answer {
    if asked.body_sha256 != before.body_sha256 {
        let detail = "this Idempotency-Key was used for another request: use a new one";
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency-key", detail);
        return Err(Problem { field: Some("Idempotency-Key".into()), ..problem });
    }
    if let Some(run) = service.run(&caller.tenant, id) {
        return answer(service, &run, manner, None).await;
    }
    let view = service.view(&caller.tenant, id).map_err(|_| {
        Problem::new(StatusCode::CONFLICT, "idempotency-key", "the same is being asked at this moment: come back later")
    })?;
    match (manner.wait, &view.problem) {
        (true, Some(problem)) => problem_again(problem),
        (true, None) => json(StatusCode::OK, &view),
        (false, _) => json(StatusCode::ACCEPTED, &view),
    }
}

/// A problem that was told before.
fn problem_again(problem: &hotcell_contract::HttpProblem) -> Answer {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, problem)?;
    let content_type = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    Ok(response)
}

async fn answer(service: &Arc<Service>, run: &Arc<Run>, manner: &Manner, waiting: Option<Waiting>) -> Answer {
    if !manner.wait {
        let mut response = json(StatusCode::ACCEPTED, &run.view())?;
        let place = HeaderValue::from_str(&format!("/v1/runs/{}", run.id)).map_err(|e| Problem::internal(&e))?;
        response.headers_mut().insert(header::LOCATION, place);
        return Ok(response);
    }
    let ended = run.end().await;
    drop(waiting);
    ended?;
    let view = run.view();
    let said = view.outcome.as_ref().map_or(0, |outcome| outcome.stdout.len() + outcome.stderr.len());
    if said <= WRITTEN_AT_ONCE {
        return json(StatusCode::OK, &view);
    }
    // Up to twenty megabytes of text.
    service.blocking(move |_| json(StatusCode::OK, &view)).await
}

pub(super) fn idempotency(headers: &HeaderMap, body_sha256: String) -> Result<Option<Idempotency>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=MAX_IDEMPOTENCY_KEY).contains(&key.len()));
    let key = key.ok_or_else(|| {
        Problem::field("Idempotency-Key", format!("give 1 to {MAX_IDEMPOTENCY_KEY} printable characters"))
    })?;
    Ok(Some(Idempotency { key: key.to_owned(), body_sha256 }))
}

pub(super) async fn show(State(service): State<Arc<Service>>, caller: Caller, Id(id): Id) -> Answer {
    caller.may(KeyScope::Read)?;
    let tenant = caller.tenant.clone();
    service.blocking(move |service| json(StatusCode::OK, &service.view(&tenant, &id)?)).await
}

/// Calls it off. One that has ended stays as it is.
pub(super) async fn cancel(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, Problem> {
    caller.may(KeyScope::Run)?;
    service
        .blocking(move |service| {
            if let Some(run) = service.run(&caller.tenant, &id) {
                service.cancel(&run);
                return json(StatusCode::ACCEPTED, &run.view());
            }
            json(StatusCode::OK, &service.view(&caller.tenant, &id)?)
        })
        .await
}
