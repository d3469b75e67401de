//! Python under restricted builtins: a wrapper that is written into the cell, and the events that it leaves there.
//!
//! One layer among several: nothing of the cell depends on it.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use hotcell_contract::Event;
use hotcell_sandbox::{File, Scratch, Spec};

use crate::plan::PlanError;
use crate::request::{Capsule, Request};

const WRAPPER: &[u8] = include_bytes!("capsule.py");
const AT: &str = "/opt/hotcell/capsule.py";
const STATE: &str = "/opt/hotcell/state.json";
/// Hidden, below the working directory.
pub(crate) const EVENTS: &str = ".hotcell-events";
/// What the wrapper itself keeps to, and a little more.
const MAX_EVENTS: usize = 1100;
const MAX_BYTES: u64 = 16 << 20;

/// Puts the wrapper between the interpreter and the program.
pub(crate) fn wrap(spec: &mut Spec, capsule: &Capsule, request: &Request) -> Result<(), PlanError> {
    let mut put = |path: &str, bytes: &[u8]| {
        spec.files.push(File { path: path.into(), mode: 0o644, bytes: bytes.to_vec() });
    };
    put(AT, WRAPPER);
    if let Some(state) = &capsule.state {
        let known: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_slice(state);
        known.map_err(|e| PlanError::State(e.to_string()))?;
        put(STATE, state);
    }
    spec.argv.splice(1..1, ["-I", "-S", "-B", AT].map(OsString::from));
    let names: Vec<_> = request.env.iter().map(|(name, _)| name.to_string_lossy()).collect();
    if let Some(bad) = names.iter().find(|name| name.contains(',') || name.starts_with("HOTCELL_")) {
        return Err(PlanError::BadEnvironment(bad.to_string()));
    }
    let mut set = |name: &str, value: String| spec.env.push((name.into(), value.into()));
    set("HOTCELL_EVENTS", format!("/work/{EVENTS}"));
    set("HOTCELL_CONFIG", names.join(","));
    if capsule.state.is_some() {
        set("HOTCELL_STATE", STATE.into());
    }
    Ok(())
}

/// What the capsule left. A program that broke out of the layer can write what it likes there: it is only told.
pub(crate) fn events(scratch: &Scratch) -> Vec<Event> {
    let mut text = vec![];
    let read = scratch.open(Path::new(EVENTS)).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text));
    if read.is_err() {
        return vec![];
    }
    let lines = text.split(|byte| *byte == b'\n').take(MAX_EVENTS);
    let events = lines.filter_map(|line| serde_json::from_slice(line).ok());
    // What the broker did is for the broker to say.
    events.filter(|event: &Event| event.kind.starts_with("capsule.")).collect()
}
