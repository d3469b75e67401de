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
use super::input::Input;
use crate::auth::Caller;
use crate::service::{ServeError, Service};
use crate::settings::{BLOCKING_THREADS, MAX_MESSAGE};
use crate::shutdown;

/// Answers that are on their way when all runs have ended.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

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
    let (ended, mut gone) = watch::channel(false);
    let is_too_long = Arc::new(AtomicBool::new(false));
    let (read, write) = stdio_pipes();
    let input = Input::new(read, ended.clone(), Arc::clone(&is_too_long));
    // Lines have their bound already.
    let transport = AsyncRwTransport::new_server(input, write).with_max_line_length(usize::MAX);
    let agent = Agent { service: Arc::clone(&service), caller, gone: gone.clone(), held: Arc::default() };
    let begun = tokio::select! {
        begun = agent.serve(transport) => begun,
        () = signals.next() => return Ok(()),
    };
    let mut broken = service.broken.subscribe();
    let done = match begun {
        Ok(running) => {
            let stop = running.cancellation_token();
            let answering = tokio::spawn(running.waiting());
            let done = tokio::select! {
                _ = gone.wait_for(|gone| *gone) => Ok(()),
                () = signals.next() => Ok(()),
                _ = broken.wait_for(|broken| *broken) => Err(ServeError::LauncherDied),
            };
            ended.send_replace(true);
            service.finish(signals.next()).await;
            // What was called off is answered still, if somebody reads it.
            stop.cancel();
            let _ = timeout(LAST_ANSWERS, answering).await;
            done
        }
        // Who goes before he has begun has asked for nothing.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(_) => Err(ServeError::NoMcp),
    };
    if is_too_long.load(Ordering::Relaxed) {
        return Err(ServeError::TooLong(MAX_MESSAGE));
    }
    done
}
