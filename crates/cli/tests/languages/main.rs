//! Languages, from outside: how toolchains are found, what is compiled and kept, what a run leaves, by the real binary.

#![allow(unreachable_pub, reason = "the harness is public to the modules beside it, and there is nobody else")]

mod artifacts;
mod bad_input;
mod cache;
mod cache_damage;
mod compile;
mod find;
mod gates;
mod harness;
mod own;
mod prepare;
mod sources;
