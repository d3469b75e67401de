//! Every limit, hit and not hit.

use crate::harness::*;

const MIB: u64 = 1 << 20;

/// A hostile program with words of its own.
fn attack_with(name: &str, words: &[&str]) -> Cell {
    attack(name).program(words)
}

#[test]
fn wall_time() {
    let ran = exec(&["sleep", "600"]).flag("--timeout", "300ms").run();
    ran.violates("TimeoutViolation");
    assert_eq!(ran.terminal(), "TimeoutViolation");
    assert_eq!(ran.outcome["evidence"], "wall clock");
    assert_eq!(ran.attempts("TimeoutViolation")[0]["limit"], 300);
    assert_eq!(ran.outcome["exit_code"], serde_json::Value::Null);
    assert!(ran.outcome["duration_ms"].as_u64() >= Some(300));
    exec(&["sleep", "0.3"]).flag("--timeout", "60s").run().passes();
}

#[test]
fn cpu_time_of_one_process() {
    let ran = attack("spin").flag("--cpu-time", "300ms").flag("--timeout", "150s").run();
    ran.violates("TimeoutViolation");
    assert_eq!(ran.terminal(), "TimeoutViolation");
    let detail = ran.attempts("TimeoutViolation")[0];
    assert_eq!((&detail["limit"], &detail["note"]), (&300.into(), &"cpu time".into()));
    assert!(detail["observed"].as_u64() >= Some(300), "{detail}");
}

#[test]
fn cpu_time_of_all_processes_together() {
    // None of them alone uses as much as the limit.
    for words in [["spin-children", "4", "400"], ["spin-one-by-one", "8", "200"]] {
        let ran = attack_with(words[0], &words[1..]).flag("--cpu-time", "1s").flag("--timeout", "150s").run();
        ran.violates("TimeoutViolation");
        assert_eq!(ran.attempts("TimeoutViolation")[0]["note"], "cpu time");
    }
}

#[test]
fn cpu_time_of_a_child_while_the_parent_sleeps() {
    attack_with("spin-children", &["1", "60000"])
        .flag("--cpu-time", "300ms")
        .flag("--timeout", "150s")
        .run()
        .violates("TimeoutViolation");
}

#[test]
fn cpu_time_of_children_that_nobody_waits_for() {
    attack_with("spin-one-by-one", &["20", "200", "ignore"])
        .flag("--cpu-time", "1s")
        .flag("--timeout", "150s")
        .run()
        .violates("TimeoutViolation");
}

#[test]
fn time_that_is_slept_is_no_cpu_time() {
    exec(&["sleep", "1"]).flag("--cpu-time", "900ms").run().passes();
}

#[test]
fn a_tenth_of_a_processor() {
    let ran = attack_with("busy", &["1500"]).flag("--cpus", "0.1").run();
    ran.passes();
    let enforced = ran.outcome["enforced"].as_array().expect("a list");
    if !enforced.iter().any(|layer| layer["layer"] == "cpu") {
        return skip("no cpu controller here");
    }
    let (cpu, wall) = (
        ran.outcome["usage"]["cpu_ms"].as_u64().expect("a number"),
        ran.outcome["usage"]["wall_ms"].as_u64().expect("a number"),
    );
    assert!(cpu * 2 < wall, "{cpu} ms of cpu in {wall} ms: not held back");
}

#[test]
fn a_memory_hog_is_a_memory_violation() {
    let ran = attack("memory-hog").flag("--memory", "64m").run();
    ran.violates("MemoryLimitViolation");
    assert_eq!(ran.terminal(), "MemoryLimitViolation");
    assert_eq!(ran.attempts("MemoryLimitViolation")[0]["limit"], 64 * MIB);
}

#[test]
fn a_child_over_the_memory_limit() {
    let ran = attack("hog-in-child").flag("--memory", "64m").flag("--scratch", "0").run();
    ran.violates("MemoryLimitViolation");
    if !has_groups() {
        return skip("without groups the whole cell is ended, the parent too");
    }
    assert_eq!(ran.outcome["exit_code"], 0, "the parent went on");
    assert_eq!(ran.terminal(), "none");
    assert_eq!(ran.outcome["evidence"], "cgroup oom_kill count");
}

#[test]
fn memory_that_is_not_private() {
    attack("hog-shared").flag("--memory", "64m").run().violates("MemoryLimitViolation");
    let ran = attack("hog-memfd").flag("--memory", "64m").run();
    if has_groups() {
        ran.violates("MemoryLimitViolation");
    } else {
        // Nothing would count it there: so it can't be made.
        ran.exits(1);
    }
}

#[test]
fn memory_that_is_only_reserved() {
    let ran = attack("reserve").flag("--memory", "64m").run();
    ran.passes();
    assert_eq!(ran.out(), "ENOMEM\n");
    let ran = python("try: bytearray(1 << 46)\nexcept MemoryError: print('no')").flag("--memory", "128m").run();
    ran.passes();
    assert_eq!(ran.out(), "no\n");
}

#[test]
fn memory_that_forks_share() {
    attack_with("share-pages", &["32", "12"]).flag("--memory", "96m").run().passes();
}

#[test]
fn a_fork_bomb_is_a_process_violation() {
    let bomb = attack("fork-bomb").flag("--processes", "20").flag("--timeout", "170s");
    bomb.flag("--on-violation", "kill").run().violates("ProcessLimitViolation");
}

#[test]
fn as_many_processes_as_are_allowed_and_one_more() {
    for crowd in ["fork-crowd", "thread-crowd"] {
        println!("{crowd}");
        let ran = attack_with(crowd, &["24"]).flag("--processes", "24").run();
        ran.passes();
        assert_eq!(ran.out(), "24 all\n");
        let peak = &ran.outcome["usage"]["processes_peak"];
        // Without a group threads are gone from every count when the first one has ended; processes stay until it is reaped.
        let may_be_less = peak.is_null() || !has_groups() && crowd == "thread-crowd" && peak.as_u64() < Some(24);
        assert!(*peak == 24 || may_be_less, "{peak}");

        let ran = attack_with(crowd, &["25"]).flag("--processes", "24").run();
        ran.violates("ProcessLimitViolation");
        // Without a group the one too many is what shows it, when it was forked.
        let forked = crowd == "fork-crowd" && !has_groups();
        assert_eq!(ran.out(), if forked { "25 all\n" } else { "24 EAGAIN\n" });
        assert_eq!(ran.outcome["exit_code"], 0, "it was refused, not ended");
        assert_eq!(ran.terminal(), "none");
        assert_eq!(ran.attempts("ProcessLimitViolation")[0]["limit"], 24);
    }
}

/// Init looks for room when the program has ended, by a fork of its own, and a sample may see that.
#[test]
fn who_looks_for_one_too_many_is_not_counted() {
    for _ in 0..on_a_slow_host(60, 5) {
        let ran = attack_with("fork-crowd", &["24"]).flag("--processes", "24").run();
        ran.passes();
        let peak = &ran.outcome["usage"]["processes_peak"];
        assert!(peak.as_u64() <= Some(24), "{peak}");
    }
}

/// A peak is of what was there at one time, not of all that ever was.
#[test]
fn threads_one_after_the_other_are_no_crowd() {
    for _ in 0..on_a_slow_host(20, 3) {
        let ran = attack_with("thread-queue", &["200"]).run();
        ran.passes();
        assert_eq!(ran.out(), "200\n");
        // One that was joined may still be on its way out.
        let peak = &ran.outcome["usage"]["processes_peak"];
        assert!(peak.is_null() || peak.as_u64() < Some(50), "{peak}");
    }
}

#[test]
fn one_process_is_enough_for_a_program() {
    // Often: what looks for one too many must not be taken for it, nor come between a program and its end.
    for _ in 0..on_a_slow_host(100, 5) {
        attack_with("exit", &["0"]).flag("--processes", "1").run().passes();
    }
    let ran = attack_with("fork-crowd", &["2"]).flag("--processes", "1").run();
    ran.violates("ProcessLimitViolation");
    assert_eq!(ran.out(), if has_groups() { "1 EAGAIN\n" } else { "2 all\n" });
    let ran = attack_with("fork-crowd", &["3"]).flag("--processes", "1").run();
    ran.violates("ProcessLimitViolation");
    assert_eq!(ran.out(), if has_groups() { "1 EAGAIN\n" } else { "2 EAGAIN\n" });
}

/// A signal that arrives while a fork waits for the supervisor would interrupt it, and a shell gives up then.
#[test]
fn children_that_end_do_not_disturb_forks() {
    let pipes = "i=0; while [ $i -lt 400 ]; do : | : | :; i=$((i+1)); done; echo $i";
    let ran = exec(&["/bin/sh", "-c", pipes]).flag("--timeout", "170s").run();
    ran.passes();
    assert_eq!(ran.out(), "400\n");
}

#[test]
fn too_many_open_files_are_an_error_of_the_program() {
    let ran = attack("open-many").flag("--open-files", "20").run();
    ran.passes();
    assert_eq!(ran.out(), "20 EMFILE\n");
}

#[test]
fn a_file_over_the_file_size() {
    let write = |bytes: &str| attack_with("write-file", &["/work/f", bytes]).flag("--file-size", "1m");
    let ran = write("1048576").run();
    ran.passes();
    assert_eq!(ran.out(), "written\n");

    let ran = write("1048577").run();
    ran.violates("DiskLimitViolation");
    assert_eq!((ran.terminal(), &ran.outcome["signal"]), ("DiskLimitViolation", &25.into()));
    assert_eq!(ran.attempts("DiskLimitViolation")[0]["limit"], MIB);

    let ran = write("1048577").program(&["ignore"]).run();
    ran.passes();
    assert_eq!(ran.out(), "EFBIG\n");
}

#[test]
fn a_file_that_is_made_longer_than_the_file_size() {
    for how in ["truncate", "allocate", "pwrite", "unlinked"] {
        println!("{how}");
        let lengthen = |bytes: &str| attack_with("lengthen", &[bytes, how]).flag("--file-size", "1m").run();
        let ran = lengthen("1048576");
        ran.passes();
        assert_eq!(ran.out(), "long\n");

        let ran = lengthen("1048577");
        ran.violates("DiskLimitViolation");
        assert_eq!((ran.terminal(), &ran.outcome["signal"]), ("DiskLimitViolation", &25.into()));
    }
}

/// However late anybody looks.
#[test]
fn usage_is_never_less_than_it_was() {
    for _ in 0..on_a_slow_host(20, 3) {
        let usage = attack_with("burn", &["30"]).run().outcome["usage"].clone();
        // In whole milliseconds, of user and system each.
        assert!(usage["cpu_ms"].as_u64() >= Some(28), "{usage}");
        let usage = exec(&["sleep", "0.05"]).run().outcome["usage"].clone();
        assert!(usage["wall_ms"].as_u64() >= Some(50), "{usage}");
    }
}

/// What is in the scratch is told apart.
#[test]
fn files_are_not_in_the_peak_of_memory() {
    let ran = attack_with("write-file", &["/work/f", "100000000"]).flag("--memory", "64m").run();
    ran.passes();
    let usage = &ran.outcome["usage"];
    assert!(usage["memory_peak_bytes"].as_u64() < Some(64 << 20), "{usage}");
    assert!(usage["scratch_bytes"].as_u64() >= Some(100_000_000), "{usage}");
}

#[test]
fn a_full_scratch_is_a_disk_violation_and_no_oom_kill() {
    let ran = attack("fill-scratch").flag("--scratch", "32m").flag("--memory", "64m").run();
    ran.violates("DiskLimitViolation");
    assert!(ran.out().contains("ENOSPC"), "{}", ran.out());
    assert_eq!(ran.outcome["exit_code"], 0);
}

#[test]
fn the_scratch_is_one_at_all_its_places() {
    for path in ["/work/f", "/tmp/f", "/dev/shm/f"] {
        println!("{path}");
        let write = |bytes: &str| {
            attack_with("write-file", &[path, bytes]).flag("--scratch", "48m").flag("--memory", "16m").run()
        };
        let ran = write("60000000");
        ran.violates("DiskLimitViolation");
        assert_eq!(ran.out(), "ENOSPC\n");
        assert_eq!((ran.terminal(), &ran.outcome["exit_code"]), ("none", &0.into()));
        assert_eq!(ran.classes(), ["DiskLimitViolation"]);

        // More than the memory limit, less than the scratch.
        let ran = write("40000000");
        ran.passes();
        assert_eq!(ran.out(), "written\n");
        let used = ran.outcome["usage"]["scratch_bytes"].as_u64();
        assert!(used >= Some(40_000_000), "{used:?}");
    }
}

#[test]
fn scratch_that_is_filled_and_emptied_fast_is_no_memory() {
    attack_with("churn", &["/dev/shm/f", "200", "12"])
        .flag("--scratch", "256m")
        .flag("--memory", "8m")
        .flag("--timeout", "170s")
        .run()
        .passes();
}

#[test]
fn holes_in_a_file_take_no_scratch() {
    let ran = attack("sparse").flag("--scratch", "16m").flag("--file-size", "1t").run();
    ran.passes();
    let used = ran.outcome["usage"]["scratch_bytes"].as_u64();
    assert!(used < Some(MIB), "{used:?}");
}

#[test]
fn too_many_files_are_a_disk_violation() {
    for dir in ["/work", "/tmp", "/dev/shm"] {
        println!("{dir}");
        let make = |count: &str| {
            attack_with("make-files", &[dir, count]).flag("--scratch-inodes", "500").flag("--memory", "16m").run()
        };
        let ran = make("1000");
        ran.violates("DiskLimitViolation");
        assert_eq!(ran.out(), "500 ENOSPC\n");
        assert_eq!(ran.outcome["exit_code"], 0);
        let ran = make("499");
        ran.passes();
        assert_eq!(ran.out(), "499 all\n");
    }
}

#[test]
fn as_many_files_as_the_default_allows_are_no_memory() {
    if on_a_slow_host(1, 0) == 0 {
        return skip("65536 files take minutes where the processor is emulated");
    }
    let ran = attack_with("make-files", &["/work", "100000"]).flag("--memory", "16m").flag("--timeout", "170s").run();
    ran.violates("DiskLimitViolation");
    assert_eq!(ran.out(), "65536 ENOSPC\n");
}

#[test]
fn without_a_scratch_nothing_can_be_written() {
    let ran = attack_with("write-file", &["/work/f", "1"]).flag("--scratch", "0").run();
    ran.violates("FilesystemWriteViolation");
}

#[test]
fn a_flood_is_an_output_violation_and_both_ends_are_kept() {
    let ran = python("import sys\nsys.stdout.write('A' + 'x' * 3_000_000 + 'Z')").flag("--output-limit", "1m").run();
    ran.violates("OutputLimitViolation");
    assert!(ran.out().starts_with('A') && ran.out().ends_with('Z'));
    assert_eq!(ran.outcome["output"]["stdout"]["bytes"], 3_000_002);
    assert_eq!(ran.outcome["output"]["stdout"]["kept"], 1 << 20);
}

#[test]
fn as_much_output_as_is_allowed_and_one_byte_more() {
    for (fd, name) in [("1", "stdout"), ("2", "stderr")] {
        let flood = |bytes: &str| attack_with("flood", &[fd, bytes]).flag("--output-limit", "100k").run();
        let ran = flood("102400");
        ran.passes();
        let info = &ran.outcome["output"];
        assert_eq!((&info["truncated"], &info[name]["dropped"]), (&false.into(), &0.into()));
        assert_eq!(ran.outcome[name].as_str().map(str::len), Some(102_400));

        let ran = flood("102401");
        ran.violates("OutputLimitViolation");
        assert_eq!(ran.terminal(), "none");
        assert_eq!(ran.outcome["exit_code"], 0);
        let info = &ran.outcome["output"];
        assert_eq!((&info["truncated"], &info[name]["dropped"]), (&true.into(), &1.into()));
        assert_eq!(ran.attempts("OutputLimitViolation")[0]["note"], name);
    }
    // The limit is of each stream.
    let both = |bytes| attack_with("flood-both", &[bytes]).flag("--output-limit", "100k").run();
    both("102400").passes();
    let ran = both("5000000");
    ran.violates("OutputLimitViolation");
    for name in ["stdout", "stderr"] {
        assert_eq!(ran.outcome["output"][name]["bytes"], 5_000_000);
        assert_eq!(ran.outcome["output"][name]["kept"], 102_400);
    }
    let notes: Vec<_> = ran.attempts("OutputLimitViolation").iter().map(|d| d["note"].clone()).collect();
    assert_eq!(notes.len(), 2, "both streams are over: {notes:?}");
}

#[test]
fn the_caller_gets_no_more_output_than_the_limit() {
    let ran = attack_with("flood-both", &["5000000"]).flag("--output-limit", "100k").text().run();
    assert_eq!((ran.code, ran.stdout.len()), (123, 102_400));
    let summary = ran.stderr.trim_start_matches('x');
    assert_eq!(ran.stderr.len() - summary.len(), 102_400);
    assert!(summary.contains("OutputLimitViolation"), "{summary}");
}
