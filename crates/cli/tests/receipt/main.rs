//! Receipts, from outside: the real binary signs, and others than it verify. What was changed is found, whatever it is.

#![allow(unreachable_pub, reason = "the harness is public to the modules beside it, and there is nobody else")]

mod asked;
mod compare;
mod flips;
#[allow(dead_code, reason = "it serves the tests of the state too")]
#[path = "../state/harness.rs"]
mod harness;
mod keys;
mod receipts;
mod round_trip;
mod tampered;
