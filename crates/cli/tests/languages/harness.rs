//! A place with a home of its own, the real binary run in it, and a look from outside at what is left.
//!
//! `HOTCELL_BIN` names the binary where it is not the one that was just built.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

#[allow(dead_code, reason = "it serves the other tests too")]
#[path = "../outside/mod.rs"]
mod outside;

pub use outside::*;

/// A directory of the test's own: `home` is the home of every run, `work` is where runs start, `tmp` its TMPDIR.
pub struct Place {
    pub dir: PathBuf,
}

/// One run to be.
pub struct Hotcell {
    command: Command,
    args: Vec<OsString>,
    stdin: Vec<u8>,
    json: bool,
    mark: String,
}

/// What came of it.
pub struct Ran {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// Null unless it was asked for.
    pub outcome: Value,
}

impl Place {
    pub fn new() -> Place {
        Place::below(&std::env::temp_dir())
    }

    /// Where no cell has a directory of its own.
    pub fn outside_of_tmp() -> Place {
        Place::below(Path::new("/var/tmp"))
    }

    fn below(dir: &Path) -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("hotcell-languages-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let place = Place { dir: dir.join(name) };
        for dir in ["home", "work", "tmp"] {
            std::fs::create_dir_all(place.dir.join(dir)).expect("a directory can be made");
        }
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a file, and the directories above it.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::create_dir_all(path.parent().expect("it is below the place")).expect("our own directory");
        std::fs::write(&path, bytes).expect("our own directory");
        path
    }

    /// Where the compiled programs of its runs are.
    pub fn cache(&self) -> PathBuf {
        self.path("home/.cache/hotcell/build")
    }

    /// `hotcell VERB WORDS`, in `work`, with a home that has nothing in it.
    pub fn hotcell<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Hotcell {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mark = format!("hotcell-language-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new(binary());
        command.current_dir(self.path("work")).env("HOME", self.path("home")).env("HOTCELL_TEST_MARK", &mark);
        command.env("SECRET_OF_THE_HOST", "do-not-tell").env("TMPDIR", self.path("tmp"));
        // The toolchains of whoever runs the tests, whose home this is not.
        if let Some(home) = std::env::var_os("HOME").filter(|_| std::env::var_os("RUSTUP_HOME").is_none()) {
            command.env("RUSTUP_HOME", Path::new(&home).join(".rustup"));
        }
        for name in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOTCELL_CACHE", "HOTCELL_LANGUAGES", "RUSTUP_TOOLCHAIN"] {
            command.env_remove(name);
        }
        command.args(words);
        Hotcell { command, args: vec![], stdin: vec![], json: false, mark }
    }

    /// `hotcell run WORDS`, with the Outcome.
    pub fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Hotcell {
        let mut run = self.text(words);
        run.json = true;
        run.command.args(["--output", "json"]);
        run
    }

    /// `hotcell run WORDS`, as a user sees it.
    pub fn text<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Hotcell {
        let mut run = self.hotcell(["run"]);
        run.command.arg("--env").arg(format!("HOTCELL_TEST_MARK={}", run.mark)).args(words);
        run
    }

    /// Every file of the place, relative, but what lies below `but`.
    pub fn files(&self, but: &[&str]) -> Vec<String> {
        let mut found = vec![];
        walk(&self.dir, &mut |path| {
            let name = path.strip_prefix(&self.dir).expect("it is below").to_string_lossy().into_owned();
            if !but.iter().any(|but| Path::new(&name).starts_with(but)) {
                found.push(name);
            }
        });
        found.sort();
        found
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Hotcell {
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Hotcell {
        self.command.env(key, value);
        self
    }

    pub fn without(mut self, key: &str) -> Hotcell {
        self.command.env_remove(key);
        self
    }

    pub fn cwd(mut self, dir: impl AsRef<Path>) -> Hotcell {
        self.command.current_dir(dir);
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Hotcell {
        self.stdin = bytes.into();
        self
    }

    /// Arguments of the program, behind `--`.
    pub fn args(mut self, args: &[&str]) -> Hotcell {
        self.args.extend(args.iter().map(OsString::from));
        self
    }

    /// As an ordinary user, who is not the one that owns the place.
    pub fn by_user(mut self) -> Hotcell {
        self.command.uid(USER).gid(USER);
        self
    }

    /// Runs it to its end, and looks for what it left: processes, groups, mounts.
    #[track_caller]
    pub fn go(mut self) -> Ran {
        if !self.args.is_empty() {
            self.command.arg("--").args(&self.args);
        }
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mounts = host_mounts();
        let mut child = self.command.spawn().expect("hotcell starts");
        let (mut stdin, input) = (child.stdin.take().expect("piped"), std::mem::take(&mut self.stdin));
        // A program may end without reading it.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let Output { status, stdout, stderr } = output_of(child);
        writer.join().expect("the writer does not panic");
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let code = status.code().unwrap_or_else(|| 1000 + status.signal().unwrap_or(0));
        nothing_left(&self.mark, &mounts);
        assert!(!stderr.contains("panicked"), "{stderr}");
        let outcome = if self.json { serde_json::from_slice(&stdout).unwrap_or(Value::Null) } else { Value::Null };
        Ran { code, stdout, stderr, outcome }
    }
}

impl Ran {
    pub fn class(&self) -> &str {
        self.outcome["failure_class"].as_str().unwrap_or("none")
    }

    /// What the program said: in the Outcome, or by itself.
    pub fn out(&self) -> String {
        match self.outcome["stdout"].as_str() {
            Some(text) => text.to_owned(),
            None => String::from_utf8_lossy(&self.stdout).into_owned(),
        }
    }

    pub fn err(&self) -> &str {
        self.outcome["stderr"].as_str().unwrap_or(&self.stderr)
    }

    /// The names of the phases, in order.
    pub fn phases(&self) -> Vec<&str> {
        self.outcome["phases"].as_array().into_iter().flatten().filter_map(|phase| phase["name"].as_str()).collect()
    }

    /// Whether what ran came from the cache.
    #[track_caller]
    pub fn cached(&self) -> bool {
        assert_eq!(self.outcome["phases"][0]["name"], "compile", "{}", self.brief());
        self.outcome["phases"][0]["cached"].as_bool().expect("it is true or false")
    }

    #[track_caller]
    pub fn passes(self) -> Ran {
        assert_eq!((self.class(), self.code), ("none", 0), "{}", self.brief());
        assert_eq!(self.outcome["status"], "pass", "{}", self.brief());
        assert_eq!(self.outcome["violations"], Value::Array(vec![]), "{}", self.brief());
        self
    }

    /// Passes, having said exactly this.
    #[track_caller]
    pub fn says(self, text: &str) -> Ran {
        let ran = self.passes();
        assert_eq!(ran.out(), text, "{}", ran.brief());
        ran
    }

    #[track_caller]
    pub fn fails(self, class: &str, code: i32) -> Ran {
        assert_eq!((self.class(), self.code), (class, code), "{}", self.brief());
        assert_eq!(self.outcome["status"], "fail", "{}", self.brief());
        self
    }

    /// One sentence of ours on one line, exit 125, and nothing else anywhere.
    #[track_caller]
    pub fn refused(self, parts: &[&str]) -> Ran {
        assert_eq!(self.code, 125, "{}", self.brief());
        assert!(self.stdout.is_empty(), "{}", self.brief());
        let line = self.stderr.strip_suffix('\n').unwrap_or(&self.stderr);
        assert!(line.starts_with("hotcell: error: ") && !line.contains('\n'), "not one sentence: {}", self.stderr);
        for part in parts {
            assert!(line.contains(part), "`{part}` is not in: {line}");
        }
        self
    }

    pub fn brief(&self) -> String {
        let mut outcome = self.outcome.clone();
        if let Some(fields) = outcome.as_object_mut() {
            for long in ["enforced", "degraded", "runtime_config", "timings", "usage", "output"] {
                fields.remove(long);
            }
        }
        format!("exit {} stderr {:?} outcome {outcome:#}", self.code, self.stderr)
    }
}

/// Says why a test, or a part of one, was not run.
pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Names, modes and contents of everything below `dir`: equal only where nothing was changed.
pub fn contents(dir: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut all = vec![];
    walk(dir, &mut |path| {
        let mode = std::fs::symlink_metadata(path).expect("it is there").mode();
        all.push((path.to_owned(), mode, std::fs::read(path).expect("it is ours")));
    });
    all.sort();
    all
}
