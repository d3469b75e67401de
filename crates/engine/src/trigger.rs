//! What raises a run to a kernel of its own: the `strict_when` of its policy. It goes by names, never by contents, and so
//! by what the caller says; whoever must not run in less is given a policy with `isolation_level = "vm"`.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use hotcell_contract::{IsolationLevel, Policy, StrictWhen, has_word};
use hotcell_languages::matches;

use crate::request::{Program, Request, Source};

/// So many names of a directory are looked at.
const MOST: usize = 100_000;

/// As much of a name as fits into a sentence.
const SHOWN: usize = 200;

/// What was found first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    Path {
        glob: String,
        path: PathBuf,
    },
    Word {
        word: String,
        key: String,
    },
    /// Nobody knows what is in it.
    Unseen {
        dir: PathBuf,
    },
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |path: &Path| path.to_string_lossy().chars().flat_map(char::escape_debug).take(SHOWN).collect();
        match self {
            Trigger::Path { glob, path } => {
                let path: String = shown(path);
                write!(f, "strict_when.paths: `{glob}` matches `{path}`")
            }
            Trigger::Word { word, key } => write!(f, "strict_when.words: `{word}` is in the metadata `{key}`"),
            Trigger::Unseen { dir } => {
                let dir: String = shown(dir);
                write!(f, "strict_when.paths: not all of `{dir}` can be looked at")
            }
        }
    }
}

/// `None` where nothing is met, or there is nothing to raise.
pub(crate) fn of(policy: &Policy, request: &Request) -> Option<Trigger> {
    if policy.isolation_level == IsolationLevel::Vm {
        return None;
    }
    word(&policy.strict_when, request).or_else(|| path(&policy.strict_when, request))
}

fn word(when: &StrictWhen, request: &Request) -> Option<Trigger> {
    let mut pairs = request.metadata.iter().flat_map(|(key, value)| [(key, key), (key, value)]);
    pairs.find_map(|(key, text)| {
        let word = when.words.iter().find(|word| has_word(text, word))?;
        Some(Trigger::Word { word: word.clone(), key: key.clone() })
    })
}

/// The program, as it was called and as it is called in the cell, and everything that the cell sees beside the system.
fn path(when: &StrictWhen, request: &Request) -> Option<Trigger> {
    if when.paths.is_empty() {
        return None;
    }
    let look = Look { globs: &when.paths, left: MOST };
    let command = match &request.program {
        Program::Command(argv) => argv.first().map(PathBuf::from),
        Program::Source { .. } => None,
    };
    let given: &[(String, Vec<u8>)] = match &request.program {
        Program::Source { source: Source::Given { files }, .. } => files,
        _ => &[],
    };
    let names = given.iter().map(|(name, _)| PathBuf::from(name));
    let named = request.paths.iter().cloned().chain(names).chain(command).chain(request.granted.mounts.clone());
    named.into_iter().find_map(|path| look.at(&path)).or_else(|| directories(look, request))
}

fn directories(mut look: Look<'_>, request: &Request) -> Option<Trigger> {
    if let Some(found) = request.input.as_ref().and_then(|dir| look.through(dir, Path::new(""))) {
        return Some(found);
    }
    let shown = request.granted.shown.as_ref()?;
    let selection = &shown.selection;
    let copied = selection.writable.iter().flat_map(|(_, files)| files).chain(&selection.files);
    let single = copied.map(|file| &file.path).chain(selection.writable.iter().map(|(dir, _)| dir));
    let found = single.into_iter().find_map(|path| look.inside(&shown.root, path));
    found.or_else(|| selection.trees.iter().find_map(|tree| look.through(&shown.root, tree)))
}

struct Look<'a> {
    globs: &'a [String],
    left: usize,
}

impl Look<'_> {
    /// A path as it was written, and as it really is: neither another working directory nor a link makes it another one.
    fn at(&self, path: &Path) -> Option<Trigger> {
        self.fits(path).or_else(|| self.fits(&path.canonicalize().ok()?))
    }

    /// By its name in a directory, and with the name of the directory.
    fn inside(&self, dir: &Path, name: &Path) -> Option<Trigger> {
        self.fits(name).or_else(|| self.at(&dir.join(name)))
    }

    fn fits(&self, path: &Path) -> Option<Trigger> {
        // A path is a sequence of names: where it begins is no name.
        let names: PathBuf =
            path.components().filter(|c| !matches!(c, Component::RootDir | Component::CurDir)).collect();
        let glob = self.globs.iter().find(|glob| matches(glob, &names))?;
        Some(Trigger::Path { glob: glob.clone(), path: path.to_owned() })
    }

    /// `top` in `dir`, and everything below. No link is followed: what it leads to is not there, or has its own name there.
    fn through(&mut self, dir: &Path, top: &Path) -> Option<Trigger> {
        let real = dir.canonicalize().ok()?;
        let unseen = |at: &Path| Some(Trigger::Unseen { dir: dir.join(at) });
        let mut left = vec![top.to_owned()];
        while let Some(at) = left.pop() {
            let found = self.fits(&dir.join(&at)).or_else(|| self.fits(&at)).or_else(|| self.fits(&real.join(&at)));
            if found.is_some() {
                return found;
            }
            if self.left == 0 {
                return unseen(&at);
            }
            self.left -= 1;
            if !real.join(&at).symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                continue;
            }
            match entries(&real.join(&at)) {
                Ok(names) => left.extend(names.into_iter().map(|name| at.join(name))),
                Err(_) => return unseen(&at),
            }
        }
        None
    }
}

/// In their order, so that the same is found every time.
fn entries(dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names = vec![];
    // More than are looked at are not kept either.
    for entry in dir.read_dir()?.take(MOST + 1) {
        names.push(entry?.file_name());
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}
