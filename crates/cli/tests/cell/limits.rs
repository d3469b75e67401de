//! Every limit, hit and not hit.

use crate::harness::*;

#[test]
fn a_memory_hog_is_a_memory_violation() {
    attack("memory-hog").flag("--memory", "64m").run().violates("MemoryLimitViolation");
}

#[test]
fn a_fork_bomb_is_a_process_violation() {
    attack("fork-bomb").flag("--processes", "20").flag("--timeout", "2s").run().violates("ProcessLimitViolation");
}

#[test]
fn a_full_scratch_is_a_disk_violation_and_no_oom_kill() {
    let ran = attack("fill-scratch").flag("--scratch", "32m").flag("--memory", "64m").run();
    ran.violates("DiskLimitViolation");
    assert!(ran.out().contains("ENOSPC"), "{}", ran.out());
    assert_eq!(ran.outcome["exit_code"], 0);
}

#[test]
fn a_flood_is_an_output_violation_and_both_ends_are_kept() {
    let ran = python("import sys\nsys.stdout.write('A' + 'x' * 3_000_000 + 'Z')").flag("--output-limit", "1m").run();
    ran.violates("OutputLimitViolation");
    assert!(ran.out().starts_with('A') && ran.out().ends_with('Z'));
    assert_eq!(ran.outcome["output"]["stdout"]["bytes"], 3_000_002);
    assert_eq!(ran.outcome["output"]["stdout"]["kept"], 1 << 20);
}
