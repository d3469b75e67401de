//! What `verify` asks of sources: a step each, or the reason why not.

use std::path::Path;

use crate::catalogue::{Check, Language, Results, Step};
use crate::find::{Host, find};
use crate::glob::matches;
use crate::plan::{Ready, Tools, Words, entry_of};
use crate::sources::Sources;

/// A check that was looked at.
#[derive(Clone, Debug)]
pub struct PlannedCheck {
    pub name: String,
    pub tier: String,
    /// What it means when it fails.
    pub class: Option<String>,
    /// Of a group only the first runs that can.
    pub group: Option<String>,
    pub empty: Option<i32>,
    pub results: Option<Results>,
    pub step: Result<ReadyCheck, String>,
}

#[derive(Clone, Debug)]
pub struct ReadyCheck {
    pub step: Ready,
    /// Must succeed, or the check can't be made here.
    pub probe: Option<Ready>,
    pub tools: Tools,
}

/// All checks of a language that concern these sources.
pub fn checks(language: &Language, sources: &Sources, memory: u64, host: &Host) -> Vec<PlannedCheck> {
    let concerns = |check: &&Check| match (&check.marker, check.unmarked) {
        (Some(marker), _) => sources.has(marker),
        (None, true) => !language.checks.iter().filter_map(|c| c.marker.as_ref()).any(|marker| sources.has(marker)),
        (None, false) => true,
    };
    let planned = |check: &Check| PlannedCheck {
        name: check.name.clone(),
        tier: check.tier.clone(),
        class: check.class.clone(),
        group: check.group.clone(),
        empty: check.empty,
        results: check.results.clone(),
        step: ready(check, language, sources, memory, host),
    };
    language.checks.iter().filter(concerns).map(planned).collect()
}

fn ready(
    check: &Check,
    language: &Language,
    sources: &Sources,
    memory: u64,
    host: &Host,
) -> Result<ReadyCheck, String> {
    let all = sources.all().ok_or("there are too many files")?;
    if !check.files.is_empty() && !all.iter().any(|file| check.files.iter().any(|glob| matches(glob, file))) {
        return Err(format!("no file is called {}", check.files.join(" or ")));
    }
    if let Some(text) = &check.contains
        && !sources.contain(text, &language.extensions)
    {
        return Err(format!("no source has {text}"));
    }
    let named = |word: &String| word == "{sources}" || word == "{siblings}";
    if check.argv.iter().any(named)
        && sources.with(&language.extensions, true, Path::new("")).is_none_or(|s| s.is_empty())
    {
        return Err(format!("there is no {} file", language.name));
    }
    let mut tools = vec![];
    for name in &check.tools {
        let tool = &language.tools[name];
        let package = tool.package.as_ref().unwrap_or(&language.package);
        let found = find(name, tool, host).ok_or_else(|| format!("{name} is not on this host: install {package}"))?;
        tools.push((name.clone(), found));
    }
    let entry = entry_of(language, None, sources).unwrap_or_else(|_| Path::new("").to_owned());
    let words = Words { language, sources, entry: &entry, tools: &tools, memory };
    let step = Step { argv: check.argv.clone(), env: check.env.clone(), cwd: check.cwd.clone() };
    let fill = |step: &Step| words.fill(step).map_err(|e| e.to_string());
    let probe = check.probe.as_ref().map(|argv| fill(&Step { argv: argv.clone(), ..Step::default() })).transpose()?;
    Ok(ReadyCheck { step: fill(&step)?, probe, tools })
}
