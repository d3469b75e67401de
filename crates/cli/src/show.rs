//! What people see: the summary line, errors. Colour on a terminal only.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
pub(crate) use hotcell_contract::harmless;
use hotcell_contract::{Outcome, Status, reason, show_duration, show_size};

/// Colour is for terminals, and for those who have not said no to it.
pub(crate) fn painted(text: &str, style: Style, terminal: bool) -> String {
    if terminal && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty()) {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

/// What a compiler said that refused the program; one that took it is not heard.
pub(crate) fn compiler(outcome: &Outcome) {
    if let Some(compile) = outcome.phases.last().filter(|phase| phase.name == "compile") {
        let text = format!("{}{}", compile.stdout, compile.stderr);
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let _ = write!(std::io::stderr(), "{text}{end}");
    }
}

const MOST_SKIPPED: usize = 5;

/// One line on stderr: always on a terminal, elsewhere only when the verdict is not a pass.
pub(crate) fn summary(outcome: &Outcome) {
    let terminal = std::io::stderr().is_terminal();
    for skipped in outcome.skipped_checks.iter().take(MOST_SKIPPED) {
        let _ = writeln!(
            std::io::stderr(),
            "hotcell: {} is left out: {}",
            harmless(&skipped.check),
            harmless(&skipped.reason)
        );
    }
    if let Some(more) = outcome.skipped_checks.len().checked_sub(MOST_SKIPPED).filter(|more| *more > 0) {
        let _ = writeln!(std::io::stderr(), "hotcell: and {more} more");
    }
    if terminal || outcome.status == Status::Fail {
        verdict(outcome);
    }
}

/// That line itself.
pub(crate) fn verdict(outcome: &Outcome) {
    let terminal = std::io::stderr().is_terminal();
    let (mark, colour) = match outcome.status {
        Status::Pass => ("pass", AnsiColor::Green),
        Status::Fail => ("fail", AnsiColor::Red),
    };
    let mut line = painted(mark, colour.on_default().bold(), terminal);
    if outcome.status == Status::Pass && outcome.phases.iter().any(|phase| phase.tier.is_some()) {
        let tier = serde_json::to_value(outcome.tier).ok().and_then(|tier| Some(tier.as_str()?.to_owned()));
        line += &format!(" {}", tier.unwrap_or_default());
    }
    if let Some(class) = outcome.failure_class {
        line += &format!(" {}", painted(&format!("{class:?}"), Style::new().bold(), terminal));
    }
    // A program that was never started has not failed: it is the last phase that did.
    let compiling = outcome.phases.last().is_some_and(|phase| phase.name == "compile" && phase.tier.is_none());
    match reason(outcome) {
        Some(what) if compiling => line += &format!(": while compiling, {what}"),
        Some(what) => line += &format!(": {what}"),
        None => {}
    }
    let usage = format!(
        "{} wall, {} cpu, {} peak",
        show_duration(Duration::from_millis(outcome.duration_ms)),
        show_duration(Duration::from_millis(outcome.usage.cpu_ms)),
        show_size(outcome.usage.memory_peak_bytes),
    );
    let unfinished = |text: &str| !text.is_empty() && !text.ends_with('\n');
    let newline = match terminal && (unfinished(&outcome.stdout) || unfinished(&outcome.stderr)) {
        true => "\n",
        false => "",
    };
    let weaker: Vec<&str> = outcome.degraded.iter().map(|layer| layer.layer.as_str()).collect();
    let weaker = match weaker.is_empty() || !terminal {
        true => String::new(),
        false => {
            painted(&format!(", weaker here: {} (hotcell doctor)", weaker.join(", ")), Style::new().dimmed(), true)
        }
    };
    let usage = painted(&usage, Style::new().dimmed(), terminal);
    let _ = writeln!(std::io::stderr(), "{newline}hotcell: {line} ({usage}){weaker}");
}

/// JSON that steers no terminal, whatever is in it: every letter beyond ASCII is written by its number.
pub(crate) fn ascii_json(value: &impl serde::Serialize) -> anyhow::Result<String> {
    let mut text = String::new();
    for letter in serde_json::to_string_pretty(value)?.chars() {
        match letter {
            '\n' | ' '..='~' => text.push(letter),
            _ => letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    Ok(text)
}

/// Something of less weight than an error, in one sentence.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "hotcell: {}", harmless(text));
}

/// One sentence: what, which value, what to do.
pub(crate) fn error(error: &anyhow::Error) {
    let terminal = std::io::stderr().is_terminal();
    let mark = painted("error", AnsiColor::Red.on_default().bold(), terminal);
    let _ = writeln!(std::io::stderr(), "hotcell: {mark}: {}", harmless(&format!("{error:#}")));
}

/// What clap says in a page, in a sentence. `verb` is the first word.
pub(crate) fn usage_error(error: &clap::Error, verb: &str) -> anyhow::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if let Some(below) = verbs_below(verb) {
        match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
            (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) => {
                return anyhow::anyhow!("`{word}` is no verb of `hotcell {verb}`: use {below}");
            }
            (ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => {
                return anyhow::anyhow!("`hotcell {verb}` lacks its verb: use {below}");
            }
            _ => {}
        }
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return anyhow::anyhow!(
            "no command was given: try `hotcell exec -- CMD`, `hotcell run FILE` or `hotcell --help`"
        );
    }
    let page = error.to_string();
    // Everybody's first try: `hotcell exec ls`.
    if ["run", "exec"].contains(&verb)
        && error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
        && !word.starts_with('-')
    {
        return anyhow::anyhow!(
            "`{word}` must stand behind `--`: write `hotcell exec -- CMD ARGS` or `hotcell run FILE -- ARGS`"
        );
    }
    let mut lines = page.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    // A list of what is missing, or possible, stands on the lines below; a tip somewhere behind.
    let missing: Vec<&str> = if first.ends_with(':') {
        lines.clone().take_while(|line| !line.starts_with("Usage")).collect()
    } else {
        vec![]
    };
    let tip = lines
        .find_map(|line| line.strip_prefix("tip: ").or_else(|| line.strip_prefix('[')?.strip_suffix(']')))
        .map(|tip| format!(" ({tip})"))
        .unwrap_or_default();
    anyhow::anyhow!("{first}{}{}{tip}: try --help", if missing.is_empty() { "" } else { " " }, missing.join(", "))
}

/// The verbs of a verb that has some: `on, off or status`.
fn verbs_below(verb: &str) -> Option<String> {
    let all = <crate::args::Cli as clap::CommandFactory>::command();
    let mut names: Vec<&str> = all.find_subcommand(verb)?.get_subcommands().map(|below| below.get_name()).collect();
    let last = names.pop()?;
    Some(format!("{} or {last}", names.join(", ")))
}

pub(crate) fn schema(of: &str) -> anyhow::Result<ExitCode> {
    let all = hotcell_contract::schemas();
    let schema = match all.iter().find(|(name, _)| *name == of) {
        Some((_, schema)) => schema.clone(),
        None if of == "openapi" => hotcell_server::openapi(),
        None if of == "mcp" => hotcell_server::tools(),
        None => {
            let names = all.map(|(name, _)| name).join(", ");
            anyhow::bail!("`{}` is no contract: use one of {names}, openapi, mcp", harmless(of));
        }
    };
    let text = serde_json::to_string_pretty(&schema)?;
    writeln!(std::io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}
