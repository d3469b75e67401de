//! Which languages this host can run, with their versions: asked of the tools themselves, in cells.

use hotcell_languages::{Catalogue, Host, Language, in_cell, tools};
use hotcell_sandbox::{Launcher, Streams};

use crate::plan::version_spec;
use crate::request::{Program, Request};

/// One language as it is here.
#[derive(Clone, Debug)]
pub struct Surveyed {
    pub name: String,
    pub aliases: Vec<String>,
    pub extensions: Vec<String>,
    pub compiled: bool,
    pub toolchain: String,
    /// What the tool says of itself, in one line.
    pub version: Option<String>,
    /// Why it can't be run, and what to install.
    pub missing: Option<String>,
}

pub fn survey(launcher: &Launcher, catalogue: &Catalogue) -> Vec<Surveyed> {
    let host = Host::this();
    catalogue.all().iter().map(|language| look(launcher, language, &host)).collect()
}

fn look(launcher: &Launcher, language: &Language, host: &Host) -> Surveyed {
    let mut seen = Surveyed {
        name: language.name.clone(),
        aliases: language.aliases.clone(),
        extensions: language.extensions.clone(),
        compiled: language.ways.iter().any(|way| way.compile.is_some()),
        toolchain: String::new(),
        version: None,
        missing: None,
    };
    match tools(language, host) {
        Err(e) => seen.missing = Some(e.to_string()),
        Ok(found) => {
            // A script is what the tool before it runs.
            let scripts = found.iter().filter(|(name, _)| language.tools.get(name).is_some_and(|tool| tool.script));
            let Some((name, main)) = scripts.chain(&found).next() else { return seen };
            seen.toolchain = main.binary.display().to_string();
            let mut argv: Vec<std::ffi::OsString> = vec![];
            if language.tools.get(name).is_some_and(|tool| tool.script) {
                argv.extend(found.first().map(|(_, first)| in_cell(&first.binary).into()));
            }
            argv.push(in_cell(&main.binary).into());
            argv.extend(language.tools.get(name).into_iter().flat_map(|tool| &tool.version).map(Into::into));
            seen.version = version(launcher, argv, &found);
        }
    }
    seen
}

fn version(
    launcher: &Launcher,
    argv: Vec<std::ffi::OsString>,
    found: &[(String, hotcell_languages::Found)],
) -> Option<String> {
    let spec = version_spec(&Request::of(Program::Command(argv)), found).ok()?;
    let report = launcher.run(&spec, Streams { keep: 4096, ..Streams::default() }).ok()?;
    let said = [report.stdout.head, report.stdout.tail, report.stderr.head, report.stderr.tail].concat();
    let text = String::from_utf8_lossy(&said);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(60).collect())
}
