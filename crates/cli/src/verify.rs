//! `hotcell verify`: sources and their tests, tier by tier.

use std::io::{IsTerminal, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{Context, bail};
use hotcell_contract::{Averages, Limits, Outcome, Phase, Status, show_duration};
use hotcell_engine::{
    Asked, Language, Launcher, Program, Request, Signals, Source, Told, Verb, compile_limits, verify as run_checks,
};

use crate::args::Output;
use crate::args::runs::VerifyArgs;
use crate::run::{self, Compile, Kind, can_write, read_source, write_down, write_json};
use crate::show::{self, harmless, painted};
use crate::{exit, languages, policy, receipt, state};

pub(crate) fn verify(mut args: VerifyArgs, launcher: &Launcher) -> anyhow::Result<ExitCode> {
    let catalogue = languages::catalogue(args.languages.as_deref())?;
    let is_dir = args.path.is_dir();
    if args.cell.input.is_some() || args.cell.artifacts.is_some() || args.cell.stdin.is_some() {
        bail!("--input, --artifacts and --stdin are for programs that run: name what is to be verified as PATH");
    }
    if is_dir && !args.tests.is_empty() {
        bail!("--tests is for a single file: put the tests into `{}`", args.path.display());
    }
    let (file, dir) = if is_dir { (None, Some(args.path.as_path())) } else { (Some(args.path.as_path()), None) };
    let language = run::language(&catalogue, args.lang.as_deref(), file, dir)?.clone();
    if is_dir {
        args.cell.input = Some(args.path.clone());
    }
    run::differ(&[("--receipt", args.cell.receipt.as_deref()), ("--result", args.cell.result.as_deref())])?;
    if let Some(path) = &args.cell.result {
        can_write(path).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let request = || request(&args, &language, is_dir);
    let first = request()?;
    let signals = Signals::catch()?;
    let json = args.cell.output == Output::Json;
    let tell = |told: Told<'_>| {
        if !json && !args.cell.quiet {
            line(&told);
        }
    };
    let asked = Asked {
        budget: budget(&args)?,
        repeat: args.repeat,
        generated_tests: args.generated_tests,
        l2: args.l2.clone(),
        cancel: Some(&signals),
        tell: &tell,
    };
    let mut receipt = receipt::prepare(&args.cell, &first, Some(&asked))?;
    let mut failed = None;
    let mut repair = |outcome: &Outcome| {
        let command = args.repair.as_deref().unwrap_or_default();
        let next = repaired(command, outcome).and_then(|()| request()).and_then(|next| {
            receipt.as_mut().map_or(Ok(()), |receipt| receipt.is_about(&next, &asked))?;
            Ok(next)
        });
        next.map_err(|e| failed = Some(e)).ok()
    };
    let kept = state::begin(&args.cell, &first, None)?;
    let outcome = match args.repair {
        Some(_) => run_checks(launcher, first, &asked, Some(&mut repair)),
        None => run_checks(launcher, first, &asked, None),
    };
    let outcome = state::end(kept, outcome, &Averages::default(), true)?;
    write_down(&args.cell, &outcome, receipt)?;
    if json {
        write_json(&mut std::io::stdout().lock(), &outcome).context("cannot write to standard output")?;
    } else {
        if outcome.status == Status::Fail {
            let _ = write!(std::io::stderr(), "{}{}", outcome.stdout, outcome.stderr);
        }
        if !args.cell.quiet {
            show::verdict(&Outcome { skipped_checks: vec![], ..outcome.clone() });
        }
    }
    match failed {
        Some(e) => Err(e),
        None => Ok(exit::code(&outcome, signals.first())),
    }
}

/// The caller's, under the policy's when there is one.
fn budget(args: &VerifyArgs) -> anyhow::Result<Duration> {
    let Some(policy) = policy::named(&args.cell)? else { return Ok(args.budget.unwrap_or(Duration::from_secs(180))) };
    let most = Duration::from_secs_f64(policy.request_budget_seconds);
    match args.budget {
        Some(asked) if asked > most => {
            let (id, asked, most) = (policy.policy_id, show_duration(asked), show_duration(most));
            bail!("the policy {id} refuses this: --budget {asked} is more than its {most}: give {most} or less")
        }
        asked => Ok(asked.unwrap_or(most)),
    }
}

fn request(args: &VerifyArgs, language: &Language, is_dir: bool) -> anyhow::Result<Request> {
    let source = if is_dir {
        Source::InInput { entry: None }
    } else {
        let mut files = vec![];
        for path in std::iter::once(&args.path).chain(&args.tests) {
            let Source::Given { files: given } = run::given(language, Some(path), read_source(path)?)? else {
                continue;
            };
            files.extend(given);
        }
        let mut names: Vec<&String> = files.iter().map(|(name, _)| name).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("two files are called `{}`: give them different names", twice[0]);
        }
        Source::Given { files }
    };
    let program = Program::Source { language: Box::new(language.clone()), source, args: vec![] };
    let compile = Compile { cache: run::cache_dir(), ..Compile::default() };
    let files = std::iter::once(&args.path).chain(&args.tests).filter(|_| !is_dir);
    let kind = Kind { compile, capsule: None, paths: files.cloned().collect() };
    let mut request = run::request(&args.cell, Verb::Verify, program, kind)?.0;
    // Checks compile: without a policy they have a compiler's room, but for what the caller says.
    if args.cell.policy.is_none() {
        let asked = request.limits.clone();
        let room = compile_limits();
        let cell = &args.cell;
        request.limits = Limits {
            memory_bytes: cell.memory.unwrap_or(room.memory_bytes),
            processes: cell.processes.unwrap_or(room.processes),
            open_files: cell.open_files.unwrap_or(room.open_files),
            file_size_bytes: cell.file_size.unwrap_or(room.file_size_bytes),
            scratch_bytes: cell.scratch.unwrap_or(room.scratch_bytes),
            scratch_inodes: room.scratch_inodes.max(asked.scratch_inodes),
            ..asked
        };
    }
    Ok(request)
}

/// The caller's own command, outside any cell, as the caller would have run it.
fn repaired(command: &str, outcome: &Outcome) -> anyhow::Result<()> {
    let what = || format!("the repair command `{command}` cannot be run");
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(std::io::stderr())
        .spawn()
        .with_context(what)?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not want to read it may still mend something.
        let _ = write_json(&mut stdin, outcome);
    }
    let status = child.wait().with_context(what)?;
    if !status.success() {
        bail!("the repair command `{command}` failed with {status}: nothing more was tried");
    }
    Ok(())
}

fn line(told: &Told<'_>) {
    let mut out = std::io::stdout().lock();
    let colour = out.is_terminal();
    let dim = |text: &str| painted(text, Style::new().dimmed(), colour);
    let _ = match told {
        Told::Attempt(1) | Told::Begins(_) => Ok(()),
        Told::Attempt(number) => writeln!(out, "attempt {number}"),
        Told::Skipped(skipped) => {
            writeln!(out, "    {:<18} {}  {}", harmless(&skipped.check), dim("skip"), dim(&harmless(&skipped.reason)))
        }
        Told::Ended(phase) => ended(&mut out, phase, colour),
    };
    let _ = out.flush();
}

fn ended(out: &mut impl Write, phase: &Phase, colour: bool) -> std::io::Result<()> {
    let (word, style) = match phase.status {
        Status::Pass => ("pass", AnsiColor::Green.on_default()),
        Status::Fail => ("fail", AnsiColor::Red.on_default().bold()),
    };
    let tier = phase.tier.map(|tier| format!("{tier:?}")).unwrap_or_default();
    let time = show_duration(Duration::from_millis(phase.duration_ms));
    let counts = phase.tests.as_ref().map_or(String::new(), |tests| {
        let skipped = if tests.skipped > 0 { format!(", {} skipped", tests.skipped) } else { String::new() };
        format!("  {} passed, {} failed{skipped}", tests.passed, tests.failed)
    });
    let class = phase.failure_class.map(|class| format!("  {class:?}")).unwrap_or_default();
    writeln!(
        out,
        "{tier:<3} {:<18} {}  {time:>7}{class}{counts}",
        harmless(&phase.name),
        painted(word, style, colour)
    )?;
    for name in phase.tests.iter().flat_map(|tests| &tests.failing).take(10) {
        writeln!(out, "      {}", harmless(name))?;
    }
    Ok(())
}
