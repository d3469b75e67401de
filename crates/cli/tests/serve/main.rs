//! The service from outside: the real binary on a free port of loopback, and what clients of every kind get from it.

#![allow(unreachable_pub, reason = "the harness is public to the modules beside it, and there is nobody else")]

mod artifacts;
mod attach;
mod bad_input;
mod client;
mod deploy;
mod docs;
mod document;
mod ends;
mod events;
mod harness;
mod keys;
mod load;
mod mcp;
mod operator;
mod piston;
mod piston_clients;
mod piston_connect;
mod privilege;
mod runs;
mod socket;
mod switches;
mod traces;
