//! The command line as the user writes it.

pub(crate) mod grants;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hotcell_contract::{AllowedHost, parse_duration, parse_size};
use hotcell_engine::Watch;

/// Runs untrusted code in a cell, lets none of it out, and says with proof what happened.
#[derive(Parser)]
#[command(name = "hotcell", version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a source file, or a directory of them, in a cell
    Run(RunArgs),
    /// Run a command in a cell
    Exec(ExecArgs),
    /// Check sources and their tests in cells, and say what they are worth
    Verify(VerifyArgs),
    /// Show, check and define policies
    Policy(PolicyArgs),
    /// Show what was run and what was refused
    Records(RecordsArgs),
    /// Show all runs together
    Stats(StatsArgs),
    /// Look at the audit log
    Audit(AuditArgs),
    /// Verify and show receipts
    Receipt(ReceiptArgs),
    /// Stop everything, and refuse what is new
    Killswitch(KillswitchArgs),
    /// Give out, hand on and take back signed permissions
    Lease(grants::LeaseArgs),
    /// Decide about runs that wait for an approval
    Approve(grants::ApproveArgs),
    /// Say what is to be done, and review what others want to do
    Intent(grants::IntentArgs),
    /// Take back what a leased run has changed
    Rollback(grants::RollbackArgs),
    /// Show which languages this host can run
    Languages(LanguagesArgs),
    /// Show what this host gives to cells, and what is missing
    Doctor(DoctorArgs),
    /// Print the JSON Schema of a contract: outcome, event, policy, record, stats, lease, intent, approval or receipt
    #[command(hide = true)]
    Schema {
        /// Which one
        #[arg(default_value = "outcome")]
        of: String,
    },
}

#[derive(Args)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub(crate) cell: CellArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct RunArgs {
    /// The source file, or a directory of them; - reads it from standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["code", "input"], conflicts_with = "code")]
    pub(crate) file: Option<PathBuf>,
    /// The source itself
    #[arg(long, value_name = "TEXT")]
    pub(crate) code: Option<String>,
    /// The language, where the file's name does not say it
    #[arg(long, value_name = "NAME")]
    pub(crate) lang: Option<String>,
    /// The file with which a directory begins [default: main.py, index.js, Cargo.toml and their like]
    #[arg(long, value_name = "PATH")]
    pub(crate) entry: Option<PathBuf>,
    /// A directory of language files of your own [env: HOTCELL_LANGUAGES]
    #[arg(long, value_name = "DIR")]
    pub(crate) languages: Option<PathBuf>,
    /// Wall time of the compiler [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    pub(crate) compile_timeout: Option<Duration>,
    /// Memory of the compiler [default: 2g]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Limits")]
    pub(crate) compile_memory: Option<u64>,
    /// Run Python under restricted builtins, as one more layer
    #[arg(long)]
    pub(crate) capsule: bool,
    /// A JSON object for the capsule's ctx.read_state
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Compile anew and keep nothing
    #[arg(long)]
    pub(crate) no_cache: bool,
    #[command(flatten)]
    pub(crate) cell: CellArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    /// Arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// A source file, or a directory of them
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// A file of tests beside a source file; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) tests: Vec<PathBuf>,
    /// The language, where the names do not say it
    #[arg(long, value_name = "NAME")]
    pub(crate) lang: Option<String>,
    /// A command for tier L2, in a cell like the others
    #[arg(long, value_name = "CMD")]
    pub(crate) l2: Option<String>,
    /// Run the tests so often, to find those that pass only sometimes
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,
    /// The tests were generated with the code: passing them gives AI_TESTS_ONLY
    #[arg(long)]
    pub(crate) generated_tests: bool,
    /// A command that gets the result on its standard input and may change the sources; up to 3 attempts
    #[arg(long, value_name = "CMD")]
    pub(crate) repair: Option<String>,
    /// Time for all checks of all attempts together [default: 180s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) budget: Option<Duration>,
    /// A directory of language files of your own [env: HOTCELL_LANGUAGES]
    #[arg(long, value_name = "DIR")]
    pub(crate) languages: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cell: CellArgs,
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
pub(crate) struct StateArgs {
    /// Where it is kept [env: HOTCELL_STATE_DIR] [default: $XDG_STATE_HOME/hotcell]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) state_dir: Option<PathBuf>,
    /// How to show the result
    #[arg(long, value_enum, default_value = "text", global = true)]
    pub(crate) output: Output,
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
    Verify {
        #[command(flatten)]
        state: StateArgs,
    },
    /// All entries, as JSON lines
    Export {
        #[command(flatten)]
        state: StateArgs,
    },
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
    Key {
        #[command(flatten)]
        state: StateArgs,
    },
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
        /// Who says so [default: the user's name]
        #[arg(long, value_name = "NAME")]
        by: Option<String>,
        /// For one tenant only
        #[arg(long, value_name = "ID")]
        tenant: Option<String>,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Let runs begin again
    Off {
        /// Who says so [default: the user's name]
        #[arg(long, value_name = "NAME")]
        by: Option<String>,
        /// The switch of one tenant
        #[arg(long, value_name = "ID")]
        tenant: Option<String>,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Which switches are on
    Status {
        #[command(flatten)]
        state: StateArgs,
    },
}

#[derive(Args)]
pub(crate) struct LanguagesArgs {
    /// A directory of language files of your own [env: HOTCELL_LANGUAGES]
    #[arg(long, value_name = "DIR")]
    pub(crate) languages: Option<PathBuf>,
    /// How to show the result
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// How to show the result
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Net {
    /// Not even loopback
    None,
    /// Loopback inside the cell
    Local,
    /// Named hosts only
    Restricted,
    /// The host's own network
    Full,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnViolation {
    /// End the run at once
    Kill,
    /// Let the program go on; the run is a fail
    Fail,
    /// List it only
    Note,
}

#[derive(Args)]
pub(crate) struct CellArgs {
    /// Wall time for the program [default: 45s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,
    /// Between SIGTERM and SIGKILL [default: 500ms]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true, help_heading = "Limits")]
    pub(crate) grace: Option<Duration>,
    /// User and system time of all processes
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    pub(crate) cpu_time: Option<Duration>,
    /// Processors [default: 2]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) cpus: Option<f64>,
    /// Memory, without swap [default: 1g]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Limits")]
    pub(crate) memory: Option<u64>,
    /// Processes and threads at one time [default: 256]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) processes: Option<u64>,
    /// Open files of one process [default: 1024]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) open_files: Option<u64>,
    /// One file [default: as the scratch]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true, help_heading = "Limits")]
    pub(crate) file_size: Option<u64>,
    /// /work, /tmp and /dev/shm together; 0: read-only [default: 512m]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Limits")]
    pub(crate) scratch: Option<u64>,
    /// Files and directories in the scratch [default: 65536]
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Limits")]
    pub(crate) scratch_inodes: Option<u64>,
    /// Output, of each stream [default: 10m]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Limits")]
    pub(crate) output_limit: Option<u64>,
    /// A policy; flags may only lower what it says [env: HOTCELL_POLICY]
    #[arg(long, value_name = "NAME", help_heading = "Cell")]
    pub(crate) policy: Option<String>,
    /// Policies, records, keys and the audit log [env: HOTCELL_STATE_DIR]
    #[arg(long, value_name = "DIR", help_heading = "Record")]
    pub(crate) state_dir: Option<PathBuf>,
    /// A signed lease: the run is what it allows, and nothing else
    #[arg(long, value_name = "FILE", help_heading = "Cell")]
    pub(crate) lease: Option<PathBuf>,
    /// The repository that the lease's repo:// paths are in
    #[arg(long, value_name = "DIR", requires = "lease", help_heading = "Cell")]
    pub(crate) repo: Option<PathBuf>,
    /// none, local (own loopback), restricted (named hosts) or full [default: none]
    #[arg(long, value_enum, value_name = "NET", hide_possible_values = true, help_heading = "Cell")]
    pub(crate) network: Option<Net>,
    /// NAME:PORT that a restricted network reaches; may be repeated
    #[arg(long, value_name = "HOST", value_parser = host, help_heading = "Cell")]
    pub(crate) allow_host: Vec<AllowedHost>,
    /// On behalf of which tenant, for quotas and records
    #[arg(long, value_name = "ID", help_heading = "Record")]
    pub(crate) tenant: Option<String>,
    /// On behalf of which user
    #[arg(long, value_name = "ID", help_heading = "Record")]
    pub(crate) user: Option<String>,
    /// Which run of the caller's it belongs to
    #[arg(long, value_name = "ID", help_heading = "Record")]
    pub(crate) run_id: Option<String>,
    /// A variable for the program; K alone passes the caller's on
    #[arg(long, value_name = "K=V", help_heading = "Cell")]
    pub(crate) env: Vec<OsString>,
    /// A directory that the program sees at /src, read-only
    #[arg(long, value_name = "DIR", help_heading = "Cell")]
    pub(crate) input: Option<PathBuf>,
    /// A file for the program's standard input [default: the caller's]
    #[arg(long, value_name = "FILE", help_heading = "Cell")]
    pub(crate) stdin: Option<PathBuf>,
    /// What a refused attempt does: kill, fail or note [default: fail]
    #[arg(long, value_enum, value_name = "ACT", hide_possible_values = true, help_heading = "Cell")]
    pub(crate) on_violation: Option<OnViolation>,
    /// A layer without which not to run: cgroup, landlock
    #[arg(long, value_name = "LAYER", help_heading = "Cell")]
    pub(crate) require: Vec<String>,
    /// text passes output through, json prints the result alone
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value = "text",
        hide_possible_values = true,
        help_heading = "Result"
    )]
    pub(crate) output: Output,
    /// Also write the result, as JSON, to this file
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub(crate) result: Option<PathBuf>,
    /// Write a signed statement about the result to this new file
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub(crate) receipt: Option<PathBuf>,
    /// Copy what the program leaves in /work to this new directory
    #[arg(long, value_name = "DIR", help_heading = "Result")]
    pub(crate) artifacts: Option<PathBuf>,
    /// Which of them: a glob like **/*.json [default: all]
    #[arg(long, value_name = "GLOB", requires = "artifacts", help_heading = "Result")]
    pub(crate) collect: Vec<String>,
    /// The id of the request [default: a new one]
    #[arg(long, value_name = "ID", help_heading = "Result")]
    pub(crate) request_id: Option<String>,
    /// No summary line
    #[arg(long, short, help_heading = "Result")]
    pub(crate) quiet: bool,
}

/// What is told of a run while it is going.
#[derive(Args)]
pub(crate) struct WatchArgs {
    /// Add what happens, as it does, to this file: JSON lines
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub(crate) events: Option<PathBuf>,
    /// Show on the terminal how the run stands
    #[arg(long, help_heading = "Result")]
    pub(crate) watch: bool,
    /// Between two samples, 10ms to 60s [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = parse_interval, hide_short_help = true, help_heading = "Result")]
    pub(crate) sample_every: Option<Duration>,
    /// The share of a limit at which there is an alert [default: 0.8]
    #[arg(long, value_name = "SHARE", value_parser = parse_share, hide_short_help = true, help_heading = "Result")]
    pub(crate) alert_at: Option<f64>,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|e| e.to_string())?;
    let known = Watch::EVERY;
    known.contains(&time).then_some(time).ok_or_else(|| "give 10ms to 60s".into())
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| Watch::ALERT_AT.contains(share));
    share.ok_or_else(|| "give a share from 0.01 to 1, such as 0.8".into())
}

fn host(text: &str) -> Result<AllowedHost, String> {
    AllowedHost::parse(text).map_err(str::to_owned)
}

/// The name `sandbox-run` (a link to the binary) is `hotcell run`.
pub(crate) fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let name = words.first().map(PathBuf::from);
    if name.as_deref().and_then(|p| p.file_name()).is_some_and(|n| n == "sandbox-run") {
        words.insert(1, "run".into());
    }
    words
}
