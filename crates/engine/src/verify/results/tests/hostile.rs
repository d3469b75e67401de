//! Results that nobody honest would write: nothing panics, nothing grows.

use super::*;

const FORMATS: [Format; 6] = [JunitXml, Junit4, Unittest, GoJson, NodeTap, CargoText];

/// Xorshift: the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).expect("less than a usize")
    }
}

fn all_fixtures() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/results");
    let mut names: Vec<_> = std::fs::read_dir(directory).expect("fixtures").flatten().map(|e| e.file_name()).collect();
    names.sort();
    names.iter().map(|name| fixture(&name.to_string_lossy())).collect()
}

fn mutate(text: &mut Vec<u8>, dice: &mut Dice) {
    const MARKS: &[u8] = b"<>&\"'/=!?-[]{}#;:\\ \n\r\t\x00\x1b\xff\xe2()9.";
    let at = dice.below(text.len());
    match dice.below(5) {
        0 => text.truncate(at),
        1 => text.insert(at, MARKS[dice.below(MARKS.len())]),
        2 if !text.is_empty() => text[at] = MARKS[dice.below(MARKS.len())],
        3 => drop(text.drain(at..(at + dice.below(40)).min(text.len()))),
        _ => {
            let piece = text[at..(at + dice.below(200)).min(text.len())].to_vec();
            let to = dice.below(text.len());
            text.splice(to..to, piece);
        }
    }
}

#[track_caller]
fn stays_within_bounds(format: Format, text: &[u8]) {
    let Some(results) = parse(format, text) else { return };
    assert!(results.failing.len() <= MAX_NAMES);
    for name in &results.failing {
        assert!(name.chars().count() <= MAX_NAME_CHARS && !name.chars().any(char::is_control), "{name:?}");
    }
}

#[test]
fn nothing_makes_it_panic() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for original in all_fixtures() {
        for _ in 0..40 {
            let mut text = original.clone();
            for _ in 0..=dice.below(8) {
                mutate(&mut text, &mut dice);
                FORMATS.iter().for_each(|&format| stays_within_bounds(format, &text));
            }
        }
    }
}

#[test]
fn what_is_no_result_is_none() {
    let texts: [&[u8]; 6] =
        [b"", b"\n\n", b"Segmentation fault\n", b"<html><body/></html>", b"{}\n[]\nnull\n", &[0xff; 99]];
    for text in texts {
        for format in FORMATS {
            assert_eq!(parse(format, text), None, "{format:?} {text:?}");
        }
    }
    assert_eq!(parse(Unittest, &fixture("cargo-mix.txt")), None);
    assert_eq!(parse(JunitXml, &fixture("go-1.19-mix.json")), None);
}

#[test]
fn names_are_bounded_in_number_and_length_and_can_be_shown() {
    let case = |name: &str| format!("<testcase classname='c' name='{name}'><failure/></testcase>");
    let many: String = (0..500).map(|number| case(&number.to_string())).collect();
    let results = parse(JunitXml, format!("<testsuite>{many}").as_bytes()).expect("results");
    assert_eq!((results.failed, results.failing.len()), (500, MAX_NAMES));

    let odd = case("a&#27;[31m\u{202e}\u{7}b&#xFFFFFFFF;&#;&nbsp;&") + &case(&"long".repeat(1000));
    let results = parse(JunitXml, format!("<testsuite>{odd}").as_bytes()).expect("results");
    assert_eq!(results.failing[0], "c.a\\u{1b}[31m\\u{202e}\\u{7}b&#xFFFFFFFF;&#;&nbsp;&");
    assert_eq!(results.failing[1].chars().count(), MAX_NAME_CHARS);
    assert!(results.failing[1].ends_with('…'));
}

#[test]
fn counts_stay_at_the_most() {
    let max = u64::MAX;
    let run = format!("running 1 test\ntest result: ok. {max} passed; {max} failed; {max} ignored; 0 measured\n");
    let results = parse(CargoText, run.repeat(2).as_bytes()).expect("results");
    assert_eq!((results.passed, results.failed, results.skipped), (max, max, max));
    let rule = "-".repeat(70);
    let text = format!("{rule}\nRan {max} tests in 0s\n\nFAILED (failures={max}, errors={max}, skipped={max})\n");
    let results = parse(Unittest, text.as_bytes()).expect("results");
    assert_eq!((results.passed, results.failed, results.skipped), (0, max, max));
    let beyond = text.replace(&max.to_string(), "99999999999999999999999");
    assert_eq!(parse(Unittest, beyond.as_bytes()), None);
}

/// Each of these took time in the square of its length if anything were looked at again from its beginning.
#[test]
fn long_input_takes_time_in_proportion() {
    let openings = [
        "<",
        "<!--",
        "<![CDATA[",
        "<a b='",
        "<testcase>",
        "<testcase name='&&&",
        "# Subtest: a\n    ",
        "not ok 1 - a\n  ---\n",
        "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"t\"}\n",
        "[[[[",
        "running 1 test\n",
        "failures:\n    a\n",
        "a ... skipped 'b'\n",
        " ... ",
        "((((",
        "\\\\",
        "test a ... FAILED\n",
    ];
    let started = std::time::Instant::now();
    for opening in openings {
        let text = format!("<testsuite>{}", opening.repeat((1 << 20) / opening.len()));
        FORMATS.iter().for_each(|&format| stays_within_bounds(format, text.as_bytes()));
    }
    assert!(started.elapsed().as_secs() < 120, "{:?}", started.elapsed());
}

#[test]
fn deep_subtests_are_read() {
    let deep: String = (0..2000).map(|depth| format!("{:1$}# Subtest: level\n", "", depth * 4)).collect();
    let point = format!("{:1$}not ok 1 - bottom\n", "", 2000 * 4);
    let results = parse(NodeTap, (deep + &point).as_bytes()).expect("results");
    assert_eq!(results.failed, 1);
    assert!(results.failing[0].starts_with("level > level"));
}

#[test]
fn no_more_is_looked_at_than_allowed() {
    let padding = " ".repeat(MAX_TEXT);
    let beyond = format!("<testsuite>{padding}<testcase name='a'><failure/></testcase></testsuite>");
    assert_eq!(parse(JunitXml, beyond.as_bytes()), Some(TestResults::default()));
    let late = padding + "\n" + &fixture_text("unittest-verbose-ok-3.11.txt");
    assert_eq!(parse(Unittest, late.as_bytes()).map(|results| results.passed), Some(2));
}

#[test]
fn the_last_of_several_unittest_runs_counts() {
    let text = fixture_text("unittest-verbose-mix-3.13.txt") + &fixture_text("unittest-verbose-ok-3.11.txt");
    let results = parse(Unittest, text.as_bytes()).expect("results");
    assert_eq!((results.passed, results.failed, results.skipped, results.failing.len()), (2, 0, 1, 0));
}
