//! MCP on standard input and output: one client, who has started us and whose end is ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use tokio::sync::watch;
use tokio::time::timeout;

use super::agent::Agent;
use super::input::{Input, MAX_LINE};
use crate::auth::Caller;
use crate::service::{ServeError, Service};
use crate::settings::BLOCKING_THREADS;
use crate::shutdown;

/// Answers that are on their way when all runs have ended.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Serves until standard input, SIGTERM or SIGINT ends it. What is going then is called off.
pub fn serve_stdio(service: Arc<Service>, caller: Caller) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("mcp")
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .map_err(ServeError::Start)?;
    let ended = runtime.block_on(serve(service, caller));
    // A thread may wait for standard input for ever.
    runtime.shutdown_background();
    ended
}

async fn serve(service: Arc<Service>, caller: Caller) -> Result<(), ServeError> {
    let mut signals = shutdown::Signals::catch().map_err(ServeError::Start)?;
    let (ended, gone) = watch::channel(false);
    let is_too_long = Arc::new(AtomicBool::new(false));
    let (read, write) = stdio_pipes();
    let input = Input::new(read, ended.clone(), Arc::clone(&is_too_long));
    // Lines have their bound already.
    let transport = AsyncRwTransport::new_server(input, write).with_max_line_length(usize::MAX);
    let agent = Agent { service: Arc::clone(&service), caller, gone, _listed: Arc::default() };
    let mut serving = Box::pin(async move {
        match agent.serve(transport).await {
            Ok(serving) => drop(serving.waiting().await),
            // It went before it began.
            Err(ServerInitializeError::ConnectionClosed(_)) => {}
            Err(_) => return Err(ServeError::NoMcp),
        }
        Ok(())
    });
    let mut broken = service.broken.subscribe();
    let done = tokio::select! {
        done = &mut serving => Some(done),
        () = signals.next() => None,
        _ = broken.wait_for(|broken| *broken) => Some(Err(ServeError::LauncherDied)),
    };
    ended.send_replace(true);
    service.finish(signals.next()).await;
    if done.is_none() {
        let _ = timeout(LAST_ANSWERS, serving).await;
    }
    if is_too_long.load(Ordering::Relaxed) {
        return Err(ServeError::TooLong(MAX_LINE));
    }
    done.unwrap_or(Ok(()))
}
