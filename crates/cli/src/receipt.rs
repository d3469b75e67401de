//! `hotcell receipt`, and the receipt that a run writes.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use hotcell_contract::{Outcome, Policy, Statement};
use hotcell_engine::{
    Asked, Mismatch, PublicKey, ReceiptKey, Request, State, compare_artifacts, compare_result, read_regular,
    request_hash, sign_receipt, unverified_statement, verify_receipt,
};
use serde_json::json;

use crate::args::Output;
use crate::args::cell::CellArgs;
use crate::args::state::{ReceiptArgs, ReceiptVerb};
use crate::show::{ascii_json, harmless};
use crate::{run, state};

/// More than any receipt or result of ours has.
const MAX_FILE: u64 = 1 << 30;
const MAX_KEY_FILE: u64 = 4096;

/// Everything that a receipt needs before its run begins.
pub(crate) struct Prepared {
    state: State,
    key: ReceiptKey,
    path: PathBuf,
    request_hash: String,
    policy: Option<Policy>,
}

/// What can be wrong with a receipt is, before anything runs. `None`: nobody wants one.
pub(crate) fn prepare(
    args: &CellArgs,
    request: &Request,
    checks: Option<&Asked<'_>>,
) -> anyhow::Result<Option<Prepared>> {
    let Some(path) = &args.receipt else { return Ok(None) };
    if path.symlink_metadata().is_ok() {
        bail!("`{}` is there already: give --receipt a new file", path.display());
    }
    run::can_write(path).with_context(|| format!("cannot write `{}`", path.display()))?;
    let state = state::of_run(args)?;
    let state = state.context("--receipt needs a key, and there is no place for it: give --state-dir")?;
    let (key, request_hash) = (state.receipt_key()?, request_hash(request, checks)?);
    Ok(Some(Prepared { state, key, path: path.clone(), request_hash, policy: request.policy.clone() }))
}

impl Prepared {
    /// Another request takes the place of the first: what was mended is what the receipt is about.
    pub(crate) fn is_about(&mut self, request: &Request, checks: &Asked<'_>) -> anyhow::Result<()> {
        self.request_hash = request_hash(request, Some(checks))?;
        self.policy.clone_from(&request.policy);
        Ok(())
    }

    /// Signs, writes down that it was signed, and writes the file.
    pub(crate) fn write(mut self, outcome: &Outcome) -> anyhow::Result<()> {
        let policy = self.policy.as_ref();
        let receipt = sign_receipt(&mut self.state, &self.key, outcome, &self.request_hash, policy)?;
        write_new(&self.path, &receipt).with_context(|| format!("cannot write `{}`", self.path.display()))
    }
}

/// Whole, or not at all.
fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
}

pub(crate) fn receipt(args: &ReceiptArgs) -> anyhow::Result<ExitCode> {
    match &args.verb {
        ReceiptVerb::Verify { file, key, artifacts, result, output } => {
            let key = public_key(key)?;
            let found = check(file, &key, artifacts.as_deref(), result.as_deref())?;
            found.show(&key, *output)
        }
        ReceiptVerb::Show { file } => show(file),
        ReceiptVerb::Key(state) => {
            let here = state::open(state.state_dir.as_deref())?;
            let key = here.receipt_key()?;
            let (public, path) = (key.public(), key.public_path().display().to_string());
            let mut out = std::io::stdout().lock();
            match state.output {
                Output::Text => {
                    writeln!(out, "key   {}\nkeyid {}\nfile  {}", public.hex(), public.id(), harmless(&path))?;
                }
                Output::Json => {
                    writeln!(out, "{}", json!({ "key": public.hex(), "keyid": public.id(), "file": path }))?;
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The digits themselves, or a file of them.
fn public_key(given: &OsStr) -> anyhow::Result<PublicKey> {
    let text = given.to_str().filter(|text| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()));
    let text = match text {
        Some(digits) => digits.to_owned(),
        None => String::from_utf8_lossy(&read(Path::new(given), MAX_KEY_FILE)?).into_owned(),
    };
    PublicKey::parse(&text).with_context(|| format!("--key `{}` cannot be used", given.display()))
}

fn read(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    read_regular(path, most).with_context(|| format!("cannot read `{}`", path.display()))
}

/// What a verification found.
enum Found {
    Valid(Box<Statement>),
    NotValid { reason: &'static str, message: String, mismatches: Vec<Mismatch> },
}

fn check(file: &Path, key: &PublicKey, artifacts: Option<&Path>, result: Option<&Path>) -> anyhow::Result<Found> {
    let statement = match verify_receipt(&read(file, MAX_FILE)?, key) {
        Ok(statement) => statement,
        Err(flaw) => {
            return Ok(Found::NotValid { reason: flaw.code(), message: flaw.to_string(), mismatches: vec![] });
        }
    };
    let mut mismatches = vec![];
    if let Some(dir) = artifacts {
        let compared = compare_artifacts(&statement, dir);
        mismatches.extend(compared.with_context(|| format!("cannot read the artifacts in `{}`", dir.display()))?);
    }
    if let Some(result) = result {
        mismatches.extend(compare_result(&statement, &read(result, MAX_FILE)?));
    }
    match mismatches.first() {
        None => Ok(Found::Valid(Box::new(statement))),
        Some(first) => {
            let reason = if first.subject == "result" { "result_differs" } else { "artifacts_differ" };
            let message = "it is signed, and these files are not those that it speaks of".to_owned();
            Ok(Found::NotValid { reason, message, mismatches })
        }
    }
}

impl Found {
    fn show(&self, key: &PublicKey, how: Output) -> anyhow::Result<ExitCode> {
        let mut out = std::io::stdout().lock();
        match (self, how) {
            (Found::Valid(statement), Output::Json) => {
                let said = json!({ "valid": true, "reason": null, "message": null, "mismatches": [],
                    "keyid": key.id(), "statement": **statement });
                writeln!(out, "{}", ascii_json(&said)?)?;
            }
            (Found::Valid(statement), Output::Text) => {
                writeln!(out, "valid: {}", sentence(statement))?;
            }
            (Found::NotValid { reason, message, mismatches }, Output::Json) => {
                let list = mismatches.iter().map(|m| json!({ "subject": m.subject, "what": m.what }));
                let said = json!({ "valid": false, "reason": reason, "message": message,
                    "mismatches": list.collect::<Vec<_>>(), "keyid": key.id(), "statement": null });
                writeln!(out, "{}", ascii_json(&said)?)?;
            }
            (Found::NotValid { message, mismatches, .. }, Output::Text) => {
                writeln!(out, "not valid: {}", harmless(message))?;
                for mismatch in mismatches.iter().take(20) {
                    writeln!(out, "  {} {}", harmless(&mismatch.subject), harmless(&mismatch.what))?;
                }
                if let Some(more) = mismatches.len().checked_sub(20).filter(|more| *more > 0) {
                    writeln!(out, "  and {more} more")?;
                }
            }
        }
        Ok(if matches!(self, Found::Valid(_)) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// What a receipt says, in a line.
fn sentence(statement: &Statement) -> String {
    let receipt = &statement.predicate;
    let class = receipt.verdict.failure_class.map(|class| format!(" {class:?}")).unwrap_or_default();
    let status = format!("{:?}", receipt.verdict.status).to_lowercase();
    let policy = receipt.policy_id.as_deref().unwrap_or("none");
    let (id, at) = (harmless(&receipt.request_id), harmless(&receipt.completed_at));
    format!("{status}{class}, request {id}, policy {}, {at}", harmless(policy))
}

fn show(file: &Path) -> anyhow::Result<ExitCode> {
    let bytes = read(file, MAX_FILE)?;
    match unverified_statement(&bytes) {
        Ok(statement) => {
            writeln!(std::io::stderr(), "hotcell: not verified: see `hotcell receipt verify`")?;
            writeln!(std::io::stdout(), "{}", ascii_json(&statement)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(flaw) => {
            writeln!(std::io::stdout(), "not valid: {}", harmless(&flaw.to_string()))?;
            Ok(ExitCode::FAILURE)
        }
    }
}
