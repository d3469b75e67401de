//! The words of the system, exact on every surface: plain data, validation, JSON Schemas. No I/O, no clock.

mod class;
mod event;
mod grant;
mod host;
mod lease;
mod outcome;
mod pattern;
mod policy;
mod receipt;
mod record;
mod request;
mod service;
mod tool;
mod values;
mod words;

pub use class::*;
pub use event::*;
pub use grant::*;
pub use host::*;
pub use lease::*;
pub use outcome::*;
pub use pattern::{covers_path, covers_words, matches_or_holds, matches_path, matches_words, may_match_below};
pub use policy::*;
pub use receipt::*;
pub use record::*;
pub use request::*;
pub use service::*;
pub use tool::*;
pub use values::*;
pub use words::*;

/// The JSON Schemas of the contracts, by name, as they are checked in under `schemas/`.
pub fn schemas() -> [(&'static str, serde_json::Value); 12] {
    [
        ("outcome", schemars::schema_for!(Outcome).to_value()),
        ("event", schemars::schema_for!(RunEvent).to_value()),
        ("policy", schemars::schema_for!(Policy).to_value()),
        ("record", schemars::schema_for!(ExecutionRecord).to_value()),
        ("stats", schemars::schema_for!(Stats).to_value()),
        ("lease", schemars::schema_for!(Lease).to_value()),
        ("intent", schemars::schema_for!(Intent).to_value()),
        ("approval", schemars::schema_for!(Approval).to_value()),
        ("receipt", schemars::schema_for!(Statement).to_value()),
        ("request", schemars::schema_for!(RunRequest).to_value()),
        ("run", schemars::schema_for!(Run).to_value()),
        ("problem", schemars::schema_for!(HttpProblem).to_value()),
    ]
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schemas_that_are_checked_in_are_those_that_are_generated() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        for (name, schema) in super::schemas() {
            let text = std::fs::read_to_string(dir.join(format!("{name}.json"))).expect("it is checked in");
            let checked_in: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            assert!(
                checked_in == schema,
                "{name} has changed: hotcell schema {name} > crates/contract/schemas/{name}.json"
            );
        }
        let files = std::fs::read_dir(dir).expect("it is there").count();
        assert_eq!(files, super::schemas().len(), "each of them has a name");
    }
}
