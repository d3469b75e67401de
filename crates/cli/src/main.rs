//! The binary `hotcell`: words into requests, outcomes into words. Exit codes are decided here, once.

mod approve;
mod args;
mod doctor;
mod events;
mod exit;
mod grants;
mod languages;
mod lease;
mod mcp;
mod policy;
mod progress;
mod receipt;
mod run;
mod serve;
mod service_user;
mod show;
mod state;
mod terminal;
mod verify;
mod view;

use std::process::ExitCode;

use hotcell_engine::Launcher;

/// Cells that are built before a service is asked for them: each takes a process and a little memory.
const SERVED_AHEAD: usize = 4;

fn main() -> ExitCode {
    // In a container that a runtime made for a cell, this is its init.
    hotcell_engine::become_init_if_asked();
    // Before anything else: the launcher builds a cell while the command line is being read.
    let words = args::words();
    let makes_cells = words.get(1).is_some_and(|verb| {
        ["run", "exec", "doctor", "languages", "verify", "serve", "mcp"].iter().any(|known| verb == known)
    });
    let verb = words.get(1).and_then(|verb| verb.to_str()).unwrap_or_default().to_owned();
    let serves = ["serve", "mcp"].contains(&verb.as_str());
    if serves {
        hotcell_engine::close_inherited_files();
    }
    if makes_cells {
        hotcell_engine::raise_open_files();
    }
    let ahead = if serves { SERVED_AHEAD } else { 1 };
    let launcher = makes_cells.then(|| Launcher::start(ahead));
    let cli = match args::parse(words) {
        Ok(cli) => cli,
        Err(e) => {
            // --help and --version are answers, all else is bad usage.
            if !e.use_stderr() {
                let _ = e.print();
                return ExitCode::SUCCESS;
            }
            show::error(&show::usage_error(&e, &verb));
            return exit::refused();
        }
    };
    let done = launcher.transpose().map_err(anyhow::Error::from).and_then(|launcher| match (cli.command, launcher) {
        (args::Command::Exec(args), Some(launcher)) => run::exec(args, &launcher),
        (args::Command::Run(args), Some(launcher)) => run::run(args, &launcher),
        (args::Command::Doctor(args), Some(launcher)) => doctor::doctor(&args, &launcher),
        (args::Command::Verify(args), Some(launcher)) => verify::verify(args, &launcher),
        (args::Command::Languages(args), Some(launcher)) => languages::show(&args, &launcher),
        (args::Command::Serve(args), Some(launcher)) => serve::serve(&args, launcher),
        (args::Command::Mcp(args), Some(launcher)) => mcp::mcp(&args, launcher),
        (args::Command::Keys(args), _) => serve::keys(&args),
        (args::Command::Records(args), _) => state::records(&args),
        (args::Command::Stats(args), _) => state::stats(&args),
        (args::Command::Audit(args), _) => state::audit(&args),
        (args::Command::Receipt(args), _) => receipt::receipt(&args),
        (args::Command::Killswitch(args), _) => state::killswitch(&args),
        (args::Command::Lease(args), _) => lease::lease(args),
        (args::Command::Approve(args), _) => approve::approve(args),
        (args::Command::Intent(args), _) => approve::intent(args),
        (args::Command::Rollback(args), _) => approve::rollback(&args),
        (args::Command::Policy(args), _) => policy::policy(&args),
        (args::Command::Schema { of }, _) => show::schema(&of),
        // Every other verb has been seen at the top.
        (_, None) => anyhow::bail!("the verb must be the first word"),
    });
    done.unwrap_or_else(|error| {
        // Whoever has closed the pipe has read what he wanted; of a run there is more to tell than that.
        let runs = ["run", "exec", "verify"].contains(&verb.as_str());
        if !runs && exit::is_closed_pipe(&error) {
            return exit::closed_pipe();
        }
        show::error(&error);
        exit::of_error(&error)
    })
}
