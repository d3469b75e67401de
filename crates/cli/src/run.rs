//! `hotcell run` and `hotcell exec`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use hotcell_contract::{Limits, Mode, NetworkPolicy, OnViolation, Outcome};
use hotcell_engine::{Call, Launcher, Program, Request, Signals, Source, execute};

use crate::args::{self, CellArgs, ExecArgs, Net, Output, RunArgs};
use crate::{exit, show};

/// A source that is larger is no source.
const MAX_SOURCE: u64 = 64 << 20;

pub(crate) fn exec(args: ExecArgs, launcher: &Launcher) -> anyhow::Result<ExitCode> {
    cell(launcher, args.cell, Program::Command(args.command), false)
}

pub(crate) fn run(args: RunArgs, launcher: &Launcher) -> anyhow::Result<ExitCode> {
    let named = args.file.as_deref().filter(|file| *file != Path::new("-"));
    language(args.lang.as_deref(), named)?;
    let from_stdin = args.file.is_some() && named.is_none();
    let source = match (args.code, named, &args.cell.input) {
        (None, Some(file), Some(dir)) => Source::InInput { path: inside(file, dir)? },
        (None, Some(file), None) => Source::Given { name: name_of(file), bytes: read_source(file)? },
        (Some(code), ..) => Source::Given { name: "main.py".into(), bytes: code.into_bytes() },
        (None, None, _) => {
            let bytes = read_all(std::io::stdin().lock()).context("cannot read the source from standard input")?;
            Source::Given { name: "main.py".into(), bytes }
        }
    };
    cell(launcher, args.cell, Program::Python { source, args: args.args }, from_stdin)
}

fn name_of(file: &Path) -> String {
    file.file_name().map_or("main.py".into(), |name| name.to_string_lossy().into_owned())
}

/// Where a file is in the directory that the cell will see.
fn inside(file: &Path, dir: &Path) -> anyhow::Result<PathBuf> {
    let real = |path: &Path| path.canonicalize().with_context(|| format!("cannot read `{}`", path.display()));
    match real(file)?.strip_prefix(real(dir)?) {
        Ok(path) => Ok(path.to_owned()),
        Err(_) => bail!("`{}` is not in `{}`: with --input, give a file that is", file.display(), dir.display()),
    }
}

fn language(asked: Option<&str>, file: Option<&Path>) -> anyhow::Result<()> {
    match (asked, file.map(|f| f.extension().unwrap_or_default())) {
        (Some("python"), _) | (None, None) => Ok(()),
        (Some(other), _) => bail!("`{other}` is not a language that this version runs: use python"),
        (None, Some(ext)) if ext == "py" => Ok(()),
        (None, Some(_)) => bail!(
            "`{}` does not say its language by its name: end it in .py, or give --lang python",
            file.unwrap_or(Path::new("")).display()
        ),
    }
}

fn read_source(file: &Path) -> anyhow::Result<Vec<u8>> {
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
fn cell(launcher: &Launcher, args: CellArgs, program: Program, stdin_is_used: bool) -> anyhow::Result<ExitCode> {
    // Everything that can be wrong with the flags is, before anything is made.
    let request = request(&args, program)?;
    let stdin = match &args.stdin {
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
    let signals = Signals::catch()?;
    let json = args.output == Output::Json;
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    let keep = if json || args.result.is_some() { args.output_limit.min(usize::MAX as u64) as usize } else { 0 };
    let call = Call {
        stdin,
        stdout: (!json).then(|| stdout.as_fd()),
        stderr: (!json).then(|| stderr.as_fd()),
        artifacts: args.artifacts.as_deref(),
        keep,
        cancel: Some(&signals),
    };
    let outcome = execute(launcher, &request, call)?;
    if let Some(path) = &args.result {
        let written = File::create(path).map_err(Into::into).and_then(|mut file| write_json(&mut file, &outcome));
        written.with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    if json {
        write_json(&mut std::io::stdout().lock(), &outcome).context("cannot write to standard output")?;
    } else if !args.quiet {
        show::summary(&outcome);
    }
    Ok(exit::code(&outcome))
}

/// Whether it could be written, without doing so: a run that is refused leaves an older result as it is.
fn can_write(path: &Path) -> anyhow::Result<()> {
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

fn write_json(to: &mut impl Write, outcome: &Outcome) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(outcome)?;
    text.push(b'\n');
    to.write_all(&text)?;
    Ok(to.flush()?)
}

fn request(args: &CellArgs, program: Program) -> anyhow::Result<Request> {
    Ok(Request {
        request_id: args.request_id.clone(),
        mode: Mode::Balanced,
        program,
        input: args.input.clone(),
        env: args.env.iter().map(variable).collect::<anyhow::Result<_>>()?,
        limits: Limits {
            wall_ms: args.timeout.as_millis() as u64,
            grace_ms: args.grace.as_millis() as u64,
            cpu_ms: args.cpu_time.map(|time| time.as_millis() as u64),
            cpus: args.cpus,
            memory_bytes: args.memory,
            processes: args.processes,
            open_files: args.open_files,
            file_size_bytes: args.file_size.unwrap_or(args.scratch.saturating_add(1 << 20).min(1 << 50)),
            scratch_bytes: args.scratch,
            scratch_inodes: args.scratch_inodes,
            output_bytes: args.output_limit,
        },
        network: match args.network {
            Net::None => NetworkPolicy::None,
            Net::Local => NetworkPolicy::Local,
            Net::Restricted => NetworkPolicy::Restricted,
            Net::Full => NetworkPolicy::Full,
        },
        on_violation: match args.on_violation {
            args::OnViolation::Kill => OnViolation::Kill,
            args::OnViolation::Fail => OnViolation::Fail,
            args::OnViolation::Note => OnViolation::Note,
        },
        require: args.require.clone(),
    })
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
