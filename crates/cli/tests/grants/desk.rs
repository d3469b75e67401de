//! An operator's desk: keys, leases that were issued there, a repository, and what the log says of all of it.

use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};

use crate::harness::*;

pub struct Desk {
    place: Place,
    next: AtomicU64,
}

impl Deref for Desk {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

/// A command that cannot run without a trace, in words and in the repository.
pub const TRACE: [&str; 3] = ["sh", "-c", "echo it ran; echo it ran > /repo/w/trace"];

impl Desk {
    /// With an issuer's key and a small repository.
    pub fn new() -> Desk {
        let desk = Desk { place: Place::new(), next: AtomicU64::new(0) };
        desk.done(&["lease", "keygen"]);
        for (name, text) in [("a/f", "a file\n"), ("a/b/g", "deeper\n"), ("secret/key", "hidden\n"), ("top", "top\n")] {
            desk.file(name, text);
        }
        std::fs::create_dir_all(desk.repo("w")).expect("ours");
        desk
    }

    pub fn repo(&self, name: &str) -> PathBuf {
        self.path("repo").join(name)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.repo(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("ours");
        std::fs::write(&path, bytes).expect("ours");
        path
    }

    pub fn link(&self, to: &str, name: &str) {
        symlink(to, self.repo(name)).expect("ours");
    }

    /// What goes well, and what it said.
    #[track_caller]
    pub fn done(&self, words: &[&str]) -> String {
        let ran = self.go(words);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words:?}");
        ran.stdout.trim_end().to_owned()
    }

    /// A name for one more file.
    pub fn fresh(&self) -> PathBuf {
        self.path(&format!("file-{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// A key of a role: its file, its kid and its public half.
    #[track_caller]
    pub fn key(&self, role: &str) -> (PathBuf, String, String) {
        let path = self.fresh();
        let words = ["lease", "keygen", "--role", role, "--output", "json", "--out", text(&path)];
        let made: Value = serde_json::from_str(&self.done(&words)).expect("JSON");
        let field = |name: &str| made[name].as_str().expect("a text").to_owned();
        (path, field("kid"), field("public"))
    }

    /// A lease for these commands, with these flags.
    #[track_caller]
    pub fn issue(&self, flags: &[&str], command: &[&str]) -> PathBuf {
        let path = self.fresh();
        let words =
            [&["lease", "issue", "--actor", "a tester", "--out", text(&path)], flags, &["--"], command].concat();
        self.done(&words);
        path
    }

    /// One that lets the trace be left.
    #[track_caller]
    pub fn for_trace(&self, flags: &[&str]) -> PathBuf {
        self.issue(&[&["--allow", "repo://w/**", "--write", "repo://w"], flags].concat(), &TRACE)
    }

    #[track_caller]
    pub fn delegate(&self, lease: &Path, key: &Path, flags: &[&str]) -> PathBuf {
        let path = self.fresh();
        self.done(&[&["lease", "delegate", text(lease), "--key", text(key), "--out", text(&path)], flags].concat());
        path
    }

    /// `hotcell exec` under a lease, on the repository.
    #[track_caller]
    pub fn leased(&self, lease: &Path, flags: &[&str], program: &[&str]) -> Ran {
        let repo = self.path("repo");
        self.go(&[&["exec", "--lease", text(lease), "--repo", text(&repo)], flags, &["--"], program].concat())
    }

    /// The Outcome of such a run.
    #[track_caller]
    pub fn outcome(&self, lease: &Path, flags: &[&str], program: &[&str]) -> Value {
        self.leased(lease, &[&["--output", "json"], flags].concat(), program).json()
    }

    /// A script that passes; what it said.
    #[track_caller]
    pub fn script(&self, flags: &[&str], script: &str) -> String {
        let lease = self.issue(flags, &["sh", "-c", "*"]);
        let ran = self.leased(&lease, &[], &["sh", "-c", script]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{script}");
        ran.stdout
    }

    /// The data of all events of a kind.
    #[track_caller]
    pub fn events(&self, name: &str) -> Vec<Value> {
        let log = self.go(&["audit", "export"]).stdout;
        let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        entries.filter(|entry| entry["event"] == name).map(|entry| entry["data"].clone()).collect()
    }

    /// A refusal of a lease is told, written down as such, and nothing ran.
    #[track_caller]
    pub fn is_denied(&self, ran: &Ran, reason: &str, parts: &[&str]) {
        ran.refused(parts);
        let told = self.events("lease_event.DENIED").pop().expect("it is in the log");
        assert_eq!(told["reason"], reason, "{told}");
        let record = self.newest();
        let got = (&record["status"], &record["failure_class"]);
        assert_eq!(got, (&"denied".into(), &"LeaseViolation".into()), "{record:#}");
        assert!(!self.repo("w/trace").exists(), "it ran");
    }

    /// The files of the repository, with their content.
    pub fn tree(&self) -> Vec<(String, String)> {
        let root = self.path("repo");
        let name = |path: PathBuf| path.strip_prefix(&root).expect("below it").display().to_string();
        let all = self.contents("repo").into_iter();
        all.map(|(path, bytes)| (name(path), String::from_utf8_lossy(&bytes).into_owned())).collect()
    }

    /// The id of the newest run.
    #[track_caller]
    pub fn run_id(&self) -> String {
        self.newest()["record_id"].as_str().expect("a text").to_owned()
    }

    /// Canonical JSON in a file of its own.
    pub fn put(&self, lease: &Value) -> PathBuf {
        let path = self.fresh();
        std::fs::write(&path, [canonical(lease), b"\n".to_vec()].concat()).expect("ours");
        path
    }

    /// The secret half of the issuer that signs here.
    #[track_caller]
    pub fn issuer(&self) -> PathBuf {
        let list: Value = read(&self.state().join("keys/leases.json"));
        let all = list.as_array().expect("a list");
        let key = all.iter().find(|key| key["role"] == "issuer" && key["current"] == true).expect("there is one");
        self.state().join("keys").join(format!("{}.key", key["kid"].as_str().expect("a text")))
    }

    /// What `lease verify` says: null where it is valid, or the reason.
    #[track_caller]
    pub fn reason(&self, lease: &Path) -> Value {
        let ran = self.go(&["lease", "verify", "--output", "json", text(lease)]);
        let said = ran.json();
        assert_eq!((ran.code == 0, ran.stderr.as_str()), (said["valid"] == true, ""), "{said}");
        assert!(said["valid"] == true || (ran.code == 1 && said["message"].is_string()), "{said}");
        said["reason"].clone()
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[track_caller]
pub fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("JSON")
}

pub fn canonical(value: &Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).expect("it is JSON")
}

fn without(lease: &Value, names: &[&str]) -> Vec<u8> {
    let mut lease = lease.clone();
    let fields = lease.as_object_mut().expect("an object");
    fields.retain(|name, _| !names.contains(&name.as_str()));
    canonical(&lease)
}

fn signature(bytes: &[u8], key: &Path) -> Value {
    let key = read(key);
    let secret = unhex(key["secret"].as_str().expect("a text"));
    let signed = SigningKey::from_bytes(&secret.try_into().expect("32 bytes")).sign(bytes);
    json!({ "alg": "Ed25519", "kid": key["kid"], "value": hex(&signed.to_bytes()) })
}

/// Signs whatever is there, as one who has the key could.
pub fn forge(mut lease: Value, key: &Path) -> Value {
    lease["sig"] = signature(&without(&lease, &["sig", "cosigners"]), key);
    lease
}

/// One more signature, over the lease with its own.
pub fn cosignature(lease: &Value, key: &Path) -> Value {
    signature(&without(lease, &["cosigners"]), key)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hex");
    digits.chunks(2).map(byte).collect()
}

/// The moment so many seconds from now, as leases write it.
pub fn moment(seconds: i64) -> String {
    let now = hotcell_engine::parse_time(&hotcell_engine::now()).expect("a moment");
    let start = "1970-01-01T00:00:00Z";
    let since = std::time::Duration::from_millis((now + seconds * 1000) as u64);
    hotcell_engine::after(start, since).expect("in the calendar")
}
