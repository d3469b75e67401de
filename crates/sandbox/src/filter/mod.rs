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

use crate::spec::Network;
use crate::sys::seccomp::sock_filter;

/// A program, and whose needs it meets.
pub(crate) struct Filter {
    needs: Needs,
    program: Vec<sock_filter>,
}

impl Filter {
    pub(crate) fn new(needs: Needs) -> Filter {
        Filter { needs, program: bpf::compile(&rules(needs)) }
    }

    /// For the default limits and no network.
    pub(crate) fn usual(count_clones: bool) -> Filter {
        Filter::new(Needs { network: Network::None, count_clones, handover_fd: 1024 })
    }

    /// This one, when it is what is needed.
    pub(crate) fn program_for(&self, needs: Needs) -> std::borrow::Cow<'_, [sock_filter]> {
        if self.needs == needs { (&self.program).into() } else { Filter::new(needs).program.into() }
    }
}
