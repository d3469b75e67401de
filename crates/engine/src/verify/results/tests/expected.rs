//! What the real tools said of each fixture.

use super::*;

#[test]
fn pytest() {
    let failing = [
        "test_mix.test_fail",
        "test_mix.test_error",
        "test_mix.test_teardown_error",
        "test_mix.test_fail_and_teardown_error",
        "test_mix.test_xpass_strict",
        "test_mix.test_param[<b>&\"']",
        "test_mix.test_param[new\\nline\\x1b]",
        "test_mix.test_param[\\xe9\\u202e]",
        "test_mix.test_subtests",
        "test_mix.TestNested.TestInner.test_deep",
        "test_mix.TestUnit.test_sub",
    ];
    check(JunitXml, "pytest-mix.xml", (3, 14, 2), &failing);
    check(JunitXml, "pytest-ok.xml", (2, 0, 1), &[]);
    check(JunitXml, "pytest-collection-error.xml", (0, 1, 0), &["test_bad"]);
    check(JunitXml, "pytest-none.xml", (0, 0, 0), &[]);
}

#[test]
fn junit_and_surefire() {
    let console = [
        "MixTest.displayed()",
        "MixTest.param(String)[2]",
        "MixTest$Inner.deep()",
        "MixTest.param(String)[3]",
        "BrokenTest.never()",
        "MixTest.fails()",
        "MixTest.errors()",
        "BrokenTest.neverToo()",
    ];
    check(JunitXml, "junit5-console-mix.xml", (5, 8, 2), &console);
    check(JunitXml, "junit5-console-ok.xml", (2, 0, 1), &[]);
    let surefire = [
        "BrokenTest",
        "MixTest.errors",
        "MixTest.fails",
        "MixTest.param{String}[2]",
        "MixTest.param{String}[3]",
        "MixTest.displayed",
        "MixTest$Inner.deep",
    ];
    check(JunitXml, "surefire-three-classes.xml", (7, 7, 3), &surefire);
}

const UNITTEST_MIX: [&str; 7] = [
    "test_mix.Broken.setUpClass",
    "test_mix.Mix.test_error",
    "test_mix.Mix.test_doc_fails",
    "test_mix.Mix.test_fail",
    "test_mix.Mix.test_sub [odd] (i=1)",
    "test_mix.Mix.test_sub [odd] (i=3)",
    "test_mix.Mix.test_xpass",
];

#[test]
fn verbose_unittest() {
    for version in ["3.9", "3.11", "3.12.1", "3.13"] {
        check(Unittest, &format!("unittest-verbose-mix-{version}.txt"), (3, 7, 3), &UNITTEST_MIX);
    }
    check(Unittest, "unittest-verbose-ok-3.11.txt", (2, 0, 1), &[]);
    check(Unittest, "unittest-verbose-ok-3.12.1.txt", (2, 0, 1), &[]);
    check(Unittest, "unittest-verbose-none-3.12.txt", (0, 0, 0), &[]);
    check(Unittest, "unittest-verbose-syntax-error-3.13.txt", (0, 1, 0), &["test_syntax"]);
}

#[test]
fn terse_unittest() {
    let with_unloadable_module = [&["test_bad_import"], &UNITTEST_MIX[..]].concat();
    check(Unittest, "unittest-mix-3.13.txt", (3, 8, 3), &with_unloadable_module);
    // Before 3.11 an unexpected success has no name here.
    check(Unittest, "unittest-mix-3.9.txt", (3, 8, 3), &with_unloadable_module[..7]);
}

/// Skips and errors outside of tests, several of one test, and tests that print.
#[test]
fn odd_unittest() {
    let failing = [
        "test_odd.ClassTearDown.tearDownClass",
        "test_odd.TearDown.test_fails_twice",
        "test_odd.Odd.test_several_subtests (i=2)",
        "test_odd.TearDown.test_fails_twice",
    ];
    for version in ["3.9", "3.13"] {
        check(Unittest, &format!("unittest-verbose-odd-{version}.txt"), (3, 4, 9), &failing);
        // Which tests the nine skips are of is not said, so that nothing is sure to have passed.
        check(Unittest, &format!("unittest-odd-{version}.txt"), (0, 4, 9), &failing);
    }
}

#[test]
fn go() {
    let mut failing = vec![
        "example.com/fx/missing",
        "example.com/fx/syntax",
        "example.com/fx/bad",
        "example.com/fx/crash.TestPanics",
        "example.com/fx/mainexit",
        "example.com/fx/mix.TestFail",
        "example.com/fx/mix.TestNested/bad_name/deep/er\\x1b",
        "example.com/fx/mix.TestNested/bad_name",
        "example.com/fx/mix.TestNested",
        "example.com/fx/mix.TestParallel/b",
        "example.com/fx/mix.TestParallel",
        "example.com/fx/mix.Example",
    ];
    check(GoJson, "go-1.27-mix.json", (7, 12, 3), &failing);
    // Before 1.20 go itself takes a line that a test printed for the end of a test, and misses the test's own.
    failing.insert(11, "example.com/fx/mix.TestForged");
    check(GoJson, "go-1.19-mix.json", (6, 13, 3), &failing);
    let unbuildable = ["example.com/fx/missing", "example.com/fx/syntax", "example.com/fx/bad"];
    check(GoJson, "go-1.23-broken.json", (2, 3, 1), &unbuildable);
    for version in ["1.19", "1.27"] {
        check(GoJson, &format!("go-{version}-ok.json"), (2, 0, 1), &[]);
        let unfinished = ["example.com/fx/crash.TestExits", "example.com/fx/crash.TestHangs"];
        check(GoJson, &format!("go-{version}-exit.json"), (2, 2, 0), &unfinished);
    }
}

#[test]
fn node() {
    let mix = [
        "fails",
        "parent > child fails > grandchild fails",
        "parent > child fails",
        "parent",
        "suite > in suite fails",
        "suite > inner suite > deep fails",
        "suite with broken hook > never run",
        "suite with broken hook",
        "suite that throws",
        "odd # name \\ with - dash\\nand newline # SKIP",
        "cancelled > not awaited",
        "cancelled",
    ];
    check(NodeTap, "node-mix.tap", (4, 12, 5), &mix);
    check(NodeTap, "node-ok.tap", (2, 0, 1), &[]);
    let broken = [&["/tmp/wt-fx/nd/exits.test.mjs"], &mix[..], &["/tmp/wt-fx/nd/syntax.test.mjs"]].concat();
    check(NodeTap, "node-broken-files.tap", (7, 14, 6), &broken);
}

#[test]
fn cargo() {
    let mix = [
        "tests::deep::nested",
        "tests::fails",
        "tests::should_panic_but_does_not",
        "integration_fails",
        "src/lib.rs - add (line 7)",
        "src/lib.rs - add (line 19)",
    ];
    check(CargoText, "cargo-mix.txt", (5, 6, 3), &mix);
    check(CargoText, "cargo-quiet.txt", (5, 6, 3), &mix);
    check(CargoText, "cargo-ok.txt", (2, 0, 1), &[]);
    check(CargoText, "cargo-abort.txt", (2, 2, 0), &["integration_fails", "tests/zz_abort.rs"]);
    check(CargoText, "cargo-compile-error.txt", (0, 1, 0), &["fx (test \"zz_abort\")"]);
}
