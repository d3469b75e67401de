//! JUnitCore: `1) name(Class)` for each failure, then `OK (3 tests)` or `Tests run: 5,  Failures: 2`.

use super::TestResults;

pub(super) fn parse(text: &[u8]) -> Option<TestResults> {
    let text = String::from_utf8_lossy(text);
    let mut results = TestResults::default();
    let (mut ran, mut failed) = (None, 0u64);
    for line in text.lines() {
        // One letter a test: `.` for each that begins, E behind one that failed, I for one that is ignored.
        if !line.is_empty() && line.bytes().all(|b| matches!(b, b'.' | b'E' | b'I')) {
            results.skip(line.bytes().filter(|b| *b == b'I').count() as u64);
        }
        if let Some((number, name)) = line.split_once(") ")
            && number.bytes().all(|b| b.is_ascii_digit())
            && !number.is_empty()
        {
            results.name(name.trim());
        } else if let Some(rest) = line.strip_prefix("OK (") {
            ran = rest.split(' ').next().and_then(|n| n.parse().ok());
        } else if let Some(rest) = line.strip_prefix("Tests run: ") {
            let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<u64>().ok());
            (ran, failed) = (numbers.next(), numbers.next().unwrap_or(0));
        }
    }
    let ran: u64 = ran?;
    results.pass(ran.saturating_sub(failed));
    results.fail(failed);
    Some(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_and_names() {
        let text = b"JUnit version 4.13.2\n.E.\nTime: 0.01\nThere was 1 failure:\n1) adds(app.CalcTest)\n\
            java.lang.AssertionError: expected:<4> but was:<5>\n\nFAILURES!!!\nTests run: 2,  Failures: 1\n";
        let want = TestResults { passed: 1, failed: 1, skipped: 0, failing: vec!["adds(app.CalcTest)".into()] };
        assert_eq!(parse(text), Some(want));
        assert_eq!(parse(b"OK (3 tests)\n").map(|r| (r.passed, r.failed)), Some((3, 0)));
        assert_eq!(parse(b"nothing"), None);
    }
}
