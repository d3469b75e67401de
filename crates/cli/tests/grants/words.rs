//! Commands: matched word by word, and never as a text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::desk::*;
use crate::harness::*;

/// Which commands a lease for these words allows, and which not.
#[track_caller]
fn allows(words: &[&str], yes: &[&[&str]], no: &[&[&str]]) {
    let desk = Desk::new();
    let lease = desk.issue(&["--runs", "99"], words);
    for argv in yes {
        let ran = desk.leased(&lease, &[], argv);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{argv:?}");
    }
    for argv in no {
        desk.is_denied(&desk.leased(&lease, &[], argv), "command_not_allowed", &["no command like"]);
    }
}

#[test]
fn words_are_whole() {
    allows(
        &["echo", "one"],
        &[&["echo", "one"]],
        &[
            &["echo"],
            &["echo", "one", ""],
            &["echo", "", "one"],
            &["echo", "one", "two"],
            &["echo", "one\n"],
            &["echo", "One"],
            &["echo", "on"],
            &["echo", "one "],
            &["echo one"],
            &["echo\none"],
            &["/bin/echo", "one"],
            &["./echo", "one"],
            &["echoo", "one"],
        ],
    );
}

#[test]
fn a_star_is_anything_in_one_word() {
    allows(
        &["echo", "a*z", "*"],
        &[&["echo", "az", ""], &["echo", "a b/c\nz", "**"], &["echo", "a*z", "; rm -rf /"]],
        &[
            &["echo", "az"],
            &["echo", "za", "x"],
            &["echo", "a", "z", "x"],
            &["echo", "xaz", "x"],
            &["echo", "azx", "x"],
        ],
    );
}

#[test]
fn two_stars_are_any_words() {
    allows(
        &["echo", "a", "**"],
        &[&["echo", "a"], &["echo", "a", "", "b", "*"], &["echo", "a", "**"]],
        &[&["echo"], &["echo", "b"], &["echo", "", "a"], &["sh", "-c", "echo a"]],
    );
}

#[test]
fn a_star_that_is_asked_for_is_a_star() {
    allows(&["echo", "a"], &[&["echo", "a"]], &[&["echo", "*"], &["echo", "**"], &["**"], &["*"]]);
}

#[test]
fn what_is_no_text_is_matched_by_nothing() {
    let desk = Desk::new();
    let lease = desk.issue(&["--runs", "9"], &["echo", "**"]);
    let run = |word: &[u8]| {
        let mut command = desk.hotcell(&["exec", "--lease", text(&lease), "--", "echo"]);
        go(command.arg(OsStr::from_bytes(word)))
    };
    assert_eq!(run("é".as_bytes()).stdout, "é\n");
    desk.is_denied(&run(b"\xff"), "command_not_allowed", &["no command like"]);
    desk.is_denied(&run(b"a\xc3"), "command_not_allowed", &["no command like"]);
}

#[test]
fn patterns_that_are_none() {
    let desk = Desk::new();
    for words in [&["*"][..], &["**"], &["e*"], &["echo", "**", "x"], &["echo", "**", "**"]] {
        let ran = desk.go(&[&["lease", "issue", "--actor", "x", "--"], words].concat());
        ran.refused(&["scope.commands_allowlist"]);
    }
    desk.go(&["lease", "issue", "--actor", "x"]).refused(&["scope.commands_allowlist"]);
    for json in ["", "[", "{}", "\"echo\"", "[1]", "[null]", "[[\"echo\"]]", "nul\0l"] {
        let json = json.replace('\0', "");
        desk.go(&["lease", "issue", "--actor", "x", "--command", &json]).refused(&["--command"]);
    }
    for (json, part) in [("[]", "words"), ("[\"\\u0000\"]", "NUL"), ("[\"a\", \"\\u0000\"]", "NUL")] {
        let ran = desk.go(&["lease", "issue", "--actor", "x", "--command", json]);
        ran.refused(&["scope.commands_allowlist", part]);
    }
    let long = format!("[\"{}\"]", "x".repeat(4097));
    desk.go(&["lease", "issue", "--actor", "x", "--command", &long]).refused(&["scope.commands_allowlist", "4096"]);
    // More than one command is as good.
    let lease = desk.issue(&["--runs", "9", "--command", "[\"echo\",\"two\"]"], &["echo", "one"]);
    assert_eq!(desk.leased(&lease, &[], &["echo", "two"]).stdout, "two\n");
    assert_eq!(desk.leased(&lease, &[], &["echo", "one"]).stdout, "one\n");
}

#[test]
fn a_source_has_words_too() {
    let desk = Desk::new();
    let lease = desk.issue(&["--runs", "99"], &["hotcell run", "python", "main.py", "a*"]);
    let file = desk.path("work/main.py");
    std::fs::write(&file, "import sys; print(sys.argv[1])").expect("ours");
    let other = desk.path("work/other.py");
    std::fs::copy(&file, &other).expect("ours");
    let run = |words: &[&str]| desk.go(&[&["run", "--lease", text(&lease)], words].concat());
    assert_eq!(run(&["main.py", "--", "abc"]).stdout, "abc\n");
    for words in [
        &["main.py"][..],
        &["main.py", "--", "b"],
        &["main.py", "--", "a", "b"],
        &["other.py", "--", "abc"],
        &["--lang", "bash", "main.py", "--", "abc"],
    ] {
        desk.is_denied(&run(words), "command_not_allowed", &["hotcell run"]);
    }
    // A command is no source, and a source no command.
    desk.is_denied(&desk.leased(&lease, &[], &["python3", "main.py", "abc"]), "command_not_allowed", &[]);
    let command = desk.issue(&[], &["python3", "**"]);
    let ran = desk.go(&["run", "--lease", text(&command), "main.py", "--", "abc"]);
    desk.is_denied(&ran, "command_not_allowed", &["hotcell run python main.py"]);
    desk.go(&["verify", "--lease", text(&lease), "main.py"]).refused(&["lease"]);
}

#[test]
fn a_refused_command_is_told_harmlessly() {
    let desk = Desk::new();
    let lease = desk.issue(&[], &["true"]);
    let long = "x".repeat(100_000);
    for word in ["\u{1b}[31m", "a\nhotcell: error: b", "\u{9b}31m", "\u{7f}", &long] {
        desk.is_denied(&desk.leased(&lease, &[], &["echo", word]), "command_not_allowed", &["no command like"]);
    }
    desk.is_whole();
}
