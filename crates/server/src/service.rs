//! What all requests share: who is known, what is going, what waits, what was.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use hotcell_contract::{LanguageList, NetworkPolicy, Policy, RecordStatus, Run as RunView};
use hotcell_engine::{
    Application, Catalogue, Given, Launcher, Policies, PolicyError, State, StateError, admit, capabilities,
    refused_here,
};
use tokio::sync::watch;

use crate::auth::Caller;
use crate::convert::Job;
use crate::crew::Crew;
use crate::log::Log;
use crate::mcp::Open;
use crate::metrics::Metrics;
use crate::problem::{Problem, shown};
use crate::queue::Queued;
use crate::results::{Results, is_id};
use crate::run::{How, Idempotency, Run};
use crate::settings::{FILES_OF_OURS, FILES_OF_RUN, MAX_CONNECTIONS, REMEMBERED, Settings};
use crate::trace::{Exporter, Trace};
use crate::unwritten::Unwritten;
use crate::work::Alerts;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("the policy {policy} of the service cannot be met here: {why}")]
    Refused { policy: String, why: String },
    #[error("cannot listen on {address}: {error}")]
    Listen { address: std::net::SocketAddr, error: std::io::Error },
    #[error(
        "{0} can be reached by others, and there are no keys: `hotcell keys create` makes one, 127.0.0.1 needs none"
    )]
    NoKeys(std::net::SocketAddr),
    #[error(
        "{runs} runs at once need {needed} open files, and {limit} are allowed here: raise `ulimit -n`, or lower --concurrency"
    )]
    Files { runs: usize, needed: u64, limit: u64 },
    #[error("another service uses this state directory: give --state-dir another one, or end that service")]
    Taken,
    #[error("the client does not speak MCP: its first message must be `initialize`")]
    NoMcp,
    #[error("a message of the client's has more than {0} bytes: give less at once")]
    TooLong(usize),
    #[error("what was kept of earlier runs cannot be used: {0}")]
    Results(std::io::Error),
    #[error("cannot start the service: {0}")]
    Start(std::io::Error),
    #[error("the launcher died, and nothing can run without it: start the service again")]
    LauncherDied,
}

pub struct Service {
    pub(crate) settings: Settings,
    pub(crate) launcher: Launcher,
    pub(crate) catalogue: Catalogue,
    pub(crate) policies: Policies,
    pub(crate) results: Results,
    pub(crate) metrics: Metrics,
    pub(crate) alerts: Alerts,
    pub(crate) traces: Option<Exporter>,
    /// Bytes of bodies that are being read, by tenant.
    pub(crate) bodies: Mutex<HashMap<String, usize>>,
    /// Of MCP, over HTTP.
    pub(crate) calls: Open,
    pub(crate) streams: Mutex<HashMap<String, usize>>,
    /// What was found last, and when.
    pub(crate) languages: Mutex<Option<(Instant, Arc<LanguageList>)>>,
    /// True once the service is to end.
    pub(crate) closing: watch::Sender<bool>,
    /// True once nothing can run any more.
    pub(crate) broken: watch::Sender<bool>,
    /// Connections that may be open.
    pub(crate) connections: u64,
    pub(crate) crew: Crew,
    pub(crate) unwritten: Unwritten,
    runs: Mutex<Runs>,
    /// Of the threads that run something.
    state: Mutex<State>,
    /// Of those who only look, which can take long.
    looks: Mutex<State>,
    /// Of every request.
    keys: Mutex<State>,
    is_local: bool,
}

#[derive(Default)]
struct Runs {
    /// Those that wait or go.
    by_id: HashMap<String, Arc<Run>>,
    /// Events of those that have ended, oldest first: tenant, id, events. Their results are on disk.
    ended: VecDeque<(String, String, Arc<Log>)>,
}

pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service {
    /// Everything that can be wrong is found here, before anybody is listened to. From here on it can be asked for runs;
    /// [`crate::serve`] lets others ask, and [`Service::finish`] ends it.
    pub fn start(settings: Settings, launcher: Launcher, catalogue: Catalogue) -> Result<Arc<Service>, ServeError> {
        let service = Arc::new(Service::new(settings, launcher, catalogue)?);
        crate::watch::start(&service)?;
        Ok(service)
    }

    fn new(mut settings: Settings, launcher: Launcher, catalogue: Catalogue) -> Result<Service, ServeError> {
        let connections = fitting_connections(&settings)?;
        let dir = settings.state_dir.clone();
        let open = |dir: &Path| State::open_for_service(dir);
        let (mut state, looks, keys) = (open(&dir)?, open(&dir)?, open(&dir)?);
        let is_local = settings.listen.ip().is_loopback();
        if !is_local && !keys.has_api_keys()? {
            return Err(ServeError::NoKeys(settings.listen));
        }
        let policies = Policies::new(Some(dir.join("policies")));
        let policy = policies.get(&settings.policy)?.policy;
        if let Some(why) = refused_here(&policy) {
            return Err(ServeError::Refused { policy: settings.policy, why });
        }
        let record_of = |id: &str| state.record(id).map_err(std::io::Error::other);
        let results = Results::open(&dir, settings.keep, record_of).map_err(|error| match error.kind() {
            std::io::ErrorKind::ResourceBusy => ServeError::Taken,
            _ => ServeError::Results(error),
        })?;
        let alerts = Alerts::start(state.audit().clone()).map_err(ServeError::Start)?;
        let traces = settings.traces.take().map(Exporter::start).transpose().map_err(ServeError::Start)?;
        Ok(Service {
            launcher,
            catalogue,
            policies,
            results,
            metrics: Metrics::default(),
            alerts,
            traces,
            bodies: Mutex::default(),
            calls: Open::default(),
            streams: Mutex::default(),
            languages: Mutex::default(),
            closing: watch::Sender::new(false),
            broken: watch::Sender::new(false),
            connections,
            crew: Crew::default(),
            unwritten: Unwritten::default(),
            runs: Mutex::default(),
            state: Mutex::new(state),
            looks: Mutex::new(looks),
            keys: Mutex::new(keys),
            is_local,
            settings,
        })
    }

    /// Only this machine can reach it.
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        held(&self.state)
    }

    pub(crate) fn looks(&self) -> MutexGuard<'_, State> {
        held(&self.looks)
    }

    pub(crate) fn keys(&self) -> MutexGuard<'_, State> {
        held(&self.keys)
    }

    pub fn has_keys(&self) -> Result<bool, StateError> {
        self.keys().has_api_keys()
    }

    /// Calls into the engine that may take long, in a thread that may wait.
    pub async fn look<T, F>(self: &Arc<Self>, what: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&Arc<Service>, &mut State) -> Result<T, Problem> + Send + 'static,
    {
        let service = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || what(&service, &mut service.looks()));
        done.await.unwrap_or_else(|e| Err(Problem::internal(&e)))
    }

    /// The same, for what needs no state.
    pub(crate) async fn blocking<T, F>(self: &Arc<Self>, what: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&Arc<Service>) -> Result<T, Problem> + Send + 'static,
    {
        let service = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || what(&service));
        done.await.unwrap_or_else(|e| Err(Problem::internal(&e)))
    }

    /// The policy that a run of this caller is under: one of his, or that of the service.
    pub fn policy_for(&self, caller: &Caller, asked: Option<&str>) -> Result<Policy, Problem> {
        let first = caller.policies.iter().flatten().next().unwrap_or(&self.settings.policy);
        let name = asked.unwrap_or(first);
        let is_his = match &caller.policies {
            None => true,
            Some(his) if his.is_empty() => name == self.settings.policy,
            Some(his) => his.iter().any(|known| known == name),
        };
        if !is_his {
            let shown = shown(name);
            let problem = Problem::field("policy_id", format!("`{shown}` is not a policy of this key: leave it out"));
            return Err(Problem { status: StatusCode::FORBIDDEN, ..problem });
        }
        match (self.policies.get(name), &caller.policies) {
            (Err(PolicyError::Unknown { .. }), Some(his)) => Err(self.gone(name, his)),
            (found, _) => Ok(found?.policy),
        }
    }

    /// A policy of a key's that was deleted since. What else there is here is the operator's business.
    fn gone(&self, name: &str, his: &[String]) -> Problem {
        let left: Vec<&str> = his.iter().map(String::as_str).filter(|id| self.policies.get(id).is_ok()).collect();
        let instead = match left[..] {
            [] => "ask the operator for another key".to_owned(),
            _ => format!("use one of {}", left.join(", ")),
        };
        Problem::field("policy_id", format!("the policy `{}` of this key was deleted: {instead}", shown(name)))
    }

    /// Admits a job and puts it into the queue. Blocks: for a thread that may.
    pub fn submit(self: &Arc<Self>, caller: &Caller, mut job: Job, mut how: How) -> Result<Arc<Run>, Problem> {
        let asked = Instant::now();
        let id = job.request.record_id.clone().unwrap_or_else(hotcell_engine::new_id);
        let request_id = job.request.request_id.clone().unwrap_or_else(|| id.clone());
        job.leased = self.admit(&mut job).inspect_err(|problem| {
            self.metrics.refused(problem);
        })?;
        if job.request.network == NetworkPolicy::Full && caller.is_anybody() {
            let detail = "a program with the host's network could ask this service for anything, since it asks for no key: make one with `hotcell keys create`";
            return Err(Problem::new(StatusCode::FORBIDDEN, "no-keys", detail));
        }
        let policy_id = job.policy.policy_id.clone();
        how.metadata = job.metadata.take();
        let trace = self.traces.as_ref().and_then(|_| Trace::new(asked, caller.parent, &job));
        trace.iter().for_each(|trace| trace.passed("admit", asked));
        let mut run = Run::new(id, caller.tenant.clone(), request_id, policy_id, how).map_err(|error| {
            let is_short = crate::problem::is_shortage(&error);
            if is_short {
                Problem::unavailable("shortage", "the service has too many files open")
            } else {
                Problem::internal(&error)
            }
        })?;
        run.trace = trace;
        *held(&run.to_stdin) = job.to_stdin.take();
        (run.passed, run.terminal) = (job.passed.take(), job.terminal.take());
        let run = Arc::new(run);
        if run.how.is_kept || run.how.idempotency.is_some() {
            self.results.put(run.view(), run.how.idempotency.clone()).map_err(|e| Problem::internal(&e))?;
        }
        held(&self.runs).by_id.insert(run.id.clone(), Arc::clone(&run));
        let since = Instant::now();
        let until = since + Duration::from_secs_f64(job.policy.request_budget_seconds);
        let queued = Queued { run: Arc::clone(&run), job, since, until };
        self.enqueue(queued).map_err(|(problem, queued)| {
            self.metrics.refused(&problem);
            held(&self.runs).by_id.remove(&queued.run.id);
            self.results.remove(&queued.run.tenant, &queued.run.id);
            problem
        })?;
        Ok(run)
    }

    /// What the engine says before anything is written down: the policy, what is enabled, the lease.
    fn admit(&self, job: &mut Job) -> Result<Option<hotcell_engine::Leased>, Problem> {
        let dir = &self.settings.state_dir;
        let capabilities = capabilities(Some(dir), self.settings.config_dir.as_deref())?;
        let bytes = |lease: &String| Ok(lease.clone().into_bytes());
        let lease =
            job.lease.as_ref().map(|lease| Given { name: "of the request", bytes: bytes(lease), repository: None });
        let asked = Application {
            verb: job.verb,
            who: &job.who,
            policy: Some(&job.policy),
            limits: &job.limits,
            capabilities: &capabilities,
            lease,
        };
        let id = job.request.record_id.clone().unwrap_or_default();
        let admitted = admit::<Problem>(asked, &mut job.request, || Ok(Some(State::open(dir)?)));
        admitted.map_err(|problem| if problem.failure_class.is_some() { problem.of_record(&id) } else { problem })
    }

    /// Calls off a run that waits or goes.
    pub(crate) fn cancel(&self, run: &Arc<Run>) {
        let waiting = { held(&self.crew.work).queue.remove(&run.id) };
        match waiting {
            Some(queued) => {
                let problem = Problem::new(StatusCode::CONFLICT, "cancelled", "it was called off before it began");
                self.drop_queued(queued, RecordStatus::Killed, problem);
            }
            None => run.cancel(),
        }
    }

    pub(crate) fn drop_queued(&self, queued: Queued, status: RecordStatus, problem: Problem) {
        queued.waited();
        self.end_run(&queued.run, status, Err(problem));
    }

    /// The end of a run, for everybody who waits for it and everybody who comes later.
    pub(crate) fn end_run(
        &self,
        run: &Arc<Run>,
        status: RecordStatus,
        result: Result<Box<hotcell_contract::Outcome>, Problem>,
    ) {
        if let (Some(traces), Some(trace)) = (&self.traces, &run.trace) {
            traces.put(trace.finish(run, status, result.as_deref()));
        }
        let is_for_now = matches!(&result, Err(problem) if problem.is_for_now());
        let stage = run.last_stage(status, result);
        let view = run.view_at(stage.clone());
        let keep = || {
            let put = self.results.put(view, run.how.idempotency.clone());
            put.inspect_err(|error| tracing::error!(run = run.id, %error, "a result cannot be kept")).is_ok()
        };
        let mut is_told_from_memory = false;
        // What somebody has seen who comes back for it must be there after a crash, if it can be; who waits has his answer first.
        let again = |asked: &Idempotency| self.results.unclaim(&run.tenant, asked);
        if is_for_now && !run.how.is_kept {
            // Who comes later with the same key is to have his run.
            run.how.idempotency.iter().for_each(again);
            self.results.remove(&run.tenant, &run.id);
            run.ends(stage);
        } else if run.how.is_kept || run.how.idempotency.is_some() {
            is_told_from_memory = !keep();
            run.ends(stage);
        } else {
            run.ends(stage);
            // A refusal that was waited for is told, and on record.
            if status != RecordStatus::Denied {
                keep();
            }
        }
        let mut runs = held(&self.runs);
        runs.ended.push_back((run.tenant.clone(), run.id.clone(), Arc::clone(&run.log)));
        if runs.ended.len() > REMEMBERED {
            runs.ended.pop_front();
        }
        drop(runs);
        if is_told_from_memory {
            self.unwritten.put_result(run);
        } else {
            self.forget(run);
        }
    }

    /// What is told of it from now on is what was kept.
    pub(crate) fn forget(&self, run: &Run) {
        held(&self.runs).by_id.remove(&run.id);
    }

    /// One that waits or goes.
    pub fn run(&self, tenant: &str, id: &str) -> Option<Arc<Run>> {
        held(&self.runs).by_id.get(id).filter(|run| run.tenant == tenant).cloned()
    }

    /// The events of one that goes, or has ended not long ago.
    pub(crate) fn log(&self, tenant: &str, id: &str) -> Option<Arc<Log>> {
        let runs = held(&self.runs);
        let going = runs.by_id.get(id).filter(|run| run.tenant == tenant).map(|run| &run.log);
        let ended = || runs.ended.iter().find(|(whose, known, _)| whose == tenant && known == id).map(|(.., log)| log);
        going.or_else(ended).cloned()
    }

    pub(crate) fn run_of_record(&self, id: &str) -> Option<Arc<Run>> {
        held(&self.runs).by_id.get(id).cloned()
    }

    /// Any run of the tenant's that is known still.
    pub(crate) fn view(&self, tenant: &str, id: &str) -> Result<RunView, Problem> {
        let unknown = || Problem::not_found("run");
        if !is_id(id) {
            return Err(unknown());
        }
        if let Some(run) = self.run(tenant, id) {
            return Ok(run.view());
        }
        self.results.get(id).filter(|run| run.tenant_id == tenant).ok_or_else(unknown)
    }

    pub(crate) fn is_going(&self, id: &str) -> bool {
        held(&self.runs).by_id.contains_key(id)
    }

    /// Running and waiting.
    pub(crate) fn load(&self) -> (usize, usize) {
        let work = held(&self.crew.work);
        (work.running, work.queue.len())
    }

    /// Nothing new is taken from now on.
    pub(crate) fn close(&self) {
        held(&self.crew.work).closed = true;
        self.crew.handed.notify_all();
        self.closing.send_replace(true);
    }

    /// What waits is dropped, what runs is called off.
    pub(crate) fn end_all(&self) {
        let waiting = held(&self.crew.work).queue.drain();
        for queued in waiting {
            let problem = Problem::unavailable("closing", "the service ended before its turn came: ask for it again");
            self.drop_queued(queued, RecordStatus::Killed, problem);
        }
        let going: Vec<Arc<Run>> = held(&self.runs).by_id.values().cloned().collect();
        going.iter().for_each(|run| run.call_off("the service ended"));
    }
}

/// What is left for connections when every run has what it needs.
fn fitting_connections(settings: &Settings) -> Result<u64, ServeError> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let needed = settings.concurrency as u64 * FILES_OF_RUN + settings.queue as u64 + FILES_OF_OURS;
    // At least as many as can wait: each of them has somebody who waits for it.
    let waiting = (settings.concurrency + settings.queue) as u64;
    if needed + waiting > limit {
        return Err(ServeError::Files { runs: settings.concurrency, needed: needed + waiting, limit });
    }
    Ok((limit - needed).min(MAX_CONNECTIONS.max(waiting * 2)))
}
