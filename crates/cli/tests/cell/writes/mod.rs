//! Writing: by every call and every way around, outside the scratch on record, inside in order.
//!
//! A program here tries many things in one run. Before each it makes a plain attempt at `/src/mark:NAME`, which is
//! on record: so whatever stands between two marks belongs to the thing that the first one names.

mod calls;
mod harmless;
mod hiding;
mod ways;

use crate::harness::*;

const CLASS: &str = "FilesystemWriteViolation";

/// `attempt(name, act)`: says how it went. `act` may be a path, which is then opened for writing only.
const TRY: &str = r#"
import errno, os, stat, sys
def attempt(name, act, *args, **more):
    try: os.open('/src/mark:' + name, os.O_WRONLY | os.O_CREAT)
    except OSError: pass
    if isinstance(act, (str, bytes)): args, act = (act, os.O_WRONLY), os.open
    try: act(*args, **more); print(name, 'done', flush=True)
    except OSError as e: print(name, errno.errorcode[e.errno], flush=True)
"#;

/// Runs it in an input that everybody may write: each thing it tries must be refused, and be on record.
#[track_caller]
fn all_refused_and_on_record(source: &str) {
    let input = Input::new(&format!("{TRY}{source}"));
    let ran = input.python().run();
    ran.violates(CLASS);
    assert_eq!(ran.outcome["exit_code"], 0, "{}", ran.outcome["stderr"]);
    input.assert_untouched();
    let done: Vec<&str> = ran.out().lines().filter(|l| l.ends_with(" done")).collect();
    assert!(done.is_empty(), "not refused: {done:#?}");
    let tried: Vec<&str> = ran.out().lines().filter_map(|l| l.split(' ').next()).collect();
    assert!(tried.len() > 1, "{}", ran.out());
    let hidden: Vec<&&str> = tried.iter().filter(|name| on_record(&ran, name) == 0).collect();
    assert!(hidden.is_empty(), "not on record: {hidden:?}\n{}", ran.out());
}

/// How many attempts stand between the mark of this name and the next one.
#[track_caller]
fn on_record(ran: &Ran, name: &str) -> usize {
    let paths: Vec<&str> =
        ran.attempts(CLASS).iter().map(|detail| detail["path"].as_str().unwrap_or_default()).collect();
    let mark = format!("/src/mark:{name}");
    let at = paths.iter().position(|p| *p == mark);
    let at = at.unwrap_or_else(|| panic!("no mark of {name}: {paths:?}"));
    paths[at + 1..].iter().take_while(|p| !p.starts_with("/src/mark:")).count()
}
