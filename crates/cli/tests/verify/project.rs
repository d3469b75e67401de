//! Sources to verify, and what every result of verifying has to be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::harness::{Cell, Ran, made_once};

pub type Files<'a> = &'a [(&'a str, &'a str)];

/// A directory of sources.
pub struct Project {
    dir: PathBuf,
}

impl Project {
    pub fn new(files: Files<'_>) -> Project {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("hotcell-project-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let project = Project { dir: std::env::temp_dir().join(name) };
        std::fs::create_dir(&project.dir).expect("a temporary directory can be made");
        for (name, text) in files {
            let path = project.file(name);
            std::fs::create_dir_all(path.parent().expect("it is in the project")).expect("our own directory");
            std::fs::write(path, text).expect("our own directory");
        }
        project
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The path as the command line wants it.
    pub fn name(&self, name: &str) -> String {
        self.file(name).to_str().expect("our own name").to_owned()
    }

    /// `hotcell verify` of the directory.
    pub fn verify(&self) -> Cell {
        verify(&self.dir)
    }

    /// Runs it on sources that must stay as they are.
    #[track_caller]
    pub fn run(&self, cell: Cell) -> Ran {
        let before = self.contents();
        let ran = checked(cell);
        assert_eq!(self.contents(), before, "the sources were changed");
        ran
    }

    fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.dir.clone()];
        while let Some(dir) = left.pop() {
            for entry in std::fs::read_dir(dir).expect("it is there").flatten() {
                match entry.file_type().expect("it is there").is_dir() {
                    true => left.push(entry.path()),
                    false => drop(found.insert(entry.path(), std::fs::read(entry.path()).expect("ours"))),
                }
            }
        }
        found
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// `hotcell verify PATH`, with a Python that has nothing but its standard library.
pub fn verify(path: &Path) -> Cell {
    Cell::new("verify").word(path.to_str().expect("our own name")).env("PATH", &path_with(bare_python()))
}

/// Sources that must pass or fail as they are, as a directory.
#[track_caller]
pub fn verified(files: Files<'_>) -> Ran {
    let project = Project::new(files);
    project.run(project.verify())
}

/// Runs it, and checks what is true of every result.
#[track_caller]
pub fn checked(cell: Cell) -> Ran {
    let ran = cell.run();
    is_complete(&ran);
    ran
}

#[track_caller]
pub fn is_complete(ran: &Ran) {
    let outcome = &ran.outcome;
    assert!(outcome.is_object(), "no outcome: {}\n{}", ran.stderr, String::from_utf8_lossy(&ran.stdout));
    let schema: Value = serde_json::from_str(include_str!("../../../contract/schemas/outcome.json")).expect("JSON");
    // Nulls are explicit: every property is there, whether the schema requires it or not.
    for key in schema["properties"].as_object().expect("the schema has properties").keys() {
        assert!(outcome.get(key).is_some(), "no `{key}` in {outcome:#}");
    }
    for key in schema["required"].as_array().expect("the schema requires some") {
        let key = key.as_str().expect("names");
        assert!(!outcome[key].is_null(), "`{key}` is null in {outcome:#}");
    }
    for skipped in list(&outcome["skipped_checks"]) {
        let said = |key: &str| skipped[key].as_str().is_some_and(|text| !text.trim().is_empty());
        assert!(said("check") && said("reason"), "skipped for no reason: {skipped}");
    }
    for phase in list(&outcome["phases"]) {
        assert!(phase["tier"].is_string(), "a check of no tier: {phase}");
        assert_eq!(phase["status"] == "fail", phase["failure_class"].is_string(), "{phase}");
    }
    let passes = outcome["status"] == "pass";
    assert_eq!(passes, outcome["failure_class"].is_null(), "{outcome:#}");
    assert_eq!(passes, ran.code == 0, "exit {} for {outcome:#}", ran.code);
    if passes || ran.class() != "SetupFailure" {
        assert_eq!(passes, outcome["retry_class"].is_null(), "{outcome:#}");
    }
    if passes {
        assert!(list(&outcome["phases"]).iter().all(|phase| phase["status"] == "pass"), "{outcome:#}");
    }
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Passed, up to this tier.
#[track_caller]
pub fn passes(ran: &Ran, tier: &str) {
    ran.passes();
    assert_eq!(ran.outcome["tier"], tier, "{:#}", ran.outcome);
    assert_eq!(ran.terminal(), "none", "{:#}", ran.outcome);
}

/// Failed with this class, having passed up to this tier.
#[track_caller]
pub fn fails(ran: &Ran, class: &str, tier: &str, retry: &str) {
    let outcome = &ran.outcome;
    assert_eq!(ran.class(), class, "{}\n{outcome:#}", ran.stderr);
    assert_eq!(outcome["status"], "fail", "{outcome:#}");
    assert_eq!(outcome["tier"], tier, "{outcome:#}");
    assert_eq!(outcome["retry_class"], retry, "{outcome:#}");
}

/// A check that was carried out.
#[track_caller]
pub fn phase<'a>(ran: &'a Ran, name: &str) -> &'a Value {
    let found: Vec<&Value> = list(&ran.outcome["phases"]).iter().filter(|phase| phase["name"] == name).collect();
    assert_eq!(found.len(), 1, "`{name}` in {:#}\n{:#}", ran.outcome["phases"], ran.outcome["skipped_checks"]);
    found[0]
}

/// Why a check was not carried out.
#[track_caller]
pub fn reason<'a>(ran: &'a Ran, name: &str) -> &'a str {
    let found: Vec<&Value> = list(&ran.outcome["skipped_checks"]).iter().filter(|s| s["check"] == name).collect();
    assert_eq!(found.len(), 1, "`{name}` among those skipped: {:#}", ran.outcome["skipped_checks"]);
    found[0]["reason"].as_str().expect("a reason")
}

/// Exactly these tests, by this check.
#[track_caller]
pub fn tests(ran: &Ran, check: &str, passed: u64, failed: u64, skipped: u64, failing: &[&str]) {
    let want = serde_json::json!({ "passed": passed, "failed": failed, "skipped": skipped, "failing": failing });
    let phase = phase(ran, check);
    assert_eq!(phase["tests"], want, "{phase:#}");
    assert_eq!(phase["tier"], "L1");
}

pub fn path_with(bin: &Path) -> String {
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default())
}

/// A virtual environment with nothing in it, so that it is unittest that runs the tests.
pub fn bare_python() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| made_once::python("python-bare", &["--without-pip"], &[]).expect("python3 has venv"))
}

/// One with pytest, ruff and mypy, or why there is none.
pub fn python_with_tools() -> Result<&'static Path, &'static str> {
    static MADE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = MADE.get_or_init(|| made_once::python("python-tools", &[], &["pytest", "ruff", "mypy"]));
    made.as_deref().map_err(String::as_str)
}
