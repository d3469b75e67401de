//! One run from beginning to end: plan what is to run, compile and run it in cells, judge what happened.

mod admit;
mod backend;
mod build;
mod cache;
mod capsule;
mod collect;
mod config;
mod doctor;
mod egress;
mod environment;
mod execute;
mod files;
mod image;
mod judge;
mod keys;
mod lease;
mod outcome;
mod permit;
mod plan;
mod policy;
mod product;
mod receipt;
mod repo;
mod request;
mod sentinel;
mod state;
mod survey;
mod trigger;
mod verify;

pub use admit::{Application, Begun, admit, begin, end, leave};
pub use backend::{AskedBackend, Backend, BackendError, Container, Docker, FoundRuntime, Hole, survey_runtimes};
pub use config::{ConfigError, capabilities, is_there};
pub use doctor::{Check, Diagnosis, diagnose};
pub use egress::addresses_of;
pub use execute::{Call, ExecuteError, Progress, execute};
pub use files::{open_regular, read_regular};
pub use hotcell_languages::{Catalogue, CatalogueError, Host, Language};
pub use hotcell_sandbox::{
    Cancel, Launcher, Passed, Resized, SandboxError, Signals, Stage, Step, Stop, Terminal, become_init_if_asked,
    become_user, close_inherited_files, never_honest, raise_open_files, service_id,
};
pub use image::{Image, ImageError, open as open_image};
pub use judge::{NOT_EXECUTABLE, NOT_FOUND};
pub use lease::{
    Granted, KeyError, Keys, LeaseRefusal, Leased, LeasedRun, NewLease, Role, SecretKey, Staging, Trusted, is_part,
    new_lease, read as read_lease, sign, text_of,
};
pub use permit::{Given, Verb};
pub use plan::PlanError;
pub use policy::{
    AskedLimits, Known, Policies, PolicyError, limits_of, parse as parse_policy, read as read_policy, refused_here,
    settle,
};
pub use receipt::{
    Mismatch, PublicKey, ReceiptError, ReceiptFlaw, ReceiptKey, compare_artifacts, compare_result, request_hash,
    sign_receipt, unverified_statement, verify_receipt,
};

pub use repo::{Restored, RollbackError};
pub use request::{Capsule, Program, Request, Source, compile_limits, new_id};
pub use sentinel::{Sentinel, Watch, audit_alert};
pub use state::{
    Audit, AuditError, Entry, Filter, Flaw, IssuedLease, Revoked, State, StateError, StoreError, Switch, Ticket,
    Verified, Who, after, now, parse_time, status_of,
};
pub use survey::{Surveyed, survey};
pub use verify::{Asked, Repair, Told, verify};
