//! The log: on standard error, as text for people or as JSON for machines.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

/// For the beginning of a process. `level`: error, warn, info or debug.
pub fn log_to_stderr(as_json: bool, level: &str) -> Option<()> {
    let level: LevelFilter = level.parse().ok()?;
    let log = fmt().with_writer(std::io::stderr).with_max_level(level).with_target(false).with_ansi(false);
    // Another one that is there already is as good.
    let _ = if as_json { log.json().flatten_event(true).try_init() } else { log.compact().try_init() }.is_ok();
    Some(())
}
