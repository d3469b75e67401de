//! JavaScript and Bash.

use crate::project::{fails, passes, phase, reason, tests, verified};

const CALC: &str = "exports.add = (a, b) => a + b;\n";

#[test]
fn node_passes() {
    let test = "const { test, describe, it } = require('node:test');\nconst assert = require('node:assert');\n\
        const { add } = require('./calc.js');\n\
        test('adds', () => assert.strictEqual(add(2, 2), 4));\n\
        test('later', { skip: true }, () => assert.fail());\n\
        describe('suite', () => { it('is zero', () => assert.strictEqual(add(0, 0), 0)); });\n";
    let ran = verified(&[("calc.js", CALC), ("calc.test.js", test)]);
    passes(&ran, "L1");
    assert_eq!(phase(&ran, "parse")["tier"], "L0");
    tests(&ran, "node --test", 2, 0, 1, &[]);
}

#[test]
fn node_fails() {
    let test = "import test, { describe, it } from 'node:test';\nimport assert from 'node:assert';\n\
        import { add } from './calc.mjs';\n\
        test('adds', () => assert.strictEqual(add(2, 2), 4));\n\
        test('wrong', () => assert.strictEqual(add(2, 2), 5));\n\
        describe('suite', () => { it('is wrong too', () => assert.fail()); });\n";
    let ran = verified(&[("calc.mjs", "export const add = (a, b) => a + b;\n"), ("calc.test.mjs", test)]);
    fails(&ran, "TestFailure", "L0", "deterministic");
    tests(&ran, "node --test", 1, 2, 0, &["wrong", "suite > is wrong too"]);
    assert_eq!(ran.code, 1);
}

#[test]
fn node_says_syntax_error() {
    let ran = verified(&[("calc.js", "exports.add = (a, b => a;\n"), ("calc.test.js", "require('./calc.js');\n")]);
    fails(&ran, "SyntaxError", "L0", "syntax");
    assert_eq!(phase(&ran, "parse")["failure_class"], "SyntaxError");
    assert_eq!(reason(&ran, "node --test"), "L0 failed");
}

#[test]
fn javascript_without_tests_is_l0() {
    let ran = verified(&[("index.js", CALC)]);
    passes(&ran, "L0");
    assert!(reason(&ran, "node --test").contains("no file"));
}

/// Those that `node --test` looks for by itself.
#[test]
fn whatever_node_calls_a_test_is_run() {
    let test = "require('node:test')('wrong', () => { throw 1; });\n";
    for name in ["calc.test.cjs", "calc-test.js", "calc_test.js", "test-calc.js", "test.js", "test/calc.js"]
        .into_iter()
        .chain(["calc-test.cjs", "calc_test.cjs", "test-calc.cjs", "test.cjs", "test/calc.cjs"])
    {
        let ran = verified(&[("index.js", CALC), (name, test)]);
        assert_eq!(ran.class(), "TestFailure", "{name}: {:#}", ran.outcome["skipped_checks"]);
        tests(&ran, "node --test", 0, 1, 0, &["wrong"]);
    }
}

#[test]
fn bash_has_a_parser_and_no_tests() {
    let ran = verified(&[("main.sh", "echo \"hello\"\n")]);
    passes(&ran, "L0");
    assert_eq!(phase(&ran, "bash -n")["tier"], "L0");
    assert!(reason(&ran, "unit tests").contains("bash"));
}

#[test]
fn bash_says_syntax_error_and_executes_nothing() {
    let ran = verified(&[("main.sh", "echo executed\nif true; then\n"), ("other.sh", "echo fine\n")]);
    fails(&ran, "SyntaxError", "L0", "syntax");
    assert!(!ran.outcome["stdout"].as_str().expect("text").contains("executed"));
    assert!(!reason(&ran, "unit tests").is_empty());
}
