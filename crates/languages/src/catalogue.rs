//! The languages that are known: one TOML file each. A user's own directory comes before what is built in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::sources::Sources;

/// One language, as its file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Language {
    pub name: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    pub extensions: Vec<String>,
    /// Files with which a directory begins, where none is named.
    #[serde(default)]
    pub entries: Vec<String>,
    /// What to install where a tool is missing.
    pub package: String,
    /// Threads of the runtime itself, which are no processes of the program's: added to its limit.
    #[serde(default)]
    pub threads: u64,
    /// What a source without a name is called.
    #[serde(default)]
    pub names: Vec<NameRule>,
    pub tools: BTreeMap<String, Tool>,
    /// For every step of the toolchain's; the program itself does not see it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub prepare: Option<Prepare>,
    /// In order: the first whose marker is there and whose tools are found.
    #[serde(rename = "way")]
    pub ways: Vec<Way>,
    #[serde(default, rename = "check")]
    pub checks: Vec<Check>,
    /// The text of its file, where it is not built in.
    #[serde(skip)]
    pub own_text: Option<String>,
}

/// Something that can be asked of sources.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub name: String,
    /// `L0` or `L1`
    pub tier: String,
    /// The failure class of a check that says no: `CompileError` for L0 and `TestFailure` for L1, where it is absent.
    pub class: Option<String>,
    pub group: Option<String>,
    /// A file without which it does not concern the sources.
    pub marker: Option<String>,
    /// It concerns only sources without any of the markers.
    #[serde(default)]
    pub unmarked: bool,
    /// One of these must be there.
    #[serde(default)]
    pub files: Vec<String>,
    /// A source must have this in it.
    pub contains: Option<String>,
    pub tools: Vec<String>,
    pub probe: Option<Vec<String>>,
    pub argv: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub cwd: Option<String>,
    /// The exit status that says: no tests.
    pub empty: Option<i32>,
    pub results: Option<Results>,
}

/// Where a test runner says what became of each test.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub format: ResultsFormat,
    /// Below the working directory; absent: its output.
    pub file: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultsFormat {
    Junit,
    Junit4,
    Unittest,
    Go,
    Tap,
    Cargo,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameRule {
    /// Absent: always.
    pub pattern: Option<String>,
    /// `{1}` is the first group.
    pub name: String,
    /// Only what stands outside all braces, comments and strings, as C and its children write them.
    #[serde(default)]
    pub outer: bool,
}

/// A program on the host.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub package: Option<String>,
    /// Arguments that make it tell its version.
    #[serde(default)]
    pub version: Vec<String>,
    /// What of its installation it needs: names below the directory above its `bin`, or absolute ones, with `*`.
    #[serde(default)]
    pub trees: Vec<String>,
    /// A file that the directory above its `bin` has when it is an installation: one that only happens to hold a program,
    /// somebody's home say, must not be shown to a cell.
    pub marker: Option<String>,
    /// Where else to look than on PATH, with `~` and `*`.
    #[serde(default)]
    pub also: Vec<String>,
    /// A script that another tool runs.
    #[serde(default)]
    pub script: bool,
}

/// How programs of a language are made and run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// A file of the source directory without which this is not the way.
    pub marker: Option<String>,
    pub tools: Vec<String>,
    pub compile: Option<Step>,
    pub run: Step,
    /// Whether the toolchain's own parser takes the source; asked when a program failed by itself. Exits with 65 if not.
    pub parse: Option<Step>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub argv: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub cwd: Option<String>,
}

/// Something of the toolchain's own that is made once and read by every later step.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// A file whose presence says that the toolchain came with it.
    pub unless: Option<String>,
    pub argv: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where steps find it.
    pub at: String,
    /// A variable of every step that then holds `at`.
    pub variable: Option<String>,
    /// What `{prepared}` then stands for.
    pub word: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    #[error("the language file `{}` cannot be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("the language file `{}` is wrong: {why}", path.display())]
    Wrong { path: PathBuf, why: String },
}

const BUILT_IN: [(&str, &str); 9] = [
    ("python.toml", include_str!("../data/python.toml")),
    ("javascript.toml", include_str!("../data/javascript.toml")),
    ("go.toml", include_str!("../data/go.toml")),
    ("rust.toml", include_str!("../data/rust.toml")),
    ("java.toml", include_str!("../data/java.toml")),
    ("bash.toml", include_str!("../data/bash.toml")),
    ("c.toml", include_str!("../data/c.toml")),
    ("cpp.toml", include_str!("../data/cpp.toml")),
    ("typescript.toml", include_str!("../data/typescript.toml")),
];

/// All languages, a user's own first.
#[derive(Clone, Debug)]
pub struct Catalogue {
    languages: Vec<Language>,
}

impl Catalogue {
    /// What is built in, and before it the `*.toml` files of `own`, where there is such a directory.
    pub fn load(own: Option<&Path>) -> Result<Catalogue, CatalogueError> {
        let mut languages = match own {
            Some(dir) => read_directory(dir)?,
            None => vec![],
        };
        for (name, text) in BUILT_IN {
            let language = parse(Path::new(name), text)?;
            if !languages.iter().any(|known| known.name == language.name) {
                languages.push(language);
            }
        }
        Ok(Catalogue { languages })
    }

    pub fn all(&self) -> &[Language] {
        &self.languages
    }

    pub fn by_name(&self, name: &str) -> Option<&Language> {
        self.languages.iter().find(|l| l.name == name || l.aliases.iter().any(|alias| alias == name))
    }

    pub fn by_extension(&self, file: &Path) -> Option<&Language> {
        let extension = file.extension()?.to_str()?;
        self.languages.iter().find(|l| l.extensions.iter().any(|known| known == extension))
    }

    /// The language of a directory: by the marker of a way, then by a file with which programs of a language begin, then
    /// by the names of all its files, where they are of one language.
    pub fn of_directory(&self, dir: &Path) -> Option<&Language> {
        let has = |name: &str| dir.join(name).is_file();
        let marked = |l: &&Language| l.ways.iter().filter_map(|way| way.marker.as_deref()).any(has);
        let begun = |l: &&Language| l.entries.iter().any(|entry| has(entry));
        let only = || {
            let files = Sources::Directory { host: dir.to_owned(), entry: None }.all()?;
            let mut found = files.iter().filter_map(|file| self.by_extension(file));
            let first = found.next()?;
            found.all(|other| other.name == first.name).then_some(first)
        };
        self.languages.iter().find(marked).or_else(|| self.languages.iter().find(begun)).or_else(only)
    }

    pub fn names(&self) -> Vec<&str> {
        self.languages.iter().map(|language| language.name.as_str()).collect()
    }
}

impl Language {
    /// What a source that came without a name is called.
    pub fn name_for(&self, source: &[u8]) -> String {
        let text = String::from_utf8_lossy(source);
        let outside = outside(&text);
        for rule in &self.names {
            let Some(pattern) = &rule.pattern else { return rule.name.clone() };
            if let Some(found) = regex_lite::Regex::new(pattern)
                .ok()
                .and_then(|pattern| pattern.captures(if rule.outer { &outside } else { &text }))
            {
                return rule.name.replace("{1}", found.get(1).map_or("", |group| group.as_str()));
            }
        }
        format!("main.{}", self.extensions.first().map_or("txt", String::as_str))
    }
}

/// A source without its blocks, comments and strings.
fn outside(text: &str) -> String {
    let (mut kept, mut depth, mut rest) = (String::new(), 0usize, text);
    while let Some(c) = rest.chars().next() {
        let behind = |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
        let step = match c {
            '/' if rest.starts_with("//") => behind("\n", 2) - usize::from(rest[2..].contains('\n')),
            '/' if rest.starts_with("/*") => behind("*/", 2),
            '"' if rest.starts_with("\"\"\"") => behind("\"\"\"", 3),
            '"' | '\'' => literal(rest, c),
            _ => c.len_utf8(),
        };
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 && step == c.len_utf8() => kept.push(c),
            _ => {}
        }
        rest = &rest[step..];
    }
    kept
}

/// The length of a string or character that begins here, with its quotes; no longer than its line.
fn literal(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return at,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn read_directory(dir: &Path) -> Result<Vec<Language>, CatalogueError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |error| CatalogueError::Unreadable { path, error }
    };
    let mut files = vec![];
    for entry in std::fs::read_dir(dir).map_err(unreadable(dir))? {
        let path = entry.map_err(unreadable(dir))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    let read = |path: &PathBuf| {
        // A FIFO would be waited for.
        if !path.metadata().map_err(unreadable(path))?.is_file() {
            return Err(unreadable(path)(std::io::Error::other("it is not a regular file")));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable(path))?;
        Ok(Language { own_text: Some(text.clone()), ..parse(path, &text)? })
    };
    files.iter().map(read).collect()
}

fn parse(path: &Path, text: &str) -> Result<Language, CatalogueError> {
    let wrong = |why: String| CatalogueError::Wrong { path: path.to_owned(), why };
    let language: Language = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        wrong(format!("line {line}: {}", e.message()))
    })?;
    if language.name.is_empty() || language.ways.is_empty() {
        return Err(wrong("it needs a name and at least one [[way]]".into()));
    }
    for way in &language.ways {
        if let Some(unknown) = way.tools.iter().find(|tool| !language.tools.contains_key(*tool)) {
            return Err(wrong(format!("a way needs the tool `{unknown}`, which has no [tools.{unknown}]")));
        }
        if way.run.argv.is_empty() {
            return Err(wrong("a way has an empty run.argv".into()));
        }
    }
    for check in &language.checks {
        if let Some(unknown) = check.tools.iter().find(|tool| !language.tools.contains_key(*tool)) {
            return Err(wrong(format!("a check needs the tool `{unknown}`, which has no [tools.{unknown}]")));
        }
        if !matches!(check.tier.as_str(), "L0" | "L1") {
            return Err(wrong(format!("the check `{}` has the tier `{}`: L0 or L1", check.name, check.tier)));
        }
    }
    for pattern in language.names.iter().filter_map(|rule| rule.pattern.as_deref()) {
        regex_lite::Regex::new(pattern).map_err(|e| wrong(format!("the pattern `{pattern}` is wrong: {e}")))?;
    }
    Ok(language)
}
