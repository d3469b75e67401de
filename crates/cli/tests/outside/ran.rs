//! What came of a run, where its output is text.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Output};

use serde_json::Value;

use super::output_of;

pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Waits for its end.
    #[track_caller]
    pub fn of(child: Child) -> Ran {
        let Output { status, stdout, stderr } = output_of(child);
        Ran {
            code: status.code().unwrap_or_else(|| -status.signal().unwrap_or(0)),
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: exit {} {}", self.code, self.stderr))
    }

    /// One sentence of ours with these parts, exit 125, and nothing else.
    #[track_caller]
    pub fn refused(&self, parts: &[&str]) {
        if let Err(why) = self.is_refused(parts) {
            panic!("{why}");
        }
    }

    pub fn is_refused(&self, parts: &[&str]) -> Result<(), String> {
        let line = self.stderr.strip_suffix('\n').unwrap_or(&self.stderr);
        if self.code != 125 || !self.stdout.is_empty() {
            return Err(format!("it was not refused: exit {} {:?} {:?}", self.code, self.stdout, self.stderr));
        }
        if !line.starts_with("hotcell: error: ") || line.contains(|c: char| c.is_control()) || line.len() > 1000 {
            return Err(format!("not one sentence: {:?}", self.stderr));
        }
        match parts.iter().find(|part| !line.contains(**part)) {
            Some(part) => Err(format!("`{part}` is not in: {line}")),
            None => Ok(()),
        }
    }
}
