//! Who may run what, from outside: leases, approvals, intents, the operator's switches, a repository in the cell, rollback.
//! The real binary, in state directories of the tests' own.

#![allow(unreachable_pub, reason = "the harness is public to the modules beside it, and there is nobody else")]

mod approvals;
mod bad_input;
mod capabilities;
mod chains;
mod desk;
mod fuzz;
mod intents;
mod keys;
mod paths;
mod refusals;
mod rollback;
mod runs;
mod tampering;
mod toolchains;
mod triggers;
mod unfinished;
mod words;
mod writes;

#[allow(dead_code, reason = "it serves the tests of the state too")]
#[path = "../state/harness.rs"]
mod harness;
