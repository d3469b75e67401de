//! `--watch`, on a terminal of `script`'s: drawn below the output, gone at the end.

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use crate::harness::*;

/// `hotcell exec --watch WORDS` on a terminal of this size.
fn on_terminal(place: &Place, columns: u32, environment: &[(&str, &str)], words: &str) -> Child {
    let line = format!("stty rows 24 cols {columns}; exec ./hotcell exec --watch {words}");
    let mut command = place.command("script");
    command.env("TERM", "xterm").env("SHELL", "/bin/sh").envs(environment.iter().copied());
    command.args(["-qec", &line, "/dev/null"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("script is installed")
}

/// What the terminal was told, until it has been told `what`.
fn until(child: &mut Child, what: &str) -> String {
    let (mut all, mut byte) = (vec![], [0]);
    let from = child.stdout.as_mut().expect("piped");
    while !String::from_utf8_lossy(&all).ends_with(what) {
        assert_eq!(from.read(&mut byte).expect("a pipe"), 1, "no {what:?} in {}", String::from_utf8_lossy(&all));
        all.push(byte[0]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// All rows are the program's again, and nothing is drawn after that.
#[track_caller]
fn is_clean(text: &str) {
    let (_, after) = text.rsplit_once("\x1b[r").unwrap_or_else(|| panic!("the margins are left: {text:?}"));
    assert!(!after.contains("memory ["), "{text:?}");
}

#[test]
fn is_drawn_and_taken_away() {
    for place in everybody() {
        let mut child = on_terminal(&place, 80, &[], "-- sh -c 'echo first; cat >/dev/null; printf last'");
        let mut said = until(&mut child, "first\r\n");
        said += &until(&mut child, "memory [");
        said += &until(&mut child, "\x1b8");
        assert!(said.contains("first\r\n") && said.contains("\x1b[1;20r"), "{said:?}");
        for part in ["hotcell run", "cpu    [", "of 2 cores", "processes ", "scratch 0 B of 512 MiB"] {
            assert!(said.contains(part), "no {part:?} in {said:?}");
        }
        // The end of its input, typed.
        child.stdin.as_mut().expect("piped").write_all(b"\x04").expect("a pipe");
        until(&mut child, "last");
        let rest = end(child).stdout;
        is_clean(&rest);
        assert!(rest.contains("pass") && rest.contains("\r\nhotcell: "), "{rest:?}");
    }
}

#[test]
fn fits_a_narrow_terminal_without_colour() {
    let place = anybody();
    let mut child = on_terminal(&place, 40, &[("NO_COLOR", "1")], "-- cat");
    let said = until(&mut child, "\x1b8");
    child.stdin.as_mut().expect("piped").write_all(b"\x04").expect("a pipe");
    is_clean(&end(child).stdout);
    let drawn: Vec<&str> = said.split("\x1b[2K").skip(1).map(|line| line.split('\x1b').next().unwrap_or("")).collect();
    assert_eq!(drawn.len(), 4, "{said:?}");
    assert!(drawn.iter().all(|line| line.len() < 40), "{drawn:?}");
    assert!(!said.contains("\x1b[2m"), "{said:?}");
}

#[test]
fn ctrl_c_leaves_a_clean_terminal() {
    let place = anybody();
    let mut child = on_terminal(&place, 80, &[], "-- sleep 3600");
    until(&mut child, "\x1b8");
    child.stdin.as_mut().expect("piped").write_all(b"\x03").expect("a pipe");
    until(&mut child, "called off, signal 15");
    let rest = end(child);
    assert!(!rest.stdout.contains("memory ["), "{}", rest.stdout);
}

#[test]
fn what_the_program_says_arrives_whole() {
    let place = anybody();
    // Half a character and half a sequence, a while before the other half.
    let code = "printf '\\346\\274'; sleep 0.5; printf '\\242 \\033[3'; sleep 0.5; printf '1mred\\033[0m\\n'";
    let child = on_terminal(&place, 80, &[], &format!("-- sh -c \"{code}\""));
    let said = end(child).stdout;
    assert!(said.contains("memory ["), "{said:?}");
    assert!(said.contains('\u{6f22}') && said.contains("\x1b[31mred\x1b[0m"), "{said:?}");
    is_clean(&said);
}

#[test]
fn where_there_is_no_terminal_it_says_so() {
    let place = anybody();
    let sentence = "hotcell: --watch needs a terminal on standard error: nothing is drawn\n";
    let ran = place.go(&["exec", "--watch", "--", "echo", "said"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "said\n", sentence));
    let said = end(on_terminal(&place, 80, &[("TERM", "dumb")], "-- sleep 0.5")).stdout;
    assert!(said.contains(sentence.trim_end()) && !said.contains("\x1b[1;"), "{said:?}");
}
