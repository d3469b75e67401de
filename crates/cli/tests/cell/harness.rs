//! Runs the real binary on real programs, with a deadline, and looks from outside at what is left.
//!
//! `HOTCELL_TEST_AS=user` runs every cell as an ordinary user, though the tests themselves are root's.
//! `HOTCELL_BIN` and `HOTCELL_HOSTILE` name the two binaries where there is no source tree (in a VM).

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

#[path = "directories.rs"]
mod directories;
#[allow(dead_code, reason = "it serves the other tests too")]
#[path = "../outside/mod.rs"]
mod outside;
#[path = "ran.rs"]
mod ran;

pub use directories::*;
pub use outside::*;
pub use ran::Ran;

/// The hostile programs, one static binary, made from `tests/hostile` when it is not there or older.
pub fn hostile() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(path) = std::env::var_os("HOTCELL_HOSTILE") {
            return path.into();
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let status = Command::new("make").args(["-s", "-C"]).arg(&root).arg("target/hostile/hostile").status();
        assert!(status.expect("make is installed").success(), "tests/hostile does not build");
        root.join("target/hostile/hostile").canonicalize().expect("make has made it")
    })
}

/// How many times to do what is done often: less where the processor is emulated.
pub fn on_a_slow_host(times: usize, fewer: usize) -> usize {
    let slow = std::env::var("HOTCELL_TEST_HOST").is_ok_and(|host| host.starts_with("vm"));
    if slow { fewer } else { times }
}

/// A run of this to its timeout, with one before which it has said that it is ready.
pub fn ready_before_its_timeout(cell: impl Fn() -> Cell) -> Ran {
    let first = Duration::from_millis(on_a_slow_host(500, 8000) as u64);
    with_time_enough(
        first,
        |limit| cell().flag("--timeout", in_ms(limit)).run(),
        |ran| ran.out().starts_with("ready\n"),
    )
}

/// Who makes the cells in this run of the tests, where it is not hotcell itself: an OCI runtime, or `docker`.
pub fn backend() -> Option<String> {
    std::env::var("HOTCELL_TEST_RUNTIME").ok().filter(|name| !name.is_empty())
}

/// Cells run as an ordinary user in this run of the tests.
pub fn as_user() -> bool {
    std::env::var_os("HOTCELL_TEST_AS").is_some_and(|who| who == "user") || !is_root()
}

/// One run to be.
pub struct Cell {
    command: Command,
    words: Vec<OsString>,
    program: Vec<OsString>,
    stdin: Vec<u8>,
    holds_stdin: bool,
    /// Redirections of a shell, for fds that hotcell is started with.
    inherits: Option<String>,
    json: bool,
    mark: String,
    dir: TempDir,
}

/// A run that is going.
pub struct Going {
    pub child: Child,
    /// Kept open until the run is to finish, where that was asked for.
    stdin: Option<ChildStdin>,
    mark: String,
    dir: TempDir,
    mounts: String,
    json: bool,
    reader: std::thread::JoinHandle<(Vec<u8>, Vec<u8>)>,
}

/// `hotcell exec` of one of the hostile programs.
pub fn attack(name: &str) -> Cell {
    let dir = hostile().parent().expect("it is in a directory").to_owned();
    exec(&[]).flag("--input", dir).program(&["/src/hostile", name])
}

pub fn exec(program: &[&str]) -> Cell {
    Cell::new("exec").program(program)
}

/// `hotcell run` with these words.
pub fn run_words(words: &[&str]) -> Cell {
    let mut cell = Cell::new("run");
    cell.words.extend(words.iter().map(OsString::from));
    cell
}

/// `hotcell run` of a Python source.
pub fn python(source: &str) -> Cell {
    let mut cell = Cell::new("run");
    let file = cell.dir.path.join("main.py");
    std::fs::write(&file, source).expect("the test's own directory can be written");
    cell.words.push(file.into());
    cell
}

impl Cell {
    pub fn new(verb: &str) -> Cell {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mark = format!("hotcell-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = TempDir::new(&mark);
        let mut command = Command::new(binary());
        command.current_dir(&dir.path).env("HOTCELL_TEST_MARK", &mark).env("SECRET_OF_THE_HOST", "do-not-tell");
        become_user(&mut command);
        let mut words: Vec<OsString> = vec![verb.into()];
        words.extend(["--env".into(), format!("HOTCELL_TEST_MARK={mark}").into()]);
        match backend() {
            Some(backend) if backend == "docker" => words.extend(["--backend".into(), backend.into()]),
            Some(runtime) => words.extend(["--runtime".into(), runtime.into()]),
            None => {}
        }
        Cell {
            command,
            words,
            program: vec![],
            stdin: vec![],
            holds_stdin: false,
            inherits: None,
            json: true,
            mark,
            dir,
        }
    }

    pub fn program(mut self, words: &[&str]) -> Cell {
        self.program.extend(words.iter().map(OsString::from));
        self
    }

    /// A word of the program's that need not be text.
    pub fn argument(mut self, bytes: &[u8]) -> Cell {
        self.program.push(OsString::from_vec(bytes.to_vec()));
        self
    }

    pub fn flag(mut self, name: &str, value: impl Into<OsString>) -> Cell {
        self.words.extend([name.into(), value.into()]);
        self
    }

    pub fn word(mut self, word: &str) -> Cell {
        self.words.push(word.into());
        self
    }

    pub fn stdin(mut self, bytes: &[u8]) -> Cell {
        self.stdin = bytes.to_vec();
        self
    }

    /// The program's input stays open until `finish`.
    pub fn holding_stdin(mut self) -> Cell {
        self.holds_stdin = true;
        self
    }

    /// Starts hotcell with more fds than three, as a shell would: `7</etc/passwd 9>&1`.
    pub fn inheriting(mut self, redirections: &str) -> Cell {
        self.inherits = Some(redirections.to_owned());
        self
    }

    /// Output as a user sees it, instead of the Outcome.
    pub fn text(mut self) -> Cell {
        self.json = false;
        self
    }

    pub fn env(mut self, key: &str, value: &str) -> Cell {
        self.command.env(key, value);
        self
    }

    /// The test's own directory, which the run starts in and must leave as it is.
    pub fn dir(&self) -> &Path {
        &self.dir.path
    }

    fn add_words(&mut self) {
        if self.json {
            self.words.extend(["--output".into(), "json".into()]);
        }
        if !self.program.is_empty() {
            self.words.push("--".into());
            self.words.append(&mut self.program);
        }
        if let Some(redirections) = &self.inherits {
            self.command = through_shell(&self.command, redirections);
        }
        self.command.args(&self.words);
    }

    /// For a test that holds the streams itself: the command, and who looks after what it leaves.
    pub fn prepare(mut self) -> (Command, Watch) {
        self.add_words();
        let watch = Watch { mark: self.mark, mounts: host_mounts(), dir: self.dir };
        (self.command, watch)
    }

    pub fn start(mut self) -> Going {
        self.add_words();
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mounts = host_mounts();
        let mut child = self.command.spawn().expect("hotcell starts");
        let mut stdin = child.stdin.take().expect("piped");
        let input = std::mem::take(&mut self.stdin);
        let stdin = if self.holds_stdin {
            Some(stdin)
        } else {
            std::thread::spawn(move || drop(stdin.write_all(&input)));
            None
        };
        let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let reader = std::thread::spawn(move || {
            let errors = std::thread::spawn(move || read_all(&mut err));
            (read_all(&mut out), errors.join().expect("the reader does not panic"))
        });
        Going { child, stdin, mark: self.mark, dir: self.dir, mounts, json: self.json, reader }
    }

    /// Runs it to its end and checks that nothing is left.
    pub fn run(self) -> Ran {
        self.start().finish()
    }
}

/// What is left of a [`Cell`] whose command the test runs itself.
pub struct Watch {
    mark: String,
    mounts: String,
    dir: TempDir,
}

impl Watch {
    pub fn processes(&self) -> Vec<i32> {
        marked(&self.mark)
    }

    /// The Outcome that `--result result.json` has written.
    pub fn result(&self) -> Value {
        let text = std::fs::read(self.dir.path.join("result.json")).expect("there is a result");
        serde_json::from_slice(&text).expect("the result is JSON")
    }

    /// Waits for the end within the deadline, and returns the exit status as [`Ran`] has it.
    #[track_caller]
    pub fn end_of(&self, child: &mut Child) -> i32 {
        status_of(child, &self.mark)
    }

    #[track_caller]
    pub fn nothing_left(&self) {
        nothing_left(&self.mark, &self.mounts);
        self.dir.assert_untouched();
    }
}

/// Its exit status when it has ended; 1000 and the signal, when a signal ended hotcell itself.
#[track_caller]
fn status_of(child: &mut Child, mark: &str) -> i32 {
    let Some(status) = end_of(child) else {
        let left = marked(mark);
        child.kill().expect("it is our child");
        panic!("hotcell did not end within {DEADLINE:?}; processes {left:?}");
    };
    status.code().unwrap_or_else(|| 1000 + status.signal().unwrap_or(0))
}

pub fn send(pid: u32, signal: &str) {
    use rustix::process::{Pid, Signal, kill_process};
    let signal = match signal {
        "KILL" => Signal::KILL,
        "INT" => Signal::INT,
        "TERM" => Signal::TERM,
        "HUP" => Signal::HUP,
        "QUIT" => Signal::QUIT,
        "STOP" => Signal::STOP,
        "WINCH" => Signal::WINCH,
        other => panic!("{other} is not a signal that tests send"),
    };
    let pid = Pid::from_raw(pid as i32).expect("a process has a number");
    kill_process(pid, signal).expect("it is ours to send");
}

/// Another command that ends in `inner`'s words: in its directory, with its environment, as its user.
pub fn around(mut outer: Command, inner: &Command) -> Command {
    outer.envs(inner.get_envs().filter_map(|(k, v)| Some((k, v?))));
    outer.current_dir(inner.get_current_dir().expect("every cell has one"));
    become_user(&mut outer);
    outer
}

/// The user that cells run as in this run of the tests.
pub fn become_user(command: &mut Command) {
    if as_user() && is_root() {
        command.uid(USER).gid(USER);
    }
}

/// Whether cells have groups of their own here, or rlimits and samples alone.
pub fn has_groups() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let ran = exec(&["true"]).run();
        let degraded = ran.outcome["degraded"].as_array().expect("a list");
        !degraded.iter().any(|layer| layer["layer"] == "memory")
    })
}

/// Says why a test, or a part of one, was not run.
pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// The same command with the same environment, started by a shell that has more fds open.
fn through_shell(command: &Command, redirections: &str) -> Command {
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(format!("exec \"$0\" \"$@\" {redirections}"))
        .arg(command.get_program())
        .current_dir(command.get_current_dir().expect("every cell has one"))
        .envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))));
    become_user(&mut shell);
    shell
}

impl Going {
    /// The processes of this run that are alive: hotcell, its launcher, the cell's.
    pub fn processes(&self) -> Vec<i32> {
        marked(&self.mark)
    }

    pub fn dir(&self) -> &Path {
        &self.dir.path
    }

    /// Waits until a process of the cell calls itself by this name.
    #[track_caller]
    pub fn wait_for_name(&self, name: &str) {
        wait_until(name, || {
            self.processes()
                .iter()
                .any(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|n| n.trim() == name))
        });
    }

    /// To the program's input, where it is held open.
    pub fn say(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().expect("it is held").write_all(bytes).expect("it is read");
    }

    pub fn finish(self) -> Ran {
        self.finish_with(|| {})
    }

    /// With a look at what it has written, before that is gone.
    pub fn finish_with(mut self, look: impl FnOnce()) -> Ran {
        drop(self.stdin.take());
        let code = status_of(&mut self.child, &self.mark);
        look();
        let (stdout, stderr) = self.reader.join().expect("the reader does not panic");
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        nothing_left(&self.mark, &self.mounts);
        self.dir.assert_untouched();
        let outcome = match self.json {
            true => serde_json::from_slice(&stdout).unwrap_or(Value::Null),
            false => Value::Null,
        };
        Ran { code, stdout, stderr, outcome }
    }
}
