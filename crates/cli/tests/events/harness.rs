//! A place for one user with the real binary in it, and the events of its runs, read while they are going.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use hotcell_contract::{Alert, Happened, Resource, RunEvent};

#[allow(dead_code, reason = "it serves the other tests too")]
#[path = "../outside/mod.rs"]
mod outside;

pub use outside::ran::Ran;
pub use outside::*;

pub struct Place {
    pub dir: PathBuf,
    user: bool,
}

/// Whoever runs the tests; and, when that is root, a user without groups.
pub fn everybody() -> Vec<Place> {
    if is_root() { vec![Place::new(false), Place::new(true)] } else { vec![Place::new(false)] }
}

pub fn anybody() -> Place {
    Place::new(false)
}

/// Another place of the same user's.
pub fn another(place: &Place) -> Place {
    Place::new(place.user)
}

impl Place {
    fn new(user: bool) -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("hotcell-events-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let place = Place { dir: std::env::temp_dir().join(name), user };
        std::fs::create_dir(&place.dir).expect("a directory can be made");
        set_mode(&place.dir, 0o755);
        // Where the user can reach it.
        let there = place.path("hotcell");
        if std::fs::hard_link(binary(), &there).is_err() {
            copy_program(binary(), &there);
        }
        if user {
            chown(&place.dir, Some(USER), Some(USER)).expect("root may");
        }
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    /// `program`, as the place's user, with a home there and no state but one that is named.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let unset =
            ["XDG_STATE_HOME", "XDG_CACHE_HOME", "HOTCELL_POLICY", "HOTCELL_CACHE", "HOTCELL_STATE_DIR", "NO_COLOR"];
        for name in unset {
            command.env_remove(name);
        }
        command.env("HOME", &self.dir).current_dir(&self.dir).stdin(Stdio::null());
        if self.user {
            command.uid(USER).gid(USER);
        }
        command
    }

    pub fn hotcell(&self, words: &[&str]) -> Command {
        let mut command = self.command(self.path("hotcell"));
        command.args(words);
        command
    }

    #[track_caller]
    pub fn go(&self, words: &[&str]) -> Ran {
        let mut command = self.hotcell(words);
        end(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"))
    }

    /// `hotcell exec --events events WORDS -- PROGRAM`, whose input stays open until it is let go.
    #[track_caller]
    pub fn start(&self, words: &[&str], program: &[&str]) -> Going<'_> {
        let all = [&["exec", "--events", "events"], words, &["--"], program].concat();
        let mut command = self.hotcell(&all);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Going { place: self, child: Some(command.spawn().expect("it starts")) }
    }

    /// The same, to its end.
    #[track_caller]
    pub fn run(&self, words: &[&str], program: &[&str]) -> (Ran, Vec<RunEvent>) {
        let ran = self.start(words, program).end();
        (ran, self.events())
    }

    /// Every whole line so far.
    #[track_caller]
    pub fn events(&self) -> Vec<RunEvent> {
        let text = std::fs::read_to_string(self.path("events")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |at| &text[..at]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A run whose program waits for the end of its input.
pub struct Going<'a> {
    place: &'a Place,
    child: Option<Child>,
}

impl Going<'_> {
    /// Waits for an event while the program is still going.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, is_it: impl Fn(&RunEvent) -> bool) -> RunEvent {
        let mut found = None;
        wait_until(what, || {
            found = self.place.events().into_iter().find(|event| is_it(event));
            let ended = self.child.as_mut().is_none_or(|child| child.try_wait().expect("ours").is_some());
            assert!(found.is_some() || !ended, "it is over, and there was no {what}");
            found.is_some()
        });
        let ended = self.place.events().iter().any(is_last);
        assert!(!ended, "{what} came when it was over");
        found.expect("it was waited for")
    }

    /// Lets the program read the end of its input, and waits for it.
    #[track_caller]
    pub fn end(mut self) -> Ran {
        end(self.child.take().expect("it is ended once"))
    }
}

impl Drop for Going<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[track_caller]
pub fn end(mut child: Child) -> Ran {
    drop(child.stdin.take());
    Ran::of(child)
}

impl Ran {
    #[track_caller]
    pub fn passed(&self) {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
    }
}

pub fn is_last(event: &RunEvent) -> bool {
    matches!(event.happened, Happened::Finished(_) | Happened::Timeout(_) | Happened::Killed(_) | Happened::Denied(_))
}

/// The event's name, as it is written.
pub fn name(event: &RunEvent) -> String {
    let value = serde_json::to_value(event).expect("it was read");
    value["event"].as_str().expect("it has one").to_owned()
}

pub fn alert(event: &RunEvent) -> Option<Alert> {
    match event.happened {
        Happened::Alert(alert) => Some(alert),
        _ => None,
    }
}

pub fn alerts(events: &[RunEvent]) -> Vec<Resource> {
    events.iter().filter_map(|event| Some(alert(event)?.resource)).collect()
}

/// A Python program; `hold(N)` has so many MiB from then on, `stay()` waits for the end of the input.
pub fn python(code: &str) -> Vec<String> {
    let known = "import os, sys, time\n\
        def hold(mib):\n    b = bytearray(mib << 20)\n    b[::4096] = b'x' * len(b[::4096])\n    return b\n\
        def stay(): sys.stdout.flush(); sys.stdin.read()\n";
    ["/usr/bin/python3", "-I", "-c", &format!("{known}{code}")].map(str::to_owned).to_vec()
}

pub fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}
