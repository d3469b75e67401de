//! Every program of `tests/programs` through the real binary: the verdict, the exit, the output and the files that its
//! manifest promises. What is compiled runs a second time, from the cache.
//!
//! `HOTCELL_TEST_AS=user` runs the cells as an ordinary user; a language that this user has no toolchain for is skipped.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde::Deserialize;
use serde_json::Value;

/// An id that owns nothing.
const USER: u32 = 54321;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    program: Vec<Program>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    path: PathBuf,
    entry: Option<String>,
    language: String,
    #[serde(default)]
    args: Vec<String>,
    stdin: Option<String>,
    #[serde(default)]
    flags: Vec<String>,
    class: Option<String>,
    exit: Option<i64>,
    stdout: Option<String>,
    #[serde(default)]
    stdout_has: Vec<String>,
    #[serde(default)]
    stderr_has: Vec<String>,
    #[serde(default)]
    artifacts: Vec<String>,
}

/// A place of its own that the user of the cells can reach.
struct Place {
    dir: PathBuf,
    user: bool,
    next: Mutex<u64>,
}

impl Place {
    fn new() -> Place {
        let root = std::fs::metadata("/proc/self").expect("/proc is mounted").uid() == 0;
        let user = root && std::env::var_os("HOTCELL_TEST_AS").is_some_and(|who| who == "user");
        let dir = std::env::temp_dir().join(format!("hotcell-programs-{}", std::process::id()));
        std::fs::create_dir(&dir).expect("a directory can be made");
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
        let copied = Command::new("cp").arg("-r").arg(programs).arg(dir.join("programs")).status();
        assert!(copied.expect("cp is installed").success());
        std::fs::copy(binary(), dir.join("hotcell")).expect("the binary is there");
        let open = Command::new("chmod").args(["-R", "a+rX"]).arg(&dir).status();
        assert!(open.expect("chmod is installed").success());
        std::fs::create_dir(dir.join("home")).expect("a directory can be made");
        std::fs::set_permissions(dir.join("home"), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        if user {
            std::os::unix::fs::chown(dir.join("home"), Some(USER), Some(USER)).expect("root may");
        }
        Place { dir, user, next: Mutex::new(0) }
    }

    /// As `hotcell words`, with a home of its own, or as the user who has none.
    fn hotcell(&self) -> Command {
        let mut command = Command::new(self.dir.join("hotcell"));
        command.env("XDG_CACHE_HOME", self.dir.join("home"));
        if self.user {
            command.env("HOME", self.dir.join("home")).env("PATH", "/usr/local/bin:/usr/bin:/bin");
            command.uid(USER).gid(USER).current_dir("/");
        }
        command
    }

    fn fresh(&self) -> PathBuf {
        let mut next = self.next.lock().expect("nobody panics with it");
        *next += 1;
        self.dir.join("home").join(format!("artifacts-{next}"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn binary() -> PathBuf {
    std::env::var_os("HOTCELL_BIN").map_or_else(|| env!("CARGO_BIN_EXE_hotcell").into(), PathBuf::from)
}

fn run(place: &Place, program: &Program) -> (Value, BTreeSet<String>) {
    let artifacts = place.fresh();
    let mut command = place.hotcell();
    command.args(["run", "--output", "json", "--lang", &program.language]).args(&program.flags);
    command.arg("--artifacts").arg(&artifacts).arg(place.dir.join("programs").join(&program.path));
    if let Some(entry) = &program.entry {
        command.args(["--entry", entry]);
    }
    command.arg("--").args(&program.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A program may end without reading it.
    let _ = stdin.write_all(program.stdin.as_deref().unwrap_or_default().as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("it can be waited for");
    let outcome = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        panic!("{}: no outcome ({e}): {}", program.path.display(), String::from_utf8_lossy(&output.stderr))
    });
    let left = program.artifacts.iter().filter(|name| artifacts.join(name).is_file()).cloned().collect();
    let _ = std::fs::remove_dir_all(artifacts);
    (outcome, left)
}

fn check(place: &Place, program: &Program) -> Result<(), String> {
    let (outcome, left) = run(place, program);
    let is = |what: &str, got: &Value, want: Value| {
        if *got == want { Ok(()) } else { Err(format!("{what} is {got}, not {want}: {}", brief(&outcome))) }
    };
    is("failure_class", &outcome["failure_class"], program.class.clone().into())?;
    is("status", &outcome["status"], if program.class.is_some() { "fail" } else { "pass" }.into())?;
    if let Some(code) = program.exit.or(program.class.is_none().then_some(0)) {
        is("exit_code", &outcome["exit_code"], code.into())?;
    }
    if let Some(stdout) = &program.stdout {
        is("stdout", &outcome["stdout"], stdout.clone().into())?;
    }
    for (stream, parts) in [("stdout", &program.stdout_has), ("stderr", &program.stderr_has)] {
        for part in parts {
            if !outcome[stream].as_str().unwrap_or_default().contains(part) {
                return Err(format!("{stream} has no `{part}`: {}", brief(&outcome)));
            }
        }
    }
    for artifact in &program.artifacts {
        let listed = outcome["artifacts"].as_array().into_iter().flatten().any(|a| a["path"] == artifact.as_str());
        if !listed || !left.contains(artifact) {
            return Err(format!("`{artifact}` is not among the artifacts: {}", outcome["artifacts"]));
        }
    }
    if outcome["phases"][0]["name"] == "compile" && program.class.is_none() {
        let (again, _) = run(place, program);
        is("cached", &again["phases"][0]["cached"], true.into())?;
        is("stdout from the cache", &again["stdout"], outcome["stdout"].clone())?;
        is("status from the cache", &again["status"], "pass".into())?;
    }
    Ok(())
}

fn brief(outcome: &Value) -> String {
    let cut = |text: &Value| text.as_str().unwrap_or_default().chars().take(600).collect::<String>();
    format!(
        "{} {} violations {} stdout {:?} stderr {:?}",
        outcome["failure_class"],
        outcome["message"],
        outcome["violations"],
        cut(&outcome["stdout"]),
        cut(&outcome["stderr"])
    )
}

#[test]
fn every_program_does_what_is_expected_of_it() {
    let place = Place::new();
    let text = std::fs::read_to_string(place.dir.join("programs/programs.toml")).expect("the manifest is there");
    let manifest: Manifest = toml::from_str(&text).expect("the manifest is right");
    let asked = place.hotcell().args(["languages", "--output", "json"]).output().expect("the binary starts");
    let known: Value = serde_json::from_slice(&asked.stdout).expect("languages are told");
    let available: BTreeSet<&str> = known["languages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|l| l["available"] == true)
        .filter_map(|l| l["name"].as_str())
        .collect();
    let here = |program: &&Program| available.contains(program.language.as_str());
    let (programs, absent): (Vec<&Program>, Vec<&Program>) = manifest.program.iter().partition(here);
    for language in absent.iter().map(|program| program.language.as_str()).collect::<BTreeSet<_>>() {
        assert!(place.user, "{language} is not on this host: make deps installs it");
        eprintln!("skipped: {language}, because an ordinary user has no toolchain for it here");
    }
    let (queue, failed) = (Mutex::new(programs.iter()), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(program) = { queue.lock().expect("nobody panics with it").next() } {
                    if let Err(why) = check(&place, program) {
                        failed
                            .lock()
                            .expect("nobody panics with it")
                            .push(format!("{}: {why}", program.path.display()));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("nobody panics with it");
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), programs.len(), failed.join("\n"));
    assert!(place.user || programs.len() >= 40);
}
