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
mod values;

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
pub use values::*;

/// The JSON Schema of [`Outcome`], as it is checked in under `schemas/`.
pub fn outcome_schema() -> serde_json::Value {
    schemars::schema_for!(Outcome).to_value()
}

/// The JSON Schema of [`RunEvent`], as it is checked in under `schemas/`.
pub fn event_schema() -> serde_json::Value {
    schemars::schema_for!(RunEvent).to_value()
}

/// The JSON Schema of [`Policy`].
pub fn policy_schema() -> serde_json::Value {
    schemars::schema_for!(Policy).to_value()
}

/// The JSON Schema of [`Statement`], as it is checked in under `schemas/`.
pub fn receipt_schema() -> serde_json::Value {
    schemars::schema_for!(Statement).to_value()
}
