//! One call of a tool, from its arguments to its answer.

use std::future::pending;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hotcell_contract::Outcome;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, JsonObject};
use rmcp::service::RequestContext;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::agent::Agent;
use super::progress::Progress;
use super::show;
use super::tools::{Kind, request};
use crate::convert::{job_of, verification_of};
use crate::http::languages::languages;
use crate::problem::Problem;
use crate::run::{How, Run};

/// How often a client is told how it goes: faster than anybody reads.
const PACE: Duration = Duration::from_millis(100);
const TIMEOUT: &str = "timeout_ms";

pub(super) async fn call(
    agent: &Agent,
    kind: Kind,
    arguments: JsonObject,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let answer = match kind {
        Kind::ListLanguages => list_languages(agent, arguments).await,
        _ => run(agent, kind, arguments, context).await,
    };
    answer.unwrap_or_else(|problem| show::of_problem(&problem))
}

async fn list_languages(agent: &Agent, arguments: JsonObject) -> Result<CallToolResult, Problem> {
    let found = agent.service.blocking(move |service| {
        request(Kind::ListLanguages, arguments)?;
        Ok(languages(service))
    });
    Ok(show::of_languages(&*found.await?))
}

async fn run(
    agent: &Agent,
    kind: Kind,
    arguments: JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, Problem> {
    let mut progress = Progress::of(context);
    let how = How { is_followed: progress.is_some(), ..How::default() };
    let (by, held) = (agent.caller.clone(), Arc::clone(&agent.held));
    // To its end, whatever becomes of whoever asked: then there is a run that can be called off, or none.
    let submitted = agent.service.blocking(move |service| {
        let has_timeout = arguments.contains_key(TIMEOUT);
        let asked = request(kind, arguments)?.unwrap_or_default();
        let job = match kind {
            Kind::VerifyCode => verification_of(service, &by, &asked, held.size),
            _ => job_of(service, &by, &asked, held.size),
        };
        let run = job.and_then(|job| service.submit(&by, job, how));
        held.counted.lock().unwrap_or_else(PoisonError::into_inner).take();
        run.map_err(|problem| if has_timeout { of_timeout(problem) } else { problem })
    });
    let run = submitted.await?;
    let outcome = follow(agent, &run, &mut progress, context).await?;
    agent.service.blocking(move |_| Ok(show::of_outcome(&run.id, &outcome))).await
}

/// It is called as it was given.
fn of_timeout(problem: Problem) -> Problem {
    const INNER: &str = "limits.wall_ms";
    let field = problem.field.map(|field| if field == INNER { TIMEOUT.into() } else { field });
    Problem { detail: problem.detail.replace(INNER, TIMEOUT), field, ..problem }
}

/// To its end, which comes sooner when nobody wants it any more.
async fn follow(
    agent: &Agent,
    run: &Arc<Run>,
    progress: &mut Option<Progress<'_>>,
    context: &RequestContext<RoleServer>,
) -> Result<Box<Outcome>, Problem> {
    let mut gone = agent.gone.clone();
    let mut is_called_off = false;
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = nobody_waits(&mut gone, context), if !is_called_off => {
                is_called_off = true;
                agent.service.cancel(run);
            }
            ended = run.end() => {
                if let Some(progress) = progress.as_mut().filter(|_| !is_called_off) {
                    progress.tell(run).await;
                }
                return ended;
            }
            _ = pace.tick(), if progress.is_some() && !is_called_off => {
                let Some(progress) = progress.as_mut() else { continue };
                // Who does not read must not keep himself from being heard.
                tokio::select! {
                    () = progress.tell(run) => {}
                    () = nobody_waits(&mut gone, context) => {}
                }
            }
        }
    }
}

async fn nobody_waits(gone: &mut watch::Receiver<bool>, context: &RequestContext<RoleServer>) {
    let gone = async {
        if gone.wait_for(|gone| *gone).await.is_err() {
            // There is nobody left who could say so.
            pending().await
        }
    };
    tokio::select! {
        () = gone => {}
        () = context.ct.cancelled() => {}
    }
}
