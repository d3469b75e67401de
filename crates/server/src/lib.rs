//! The engine over HTTP and MCP: handlers verify, convert, hand over; the engine decides.
//!
//! The way of one run:
//!
//!   caller      `auth` says who it is: tenant, scopes, policies
//!   convert     a [`RunRequest`](hotcell_contract::RunRequest) becomes a [`Job`]: an engine request, its standard input, its wishes
//!   submit      [`Service::submit`] admits it (policy, capabilities, lease), puts it into the queue and returns the [`Run`]
//!   queue       bounded, round robin between tenants; a job that waits too long is dropped with a word
//!   work        a thread of its own: begin (quota, approval, kill switch, record), execute, end (record, audit)
//!   result      kept in the state directory, readable after a restart; `run.end().await` has it too
//!
//! [`Service::start`] is all of it but HTTP, [`serve`] listens, [`serve_stdio`] serves one agent, [`Service::finish`] ends it in order.
//!
//! Whoever adds another surface (another protocol over the same runs) makes a `Job`, calls `submit`, and has in the `Run` its
//! events while it goes ([`Run::log`], or a [`Transcript`] for who must miss nothing of its output), its end ([`Run::end`]) and a way to call it off ([`Run::cancel`]).
//!
//! tokio carries bytes and nothing else. The engine's calls block, so they are made in the threads of `work`, or by
//! [`Service::look`], which has a thread for them.

mod auth;
mod convert;
mod crew;
mod files;
mod http;
mod log;
mod logging;
mod mcp;
mod metrics;
mod notify;
mod openapi;
mod piston;
mod problem;
mod queue;
mod results;
mod run;
mod service;
mod settings;
mod share;
mod shutdown;
mod signals;
mod streams;
mod trace;
mod transcript;
mod unwritten;
mod waiting;
mod watch;
mod work;

pub use auth::Caller;
pub use convert::{Checks, Job, Stdin, job_of, verification_of};
pub use http::listen::serve;
pub use log::{Log, Numbered};
pub use logging::log_to_stderr;
pub use mcp::{serve_stdio, tools};
pub use openapi::openapi;
pub use problem::Problem;
pub use run::{How, Run};
pub use service::{ServeError, Service};
pub use settings::{Keep, Settings};
pub use trace::{BadTarget, Target};
pub use transcript::{Piece, Transcript};
