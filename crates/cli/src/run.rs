//! `hotcell run` and `hotcell exec`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use hotcell_contract::{NetworkPolicy, OnViolation, Outcome, parse_metadata};
use hotcell_engine::{
    AskedLimits, Call, Capsule, Catalogue, Language, Launcher, Leased, PolicyError, Program, Progress, Request,
    Sentinel, Signals, Source, StateError, Verb, Watch, execute, new_id,
};

use crate::args::Output;
use crate::args::cell::{self, CellArgs, Net, WatchArgs};
use crate::args::runs::{ExecArgs, RunArgs};
use crate::events::{self, Events};
use crate::terminal::{Raw, Wanted};
use crate::view::{self, Through, View};
use crate::{exit, grants, languages, policy, progress, receipt, show, state, terminal};

/// A source that is larger is no source.
const MAX_SOURCE: u64 = 64 << 20;

pub(crate) fn exec(args: ExecArgs, launcher: &Launcher) -> anyhow::Result<ExitCode> {
    cell(launcher, args.cell, args.watch, Program::Command(args.command), Kind::default(), false)
}

/// What only compilers need.
#[derive(Default)]
pub(crate) struct Compile {
    pub(crate) timeout: Option<Duration>,
    pub(crate) memory: Option<u64>,
    pub(crate) cache: Option<PathBuf>,
}

pub(crate) fn run(mut args: RunArgs, launcher: &Launcher) -> anyhow::Result<ExitCode> {
    let catalogue = languages::catalogue(args.languages.as_deref())?;
    let from_stdin = args.file.as_deref() == Some(Path::new("-"));
    let mut named = args.file.take().filter(|_| !from_stdin);
    // A directory is what --input would have said.
    if named.as_deref().is_some_and(Path::is_dir) {
        if args.cell.input.is_some() {
            bail!("two directories were given: leave out --input, or name a file of it");
        }
        args.cell.input = named.take();
    }
    if let (Some(file), Some(dir)) = (&named, &args.cell.input) {
        if args.entry.is_some() {
            bail!("--entry and a file are two programs: give one of them");
        }
        args.entry = Some(inside(file, dir)?);
        named = None;
    }
    if args.entry.is_some() && (named.is_some() || args.code.is_some() || from_stdin) {
        bail!("--entry is for a directory: the source was given by itself");
    }
    let hint = named.as_deref().or(args.entry.as_deref());
    let language = language(&catalogue, args.lang.as_deref(), hint, args.cell.input.as_deref())?;
    let paths = named.iter().cloned().collect();
    let source = match (args.code, named, &args.cell.input) {
        (Some(code), ..) => given(language, None, code.into_bytes())?,
        (None, Some(file), _) => given(language, Some(&file), read_source(&file)?)?,
        (None, None, _) if from_stdin => {
            let bytes = read_all(std::io::stdin().lock()).context("cannot read the source from standard input")?;
            given(language, None, bytes)?
        }
        (None, None, Some(_)) => Source::InInput { entry: args.entry },
        (None, None, None) => bail!("no source was given: try --help"),
    };
    let compile = Compile {
        timeout: args.compile_timeout,
        memory: args.compile_memory,
        cache: if args.no_cache { None } else { cache_dir() },
    };
    let state = args.state.as_deref().map(read_source).transpose()?;
    let capsule = (args.capsule || state.is_some()).then_some(Capsule { state });
    let program = Program::Source { language: Box::new(language.clone()), source, args: args.args };
    cell(launcher, args.cell, args.watch, program, Kind { compile, capsule, paths }, from_stdin)
}

/// How a source is run, beyond what every cell is told.
#[derive(Default)]
pub(crate) struct Kind {
    pub(crate) compile: Compile,
    pub(crate) capsule: Option<Capsule>,
    /// The files that were named.
    pub(crate) paths: Vec<PathBuf>,
}

/// Where what was compiled is kept, if anywhere.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own =
        || Some(absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?.join("hotcell/build"));
    let named = std::env::var_os("HOTCELL_CACHE").filter(|name| !name.is_empty());
    named.and_then(|name| std::path::absolute(name).ok()).or_else(own)
}

/// A source by itself. Every toolchain here reads UTF-8 and some silently make something else of other bytes.
pub(crate) fn given(language: &Language, file: Option<&Path>, bytes: Vec<u8>) -> anyhow::Result<Source> {
    if let Err(e) = std::str::from_utf8(&bytes) {
        let name = file.map_or("the source".into(), |file| format!("`{}`", file.display()));
        bail!("{name} is not UTF-8 at byte {}: convert it first", e.valid_up_to());
    }
    let is_own = |file: &&Path| {
        let extension = file.extension().unwrap_or_default();
        let compiled = language.ways.iter().any(|way| way.compile.is_some());
        !compiled || language.extensions.iter().any(|known| extension == known.as_str())
    };
    // Compilers go by the name: one of another language's, or none, is replaced.
    let name = match file.filter(is_own).and_then(Path::file_name) {
        Some(name) => name.to_string_lossy().into_owned(),
        None => language.name_for(&bytes),
    };
    Ok(Source::Given { files: vec![(name, bytes)] })
}

/// Where a file is in the directory that the cell will see.
fn inside(file: &Path, dir: &Path) -> anyhow::Result<PathBuf> {
    let real = |path: &Path| path.canonicalize().with_context(|| format!("cannot read `{}`", path.display()));
    match real(file)?.strip_prefix(real(dir)?) {
        Ok(path) => Ok(path.to_owned()),
        Err(_) => bail!("`{}` is not in `{}`: with --input, give a file that is", file.display(), dir.display()),
    }
}

pub(crate) fn language<'a>(
    catalogue: &'a Catalogue,
    asked: Option<&str>,
    file: Option<&Path>,
    dir: Option<&Path>,
) -> anyhow::Result<&'a Language> {
    let all = || catalogue.names().join(", ");
    if let Some(missing) = file.filter(|_| dir.is_none()).or(dir).filter(|path| !path.exists()) {
        bail!("cannot read `{}`: No such file or directory", missing.display());
    }
    match (asked, file, dir) {
        (Some(name), ..) => catalogue
            .by_name(name)
            .with_context(|| format!("`{name}` is not a language that is known here: use one of {}", all())),
        (None, Some(file), _) => catalogue.by_extension(file).with_context(|| {
            format!("`{}` does not say its language by its name: give --lang with one of {}", file.display(), all())
        }),
        (None, None, Some(dir)) => catalogue.of_directory(dir).with_context(|| {
            format!("`{}` does not say its language: give --lang with one of {}, or --entry", dir.display(), all())
        }),
        (None, None, None) => catalogue.by_name("python").context("python is not a known language"),
    }
}

pub(crate) fn read_source(file: &Path) -> anyhow::Result<Vec<u8>> {
    let what = || format!("cannot read `{}`", file.display());
    let open = File::open(file).with_context(what)?;
    let meta = open.metadata().with_context(what)?;
    if meta.is_dir() {
        bail!("`{}` is a directory: give a file, or the directory with --input", file.display());
    }
    if meta.len() > MAX_SOURCE {
        bail!("`{}` has {} bytes: a source may have {MAX_SOURCE}", file.display(), meta.len());
    }
    read_all(open).with_context(what)
}

fn read_all(from: impl Read) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_SOURCE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SOURCE {
        bail!("the source has more than {MAX_SOURCE} bytes");
    }
    Ok(bytes)
}

/// One program in one cell, from the flags to the exit status.
fn cell(
    launcher: &Launcher,
    mut args: CellArgs,
    watch: WatchArgs,
    program: Program,
    kind: Kind,
    stdin_is_used: bool,
) -> anyhow::Result<ExitCode> {
    differ(&[
        ("--events", watch.events.as_deref()),
        ("--receipt", args.receipt.as_deref()),
        ("--result", args.result.as_deref()),
    ])?;
    is_heard(&args, &watch)?;
    let mut wanted = terminal::wanted(&mut args, &watch)?;
    // What is told of a run is told of its refusal too: where to comes first.
    let file = watch.events.as_deref().map(events::open).transpose()?;
    let events = Events::new(watch.events.zip(file));
    let tell = |event| events.tell(event);
    let usual = Watch::default();
    let every = watch.sample_every.unwrap_or(usual.every);
    let how = Watch { every, alert_at: watch.alert_at.unwrap_or(usual.alert_at), ..usual };
    let sentinel = Sentinel::new(args.request_id.get_or_insert_with(new_id), how, &tell);
    // Everything that can be wrong with the flags is, before anything is made.
    let verb = if matches!(program, Program::Command(_)) { Verb::Exec } else { Verb::Run };
    let asked = request(&args, verb, program, kind);
    let (request, leased) = asked.inspect_err(|e| tell_refusal(&sentinel, e))?;
    let asks = policy::named(&args)?.is_some_and(|policy| policy.require_approval);
    if asks && args.stdin.is_some() {
        bail!("the policy asks for an approval, which is not for a standard input: leave --stdin out");
    }
    let stdin = match &args.stdin {
        _ if asks => None,
        Some(file) => Some(File::open(file).with_context(|| format!("cannot read `{}`", file.display()))?.into()),
        None if stdin_is_used => None,
        None => std::io::stdin().as_fd().try_clone_to_owned().ok(),
    };
    if let Some(dir) = &args.artifacts {
        must_be_new(dir)?;
    }
    if let Some(path) = &args.result {
        can_write(path).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let receipt = receipt::prepare(&args, &request, None)?;
    let signals = Signals::catch()?;
    wanted.iter_mut().for_each(Wanted::follow);
    let json = args.output == Output::Json;
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    let keep = match json || args.result.is_some() || receipt.is_some() || leased.is_some() {
        true => request.limits.output_bytes.min(usize::MAX as u64) as usize,
        // The last byte, to know whether the cursor is at the beginning of a line.
        false if stderr.is_terminal() => 2,
        false => 0,
    };
    let through = if watch.watch { draw(&events, every, json)? } else { None };
    let progress = progress::Line::new(!json && !args.quiet && through.is_none());
    let through = through.unwrap_or_default();
    let raw = Raw::default();
    // Keys that nobody reads would be lost, Ctrl-C among them.
    let takes_keys = wanted.is_some() && args.stdin.is_none() && stdin.is_some();
    let told = |what: Progress<'_>| {
        if takes_keys && matches!(what, Progress::Running) {
            raw.begin();
        }
        progress.tell(what);
    };
    let kept = state::begin(&args, &request, leased.as_ref()).inspect_err(|e| tell_refusal(&sentinel, e))?;
    if let Some(kept) = &kept {
        events.audit_to(kept.state.audit(), kept.begun.record_id());
    }
    sentinel.admitted();
    let call = Call {
        stdin,
        stdout: (!json).then(|| through.stdout.as_ref().map_or(stdout.as_fd(), AsFd::as_fd)),
        stderr: (!json).then(|| through.stderr.as_ref().map_or(stderr.as_fd(), AsFd::as_fd)),
        artifacts: args.artifacts.as_deref(),
        keep,
        cancel: Some(&signals),
        passed: None,
        terminal: wanted.as_ref().map(|wanted| &*wanted.terminal),
        lease: kept.as_ref().and_then(|kept| kept.begun.leased_run()),
        progress: Some(&told),
        sentinel: events.are_wanted().then_some(&sentinel),
        others: false,
    };
    let outcome = execute(launcher, &request, call);
    drop((progress, through, raw));
    let audited = events.calm();
    let outcome = state::end(kept, outcome, &sentinel.averages(), args.quiet);
    match &outcome {
        Ok(outcome) => sentinel.ended(outcome),
        Err(e) => sentinel.failed(&format!("{e:#}")),
    }
    let written = events.close();
    let outcome = outcome?;
    write_down(&args, &outcome, receipt)?;
    if json {
        write_json(&mut std::io::stdout().lock(), &outcome).context("cannot write to standard output")?;
    } else {
        show::compiler(&outcome);
        if !args.quiet {
            show::summary(&outcome);
        }
    }
    audited.and(written)?;
    Ok(exit::code(&outcome, signals.first()))
}

/// Begins to draw, where that can be.
fn draw(events: &Events, every: Duration, json: bool) -> anyhow::Result<Option<Through>> {
    if !view::is_possible() {
        show::note("--watch needs a terminal on standard error: nothing is drawn");
        return Ok(None);
    }
    let (view, through) = View::start(every, !json).context("cannot draw on the terminal")?;
    events.show_in(view);
    Ok(Some(through))
}

/// A policy, a quota or the kill switch that says no is an event; a word that is wrong is none.
fn tell_refusal(sentinel: &Sentinel<'_>, error: &anyhow::Error) {
    let policy = error.downcast_ref::<PolicyError>().and_then(|e| match e {
        PolicyError::Refused { class, why, .. } => Some((*class, why)),
        _ => None,
    });
    let state = error.downcast_ref::<StateError>().and_then(|e| match e {
        StateError::Refused { class, why, .. } => Some((*class, why)),
        _ => None,
    });
    if let Some((class, why)) = policy.or(state) {
        sentinel.denied(class, why);
    }
}

/// Two things in one file would be neither of them.
pub(crate) fn differ(files: &[(&str, Option<&Path>)]) -> anyhow::Result<()> {
    let given: Vec<(&str, &Path)> = files.iter().filter_map(|(flag, path)| Some((*flag, (*path)?))).collect();
    let nowhere = Path::new("/dev/null");
    for (at, (flag, path)) in given.iter().enumerate().filter(|(_, (_, path))| *path != nowhere) {
        if let Some((other, _)) = given[at + 1..].iter().find(|(_, other)| is_same(path, other)) {
            bail!("{flag} and {other} name the same file `{}`: give two", path.display());
        }
    }
    Ok(())
}

/// By what is there; where nothing is yet, by its name in its directory.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    let name = |path: &Path| {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some((place(dir)?, path.file_name()?.to_owned()))
    };
    match (place(one), place(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => name(one).is_some() && name(one) == name(other),
        _ => false,
    }
}

/// A run that nobody is told of has no samples and no alerts to set.
fn is_heard(args: &CellArgs, watch: &WatchArgs) -> anyhow::Result<()> {
    let flags = [(watch.sample_every.is_some(), "--sample-every"), (watch.alert_at.is_some(), "--alert-at")];
    match flags.iter().find(|(given, _)| *given) {
        Some((_, flag)) if watch.events.is_none() && !watch.watch && !state::is_kept(args)? => {
            bail!(
                "{flag} is for what is told of a run, and nobody is: give --events FILE or --watch, or a state directory"
            )
        }
        _ => Ok(()),
    }
}

/// Whether it could be written, without doing so: a run that is refused leaves an older result as it is.
pub(crate) fn can_write(path: &Path) -> anyhow::Result<()> {
    if path == Path::new("-") {
        bail!("it is no file: use --output json for the result on standard output");
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.exists() {
        std::fs::OpenOptions::new().write(true).open(path)?;
    } else {
        rustix::fs::access(dir, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?;
    }
    Ok(())
}

/// Artifacts of two runs in one directory would be nobody's.
fn must_be_new(dir: &Path) -> anyhow::Result<()> {
    match std::fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => bail!("`{}` is not empty: give --artifacts a new directory", dir.display()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let above = dir.ancestors().skip(1).find(|above| above.exists()).unwrap_or(Path::new("."));
            let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
            rustix::fs::access(above, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
                .with_context(|| format!("cannot make `{}`", dir.display()))
        }
        Err(e) => Err(e).with_context(|| format!("cannot use `{}` for artifacts", dir.display())),
    }
}

/// The result and the receipt, where they are asked for.
pub(crate) fn write_down(args: &CellArgs, outcome: &Outcome, receipt: Option<receipt::Prepared>) -> anyhow::Result<()> {
    if let Some(path) = &args.result {
        let written = File::create(path).map_err(Into::into).and_then(|mut file| write_json(&mut file, outcome));
        written.with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    receipt.map_or(Ok(()), |receipt| receipt.write(outcome))
}

pub(crate) fn write_json(to: &mut impl Write, outcome: &Outcome) -> anyhow::Result<()> {
    to.write_all(&outcome.to_json()?)?;
    Ok(to.flush()?)
}

pub(crate) fn request(
    args: &CellArgs,
    verb: Verb,
    program: Program,
    Kind { compile, capsule, paths }: Kind,
) -> anyhow::Result<(Request, Option<Leased>)> {
    let millis = |time: Option<Duration>| time.map(|time| time.as_millis() as u64);
    let mut request = Request {
        request_id: Some(args.request_id.clone().unwrap_or_else(new_id)),
        input: args.input.clone(),
        env: args.env.iter().map(variable).collect::<anyhow::Result<_>>()?,
        cache: compile.cache,
        collect: args.collect.clone(),
        capsule,
        require: args.require.clone(),
        metadata: metadata(&args.meta)?,
        paths,
        ..Request::of(program)
    };
    let asked = AskedLimits {
        wall_ms: millis(args.timeout),
        grace_ms: millis(args.grace),
        scratch_inodes: args.scratch_inodes,
        cpu_ms: millis(args.cpu_time),
        cpus: args.cpus,
        memory_bytes: args.memory,
        processes: args.processes,
        open_files: args.open_files,
        file_size_bytes: args.file_size,
        scratch_bytes: args.scratch,
        output_bytes: args.output_limit,
        compile_wall_ms: millis(compile.timeout),
        compile_memory_bytes: compile.memory,
        compile_cpu_ms: None,
        network: args.network.map(|network| match network {
            Net::None => NetworkPolicy::None,
            Net::Local => NetworkPolicy::Local,
            Net::Restricted => NetworkPolicy::Restricted,
            Net::Full => NetworkPolicy::Full,
        }),
        allowed_hosts: args.allow_host.clone(),
        backend: args.backend.asked(),
        on_violation: args.on_violation.map(|act| match act {
            cell::OnViolation::Kill => OnViolation::Kill,
            cell::OnViolation::Fail => OnViolation::Fail,
            cell::OnViolation::Note => OnViolation::Note,
        }),
    };
    // Before a runtime is asked for its version: that alone would execute it.
    if args.lease.is_some() && asked.backend.is_of_the_callers_own() {
        bail!("a lease is for what its issuer knows: leave --image and --runtime PATH out");
    }
    let policy = policy::named(args)?;
    let leased = grants::admit_run(args, verb, policy.as_ref(), &asked, &mut request)?;
    Ok((request, leased))
}

/// So many pairs are enough to say what it is.
const MAX_METADATA: usize = 64;

fn metadata(given: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    if given.len() > MAX_METADATA {
        bail!("--meta was given {} times: give it at most {MAX_METADATA} times", given.len());
    }
    let mut all = BTreeMap::new();
    for text in given {
        let (key, value) = parse_metadata(text)?;
        if all.contains_key(&key) {
            bail!("--meta has `{key}` twice: give it once");
        }
        all.insert(key, value);
    }
    Ok(all)
}

fn variable(text: &OsString) -> anyhow::Result<(OsString, OsString)> {
    use std::ffi::OsStr;
    let bytes = text.as_bytes();
    if matches!(bytes.first(), None | Some(b'=')) {
        bail!("an environment variable has an empty name: write --env NAME=VALUE");
    }
    match bytes.iter().position(|b| *b == b'=') {
        Some(at) => Ok((OsStr::from_bytes(&bytes[..at]).into(), OsStr::from_bytes(&bytes[at + 1..]).into())),
        None => match std::env::var_os(text) {
            Some(value) => Ok((text.clone(), value)),
            None => bail!("`{}` is not set here: write --env {0}=VALUE", text.display()),
        },
    }
}
