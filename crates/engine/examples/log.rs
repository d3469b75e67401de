//! Writes an audit log of so many entries, as runs would: `log DIR ENTRIES`.

use std::path::Path;

use hotcell_engine::{State, now};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [dir, entries] = words.as_slice() else { return Err("usage: log DIR ENTRIES".into()) };
    let mut state = State::open(Path::new(dir))?;
    for number in 0..entries.parse::<u64>()? {
        // As long as a record is.
        let data = json!({
            "record_id": format!("{number:08x}-0000-7000-8000-000000000000"),
            "sandbox_id": format!("{number:08x}-0000-7000-9000-000000000000"),
            "tenant_id": null, "user_id": null, "run_id": null, "language": "python",
            "code_hash": "0".repeat(64), "policy_id": "standard", "status": "completed", "exit_code": 0,
            "wall_time_seconds": 0.031, "cpu_seconds": 0.028, "memory_peak_mb": 7.9,
            "created_at": now(), "completed_at": now(),
            "error_message": null, "failure_class": null, "lease_id": null,
        });
        state.note("exec_event.FINISHED", data)?;
    }
    Ok(())
}
