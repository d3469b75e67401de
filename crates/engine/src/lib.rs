//! One run from beginning to end: plan what is to run, run it in a cell, judge what happened.

mod collect;
mod doctor;
mod execute;
mod judge;
mod plan;
mod python;
mod request;

pub use doctor::{Check, Diagnosis, diagnose};
pub use execute::{Call, ExecuteError, execute};
pub use hotcell_sandbox::{Ahead, Launcher, SandboxError, Signals, never_honest, raise_open_files};
pub use judge::{NOT_EXECUTABLE, NOT_FOUND};
pub use plan::PlanError;
pub use request::{Program, Request, Source, default_limits};
