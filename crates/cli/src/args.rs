//! The command line as the user writes it.

mod backend;
pub(crate) mod cell;
pub(crate) mod grants;
pub(crate) mod runs;
pub(crate) mod service;
pub(crate) mod state;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    Run(runs::RunArgs),
    /// Run a command in a cell
    Exec(runs::ExecArgs),
    /// Check sources and their tests in cells, and say what they are worth
    Verify(runs::VerifyArgs),
    /// Show, check and define policies
    Policy(state::PolicyArgs),
    /// Show what was run and what was refused
    Records(state::RecordsArgs),
    /// Show all runs together
    Stats(state::StatsArgs),
    /// Look at the audit log
    Audit(state::AuditArgs),
    /// Verify and show receipts
    Receipt(state::ReceiptArgs),
    /// Stop everything, and refuse what is new
    Killswitch(state::KillswitchArgs),
    /// Give out, hand on and take back signed permissions
    Lease(grants::LeaseArgs),
    /// Decide about runs that wait for an approval
    Approve(grants::ApproveArgs),
    /// Say what is to be done, and review what others want to do
    Intent(grants::IntentArgs),
    /// Take back what a leased run has changed
    Rollback(grants::RollbackArgs),
    /// Serve runs over HTTP
    Serve(service::ServeArgs),
    /// Serve runs to an agent, as tools of MCP on standard input and output
    Mcp(service::McpArgs),
    /// Make, show and take back the keys of the service
    Keys(service::KeysArgs),
    /// Show which languages this host can run
    Languages(LanguagesArgs),
    /// Show what this host gives to cells, and what is missing
    Doctor(DoctorArgs),
    /// Print the JSON Schema of a contract
    Schema {
        /// outcome, event, policy, record, stats, lease, intent, approval, receipt, request, run, problem, openapi or mcp
        #[arg(default_value = "outcome")]
        of: String,
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

/// To learn the words of every verb takes as long as to build a cell: of the two that are waited for, only theirs are. What is wrong
/// with them, and `--help`, is for all of it to say.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let command = match words.get(1).and_then(|verb| verb.to_str()) {
        Some("exec") => alone(&words[1..]).map(Command::Exec),
        Some("run") => alone(&words[1..]).map(Command::Run),
        _ => None,
    };
    command.map_or_else(|| Cli::try_parse_from(words), |command| Ok(Cli { command }))
}

fn alone<T: Args>(words: &[OsString]) -> Option<T> {
    let command = T::augment_args(clap::Command::new("hotcell"));
    let matches = command.try_get_matches_from(words).ok()?;
    T::from_arg_matches(&matches).ok()
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
