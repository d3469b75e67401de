//! Roman numerals.

use std::fmt;

const SYMBOLS: [(u32, &str); 13] = [
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
];

/// A number that is shown in Roman numerals.
pub struct Roman(pub u32);

impl fmt::Display for Roman {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0;
        for (value, symbol) in SYMBOLS {
            while left >= value {
                f.write_str(symbol)?;
                left -= value;
            }
        }
        Ok(())
    }
}

/// The number that a text in Roman numerals means.
pub fn parse(text: &str) -> Option<u32> {
    let mut rest = text;
    let mut sum = 0;
    for (value, symbol) in SYMBOLS {
        while let Some(tail) = rest.strip_prefix(symbol) {
            rest = tail;
            sum += value;
        }
    }
    (rest.is_empty() && Roman(sum).to_string() == text).then_some(sum)
}
