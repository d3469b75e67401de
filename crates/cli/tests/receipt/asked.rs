//! The hash of what was asked: anybody who asked can work it out, and it changes with everything that was asked.

use serde_json::{Value, json};

use crate::harness::*;
use crate::receipts::*;

fn request_hash(signed: &Signed) -> Value {
    signed.statement()["predicate"]["request_hash"].clone()
}

/// By another implementation, from a description by hand.
#[track_caller]
fn is_hash_of(signed: &Signed, description: &Value) {
    let file = signed.place.write("asked.json", description.to_string());
    assert_eq!(request_hash(signed), python("canonical.py", &[file.to_str().expect("UTF-8")]), "{description}");
}

fn limits() -> Value {
    json!({ "wall_ms": 45000, "grace_ms": 500, "cpu_ms": null, "cpus": 2, "memory_bytes": 1 << 30, "processes": 256,
        "open_files": 1024, "file_size_bytes": 513 << 20, "scratch_bytes": 512 << 20, "scratch_inodes": 65536,
        "output_bytes": 10 << 20 })
}

fn compile_limits() -> Value {
    json!({ "wall_ms": 120000, "grace_ms": 500, "cpu_ms": null, "cpus": 2, "memory_bytes": 2u64 << 30, "processes": 512,
        "open_files": 4096, "file_size_bytes": 1 << 30, "scratch_bytes": 2u64 << 30, "scratch_inodes": 262144,
        "output_bytes": 10 << 20 })
}

#[test]
fn it_is_what_the_documentation_says() {
    let mut asked = json!({
        "mode": "balanced",
        "program": { "command": ["echo", "ä", { "base64": "/w==" }] },
        "input": null,
        "environment": [{ "name": "K", "value_sha256": sha256(b"V") }],
        "limits": limits(),
        "compile_limits": compile_limits(),
        "network_policy": "none",
        "on_violation": "fail",
        "require": [],
        "collect": [],
        "lease_id": null,
        "allowed_hosts": [],
        "capsule": null,
        "verify": null,
    });
    // A word that is no UTF-8 can't be among those of `sign`.
    let place = Place::new();
    let mut command = place.hotcell(&["exec", "--quiet", "--env", "K=V", "--receipt"]);
    command.arg(place.path("r.json")).args(["--", "echo", "ä"]);
    command.arg(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff"));
    assert_eq!(go(&mut command).code, 0);
    let file = place.path("r.json");
    is_hash_of(&Signed { place, file }, &asked);

    let signed = sign(&["run", "--quiet", "--code", "print(1)", "--timeout", "1.5s", "--cpus", "0.5", "--", "a"]);
    asked["program"] = json!({ "language": "python", "files": [{ "name": "main.py", "sha256": sha256(b"print(1)") }],
        "args": ["a"] });
    asked["environment"] = json!([]);
    (asked["limits"]["wall_ms"], asked["limits"]["cpus"]) = (1500.into(), 0.5.into());
    is_hash_of(&signed, &asked);

    let place = Place::new();
    std::fs::create_dir_all(place.path("dir/sub")).expect("ours");
    place.write("dir/main.py", "print(2)");
    place.write("dir/sub/b", "b");
    let dir = place.path("dir");
    set_mode(&dir.join("main.py"), 0o644);
    set_mode(&dir.join("sub"), 0o755);
    set_mode(&dir.join("sub/b"), 0o600);
    let signed = sign_in(place, &["run", "--quiet", dir.to_str().expect("UTF-8")]).0;
    let frame = |bytes: &[u8]| [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat();
    let entry = |name: &str, mode: u32, content: &[u8]| {
        [frame(name.as_bytes()), frame(&mode.to_le_bytes()), content.to_vec()].concat()
    };
    let below = [entry("b", 0o100600, &frame(b"b")), b"/".to_vec()].concat();
    let tree = [entry("main.py", 0o100644, &frame(b"print(2)")), entry("sub", 0o40755, &below)].concat();
    asked["program"] = json!({ "language": "python", "entry": null, "args": [] });
    asked["input"] = json!({ "tree": sha256(&tree) });
    asked["limits"] = limits();
    is_hash_of(&signed, &asked);
}

#[test]
fn it_changes_with_everything_that_is_asked() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("dir")).expect("ours");
    place.write("dir/data", "one");
    let dir = place.path("dir");
    let dir = dir.to_str().expect("UTF-8");
    let names = [place.path("out"), place.path("r.json")];
    let mut seen: Vec<(Value, String)> = vec![];
    let hash = |words: &[&str]| {
        let _ = std::fs::remove_file(&names[1]);
        let _ = std::fs::remove_dir_all(&names[0]);
        let receipt = ["--quiet", "--receipt", names[1].to_str().expect("UTF-8")];
        let ran = place.go(&[&words[..1], &receipt, &words[1..]].concat());
        let text = std::fs::read(&names[1]).unwrap_or_else(|e| panic!("{words:?}: {e}: {}", ran.stderr));
        let envelope: Value = serde_json::from_slice(&text).expect("JSON");
        let body = from_base64(envelope["payload"].as_str().expect("a text"));
        serde_json::from_slice::<Value>(&body).expect("JSON")["predicate"]["request_hash"].clone()
    };
    let out = names[0].to_str().expect("UTF-8");
    for words in [
        &["exec", "--", "true"][..],
        &["exec", "--", "true", "a"],
        &["exec", "--", "true", "a", "b"],
        &["exec", "--", "true", "a b"],
        &["exec", "--env", "A=1", "--", "true"],
        &["exec", "--env", "A=2", "--", "true"],
        &["exec", "--env", "B=1", "--", "true"],
        &["exec", "--env", "B=1", "--env", "A=1", "--", "true"],
        &["exec", "--input", dir, "--", "true"],
        &["exec", "--timeout", "44s", "--", "true"],
        &["exec", "--memory", "512m", "--", "true"],
        &["exec", "--cpus", "1", "--", "true"],
        &["exec", "--output-limit", "1m", "--", "true"],
        &["exec", "--network", "local", "--", "true"],
        &["exec", "--on-violation", "kill", "--", "true"],
        &["exec", "--artifacts", out, "--collect", "*.txt", "--", "true"],
        &["run", "--code", "print(1)"],
        &["run", "--code", "print(2)"],
        &["run", "--code", "print(1)", "--", "a"],
        &["run", "--code", "print(1)", "--capsule"],
        &["run", "--code", "print(1)", "--lang", "bash"],
        &["run", "--code", "print(1)", "--compile-timeout", "1m"],
    ] {
        let found = hash(words);
        assert_eq!(found, hash(words), "{words:?} is not the same twice");
        if let Some((_, other)) = seen.iter().find(|(known, _)| *known == found) {
            panic!("{words:?} and {other} are the same");
        }
        seen.push((found, format!("{words:?}")));
    }
    // What is in the directory counts, and what it is called does not.
    let with_input = &["exec", "--input", dir, "--", "true"];
    let before = hash(with_input);
    place.write("dir/data", "two");
    assert_ne!(hash(with_input), before);
    place.write("dir/data", "one");
    assert_eq!(hash(with_input), before);
    // Who asks, and under which id, is not what is asked.
    let ids = ["exec", "--tenant", "t", "--request-id", "mine", "--", "true"];
    assert_eq!(hash(&ids), seen[0].0);
}
