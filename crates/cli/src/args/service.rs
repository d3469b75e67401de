//! `serve`, `mcp` and `keys`, as the user writes them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use hotcell_contract::{parse_duration, parse_size};

use super::state::{ByArgs, StateArgs};

#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 is any that is free. Elsewhere than on loopback there must be keys
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8700")]
    pub(crate) listen: SocketAddr,
    /// The policy of callers who have none of their own
    #[arg(long, value_name = "NAME", default_value = "balanced")]
    pub(crate) policy: String,
    /// Runs at once [default: 4 for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: Option<u32>,
    /// Runs that may wait; one tenant may have half of them
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) queue: u32,
    /// How long runs may go on when the service is to end
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub(crate) grace: Duration,
    /// So many runs that have ended are kept
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) keep_runs: u32,
    /// And so long
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_duration)]
    pub(crate) keep_for: Duration,
    /// And so much of them, with their artifacts
    #[arg(long, value_name = "SIZE", default_value = "4g", value_parser = parse_size)]
    pub(crate) keep_size: u64,
    /// How the log on standard error is written
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) log: Log,
    /// What is logged: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: String,
    /// A directory of language files of your own [env: HOTCELL_LANGUAGES]
    #[arg(long, value_name = "DIR")]
    pub(crate) languages: Option<PathBuf>,
    /// Where it is kept [env: HOTCELL_STATE_DIR] [default: $XDG_STATE_HOME/hotcell, of root /var/lib/hotcell]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Whom to become when root starts it, by name or number; `root` to stay so [default: the owner of the state, or an id
    /// that nobody else has]
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
}

#[derive(Args)]
pub(crate) struct McpArgs {
    /// The policy of all runs
    #[arg(long, value_name = "NAME", default_value = "balanced")]
    pub(crate) policy: String,
    /// On whose account they are
    #[arg(long, value_name = "ID", default_value = "default")]
    pub(crate) tenant: String,
    /// Runs at once [default: 4 for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: Option<u32>,
    /// What is logged on standard error: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    pub(crate) log_level: String,
    /// A directory of language files of your own [env: HOTCELL_LANGUAGES]
    #[arg(long, value_name = "DIR")]
    pub(crate) languages: Option<PathBuf>,
    /// Where it is kept [env: HOTCELL_STATE_DIR] [default: $XDG_STATE_HOME/hotcell]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Log {
    Text,
    Json,
}

#[derive(Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) verb: KeysVerb,
}

#[derive(Subcommand)]
pub(crate) enum KeysVerb {
    /// Make a key; it is shown once, and kept nowhere
    Create {
        /// Whose runs, records and artifacts it is for
        #[arg(long, value_name = "ID", default_value = "default")]
        tenant: String,
        /// run, read or admin; may be repeated [default: run and read]
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,
        /// Under which it may run, the usual one first; may be repeated [default: the service's]
        #[arg(long, value_name = "NAME")]
        policy: Vec<String>,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        state: StateArgs,
    },
    /// All keys, without their secrets
    List(StateArgs),
    /// Take a key back, at once
    Revoke {
        /// Its id
        key: String,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        state: StateArgs,
    },
}
