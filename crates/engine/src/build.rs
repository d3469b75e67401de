//! Compiling: in a cell of its own, once for the same sources, tools and words.

use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hotcell_contract::{FailureClass, Phase};
use hotcell_languages::{Preparation, identity};
use hotcell_sandbox::{Cancel, End, Launcher, Observed, Report, Spec, Streams, Tree};
use sha2::{Digest, Sha256};

use crate::cache::Cache;
use crate::execute::{Call, ExecuteError, Progress};
use crate::judge::{Verdict, judge_compiler};
use crate::outcome::{cached, phase};
use crate::plan::{Planned, is_callers_choice};
use crate::product::{self, Product};
use crate::request::{Program, Request, Source};
use crate::sentinel::observer;

/// What of a compiler's output is worth keeping.
const KEEP: usize = 1 << 20;
/// A tree of sources that is larger is compiled each time.
const MAX_HASHED: u64 = 512 << 20;
const MAX_HASHED_FILES: usize = 20_000;
/// Part of every key: another number is another cache.
const FORMAT: &str = "hotcell 3";

pub(crate) enum Built {
    /// There is nothing to compile.
    Nothing,
    Ready(Box<Phase>),
    /// The compiler said no, or met a limit.
    Refused(Box<Spec>, Box<Report>, Verdict),
}

/// Makes the product, or finds it, and shows it to the cell that runs it.
pub(crate) fn build(
    launcher: &Launcher,
    request: &Request,
    planned: &mut Planned,
    call: &Call<'_>,
) -> Result<Built, ExecuteError> {
    // Where the caller says is a cache, anything may lie.
    let cache = request.cache.as_deref().filter(|_| is_callers_choice(request)).and_then(Cache::open);
    prepare(launcher, cache.as_ref(), planned, call)?;
    let (Some(spec), Some(language)) = (planned.compile.take(), &planned.language) else { return Ok(Built::Nothing) };
    let identity = identity(&language.tools);
    let key = || key(&identity, &spec);
    let before = cache.as_ref().and_then(|_| key().ok().flatten());
    let (product, phase) = match before.as_ref().zip(cache.as_ref()).and_then(|(key, cache)| cache.get(&key.name)) {
        Some(product) => (product, cached("compile")),
        None => {
            call.tell(Progress::Compiling(&language.language));
            let see = |what: Observed<'_>| call.see("compile", &spec, what);
            let observer = observer(call.sentinel, &spec.limits, &see);
            let streams = Streams { keep: KEEP, cancel: call.cancel, observer, ..Streams::default() };
            let report = launcher.run(&spec, streams)?;
            call.tell(Progress::Ran { phase: "compile", stages: &report.stages });
            let program = spec.argv.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
            let mut verdict = judge_compiler(&report, &program);
            let mut product = vec![];
            if verdict.class.is_none() {
                let taken = report.scratch.as_ref().map_or(Ok(vec![]), product::take);
                match taken {
                    Ok(taken) if !taken.is_empty() => product = taken,
                    other => {
                        verdict.class = Some(FailureClass::CompileError);
                        verdict.message = Some(match other {
                            Err(e) => format!("what the compiler made cannot be taken over: {e}"),
                            Ok(_) => "the compiler made nothing".into(),
                        });
                    }
                }
            }
            if verdict.class.is_some() {
                return Ok(Built::Refused(Box::new(spec), Box::new(report), verdict));
            }
            // Kept under what it was made from: which must still be there, or nobody knows what that was.
            if let (Some(cache), Some(before)) = (&cache, &before)
                && key().ok().flatten().as_ref() == Some(before)
            {
                // A cache that is full or gone is no reason not to run.
                let _ = cache.put(&before.name, &mut product);
            }
            (product, phase("compile", &report, &verdict))
        }
    };
    attach(planned, &product);
    Ok(Built::Ready(Box::new(phase)))
}

fn attach(planned: &mut Planned, product: &Product) {
    product::attach(product, &mut planned.run);
    let entry = planned.language.as_ref().map(|language| language.entry.clone()).unwrap_or_default();
    let class = product::main_class(product, &entry);
    for word in planned.run.argv.iter_mut().filter(|word| *word == "{main_class}") {
        word.clone_from(&class);
    }
}

/// What a toolchain needs made once; every step then reads it. Without a place to keep it, it is done without.
fn prepare(
    launcher: &Launcher,
    cache: Option<&Cache>,
    planned: &mut Planned,
    call: &Call<'_>,
) -> Result<(), ExecuteError> {
    let made = match (planned.prepare.take(), &planned.language) {
        (Some((spec, preparation)), Some(language)) => {
            let tell = || call.tell(Progress::Preparing(&language.language));
            prepared(launcher, cache, &spec, preparation, &identity(&language.tools), call.cancel, &tell)?
        }
        _ => None,
    };
    if planned.language.is_none() {
        return Ok(());
    }
    for spec in [planned.compile.as_mut(), planned.parse.as_mut(), Some(&mut planned.run)].into_iter().flatten() {
        use_prepared(spec, made.as_ref());
    }
    Ok(())
}

/// Where the host has it, made now if it was not there.
pub(crate) fn prepared(
    launcher: &Launcher,
    cache: Option<&Cache>,
    spec: &Spec,
    preparation: Preparation,
    identity: &str,
    cancel: Option<&dyn Cancel>,
    tell: &dyn Fn(),
) -> Result<Option<(PathBuf, Preparation)>, ExecuteError> {
    let Some(cache) = cache else { return Ok(None) };
    let key = hash([FORMAT.as_bytes(), b"prepare", identity.as_bytes(), &words(spec)]);
    let mut made = cache.directory(&key);
    if made.is_none() {
        tell();
        let report = launcher.run(spec, Streams { cancel, ..Streams::default() })?;
        if report.end == End::Exited(0)
            && let Some(Ok(mut product)) = report.scratch.as_ref().map(product::take)
            && !product.is_empty()
            && cache.put(&key, &mut product).is_ok()
        {
            made = cache.directory(&key);
        }
    }
    Ok(made.map(|host| (host, preparation)))
}

pub(crate) fn use_prepared(spec: &mut Spec, made: Option<&(PathBuf, Preparation)>) {
    let mut word = None;
    if let Some((host, preparation)) = made {
        spec.trees.push(Tree::new(host.clone(), preparation.at.clone()));
        spec.quiet.push(preparation.at.clone());
        if let Some(variable) = &preparation.variable {
            spec.env.retain(|(known, _)| known != variable.as_str());
            spec.env.push((variable.into(), preparation.at.clone().into()));
        }
        word = preparation.word.clone();
    }
    spec.argv.retain_mut(|arg| {
        if arg != "{prepared}" {
            return true;
        }
        let known = word.take();
        *arg = known.clone().unwrap_or_default().into();
        known.is_some()
    });
}

/// Everything that the product depends on.
#[derive(PartialEq, Eq)]
struct Key {
    name: String,
    /// Which files they were, and when they were last touched: a time that nobody can set back. Sources that were
    /// exchanged while they were compiled, and back again, have the same contents and another stamp.
    stamp: String,
}

/// `None` when there is too much to look at.
fn key(identity: &str, spec: &Spec) -> io::Result<Option<Key>> {
    let (mut sources, mut stamp) = (Sha256::new(), Sha256::new());
    for file in &spec.files {
        frame(&mut sources, file.path.as_os_str().as_bytes());
        frame(&mut sources, &file.bytes);
    }
    let mut left = (MAX_HASHED, MAX_HASHED_FILES);
    for tree in spec.trees.iter().filter(|tree| tree.cell == Path::new("/src")) {
        if !hash_tree(&tree.host, &mut sources, &mut stamp, &mut left)? {
            return Ok(None);
        }
    }
    let name = hash([FORMAT.as_bytes(), b"compile", identity.as_bytes(), &words(spec), &sources.finalize()]);
    Ok(Some(Key { name, stamp: hash([&stamp.finalize()[..]]) }))
}

/// What is to run, by its contents; a directory that is too large to look at by its name alone.
pub(crate) fn code_hash(request: &Request) -> String {
    let mut sum = Sha256::new();
    match &request.program {
        Program::Command(argv) => argv.iter().for_each(|word| frame(&mut sum, word.as_bytes())),
        Program::Source { source: Source::Given { files }, .. } => {
            for (name, bytes) in files {
                frame(&mut sum, name.as_bytes());
                frame(&mut sum, bytes);
            }
        }
        Program::Source { source: Source::InInput { entry }, .. } => {
            frame(&mut sum, entry.clone().unwrap_or_default().as_os_str().as_bytes());
        }
    }
    if let Some(dir) = &request.input {
        match tree_hash(dir) {
            Some(tree) => frame(&mut sum, &tree),
            None => frame(&mut sum, dir.as_os_str().as_bytes()),
        }
    }
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A directory by its contents; `None` when there is too much to look at, or something that has no contents.
pub(crate) fn tree_hash(dir: &Path) -> Option<[u8; 32]> {
    let mut tree = Sha256::new();
    let all = hash_tree(dir, &mut tree, &mut Sha256::new(), &mut (MAX_HASHED, MAX_HASHED_FILES));
    matches!(all, Ok(true)).then(|| tree.finalize().into())
}

fn words(spec: &Spec) -> Vec<u8> {
    let mut all = vec![];
    for word in &spec.argv {
        all.extend_from_slice(word.as_bytes());
        all.push(0);
    }
    all.extend_from_slice(spec.cwd.as_os_str().as_bytes());
    all.push(0);
    for (key, value) in &spec.env {
        all.extend_from_slice(&[key.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
    }
    all
}

/// Names, kinds and contents, in order. False when there is too much, or something that has no contents to look at.
fn hash_tree(dir: &Path, hash: &mut Sha256, stamp: &mut Sha256, left: &mut (u64, usize)) -> io::Result<bool> {
    let mut entries: Vec<_> = fs::read_dir(dir)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let (path, meta) = (entry.path(), fs::symlink_metadata(entry.path())?);
        if left.1 == 0 {
            return Ok(false);
        }
        left.1 -= 1;
        frame(hash, entry.file_name().as_bytes());
        frame(hash, &meta.mode().to_ne_bytes());
        for part in [meta.dev(), meta.ino(), meta.ctime() as u64, meta.ctime_nsec() as u64] {
            stamp.update(part.to_ne_bytes());
        }
        if meta.is_dir() {
            if !hash_tree(&path, hash, stamp, left)? {
                return Ok(false);
            }
            hash.update(b"/");
        } else if meta.is_symlink() {
            frame(hash, fs::read_link(&path)?.as_os_str().as_bytes());
        } else if meta.is_file() {
            if meta.len() > left.0 {
                return Ok(false);
            }
            left.0 -= meta.len();
            let mut bytes = Vec::with_capacity(meta.len() as usize);
            fs::File::open(&path)?.take(meta.len() + 1).read_to_end(&mut bytes)?;
            frame(hash, &bytes);
        } else {
            return Ok(false);
        }
    }
    Ok(true)
}

fn frame(hash: &mut Sha256, part: &[u8]) {
    hash.update((part.len() as u64).to_le_bytes());
    hash.update(part);
}

fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| frame(&mut hash, part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
