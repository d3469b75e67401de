//! The end of the service: nothing new, then what is going is finished or called off, then nothing is left.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep};

use crate::service::Service;
use crate::trace::Exporter;

/// SIGTERM with grace takes half a second, and a result is written after it.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn catch() -> std::io::Result<Signals> {
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl Service {
    /// Takes nothing new, lets what goes and waits end within the grace or until somebody is in a hurry, and ends the rest.
    pub async fn finish(self: &Arc<Self>, hurry: impl Future<Output = ()>) {
        let (running, waiting) = self.load();
        tracing::info!(running, waiting, "ending: nothing new is taken");
        self.close();
        tokio::select! {
            () = idle(self, self.settings.grace) => {}
            () = hurry => {}
        }
        self.end_all();
        idle(self, LAST_PATIENCE).await;
        self.end_all();
        idle(self, LAST_PATIENCE).await;
        let service = Arc::clone(self);
        let last = move || {
            service.write_ends();
            let left = service.unwritten.len();
            if left > 0 {
                tracing::error!(left, "ends of runs are not written down: the next service takes them for killed");
            }
            service.traces.iter().for_each(Exporter::flush);
        };
        let _ = tokio::task::spawn_blocking(last).await;
    }
}

async fn idle(service: &Service, most: Duration) {
    let until = Instant::now() + most;
    while service.load() != (0, 0) && Instant::now() < until {
        sleep(LOOK_EVERY).await;
    }
}
