//! A place with a state of its own, and a service in it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

#[allow(dead_code, reason = "it serves the other tests too")]
#[path = "../outside/mod.rs"]
mod outside;

pub use outside::ran::Ran;
pub use outside::*;

use crate::client::{Answer, Connection, request};

pub struct Place {
    pub dir: PathBuf,
    pub mark: String,
}

pub struct Service<'a> {
    pub place: &'a Place,
    pub child: Mutex<Child>,
    pub address: String,
    /// What it said when it began.
    pub said: Vec<String>,
    pub key: Option<String>,
}

impl Place {
    pub fn new() -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("hotcell-serve-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let place = Place { dir: std::env::temp_dir().join(&name), mark: name };
        std::fs::create_dir_all(place.dir.join("home")).expect("a directory can be made");
        place
    }

    pub fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    pub fn hotcell(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary());
        for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "HOTCELL_POLICY", "HOTCELL_CACHE", "HOTCELL_LANGUAGES", "USER"]
        {
            command.env_remove(name);
        }
        command.args(words).env("HOME", self.dir.join("home")).env("HOTCELL_STATE_DIR", self.state());
        command.env("HOTCELL_TEST_MARK", &self.mark).stdin(Stdio::null());
        command
    }

    /// To its end.
    #[track_caller]
    pub fn go(&self, words: &[&str]) -> Ran {
        let mut command = self.hotcell(words);
        Ran::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"))
    }

    /// A new key: its token.
    #[track_caller]
    pub fn key(&self, words: &[&str]) -> String {
        let ran = self.go(&[&["keys", "create"], words].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        ran.stdout.trim().to_owned()
    }

    /// Defines one with the host's network.
    #[track_caller]
    pub fn define_open(&self, id: &str) {
        let file = self.dir.join(format!("{id}.toml"));
        let text = format!(
            "policy_id = \"{id}\"\nname = \"A test\"\nnetwork_policy = \"full\"\nallow_network = true\nallow_file_write = true\n"
        );
        std::fs::write(&file, text).expect("our own directory");
        assert_eq!(self.go(&["policy", "define", file.to_str().expect("UTF-8")]).code, 0);
    }

    /// Defines a policy: these lines, and what every policy must have.
    #[track_caller]
    pub fn define(&self, id: &str, lines: &str) {
        let file = self.dir.join(format!("{id}.toml"));
        let text = format!(
            "policy_id = \"{id}\"\nname = \"A test\"\nnetwork_policy = \"none\"\nallow_file_write = true\n{lines}\n"
        );
        std::fs::write(&file, text).expect("our own directory");
        let ran = self.go(&["policy", "define", file.to_str().expect("UTF-8")]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{lines}");
    }

    #[track_caller]
    pub fn serve(&self, words: &[&str]) -> Service<'_> {
        self.serve_with(words, &[])
    }

    /// With these in its environment.
    #[track_caller]
    pub fn serve_with(&self, words: &[&str], variables: &[(&str, &str)]) -> Service<'_> {
        let mut command = self.hotcell(&[&["serve", "--listen", "127.0.0.1:0"], words].concat());
        command.envs(variables.iter().copied());
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.dir.join("log")).expect("our own");
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let said: Vec<String> = lines.by_ref().take(3).map_while(Result::ok).collect();
        let address = said.first().and_then(|line| line.strip_prefix("listening on http://")?.split(',').next());
        let Some(address) = address.map(str::to_owned) else {
            let _ = child.kill();
            panic!("it does not listen: {said:?} {}", self.log());
        };
        Service { place: self, child: Mutex::new(child), address, said, key: None }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    #[track_caller]
    pub fn records(&self, words: &[&str]) -> Vec<Value> {
        let all = self.go(&[&["records", "--output", "json"], words].concat()).json();
        all["records"].as_array().expect("a list").clone()
    }

    #[track_caller]
    pub fn is_whole(&self) {
        let ran = self.go(&["audit", "verify"]);
        assert_eq!(ran.code, 0, "{}", ran.stdout);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Service<'_> {
    /// The same, for whoever has this key.
    pub fn connect(&self) -> Connection {
        Connection::open(&self.address)
    }

    #[track_caller]
    pub fn raw(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let mut connection = self.connect();
        connection.send(bytes);
        connection.answer()
    }

    /// With the key of this one, and JSON.
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
        let key = self.key.as_ref().map(|key| format!("Authorization: Bearer {key}"));
        let mut all = vec!["Content-Type: application/json"];
        all.extend(key.as_deref());
        all.extend(headers);
        self.raw(request(method, path, &all, body))
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], body.to_string().as_bytes())
    }

    /// A run that is waited for: the answer's outcome.
    #[track_caller]
    pub fn run(&self, body: &Value) -> Value {
        let answer = self.post("/v1/runs", body);
        assert_eq!(answer.status, 200, "{} {}", answer.text(), self.place.log());
        answer.json()["outcome"].clone()
    }

    /// One that is not: its id.
    #[track_caller]
    pub fn start(&self, body: &Value) -> String {
        let answer = self.post("/v1/runs?wait=false", body);
        assert_eq!(answer.status, 202, "{}", answer.text());
        let id = answer.json()["id"].as_str().expect("an id").to_owned();
        assert_eq!(answer.headers["location"], format!("/v1/runs/{id}"));
        id
    }

    /// A run that sleeps, once it does.
    #[track_caller]
    pub fn sleeper(&self) -> String {
        let id = self
            .start(&json!({ "command": ["sleep", "3000"], "environment": { "HOTCELL_TEST_MARK": self.place.mark } }));
        self.until(&id, "running");
        id
    }

    /// Waits until a run is in this state.
    #[track_caller]
    pub fn until(&self, id: &str, status: &str) -> Value {
        let mut last = Value::Null;
        wait_until(&format!("{status} of {id}"), || {
            last = self.get(&format!("/v1/runs/{id}")).json();
            last["status"] == status
        });
        last
    }

    /// Waits for its end.
    #[track_caller]
    pub fn ended(&self, id: &str) -> Value {
        let mut last = Value::Null;
        wait_until(&format!("the end of {id}"), || {
            last = self.get(&format!("/v1/runs/{id}")).json();
            !last["completed_at"].is_null()
        });
        last
    }

    pub fn pid(&self) -> u32 {
        self.child.lock().expect("ours").id()
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// Its end: the exit status.
    #[track_caller]
    pub fn wait(&self) -> Option<i32> {
        let mut child = self.child.lock().expect("ours");
        end_of(&mut child).expect("it ends").code()
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        let child = self.child.get_mut().expect("ours");
        let _ = child.kill();
        let _ = child.wait();
        if std::thread::panicking() {
            eprintln!("{}", self.place.log());
        }
    }
}

pub fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}
