//! `--tty`: a terminal of the program's own, and nobody else's.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;

use crate::harness::*;

/// With pipes for streams: what it said, and its result.
fn told(cell: Cell, input: &[u8]) -> (Ran, String, Value) {
    let going = cell.text().stdin(input).word("--tty").flag("--result", "result.json").start();
    let path = going.dir().join("result.json");
    let mut result = Value::Null;
    let ran = going.finish_with(|| {
        let text = std::fs::read(&path).expect("there is a result");
        result = serde_json::from_slice(&text).expect("it is JSON");
    });
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    (ran, said, result)
}

/// Somebody at a terminal.
struct Person {
    child: Child,
    watch: Watch,
    screen: Arc<Mutex<String>>,
    keyboard: File,
}

impl Person {
    fn runs(cell: Cell) -> Person {
        let (mut command, watch) = cell.text().word("--tty").flag("--result", "result.json").prepare();
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a terminal");
        unlockpt(&master).expect("it is ours");
        let slave = || -> OwnedFd { ioctl_tiocgptpeer(&master, flags).expect("its other end") };
        size(&master, 30, 100);
        let child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().expect("hotcell starts");
        let screen = Arc::new(Mutex::new(String::new()));
        let (mut from, shown) = (File::from(master.try_clone().expect("a copy")), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut buf = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut buf) {
                shown.lock().expect("ours").push_str(&String::from_utf8_lossy(&buf[..n]));
            }
        });
        Person { child, watch, screen, keyboard: master.into() }
    }

    #[track_caller]
    fn sees(&self, text: &str) {
        wait_until(text, || self.screen.lock().expect("ours").contains(text));
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it is read");
    }

    fn ends(mut self) -> (i32, Value) {
        let code = self.watch.end_of(&mut self.child);
        let result = self.watch.result();
        self.watch.nothing_left();
        (code, result)
    }
}

fn size(terminal: &OwnedFd, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("it is ours");
}

#[test]
fn the_program_has_a_terminal_and_what_it_says_is_one_stream() {
    let source = "import os, sys, termios\n\
                  assert all(os.isatty(fd) for fd in (0, 1, 2))\n\
                  assert os.ttyname(0) == '/dev/tty' and os.tcgetpgrp(0) == os.getpgrp()\n\
                  assert termios.tcgetattr(0)[0] & 0o40000, 'UTF-8'\n\
                  print(os.get_terminal_size(), os.environ['TERM'])\n\
                  print('an error', file=sys.stderr)\n\
                  for name in ('/dev/tty', '/dev/stdout'): open(name, 'w').write('by name\\n')\n\
                  print('read', sys.stdin.read())";
    let (ran, stdout, result) = told(python(source).flag("--env", "TERM=vt100"), b"a line");
    assert_eq!((ran.code, ran.stderr.as_str(), &result["violations"]), (0, "", &serde_json::json!([])), "{result:#}");
    assert_eq!(result["stdout"], stdout);
    // Echoed when it is typed, whatever the program is at.
    let said = "os.terminal_size(columns=80, lines=24) vt100\r\nan error\r\nby name\r\nby name\r\nread a line\r\n";
    assert_eq!(stdout.replacen("a line", "", 1), said);
    assert_eq!((&result["stderr"], &result["status"]), (&"".into(), &"pass".into()));
}

#[test]
fn a_terminal_is_no_way_to_another_one() {
    let source = "import fcntl, os, termios\n\
                  for path in ('/dev/ptmx', '/dev/pts', '/dev/pts/ptmx', '/dev/console', '/dev/tty0', '/dev/pts/0'):\n\
                  \x20   assert not os.path.exists(path), path\n\
                  try: fcntl.ioctl(0, termios.TIOCSTI, b'x')\n\
                  except PermissionError: print('refused')\n\
                  try: os.open('/proc/self/fd/0', os.O_RDWR)\n\
                  except OSError as e: print(e)\n\
                  for what in (lambda: os.fchmod(0, 0o666), lambda: os.chmod('/dev/tty', 0o666), lambda: os.fchown(1, os.getuid(), os.getgid())):\n\
                  \x20   try: what()\n\
                  \x20   except OSError as e: print(e.strerror)\n\
                  print(sorted(os.listdir('/dev')))";
    let (_, stdout, result) = told(python(source), b"");
    assert_eq!(
        (&result["failure_class"], result["violations"].as_array().map(Vec::len)),
        (&"SyscallViolation".into(), Some(1))
    );
    let read_only = "Read-only file system\r\n";
    let devices = "['fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero']";
    assert_eq!(stdout, format!("refused\r\n{read_only}{read_only}{read_only}{devices}\r\n"));
}

#[test]
fn a_flood_is_counted_and_a_program_that_lets_go_of_its_terminal_goes_on() {
    let (_, _, result) = told(exec(&["sh", "-c", "yes | head -c 200000"]).flag("--output-limit", "64k"), b"");
    assert_eq!(
        (&result["failure_class"], &result["status"]),
        (&"OutputLimitViolation".into(), &"fail".into()),
        "{result:#}"
    );
    let source = "import os, time\n\
                  for fd in (0, 1, 2): os.close(fd)\n\
                  time.sleep(1)\n\
                  open('/dev/tty', 'w').write('back\\n')\n\
                  os._exit(7)";
    let (ran, stdout, result) = told(python(source), b"");
    assert_eq!((ran.code, &result["exit_code"], stdout.as_str()), (7, &7.into(), "back\r\n"), "{result:#}");
}

#[test]
fn somebody_at_a_terminal_talks_to_a_shell() {
    let mut person = Person::runs(exec(&["bash", "--norc"]).flag("--timeout", "170s").flag("--env", "PS1=ready>"));
    person.sees("ready>");
    person.types("stty size; tty\r");
    person.sees("30 100\r\n/dev/tty");
    person.types("sleep 1000\r");
    wait_until("sleep", || {
        let name = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        person.watch.processes().iter().any(|pid| name(pid) == "sleep\n")
    });
    // Ctrl-C is the program's, not ours.
    person.types("\x03");
    let has_prompt = |screen: &str| screen.rsplit_once("^C").is_some_and(|(_, after)| after.contains("ready>"));
    wait_until("a prompt", || has_prompt(&person.screen.lock().expect("ours")));
    person.types("echo in$((0))terrupted $?\r");
    person.sees("in0terrupted 130");
    size(&OwnedFd::from(person.keyboard.try_clone().expect("a copy")), 25, 90);
    // The kernel tells those whose terminal it is; hotcell was started without one of its own.
    send(person.child.id(), "WINCH");
    wait_until("another size", || {
        person.types("stty size\r");
        person.screen.lock().expect("ours").contains("25 90")
    });
    person.types("exit 3\r");
    let (code, result) = person.ends();
    assert_eq!(
        (code, &result["exit_code"], &result["failure_class"]),
        (3, &3.into(), &"RuntimeError".into()),
        "{result:#}"
    );
}

#[test]
fn a_terminal_that_is_gone_leaves_nothing_behind() {
    let mut person =
        Person::runs(exec(&["sh", "-c", "trap '' HUP TERM; echo up; sleep 1000"]).flag("--timeout", "170s"));
    person.sees("up");
    send(person.child.id(), "KILL");
    person.watch.end_of(&mut person.child);
    person.watch.nothing_left();
}

#[test]
fn a_reader_who_leaves_hangs_up() {
    let words = exec(&["yes"]).text().word("--tty").flag("--timeout", "170s").flag("--result", "result.json");
    let (mut command, watch) = words.prepare();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("hotcell starts");
    let mut byte = [0];
    child.stdout.take().expect("piped").read_exact(&mut byte).expect("it says something");
    watch.end_of(&mut child);
    assert_eq!((&watch.result()["signal"], &watch.result()["terminal_event"]), (&1.into(), &Value::Null));
    watch.nothing_left();
}

#[test]
fn a_terminal_that_cannot_be_shown_is_no_verdict() {
    let (mut command, watch) = exec(&["cat"]).text().word("--tty").flag("--stdin", "/etc/hostname").prepare();
    let full = File::options().write(true).open("/dev/full").expect("it is there");
    let mut child = command.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).spawn().expect("hotcell starts");
    let said = read_all(child.stderr.as_mut().expect("piped"));
    let said = String::from_utf8_lossy(&said);
    assert_eq!(watch.end_of(&mut child), 125, "{said}");
    assert!(said.contains("cannot write to standard output: No space left"), "{said}");
    watch.nothing_left();
}

#[test]
fn keys_are_the_programs_only_where_it_reads_them() {
    let sleeper = || exec(&["sh", "-c", "echo up; sleep 1000"]).flag("--timeout", "170s");
    let reads = Person::runs(sleeper());
    let reads_not = Person::runs(sleeper().flag("--stdin", "/dev/null"));
    for (mut person, is_raw) in [(reads, true), (reads_not, false)] {
        person.sees("up");
        let modes = || tcgetattr(&person.keyboard).expect("it is ours").local_modes;
        assert_eq!(!modes().contains(LocalModes::ISIG), is_raw);
        send(person.child.id(), "TERM");
        let end = person.watch.end_of(&mut person.child);
        assert_eq!((end, modes().contains(LocalModes::ISIG)), (143, true), "as it was");
        person.watch.nothing_left();
    }
}

#[test]
fn what_needs_a_terminal_of_its_own_is_refused_beside_it() {
    exec(&["true"]).word("--tty").run().refused("--tty and --output json are for one terminal: leave one of them out");
    exec(&["true"]).text().word("--tty").word("--watch").run().refused("--tty and --watch are");
}
