//! Whatever is done to a receipt is found, each with its own reason.

use serde_json::{Value, json};

use crate::receipts::*;

/// An edit of the envelope.
#[track_caller]
fn edited(signed: &Signed, reason: &str, what: &str, edit: impl FnOnce(&mut Value)) {
    let mut envelope = signed.envelope();
    edit(&mut envelope);
    let before = signed.bytes();
    signed.put(envelope.to_string());
    signed.is_refused(reason, what);
    signed.put(before);
}

#[test]
fn the_envelope() {
    let signed = some();
    let payload = signed.envelope()["payload"].as_str().expect("a text").to_owned();
    edited(&signed, "unknown_payload_type", "another type", |e| e["payloadType"] = "application/json".into());
    edited(&signed, "unknown_payload_type", "no type", |e| e["payloadType"] = "".into());
    edited(&signed, "bad_signature", "another payload", |e| e["payload"] = base64(b"{}").into());
    edited(&signed, "bad_signature", "an empty payload", |e| e["payload"] = "".into());
    edited(&signed, "not_an_envelope", "no base64", |e| e["payload"] = format!("{payload}\n").into());
    edited(&signed, "not_an_envelope", "both alphabets", |e| e["payload"] = format!("+-aa{payload}").into());
    edited(&signed, "no_signature_by_key", "another keyid", |e| e["signatures"][0]["keyid"] = "00".into());
    edited(&signed, "no_signature_by_key", "no signature", |e| e["signatures"] = json!([]));
    edited(&signed, "bad_signature", "an empty signature", |e| e["signatures"][0]["sig"] = "".into());
    edited(&signed, "bad_signature", "noughts", |e| e["signatures"][0]["sig"] = base64(&[0; 64]).into());
    edited(&signed, "bad_signature", "a short one", |e| e["signatures"][0]["sig"] = base64(&[1; 63]).into());
    edited(&signed, "not_an_envelope", "no payload", |e| drop(e.as_object_mut().expect("it").remove("payload")));
    edited(&signed, "not_an_envelope", "one field more", |e| e["more"] = 1.into());
    edited(&signed, "not_an_envelope", "one more there", |e| e["signatures"][0]["cert"] = "x".into());
    edited(&signed, "not_an_envelope", "another kind of field", |e| e["signatures"] = "x".into());
    edited(&signed, "not_an_envelope", "very many signatures", |e| {
        e["signatures"] = vec![e["signatures"][0].clone(); 1000].into();
    });
    // A true signature does not cover for a false one by the same key.
    edited(&signed, "bad_signature", "one of two", |e| {
        let mut bad = e["signatures"][0].clone();
        bad["sig"] = base64(&[0; 64]).into();
        e["signatures"].as_array_mut().expect("a list").push(bad);
    });
    signed.is_valid(&[]);
}

#[test]
fn what_dsse_allows_is_valid() {
    let signed = some();
    let envelope = signed.envelope();
    // Standard base64 or URL-safe, and signatures by others beside ours.
    let text = envelope.to_string().replace(PAYLOAD_TYPE, "TYPE");
    let url_safe = text.replace('+', "-").replace("TYPE", PAYLOAD_TYPE);
    let slashes = |text: &str| {
        let mut value: Value = serde_json::from_str(text).expect("JSON");
        value["payload"] = value["payload"].as_str().expect("a text").replace('/', "_").into();
        value["signatures"][0]["sig"] =
            value["signatures"][0]["sig"].as_str().expect("a text").replace('/', "_").into();
        value
    };
    signed.put(slashes(&url_safe).to_string());
    let said = signed.verify(&[]);
    assert_eq!(said["valid"], true, "{said}");
    let mut two = envelope.clone();
    two["signatures"].as_array_mut().expect("a list").insert(0, json!({ "keyid": "another", "sig": "" }));
    signed.put(two.to_string());
    signed.is_valid(&[]);
    // Blanks mean nothing to JSON.
    signed.put(serde_json::to_string_pretty(&envelope).expect("JSON"));
    signed.is_valid(&[]);
}

#[test]
fn the_bytes() {
    let signed = some();
    let whole = signed.bytes();
    let text = String::from_utf8(whole.clone()).expect("JSON is");
    let nested = "[".repeat(1 << 20);
    let deep_object = "{\"payload\":".repeat(100_000);
    for (what, bytes) in [
        ("nothing", vec![]),
        ("no JSON", b"garbage".to_vec()),
        ("null", b"null".to_vec()),
        ("a list", b"[]".to_vec()),
        ("an empty object", b"{}".to_vec()),
        ("a half", whole[..whole.len() / 2].to_vec()),
        ("all but its last brace", whole[..whole.len() - 2].to_vec()),
        ("more behind", [&whole[..], b"x"].concat()),
        ("twice", [&whole[..], &whole[..]].concat()),
        ("a nought behind", [&whole[..], b"\0"].concat()),
        ("a mark before", [b"\xef\xbb\xbf", &whole[..]].concat()),
        ("no UTF-8", [&whole[..whole.len() - 3], b"\xff\"}"].concat()),
        ("a key twice", text.replacen("{", "{\"payload\":\"\",", 1).into_bytes()),
        ("a keyid twice", text.replacen("{\"keyid\"", "{\"keyid\":\"\",\"keyid\"", 1).into_bytes()),
        ("a key twice by an escape", text.replacen("{", "{\"\\u0070ayload\":\"\",", 1).into_bytes()),
        ("nesting", nested.clone().into_bytes()),
        ("nesting of objects", deep_object.into_bytes()),
        ("nesting in a field", text.replacen("{", &format!("{{\"signatures\":{nested},"), 1).into_bytes()),
    ] {
        signed.put(bytes);
        signed.is_refused("not_an_envelope", what);
    }
    signed.put(&whole);
    signed.is_valid(&[]);
}

#[test]
fn another_key() {
    let (one, other) = (some(), some());
    assert_ne!(one.public(), other.public());
    one.put(other.bytes());
    one.is_refused("no_signature_by_key", "a receipt of another place");
    // Signed by the other, called ours.
    edited(&one, "bad_signature", "the other's signature under our id", |e| {
        e["signatures"][0]["keyid"] = sha256(one.key().verifying_key().as_bytes()).into();
    });
}

#[test]
fn a_signature_has_one_form() {
    // The order of the group, from the lowest byte: S and S + L are the same signature to a careless eye.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let signed = some();
    let mut raw = from_base64(signed.envelope()["signatures"][0]["sig"].as_str().expect("a text"));
    let mut carry = 0;
    for (byte, order) in raw[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    assert_eq!(carry, 0, "it is a number of 32 bytes still");
    edited(&signed, "bad_signature", "S + L", |e| e["signatures"][0]["sig"] = base64(&raw).into());
}

#[test]
fn what_was_signed_is_no_receipt() {
    let signed = some();
    let statement = signed.statement();
    let with = |reason: &str, what: &str, edit: &dyn Fn(&mut Value)| {
        let mut other = statement.clone();
        edit(&mut other);
        signed.put(signed.forge(other.to_string().as_bytes()).to_string());
        signed.is_refused(reason, what);
    };
    with("not_a_statement", "another version", &|s| s["_type"] = "https://in-toto.io/Statement/v0.1".into());
    with("not_a_statement", "a list", &|s| *s = json!([]));
    with("not_a_statement", "no type", &|s| drop(s.as_object_mut().expect("it").remove("_type")));
    with("unknown_predicate_type", "another", &|s| s["predicateType"] = "https://slsa.dev/provenance/v1".into());
    with("unknown_predicate_type", "a later one", &|s| s["predicateType"] = "urn:hotcell:receipt:v2".into());
    with("malformed_field", "one field more", &|s| s["more"] = 1.into());
    with("malformed_field", "one more inside", &|s| s["predicate"]["more"] = 1.into());
    with("malformed_field", "one more in a layer", &|s| s["predicate"]["enforced"][0]["more"] = 1.into());
    with("malformed_field", "one more in usage", &|s| s["predicate"]["usage"]["more"] = 1.into());
    with("malformed_field", "one more in limits", &|s| s["predicate"]["limits"]["more"] = 1.into());
    with("malformed_field", "a null that is absent", &|s| {
        drop(s["predicate"]["verdict"].as_object_mut().expect("it").remove("failure_class"));
    });
    with("malformed_field", "no subject", &|s| s["subject"] = json!([]));
    with("malformed_field", "a subject twice", &|s| {
        let first = s["subject"][0].clone();
        s["subject"].as_array_mut().expect("a list").push(first);
    });
    with("malformed_field", "a subject of another name", &|s| {
        s["subject"]
            .as_array_mut()
            .expect("a list")
            .push(json!({ "name": "x", "digest": { "sha256": "0".repeat(64) } }));
    });
    with("malformed_field", "another hash of a stream", &|s| {
        s["predicate"]["stdout"]["sha256"] = "0".repeat(64).into()
    });
    with("malformed_field", "a hash that is none", &|s| s["predicate"]["request_hash"] = "ABC".into());
    with("malformed_field", "half a policy", &|s| s["predicate"]["policy_id"] = "x".into());
    with("malformed_field", "an unknown class", &|s| s["predicate"]["verdict"]["failure_class"] = "Nothing".into());
    with("malformed_field", "a pass that failed", &|s| s["predicate"]["verdict"]["failure_class"] = "Signaled".into());
    with("malformed_field", "a number as text", &|s| s["predicate"]["usage"]["wall_ms"] = "1".into());
    with("malformed_field", "a negative number", &|s| s["predicate"]["usage"]["wall_ms"] = (-1).into());
    let text = statement.to_string();
    for (reason, what, body) in [
        ("not_a_statement", "no JSON", b"garbage".to_vec()),
        ("not_a_statement", "nothing", vec![]),
        ("not_a_statement", "no UTF-8", b"{\"_type\":\"\xff\"}".to_vec()),
        ("not_a_statement", "nesting", "[".repeat(1 << 20).into_bytes()),
        ("not_a_statement", "more behind", format!("{text} x").into_bytes()),
        ("not_a_statement", "its type twice", text.replacen("{", "{\"_type\":\"\",", 1).into_bytes()),
        (
            "malformed_field",
            "a key twice",
            text.replacen("\"status\":", "\"status\":\"fail\",\"status\":", 1).into_bytes(),
        ),
        ("malformed_field", "nesting inside", {
            text.replacen("\"status\":", &format!("\"x\":{}{},\"status\":", "[".repeat(90), "]".repeat(90)), 1)
                .into_bytes()
        }),
    ] {
        signed.put(signed.forge(&body).to_string());
        signed.is_refused(reason, what);
    }
    // The twin: what the key signs and is a receipt, is one.
    signed.put(signed.forge(text.as_bytes()).to_string());
    signed.is_valid(&[]);
}
