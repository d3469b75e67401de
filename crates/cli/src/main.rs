//! The binary `hotcell`: words into requests, outcomes into words. Exit codes are decided here, once.

mod args;
mod doctor;
mod exit;
mod run;
mod show;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse_from(args::words()) {
        Ok(cli) => cli,
        Err(e) => {
            // --help and --version are answers, all else is bad usage.
            let _ = e.print();
            return if e.use_stderr() {
                exit::refused()
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let done = match cli.command {
        args::Command::Exec(args) => run::exec(args),
        args::Command::Run(args) => run::run(args),
        args::Command::Doctor(args) => doctor::doctor(&args),
        args::Command::Schema => show::schema(),
    };
    done.unwrap_or_else(|error| {
        show::error(&error);
        exit::refused()
    })
}
