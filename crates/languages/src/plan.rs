//! Sources and a language become steps: which program, with which words, in which directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::catalogue::{Language, Step, Way};
use crate::find::{Found, Host, find, in_cell};
use crate::sources::{MAX_SOURCES, Sources, stays_inside};

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("no `{tool}` for {language} is on this host: install {package}")]
    Missing { language: String, tool: String, package: String },
    #[error("`{}` has no file with which a {language} program begins: name one with --entry, or make one of {entries}", dir.display())]
    NoEntry { dir: PathBuf, language: String, entries: String },
    #[error("`{}` leads out of `{}`: name a file inside it", entry.display(), dir.display())]
    Outside { entry: PathBuf, dir: PathBuf },
    #[error("`{}` has more than {MAX_SOURCES} source files", .0.display())]
    TooMany(PathBuf),
    #[error("the language file of {language} says `{word}`, which stands for nothing")]
    UnknownWord { language: String, word: String },
}

/// By the names that the language file gives them.
pub type Tools = Vec<(String, Found)>;

/// Everything that the cells of one program need to know.
#[derive(Clone, Debug)]
pub struct Planned {
    pub language: String,
    /// Relative to /src.
    pub entry: PathBuf,
    pub tools: Tools,
    pub trees: Vec<PathBuf>,
    pub compile: Option<Ready>,
    pub run: Ready,
    pub parse: Option<Ready>,
    pub prepare: Option<Preparation>,
    pub threads: u64,
}

/// A step with every word in its place, but for those that are not known before the program is compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    pub argv: Vec<OsString>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
}

/// What is made once for a toolchain.
#[derive(Clone, Debug)]
pub struct Preparation {
    pub step: Ready,
    pub at: PathBuf,
    pub variable: Option<String>,
    pub word: Option<String>,
}

impl Planned {
    /// The program that the others stand for.
    pub fn toolchain(&self) -> String {
        self.tools.first().map(|(_, found)| found.binary.display().to_string()).unwrap_or_default()
    }
}

/// Changes when any of the tools does.
pub fn identity(tools: &Tools) -> String {
    tools.iter().map(|(name, found)| format!("{name} {}\n", found.identity())).collect()
}

/// `memory` is the limit of the run, for runtimes that must be told.
pub fn plan(language: &Language, sources: &Sources, memory: u64, host: &Host) -> Result<Planned, PlanError> {
    let (way, tools) = way(language, sources, host)?;
    let entry = entry_of(language, Some(way), sources)?;
    let words = Words { language, sources, entry: &entry, tools: &tools, memory };
    let mut trees: Vec<PathBuf> = tools.iter().flat_map(|(_, found)| found.trees.clone()).collect();
    trees.sort();
    trees.dedup();
    // A tree inside another is there already.
    let all = trees.clone();
    trees.retain(|tree| !all.iter().any(|above| above != tree && tree.starts_with(above)));
    let prepare = words.preparation()?;
    Ok(Planned {
        language: language.name.clone(),
        entry: entry.clone(),
        compile: way.compile.as_ref().map(|step| words.fill(step)).transpose()?,
        run: words.fill_run(&way.run)?,
        parse: way.parse.as_ref().map(|step| words.fill(step)).transpose()?,
        prepare,
        trees,
        threads: language.threads,
        tools,
    })
}

/// The tools with which a single file of this language would be run.
pub fn tools(language: &Language, host: &Host) -> Result<Tools, PlanError> {
    way(language, &Sources::Files(vec![]), host).map(|(_, tools)| tools)
}

/// The first way that fits the sources and has its tools; else what the first fitting one lacks.
fn way<'a>(language: &'a Language, sources: &Sources, host: &Host) -> Result<(&'a Way, Tools), PlanError> {
    let fits = |way: &&Way| way.marker.as_ref().is_none_or(|marker| sources.has(marker));
    let mut lacking = None;
    for way in language.ways.iter().filter(fits) {
        let mut tools = vec![];
        let missing = way.tools.iter().find(|name| {
            let tool = &language.tools[*name];
            match find(name, tool, host) {
                Some(found) => {
                    tools.push(((*name).clone(), found));
                    false
                }
                None => true,
            }
        });
        let Some(missing) = missing else { return Ok((way, tools)) };
        lacking.get_or_insert_with(|| PlanError::Missing {
            language: language.name.clone(),
            tool: missing.clone(),
            package: language.tools[missing].package.clone().unwrap_or_else(|| language.package.clone()),
        });
        // A directory that is marked as one kind of project is not another for want of a tool.
        if way.marker.is_some() {
            break;
        }
    }
    Err(lacking.unwrap_or_else(|| PlanError::Missing {
        language: language.name.clone(),
        tool: language.name.clone(),
        package: language.package.clone(),
    }))
}

/// Relative to /src.
pub(crate) fn entry_of(language: &Language, way: Option<&Way>, sources: &Sources) -> Result<PathBuf, PlanError> {
    match sources {
        Sources::Files(names) => Ok(names.first().map(PathBuf::from).unwrap_or_default()),
        Sources::Directory { entry: Some(entry), .. } => Ok(entry.clone()),
        Sources::Directory { host, entry: None } => {
            let usual = language.entries.iter().find(|entry| host.join(entry).is_file());
            // The only file there is needs no name.
            let only = || match sources.with(&language.extensions, false, Path::new(""))?.as_slice() {
                [one] => one.strip_prefix("/src").ok().map(Path::to_owned),
                _ => None,
            };
            let marker = || way?.marker.as_ref().map(PathBuf::from);
            let found = usual.map(PathBuf::from).or_else(only).or_else(marker);
            if let Some(entry) = found.as_ref().filter(|entry| !stays_inside(host, entry)) {
                return Err(PlanError::Outside { entry: entry.clone(), dir: host.clone() });
            }
            found
                .or_else(|| {
                    // Where every source is compiled, none of them needs to be the first.
                    let whole = way
                        .and_then(|way| way.compile.as_ref())
                        .is_some_and(|step| step.argv.iter().any(|word| word == "{sources}"));
                    whole.then(PathBuf::new)
                })
                .ok_or_else(|| PlanError::NoEntry {
                    dir: host.clone(),
                    language: language.name.clone(),
                    entries: language.entries.join(", "),
                })
        }
    }
}

pub(crate) struct Words<'a> {
    pub(crate) language: &'a Language,
    pub(crate) sources: &'a Sources,
    pub(crate) entry: &'a Path,
    pub(crate) tools: &'a [(String, Found)],
    pub(crate) memory: u64,
}

/// What is to be made once for these tools, where they did not come with it.
pub fn preparation(language: &Language, tools: &Tools) -> Result<Option<Preparation>, PlanError> {
    let sources = Sources::Files(vec![]);
    Words { language, sources: &sources, entry: Path::new(""), tools, memory: 0 }.preparation()
}

impl Words<'_> {
    fn preparation(&self) -> Result<Option<Preparation>, PlanError> {
        let prefix = self.tools.first().map(|(_, found)| found.prefix.display().to_string()).unwrap_or_default();
        let is_there = |file: &String| Path::new(&file.replace("{prefix}", &prefix)).exists();
        match &self.language.prepare {
            Some(prepare) if !prepare.unless.as_ref().is_some_and(is_there) => {
                let step = Step { argv: prepare.argv.clone(), env: prepare.env.clone(), cwd: None };
                Ok(Some(Preparation {
                    step: self.fill(&step)?,
                    at: prepare.at.clone().into(),
                    variable: prepare.variable.clone(),
                    word: prepare.word.clone(),
                }))
            }
            _ => Ok(None),
        }
    }

    /// A step of the toolchain's.
    pub(crate) fn fill(&self, step: &Step) -> Result<Ready, PlanError> {
        let mut ready = self.fill_run(step)?;
        for (key, value) in &self.language.env {
            if !ready.env.contains_key(key) {
                ready.env.insert(key.clone(), self.replace(value)?.to_string_lossy().into_owned());
            }
        }
        Ok(ready)
    }

    /// The program's own step: it sees nothing of the toolchain's variables.
    fn fill_run(&self, step: &Step) -> Result<Ready, PlanError> {
        let mut argv: Vec<OsString> = vec![];
        for word in &step.argv {
            let many = |everywhere| {
                self.sources.with(&self.language.extensions, everywhere, self.entry).ok_or_else(|| match self.sources {
                    Sources::Directory { host, .. } => PlanError::TooMany(host.clone()),
                    Sources::Files(_) => PlanError::TooMany("/src".into()),
                })
            };
            match word.as_str() {
                "{sources}" => argv.extend(many(true)?.into_iter().map(OsString::from)),
                "{siblings}" => argv.extend(many(false)?.into_iter().map(OsString::from)),
                // Known later.
                "{args}" | "{prepared}" | "{main_class}" => argv.push(word.into()),
                _ => argv.push(self.replace(word)?),
            }
        }
        let mut env = BTreeMap::new();
        for (key, value) in &step.env {
            env.insert(key.clone(), self.replace(value)?.to_string_lossy().into_owned());
        }
        let cwd = step.cwd.as_ref().map(|cwd| self.replace(cwd)).transpose()?.map(PathBuf::from);
        Ok(Ready { argv, env, cwd })
    }

    /// Every `{name}` in a word. What stands between braces and is no plain name is left as it is: scripts have those.
    fn replace(&self, word: &str) -> Result<OsString, PlanError> {
        let mut done = OsString::new();
        let mut rest = word;
        while let Some(open) = rest.find('{') {
            let Some(close) = rest[open..].find('}').map(|at| open + at) else { break };
            let name = &rest[open + 1..close];
            done.push(&rest[..open]);
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'+' | b'.')) {
                done.push(&rest[open..=open]);
                rest = &rest[open + 1..];
                continue;
            }
            done.push(self.value(name).ok_or_else(|| PlanError::UnknownWord {
                language: self.language.name.clone(),
                word: format!("{{{name}}}"),
            })?);
            rest = &rest[close + 1..];
        }
        done.push(rest);
        Ok(done)
    }

    fn value(&self, name: &str) -> Option<OsString> {
        let src = Path::new("/src");
        if let Some((_, found)) = self.tools.iter().find(|(tool, _)| tool == name) {
            return Some(in_cell(&found.binary).into());
        }
        match name {
            "entry" => Some(src.join(self.entry).into()),
            "entry_dir" => Some(Path::new(".").join(self.entry.parent().unwrap_or(Path::new(""))).into()),
            "entry_stem" => Some(self.entry.with_extension("").into()),
            "memory" => Some(self.memory.to_string().into()),
            "memory_90" => Some((self.memory / 10 * 9).to_string().into()),
            _ => None,
        }
    }
}
