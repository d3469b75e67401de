//! Compilers: their own cell, their own limits, their own words, and no more trust than in what they compile.

use std::time::Duration;

use serde_json::Value;

use crate::harness::*;

/// A language whose compiler is a shell script.
fn language(place: &Place, script: &str) {
    place.write(
        "languages/made.toml",
        format!(
            "name = \"made\"\nextensions = [\"made\"]\npackage = \"dash\"\n[tools.sh]\n[[way]]\ntools = [\"sh\"]\n\
             compile.argv = [\"/bin/sh\", \"-c\", '''{script}''', \"sh\", \"{{entry}}\"]\nrun.argv = [\"/bin/sh\", \"/build/main\"]\n"
        ),
    );
}

fn made(place: &Place, script: &str, flags: &[&str]) -> (Ran, Ran) {
    language(place, script);
    let file = place.write("work/a.made", "echo ran");
    let words = || flags.iter().map(|flag| (*flag).into()).chain([file.clone().into_os_string()]);
    let with = |run: Hotcell| run.env("HOTCELL_LANGUAGES", place.path("languages")).go();
    (with(place.text(words())), with(place.run(words())))
}

#[test]
fn a_compile_error_has_the_compilers_message_and_its_status() {
    for (name, source, message, code) in [
        ("a.c", "int main(void) { return undeclared; }", "undeclared", 1),
        ("a.cpp", "int main() { return undeclared; }", "undeclared", 1),
        ("a.go", "package main\nfunc main() { undeclared() }\n", "undeclared", 2),
        ("a.rs", "fn main() { undeclared() }", "cannot find function `undeclared`", 1),
        ("A.java", "class A { public static void main(String[] a) { undeclared(); } }", "cannot find symbol", 1),
    ] {
        let place = Place::new();
        let file = place.write(&format!("work/{name}"), source);
        let text = place.text([&file]).go();
        assert_eq!(text.code, code, "{name}: {}", text.stderr);
        assert!(text.stderr.contains(message) && text.stdout.is_empty(), "{name}: {}", text.brief());
        let end = text.stderr.lines().last().unwrap_or_default();
        assert!(end.starts_with(&format!("hotcell: fail CompileError: while compiling, exit {code} (")), "{end}");
        let json = place.run([&file]).go().fails("CompileError", code);
        assert!(json.err().contains(message), "{name}: {}", json.brief());
        assert_eq!(json.phases(), ["compile"]);
        assert_eq!(json.outcome["exit_code"], code);
        assert_eq!(json.outcome["retry_class"], "deterministic");
        assert_eq!(json.outcome["phases"][0]["failure_class"], "CompileError");
        assert!(json.outcome["phases"][0]["stderr"].as_str().is_some_and(|text| text.contains(message)));
        assert_eq!(json.outcome["violations"], Value::Array(vec![]));
        assert!(json.stderr.is_empty());
        // What failed is not kept.
        assert!(!place.cache().exists() || contents(&place.cache()).is_empty());
    }
}

/// A warning of a compiler that made a program is no word of the program's.
#[test]
fn what_a_compiler_says_that_made_a_program_is_in_its_phase_alone() {
    let place = Place::new();
    let file = place.write("work/a.c", "#warning look here\nint main(void) { return 0; }\n");
    let text = place.text([&file]).go();
    assert_eq!((text.code, text.out().as_str(), text.stderr.as_str()), (0, "", ""));
    std::fs::remove_dir_all(place.cache()).expect("it is there");
    let json = place.run([&file]).go().passes();
    assert!(json.outcome["phases"][0]["stderr"].as_str().is_some_and(|text| text.contains("look here")));
    assert_eq!((&json.outcome["stderr"], &json.outcome["stdout"]), (&"".into(), &"".into()));
}

#[test]
fn a_compiler_that_takes_too_long_is_a_timeout_of_the_compile_phase() {
    let place = Place::new();
    let (text, json) = made(&place, "while :; do :; done", &["--compile-timeout", "200ms"]);
    assert_eq!(text.code, 124, "{}", text.stderr);
    let json = json.fails("TimeoutViolation", 124);
    assert_eq!(json.phases(), ["compile"]);
    assert_eq!(json.outcome["phases"][0]["failure_class"], "TimeoutViolation");
    // A real one that has no chance.
    let file = place.write("work/a.rs", "fn main() {}");
    let ran = place.run([file.as_os_str(), "--compile-timeout".as_ref(), "1ms".as_ref()]).go();
    assert_eq!(ran.fails("TimeoutViolation", 124).phases(), ["compile"]);
    // The run's own limit is another.
    let json = with_time_enough(
        Duration::from_millis(500),
        |limit| {
            let script = format!("cp $1 /work/main; sleep {}", limit.as_secs_f64() + 0.5);
            made(&Place::new(), &script, &["--timeout", &in_ms(limit)]).1
        },
        |json| json.class() != "TimeoutViolation" || !json.phases().contains(&"run"),
    );
    json.says("ran\n");
}

#[test]
fn a_compiler_that_takes_too_much_memory_is_a_violation_of_the_compile_phase() {
    let place = Place::new();
    let file = place.write("work/a.rs", "fn main() { println!(\"{}\", 1) }");
    let ran = place.run([file.as_os_str(), "--compile-memory".as_ref(), "16m".as_ref()]).go();
    let ran = ran.fails("MemoryLimitViolation", 123);
    assert_eq!(ran.phases(), ["compile"]);
    assert_eq!(ran.outcome["phases"][0]["failure_class"], "MemoryLimitViolation");
    // The run's own limit is another.
    let ran = place.run([file.as_os_str(), "--memory".as_ref(), "16m".as_ref()]).go();
    ran.says("1\n");
}

#[test]
fn a_compiler_that_makes_nothing_is_a_compile_error() {
    let place = Place::new();
    for (script, code) in [("exit 0", 0), ("ln -s /etc/passwd /work/main; mkfifo /work/fifo", 0), ("exit 7", 7)] {
        let (text, json) = made(&place, script, &[]);
        assert_eq!(json.class(), "CompileError", "{}", json.brief());
        assert_eq!(json.phases(), ["compile"]);
        assert_eq!(text.code, json.code);
        if code != 0 {
            assert_eq!(json.code, code);
        }
        assert!(!json.out().contains("ran") && !text.out().contains("ran"));
    }
}

/// A run that is not a pass must not look like one to a shell.
#[test]
fn a_compiler_that_makes_nothing_has_no_status_of_success() {
    let (text, json) = made(&Place::new(), "exit 0", &[]);
    assert!(text.code != 0 && json.code != 0, "{}", json.brief());
}

/// What the program does later is not laid to the compiler.
#[test]
fn the_summary_says_which_of_the_two_failed() {
    let end = |text: &Ran| text.stderr.lines().last().unwrap_or_default().to_owned();
    let (text, _) = made(&Place::new(), "sleep 60", &["--compile-timeout", "300ms"]);
    let want = "hotcell: fail TimeoutViolation: while compiling, wall time over 300 ms (";
    assert!(end(&text).starts_with(want), "{}", text.stderr);
    let program = "printf \"#!/bin/sh\\nexit 3\\n\" > /work/main; chmod 755 /work/main";
    let (text, json) = made(&Place::new(), program, &[]);
    assert_eq!(json.phases(), ["compile", "run"]);
    assert!(end(&text).starts_with("hotcell: fail RuntimeError: exit 3 ("), "{}", text.stderr);
}

#[test]
fn a_compiler_that_is_ended_by_a_signal_is_a_compile_error() {
    let (text, json) = made(&Place::new(), "kill -SEGV $$", &[]);
    assert_eq!(text.code, 128 + 11, "{}", text.stderr);
    let end = text.stderr.lines().last().unwrap_or_default();
    assert!(end.contains("CompileError: while compiling, the compiler was ended by signal 11 ("), "{}", text.stderr);
    let json = json.fails("CompileError", 128 + 11);
    assert_eq!((&json.outcome["exit_code"], &json.outcome["signal"]), (&Value::Null, &11.into()));
    assert_eq!(json.phases(), ["compile"]);
}

#[test]
fn a_compiler_that_floods_its_output_is_a_violation() {
    let place = Place::new();
    let (text, json) = made(&place, "head -c 40000000 /dev/zero | tr \"\\\\0\" x >&2; cp $1 /work/main", &[]);
    assert_eq!(text.code, 123, "{}", text.stderr.chars().take(2000).collect::<String>());
    assert!(text.stderr.len() < 12 << 20, "{} bytes were let through", text.stderr.len());
    let end: String = text.stderr.chars().skip(text.stderr.chars().count().saturating_sub(300)).collect();
    assert!(end.contains("hotcell: fail OutputLimitViolation: while compiling, "), "{end}");
    assert_eq!((json.class(), json.code), ("OutputLimitViolation", 123));
    assert_eq!(json.phases(), ["compile"]);
    assert!(json.stdout.len() < 30 << 20, "{} bytes of JSON", json.stdout.len());
}

/// The twin: much, and less than the limit.
#[test]
fn a_compiler_may_say_much() {
    let (text, json) = made(&Place::new(), "head -c 4000000 /dev/zero | tr \"\\\\0\" x >&2; cp $1 /work/main", &[]);
    assert_eq!((text.code, text.out().as_str(), text.stderr.as_str()), (0, "ran\n", ""));
    assert_eq!((json.class(), json.out().as_str()), ("none", "ran\n"));
}

#[test]
fn a_compiler_has_nothing_of_the_callers() {
    let place = Place::new();
    let flags = ["--env", "FOR_THE_PROGRAM=1", "--network", "local", "--no-cache"];
    let (_, json) = made(&place, "env >&2; cat >&2; cp $1 /work/main", &flags);
    let said = json.outcome["phases"][0]["stderr"].as_str().expect("text");
    assert!(said.contains("PATH=") && !said.contains("FOR_THE_PROGRAM"), "{said}");
    assert!(!said.contains("SECRET_OF_THE_HOST"), "{said}");
    json.says("ran\n");
}

#[test]
fn the_program_gets_the_standard_input_and_not_the_compiler() {
    let place = Place::new();
    language(&place, "cat > /work/stolen; cp $1 /work/main");
    let file = place.write("work/a.made", "cat; wc -c < /build/stolen");
    let ran = place.run([&file]).env("HOTCELL_LANGUAGES", place.path("languages")).stdin("for the program\n").go();
    ran.says("for the program\n0\n");
}

fn cargo(place: &Place, build: &str) -> Ran {
    place.write("crate/Cargo.toml", "[package]\nname = \"it\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    place.write("crate/src/main.rs", "fn main() { println!(\"ran\") }");
    place.write("crate/build.rs", format!("fn main() {{ {build} }}"));
    place.run([place.path("crate")]).go()
}

#[test]
fn a_build_script_that_connects_is_a_violation_and_the_program_never_runs() {
    let place = Place::new();
    // It swallows the refusal, and the program could be made.
    let ran = cargo(&place, "let _ = std::net::TcpStream::connect(\"192.0.2.1:80\");");
    let ran = ran.fails("NetworkAccessViolation", 123);
    assert_eq!((ran.phases(), ran.out().contains("ran")), (vec!["compile"], false), "{}", ran.brief());
    assert_eq!(ran.outcome["violations"][0]["detail"]["address"], "192.0.2.1:80");
    assert!(!place.cache().exists() || contents(&place.cache()).is_empty(), "it was kept");
}

#[test]
fn a_build_script_that_writes_outside_is_a_violation_and_the_program_never_runs() {
    let place = Place::new();
    let build = "let _ = std::fs::write(\"/etc/evil\", \"\"); let _ = std::fs::write(\"/src/src/main.rs\", \"\");";
    let ran = cargo(&place, build).fails("FilesystemWriteViolation", 123);
    assert_eq!((ran.phases(), ran.out().contains("ran")), (vec!["compile"], false), "{}", ran.brief());
    assert_eq!(ran.outcome["violations"][0]["detail"]["path"], "/etc/evil");
    let paths: Vec<_> =
        ran.outcome["violations"].as_array().into_iter().flatten().map(|v| &v["detail"]["path"]).collect();
    assert!(paths.contains(&&"/src/src/main.rs".into()), "{paths:?}");
    assert!(!std::path::Path::new("/etc/evil").exists());
    let files = place.files(&["home/.cache"]);
    assert_eq!(files, ["crate/Cargo.toml", "crate/build.rs", "crate/src/main.rs"], "cargo left something");
}

/// The twin: a build script that makes what it is there for.
#[test]
fn a_build_script_may_make_sources() {
    let place = Place::new();
    place.write("crate/Cargo.toml", "[package]\nname = \"it\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    place.write("crate/src/main.rs", "fn main() { println!(\"{}\", include!(concat!(env!(\"OUT_DIR\"), \"/n.rs\"))) }");
    place.write(
        "crate/build.rs",
        "fn main() { let out = std::env::var(\"OUT_DIR\").unwrap(); std::fs::write(out + \"/n.rs\", \"42\").unwrap(); }",
    );
    assert!(!place.run([place.path("crate")]).go().says("42\n").cached());
    assert!(place.run([place.path("crate")]).go().says("42\n").cached());
    assert_eq!(place.files(&["home/.cache"]), ["crate/Cargo.toml", "crate/build.rs", "crate/src/main.rs"]);
}

#[test]
fn what_a_caller_allows_the_program_is_not_allowed_to_the_compiler() {
    let place = Place::new();
    let flags = ["--network", "local", "--on-violation", "note"];
    let script = "exec 2>/dev/null; echo x > /etc/evil; cp $1 /work/main";
    let (_, json) = made(&place, script, &flags);
    assert_eq!(json.fails("FilesystemWriteViolation", 123).phases(), ["compile"]);
}

/// The processes of a compiler that carries this in its environment.
fn compilers(mark: &str) -> usize {
    let all = std::fs::read_dir("/proc").expect("proc is mounted").flatten();
    let has = |path: std::path::PathBuf| {
        let env = std::fs::read(path.join("environ")).unwrap_or_default();
        env.split(|byte| *byte == 0).any(|pair| pair == format!("COMPILER_MARK={mark}").as_bytes())
    };
    all.filter(|entry| has(entry.path())).count()
}

#[track_caller]
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !done() {
        assert!(std::time::Instant::now() < until, "{what} did not come");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Called off, or killed outright, while a compiler is at work: it is gone, and nothing is kept.
#[test]
fn a_caller_that_gives_up_takes_the_compiler_along() {
    use rustix::process::{Pid, Signal, kill_process};
    for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2), (Signal::KILL, 9)] {
        let place = Place::new();
        language(&place, "cp $1 /work/main; sleep 1000 & sleep 1000");
        let mark = format!("{}-{number}", std::process::id());
        let text = std::fs::read_to_string(place.path("languages/made.toml")).expect("it is there");
        let text = text.replace("[[way]]", &format!("[env]\nCOMPILER_MARK = \"{mark}\"\n[[way]]"));
        place.write("languages/made.toml", text);
        let file = place.write("work/a.made", "echo ran");
        let mut child = std::process::Command::new(binary())
            .arg("run")
            .arg(&file)
            .args(["--output", "json"])
            .env("HOME", place.path("home"))
            .env("HOTCELL_LANGUAGES", place.path("languages"))
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("hotcell starts");
        wait_until("the compiler", || compilers(&mark) >= 2);
        let pid = Pid::from_raw(child.id() as i32).expect("a number");
        kill_process(pid, signal).expect("it is ours");
        let mut said = String::new();
        let mut out = child.stdout.take().expect("piped");
        std::io::Read::read_to_string(&mut out, &mut said).expect("text");
        let status = child.wait().expect("ours");
        wait_until("the end of the compiler", || compilers(&mark) == 0);
        if number != 9 {
            assert_eq!(status.code(), Some(128 + number), "{said}");
            let outcome: Value = serde_json::from_str(&said).expect("an Outcome");
            assert_eq!(outcome["terminal_event"], "Cancelled", "{outcome}");
            assert_eq!(outcome["phases"].as_array().map(Vec::len), Some(1), "{outcome}");
        }
        assert!(!said.contains("ran\n") && contents(&place.cache()).is_empty());
    }
}

/// A line for what takes long, on a terminal alone, and gone when it is over.
#[test]
fn compiling_is_told_on_a_terminal_alone() {
    let place = Place::new();
    language(&place, "sleep 1; cp $1 /work/main");
    let file = place.write("work/a.made", "echo ran");
    let on_a_terminal = |flags: &str| {
        let words = format!("{} run {} --no-cache {flags}", binary().display(), file.display());
        let mut script = std::process::Command::new("script");
        script.args(["-q", "-e", "-c", &words, "/dev/null"]).env("HOTCELL_LANGUAGES", place.path("languages"));
        script.env("HOME", place.path("home")).env("NO_COLOR", "1").stdin(std::process::Stdio::null());
        String::from_utf8_lossy(&script.output().expect("script is installed").stdout).into_owned()
    };
    let said = on_a_terminal("");
    let (line, rest) = said.split_once("ran").expect("it ran");
    assert!(line.contains("hotcell: compiling made ... ") && line.ends_with("\r\x1b[K"), "{said:?}");
    assert!(!rest.contains("compiling") && rest.contains("hotcell: pass ("), "{said:?}");
    assert_eq!(on_a_terminal("--quiet"), "ran\r\n");
    // To a pipe, nothing.
    let ran = place.text([file.as_os_str(), "--no-cache".as_ref()]).env("HOTCELL_LANGUAGES", place.path("languages"));
    let ran = ran.go();
    assert_eq!((ran.code, ran.out().as_str(), ran.stderr.as_str()), (0, "ran\n", ""));
}

/// What is little for a program is enough to begin one, in every language: runtimes and compilers are not counted in.
#[test]
fn tight_limits_of_the_run_leave_every_language_possible() {
    let place = Place::new();
    for (language, source) in [
        ("python", "print(1)"),
        ("javascript", "console.log(1)"),
        ("go", "package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }\n"),
        ("rust", "fn main() { println!(\"1\") }"),
        ("java", "class It { public static void main(String[] a) { System.out.println(1); } }"),
        ("bash", "echo 1"),
        ("c", "#include <stdio.h>\nint main(void) { puts(\"1\"); return 0; }\n"),
    ] {
        for flags in [["--processes", "1"], ["--scratch", "0"], ["--memory", "64m"], ["--output-limit", "2"]] {
            place.run(["--lang", language, "--code", source].iter().chain(&flags)).go().says("1\n");
        }
    }
}
