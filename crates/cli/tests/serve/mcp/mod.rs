//! Runs as tools of an agent: what is on the wire, on standard input and over HTTP, and clients that others wrote.

mod agent;
mod bad_input;
mod docs;
mod ends;
mod hostile;
mod http;
mod refusals;
mod sdk;
mod stdio;
