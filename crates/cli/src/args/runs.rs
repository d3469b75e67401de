//! `run`, `exec` and `verify`, as the user writes them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hotcell_contract::{parse_duration, parse_size};

use super::cell::{CellArgs, WatchArgs};

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
