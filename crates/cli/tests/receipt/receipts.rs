//! Receipts as the binary makes them, and as somebody makes them who has the key and means ill.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::*;

pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub fn base64(bytes: &[u8]) -> String {
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)).collect();
    let value = |six: &[u8]| (0..6).fold(0, |sum, at| sum << 1 | six.get(at).copied().unwrap_or(0));
    let mut text: String = bits.chunks(6).map(|six| char::from(ALPHABET[usize::from(value(six))])).collect();
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

pub fn from_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| ALPHABET.iter().position(|known| *known == byte).expect("standard base64") as u8;
    let digits = text.trim_end_matches('=').bytes().map(value);
    let bits: Vec<u8> = digits.flat_map(|six| (0..6).rev().map(move |at| six >> at & 1)).collect();
    bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit)).collect()
}

/// A place in which a program was run, and the receipt of it.
pub struct Signed {
    pub place: Place,
    pub file: PathBuf,
}

/// `hotcell WORDS --receipt r.json --result result.json`.
#[track_caller]
pub fn sign_in(place: Place, words: &[&str]) -> (Signed, Ran) {
    let (file, result) = (place.path("r.json"), place.path("result.json"));
    let names = [file.to_str().expect("UTF-8"), result.to_str().expect("UTF-8")];
    let ran = place.go(&[&words[..1], &["--receipt", names[0], "--result", names[1]], &words[1..]].concat());
    assert!(file.exists(), "exit {}: {}", ran.code, ran.stderr);
    (Signed { place, file }, ran)
}

#[track_caller]
pub fn sign(words: &[&str]) -> Signed {
    sign_in(Place::new(), words).0
}

/// One that nobody has touched.
pub fn some() -> Signed {
    sign(&["exec", "--quiet", "--", "echo", "hello"])
}

impl Signed {
    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.file).expect("ours")
    }

    pub fn envelope(&self) -> Value {
        serde_json::from_slice(&self.bytes()).expect("JSON")
    }

    /// What was signed.
    pub fn body(&self) -> Vec<u8> {
        from_base64(self.envelope()["payload"].as_str().expect("a text"))
    }

    pub fn statement(&self) -> Value {
        serde_json::from_slice(&self.body()).expect("JSON")
    }

    pub fn result(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.place.path("result.json")).expect("ours")).expect("JSON")
    }

    pub fn public(&self) -> String {
        let text = std::fs::read_to_string(self.place.state().join("keys/receipt.pub")).expect("it is there");
        text.trim().to_owned()
    }

    pub fn key(&self) -> SigningKey {
        let text = std::fs::read_to_string(self.place.state().join("keys/receipt.key")).expect("it is there");
        let byte = |at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("digits");
        SigningKey::from_bytes(&std::array::from_fn(byte))
    }

    /// `hotcell receipt verify` with more words, in JSON; the exit says the same, and the text too.
    #[track_caller]
    pub fn verify(&self, words: &[&str]) -> Value {
        let (file, key) = (self.file.to_str().expect("UTF-8"), self.public());
        let all = [&["receipt", "verify", file, "--key", &key], words].concat();
        // No state, no home: the key is enough.
        let alone = |words: &[&str]| {
            let mut command = Command::new(binary());
            go(command.args(words).env_clear().current_dir("/").stdin(Stdio::null()))
        };
        let ran = alone(&[&all[..], &["--output", "json"]].concat());
        let said = ran.json();
        assert_eq!((ran.code, ran.stderr.as_str()), (i32::from(said["valid"] != true), ""), "{said}");
        let text = alone(&all);
        let first = if said["valid"] == true { "valid: " } else { "not valid: " };
        assert!(text.code == ran.code && text.stdout.starts_with(first), "{} {}", text.stdout, text.stderr);
        said
    }

    #[track_caller]
    pub fn is_valid(&self, words: &[&str]) {
        let said = self.verify(words);
        assert_eq!((&said["valid"], &said["reason"]), (&true.into(), &Value::Null), "{said}");
        assert_eq!(said["statement"], self.statement());
    }

    /// Not valid, for this reason, and nothing of it is shown as if it were.
    #[track_caller]
    pub fn is_refused(&self, reason: &str, what: &str) {
        let said = self.verify(&[]);
        assert_eq!(said["reason"], reason, "{what}: {said}");
        assert_eq!(said["statement"], Value::Null, "{what}");
        assert!(!said["message"].as_str().expect("a sentence").is_empty());
    }

    pub fn put(&self, bytes: impl AsRef<[u8]>) {
        std::fs::write(&self.file, bytes).expect("ours");
    }

    /// Signs any bytes, as only the holder of the key can.
    pub fn forge(&self, body: &[u8]) -> Value {
        let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), body.len());
        let key = self.key();
        let sig = key.sign(&[head.as_bytes(), body].concat());
        json!({
            "payloadType": PAYLOAD_TYPE,
            "payload": base64(body),
            "signatures": [{ "keyid": sha256(key.verifying_key().as_bytes()), "sig": base64(&sig.to_bytes()) }],
        })
    }
}

/// Runs Python, outside of any cell, on files of ours.
#[track_caller]
pub fn python(script: &str, words: &[&str]) -> String {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/receipt/");
    let ran = go(Command::new("python3").arg(format!("{dir}{script}")).args(words).stdin(Stdio::null()));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    ran.stdout
}
