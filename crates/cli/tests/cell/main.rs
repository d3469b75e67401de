//! The cell, from outside: hostile programs and their harmless twins, run by the real binary.

#![allow(unreachable_pub, reason = "the harness is public to the modules beside it, and there is nobody else")]

mod bad_input;
mod brokered;
mod cli;
mod containers;
mod egress;
mod ends;
mod engines;
mod escape;
mod harness;
mod images;
mod limits;
mod names;
mod network;
mod output;
mod own_kernel;
mod syscalls;
mod terminal;
mod verdicts;
mod witness;
mod writes;
