//! What is told of a run while it is going: the real binary, as whoever runs the tests and as a user without groups.

#![allow(unreachable_pub, reason = "the harness is public to the modules beside it, and there is nobody else")]

mod alerts;
mod harness;
mod records;
mod stream;
mod view;
