//! `hotcell doctor`: what this host gives to cells, and what is missing.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anstyle::AnsiColor;
use hotcell_engine::{Check, Launcher, diagnose};
use serde_json::json;

use crate::args::{DoctorArgs, Output};
use crate::grants;
use crate::show::{harmless, painted};

pub(crate) fn doctor(args: &DoctorArgs, launcher: &Launcher) -> anyhow::Result<ExitCode> {
    let mut diagnosis = diagnose(launcher);
    let switches = switches();
    diagnosis.ok &= switches.present;
    diagnosis.checks.push(switches);
    let mut out = std::io::stdout().lock();
    match args.output {
        Output::Json => {
            let checks: Vec<_> = diagnosis
                .checks
                .iter()
                .map(|c| {
                    json!({
                        "name": c.name, "present": c.present, "needed": c.needed,
                        "detail": c.detail, "remedy": c.remedy,
                    })
                })
                .collect();
            let all = json!({ "ok": diagnosis.ok, "checks": checks });
            writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        }
        Output::Text => {
            let colour = out.is_terminal();
            for check in &diagnosis.checks {
                writeln!(out, "{}", line(check, colour))?;
            }
            let word = if diagnosis.ok { "cells run here" } else { "cells cannot run here: see above" };
            writeln!(out, "{word}")?;
        }
    }
    Ok(if diagnosis.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// With a file that cannot be used, nothing runs.
fn switches() -> Check {
    let (present, detail) = match grants::switches(None) {
        Ok(_) => (true, "what is enabled can be read".into()),
        Err(e) => (false, format!("{e:#}")),
    };
    Check { name: "hotcell.toml".into(), present, needed: true, detail, remedy: None }
}

fn line(check: &Check, colour: bool) -> String {
    let (word, style) = match (check.present, check.needed) {
        (true, _) => ("yes ", AnsiColor::Green.on_default()),
        (false, false) => ("weak", AnsiColor::Yellow.on_default()),
        (false, true) => ("NO  ", AnsiColor::Red.on_default().bold()),
    };
    let word = painted(word, style, colour);
    let what_for = if check.present { "to mend it" } else { "to get it" };
    let remedy = check.remedy.as_ref().map(|r| format!("\n                       {what_for}: {r}")).unwrap_or_default();
    format!("{word}  {:<16} {}{remedy}", check.name, harmless(&check.detail))
}
