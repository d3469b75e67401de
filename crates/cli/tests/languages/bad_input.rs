//! Bad input: a clear sentence each, the right exit status, nothing run and nothing left.

use std::os::unix::fs::symlink;

use crate::harness::*;

/// Refused as text and as JSON, with one sentence that has all of these; nothing is left.
#[track_caller]
fn refused(place: &Place, words: &[&str], parts: &[&str]) {
    let before = place.files(&[]);
    let text = place.text(words).go().refused(parts);
    let json = place.run(words).go().refused(parts);
    assert_eq!(text.stderr, json.stderr);
    assert_eq!(place.files(&[]), before, "something was left");
}

#[test]
fn an_unknown_language() {
    let place = Place::new();
    place.write("work/a.py", "print(1)");
    refused(&place, &["--lang", "cobol", "a.py"], &["`cobol`", "python", "javascript", "go", "rust", "java"]);
    refused(&place, &["--lang", "", "--code", "1"], &["``"]);
    refused(&place, &["--lang", "Python", "--code", "1"], &["`Python`", "python"]);
}

#[test]
fn an_extension_that_says_nothing() {
    let place = Place::new();
    for name in ["a.xyz", "noextension", ".py", "a.", "a.PY"] {
        place.write(&format!("work/{name}"), "print(1)");
        refused(&place, &[name], &[name, "--lang", "python"]);
    }
    place.write("work/empty/nothing.txt", "");
    refused(&place, &["empty"], &["empty", "--lang"]);
    place.write("work/both/a.py", "");
    place.write("work/both/a.rb", "");
    place.write("work/both/b.js", "");
    refused(&place, &["both"], &["both", "--lang"]);
}

#[test]
fn a_source_that_is_not_utf8() {
    let place = Place::new();
    place.write("work/a.py", b"# caf\xe9\nprint(1)".as_slice());
    refused(&place, &["a.py"], &["a.py", "UTF-8", "byte 5"]);
    place.write("work/a.c", b"\xff\xfe\0".as_slice());
    refused(&place, &["a.c"], &["a.c", "UTF-8", "byte 0"]);
    let ran = place.run(["-"]).stdin(b"print('\xff')".as_slice()).go();
    ran.refused(&["UTF-8", "byte 7"]);
}

#[test]
fn a_source_that_is_too_large() {
    let place = Place::new();
    let path = place.write("work/a.py", "");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("ours");
    for (bytes, said) in [((64 << 20) + 1, "67108865"), (1 << 30, "1073741824"), (1 << 40, "1099511627776")] {
        file.set_len(bytes).expect("sparse");
        refused(&place, &["a.py"], &["a.py", said, "67108864"]);
    }
    refused(&place, &["--lang", "python", "/dev/zero"], &["/dev/zero", "67108864"]);
    place.run(["-"]).stdin(vec![b'#'; (64 << 20) + 1]).go().refused(&["67108864"]);
}

#[test]
fn an_entry_that_does_not_exist() {
    let place = Place::new();
    place.write("work/project/main.py", "print(1)");
    place.write("work/project/lib/x.py", "");
    refused(&place, &["project", "--entry", "other.py"], &["other.py", "project"]);
    refused(&place, &["--input", "project", "--entry", "other.py"], &["other.py", "project"]);
    refused(&place, &["--input", "project", "project/other.py"], &["project/other.py"]);
    refused(&place, &["project", "--entry", "lib", "--lang", "python"], &["lib"]);
    refused(&place, &["nowhere.py"], &["nowhere.py", "No such file"]);
    refused(&place, &["--input", "nowhere", "--lang", "python"], &["nowhere"]);
    refused(&place, &["--entry", "main.py"], &["FILE"]);
    refused(&place, &["--lang", "python"], &["FILE"]);
    refused(&place, &[], &["FILE"]);
    place.write("work/many/a.py", "");
    place.write("work/many/b.py", "");
    refused(&place, &["many"], &["many", "main.py"]);
}

#[test]
fn a_path_that_leads_out() {
    let place = Place::new();
    place.write("work/project/main.py", "print(1)");
    place.write("work/secret.py", "print('secret')");
    for entry in ["../secret.py", "lib/../../secret.py", "/etc/passwd", "./../secret.py"] {
        refused(&place, &["project", "--lang", "python", "--entry", entry], &[entry]);
    }
    refused(&place, &["--input", "project", "secret.py"], &["secret.py", "--input"]);
    refused(&place, &["--input", "project", "project/../secret.py"], &["secret.py", "--input"]);
    symlink("../secret.py", place.path("work/project/link.py")).expect("ours");
    refused(&place, &["project", "--entry", "link.py"], &["`link.py`", "leads out of", "project"]);
    refused(&place, &["--input", "project", "project/link.py"], &["link.py"]);
}

/// Where the entry is not named, what it is by default leads nowhere else.
#[test]
fn a_default_entry_that_leads_out() {
    let place = Place::new();
    place.write("work/secret.py", "print('secret')");
    place.write("work/whole/go.mod", "module whole\n");
    for (dir, entry, to) in [
        ("relative", "main.py", "../secret.py".to_owned()),
        ("absolute", "main.py", place.path("work/secret.py").display().to_string()),
        ("host", "index.js", "/etc/passwd".to_owned()),
        ("marked", "Cargo.toml", "../whole/go.mod".to_owned()),
        ("above", "main.sh", "below/../../secret.py".to_owned()),
    ] {
        std::fs::create_dir_all(place.path(&format!("work/{dir}/below"))).expect("our own directory");
        symlink(to, place.path(&format!("work/{dir}/{entry}"))).expect("ours");
        refused(&place, &[dir], &[&format!("`{entry}`"), "leads out of", dir]);
        refused(&place, &["--input", dir], &[&format!("`{entry}`"), "leads out of", dir]);
    }
    // One that stays inside is as good as a file.
    place.write("work/inside/below/real.py", "print('inside')");
    symlink("below/../below/real.py", place.path("work/inside/main.py")).expect("ours");
    place.run(["inside"]).go().says("inside\n");
    // A directory that is reached by a link is no less one.
    symlink("inside", place.path("work/link")).expect("ours");
    place.run(["link"]).go().says("inside\n");
}

#[test]
fn a_link_where_a_file_was_promised() {
    let place = Place::new();
    symlink("nowhere", place.path("work/dangling.py")).expect("ours");
    symlink("loop.py", place.path("work/loop.py")).expect("ours");
    place.write("work/project/main.py", "");
    symlink("nowhere.py", place.path("work/project/dangling.py")).expect("ours");
    refused(&place, &["dangling.py"], &["dangling.py", "No such file"]);
    refused(&place, &["loop.py"], &["loop.py"]);
    refused(&place, &["project", "--entry", "dangling.py"], &["dangling.py"]);
}

#[test]
fn two_programs_at_once() {
    let place = Place::new();
    place.write("work/a.py", "print(1)");
    place.write("work/project/main.py", "print(1)");
    refused(&place, &["--code", "print(2)", "a.py"], &["--code"]);
    refused(&place, &["--code", "print(2)", "-"], &["--code"]);
    refused(&place, &["project", "--input", "project"], &["two directories"]);
    refused(&place, &["--code", "print(2)", "--input", "project"], &["--input"]);
}

/// A program that is named by a file is not named by an entry as well; what stands there for nothing is said.
#[test]
fn an_entry_beside_a_file_is_not_silently_dropped() {
    let place = Place::new();
    place.write("work/a.py", "print(1)");
    refused(&place, &["a.py", "--entry", "b.py"], &["--entry"]);
    refused(&place, &["--code", "print(1)", "--entry", "b.py"], &["--entry"]);
}

#[test]
fn a_toolchain_that_crashes() {
    let place = Place::new();
    let made = |script: &str, run: &str| {
        place.write(
            "languages/made.toml",
            format!(
                "name = \"made\"\nextensions = [\"made\"]\npackage = \"dash\"\n[tools.sh]\n[[way]]\ntools = [\"sh\"]\n\
                 {script}\nrun.argv = [{run}]\n"
            ),
        );
        let file = place.write("work/a.made", "echo ran");
        place.run([&file]).env("HOTCELL_LANGUAGES", place.path("languages")).go()
    };
    let crash = "[\"/bin/sh\", \"-c\", \"kill -SEGV $$\"]";
    let ran = made(&format!("compile.argv = {crash}"), "\"/build/main\"").fails("CompileError", 128 + 11);
    assert!(ran.outcome["message"].as_str().is_some_and(|message| message.contains("signal 11")), "{}", ran.brief());
    made("", "\"/bin/sh\", \"-c\", \"kill -SEGV $$\"").fails("Signaled", 128 + 11);
    // One that is not there, and one that can't be executed.
    made("compile.argv = [\"/nowhere/cc\"]", "\"/build/main\"").fails("SetupFailure", 127);
    made("compile.argv = [\"/etc/passwd\"]", "\"/build/main\"").fails("SetupFailure", 126);
    made("", "\"/nowhere/interpreter\"").fails("SetupFailure", 127);
    // A parser that crashes accuses nobody of bad syntax.
    let ran = made(&format!("parse.argv = {crash}"), "\"/bin/sh\", \"-c\", \"exit 3\"");
    ran.fails("RuntimeError", 3);
    assert_eq!(place.files(&["home/.cache"]), ["languages/made.toml", "work/a.made"]);
}

#[test]
fn a_missing_toolchain_names_its_package() {
    let place = Place::new();
    std::fs::create_dir(place.path("empty")).expect("ours");
    for (name, tool, package) in [
        ("a.py", "python3", "python3"),
        ("a.js", "node", "nodejs"),
        ("a.rs", "rustc", "rustc"),
        ("a.c", "cc", "gcc"),
        ("a.cpp", "c++", "g++"),
        ("a.sh", "bash", "bash"),
    ] {
        let file = place.write(&format!("work/{name}"), "");
        let ran = place.run([&file]).env("PATH", place.path("empty")).go();
        ran.refused(&[&format!("`{tool}`"), "install", package]);
        std::fs::remove_file(file).expect("ours");
    }
    // An empty PATH, and none at all.
    let file = place.write("work/a.py", "print(1)");
    place.run([&file]).env("PATH", "").go().refused(&["install python3"]);
    place.run([&file]).without("PATH").go().refused(&["install python3"]);
    assert_eq!(place.files(&[]), ["work/a.py"]);
}

/// A Cargo project is not one of single files for want of cargo.
#[test]
fn a_marked_directory_names_the_tool_of_its_kind() {
    let place = Place::new();
    place.write("project/Cargo.toml", "[package]\nname = \"it\"\nversion = \"0.1.0\"\n");
    place.write("project/src/main.rs", "fn main() {}");
    std::fs::create_dir(place.path("bin")).expect("ours");
    copy_program("/usr/bin/env", place.path("bin/rustc"));
    copy_program("/usr/bin/env", place.path("bin/cc"));
    let ran = place.run([place.path("project")]).env("PATH", place.path("bin")).go();
    ran.refused(&["`cargo`", "install cargo"]);
}

#[test]
fn a_directory_with_too_many_sources() {
    let place = Place::new();
    for n in 0..=5000 {
        place.write(&format!("project/d{}/a{n}.c", n % 50), "");
    }
    place.write("project/main.c", "int main(void) { return 0; }");
    place.run([place.path("project")]).go().refused(&["project", "5000"]);
}
