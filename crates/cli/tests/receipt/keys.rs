//! The key: made once, kept from others, and a run that wants a receipt and can't have one does not begin.

use std::os::unix::fs::{PermissionsExt, chown};

use crate::harness::*;
use crate::receipts::*;

const MARK: [&str; 4] = ["--", "sh", "-c", "echo it ran"];

/// Refused with these parts, before anything ran or was written.
#[track_caller]
fn runs_nothing(place: &Place, words: &[&str], parts: &[&str]) {
    place.go(&[&["exec"], words, &MARK].concat()).refused(parts);
    place.go(&[&["run", "--code", "print('it ran')"], words].concat()).refused(parts);
}

#[test]
fn it_is_made_at_the_first_need_and_stays() {
    let signed = some();
    let keys = signed.place.state().join("keys");
    let mode = |name: &str| keys.join(name).metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode("receipt.key"), mode("")), (0o600, 0o700));
    let key = signed.place.go(&["receipt", "key", "--output", "json"]).json();
    assert_eq!(key["key"], signed.public());
    assert_eq!(key["keyid"], signed.envelope()["signatures"][0]["keyid"]);
    assert_eq!(key["file"], keys.join("receipt.pub").to_str().expect("UTF-8"));
    let text = signed.place.go(&["receipt", "key"]);
    assert!(text.stdout.contains(&signed.public()) && text.code == 0, "{}", text.stdout);
    // The public half can be made again.
    std::fs::remove_file(keys.join("receipt.pub")).expect("ours");
    assert_eq!(signed.place.go(&["receipt", "key", "--output", "json"]).json(), key);
    signed.is_valid(&[]);
    // Before any run, too; and a run that wants no receipt makes no key.
    let place = Place::new();
    place.pass(&[]);
    assert!(!place.state().join("keys/receipt.key").exists());
    assert_eq!(place.go(&["receipt", "key"]).code, 0);
    assert!(place.state().join("keys/receipt.key").exists());
}

#[test]
fn those_who_come_at_once_get_the_same_one() {
    let place = Place::new();
    let start = |number: u32| {
        let file = place.path(&format!("r{number}"));
        let mut command = place.hotcell(&["exec", "--quiet", "--receipt", file.to_str().expect("UTF-8"), "--", "true"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        (file, Going { child: command.spawn().expect("it starts") })
    };
    let all: Vec<_> = (0..6).map(start).collect();
    let ends: Vec<_> = all.into_iter().map(|(file, going)| (file, going.end())).collect();
    let public = place.state().join("keys/receipt.pub");
    for (file, ran) in ends {
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        let words = ["receipt", "verify", file.to_str().expect("UTF-8"), "--key", public.to_str().expect("UTF-8")];
        assert_eq!(place.go(&words).code, 0);
    }
    assert_eq!(std::fs::read_dir(place.state().join("keys")).expect("ours").count(), 4, "two keys and their halves");
}

#[test]
fn one_that_others_can_read_is_refused() {
    let signed = some();
    let (key, file) = (signed.place.state().join("keys/receipt.key"), signed.place.path("another.json"));
    let words = ["--receipt", file.to_str().expect("UTF-8")];
    for mode in [0o644, 0o640, 0o604, 0o620, 0o666] {
        set_mode(&key, mode);
        runs_nothing(&signed.place, &words, &["receipt.key", "chmod 600"]);
        signed.place.go(&["receipt", "key"]).refused(&["receipt.key", "chmod 600"]);
    }
    set_mode(&key, 0o600);
    let keys = signed.place.state().join("keys");
    set_mode(&keys, 0o777);
    runs_nothing(&signed.place, &words, &["keys", "chmod 700"]);
    set_mode(&keys, 0o700);
    assert!(!file.exists());
    // The twin, and those who have the public key need no other.
    set_mode(&key, 0o400);
    assert_eq!(signed.place.go(&[&["exec", "--quiet"], &words[..], &["--", "true"]].concat()).code, 0);
    set_mode(&key, 0o644);
    signed.is_valid(&[]);
}

#[test]
fn one_that_is_none_is_refused() {
    let signed = some();
    let file = signed.place.path("another.json");
    let words = ["--receipt", file.to_str().expect("UTF-8")];
    let (key, public) = ("state/keys/receipt.key", "state/keys/receipt.pub");
    let whole = std::fs::read(signed.place.path(key)).expect("ours");
    for garbage in ["", "x", "00", &"0".repeat(63), &"g".repeat(64), &"0".repeat(5000), &"ä".repeat(32)] {
        signed.place.write(key, garbage);
        runs_nothing(&signed.place, &words, &["receipt.key", "no key"]);
    }
    signed.place.write(key, &whole);
    signed.place.write(public, "0".repeat(64));
    runs_nothing(&signed.place, &words, &["receipt.pub", "does not belong"]);
    assert!(!file.exists());
}

#[test]
fn without_a_place_for_it_nothing_runs() {
    let place = Place::new();
    let file = place.path("r.json");
    let words = ["exec", "--receipt", file.to_str().expect("UTF-8"), "--", "echo", "it ran"];
    go(place.hotcell(&words).env_remove("HOTCELL_STATE_DIR")).refused(&["--receipt", "--state-dir"]);
    assert!(!file.exists());
    // The twin: with one.
    let dir = place.path("elsewhere");
    let named = [&words[..1], &["--state-dir", dir.to_str().expect("UTF-8")], &words[1..]].concat();
    assert_eq!(go(place.hotcell(&named).env_remove("HOTCELL_STATE_DIR")).code, 0);
    assert!(file.exists());
}

#[test]
fn a_file_that_cannot_be_written_is_found_before_the_run() {
    let place = Place::new();
    let old = place.write("old", "an older receipt");
    let old = old.to_str().expect("UTF-8");
    runs_nothing(&place, &["--receipt", old], &["old", "there already", "new file"]);
    assert_eq!(std::fs::read(old).expect("ours"), b"an older receipt");
    std::os::unix::fs::symlink("nowhere", place.path("link")).expect("ours");
    let link = place.path("link");
    runs_nothing(&place, &["--receipt", link.to_str().expect("UTF-8")], &["there already"]);
    runs_nothing(&place, &["--receipt", "/nothing/r.json"], &["cannot write", "/nothing/r.json"]);
    runs_nothing(&place, &["--receipt", "-"], &["cannot write"]);
    let new = place.path("new");
    let new = new.to_str().expect("UTF-8");
    runs_nothing(&place, &["--receipt", new, "--result", new], &["the same file"]);
    assert!(!place.path("new").exists());
    assert_eq!(place.records(&[]), Vec::<serde_json::Value>::new());
}

#[test]
fn a_key_to_verify_with() {
    let signed = some();
    let file = signed.file.to_str().expect("UTF-8");
    let with = |key: &str| signed.place.go(&["receipt", "verify", file, "--key", key]);
    let public = signed.place.state().join("keys/receipt.pub");
    for key in [signed.public(), signed.public().to_uppercase(), public.to_str().expect("UTF-8").to_owned()] {
        assert_eq!(with(&key).code, 0, "{key}");
    }
    let order_two = format!("ec{}7f", "f".repeat(60));
    for (key, part) in [
        ("0".repeat(64), "anybody can sign"),
        (format!("01{}", "0".repeat(62)), "anybody can sign"),
        (order_two, "anybody can sign"),
        (format!("02{}", "0".repeat(62)), "no point"),
        ("0".repeat(63), "cannot read"),
        ("/nothing".into(), "cannot read"),
        ("/".into(), "cannot read"),
        (signed.place.write("empty", "").display().to_string(), "no public key"),
        (signed.place.write("long", "0".repeat(5000)).display().to_string(), "more than"),
        (signed.place.write("half", "\u{ff}".repeat(32)).display().to_string(), "no public key"),
    ] {
        with(&key).refused(&[part]);
    }
    signed.place.go(&["receipt", "verify", file]).refused(&["--key"]);
    signed
        .place
        .go(&["receipt", "verify", "/nothing", "--key", &signed.public()])
        .refused(&["cannot read", "/nothing"]);
}

#[test]
fn an_ordinary_user_has_receipts_too() {
    if !is_root() {
        return skip("only root can become another user; all other tests are by an ordinary one");
    }
    let place = Place::new();
    let own = place.path("own");
    copy_program(binary(), place.path("hotcell"));
    std::fs::create_dir_all(&own).expect("ours");
    chown(&own, Some(USER), Some(USER)).expect("root may");
    let user = USER.to_string();
    let as_user = |words: &[&str]| {
        let mut command = place.command("setpriv");
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(place.path("hotcell")).args(words);
        go(command.env("HOTCELL_STATE_DIR", own.join("state")).env("HOME", &own).current_dir(&own))
    };
    let ran = as_user(&["exec", "--quiet", "--receipt", "r.json", "--", "echo", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\n"), "{}", ran.stderr);
    let ran = as_user(&["receipt", "verify", "r.json", "--key", "state/keys/receipt.pub"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // And root verifies what a user signed.
    let (file, key) = (own.join("r.json"), own.join("state/keys/receipt.pub"));
    let words = ["receipt", "verify", file.to_str().expect("UTF-8"), "--key", key.to_str().expect("UTF-8")];
    assert_eq!(place.go(&words).code, 0);
}
