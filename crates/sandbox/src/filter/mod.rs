//! The seccomp filter: which calls pass, which are refused quietly, which we want to be told of.
//!
//! `syscalls` is the data, `rules` turns a cell's needs into a rule for each number, `bpf` turns the rules
//! into a program for the kernel.

mod bpf;
mod rules;
mod syscalls;

pub(crate) use bpf::AUDIT_ARCH;
pub(crate) use rules::{Needs, rules};
pub use syscalls::never_honest;
pub(crate) use syscalls::{is_never_honest, name};

use crate::sys::seccomp::sock_filter;

/// The program for one cell.
pub(crate) fn program(needs: Needs) -> Vec<sock_filter> {
    bpf::compile(&rules(needs))
}
