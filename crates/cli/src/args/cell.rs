//! What can be said of every cell, and of what is told of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hotcell_contract::{AllowedHost, parse_duration, parse_size};
use hotcell_engine::Watch;

use super::Output;
use super::backend::BackendArgs;

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
    /// What is to be kept with it, and what a policy may look at; may be repeated
    #[arg(long, value_name = "KEY=VALUE", hide_short_help = true, help_heading = "Record")]
    pub(crate) meta: Vec<String>,
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
    #[command(flatten)]
    pub(crate) backend: BackendArgs,
    /// A layer without which not to run: cgroup, landlock, patched-runtime
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
    #[arg(long, value_name = "ID", help_heading = "Result", hide_short_help = true)]
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
    /// Give the program a terminal of its own, for a shell or an editor
    #[arg(long, short, help_heading = "Cell")]
    pub(crate) tty: bool,
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
