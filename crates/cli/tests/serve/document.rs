//! The OpenAPI document against the service that it describes: by a tester of others that makes requests from it, and by a client
//! that a generator of others makes from it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A program of theirs, installed if this is the first time that it is wanted.
fn tool(name: &str) -> PathBuf {
    let found = Command::new(root().join("tests/clients/python")).arg("openapi").stderr(Stdio::inherit()).output();
    let found = found.expect("it starts");
    assert!(found.status.success(), "the clients cannot be installed");
    Path::new(String::from_utf8_lossy(&found.stdout).trim()).with_file_name(name)
}

/// The operator's place: with a key for everything, and one to sign leases with.
fn operators() -> (Place, String) {
    let place = Place::new();
    let key = place.key(&["--scope", "admin"]);
    assert_eq!(place.go(&["lease", "keygen"]).code, 0);
    (place, key)
}

/// No 5xx, no status, media type or answer that is not in the document, nothing taken that it forbids.
#[track_caller]
fn is_as_documented(service: &Service<'_>, key: &str, words: &[&str]) {
    let mut tester = Command::new(tool("schemathesis"));
    tester.arg("--config-file").arg(root().join("tests/clients/schemathesis.toml"));
    tester.args(["run", &format!("http://{}/openapi.json", service.address), "--header"]);
    tester.arg(format!("Authorization: Bearer {key}")).args(["--request-timeout", "30", "--no-color"]);
    tester.args(words).current_dir(&service.place.dir).env("no_proxy", "*").stdin(Stdio::null());
    let ran = tester.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains(" passed\n"), "{said}");
}

/// `make fuzz-api` sets how long.
fn effort() -> Vec<String> {
    let words = match std::env::var("HOTCELL_FUZZ_SECONDS") {
        Ok(seconds) => format!("--max-time {seconds}"),
        Err(_) => "--seed 1 --max-examples 2".to_owned(),
    };
    words.split(' ').map(str::to_owned).collect()
}

#[test]
fn every_answer_is_in_the_document() {
    let (place, key) = operators();
    let service = place.serve(&["--policy", "fast"]);
    let effort = effort();
    // The kill switch ends what the others are tested by.
    let mut words = vec!["--exclude-path", "/v1/killswitch", "--phases", "coverage,fuzzing", "--workers", "2"];
    words.extend(effort.iter().map(String::as_str));
    is_as_documented(&service, &key, &words);
    assert_eq!(service.get("/healthz").status, 200);
    assert!(!place.log().contains("ERROR"), "{}", place.log());
}

#[test]
fn the_kill_switch_answers_as_documented() {
    let (place, key) = operators();
    let service = place.serve(&[]);
    is_as_documented(&service, &key, &["--include-path", "/v1/killswitch", "--seed", "1", "--max-examples", "5"]);
}

#[test]
fn a_generated_client_works() {
    let (place, key) = operators();
    let service = place.serve(&["--policy", "fast"]);
    let settings = place.dir.join("generator.yaml");
    std::fs::write(&settings, "post_hooks: []\n").expect("our own");
    let mut generator = Command::new(tool("openapi-python-client"));
    generator
        .arg("generate")
        .arg("--path")
        .arg(root().join("crates/server/openapi.json"))
        .arg("--config")
        .arg(settings);
    generator.args(["--meta", "none", "--fail-on-warning", "--output-path"]).arg(place.dir.join("hotcell_client"));
    let made = Ran::of(generator.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"));
    assert_eq!(made.code, 0, "{} {}", made.stdout, made.stderr);
    let mut script = Command::new(tool("python"));
    script.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/generated.py"));
    script.args([&format!("http://{}", service.address), &key]).env("PYTHONPATH", &place.dir).env("no_proxy", "*");
    let ran = Ran::of(script.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "all is as the document says\n"), "{}", ran.stderr);
}
