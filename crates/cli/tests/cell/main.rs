//! The cell, from outside: hostile programs and their harmless twins, run by the real binary.

mod escape;
mod harness;
mod limits;
mod network;
mod syscalls;
mod verdicts;
mod writes;
