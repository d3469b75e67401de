//! MCP: the same runs as tools of an agent, on standard input and output ([`stdio`]) and as streamable HTTP ([`post`]).
//!
//! Both hand a call to [`Agent`], which makes a job of it and submits it as every other surface does. What the protocol is
//! made of is the crate `rmcp`, which nothing outside of this directory knows.
//!
//! A program that fails is a result. A result is an error (`isError`) where nothing ran, or nothing is said about the
//! program: arguments that are wrong, a refusal, a set-up that failed. Those an agent can read, and do something about. Only
//! what is no call of a tool at all is an error of the protocol, which agents are not shown.
//!
//! Over HTTP no session is kept. What a client is given as one is a word that tells its calls from those of others of the same
//! tenant, for `notifications/cancelled`; there is nothing behind it that could be full, grow old or be stolen.

mod agent;
mod call;
mod input;
mod open;
mod post;
mod progress;
mod show;
mod stdio;
mod tools;

pub(crate) use open::Open;
pub(crate) use post::post;
pub use stdio::serve_stdio;
pub use tools::tools;
