//! `lease`, `approve`, `intent` and `rollback`, as the user writes them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use hotcell_contract::{parse_duration, parse_size};

use super::state::{ByArgs, StateArgs};

#[derive(Args)]
pub(crate) struct LeaseArgs {
    #[command(subcommand)]
    pub(crate) verb: LeaseVerb,
}

#[derive(Subcommand)]
pub(crate) enum LeaseVerb {
    /// Make a key; the current one of its role becomes the previous
    Keygen {
        /// issuer, human, agent or holder
        #[arg(long, value_enum, value_name = "ROLE", default_value = "issuer", hide_possible_values = true)]
        role: KeyRole,
        /// Where the secret half goes [default: the state directory]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Sign a permission to run a command
    Issue {
        /// Who may use it
        #[arg(long, value_name = "NAME")]
        actor: String,
        /// The intent that it is for
        #[arg(long, value_name = "ID")]
        intent: Option<String>,
        /// Where the command starts: repo://DIR [default: /work]
        #[arg(long, value_name = "DIR")]
        workdir: Option<String>,
        #[command(flatten)]
        scope: ScopeArgs,
        /// The key that signs [default: the current issuer's]
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// Where the lease goes [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        state: StateArgs,
        /// The command, word by word; * is anything in a word, ** at the end any number of words
        #[arg(last = true, value_name = "CMD")]
        command_words: Vec<String>,
    },
    /// Hand on a smaller lease; what is left out is as in the one that it is made from
    Delegate {
        /// The lease that it is made from
        lease: PathBuf,
        /// The holder's key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// What it has none of: env, hosts, mounts or write; may be repeated
        #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true)]
        without: Vec<Without>,
        /// Who may use it [default: as before]
        #[arg(long, value_name = "NAME")]
        actor: Option<String>,
        #[command(flatten)]
        scope: ScopeArgs,
        /// Where the lease goes [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// The command, word by word
        #[arg(last = true, value_name = "CMD")]
        command_words: Vec<String>,
    },
    /// Add a signature to a lease
    Cosign {
        /// The file
        lease: PathBuf,
        /// The key that signs
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// Where the lease goes [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Whether a lease counts here and now
    Verify {
        /// The file
        lease: PathBuf,
        #[command(flatten)]
        state: StateArgs,
    },
    /// What a lease says, verified or not
    Show {
        /// The file
        lease: PathBuf,
    },
    /// Refuse a lease from now on, with all that were made from it, and end what runs under it
    Revoke {
        /// The lease's id
        id: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        state: StateArgs,
    },
    /// The leases that were issued here, and the keys that are trusted
    List(StateArgs),
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyRole {
    /// Signs leases
    Issuer,
    /// A person: signs and cosigns
    Human,
    /// An agent: cosigns
    Agent,
    /// Whoever may hand on a lease
    Holder,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Without {
    Env,
    Hosts,
    Mounts,
    Write,
}

/// What a lease allows.
#[derive(Args)]
pub(crate) struct ScopeArgs {
    /// How long it is valid; a new one, 5m
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) valid_for: Option<Duration>,
    /// A further command, as a JSON array of words
    #[arg(long, value_name = "JSON")]
    pub(crate) command: Vec<String>,
    /// What the cell sees of the repository: repo://dir/** or repo://dir/*.py
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,
    /// What of that it does not see
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,
    /// A directory of the repository that may be changed: repo://dir
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Vec<String>,
    /// A directory of the host that the cell sees at its own place
    #[arg(long, value_name = "DIR")]
    pub(crate) mount: Vec<String>,
    /// A variable that may be given
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,
    /// A host that may be reached, as NAME:PORT; it must be one of the policy's too
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Processors; of a new one, 1
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<f64>,
    /// Memory; of a new one, 256m
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
    /// Wall time of a run; of a new one, 60s
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Open files; of a new one, 256
    #[arg(long, value_name = "N")]
    pub(crate) open_files: Option<u64>,
    /// How many runs; of a new one, 1
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u64>,
    /// The public key, in hex, of who may hand it on
    #[arg(long, value_name = "KEY")]
    pub(crate) holder: Option<String>,
}

#[derive(Args)]
pub(crate) struct OneArgs {
    /// Its id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Args)]
pub(crate) struct ApproveArgs {
    #[command(subcommand)]
    pub(crate) verb: ApproveVerb,
}

#[derive(Subcommand)]
pub(crate) enum ApproveVerb {
    /// Which runs wait, and what became of the others
    List(StateArgs),
    /// What is to run, with its code
    Show(OneArgs),
    /// Allow one run of it
    Grant {
        /// Its id
        id: String,
        /// How long the permission stands
        #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
        valid_for: Duration,
        #[command(flatten)]
        decision: DecisionArgs,
    },
    /// Refuse it
    Deny {
        /// Its id
        id: String,
        #[command(flatten)]
        decision: DecisionArgs,
    },
}

#[derive(Args)]
pub(crate) struct DecisionArgs {
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) by: ByArgs,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Args)]
pub(crate) struct IntentArgs {
    #[command(subcommand)]
    pub(crate) verb: IntentVerb,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Risk {
    Low,
    Medium,
    High,
}

#[derive(Subcommand)]
pub(crate) enum IntentVerb {
    /// Say what is to be done, before there is a lease for it
    Propose {
        /// What for
        #[arg(long, value_name = "TEXT")]
        goal: String,
        /// How it would be taken back
        #[arg(long, value_name = "TEXT")]
        rollback_plan: String,
        /// A word of your own, such as refactor
        #[arg(long = "type", value_name = "WORD", default_value = "change")]
        intent_type: String,
        #[arg(
            long,
            value_enum,
            value_name = "LEVEL",
            default_value = "medium",
            help = "low, medium or high",
            hide_possible_values = true
        )]
        risk: Risk,
        /// A further command, as a JSON array of words
        #[arg(long, value_name = "JSON")]
        command: Vec<String>,
        /// What of the repository it is about: repo://dir/**
        #[arg(long, value_name = "PATTERN")]
        path: Vec<String>,
        /// Who proposes it [default: the user's name]
        #[arg(long, value_name = "NAME")]
        by: Option<String>,
        #[command(flatten)]
        state: StateArgs,
        /// The command, word by word
        #[arg(last = true, value_name = "CMD")]
        command_words: Vec<String>,
    },
    /// Say yes or no to it
    Review {
        /// Its id
        id: String,
        /// Yes
        #[arg(long, required_unless_present = "reject", conflicts_with = "reject")]
        approve: bool,
        /// No
        #[arg(long)]
        reject: bool,
        /// Why
        #[arg(long, value_name = "TEXT", default_value = "")]
        comment: String,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        state: StateArgs,
    },
    /// All of them
    List(StateArgs),
    /// One of them
    Show(OneArgs),
}

#[derive(Args)]
pub(crate) struct RollbackArgs {
    /// The id of a leased run
    pub(crate) run: String,
    /// The repository [default: the one that the run changed]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
    /// Restore also what has changed since
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) by: ByArgs,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}
