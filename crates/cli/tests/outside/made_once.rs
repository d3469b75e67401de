//! What tests need from elsewhere: made once, for all clones, and kept.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory of this name, as `make` leaves it, or why there is none. It can't be below `target`: a clone may be in /tmp or
/// /work, which inside of a cell are its own.
pub fn made_once(name: &str, make: impl FnOnce(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache =
        variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache"))).ok_or("there is no HOME")?;
    let dir = cache.join("hotcell/tests").join(name);
    if !dir.exists() {
        let new = dir.with_file_name(format!("{name}.{}", std::process::id()));
        // Somebody else may have been faster.
        let kept = make(&new)
            .and_then(|()| std::fs::rename(&new, &dir).or_else(|e| dir.is_dir().then_some(()).ok_or(e.to_string())));
        let _ = std::fs::remove_dir_all(&new);
        kept?;
    }
    Ok(dir)
}

/// The `bin` of a virtual environment of Python's, with these packages.
pub fn python(name: &str, flags: &[&str], packages: &[&str]) -> Result<PathBuf, String> {
    let dir = made_once(name, |dir| {
        did(Command::new("python3").args(["-m", "venv"]).args(flags).arg(dir))?;
        match packages {
            [] => Ok(()),
            _ => did(Command::new(dir.join("bin/pip")).args(["install", "--quiet"]).args(packages)),
        }
    });
    Ok(dir?.join("bin"))
}

/// A directory in which node finds these packages.
pub fn node(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    made_once(name, |dir| {
        std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
        let quiet = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix"];
        // Without a network it is not to try for a minute.
        let once = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000"];
        did(Command::new("npm").args(quiet).arg(dir).args(once).args(packages))
    })
}

fn did(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    output.status.success().then_some(()).ok_or_else(|| format!("{command:?}: {last}"))
}
