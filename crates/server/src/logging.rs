//! The log: on standard error, as text for people or as JSON for machines.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// For the beginning of a process. `level`: error, warn, info or debug.
pub fn log_to_stderr(as_json: bool, level: &str) -> Option<()> {
    let level: LevelFilter = level.parse().ok()?;
    let log = fmt::layer().with_writer(std::io::stderr).with_target(false).with_ansi(false);
    let log = if as_json { log.json().flatten_event(true).boxed() } else { log.compact().boxed() };
    // It would tell of every message and of every client that goes, and nothing that our own lines do not.
    let which = Targets::new().with_default(level).with_target("rmcp", LevelFilter::OFF);
    // Another one that is there already is as good.
    let _ = tracing_subscriber::registry().with(log.with_filter(which)).try_init().is_ok();
    Some(())
}
