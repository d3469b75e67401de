//! Durations and sizes as people write them: `500ms`, `45s`, `2m`; `64m`, `1g`, `512MiB`.

use std::time::Duration;

/// A value that could not be understood, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    #[error("`{0}` is not a duration: write a number and ms, s, m or h, such as 500ms, 45s or 2m")]
    Duration(String),
    #[error("`{0}` is not a size: write a number and k, m or g, such as 64m, 1g or 512MiB")]
    Size(String),
    #[error("`{0}` is too large")]
    TooLarge(String),
    #[error(
        "`{0}` is no metadata: write KEY=VALUE, the key with 1 to 64 letters, digits, `_`, `-` or `.`, the value with at most 1024 printable characters"
    )]
    Metadata(String),
}

fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then_some((number, text[end..].trim()))
}

/// A bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, ValueError> {
    let bad = || ValueError::Duration(text.to_owned());
    let (number, unit) = split(text).ok_or_else(bad)?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(bad()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| ValueError::TooLarge(text.to_owned()))
}

/// Units are powers of 1024, written k, kb or KiB, and so on; a bare number is bytes.
pub fn parse_size(text: &str) -> Result<u64, ValueError> {
    let bad = || ValueError::Size(text.to_owned());
    let (number, unit) = split(text).ok_or_else(bad)?;
    let unit = unit.to_ascii_lowercase();
    let power = match unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit) {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(bad()),
    };
    let bytes = number * 1024f64.powi(power);
    if bytes >= u64::MAX as f64 {
        return Err(ValueError::TooLarge(text.to_owned()));
    }
    Ok(bytes as u64)
}

/// `KEY=VALUE`: what a caller says of a request, for whoever looks at it later.
pub fn parse_metadata(text: &str) -> Result<(String, String), ValueError> {
    let is_key = |key: &str| crate::is_id(&key.replace('.', "_"));
    let is_value = |value: &str| value.chars().count() <= 1024 && !value.chars().any(char::is_control);
    match text.split_once('=') {
        Some((key, value)) if is_key(key) && is_value(value) => Ok((key.to_owned(), value.to_owned())),
        _ => Err(ValueError::Metadata(text.chars().take(80).flat_map(char::escape_debug).collect())),
    }
}

/// `1.5 GiB`, for people.
pub fn show_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 10.0);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// `45 s`, `12 ms`, `2.5 s`, for people.
pub fn show_duration(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1000.0;
    match ms {
        _ if ms < 1000.0 => format!("{ms:.0} ms"),
        _ if ms < 60_000.0 => format!("{:.1} s", ms / 1000.0),
        _ => format!("{}m {:.0}s", (ms / 60_000.0) as u64, (ms / 1000.0) % 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("45s"), Ok(Duration::from_secs(45)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        for bad in ["", "s", "lots", "-1s", "1 day", "1e3s", "nan", "inf", "1.2.3s", "٣s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert!(matches!(parse_duration(&"9".repeat(60)), Err(ValueError::TooLarge(_))));
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("64m"), Ok(64 << 20));
        assert_eq!(parse_size("1g"), Ok(1 << 30));
        assert_eq!(parse_size("512MiB"), Ok(512 << 20));
        assert_eq!(parse_size("10 kB"), Ok(10 << 10));
        assert_eq!(parse_size("1PB"), Ok(1 << 50));
        for bad in ["", "m", "lots", "-1", "1x", "1mm", "0x10", "1 0"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert!(matches!(parse_size("99999999P"), Err(ValueError::TooLarge(_))));
    }
}
