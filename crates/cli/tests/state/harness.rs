//! A place with a home and a state of its own, the real binary run in it, and a look from outside at what is left.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

#[allow(dead_code, reason = "it serves the other tests too")]
#[path = "../outside/mod.rs"]
mod outside;

pub use outside::ran::Ran;
pub use outside::*;

pub struct Place {
    pub dir: PathBuf,
}

/// A run that goes on, and has said that it does.
pub struct Going {
    pub child: Child,
}

impl Place {
    pub fn new() -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("hotcell-state-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let place = Place { dir: std::env::temp_dir().join(name) };
        for dir in ["home", "work"] {
            std::fs::create_dir_all(place.dir.join(dir)).expect("a directory can be made");
        }
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::write(&path, bytes).expect("our own directory");
        path
    }

    /// `program` with the environment of the place, its state named by the environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "HOTCELL_POLICY", "HOTCELL_CACHE", "HOTCELL_LANGUAGES", "USER"]
        {
            command.env_remove(name);
        }
        command.current_dir(self.path("work")).env("HOME", self.path("home"));
        command.env("HOTCELL_STATE_DIR", self.state()).stdin(Stdio::null());
        command
    }

    pub fn hotcell(&self, words: &[&str]) -> Command {
        let mut command = self.command(binary());
        command.args(words);
        command
    }

    /// `hotcell WORDS`, to its end.
    #[track_caller]
    pub fn go(&self, words: &[&str]) -> Ran {
        go(&mut self.hotcell(words))
    }

    /// `hotcell exec WORDS --output json -- PROGRAM`: the Outcome.
    #[track_caller]
    pub fn exec(&self, words: &[&str], program: &[&str]) -> Value {
        self.go(&[&["exec", "--output", "json"], words, &["--"], program].concat()).json()
    }

    /// `hotcell run --output json WORDS --code SOURCE`: the Outcome.
    #[track_caller]
    pub fn run(&self, words: &[&str], source: &str) -> Value {
        self.go(&[&["run", "--output", "json"], words, &["--code", source]].concat()).json()
    }

    /// A run that passes.
    #[track_caller]
    pub fn pass(&self, words: &[&str]) {
        let ran = self.go(&[&["exec", "--quiet"], words, &["--", "true"]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    }

    /// Defines a policy: these lines, and what every policy must have.
    #[track_caller]
    pub fn define(&self, id: &str, lines: &str) {
        let file = self.write(&format!("{id}.toml"), policy(id, lines));
        let ran = self.go(&["policy", "define", file.to_str().expect("UTF-8")]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{lines}");
    }

    /// The records, newest first.
    #[track_caller]
    pub fn records(&self, words: &[&str]) -> Vec<Value> {
        let all = self.go(&[&["records", "--output", "json"], words].concat()).json();
        all["records"].as_array().expect("a list").clone()
    }

    #[track_caller]
    pub fn newest(&self) -> Value {
        self.records(&["--limit", "1"]).pop().expect("there is one")
    }

    /// A run of `program`, which says `ready` and is waited for until it does.
    #[track_caller]
    pub fn start(&self, words: &[&str], program: &[&str]) -> Going {
        self.begin(words, program).unwrap_or_else(|ran| panic!("it never began: {}", ran.stderr))
    }

    /// The same, or how it ended without having said that.
    pub fn begin(&self, words: &[&str], program: &[&str]) -> Result<Going, Ran> {
        let mut command = self.hotcell(&[&["exec"], words, &["--"], program].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("hotcell starts");
        let mut line = String::new();
        BufReader::with_capacity(1, child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a pipe");
        if line != "ready\n" {
            let _ = child.kill();
            return Err(Going { child }.end());
        }
        Ok(Going { child })
    }

    /// `audit verify`: whether all is well, and what is not, as `file:line`.
    #[track_caller]
    pub fn verify(&self) -> (bool, Vec<String>) {
        let ran = self.go(&["audit", "verify", "--output", "json"]);
        let found = ran.json();
        let flaws = found["flaws"].as_array().expect("a list");
        let at = |flaw: &Value| format!("{}:{}", flaw["file"].as_str().expect("a name"), flaw["line"]);
        let whole = found["ok"] == true;
        assert_eq!((whole, ran.code), (flaws.is_empty(), i32::from(!whole)), "{found}");
        // The text says the same.
        let text = self.go(&["audit", "verify"]);
        assert_eq!(text.code, ran.code, "{}", text.stderr);
        for flaw in flaws.iter().take(20) {
            let line = format!("{}: {}", at(flaw), flaw["what"].as_str().expect("a text"));
            assert!(text.stdout.lines().any(|said| said == line), "{line} is not in {}", text.stdout);
        }
        (whole, flaws.iter().map(at).collect())
    }

    #[track_caller]
    pub fn is_whole(&self) {
        let (whole, flaws) = self.verify();
        assert!(whole, "{flaws:?}");
    }

    /// Nothing runs, and one sentence with these parts says why.
    #[track_caller]
    pub fn runs_nothing(&self, parts: &[&str]) {
        self.go(&["exec", "--", "echo", "it ran"]).refused(parts);
    }

    /// The files of the log, oldest first.
    pub fn logs(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.state().join("audit")).expect("it is there").flatten().map(|e| e.path());
        let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
        files.sort();
        files
    }

    /// Everything below the place, with its content.
    pub fn contents(&self, below: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = vec![];
        walk(&self.path(below), &mut |path| found.push((path.to_owned(), std::fs::read(path).unwrap_or_default())));
        found.sort();
        found
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Lines after what every policy must have.
pub fn policy(id: &str, lines: &str) -> String {
    format!("policy_id = \"{id}\"\nname = \"A test\"\nnetwork_policy = \"none\"\n{lines}\n")
}

#[track_caller]
pub fn go(command: &mut Command) -> Ran {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    Going { child }.end()
}

impl Going {
    /// Lets the program read the end of its input.
    pub fn let_go(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Its end, by itself.
    #[track_caller]
    pub fn end(self) -> Ran {
        Ran::of(self.child)
    }
}

/// Where this host has a runtime of that name, among the places where runtimes are looked for.
pub fn places_of(runtime: &str) -> Vec<PathBuf> {
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .map(|dir| PathBuf::from(dir).join(runtime))
        .filter(|path| path.is_file())
        .collect()
}

pub fn has(runtime: &str) -> bool {
    !places_of(runtime).is_empty()
}

/// Says why a test, or a part of one, was not run.
pub fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// A number of seconds, as a word that no other process has among its own.
pub fn unique_sleep() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("3600.{:07}{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Processes, but hotcell's own, that have this word among theirs.
pub fn processes_with(word: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").expect("proc is mounted").flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            let first = words.next().unwrap_or_default();
            first.ends_with(b"sleep") && words.any(|given| given == word.as_bytes())
        })
        .collect()
}
