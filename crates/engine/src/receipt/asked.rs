//! What was asked, as one hash: sha256 of a description in canonical JSON (RFC 8785). `docs/operating.md` has the
//! description field by field, so that whoever asked can work it out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::base64;
use crate::backend::Container;
use crate::build::tree_hash;
use crate::keys::hex;
use crate::request::{Program, Request, Source};
use crate::verify::Asked;
use hotcell_languages::Language;

/// The hash of a request, and of the checks where it is a verification. The input directory is read now.
pub fn request_hash(request: &Request, verify: Option<&Asked<'_>>) -> serde_json::Result<String> {
    // Canonical JSON has no integers beyond 2^53: limits are far below, and all else is text.
    let mut description = json!({
        "mode": request.mode,
        "program": program(&request.program),
        "input": request.input.as_ref().map(|dir| match tree_hash(dir) {
            Some(hash) => json!({ "tree": hex(&hash) }),
            // More than can be looked at: its name alone is vouched for, and it shows.
            None => json!({ "path": word(dir) }),
        }),
        "environment": request.env.iter().map(|(name, value)| {
            json!({ "name": word(name), "value_sha256": sha256(value.as_bytes()) })
        }).collect::<Vec<_>>(),
        "limits": request.limits,
        "compile_limits": request.compile,
        "network_policy": request.network,
        "allowed_hosts": request.allowed_hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "on_violation": request.on_violation,
        "require": request.require,
        "collect": request.collect,
        "lease_id": request.granted.lease_id,
        "capsule": request.capsule.as_ref().map(|capsule| {
            json!({ "state_sha256": capsule.state.as_deref().map(sha256) })
        }),
        "verify": verify.map(|asked| json!({
            "budget_ms": asked.budget.as_millis().min(1 << 53) as u64,
            "repeat": asked.repeat,
            "generated_tests": asked.generated_tests,
            "l2": asked.l2,
        })),
    });
    if !request.metadata.is_empty() {
        description["metadata"] = json!(request.metadata);
    }
    if let Some(container) = &request.container {
        description["container"] = self::container(container);
    }
    canonical_hash(&description)
}

fn container(container: &Container) -> Value {
    match container {
        Container::Oci { runtime, image } => {
            let image = image.as_ref().map(|image| match image.digest.is_empty() {
                true => json!({ "path": word(&image.root) }),
                false => json!({ "digest": image.digest }),
            });
            json!({ "runtime": word(&runtime.path), "image": image })
        }
        Container::Engine(docker) => {
            let image = docker.image.as_ref().map(|image| json!({ "digest": image.digest }));
            json!({ "engine": word(docker.socket()), "image": image })
        }
    }
}

fn program(program: &Program) -> Value {
    let words = |words: &[_]| words.iter().map(word).collect::<Vec<_>>();
    match program {
        Program::Command(argv) => json!({ "command": words(argv) }),
        Program::Source { language, source, args } => match source {
            // What a word such as `python` does is in its file: one of the caller's own is part of what was asked.
            _ if language.own_text.is_some() => {
                let own = sha256(language.own_text.as_deref().unwrap_or_default().as_bytes());
                let bare = Language { own_text: None, ..language.as_ref().clone() };
                let plain = Program::Source { language: Box::new(bare), source: source.clone(), args: args.clone() };
                let mut described = self::program(&plain);
                described["language_file_sha256"] = own.into();
                described
            }
            Source::Given { files } => {
                let file = |(name, bytes): &(String, Vec<u8>)| json!({ "name": name, "sha256": sha256(bytes) });
                let files: Vec<Value> = files.iter().map(file).collect();
                json!({ "language": language.name, "files": files, "args": words(args) })
            }
            Source::InInput { entry } => {
                json!({ "language": language.name, "entry": entry.as_ref().map(word), "args": words(args) })
            }
        },
    }
}

/// Text as it is; other bytes in base64, and called so.
fn word(word: impl AsRef<OsStr>) -> Value {
    match word.as_ref().to_str() {
        Some(text) => text.into(),
        None => json!({ "base64": base64::encode(word.as_ref().as_bytes()) }),
    }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn canonical_hash(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json_canonicalizer::to_vec(value).map(|bytes| sha256(&bytes))
}
