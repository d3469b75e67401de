//! Every bit of a receipt, and much that is none: never valid, never a panic. In this process, with the code that the binary
//! has, because there are tens of thousands of them; some by the binary itself.

use hotcell_engine::{PublicKey, unverified_statement, verify_receipt};

use crate::receipts::*;

/// Numbers that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

#[test]
fn every_bit_counts() {
    let signed = some();
    let (mut bytes, key) = (signed.bytes(), PublicKey::parse(&signed.public()).expect("a key"));
    assert!(verify_receipt(&bytes, &key).is_ok());
    // The newline at the end is the only byte that nobody needs.
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            assert!(verify_receipt(&bytes, &key).is_err(), "byte {at}, bit {bit}");
            bytes[at] ^= 1 << bit;
        }
    }
    let mut numbers = Numbers(0x9e3779b97f4a7c15);
    for _ in 0..20 {
        let mut other = bytes.clone();
        other[numbers.below(bytes.len())] ^= 1 << numbers.below(8);
        signed.put(&other);
        assert_eq!(signed.verify(&[])["valid"], false);
    }
    signed.put(&bytes);
    signed.is_valid(&[]);
}

#[test]
fn every_cut_is_found() {
    let signed = some();
    let (bytes, key) = (signed.bytes(), PublicKey::parse(&signed.public()).expect("a key"));
    for end in 0..bytes.len() - 1 {
        assert!(verify_receipt(&bytes[..end], &key).is_err(), "the first {end} bytes");
    }
    assert!(verify_receipt(&bytes[..bytes.len() - 1], &key).is_ok(), "without the newline");
}

/// Pieces of receipts in all orders, and bytes that are no text.
#[test]
fn what_nobody_wrote() {
    let signed = some();
    let key = PublicKey::parse(&signed.public()).expect("a key");
    let (bytes, body) = (signed.bytes(), signed.body());
    let mut numbers = Numbers(0xdeadbeefcafef00d);
    let mut random = |from: &[u8]| {
        let mut made = from.to_vec();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(made.len());
            let end = (at + numbers.below(40)).min(made.len());
            match numbers.below(5) {
                0 => drop(made.drain(at..end)),
                1 => made.extend_from_within(at..end),
                2 => made[at] = numbers.below(256) as u8,
                3 => made[at] = b"{}[]\",:\\0-e"[numbers.below(11)],
                _ => drop(made.splice(at..at, from[..end - at].to_vec())),
            }
            made.push(b' ');
        }
        made
    };
    for _ in 0..4000 {
        let made = random(&bytes);
        if let Ok(statement) = verify_receipt(&made, &key) {
            // Blanks at the end, or an edit that undid itself: then it says what was signed.
            assert_eq!(serde_json::to_value(statement).expect("JSON"), signed.statement());
        }
        let _ = unverified_statement(&made);
    }
    // Signed for, and still nonsense: it is read, and it may be a statement, and nothing breaks.
    for _ in 0..300 {
        let made = random(&body);
        let envelope = signed.forge(&made).to_string();
        let (verified, shown) = (verify_receipt(envelope.as_bytes(), &key), unverified_statement(envelope.as_bytes()));
        assert_eq!(verified, shown);
    }
}
