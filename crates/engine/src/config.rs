//! The operator's own file, `hotcell.toml`: what is enabled here.
//!
//! It is read from the state directory, or else from the operator's configuration directory, and never from where a run is
//! started: what comes with untrusted code must not say what is allowed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hotcell_contract::Capabilities;
use serde::Deserialize;

use crate::files::{open_regular, read_text};

const NAME: &str = "hotcell.toml";
const MAX_BYTES: u64 = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("`{}` cannot be used: {why}", path.display())]
    File { path: PathBuf, why: String },
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Config {
    capabilities: Capabilities,
}

/// What is enabled, by the first file that there is.
pub fn capabilities(state: Option<&Path>, home: Option<&Path>) -> Result<Capabilities, ConfigError> {
    for path in [state, home].into_iter().flatten().map(|dir| dir.join(NAME)) {
        let wrong = |why: String| ConfigError::File { path: path.clone(), why };
        if !is_there(&path)? {
            continue;
        }
        let file = open_regular(&path).map_err(|e| wrong(e.to_string()))?;
        let meta = file.metadata().map_err(|e| wrong(e.to_string()))?;
        let ours = [0, rustix::process::geteuid().as_raw()].contains(&meta.uid());
        if !ours || meta.mode() & 0o022 != 0 {
            return Err(wrong("it must be yours or root's, and not be writable by others".into()));
        }
        let text = read_text(&file, MAX_BYTES).map_err(|e| wrong(e.to_string()))?;
        let config: Config = toml::from_str(&text).map_err(|e| wrong(e.message().replace('\n', " ")))?;
        return match config.capabilities.max_lease_minutes {
            1..=1440 => Ok(config.capabilities),
            minutes => Err(wrong(format!("max_lease_minutes is {minutes}: give 1 to 1440"))),
        };
    }
    Ok(Capabilities::default())
}

/// Whether something is there. In a place that is not ours and that we may not enter there is nothing for us; one of our own
/// that can't be looked at must not pass for empty.
pub fn is_there(path: &Path) -> Result<bool, ConfigError> {
    match fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => {
            let above = path.ancestors().skip(1).find_map(|dir| fs::metadata(dir).ok());
            match above.is_some_and(|dir| dir.uid() == rustix::process::geteuid().as_raw()) {
                true => Err(ConfigError::File { path: path.to_owned(), why: e.to_string() }),
                false => Ok(false),
            }
        }
    }
}
