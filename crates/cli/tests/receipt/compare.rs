//! Files beside a receipt: what is not what it speaks of is named.

use std::path::PathBuf;

use serde_json::Value;

use crate::harness::*;
use crate::receipts::*;

/// Three files, one of them below.
fn with_artifacts() -> (Signed, PathBuf) {
    let place = Place::new();
    let out = place.path("out");
    let program = "import os; os.mkdir('d')\nfor n in 'a', 'b', 'd/c': open(n, 'w').write(n)";
    let words = ["run", "--quiet", "--artifacts", out.to_str().expect("UTF-8"), "--code", program];
    (sign_in(place, &words).0, out)
}

/// The reason, and each subject with what is wrong with it.
#[track_caller]
fn found(signed: &Signed, words: &[&str]) -> (Value, Vec<(String, String)>) {
    let said = signed.verify(words);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let list = said["mismatches"].as_array().expect("a list");
    assert_eq!(said["valid"] == true, list.is_empty(), "{said}");
    (said["reason"].clone(), list.iter().map(|m| (text(&m["subject"]), text(&m["what"]))).collect())
}

#[test]
fn artifacts() {
    let (signed, out) = with_artifacts();
    let words = ["--artifacts", out.to_str().expect("UTF-8")];
    let is = |expected: &[(&str, &str)]| {
        let (reason, list) = found(&signed, &words);
        assert_eq!(reason, "artifacts_differ");
        let list: Vec<(&str, &str)> =
            list.iter().map(|(s, w)| (s.as_str(), w.split(':').next().expect("it"))).collect();
        assert_eq!(list, expected);
    };
    signed.is_valid(&words);
    let names: Vec<Value> =
        signed.statement()["subject"].as_array().expect("it").iter().map(|s| s["name"].clone()).collect();
    for name in ["artifact:a", "artifact:b", "artifact:d/c"] {
        assert!(names.contains(&name.into()), "{name} is not in {names:?}");
    }
    // Swapped.
    let (a, b) = (out.join("a"), out.join("b"));
    std::fs::write(&a, "b").expect("ours");
    std::fs::write(&b, "a").expect("ours");
    is(&[("artifact:a", "is not what was signed"), ("artifact:b", "is not what was signed")]);
    std::fs::write(&a, "a").expect("ours");
    std::fs::write(&b, "b").expect("ours");
    signed.is_valid(&words);
    // One less, one more, one elsewhere.
    std::fs::rename(out.join("d/c"), out.join("c")).expect("ours");
    is(&[("artifact:c", "is not in the receipt"), ("artifact:d/c", "is not there")]);
    std::fs::rename(out.join("c"), out.join("d/c")).expect("ours");
    // A link to the same bytes is not the file, and a pipe is not waited for.
    std::fs::remove_file(&a).expect("ours");
    std::os::unix::fs::symlink(signed.place.write("same", "a"), &a).expect("ours");
    is(&[("artifact:a", "is no regular file"), ("artifact:a", "is not there")]);
    std::fs::remove_file(&a).expect("ours");
    assert_eq!(go(signed.place.command("mkfifo").arg(&a)).code, 0);
    is(&[("artifact:a", "is no regular file"), ("artifact:a", "is not there")]);
    std::fs::remove_file(&a).expect("ours");
    std::fs::write(&a, "a").expect("ours");
    signed.is_valid(&words);
    // A directory that is not there is no answer.
    let (file, key) = (signed.file.to_str().expect("UTF-8"), signed.public());
    signed
        .place
        .go(&["receipt", "verify", file, "--key", &key, "--artifacts", "/nothing"])
        .refused(&["artifacts", "/nothing"]);
}

#[test]
fn names_that_are_no_text_are_left_out_and_stand_for_nothing() {
    let place = Place::new();
    let out = place.path("out");
    // The last is a name in UTF-8 that the others would be shown as.
    let program = "for n in b'\\xff', b'\\xfe', '\\ufffd'.encode(): open(n, 'wb').write(b'same')";
    let words = ["run", "--quiet", "--artifacts", out.to_str().expect("UTF-8"), "--code", program];
    let signed = sign_in(place, &words).0;
    let result = signed.result();
    let list = |field: &str, name: &str| -> Vec<String> {
        let all = result[field].as_array().expect("a list");
        all.iter().map(|one| one[name].as_str().expect("a text").to_owned()).collect()
    };
    assert_eq!(list("artifacts", "path"), ["\u{fffd}"]);
    assert_eq!(list("skipped_checks", "check"), [r"artifact \xfe", r"artifact \xff"]);
    assert!(list("skipped_checks", "reason").iter().all(|why| why.contains("not UTF-8")), "{result:#}");
    let words = ["--artifacts", out.to_str().expect("UTF-8")];
    signed.is_valid(&words);
    // The same bytes under a name that looks the same are another file.
    let other = out.join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff"));
    std::fs::rename(out.join("\u{fffd}"), &other).expect("ours");
    let (_, mismatches) = found(&signed, &words);
    assert_eq!(mismatches.len(), 2, "{mismatches:?}");
    std::fs::rename(&other, out.join("\u{fffd}")).expect("ours");
    signed.is_valid(&words);
}

#[test]
fn the_result() {
    let signed = sign(&["exec", "--quiet", "--", "sh", "-c", "echo hello; exit 3"]);
    let path = signed.place.path("result.json");
    let words = ["--result", path.to_str().expect("UTF-8")];
    let whole = std::fs::read_to_string(&path).expect("ours");
    signed.is_valid(&words);
    let edited = |edit: &dyn Fn(&mut Value)| {
        let mut result: Value = serde_json::from_str(&whole).expect("JSON");
        edit(&mut result);
        serde_json::to_string_pretty(&result).expect("JSON")
    };
    for (bytes, what) in [
        (edited(&|r| (r["status"], r["failure_class"]) = ("pass".into(), Value::Null)), "another status"),
        (edited(&|r| r["exit_code"] = 4.into()), "another verdict"),
        (edited(&|r| r["request_id"] = "x".into()), "another request"),
        (edited(&|r| r["stdout"] = "hullo\n".into()), "sha256"),
        (whole.replace("hello", "hullo"), "sha256"),
        (format!("{whole}\n"), "sha256"),
        ("{}".into(), "no result"),
        (String::new(), "no result"),
    ] {
        std::fs::write(&path, bytes).expect("ours");
        let (reason, list) = found(&signed, &words);
        assert_eq!((reason, list.len()), ("result_differs".into(), 1));
        assert!(list[0].0 == "result" && list[0].1.contains(what), "{what}: {list:?}");
    }
    std::fs::write(&path, &whole).expect("ours");
    signed.is_valid(&words);
    // What was printed is what would have been written.
    let (signed, ran) = sign_in(Place::new(), &["exec", "--output", "json", "--", "true"]);
    let printed = signed.place.write("printed", ran.stdout);
    signed.is_valid(&["--result", printed.to_str().expect("UTF-8")]);
}
