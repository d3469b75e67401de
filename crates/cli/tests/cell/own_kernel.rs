//! A kernel of its own between the program and the host's (runsc): limits that nobody inside tells of, as root and as an
//! ordinary user.

use std::path::Path;

use crate::harness::*;

fn has_runsc() -> bool {
    let there = ["/usr/bin/runsc", "/usr/local/bin/runsc"].iter().any(|path| Path::new(path).is_file());
    match backend() {
        Some(_) => skip("the cells are another runtime's"),
        None if !there => skip("runsc is not installed"),
        None => return true,
    }
    false
}

fn gvisor(source: &str) -> Cell {
    exec(&["python3", "-c", source]).flag("--runtime", "runsc").flag("--timeout", "100s")
}

#[test]
fn memory_is_the_programs() {
    if !has_runsc() {
        return;
    }
    // Made inaccessible, it is mapped by nobody: no process of the host's has it, and it is there.
    let hidden = "import ctypes, mmap, time\n\
         size = 400 << 20\n\
         x = mmap.mmap(-1, size)\n\
         for at in range(0, size, 1 << 20): x[at:at + (1 << 20)] = b'x' * (1 << 20)\n\
         at = ctypes.addressof(ctypes.c_char.from_buffer(x))\n\
         assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(at), ctypes.c_size_t(size), 0) == 0\n\
         time.sleep(1)\n\
         print('done')";
    let plain = "import time\nx = b'x' * (400 << 20)\ntime.sleep(1)\nprint('done')";
    // One page of the file's for all of them.
    let shared = "import os, time\n\
         x = bytearray(b'x') * (100 << 20)\n\
         first = os.getpid()\n\
         children = [os.fork() for _ in range(8) if os.getpid() == first]\n\
         sum(x[::4096])\n\
         time.sleep(1)\n\
         if os.getpid() == first:\n\
         \x20   for child in children: os.waitpid(child, 0)\n\
         \x20   print('done')";
    let run = |source: &str, memory: &str| gvisor(source).flag("--memory", memory).flag("--scratch", "1m").run();
    for source in [plain, hidden] {
        run(source, "128m").violates("MemoryLimitViolation");
    }
    for source in [plain, hidden, shared] {
        let ran = run(source, "600m");
        ran.passes();
        assert_eq!(ran.out(), "done\n");
        assert!(ran.outcome["usage"]["memory_peak_bytes"].as_u64() > Some(100 << 20), "{}", ran.outcome["usage"]);
    }
    let degraded = run("", "128m").outcome["degraded"].to_string();
    assert!(!degraded.contains("RLIMIT_AS"), "{degraded}");
}

#[test]
fn processor_time_is_the_programs() {
    if !has_runsc() {
        return;
    }
    let spin = |seconds: u64| {
        format!(
            "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\nprint('done')"
        )
    };
    let ran = gvisor(&spin(1000)).flag("--cpu-time", "2s").run();
    ran.violates("TimeoutViolation");
    assert_eq!(ran.attempts("TimeoutViolation")[0]["note"], "cpu time");
    let ran = gvisor(&spin(1)).flag("--cpu-time", "30s").run();
    ran.passes();
    assert_eq!(ran.out(), "done\n");
    assert!(ran.outcome["usage"]["cpu_ms"].as_u64() >= Some(100), "{}", ran.outcome["usage"]);
}

/// Its threads are many, and none of the program's doing.
#[test]
fn its_own_tasks_are_not_the_programs() {
    if !has_runsc() {
        return;
    }
    let one_by_one = "import os\n\
         for _ in range(60):\n\
         \x20   child = os.fork()\n\
         \x20   if child == 0: os._exit(0)\n\
         \x20   os.waitpid(child, 0)\n\
         print('done')";
    let at_once = "import os, sys\n\
         read, write = os.pipe()\n\
         try:\n\
         \x20   for n in range(90):\n\
         \x20       if os.fork() == 0:\n\
         \x20           os.close(write)\n\
         \x20           os._exit(len(os.read(read, 1)))\n\
         \x20   print('done')\n\
         except BlockingIOError: print('refused', n)";
    for (source, processes, says) in [
        (one_by_one, "5", "done\n"),
        (one_by_one, "20", "done\n"),
        (at_once, "128", "done\n"),
        // Held inside, where nobody is told.
        (at_once, "20", "refused 19\n"),
    ] {
        let ran = gvisor(source).flag("--processes", processes).run();
        ran.passes();
        assert_eq!(ran.out(), says, "{processes}: {}", ran.outcome);
        assert_eq!(ran.outcome["usage"]["processes_peak"], serde_json::Value::Null);
        assert!(ran.outcome["degraded"].to_string().contains("RLIMIT_NPROC"), "{}", ran.outcome["degraded"]);
    }
}

#[test]
fn room_for_the_kernel_itself() {
    if !has_runsc() {
        return;
    }
    for memory in ["1m", "8m", "31m"] {
        gvisor("print(1)").flag("--memory", memory).run().refused("too small for runsc");
    }
    gvisor("print(1)").flag("--memory", "32m").run().passes();
}

/// The whole tree of a process, with its names.
fn below(pid: u32) -> Vec<(u32, String)> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children: Vec<u32> = children.split_whitespace().filter_map(|child| child.parse().ok()).collect();
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned();
    children.into_iter().flat_map(|child| std::iter::once((child, name(child))).chain(below(child))).collect()
}

#[test]
fn killed_from_outside_is_no_verdict_on_the_program() {
    if !has_runsc() {
        return;
    }
    for who in ["hotcell-porter", "runsc"] {
        let cell = gvisor("import time\ntime.sleep(600)");
        let going = cell.start();
        let find = |name: &str| below(going.child.id()).into_iter().find(|(_, own)| own == name);
        wait_until("its kernel", || find("exe").is_some());
        send(find(who).expect("it is there").0, "KILL");
        let ran = going.finish();
        assert_eq!((ran.code, ran.outcome.is_null()), (125, true), "{who}: {} {}", ran.stderr, ran.outcome);
        assert!(ran.stderr.contains("killed from outside"), "{who}: {}", ran.stderr);
    }
    gvisor("import os\nos.kill(os.getpid(), 9)").run().exits(137);
}
