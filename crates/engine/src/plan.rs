//! From a request to a Spec: what the cell holds and what runs in it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotcell_contract::{Limits, NetworkPolicy, OnViolation, Policy, PythonLayer};
use hotcell_sandbox as sandbox;
use sandbox::{Layer, Network, Spec, Tree};

use hotcell_languages::{self as languages, Host, Ready, Sources, in_cell};

use crate::backend::Container;
use crate::environment::{PATH, environment, proxy_variables};
use crate::lease::REPO_AT;
use crate::repo::Snapshot;
use crate::request::{Program, Request, Source};

/// A request that can't be carried out as it stands.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("no program was given: write it behind `--`")]
    NoProgram,
    #[error("`run` uses this host's toolchains, and an image has its own: use `exec --image ... -- COMMAND`")]
    SourceInImage,
    #[error("an argument has a NUL byte in it, which no program can receive")]
    NulByte,
    #[error("the {what} `{given}` is not UTF-8, and runsc is told in nothing else what to run: write it in UTF-8")]
    NotText { what: &'static str, given: String },
    #[error("the environment variable `{0}` has a name that is empty or has `=` or NUL in it")]
    BadEnvironment(String),
    #[error(transparent)]
    Language(#[from] languages::PlanError),
    #[error("{0}; what is only on your own PATH does not count under a lease, an approval or a policy with a capsule")]
    NotOfTheSystem(languages::PlanError),
    #[error("a directory is needed to begin with `{}`: give it with --input", .0.display())]
    NoInput(PathBuf),
    #[error("`{}` is not in `{}`: name a file that is", entry.display(), dir.display())]
    NoEntry { entry: PathBuf, dir: PathBuf },
    #[error("`{}` is not a directory that can be read: {error}", path.display())]
    Input { path: PathBuf, error: std::io::Error },
    #[error("a source beside a directory would be two programs: give a file that is in the directory of --input")]
    SourceAndInput,
    #[error("a capsule is one Python file that runs: give it a Python source, and do not verify it")]
    CapsuleOfWhat,
    #[error("the state of a capsule must be a JSON object: {0}")]
    State(String),
    #[error("`{0}` is not a layer that can be required: use cgroup, landlock or patched-runtime")]
    UnknownLayer(String),
    #[error("the {name} limit of {value} is out of range: give {range}")]
    Limit { name: &'static str, value: String, range: &'static str },
}

/// Directories beside /usr that hold programs and libraries, as directories or as links into /usr.
const SYSTEM: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"];

/// Files and directories of /etc without which programs of /usr do not start. No time zone: a cell is in UTC.
const ETC: [&str; 2] = ["/etc/ld.so.cache", "/etc/alternatives"];

/// What names and certificates are looked up in, where there is a network to use them. A broker looks names up itself.
const ETC_NETWORK: [&str; 3] = ["/etc/ssl", "/etc/ca-certificates", "/etc/resolv.conf"];

/// Of what a file takes at least.
const PAGE: u64 = 4096;

/// The cells of one request.
pub(crate) struct Planned {
    pub(crate) run: Spec,
    pub(crate) compile: Option<Spec>,
    pub(crate) parse: Option<Spec>,
    /// Without its argv.
    pub(crate) prepare: Option<(Spec, languages::Preparation)>,
    pub(crate) language: Option<languages::Planned>,
    /// The program's own, for the place of `{args}`; last, because they may be any words.
    pub(crate) args: Vec<OsString>,
}

impl Planned {
    /// Puts the program's arguments into its place.
    pub(crate) fn complete(&mut self) {
        if let Some(at) = self.run.argv.iter().position(|word| word == "{args}").filter(|_| self.language.is_some()) {
            self.run.argv.splice(at..=at, self.args.drain(..));
        }
    }
}

pub(crate) fn plan(request: &Request) -> Result<Planned, PlanError> {
    let mut run = with_input(request)?;
    match &request.program {
        Program::Command(_) if request.capsule.is_some() => Err(PlanError::CapsuleOfWhat),
        Program::Command(argv) => {
            run.argv = argv.clone();
            granted(request, &mut run);
            checked(&run)?;
            Ok(Planned { run, compile: None, parse: None, prepare: None, language: None, args: vec![] })
        }
        // Toolchains are found on the host, and an image has its own.
        Program::Source { .. } if has_image(request) => Err(PlanError::SourceInImage),
        Program::Source { language, source, args } => {
            let sources = sources(request, source, &mut run)?;
            let own = is_callers_choice(request);
            let host = if own { Host::this() } else { Host::of_the_system() };
            let plan = languages::plan(language, &sources, request.limits.memory_bytes, &host);
            let plan = plan.map_err(|e| match e {
                languages::PlanError::Missing { .. } if !own => PlanError::NotOfTheSystem(e),
                e => e.into(),
            })?;
            program(request, run, plan, args)
        }
    }
}

/// Whether the toolchain, and what was compiled with it before, are those that the caller's environment leads to. Where somebody else has said what may run, it is a
/// part of that: another one on the caller's PATH would be another program, and bring directories of its own into the cell.
pub(crate) fn is_callers_choice(request: &Request) -> bool {
    let by_policy = |policy: &Policy| policy.require_approval || policy.python == PythonLayer::Capsule;
    request.granted.lease_id.is_none() && !request.policy.as_ref().is_some_and(by_policy)
}

fn with_input(request: &Request) -> Result<Spec, PlanError> {
    let mut spec = base(request)?;
    if let Some(dir) = &request.input {
        spec.trees.push(Tree::new(readable_directory(dir)?, "/src"));
    }
    Ok(spec)
}

/// What a lease gives to the program, and to no compiler.
fn granted(request: &Request, spec: &mut Spec) {
    // Through no link: it could lead elsewhere by now.
    let mount = |dir: &PathBuf| {
        let host = dir.strip_prefix("/").unwrap_or(dir).to_owned();
        Tree::beneath("/", host, dir.clone())
    };
    spec.trees.extend(request.granted.mounts.iter().map(mount));
    if let Some(dir) = &request.granted.workdir {
        spec.cwd.clone_from(dir);
    }
    let Some(shown) = &request.granted.shown else { return };
    let at = |path: &Path| Path::new(REPO_AT).join(path);
    for dir in &shown.selection.trees {
        // The root itself has no name beneath itself.
        let cell = if dir.as_os_str().is_empty() { REPO_AT.into() } else { at(dir) };
        spec.trees.push(Tree::beneath(&shown.root, dir, cell));
    }
    let file = |file: &Snapshot, mode: u32| sandbox::File { path: at(&file.path), mode, bytes: file.bytes.clone() };
    spec.files.extend(shown.selection.files.iter().map(|one| file(one, one.mode & 0o111 | 0o444)));
    for (dir, files) in &shown.selection.writable {
        spec.writable.push(at(dir));
        spec.files.extend(files.iter().map(|one| file(one, one.mode & 0o777)));
    }
}

/// The sources in a cell, for whatever is asked of them, and where they are.
pub(crate) fn plan_sources(request: &Request, source: &Source) -> Result<(Spec, Sources), PlanError> {
    let mut spec = with_input(request)?;
    let sources = sources(request, source, &mut spec)?;
    Ok((spec, sources))
}

/// A step of a check in such a cell.
pub(crate) fn check_spec(
    cell: &Spec,
    step: Ready,
    tools: &languages::Tools,
    asked: &Limits,
) -> Result<Spec, PlanError> {
    let mut spec = Spec { limits: limits(asked)?, ..cell.clone() };
    let known: Vec<PathBuf> = spec.trees.iter().map(|tree| tree.cell.clone()).collect();
    let trees = tools.iter().flat_map(|(_, found)| &found.trees).filter(|tree| !known.contains(&in_cell(tree)));
    spec.trees.extend(trees.map(|tree| Tree::new(tree.clone(), in_cell(tree))));
    fill(&mut spec, step, tools);
    checked(&spec)?;
    Ok(spec)
}

/// A tool that tells its version.
pub(crate) fn version_spec(request: &Request, found: &[(String, languages::Found)]) -> Result<Spec, PlanError> {
    let mut spec = plan(request)?.run;
    let trees = found.iter().flat_map(|(_, found)| &found.trees);
    spec.trees.extend(trees.map(|tree| Tree::new(tree.clone(), in_cell(tree))));
    Ok(spec)
}

/// What every cell of this request has.
fn base(request: &Request) -> Result<Spec, PlanError> {
    let network = match request.network {
        NetworkPolicy::None => Network::None,
        NetworkPolicy::Local => Network::Local,
        NetworkPolicy::Full => Network::Full,
        NetworkPolicy::Restricted => Network::Brokered,
    };
    let mut spec = Spec {
        argv: vec![],
        env: vec![],
        cwd: "/work".into(),
        trees: vec![],
        links: vec![],
        files: vec![],
        writable: vec![],
        quiet: vec![],
        limits: limits(&request.limits)?,
        network,
        on_violation: match request.on_violation {
            OnViolation::Kill => sandbox::OnViolation::Kill,
            OnViolation::Fail => sandbox::OnViolation::Fail,
            OnViolation::Note => sandbox::OnViolation::Note,
        },
        require: required(&request.require)?,
        runtime: None,
        root: None,
        engine: None,
    };
    match &request.container {
        Some(Container::Oci { runtime, image }) => {
            spec.runtime = Some(runtime.clone());
            spec.root = image.as_ref().map(|image| image.root.clone());
        }
        Some(Container::Engine(docker)) => {
            spec.engine = Some(docker.clone());
            spec.root = docker.image.as_ref().map(|image| image.root.clone());
        }
        None => {}
    }
    let proxy = if network == Network::Brokered { proxy_variables(&request.allowed_hosts) } else { vec![] };
    let of_image = image_env(request).map(<[_]>::to_vec).unwrap_or_default();
    spec.env = environment(&[&of_image, &proxy[..], &request.env].concat())?;
    if !has_image(request) {
        system(&mut spec);
    }
    Ok(spec)
}

/// Whether the root is an image's.
pub(crate) fn has_image(request: &Request) -> bool {
    image_env(request).is_some()
}

fn image_env(request: &Request) -> Option<&[(OsString, OsString)]> {
    request.container.as_ref()?.image_env()
}

/// Puts what was given into the cell, and says where it is.
fn sources(request: &Request, source: &Source, spec: &mut Spec) -> Result<Sources, PlanError> {
    match (source, &request.input) {
        (Source::Given { .. }, Some(_)) => Err(PlanError::SourceAndInput),
        (Source::Given { files }, None) => {
            for (name, bytes) in files {
                let path = Path::new("/src").join(name);
                spec.files.push(sandbox::File { path, mode: 0o644, bytes: bytes.clone() });
            }
            Ok(Sources::Files(files.iter().map(|(name, _)| name.clone()).collect()))
        }
        (Source::InInput { entry }, None) => Err(PlanError::NoInput(entry.clone().unwrap_or_default())),
        (Source::InInput { entry }, Some(dir)) => {
            let host = readable_directory(dir)?;
            if let Some(entry) = entry {
                let outside = || languages::PlanError::Outside { entry: entry.clone(), dir: dir.clone() };
                if !entry.components().all(|part| matches!(part, std::path::Component::Normal(_))) {
                    return Err(outside().into());
                }
                match host.join(entry).canonicalize() {
                    Ok(real) if !real.starts_with(&host) => return Err(outside().into()),
                    Ok(real) if real.is_file() => {}
                    _ => return Err(PlanError::NoEntry { entry: entry.clone(), dir: dir.clone() }),
                }
            }
            Ok(Sources::Directory { host, entry: entry.clone() })
        }
    }
}

fn program(
    request: &Request,
    mut run: Spec,
    plan: languages::Planned,
    args: &[OsString],
) -> Result<Planned, PlanError> {
    run.trees.extend(plan.trees.iter().map(|tree| Tree::new(tree.clone(), in_cell(tree))));
    let mut steps = [plan.compile.clone(), plan.parse.clone()];
    let [compile, parse] = steps.each_mut().map(|step| {
        // Ours and not the program's: no network, no variables of the caller's, no room in the program's directory.
        let mut spec = run.clone();
        spec.network = Network::None;
        spec.on_violation = sandbox::OnViolation::Fail;
        spec.env = environment(&[("HOME".into(), "/tmp".into())]).ok()?;
        fill(&mut spec, step.take()?, &plan.tools);
        Some(spec)
    });
    let with = |spec: Option<Spec>, asked: &Limits| -> Result<Option<Spec>, PlanError> {
        let Some(mut spec) = spec else { return Ok(None) };
        spec.limits = limits(asked)?;
        spec.limits.wall = request.granted.at_most(spec.limits.wall);
        checked(&spec)?;
        Ok(Some(spec))
    };
    let step = plan.run.clone();
    words(&run, args)?;
    let asked = run.env.clone();
    fill(&mut run, step, &plan.tools);
    // The caller's own word comes last.
    for (key, value) in request.env.iter().filter(|pair| asked.contains(pair)) {
        run.env.retain(|(known, _)| known != key);
        run.env.push((key.clone(), value.clone()));
    }
    match (&request.capsule, plan.language.as_str()) {
        (Some(capsule), "python") => crate::capsule::wrap(&mut run, capsule, request)?,
        (Some(_), _) => return Err(PlanError::CapsuleOfWhat),
        (None, _) => {}
    }
    granted(request, &mut run);
    if let (true, Program::Source { source: Source::Given { files }, .. }) = (request.at_work, &request.program) {
        put_to_work(&mut run, files)?;
    }
    // A runtime's own threads are no processes of the program's.
    run.limits.processes += plan.threads;
    checked(&run)?;
    Ok(Planned {
        compile: with(compile, &request.compile)?,
        parse: with(parse, &request.compile)?,
        prepare: match plan.prepare.clone() {
            Some(preparation) => Some((preparation_spec(request, &preparation, &plan.tools)?, preparation)),
            None => None,
        },
        run,
        language: Some(plan),
        args: args.to_vec(),
    })
}

/// Copies of the sources where the program starts. They take of its scratch.
fn put_to_work(run: &mut Spec, files: &[(String, Vec<u8>)]) -> Result<(), PlanError> {
    let taken: u64 = files.iter().map(|(_, bytes)| (bytes.len() as u64).next_multiple_of(PAGE)).sum();
    if run.limits.scratch > 0 && taken > run.limits.scratch {
        let (value, range) = (run.limits.scratch.to_string(), "as much as the files of the program take");
        return Err(PlanError::Limit { name: "scratch", value, range });
    }
    let copy = |(name, bytes): &(String, Vec<u8>)| {
        let path = Path::new("/work").join(name);
        sandbox::File { path, mode: 0o644, bytes: bytes.clone() }
    };
    run.files.extend(files.iter().map(copy));
    Ok(())
}

/// A cell for what is made once and read by all: nothing of the request's is in it, neither sources nor variables.
pub(crate) fn preparation_spec(
    request: &Request,
    preparation: &languages::Preparation,
    tools: &languages::Tools,
) -> Result<Spec, PlanError> {
    let whole = Limits { wall_ms: 600_000, memory_bytes: 4 << 30, scratch_bytes: 4 << 30, ..request.compile.clone() };
    let nobody = Request {
        env: vec![("HOME".into(), "/tmp".into())],
        network: NetworkPolicy::None,
        on_violation: OnViolation::Fail,
        ..request.clone()
    };
    let mut spec = check_spec(&base(&nobody)?, preparation.step.clone(), tools, &whole)?;
    spec.limits.wall = request.granted.at_most(spec.limits.wall);
    Ok(spec)
}

/// The words of a step, its variables and its tools.
fn fill(spec: &mut Spec, step: Ready, tools: &languages::Tools) {
    spec.argv = step.argv;
    if let Some(cwd) = step.cwd {
        spec.cwd = cwd;
    }
    let mut set = |key: &str, value: OsString| {
        spec.env.retain(|(known, _)| known != key);
        spec.env.push((key.into(), value));
    };
    let elsewhere = tools.iter().filter_map(|(_, found)| found.binary.parent()).filter(|dir| !dir.starts_with("/usr"));
    let mut path: Vec<OsString> = elsewhere.map(|dir| in_cell(dir).into_os_string()).collect();
    path.dedup();
    path.push(PATH.into());
    set("PATH", path.join(OsStr::new(":")));
    for (key, value) in step.env {
        set(&key, value.into());
    }
}

fn checked(spec: &Spec) -> Result<(), PlanError> {
    if spec.argv.first().is_none_or(|program| program.is_empty()) {
        return Err(PlanError::NoProgram);
    }
    words(spec, &spec.argv)?;
    let values = spec.env.iter().flat_map(|(key, value)| [key, value]);
    text(spec, "variable", values.map(OsString::as_os_str))?;
    text(spec, "working directory", [spec.cwd.as_os_str()])?;
    text(spec, "writable directory", spec.writable.iter().map(|dir| dir.as_os_str()))
}

fn words(spec: &Spec, words: &[OsString]) -> Result<(), PlanError> {
    if words.iter().any(|word| word.as_bytes().contains(&0)) {
        return Err(PlanError::NulByte);
    }
    text(spec, "argument", words.iter().map(OsString::as_os_str))
}

/// A runtime that lets nothing of ours in reads all of it from a file of JSON.
fn text<'a>(spec: &Spec, what: &'static str, all: impl IntoIterator<Item = &'a OsStr>) -> Result<(), PlanError> {
    let by_runsc = spec.runtime.as_ref().is_some_and(|runtime| runtime.kind.has_own_kernel());
    match all.into_iter().find(|given| by_runsc && given.to_str().is_none()) {
        Some(given) => Err(PlanError::NotText { what, given: given.to_string_lossy().into_owned() }),
        None => Ok(()),
    }
}

/// /usr and its like, as this host has them.
fn system(spec: &mut Spec) {
    let same = |path: &str| Tree::new(path, path);
    spec.trees.push(same("/usr"));
    for path in SYSTEM {
        match std::fs::read_link(path) {
            Ok(to) => spec.links.push((path.into(), to)),
            Err(_) if Path::new(path).is_dir() => spec.trees.push(same(path)),
            Err(_) => {}
        }
    }
    let network = match spec.network {
        Network::None | Network::Local => &[],
        Network::Brokered => &ETC_NETWORK[..2],
        Network::Full => &ETC_NETWORK[..],
    };
    for path in ETC.iter().chain(network) {
        // The file a link leads to, at the place of the link.
        if let Ok(real) = Path::new(path).canonicalize() {
            spec.trees.push(Tree::new(real, path));
        }
    }
}

fn readable_directory(dir: &Path) -> Result<PathBuf, PlanError> {
    let fail = |error| PlanError::Input { path: dir.to_owned(), error };
    let real = dir.canonicalize().map_err(fail)?;
    std::fs::read_dir(&real).map_err(fail)?;
    Ok(real)
}

fn required(names: &[String]) -> Result<Vec<Layer>, PlanError> {
    names
        .iter()
        .map(|name| match name.as_str() {
            "cgroup" => Ok(Some(Layer::Cgroup)),
            "landlock" => Ok(Some(Layer::Landlock)),
            // Seen to when the runtime was chosen.
            crate::backend::PATCHED => Ok(None),
            other => Err(PlanError::UnknownLayer(other.to_owned())),
        })
        .filter_map(Result::transpose)
        .collect()
}

/// A limit of nothing, or of more than the kernel can count, is a mistake and not a wish.
fn limits(asked: &Limits) -> Result<sandbox::Limits, PlanError> {
    const PIB: u64 = 1 << 50;
    let bound = |name, value: u64, least: u64, most: u64, range| {
        if (least..=most).contains(&value) {
            Ok(value)
        } else {
            Err(PlanError::Limit { name, value: value.to_string(), range })
        }
    };
    if !(0.01..=4096.0).contains(&asked.cpus) {
        let value = asked.cpus.to_string();
        return Err(PlanError::Limit { name: "cpus", value, range: "between 0.01 and 4096" });
    }
    let day = 24 * 3600 * 1000;
    Ok(sandbox::Limits {
        wall: Duration::from_millis(bound("timeout", asked.wall_ms, 1, 30 * day, "between 1ms and 30 days")?),
        grace: Duration::from_millis(bound("grace", asked.grace_ms, 0, 3_600_000, "at most 1h")?),
        cpu_time: match asked.cpu_ms {
            Some(ms) => Some(Duration::from_millis(bound("cpu time", ms, 1, 365 * day, "between 1ms and a year")?)),
            None => None,
        },
        milli_cpus: (asked.cpus * 1000.0).round() as u64,
        memory: bound("memory", asked.memory_bytes, 4 << 20, PIB / 2, "between 4m and 512t")?,
        processes: bound("processes", asked.processes, 1, 1 << 20, "between 1 and 1048576")?,
        open_files: bound("open files", asked.open_files, 8, 1 << 20, "between 8 and 1048576")?,
        file_size: bound("file size", asked.file_size_bytes, 1, PIB, "between 1 byte and 1p")?,
        scratch: bound("scratch", asked.scratch_bytes, 0, PIB / 2, "at most 512t")?,
        scratch_inodes: bound("scratch inodes", asked.scratch_inodes, 1, 1 << 31, "between 1 and 2147483648")?,
        output: bound("output", asked.output_bytes, 1, PIB, "between 1 byte and 1p")?,
    })
}
