//! Base64 of RFC 4648, with padding. Read strictly: of all texts, one alone stands for given bytes in an alphabet.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let digit = STANDARD[(group >> (18 - 6 * place)) as usize & 63];
            text.push(if place > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

/// Of the standard or the URL-safe alphabet, never of both.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let alphabet = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    let mut values = [None; 256];
    for (value, byte) in (0u32..).zip(alphabet) {
        values[usize::from(*byte)] = Some(value);
    }
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.as_bytes().chunks(4) {
        let mut group = 0;
        for byte in chunk {
            group = group << 6 | values[usize::from(*byte)]?;
        }
        group <<= 6 * (4 - chunk.len());
        let [_, parts @ ..] = group.to_be_bytes();
        let (whole, rest) = parts.split_at(chunk.len() - 1);
        // Bits beyond the last byte must be nought, or two texts would stand for the same.
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(whole);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_in_the_rfc() {
        let known = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, text) in known.into_iter().enumerate() {
            let bytes = &b"foobar"[..length];
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn every_byte_in_both_alphabets() {
        let all: Vec<u8> = (0..=255).collect();
        let text = encode(&all);
        assert_eq!(decode(&text).as_ref(), Some(&all));
        assert_eq!(decode(&text.replace('+', "-").replace('/', "_")), Some(all));
        assert_eq!(decode(&text.replace('+', "-")), None, "both at once");
    }

    #[test]
    fn nothing_else() {
        for text in
            ["Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "=", "====", "Z===", "Zm 8", "Zm8\n", "Zm9v=", "Zm9ä"]
        {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
