//! Programs that do not let themselves be looked at: what they write is on record all the same.

use super::CLASS;
use crate::harness::*;

#[test]
fn a_program_that_hides_itself_is_still_on_record() {
    let input = Input::new("");
    let ran = input.attack("undumpable").run();
    ran.violates(CLASS);
    input.assert_untouched();
    let paths: Vec<_> = ran.attempts(CLASS).iter().map(|d| &d["path"]).collect();
    assert_eq!(paths, ["/src/target", "/src/target"]);
    input.attack("undumpable-harmless").run().passes();
}

#[test]
fn a_program_that_nobody_may_read_is_still_on_record() {
    if !is_root() {
        eprintln!("skipped: only root can give the cell a program of somebody else's that it may not read");
        return;
    }
    let input = Input::new("");
    let program = input.path().join("hostile");
    std::os::unix::fs::chown(&program, Some(0), Some(0)).expect("root may");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    std::fs::set_permissions(&program, mode).expect("root may");
    let ran = input.attack("plain-write").program(&["/src/target"]).run();
    assert_eq!(ran.tells("/src/target"), "EROFS");
    let out = input.attack("send-out").program(&["192.0.2.1", "9"]).run();
    if as_user() {
        // The kernel keeps such a program from its own user too: nothing can be looked at, and the result says so.
        for ran in [ran, out] {
            let degraded = ran.outcome["degraded"].as_array().cloned().unwrap_or_default();
            assert!(degraded.iter().any(|layer| layer["layer"] == "witness"), "{}", ran.outcome);
        }
    } else {
        ran.violates(CLASS);
        out.violates("NetworkAccessViolation");
    }
}

#[test]
fn a_name_that_changes_under_our_eyes_gets_nowhere() {
    let input = Input::new("");
    let ran = input.attack("change-under-eyes").run();
    ran.violates(CLASS);
    assert_eq!(ran.tells("/src/changing"), "ENOENT");
    assert_eq!(ran.tells("/src/target"), "EROFS");
    input.assert_untouched();
}

#[test]
fn a_program_without_any_fd_is_judged_like_any_other() {
    let input = Input::new("");
    let ran = input.attack("close-all").run();
    ran.violates(CLASS);
    assert_eq!(ran.outcome["exit_code"], 7);
    input.assert_untouched();
}
