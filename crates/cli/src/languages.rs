//! `hotcell languages`: what this host can run, with which versions, and what to install for the rest.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use hotcell_engine::{Catalogue, Launcher, Surveyed, survey};
use serde_json::json;

use crate::args::{LanguagesArgs, Output};
use crate::show::{harmless, painted};

/// What is built in, and a directory of the user's own: by the flag, the environment, or the usual place.
pub(crate) fn catalogue(own: Option<&Path>) -> anyhow::Result<Catalogue> {
    let named = own
        .map(Path::to_owned)
        .or_else(|| std::env::var_os("HOTCELL_LANGUAGES").filter(|name| !name.is_empty()).map(PathBuf::from));
    let usual = || {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
        Some(config.join("hotcell/languages")).filter(|dir| dir.is_dir())
    };
    Ok(Catalogue::load(named.or_else(usual).as_deref())?)
}

pub(crate) fn show(args: &LanguagesArgs, launcher: &Launcher) -> anyhow::Result<ExitCode> {
    let found = survey(launcher, &catalogue(args.languages.as_deref())?);
    let mut out = std::io::stdout().lock();
    match args.output {
        Output::Json => {
            let all: Vec<_> = found.iter().map(as_json).collect();
            writeln!(out, "{}", serde_json::to_string_pretty(&json!({ "languages": all }))?)?;
        }
        Output::Text => {
            let colour = out.is_terminal();
            for language in &found {
                writeln!(out, "{}", line(language, colour))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(language: &Surveyed) -> serde_json::Value {
    json!({
        "name": language.name, "aliases": language.aliases, "extensions": language.extensions,
        "available": language.missing.is_none(), "version": language.version, "toolchain": language.toolchain,
        "compiled": language.compiled, "missing": language.missing,
    })
}

/// The first words of digits and dots in what a tool says of itself.
fn number(said: Option<&str>) -> &str {
    let is_number = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    said.and_then(|said| said.split(|c: char| !c.is_ascii_digit() && c != '.').find(is_number)).unwrap_or("?")
}

fn line(language: &Surveyed, colour: bool) -> String {
    let extensions: Vec<String> = language.extensions.iter().map(|e| format!(".{e}")).collect();
    let (mark, style, rest) = match &language.missing {
        None => {
            let toolchain = painted(&harmless(&language.toolchain), Style::new().dimmed(), colour);
            ("yes", AnsiColor::Green, format!("{:<10} {toolchain}", number(language.version.as_deref())))
        }
        Some(why) => ("no ", AnsiColor::Yellow, harmless(why)),
    };
    let mark = painted(mark, style.on_default(), colour);
    format!("{mark}  {:<11} {:<16} {rest}", harmless(&language.name), harmless(&extensions.join(" ")))
}
