//! What can be run here, in Piston's words: its names, its aliases, and versions that a selector can be held against.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use hotcell_contract::{KeyScope, LanguageSummary};
use serde::Serialize;

use super::selector::{Version, takes};
use super::{Caller, Refusal, json};
use crate::http::languages::languages;
use crate::service::Service;

#[derive(Clone, Debug, Serialize)]
pub(super) struct Runtime {
    pub(super) language: String,
    pub(super) version: String,
    pub(super) aliases: Vec<String>,
    /// Where one package of Piston's has several languages.
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<&'static str>,
    #[serde(skip)]
    numbers: Version,
    /// What we call the language.
    #[serde(skip)]
    pub(super) ours: String,
    #[serde(skip)]
    pub(super) is_compiled: bool,
}

/// How Piston calls a language of ours.
struct Name {
    ours: &'static str,
    theirs: &'static str,
    /// `{major}` and `{minor}` are those of the version.
    aliases: &'static [&'static str],
    runtime: Option<&'static str>,
}

/// As its packages have it. A language that is not here is called as we call it.
const NAMES: [Name; 6] = [
    Name {
        ours: "python",
        theirs: "python",
        aliases: &["py", "py3", "python3", "python{major}.{minor}"],
        runtime: None,
    },
    Name {
        ours: "javascript",
        theirs: "javascript",
        aliases: &["node-javascript", "node-js", "javascript", "js"],
        runtime: Some("node"),
    },
    Name {
        ours: "typescript",
        theirs: "typescript",
        aliases: &["ts", "node-ts", "tsc", "typescript{major}", "ts{major}"],
        runtime: None,
    },
    Name { ours: "c", theirs: "c", aliases: &["gcc"], runtime: Some("gcc") },
    Name { ours: "cpp", theirs: "c++", aliases: &["cpp", "g++"], runtime: Some("gcc") },
    Name { ours: "go", theirs: "go", aliases: &["go", "golang"], runtime: None },
];

impl Runtime {
    fn of(language: &LanguageSummary) -> Runtime {
        let numbers = numbers(language.version.as_deref().unwrap_or_default());
        let [major, minor, patch] = numbers;
        let name = NAMES.iter().find(|name| name.ours == language.name);
        let filled = |alias: &&str| alias.replace("{major}", &major.to_string()).replace("{minor}", &minor.to_string());
        let mut aliases: Vec<String> = name.iter().flat_map(|name| name.aliases).map(filled).collect();
        for alias in &language.aliases {
            if !aliases.contains(alias) && name.is_none_or(|name| name.theirs != alias) {
                aliases.push(alias.clone());
            }
        }
        Runtime {
            language: name.map_or(language.name.as_str(), |name| name.theirs).to_owned(),
            version: format!("{major}.{minor}.{patch}"),
            aliases,
            runtime: name.and_then(|name| name.runtime),
            numbers,
            ours: language.name.clone(),
            is_compiled: language.compiled,
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.language == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// The first version in what a tool says of itself: `Python 3.11.2`, `go version go1.27 linux/amd64`. Zeros where it says none.
fn numbers(said: &str) -> Version {
    let words = said.split(|c: char| !c.is_ascii_digit() && c != '.');
    let read = |word: &str| -> Option<Version> {
        let mut parts = word.trim_matches('.').split('.').map(str::parse);
        let mut next = || parts.next().transpose().ok().flatten();
        Some([next()?, next()?, next().unwrap_or(0)])
    };
    words.into_iter().find_map(read).unwrap_or_default()
}

/// All that can be run. The first look takes a while: for a thread that may wait.
fn runtimes(service: &Arc<Service>) -> Vec<Runtime> {
    languages(service).languages.iter().filter(|language| language.available).map(Runtime::of).collect()
}

/// The one that a client means, if there is one.
pub(super) fn find(service: &Arc<Service>, language: &str, version: &str) -> Option<Runtime> {
    let is_meant = |runtime: &Runtime| runtime.is_called(language) && takes(version, runtime.numbers);
    runtimes(service).into_iter().filter(is_meant).max_by_key(|runtime| runtime.numbers)
}

/// For whoever may run or look: what his policy lets him run.
pub(super) async fn list(State(service): State<Arc<Service>>, Caller(caller): Caller) -> Result<Response, Refusal> {
    if !caller.has(KeyScope::Run) {
        caller.may(KeyScope::Read)?;
    }
    let all = service.blocking(move |service| {
        let allowed = service.policy_for(&caller, None)?.allowed_languages;
        let is_allowed = |runtime: &Runtime| allowed.is_empty() || allowed.contains(&runtime.ours);
        Ok(runtimes(service).into_iter().filter(is_allowed).collect::<Vec<Runtime>>())
    });
    json(&all.await?)
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn a_version_is_found_in_what_a_tool_says() {
        for (said, version) in [
            ("Python 3.11.2", [3, 11, 2]),
            ("v20.5.1", [20, 5, 1]),
            ("go version go1.27 linux/amd64", [1, 27, 0]),
            ("go version go1.19.8 linux/amd64", [1, 19, 8]),
            ("rustc 1.95.0 (abc 2026-01-01)", [1, 95, 0]),
            ("openjdk version \"17.0.13\" 2024-10-15", [17, 0, 13]),
            ("GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)", [5, 2, 15]),
            ("cc (Debian 12.2.0-14) 12.2.0", [12, 2, 0]),
            ("Version 5.9.3", [5, 9, 3]),
            ("something without one", [0, 0, 0]),
            ("", [0, 0, 0]),
        ] {
            assert_eq!(numbers(said), version, "{said}");
        }
    }
}
