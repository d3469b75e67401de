//! `policy`, `records`, `stats`, `audit`, `receipt` and `killswitch`, as the user writes them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;
use crate::state;

#[derive(Args)]
pub(crate) struct StateArgs {
    /// Where it is kept [env: HOTCELL_STATE_DIR] [default: $XDG_STATE_HOME/hotcell, of a service that root has started /var/lib/hotcell]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) state_dir: Option<PathBuf>,
    /// How to show the result
    #[arg(long, value_enum, default_value = "text", global = true)]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct ByArgs {
    /// Who says so [default: the user's name]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

impl ByArgs {
    pub(crate) fn name(&self) -> String {
        self.by.clone().unwrap_or_else(state::user)
    }
}

#[derive(Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Subcommand)]
pub(crate) enum PolicyVerb {
    /// All policies, in a table
    List,
    /// One policy, as it was written
    Show {
        /// Which
        name: String,
    },
    /// Whether a file is a policy, and what is wrong with it
    Check {
        /// A TOML file
        file: PathBuf,
    },
    /// Keep a policy of your own
    Define {
        /// A TOML file
        file: PathBuf,
    },
    /// Throw a policy of your own away
    Delete {
        /// Which
        name: String,
    },
}

#[derive(Args)]
pub(crate) struct RecordsArgs {
    /// One record, with all that is known of it [default: a list]
    #[arg(value_name = "RECORD", conflicts_with_all = ["tenant", "user", "run_id", "status", "language", "policy", "since", "until", "before", "limit"])]
    pub(crate) record: Option<String>,
    /// On behalf of this tenant
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    /// On behalf of this user
    #[arg(long, value_name = "ID")]
    pub(crate) user: Option<String>,
    /// Of this run of the caller's
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<String>,
    /// pending, running, completed, failed, timeout, killed or denied
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// In this language; command: those of exec
    #[arg(long, value_name = "NAME")]
    pub(crate) language: Option<String>,
    /// Under this policy
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// Not older than this: 2026-11-15 or 2026-11-15T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Older than this
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Older than this record: for the next page
    #[arg(long, value_name = "ID")]
    pub(crate) before: Option<String>,
    /// So many
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) limit: u64,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Args)]
pub(crate) struct StatsArgs {
    /// Those of one tenant only
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) verb: AuditVerb,
}

#[derive(Subcommand)]
pub(crate) enum AuditVerb {
    /// The newest entries
    Tail {
        /// So many
        #[arg(short, value_name = "N", default_value = "20")]
        number: usize,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Whether anything was changed, and where
    Verify(StateArgs),
    /// All entries, as JSON lines
    Export(StateArgs),
}

#[derive(Args)]
pub(crate) struct ReceiptArgs {
    #[command(subcommand)]
    pub(crate) verb: ReceiptVerb,
}

#[derive(Subcommand)]
pub(crate) enum ReceiptVerb {
    /// Whether a receipt was signed with this key, and whether files are those that it speaks of
    Verify {
        /// The receipt
        file: PathBuf,
        /// The public key: its 64 digits, or a file that holds them
        #[arg(long, value_name = "PUB")]
        key: OsString,
        /// The directory that --artifacts of the run has made
        #[arg(long, value_name = "DIR")]
        artifacts: Option<PathBuf>,
        /// The file that --result of the run has made
        #[arg(long, value_name = "FILE")]
        result: Option<PathBuf>,
        /// How to show the result
        #[arg(long, value_enum, default_value = "text")]
        output: Output,
    },
    /// What a receipt says, without a look at its signature
    Show {
        /// The receipt
        file: PathBuf,
    },
    /// The public key that belongs to the receipts of this place
    Key(StateArgs),
}

#[derive(Args)]
pub(crate) struct KillswitchArgs {
    #[command(subcommand)]
    pub(crate) verb: KillswitchVerb,
}

#[derive(Subcommand)]
pub(crate) enum KillswitchVerb {
    /// Stop what is going and refuse what is new
    On {
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        by: ByArgs,
        /// For one tenant only
        #[arg(long, value_name = "ID")]
        tenant: Option<String>,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Let runs begin again
    Off {
        #[command(flatten)]
        by: ByArgs,
        /// The switch of one tenant
        #[arg(long, value_name = "ID")]
        tenant: Option<String>,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Which switches are on
    Status(StateArgs),
}
