//! The log: whatever is done to it is found, at its place, and then nothing runs.

use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::harness::*;

/// A log of some entries: its file, and its lines.
fn some() -> (Place, PathBuf, Vec<String>) {
    let place = Place::new();
    place.pass(&["--tenant", "t", "--user", "u", "--run-id", "r"]);
    place.exec(&[], &["false"]);
    place.go(&["exec", "--policy", "strict", "--", "true"]).refused(&["strict"]);
    place.is_whole();
    let files = place.logs();
    // Unless midnight came between.
    let [file] = files.as_slice() else { return some() };
    let text = std::fs::read_to_string(file).expect("it can be read");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 5);
    (place, file.clone(), lines)
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A line with the hash that it should have.
fn sealed(body: &Value) -> String {
    let body = ["seq", "at", "event", "data", "prev", "tag"].map(|name| format!("\"{name}\":{}", body[name])).join(",");
    let hash: String = Sha256::digest(format!("{{{body}}}")).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{{{body},\"hash\":\"{hash}\"}}")
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).expect("it is JSON")
}

impl Place {
    /// Damage is found, and first of all at `file:line`.
    #[track_caller]
    fn is_found(&self, at: &str) {
        let (whole, flaws) = self.verify();
        assert!(!whole && flaws.first().is_some_and(|flaw| flaw == at), "at {at}, not {flaws:?}");
    }

    /// Damage at the end of the log, or to what it rests on: found there, and nothing runs.
    #[track_caller]
    fn is_found_and_stops(&self, at: &str) {
        self.is_found(at);
        let before = self.contents("state/audit");
        self.runs_nothing(&["audit log", "nothing runs", "hotcell audit verify"]);
        self.go(&["run", "--code", "print('it ran')"]).refused(&["audit log"]);
        assert_eq!(self.contents("state/audit"), before, "it was written to");
        self.is_found(at);
    }
}

fn name(file: &std::path::Path) -> String {
    file.file_name().expect("it has one").to_string_lossy().into_owned()
}

#[test]
fn an_untouched_one_is_exported_as_it_is() {
    let (place, file, lines) = some();
    let export = place.go(&["audit", "export"]);
    assert_eq!((export.code, &export.stdout), (0, &text(&lines)));
    let mut before = "0".repeat(64);
    for (index, line) in lines.iter().enumerate() {
        let entry = parsed(line);
        assert_eq!((&entry["seq"], &entry["prev"]), (&(index + 1).into(), &before.as_str().into()), "{line}");
        // The hash is what anybody can work out.
        assert_eq!(&sealed(&entry), line);
        before = entry["hash"].as_str().expect("a hash").to_owned();
    }
    let events: Vec<Value> = lines.iter().map(|line| parsed(line)["event"].clone()).collect();
    let names = ["ADMITTED", "FINISHED", "ADMITTED", "FINISHED", "DENIED"];
    assert_eq!(events, names.map(|name| Value::from(format!("exec_event.{name}"))));
    // Tail is the end of it.
    assert_eq!(place.go(&["audit", "tail", "-n", "2", "--output", "json"]).stdout, text(&lines[3..]));
    assert_eq!(place.go(&["audit", "tail", "--output", "json"]).stdout, text(&lines));
    let tail = place.go(&["audit", "tail", "-n", "1"]).stdout;
    assert!(tail.lines().count() == 1 && tail.contains("exec_event.DENIED"), "{tail}");
    assert_eq!(place.go(&["audit", "tail", "-n", "0"]).stdout, "");
    assert_eq!(std::fs::read_to_string(file).expect("ours"), text(&lines), "looking changed it");
}

#[test]
fn an_edited_byte() {
    let (place, file, lines) = some();
    for (index, line) in lines.iter().enumerate() {
        // The first byte of every value, and the last of the line.
        let mut places: Vec<usize> = line.match_indices("\":").map(|(at, _)| at + 3).collect();
        places.extend(line.match_indices("\":").map(|(at, _)| at - 1));
        places.extend([0, line.len() - 1]);
        for at in places {
            let mut bytes = line.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            let mut edited = lines.clone();
            edited[index] = String::from_utf8(bytes).expect("digits");
            std::fs::write(&file, text(&edited)).expect("ours");
            // Once is enough for each: verify says it twice otherwise.
            let found = place.go(&["audit", "verify"]);
            let want = format!("{}:{}: ", name(&file), index + 1);
            assert!(found.code == 1 && found.stdout.starts_with(&want), "{want} at {at}: {}", found.stdout);
        }
        std::fs::write(&file, text(&lines)).expect("ours");
    }
    place.is_whole();
    // Back as it was, all goes on.
    place.pass(&[]);
    place.is_whole();
}

#[test]
fn an_edited_last_line_stops_everything() {
    let (place, file, lines) = some();
    std::fs::write(&file, text(&lines).replace("strict mode", "strict mood")).expect("ours");
    place.is_found_and_stops(&format!("{}:5", name(&file)));
}

#[test]
fn a_removed_line() {
    let (place, file, lines) = some();
    for (index, at) in [(0, format!("{}:1", name(&file))), (2, format!("{}:3", name(&file))), (4, "head:1".into())] {
        let mut fewer = lines.clone();
        fewer.remove(index);
        std::fs::write(&file, text(&fewer)).expect("ours");
        place.is_found(&at);
    }
    // The last one is gone now.
    place.is_found_and_stops("head:1");
}

#[test]
fn an_inserted_line() {
    let (place, file, lines) = some();
    // One that is there already, anywhere.
    for (copy, to) in [(0, 0), (0, 1), (1, 4), (4, 4), (4, 5), (0, 5)] {
        let mut more = lines.clone();
        more.insert(to, lines[copy].clone());
        std::fs::write(&file, text(&more)).expect("ours");
        let (whole, flaws) = place.verify();
        // Beside its twin, which of the two was there first is nobody's to say.
        let near = [to, to + 1, to + 2].map(|line| format!("{}:{line}", name(&file)));
        assert!(!whole && near.contains(&flaws[0]), "{copy} to {to}: {flaws:?}");
    }
    // A new one that is all right in itself.
    for to in 0..5 {
        let mut forged = parsed(&lines[0]);
        forged["seq"] = (to + 1).into();
        forged["prev"] = if to == 0 { "0".repeat(64).into() } else { parsed(&lines[to - 1])["hash"].clone() };
        forged["data"]["tenant_id"] = "forged".into();
        let mut more = lines.clone();
        more.insert(to, sealed(&forged));
        std::fs::write(&file, text(&more)).expect("ours");
        place.is_found(&format!("{}:{}", name(&file), to + 1));
    }
    // Garbage, and an empty line.
    for line in ["", "garbage", "{}", "null"] {
        let mut more = lines.clone();
        more.insert(2, line.into());
        std::fs::write(&file, text(&more)).expect("ours");
        place.is_found(&format!("{}:3", name(&file)));
        let mut more = lines.clone();
        more.push(line.into());
        std::fs::write(&file, text(&more)).expect("ours");
        place.is_found_and_stops(&format!("{}:6", name(&file)));
    }
}

fn forged_after(last: &str) -> String {
    let mut forged = parsed(last);
    forged["seq"] = (forged["seq"].as_u64().expect("a number") + 1).into();
    forged["prev"] = forged["hash"].clone();
    forged["data"]["tenant_id"] = "forged".into();
    sealed(&forged)
}

#[test]
fn a_forged_line_at_the_end_is_found() {
    let (place, file, mut lines) = some();
    lines.push(forged_after(&lines[4]));
    std::fs::write(&file, text(&lines)).expect("ours");
    place.is_found(&format!("{}:6", name(&file)));
}

#[test]
fn a_forged_line_at_the_end_is_never_signed() {
    let (place, file, mut lines) = some();
    lines.push(forged_after(&lines[4]));
    std::fs::write(&file, text(&lines)).expect("ours");
    place.go(&["exec", "--", "true"]);
    let (whole, _) = place.verify();
    assert!(!whole, "the forged line is part of a log that verifies");
}

#[test]
fn swapped_lines() {
    let (place, file, lines) = some();
    for (a, b) in [(0, 1), (1, 2), (1, 3), (0, 4), (3, 4)] {
        let mut swapped = lines.clone();
        swapped.swap(a, b);
        std::fs::write(&file, text(&swapped)).expect("ours");
        place.is_found(&format!("{}:{}", name(&file), a + 1));
    }
    place.is_found_and_stops(&format!("{}:4", name(&file)));
}

#[test]
fn a_truncated_one() {
    let (place, file, lines) = some();
    let whole = text(&lines);
    let last = lines[4].len();
    for cut in [2, 40, 100, last / 2, last] {
        std::fs::write(&file, &whole[..whole.len() - cut]).expect("ours");
        place.is_found_and_stops(&format!("{}:5", name(&file)));
    }
    // The whole line, and more.
    std::fs::write(&file, text(&lines[..4])).expect("ours");
    place.is_found_and_stops("head:1");
    std::fs::write(&file, text(&lines[..1])).expect("ours");
    place.is_found_and_stops("head:1");
    std::fs::write(&file, "").expect("ours");
    place.is_found_and_stops("head:1");
    std::fs::remove_file(&file).expect("ours");
    place.is_found_and_stops("head:1");
}

#[test]
fn a_newline_that_is_cut_off() {
    let (place, file, lines) = some();
    let whole = text(&lines);
    std::fs::write(&file, &whole[..whole.len() - 1]).expect("ours");
    place.is_found_and_stops(&format!("{}:5", name(&file)));
}

#[test]
fn a_log_that_is_removed_with_its_head() {
    let (place, file, _) = some();
    std::fs::remove_file(file).expect("ours");
    std::fs::remove_file(place.state().join("audit/head")).expect("ours");
    let (whole, _) = place.verify();
    assert!(!whole, "{} records, and a log of nothing is whole", place.records(&[]).len());
    place.runs_nothing(&["audit log"]);
}

#[test]
fn a_log_that_is_removed_while_something_runs() {
    let place = Place::new();
    let mut going = place.start(&[], &["sh", "-c", "echo ready; cat"]);
    std::fs::remove_dir_all(place.state().join("audit")).expect("ours");
    going.let_go();
    let ran = going.end();
    assert!(ran.code == 125 && ran.stderr.contains("audit log is not as it was left"), "{} {}", ran.code, ran.stderr);
    let (whole, _) = place.verify();
    assert!(!whole, "a log of nothing is whole");
    place.runs_nothing(&["audit log"]);
    // One that is left alone.
    let place = Place::new();
    let mut going = place.start(&[], &["sh", "-c", "echo ready; cat"]);
    place.pass(&[]);
    going.let_go();
    assert_eq!(going.end().code, 0);
    place.is_whole();
}

#[test]
fn an_edit_to_what_is_no_text() {
    let place = Place::new();
    assert_eq!(place.go(&["killswitch", "on", "--reason", "a \u{fffd} b"]).code, 0);
    let file = place.logs().pop().expect("there is one");
    let bytes = std::fs::read(&file).expect("ours");
    let at = bytes.windows(3).position(|three| three == "\u{fffd}".as_bytes()).expect("it is there");
    std::fs::write(&file, [&bytes[..at], b"\xff", &bytes[at + 3..]].concat()).expect("ours");
    place.is_found(&format!("{}:1", name(&file)));
}

#[test]
fn a_head_that_is_not_ours() {
    let (place, _, _) = some();
    let path = place.state().join("audit/head");
    let head = std::fs::read_to_string(&path).expect("ours");
    let parts = parsed(&head);
    let with = |field: &str, value: Value| {
        let mut other = parts.clone();
        other[field] = value;
        other.to_string()
    };
    let zeros = |number: usize| Value::from("0".repeat(number));
    let (other, _, _) = some();
    let others = std::fs::read_to_string(other.state().join("audit/head")).expect("ours");
    for bad in [
        String::new(),
        "garbage".into(),
        "{}".into(),
        "null".into(),
        with("seq", 4.into()),
        with("seq", 6.into()),
        with("seq", (-1).into()),
        with("seq", u64::MAX.into()),
        with("hash", zeros(64)),
        with("hash", "".into()),
        with("sig", zeros(128)),
        with("sig", "".into()),
        with("sig", "zz".into()),
        with("sig", zeros(127)),
        with("more", 1.into()),
        head.replace('}', ""),
        others,
    ] {
        std::fs::write(&path, &bad).expect("ours");
        place.is_found_and_stops("head:1");
    }
    std::fs::remove_file(&path).expect("ours");
    place.is_found_and_stops("head:1");
    // With the right one back, all is well.
    std::fs::write(&path, &head).expect("ours");
    place.is_whole();
    place.pass(&[]);
}

#[test]
fn an_older_head() {
    let (place, _, _) = some();
    let path = place.state().join("audit/head");
    let head = std::fs::read_to_string(&path).expect("ours");
    place.pass(&[]);
    std::fs::write(&path, head).expect("ours");
    place.is_found_and_stops("head:1");
}

#[test]
fn another_key() {
    let (place, file, _) = some();
    let (other, _, _) = some();
    let first = format!("{}:1", name(&file));
    let key = place.state().join("keys/audit.key");
    let ours = std::fs::read(&key).expect("ours");
    std::fs::copy(other.state().join("keys/audit.key"), &key).expect("ours");
    place.is_found_and_stops(&first);
    // A new one is made where there is none, and has not signed this.
    std::fs::remove_file(&key).expect("ours");
    place.is_found_and_stops(&first);
    for bad in ["", "zz", "0102", &"0".repeat(63), &"ä".repeat(32)] {
        std::fs::write(&key, bad).expect("ours");
        place.runs_nothing(&["audit.key"]);
    }
    std::fs::write(&key, &ours).expect("ours");
    for mode in [0o640, 0o604, 0o644] {
        set_mode(&key, mode);
        place.runs_nothing(&["audit.key", "chmod 600"]);
    }
    set_mode(&key, 0o600);
    place.is_whole();
    place.pass(&[]);
}

#[test]
fn the_key_is_nobody_elses() {
    use std::os::unix::fs::MetadataExt;
    let (place, file, _) = some();
    let mode = |path: PathBuf| std::fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!(mode(place.state()), 0o700);
    assert_eq!(mode(place.state().join("keys")), 0o700);
    assert_eq!(mode(place.state().join("keys/audit.key")), 0o600);
    assert_eq!(mode(file), 0o600);
}

#[test]
fn a_new_day_goes_on_with_the_chain() {
    let (place, file, lines) = some();
    // Yesterday's, as far as anybody can see.
    let yesterday = file.with_file_name("2020-02-29.jsonl");
    std::fs::rename(&file, &yesterday).expect("ours");
    place.is_whole();
    place.pass(&[]);
    place.is_whole();
    assert_eq!(place.logs().len(), 2);
    let export = place.go(&["audit", "export"]).stdout;
    assert!(export.starts_with(&text(&lines)) && export.lines().count() == 7, "{export}");
    // Damage in either is told by its file.
    std::fs::write(&yesterday, text(&lines[..4])).expect("ours");
    place.is_found(&format!("{}:1", name(&place.logs()[1])));
    std::fs::write(&yesterday, text(&lines)).expect("ours");
    std::fs::remove_file(&place.logs()[1]).expect("ours");
    place.is_found_and_stops("head:1");
}

#[test]
fn a_clock_that_goes_back() {
    let (place, file, _) = some();
    std::fs::rename(&file, file.with_file_name("9998-12-31.jsonl")).expect("ours");
    place.pass(&[]);
    place.pass(&[]);
    place.is_whole();
}

#[test]
fn thirty_at_once_keep_it_whole() {
    let place = Place::new();
    let mut runs = vec![];
    for n in 0..30 {
        let words: &[&str] = match n % 3 {
            0 => &["exec", "--quiet", "--", "true"],
            1 => &["exec", "--policy", "strict", "--", "true"],
            _ => &["killswitch", "off", "--tenant", "nobody"],
        };
        let child = place.hotcell(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        runs.push((n, Going { child }));
    }
    for (n, run) in runs {
        let ran = run.end();
        assert_eq!(ran.code, if n % 3 == 1 { 125 } else { 0 }, "{}", ran.stderr);
    }
    place.is_whole();
    assert_eq!(place.go(&["audit", "export"]).stdout.lines().count(), 20 + 10 + 10);
}

#[test]
fn one_that_grows_is_whole_at_every_look() {
    let place = Place::new();
    place.pass(&[]);
    let script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \"$1\" exec -- true || exit 1; done";
    let mut command = place.command("sh");
    let mut runs = command.args(["-c", script, "sh"]).arg(binary()).spawn().expect("it starts");
    while runs.try_wait().expect("it is our child").is_none() {
        let found = place.go(&["audit", "verify", "--output", "json"]).json();
        assert_eq!(found["ok"], true, "{found:#}");
    }
    assert!(runs.wait().expect("it is our child").success());
    place.is_whole();
    assert_eq!(place.go(&["audit", "export"]).stdout.lines().count(), 42);
}

#[test]
fn one_that_cannot_be_written() {
    if !is_root() {
        return skip("only root can become another user");
    }
    let place = Place::new();
    for dir in [place.dir.clone(), place.path("home"), place.path("work")] {
        set_mode(&dir, 0o755);
    }
    std::fs::create_dir(place.state()).expect("our own directory");
    chown(place.state(), Some(USER), Some(USER)).expect("root may");
    let (user, marker) = (USER.to_string(), ["exec", "--quiet", "--", "echo", "it ran"]);
    let as_user = |words: &[&str]| {
        let mut command = place.command("setpriv");
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(binary()).args(words);
        go(&mut command)
    };
    let ran = as_user(&marker);
    if ran.code != 0 {
        return skip(&format!("an ordinary user cannot run anything here: {}", ran.stderr));
    }
    let (audit, head) = (place.state().join("audit"), place.state().join("audit/head"));
    set_mode(&head, 0o400);
    as_user(&marker).refused(&["audit log", "nothing runs"]);
    // It says so, and does not look like a run.
    let listed = as_user(&["records", "--output", "json"]).json();
    assert_eq!(listed["records"][0]["status"], "denied", "{listed:#}");
    assert_eq!(listed["records"].as_array().map(Vec::len), Some(2), "{listed:#}");
    set_mode(&head, 0o600);
    // Nothing can be made there: no file for a new day.
    let file = place.logs().pop().expect("there is one");
    std::fs::rename(&file, file.with_file_name("2020-02-29.jsonl")).expect("ours");
    set_mode(&audit, 0o500);
    as_user(&marker).refused(&["audit log", "nothing runs"]);
    set_mode(&audit, 0o700);
    assert_eq!(as_user(&marker).stdout, "it ran\n");
    let file = place.logs().pop().expect("there is one");
    set_mode(&file, 0o400);
    as_user(&marker).refused(&["audit log", "nothing runs"]);
    set_mode(&file, 0o600);
    assert_eq!(as_user(&marker).stdout, "it ran\n");
    assert_eq!(as_user(&["audit", "verify"]).code, 0);
}

/// On a small file system of its own, filled up to the last byte but `left` pages.
fn on_a_full_disk(left: u32) -> Option<Ran> {
    if !is_root() {
        skip("only root can mount");
        return None;
    }
    let place = Place::new();
    std::fs::create_dir(place.state()).expect("our own directory");
    let script = r#"
        mount -t tmpfs -o size=2m,mode=700 none "$HOTCELL_STATE_DIR" || { echo skipped; exit 0; }
        "$1" exec --quiet -- true || exit 3
        cat /dev/zero > "$HOTCELL_STATE_DIR/fill" 2>/dev/null
        truncate -s "-$2" "$HOTCELL_STATE_DIR/fill"
        for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do "$1" exec --quiet -- echo "it ran" >> "$3" 2>> "$3.err"; echo $? >> "$3.codes"; done
        rm "$HOTCELL_STATE_DIR/fill"
        "$1" audit verify
        echo "verify $?"
        "$1" exec --quiet -- true
        echo "after $?"
        "$1" audit verify
        echo "again $?"
    "#;
    let mut command = place.command("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", script, "sh"]).arg(binary());
    let ran = go(command.arg((left * 4096).to_string()).arg(place.path("out")));
    if ran.stdout.contains("skipped") || ran.stderr.contains("unshare failed") {
        skip(&format!("nothing can be mounted here: {}", ran.stderr));
        return None;
    }
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap_or_default();
    let (out, err, codes) = (read("out"), read("out.err"), read("out.codes"));
    // Either it ran and was written down, or it did not run and one sentence says why.
    let refused = codes.lines().filter(|code| *code == "125").count();
    assert!(refused > 0, "the disk was never full: {codes} {err}");
    assert_eq!(codes.lines().filter(|code| *code == "0").count() + refused, 15, "{codes} {err}");
    assert_eq!(err.lines().count(), refused, "{err}");
    assert_eq!(codes.lines().last(), Some("125"), "{codes} {err}");
    assert!(out.lines().count() <= 15 - refused + 1, "{out} {codes} {err}");
    Some(ran)
}

#[test]
fn a_full_disk_runs_nothing() {
    for left in [0, 1, 2, 4] {
        let Some(ran) = on_a_full_disk(left) else { return };
        assert!(
            ran.stdout.contains("after 0\n") && ran.stdout.contains("again 0\n"),
            "{left}: {} {}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn a_full_disk_leaves_the_log_whole() {
    for left in [0, 1, 2, 4] {
        let Some(ran) = on_a_full_disk(left) else { return };
        assert!(ran.stdout.contains("verify 0\n"), "{left}: {} {}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_damaged_one_is_located_at_the_first_look() {
    let place = Place::new();
    let mut going = place.start(&[], &["sh", "-c", "echo ready; exec sleep 3600"]);
    going.child.kill().expect("it runs");
    going.end();
    let file = place.logs().pop().expect("there is one");
    let line = std::fs::read_to_string(&file).expect("ours");
    std::fs::write(&file, line.replace("ADMITTED", "FINISHED")).expect("ours");
    place.is_found(&format!("{}:1", name(&file)));
}

/// The log alone on a disk of so many pages, until it is full; then with more room.
fn in_pages(pages: u32) -> Option<Ran> {
    if !is_root() {
        skip("only root can mount");
        return None;
    }
    let place = Place::new();
    std::fs::create_dir_all(place.state().join("audit")).expect("our own directory");
    let script = r#"
        mount -t tmpfs -o "size=$2,mode=700" none "$HOTCELL_STATE_DIR/audit" || { echo skipped; exit 0; }
        for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do "$1" exec --quiet -- true 2>&1; done
        "$1" exec --quiet -- echo "it ran"
        echo "full $?"
        mount -o remount,size=4m "$HOTCELL_STATE_DIR/audit"
        "$1" audit verify
        echo "verify $?"
        "$1" exec --quiet -- true
        echo "after $?"
    "#;
    let mut command = place.command("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", script, "sh"]).arg(binary());
    let ran = go(command.arg((pages * 4096).to_string()));
    if ran.stdout.contains("skipped") || ran.stderr.contains("unshare failed") {
        skip(&format!("nothing can be mounted here: {}", ran.stderr));
        return None;
    }
    Some(ran)
}

#[test]
fn a_log_that_is_full_runs_nothing() {
    for pages in [3, 4, 5] {
        let Some(ran) = in_pages(pages) else { return };
        assert!(ran.stdout.contains("nothing runs") && ran.stdout.contains("full 125\n"), "{pages}: {}", ran.stdout);
        assert!(!ran.stdout.contains("it ran"), "{pages}: {}", ran.stdout);
    }
}

#[test]
fn a_log_that_was_full_goes_on() {
    for pages in [3, 4, 5] {
        let Some(ran) = in_pages(pages) else { return };
        assert!(ran.stdout.contains("verify 0\n") && ran.stdout.contains("after 0\n"), "{pages}: {}", ran.stdout);
    }
}
