//! The service's own eye on what others decide: ends runs that the kill switch or a revoked lease is for, drops those that
//! have waited too long, and results that are too old; writes ends that could not be written down before.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_engine::{State, StateError};

use crate::service::Service;
use crate::settings::SWEEP_EVERY;

/// So often the engine wants to be asked, see `State::called_off`.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Goes on until the process ends.
pub(crate) fn start(service: &Arc<Service>) -> Result<(), StateError> {
    let state = State::open_for_service(&service.settings.state_dir)?;
    let (writer, service) = (Arc::clone(service), Arc::clone(service));
    std::thread::spawn(move || {
        let (mut seen, mut swept) = (None, Instant::now());
        loop {
            match state.called_off(&mut seen) {
                Ok(ids) => {
                    for run in ids.iter().filter_map(|id| service.run_of_record(id)) {
                        run.call_off("it was called off by the operator");
                    }
                }
                Err(error) => tracing::error!(%error, "cannot see whether runs are called off"),
            }
            if swept.elapsed() >= SWEEP_EVERY {
                swept = Instant::now();
                service.expire();
                service.results.sweep(|id| service.is_going(id));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    });
    // Another one: who has the records may make it wait, and the kill switch does not.
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(SWEEP_EVERY);
            writer.write_ends();
        }
    });
    Ok(())
}
