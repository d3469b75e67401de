//! A lease that is not, byte for byte, what was signed.

use hotcell_contract::Capabilities;
use hotcell_engine::{State, StateError};
use serde_json::{Value, json};

use crate::desk::*;

/// The verifier of a desk, in this process: it is asked thousands of times.
pub fn reason(state: &mut State, bytes: &[u8]) -> Option<&'static str> {
    match state.verify_lease(bytes, &Capabilities::default(), None) {
        Ok(_) => None,
        Err(StateError::Lease(why)) => Some(why.reason()),
        Err(other) => panic!("{other}"),
    }
}

fn open(desk: &Desk) -> State {
    State::open(&desk.state()).expect("it is ours")
}

/// One with everything in it: a parent, a cosigner, patterns.
fn rich(desk: &Desk) -> std::path::PathBuf {
    let (key, _, public) = desk.key("holder");
    let agent = desk.key("agent").0;
    let flags = ["--allow", "repo://a/**", "--deny", "repo://a/x", "--env", "NAME", "--holder", &public, "--runs", "5"];
    let lease = desk.issue(&flags, &["sh", "-c", "*"]);
    let signed = desk.fresh();
    desk.done(&["lease", "cosign", text(&lease), "--key", text(&agent), "--out", text(&signed)]);
    desk.delegate(&signed, &key, &["--runs", "2"])
}

#[test]
fn every_byte_counts() {
    let desk = Desk::new();
    let path = rich(&desk);
    let bytes = std::fs::read(&path).expect("ours");
    let mut state = open(&desk);
    assert_eq!(reason(&mut state, &bytes), None);
    for at in 0..bytes.len() {
        for flip in [1, 0x20, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            assert!(
                reason(&mut state, &changed).is_some(),
                "byte {at} ^ {flip}: {}",
                String::from_utf8_lossy(&changed)
            );
        }
        let gone = [&bytes[..at], &bytes[at + 1..]].concat();
        // The end of the line is no part of the lease.
        assert_eq!(reason(&mut state, &gone).is_some(), at + 1 < bytes.len(), "without byte {at}");
        let doubled = [&bytes[..=at], &bytes[at..]].concat();
        assert!(reason(&mut state, &doubled).is_some(), "byte {at} twice");
    }
}

#[test]
fn every_length_counts() {
    let desk = Desk::new();
    let path = rich(&desk);
    let bytes = std::fs::read(&path).expect("ours");
    let mut state = open(&desk);
    for length in 0..bytes.len() - 1 {
        assert_eq!(reason(&mut state, &bytes[..length]), Some("malformed"), "{length} bytes");
    }
    for more in [" ", "\n", "\0", "{}", "\u{feff}"] {
        assert_eq!(reason(&mut state, &[&bytes, more.as_bytes()].concat()), Some("malformed"), "{more:?} behind it");
        assert_eq!(reason(&mut state, &[more.as_bytes(), &bytes].concat()), Some("malformed"), "{more:?} before it");
    }
}

#[test]
fn there_is_one_way_to_write_it() {
    let desk = Desk::new();
    let lease = desk.issue(&["--cpus", "1"], &["true"]);
    let (text_, value) = (std::fs::read_to_string(&lease).expect("ours"), read(&lease));
    let mut state = open(&desk);
    assert_eq!(reason(&mut state, text_.as_bytes()), None);
    let fields = value.as_object().expect("an object");
    let turned: Vec<String> = fields.iter().rev().map(|(name, value)| format!("{name:?}:{value}")).collect();
    let replaced = |from: &str, to: &str| {
        assert!(text_.contains(from), "{from}");
        text_.replacen(from, to, 1)
    };
    for other in [
        serde_json::to_string_pretty(&value).expect("JSON"),
        format!("{{{}}}", turned.join(",")),
        replaced("\"actor\":", "\"actor\": "),
        replaced("{", "{ "),
        replaced("a tester", "\\u0061 tester"),
        replaced("a tester", "a t\\u0065ster"),
        replaced("\"cpu_quota\":1,", "\"cpu_quota\":1.0,"),
        replaced("\"cpu_quota\":1,", "\"cpu_quota\":1e0,"),
        replaced("\"cpu_quota\":1,", "\"cpu_quota\":10e-1,"),
        replaced("\"max_runs\":1,", "\"max_runs\":1,\"max_runs\":1,"),
        replaced("{", "{\"actor\":\"a tester\","),
        replaced("{", "{\"unknown\":1,"),
        replaced("\"parent\":null,", ""),
        replaced("\"intent_id\":null,", ""),
    ] {
        assert_eq!(reason(&mut state, other.as_bytes()), Some("malformed"), "{other}");
    }
}

#[test]
fn another_algorithm_or_key() {
    let desk = Desk::new();
    let (one, two) = (read(&desk.issue(&[], &["true"])), read(&desk.issue(&[], &["true"])));
    let human = desk.key("human");
    let mut state = open(&desk);
    let mut told = |lease: &Value| reason(&mut state, &canonical(lease));
    assert_eq!((told(&one), told(&two)), (None, None));
    for alg in ["none", "None", "", "HS256", "ed25519", "Ed25519 ", "EdDSA", "Ed25519ph"] {
        let mut lease = one.clone();
        lease["sig"]["alg"] = alg.into();
        assert_eq!(told(&lease), Some("bad_signature"), "{alg}");
    }
    let edit = |field: &str, value: Value| {
        let mut lease = one.clone();
        lease["sig"][field] = value;
        lease
    };
    assert_eq!(told(&edit("value", two["sig"]["value"].clone())), Some("bad_signature"));
    assert_eq!(told(&edit("kid", human.1.clone().into())), Some("bad_signature"));
    assert_eq!(told(&edit("kid", "0000000000000000".into())), Some("unknown_key"));
    assert_eq!(told(&edit("kid", "".into())), Some("unknown_key"));
    for value in ["", "00", &"0".repeat(128), &"f".repeat(128), &"z".repeat(128), &"é".repeat(64)] {
        assert_eq!(told(&edit("value", value.into())), Some("bad_signature"), "{value}");
    }
    let upper = one["sig"]["value"].as_str().expect("a text").to_uppercase();
    assert_eq!(told(&edit("value", upper.into())), Some("bad_signature"));
}

/// The order of the group, in little endian.
const ORDER: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";

#[test]
fn a_signature_has_one_form() {
    let desk = Desk::new();
    let mut lease = read(&desk.issue(&[], &["true"]));
    let mut bytes = unhex(lease["sig"]["value"].as_str().expect("a text"));
    let mut carry = 0;
    for (digit, order) in bytes[32..].iter_mut().zip(unhex(ORDER)) {
        let sum = u16::from(*digit) + u16::from(order) + carry;
        (*digit, carry) = (sum as u8, sum >> 8);
    }
    assert_eq!(carry, 0);
    lease["sig"]["value"] = hex(&bytes).into();
    assert_eq!(desk.reason(&desk.put(&lease)), "bad_signature");
}

#[test]
fn cosigners_that_are_none() {
    let desk = Desk::new();
    let lease = read(&desk.issue(&[], &["true"]));
    let other = Desk::new();
    let (agent, stranger) = (desk.key("agent").0, other.key("agent").0);
    let mut state = open(&desk);
    let mut told = |cosigners: Value| {
        let mut lease = lease.clone();
        lease["cosigners"] = cosigners;
        reason(&mut state, &canonical(&lease))
    };
    let good = cosignature(&lease, &agent);
    assert_eq!(told(json!([good])), None);
    assert_eq!(told(json!([cosignature(&lease, &stranger)])), Some("unknown_key"));
    let mut other = lease.clone();
    other["lease_id"] = "another".into();
    assert_eq!(told(json!([cosignature(&other, &agent)])), Some("bad_signature"));
    assert_eq!(told(json!([good, lease["sig"]])), Some("bad_signature"));
    assert_eq!(told(json!("none")), Some("malformed"));
    // Its own signature is no cosignature of another lease.
    let mut swapped = lease.clone();
    (swapped["sig"], swapped["cosigners"]) = (good.clone(), json!([lease["sig"]]));
    assert_eq!(reason(&mut open(&desk), &canonical(&swapped)), Some("unknown_key"));
}

#[test]
fn dates_are_written_in_one_way() {
    let desk = Desk::new();
    let (lease, issuer) = (read(&desk.issue(&[], &["true"])), desk.issuer());
    let mut state = open(&desk);
    let good = moment(60);
    let day = &good[..11];
    for (date, expected) in [
        (good.clone(), None),
        (good.to_lowercase(), Some("malformed")),
        (good.replace('Z', "+00:00"), Some("malformed")),
        (good.replace('Z', "-00:00"), Some("malformed")),
        (good.replace('Z', "+01:00"), Some("malformed")),
        (good.replace('T', " "), Some("malformed")),
        (good.replace('Z', ""), Some("malformed")),
        (good.replace('Z', "Z[UTC]"), Some("malformed")),
        (format!("{day}23:59:60Z"), Some("malformed")),
        (format!("{day}24:00:00Z"), Some("malformed")),
        (format!("{day}23:59:59.0Z"), Some("malformed")),
        ("9999-12-31T23:59:59Z".into(), Some("malformed")),
        ("9999-12-30T00:00:00Z".into(), Some("too_long")),
        ("0000-01-01T00:00:00Z".into(), Some("malformed")),
        ("-000001-01-01T00:00:00Z".into(), Some("malformed")),
        ("+010000-01-01T00:00:00Z".into(), Some("malformed")),
        ("2026-02-30T00:00:00Z".into(), Some("malformed")),
        ("1e9".into(), Some("malformed")),
        (String::new(), Some("malformed")),
        ("9".repeat(100_000), Some("malformed")),
    ] {
        let mut lease = lease.clone();
        lease["expires_at"] = date.clone().into();
        let said = reason(&mut state, &canonical(&forge(lease, &issuer)));
        assert_eq!(said, expected, "{}", &date[..date.len().min(50)]);
    }
    for (date, expected) in [
        ("0000-01-01T00:00:00Z", "too_long"),
        ("-009999-01-02T01:59:59Z", "too_long"),
        ("9999-12-31T23:59:59Z", "malformed"),
        ("now", "malformed"),
        ("", "malformed"),
    ] {
        let mut lease = lease.clone();
        lease["issued_at"] = date.into();
        assert_eq!(reason(&mut state, &canonical(&forge(lease, &issuer))), Some(expected), "{date}");
    }
}
