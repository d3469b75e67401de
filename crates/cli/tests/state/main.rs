//! What outlives a run, from outside: policies, records, quotas, the audit log, the kill switch. The real binary, in state
//! directories of the tests' own.

#![allow(unreachable_pub, reason = "the harness is public to the modules beside it, and there is nobody else")]

mod audit;
mod bad_policies;
mod harness;
mod hosts;
mod killswitch;
mod limits;
mod named_files;
mod places;
mod policies;
mod quotas;
mod records;
mod tables;
mod triggers;
mod usage;
mod words;
