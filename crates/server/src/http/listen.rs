//! Connections: so many, each with a time for its head, and an end when the service ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::patient::Patient;
use super::router;
use crate::notify;
use crate::service::{ServeError, Service};
use crate::settings::{BLOCKING_THREADS, HEAD_TIME, MAX_HEAD, MAX_HEADERS};
use crate::shutdown;

/// For those who come when there is no place.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n\
    connection: close\r\n\r\n{\"type\":\"urn:hotcell:problem:connections\",\"title\":\"Service Unavailable\",\
    \"status\":503,\"detail\":\"too many connections are open: come back later\"}\r\n";
/// When there are too many files open, or a connection was gone before it was taken.
const AFTER_AN_ERROR: Duration = Duration::from_millis(50);
/// Answers that are on their way when all runs have ended.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Serves until SIGTERM or SIGINT, and then to the end of what is going. `listens` is told the address.
pub fn serve(service: Arc<Service>, listens: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("http")
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .map_err(ServeError::Start)?;
    runtime.block_on(async {
        let mut signals = shutdown::Signals::catch().map_err(ServeError::Start)?;
        let address = service.settings.listen;
        let listener = TcpListener::bind(address).await.map_err(|error| ServeError::Listen { address, error })?;
        let address = listener.local_addr().map_err(ServeError::Start)?;
        listens(address);
        notify::tell(&notify::ready(address));
        let places = Arc::new(Semaphore::new(service.connections as usize));
        let accepting = tokio::spawn(accept(Arc::clone(&service), listener, Arc::clone(&places)));
        let mut broken = service.broken.subscribe();
        let is_broken = tokio::select! {
            () = signals.next() => false,
            _ = broken.wait_for(|broken| *broken) => true,
        };
        notify::tell(notify::STOPPING);
        accepting.abort();
        // A second signal does not wait any longer.
        service.finish(signals.next()).await;
        let all = u32::try_from(service.connections).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(LAST_ANSWERS, places.acquire_many(all)).await;
        tracing::info!("ended");
        if is_broken { Err(ServeError::LauncherDied) } else { Ok(()) }
    })?;
    // Threads that wait for something of a client's have nothing to lose.
    runtime.shutdown_timeout(LAST_ANSWERS);
    Ok(())
}

async fn accept(service: Arc<Service>, listener: TcpListener, places: Arc<Semaphore>) {
    let app = router(Arc::clone(&service));
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(AFTER_AN_ERROR).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tokio::spawn(turn_away(stream));
            continue;
        };
        let (service, app) = (Arc::clone(&service), app.clone());
        tokio::spawn(async move {
            service.metrics.connections.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = connection(&service, stream, app).await {
                tracing::debug!(%peer, %error, "a connection ended");
            }
            service.metrics.connections.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }
}

/// One connection, from its first request to its last.
async fn connection(service: &Arc<Service>, stream: TcpStream, app: axum::Router) -> Result<(), hyper::Error> {
    let _ = stream.set_nodelay(true);
    let mut closing = service.closing.subscribe();
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(Patient::new(stream)), TowerToHyperService::new(app))
        .with_upgrades();
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        done = serving.as_mut() => return done,
        _ = closing.wait_for(|closing| *closing) => serving.as_mut().graceful_shutdown(),
    }
    serving.await
}

async fn turn_away(mut stream: TcpStream) {
    let answered = async {
        stream.write_all(FULL).await?;
        stream.shutdown().await
    };
    let _: Result<io::Result<()>, _> = tokio::time::timeout(Duration::from_secs(1), answered).await;
}
