//! `hotcell verify` through the real binary, on real sources with real test runners.
//!
//! The harness is that of the cells: after every run it looks for processes, groups, mounts and files left behind.

#![allow(unreachable_pub, reason = "what is public is so to the modules beside it, and there is nobody else")]

#[allow(dead_code, reason = "it serves the tests of cells too")]
#[path = "../cell/harness.rs"]
mod harness;

mod budget;
mod cli;
mod compiled;
mod honesty;
mod project;
mod python;
mod repair;
mod scripts;
mod tiers;
mod violations;
