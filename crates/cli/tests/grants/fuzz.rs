//! Leases that were changed at random, from a fixed seed: never accepted, never a panic.

use std::time::{Duration, Instant};

use hotcell_engine::{State, read_lease};

use crate::desk::*;
use crate::tampering::reason;

/// A plain generator: the same numbers every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}

const BITS: [&str; 24] = [
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "-1",
    "0",
    "1e400",
    "NaN",
    "18446744073709551616",
    "**",
    "*",
    "repo://",
    "..",
    "/",
    "\\u0000",
    "\\ud800",
    "\u{202e}",
    "\0",
    "\"parent\":",
    "\"sig\":{",
    "[[",
    "}}",
    ",",
];

fn changed(leases: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = leases[dice.roll(leases.len())].clone();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len());
        let to = (at + dice.roll(40)).min(bytes.len());
        match dice.roll(6) {
            0 => bytes[at] = dice.roll(256) as u8,
            1 => drop(bytes.drain(at..to)),
            2 => drop(bytes.splice(at..to, BITS[dice.roll(BITS.len())].bytes())),
            3 => drop(bytes.splice(at..at, bytes[at..to].to_vec())),
            4 => {
                let other = &leases[dice.roll(leases.len())];
                let from = dice.roll(other.len());
                let piece = other[from..(from + dice.roll(200)).min(other.len())].to_vec();
                drop(bytes.splice(at..to, piece));
            }
            _ => {
                let last = bytes.len() - 1;
                bytes.swap(at, to.min(last));
            }
        }
        if bytes.is_empty() {
            bytes.push(b'{');
        }
    }
    bytes
}

fn leases(desk: &Desk) -> Vec<Vec<u8>> {
    let (key, _, public) = desk.key("holder");
    let agent = desk.key("agent").0;
    let flags = ["--allow", "repo://a/**", "--write", "repo://a", "--env", "X", "--holder", &public, "--runs", "9"];
    let parent = desk.issue(&flags, &["sh", "-c", "*"]);
    let child = desk.delegate(&parent, &key, &["--runs", "3"]);
    let signed = desk.fresh();
    desk.done(&["lease", "cosign", text(&parent), "--key", text(&agent), "--out", text(&signed)]);
    let plain = desk.issue(&[], &["true"]);
    [parent, child, signed, plain].iter().map(|path| std::fs::read(path).expect("ours")).collect()
}

/// What differs from a lease only in the end of its line is that lease.
fn is_new(bytes: &[u8], leases: &[Vec<u8>]) -> bool {
    let bare = |bytes: &[u8]| bytes.strip_suffix(b"\n").unwrap_or(bytes).to_vec();
    leases.iter().all(|lease| bare(lease) != bare(bytes))
}

#[test]
fn nothing_that_was_changed_counts() {
    let desk = Desk::new();
    let leases = leases(&desk);
    let mut state = State::open(&desk.state()).expect("ours");
    for lease in &leases {
        assert_eq!(reason(&mut state, lease), None);
    }
    let (mut dice, until, mut tries) = (Dice(0x5eed), Instant::now() + Duration::from_secs(5), 0);
    while Instant::now() < until || tries < 2000 {
        let bytes = changed(&leases, &mut dice);
        tries += 1;
        let _ = read_lease(&bytes);
        if is_new(&bytes, &leases) {
            let said = reason(&mut state, &bytes);
            // A cosigner may be taken away: it is asked for by policies, not by the lease.
            let stripped = String::from_utf8_lossy(&bytes).contains("\"cosigners\":[]");
            assert!(said.is_some() || stripped, "try {tries}: {}", String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn the_binary_says_the_same() {
    let desk = Desk::new();
    let leases = leases(&desk);
    let (mut dice, path) = (Dice(0xfeed), desk.path("changed"));
    for _ in 0..200 {
        let bytes = changed(&leases, &mut dice);
        if !is_new(&bytes, &leases) {
            continue;
        }
        std::fs::write(&path, &bytes).expect("ours");
        let ran = desk.go(&["lease", "verify", text(&path)]);
        let line = ran.stdout.trim_end_matches('\n');
        let one = !line.contains(|c: char| c.is_control()) && line.len() < 2000;
        assert!(ran.code == 1 && ran.stderr.is_empty() && one, "{} {line:?} {}", ran.code, ran.stderr);
    }
    // A run is refused as well, and told in one sentence.
    for _ in 0..40 {
        let bytes = changed(&leases, &mut dice);
        if is_new(&bytes, &leases) {
            std::fs::write(&path, &bytes).expect("ours");
            desk.leased(&path, &[], &["true"]).refused(&["lease"]);
        }
    }
    desk.is_whole();
}
