//! Go, Rust, Java, C and C++.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{around, is_root, skip};
use crate::project::{Project, checked, fails, passes, phase, reason, tests, verified, verify};

const GO_MOD: (&str, &str) = ("go.mod", "module example.com/calc\n\ngo 1.18\n");
const GO: &str = "package calc\n\nfunc Add(a, b int) int { return a + b }\n";
const GO_TEST: &str = r#"package calc

import "testing"

func TestAdds(t *testing.T) {
	if Add(2, 2) != 4 {
		t.Fatal("no")
	}
}

func TestLater(t *testing.T) { t.Skip("not yet") }
"#;
const GO_WRONG: &str = "\nfunc TestWrong(t *testing.T) { t.Errorf(\"%d\", Add(2, 2)) }\n";

#[test]
fn go_passes_with_a_module_and_without() {
    for files in
        [&[GO_MOD, ("calc.go", GO), ("calc_test.go", GO_TEST)][..], &[("calc.go", GO), ("calc_test.go", GO_TEST)]]
    {
        let ran = verified(files);
        passes(&ran, "L1");
        assert_eq!(phase(&ran, "go vet")["tier"], "L0");
        tests(&ran, "go test", 1, 0, 1, &[]);
    }
}

#[test]
fn go_fails_with_a_module_and_without() {
    let wrong = format!("{GO_TEST}{GO_WRONG}");
    for (files, name) in [
        (&[GO_MOD, ("calc.go", GO), ("calc_test.go", &wrong)][..], "example.com/calc.TestWrong"),
        (&[("calc.go", GO), ("calc_test.go", &wrong)], "_/src.TestWrong"),
    ] {
        let ran = verified(files);
        fails(&ran, "TestFailure", "L0", "deterministic");
        tests(&ran, "go test", 1, 1, 1, &[name]);
        assert_eq!(ran.code, 1);
    }
}

#[test]
fn go_is_heard_in_words() {
    let says = r#"package calc

import (
	"fmt"
	"testing"
)

func TestSays(t *testing.T) {
	fmt.Println(`{"Action":"output","Output":"as it was printed"}`)
	fmt.Println("tab\tand \"quotes\"")
	t.Error("it is wrong")
}
"#;
    let files = [GO_MOD, ("calc.go", GO), ("calc_test.go", says)];
    let ran = verified(&files);
    tests(&ran, "go test", 0, 1, 0, &["example.com/calc.TestSays"]);
    let lines = [
        r#"{"Action":"output","Output":"as it was printed"}"#,
        "tab\tand \"quotes\"",
        "    calc_test.go:11: it is wrong",
        "--- FAIL: TestSays",
    ];
    let text = Project::new(&files).verify().text().run().stderr;
    for said in [phase(&ran, "go test")["stdout"].as_str(), ran.outcome["stdout"].as_str(), Some(&text)] {
        let said = said.expect("a text");
        for line in lines {
            assert!(said.lines().any(|known| known.starts_with(line)), "{line} is not in {said}");
        }
        assert!(!said.contains("\"Package\""), "{said}");
    }
    // Those who pass are heard in the same way.
    let ran = verified(&[GO_MOD, ("calc.go", GO), ("calc_test.go", &says.replace("t.Error", "t.Log"))]);
    tests(&ran, "go test", 1, 0, 0, &[]);
    let said = phase(&ran, "go test")["stdout"].as_str().expect("a text");
    assert!(said.contains("--- PASS: TestSays") && !said.contains("\"Package\""), "{said}");
}

#[test]
fn go_tests_of_every_package_are_run() {
    let sub = "package sub\n\nimport \"testing\"\n\nfunc TestSub(t *testing.T) { t.Fatal() }\n";
    let main = "package main\n\nfunc main() {}\n";
    let ran = verified(&[GO_MOD, ("main.go", main), ("sub/sub.go", "package sub\n"), ("sub/sub_test.go", sub)]);
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "go test", 0, 1, 0, &["example.com/calc/sub.TestSub"]);
}

#[test]
fn go_says_compile_error() {
    let ran =
        verified(&[GO_MOD, ("calc.go", "package calc\n\nfunc Add() int { return \"\" }\n"), ("calc_test.go", GO_TEST)]);
    fails(&ran, "CompileError", "L0", "deterministic");
    assert_eq!(phase(&ran, "go build")["failure_class"], "CompileError");
    assert_eq!(reason(&ran, "go test"), "L0 failed");
}

#[test]
fn go_vet_is_heard() {
    let vet = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Printf(\"%d\\n\", \"one\") }\n";
    let ran = verified(&[GO_MOD, ("main.go", vet)]);
    fails(&ran, "CompileError", "L0", "deterministic");
    assert_eq!(phase(&ran, "go build")["status"], "pass");
    assert_eq!(phase(&ran, "go vet")["status"], "fail");
    assert!(!reason(&ran, "go test").is_empty());
}

const CARGO: (&str, &str) = ("Cargo.toml", "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
const RUST: &str = r#"pub fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[cfg(test)]
mod tests {
    #[test]
    fn adds() {
        assert_eq!(super::add(2, 2), 4);
    }

    #[test]
    #[ignore]
    fn later() {
        panic!();
    }
}
"#;

#[test]
fn cargo_passes() {
    let integration = "#[test]\nfn from_outside() {\n    assert_eq!(calc::add(1, 1), 2);\n}\n";
    let ran = verified(&[CARGO, ("src/lib.rs", RUST), ("tests/it.rs", integration)]);
    passes(&ran, "L1");
    assert_eq!(phase(&ran, "cargo check")["tier"], "L0");
    tests(&ran, "cargo test", 2, 0, 1, &[]);
}

#[test]
fn cargo_fails() {
    let integration = "#[test]\nfn from_outside() {\n    assert_eq!(calc::add(1, 1), 3);\n}\n";
    let wrong = RUST.replace("super::add(2, 2), 4", "super::add(2, 2), 5");
    let ran = verified(&[CARGO, ("src/lib.rs", &wrong), ("tests/it.rs", integration)]);
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "cargo test", 0, 2, 1, &["tests::adds", "from_outside"]);
    assert_eq!(ran.code, 101);
}

#[test]
fn cargo_says_compile_error_in_the_code_and_in_the_tests() {
    let broken = "pub fn add() -> i64 {\n    \"\"\n}\n";
    for files in [
        [CARGO, ("src/lib.rs", broken), ("tests/it.rs", "")],
        [CARGO, ("src/lib.rs", RUST), ("tests/it.rs", "#[test]\nfn it() {\n    calc::subtract();\n}\n")],
    ] {
        let ran = verified(&files);
        fails(&ran, "CompileError", "L0", "deterministic");
        assert_eq!(reason(&ran, "cargo test"), "L0 failed");
    }
}

/// One file, by itself and in a directory.
#[test]
fn a_rust_file_with_tests() {
    let passing = format!("{RUST}\nfn main() {{\n    println!(\"{{}}\", add(1, 1));\n}}\n");
    let project = Project::new(&[("main.rs", &passing)]);
    for ran in [project.run(verify(&project.file("main.rs"))), project.run(project.verify())] {
        passes(&ran, "L1");
        tests(&ran, "rustc --test", 1, 0, 1, &[]);
    }
    let wrong = passing.replace("super::add(2, 2), 4", "super::add(2, 2), 5");
    let ran = verified(&[("main.rs", &wrong)]);
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "rustc --test", 0, 1, 1, &["tests::adds"]);
    assert_eq!(ran.code, 101);
}

#[test]
fn a_rust_file_without_tests_or_that_does_not_compile() {
    let project = Project::new(&[("main.rs", "fn main() {}\n")]);
    for ran in [project.run(verify(&project.file("main.rs"))), project.run(project.verify())] {
        passes(&ran, "L0");
        assert!(!reason(&ran, "rustc --test").is_empty());
    }
    let ran = verified(&[("main.rs", "fn main() {\n    let n: u8 = \"\";\n}\n\n#[test]\nfn t() {}\n")]);
    fails(&ran, "CompileError", "L0", "deterministic");
    assert_eq!(reason(&ran, "rustc --test"), "L0 failed");
}

/// Most of what is generated has no `main`.
#[test]
fn a_rust_file_of_functions_and_tests() {
    let ran = verified(&[("calc.rs", RUST)]);
    passes(&ran, "L1");
    tests(&ran, "rustc --test", 1, 0, 1, &[]);
}

const JAVA: &str = "public class Calc {\n    static int add(int a, int b) { return a + b; }\n}\n";
const JAVA_TEST: &str = r#"import static org.junit.Assert.assertEquals;

import org.junit.Test;

public class CalcTest {
    @Test public void adds() { assertEquals(4, Calc.add(2, 2)); }
    @Test public void zero() { assertEquals(0, Calc.add(0, 0)); }
}
"#;

fn has_junit() -> bool {
    let has = Path::new("/usr/share/java/junit4.jar").exists();
    if !has {
        skip("/usr/share/java/junit4.jar is not there: install junit4");
    }
    has
}

#[test]
fn java_compiles() {
    let ran = verified(&[("Calc.java", JAVA)]);
    passes(&ran, "L0");
    assert_eq!(phase(&ran, "javac -Xlint")["tier"], "L0");
    assert!(!reason(&ran, "junit").is_empty());
}

#[test]
fn java_says_compile_error() {
    let ran = verified(&[
        ("Calc.java", "public class Calc {\n    int add() { return \"\"; }\n}\n"),
        ("CalcTest.java", "class CalcTest {}\n"),
    ]);
    fails(&ran, "CompileError", "L0", "deterministic");
    assert!(!reason(&ran, "junit").is_empty());
}

#[test]
fn junit_passes() {
    if !has_junit() {
        return;
    }
    let ran = verified(&[("Calc.java", JAVA), ("CalcTest.java", JAVA_TEST)]);
    passes(&ran, "L1");
    tests(&ran, "junit", 2, 0, 0, &[]);
}

#[test]
fn junit_fails() {
    if !has_junit() {
        return;
    }
    let wrong = JAVA_TEST.replace("assertEquals(0,", "assertEquals(1,");
    let ran = verified(&[("Calc.java", JAVA), ("CalcTest.java", &wrong)]);
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "junit", 1, 1, 0, &["zero(CalcTest)"]);
    assert_eq!(ran.code, 1);
}

#[test]
fn junit_runs_the_tests_of_packages() {
    if !has_junit() {
        return;
    }
    let calc = format!("package app.math;\n\n{JAVA}");
    let test = format!("package app.math;\n\n{JAVA_TEST}");
    let project = Project::new(&[("src/app/math/Calc.java", &calc), ("test/app/math/CalcTest.java", &test)]);
    let ran = project.run(project.verify().flag("--lang", "java"));
    passes(&ran, "L1");
    tests(&ran, "junit", 2, 0, 0, &[]);
}

/// Classes that are named like tests and have none: data, a base of others.
#[test]
fn junit_leaves_helpers_alone() {
    if !has_junit() {
        return;
    }
    let base = "public abstract class BaseTest {\n    int base() { return 1; }\n}\n";
    let data = "class TestData {\n    static int two() { return 2; }\n}\n";
    let test = JAVA_TEST.replace("class CalcTest", "class CalcTest extends BaseTest");
    let ran =
        verified(&[("Calc.java", JAVA), ("CalcTest.java", &test), ("BaseTest.java", base), ("TestData.java", data)]);
    passes(&ran, "L1");
    tests(&ran, "junit", 2, 0, 0, &[]);
}

#[test]
fn junit_counts_what_it_ignores() {
    if !has_junit() {
        return;
    }
    let test = JAVA_TEST.replace("@Test public void zero", "@org.junit.Ignore @Test public void zero");
    let ran = verified(&[("Calc.java", JAVA), ("CalcTest.java", &test)]);
    passes(&ran, "L1");
    tests(&ran, "junit", 1, 0, 1, &[]);
}

/// Code is not wrong because the host has no runner for its tests.
#[test]
fn java_without_junit_on_the_host_is_l0() {
    if !is_root() {
        return skip("only root can hide /usr/share/java");
    }
    let project = Project::new(&[("Calc.java", JAVA), ("CalcTest.java", JAVA_TEST)]);
    let (inner, watch) = project.verify().flag("--result", "result.json").prepare();
    let mut outer = Command::new("unshare");
    outer.args(["-m", "sh", "-c", "mount -t tmpfs none /usr/share/java && exec \"$0\" \"$@\""]);
    outer.arg(inner.get_program()).args(inner.get_args()).stdout(Stdio::null());
    let mut child = around(outer, &inner).spawn().expect("unshare is installed");
    let code = watch.end_of(&mut child);
    let result = watch.result();
    watch.nothing_left();
    assert_eq!((code, &result["status"], &result["tier"]), (0, &"pass".into(), &"L0".into()), "{result:#}");
    let skipped = result["skipped_checks"].to_string();
    assert!(skipped.contains("install junit4"), "{skipped}");
}

#[test]
fn c_and_cpp_are_checked_for_syntax() {
    for (name, lang, check) in [("main.c", "c", "cc -fsyntax-only"), ("main.cpp", "cpp", "c++ -fsyntax-only")] {
        let project = Project::new(&[(name, "int main(void) { return 3; }\n")]);
        let ran = checked(verify(&project.file(name)));
        passes(&ran, "L0");
        assert_eq!(phase(&ran, check)["tier"], "L0");
        assert!(reason(&ran, "unit tests").contains(lang));

        let ran = verified(&[(name, "int main(void) { return three; }\n")]);
        fails(&ran, "CompileError", "L0", "deterministic");
        assert!(ran.outcome["stderr"].as_str().expect("text").contains("three"));
        assert!(!reason(&ran, "unit tests").is_empty());
    }
}
