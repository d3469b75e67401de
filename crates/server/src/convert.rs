//! From what a client wrote to what the engine is asked: every field is looked at, and a wrong one is named.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

use hotcell_contract::{AllowedHost, Bytes, LowerLimits, Policy, RunRequest, TerminalSize, is_id};
use hotcell_engine::{
    AskedLimits, Capsule, Catalogue, Language, Leased, Passed, Program, Request, Source, Terminal, Verb, Who, new_id,
};

use serde_json::Value;

use crate::auth::Caller;
use crate::files::{bytes_of, files_of};
use crate::problem::{Problem, shown};
use crate::service::Service;

/// Words that a command line can have.
const MAX_ARGS: usize = 1024;
const MAX_VARIABLES: usize = 256;
/// Of tests: what still cannot decide after that many is no flake any more.
const MAX_REPEAT: u32 = 20;
/// It is kept and returned with every look at the run.
const MAX_METADATA: usize = 16 << 10;
/// As a request_id stands in logs and tables.
const MAX_REQUEST_ID: usize = 128;

/// One run, understood and not yet admitted.
pub struct Job {
    pub verb: Verb,
    pub request: Request,
    pub limits: AskedLimits,
    pub who: Who,
    pub policy: Policy,
    pub stdin: Stdin,
    /// The other end of a live input, for whoever attaches.
    pub to_stdin: Option<OwnedFd>,
    /// Signals of whoever attaches.
    pub passed: Option<Passed>,
    pub terminal: Option<Terminal>,
    /// A lease as it was given, and what became of it.
    pub lease: Option<String>,
    pub leased: Option<Leased>,
    /// Whether what the program leaves is kept.
    pub artifacts: bool,
    /// The caller's own.
    pub metadata: Option<serde_json::Map<String, serde_json::Value>>,
    /// 1 to 3.
    pub attempt: u32,
    /// For `Verb::Verify`.
    pub checks: Checks,
    /// What it holds in memory while it waits.
    pub bytes: usize,
}

/// What the program reads.
#[derive(Default)]
pub enum Stdin {
    #[default]
    Nothing,
    Given(Vec<u8>),
    /// From somebody who writes while it runs.
    Live(OwnedFd),
}

/// How a verification goes about it.
#[derive(Clone, Debug)]
pub struct Checks {
    pub repeat: u32,
    pub generated_tests: bool,
    pub l2: Option<String>,
}

impl Default for Checks {
    fn default() -> Checks {
        Checks { repeat: 1, generated_tests: false, l2: None }
    }
}

/// A run. `bytes` is the size of the body that it came in.
pub fn job_of(service: &Service, caller: &Caller, asked: &RunRequest, bytes: usize) -> Result<Job, Problem> {
    if asked.checks.is_some() {
        return Err(Problem::field("checks", "`checks` is for a verification: leave it out, or ask /v1/verify"));
    }
    job(service, caller, asked, bytes)
}

/// A verification of sources and the tests among them.
pub fn verification_of(service: &Service, caller: &Caller, asked: &RunRequest, bytes: usize) -> Result<Job, Problem> {
    let given = [
        ("command", asked.command.is_some()),
        ("args", !asked.args.is_empty()),
        ("stdin", asked.stdin.is_some()),
        ("lease", asked.lease.is_some()),
        ("collect", !asked.collect.is_empty()),
        ("state", asked.state.is_some()),
        ("terminal", asked.terminal.is_some()),
    ];
    none_of(&given, "is for programs that run: leave it out")?;
    let checks = asked.checks.clone().unwrap_or_default();
    let repeat = checks.repeat.unwrap_or(1);
    if !(1..=MAX_REPEAT).contains(&repeat) {
        return Err(Problem::field("checks.repeat", format!("`checks.repeat` is {repeat}: give 1 to {MAX_REPEAT}")));
    }
    let checks = Checks { repeat, generated_tests: checks.generated_tests, l2: checks.l2 };
    Ok(Job { verb: Verb::Verify, checks, ..job(service, caller, asked, bytes)? })
}

fn job(service: &Service, caller: &Caller, asked: &RunRequest, bytes: usize) -> Result<Job, Problem> {
    let who = who(caller, asked)?;
    let policy = service.policy_for(caller, asked.policy_id.as_deref())?;
    let request_id = match &asked.request_id {
        Some(id) if id.is_empty() || id.len() > MAX_REQUEST_ID || id.contains(|c: char| c.is_control()) => {
            return Err(Problem::field("request_id", "give 1 to 128 bytes without control characters"));
        }
        id => id.clone(),
    };
    let metadata = asked.metadata.as_ref().map(serde_json::to_vec);
    if metadata.is_some_and(|text| text.map_or(true, |text| text.len() > MAX_METADATA)) {
        return Err(Problem::field("metadata", format!("it has more than {MAX_METADATA} bytes: give less")));
    }
    let attempt = asked.attempt.unwrap_or(1);
    if !(1..=3).contains(&attempt) {
        return Err(Problem::field("attempt", format!("`attempt` is {attempt}: give 1, 2 or 3")));
    }
    if policy.require_approval && asked.stdin.is_some() {
        let detail = "the policy asks for an approval, which is not for a standard input: leave it out";
        return Err(Problem::field("stdin", detail));
    }
    let program = program(&service.catalogue, asked)?;
    let verb = if matches!(program, Program::Command(_)) { Verb::Exec } else { Verb::Run };
    let id = new_id();
    let request = Request {
        request_id: Some(request_id.unwrap_or_else(|| id.clone())),
        record_id: Some(id),
        env: variables(asked)?,
        cache: service.settings.cache.as_ref().map(|dir| dir.join(&caller.tenant)),
        collect: asked.collect.clone(),
        capsule: capsule(asked)?,
        metadata: words(asked),
        ..Request::of(program)
    };
    Ok(Job {
        verb,
        request,
        limits: limits(asked)?,
        who,
        policy,
        stdin: match &asked.stdin {
            None => Stdin::Nothing,
            Some(given) => Stdin::Given(bytes_of("stdin", given)?),
        },
        to_stdin: None,
        passed: None,
        terminal: terminal(asked)?,
        lease: asked.lease.clone(),
        leased: None,
        artifacts: !asked.collect.is_empty(),
        metadata: asked.metadata.clone(),
        attempt,
        checks: Checks::default(),
        bytes,
    })
}

fn terminal(asked: &RunRequest) -> Result<Option<Terminal>, Problem> {
    let Some(size) = asked.terminal else { return Ok(None) };
    let most = TerminalSize::MOST;
    if !size.is_usual() {
        return Err(Problem::field("terminal", format!("a terminal has 1 to {most} rows and columns: give so many")));
    }
    Terminal::new(size.rows, size.columns).map(Some).map_err(|e| Problem::internal(&e))
}

/// What a policy's `strict_when` looks at, whatever shape it was given in.
fn words(asked: &RunRequest) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    asked.metadata.iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}

fn who(caller: &Caller, asked: &RunRequest) -> Result<Who, Problem> {
    if let Some(tenant) = asked.tenant_id.as_ref().filter(|tenant| **tenant != caller.tenant) {
        let shown = shown(tenant);
        let problem = Problem::field("tenant_id", format!("`{shown}` is not the tenant of this key: leave it out"));
        return Err(Problem { status: axum::http::StatusCode::FORBIDDEN, ..problem });
    }
    for (field, id) in [("user_id", &asked.user_id), ("run_id", &asked.run_id)] {
        if id.as_ref().is_some_and(|id| !is_id(id)) {
            return Err(Problem::field(field, format!("`{field}` is no id: give 1 to 64 letters, digits, `_` or `-`")));
        }
    }
    Ok(Who { tenant_id: Some(caller.tenant.clone()), user_id: asked.user_id.clone(), run_id: asked.run_id.clone() })
}

fn program(catalogue: &Catalogue, asked: &RunRequest) -> Result<Program, Problem> {
    if asked.args.len() > MAX_ARGS || asked.command.as_ref().is_some_and(|words| words.len() > MAX_ARGS) {
        return Err(Problem::field("args", format!("there are more than {MAX_ARGS} words")));
    }
    match (&asked.command, &asked.code, &asked.files) {
        (Some(words), None, None) => command(words, asked),
        (None, Some(code), None) => of_code(catalogue, asked, code),
        (None, None, Some(_)) => of_files(catalogue, asked),
        (None, None, None) => Err(Problem::field("code", "give one of `code`, `files` and `command`")),
        _ => Err(Problem::field("code", "`code`, `files` and `command` are different programs: give one of them")),
    }
}

fn command(words: &[String], asked: &RunRequest) -> Result<Program, Problem> {
    let given = [
        ("language", asked.language.is_some()),
        ("entry", asked.entry.is_some()),
        ("args", !asked.args.is_empty()),
        ("state", asked.state.is_some()),
    ];
    none_of(&given, "is for sources: leave it out beside `command`")?;
    Ok(Program::Command(words.iter().map(OsString::from).collect()))
}

fn none_of(given: &[(&'static str, bool)], why: &str) -> Result<(), Problem> {
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => Err(Problem::field(*field, format!("`{field}` {why}"))),
        None => Ok(()),
    }
}

fn of_code(catalogue: &Catalogue, asked: &RunRequest, code: &Bytes) -> Result<Program, Problem> {
    if asked.entry.is_some() {
        return Err(Problem::field("entry", "`entry` is for `files`: leave it out beside `code`"));
    }
    let language = by_name(catalogue, asked.language.as_deref().unwrap_or("python"))?;
    let bytes = text("code", bytes_of("code", code)?)?;
    let files = vec![(language.name_for(&bytes), bytes)];
    Ok(source(language, files, asked))
}

fn of_files(catalogue: &Catalogue, asked: &RunRequest) -> Result<Program, Problem> {
    let mut files = files_of(asked.files.as_ref().unwrap_or(&Default::default()))?;
    let named = asked.language.as_deref().map(|name| by_name(catalogue, name)).transpose()?;
    let is_there = |name: &String| files.iter().any(|(known, _)| known == name);
    let entry = match (&asked.entry, files.as_slice()) {
        (_, []) => return Err(Problem::field("files", "there is no file in `files`: give one at least")),
        (Some(entry), _) if is_there(entry) => entry.clone(),
        (Some(_), _) => return Err(Problem::field("entry", "`entry` is not one of `files`: name one of them")),
        (None, [(only, _)]) => only.clone(),
        (None, _) => {
            let known = named.iter().flat_map(|language| &language.entries).find(|entry| is_there(entry));
            known.cloned().ok_or_else(|| {
                Problem::field("entry", "there is more than one file: say with `entry` where the program begins")
            })?
        }
    };
    let language = match named.or_else(|| catalogue.by_extension(Path::new(&entry))) {
        Some(language) => language,
        None => {
            let all = catalogue.names().join(", ");
            let detail = format!("`{entry}` does not say its language by its name: give `language` with one of {all}");
            return Err(Problem::field("language", detail));
        }
    };
    // Compilers go by the name.
    let is_compiled = language.ways.iter().any(|way| way.compile.is_some());
    let extension = Path::new(&entry).extension().unwrap_or_default();
    if is_compiled && !language.extensions.iter().any(|known| extension == known.as_str()) {
        let all = language.extensions.join(", .");
        return Err(Problem::field("entry", format!("a source of {} ends in .{all}: rename `{entry}`", language.name)));
    }
    // The program begins with the first.
    if let Some(at) = files.iter().position(|(name, _)| *name == entry) {
        files.swap(0, at);
    }
    if let Some((_, bytes)) = files.first_mut() {
        *bytes = text("files", std::mem::take(bytes))?;
    }
    Ok(source(language, files, asked))
}

fn source(language: &Language, files: Vec<(String, Vec<u8>)>, asked: &RunRequest) -> Program {
    Program::Source {
        language: Box::new(language.clone()),
        source: Source::Given { files },
        args: asked.args.iter().map(OsString::from).collect(),
    }
}

fn by_name<'a>(catalogue: &'a Catalogue, name: &str) -> Result<&'a Language, Problem> {
    catalogue.by_name(name).ok_or_else(|| {
        let shown = shown(name);
        let all = catalogue.names().join(", ");
        Problem::field("language", format!("`{shown}` is not a language that is known here: use one of {all}"))
    })
}

/// Every toolchain here reads UTF-8, and some silently make something else of other bytes.
fn text(field: &str, bytes: Vec<u8>) -> Result<Vec<u8>, Problem> {
    match std::str::from_utf8(&bytes) {
        Ok(_) => Ok(bytes),
        Err(e) => {
            Err(Problem::field(field, format!("the source is not UTF-8 at byte {}: convert it", e.valid_up_to())))
        }
    }
}

fn variables(asked: &RunRequest) -> Result<Vec<(OsString, OsString)>, Problem> {
    if asked.environment.len() > MAX_VARIABLES {
        return Err(Problem::field("environment", format!("there are more than {MAX_VARIABLES} variables")));
    }
    let is_bad = |name: &str, value: &str| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
    if let Some((name, _)) = asked.environment.iter().find(|(name, value)| is_bad(name, value)) {
        let shown = shown(name);
        let detail = format!("`{shown}` has a name that is empty or has `=` or NUL in it, or a value with NUL");
        return Err(Problem::field("environment", detail));
    }
    let mut all: Vec<_> = asked.environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    if asked.terminal.is_some() && !asked.environment.contains_key("TERM") {
        // What those who have a terminal in a page or a window have it from.
        all.push(("TERM".into(), "xterm-256color".into()));
    }
    Ok(all)
}

fn capsule(asked: &RunRequest) -> Result<Option<Capsule>, Problem> {
    let Some(state) = &asked.state else { return Ok(None) };
    let state = serde_json::to_vec(state).map_err(|e| Problem::field("state", e.to_string()))?;
    Ok(Some(Capsule { state: Some(state) }))
}

fn limits(asked: &RunRequest) -> Result<AskedLimits, Problem> {
    let host = |text: &String| {
        AllowedHost::parse(text).map_err(|e| Problem::field("allowed_hosts", format!("`allowed_hosts`: {e}")))
    };
    if let Some((name, why)) = asked.limits.out_of_range() {
        return Err(Problem::field(format!("limits.{name}"), format!("`limits.{name}` is out of range: {why}")));
    }
    let LowerLimits {
        wall_ms,
        grace_ms,
        cpu_ms,
        cpus,
        memory_bytes,
        processes,
        open_files,
        file_size_bytes,
        scratch_bytes,
        scratch_inodes,
        output_bytes,
        compile_wall_ms,
        compile_memory_bytes,
    } = asked.limits;
    Ok(AskedLimits {
        wall_ms,
        grace_ms,
        scratch_inodes,
        cpu_ms,
        cpus,
        memory_bytes,
        processes,
        open_files,
        file_size_bytes,
        scratch_bytes,
        output_bytes,
        compile_wall_ms,
        compile_memory_bytes,
        compile_cpu_ms: None,
        network: asked.network,
        allowed_hosts: asked.allowed_hosts.iter().map(host).collect::<Result<_, _>>()?,
        on_violation: asked.on_violation,
        backend: Default::default(),
    })
}
