//! Writing: by every call and every way around, outside the scratch on record, inside in order.
//!
//! A program here tries many things in one run. Before each it makes a plain attempt at `/src/mark:NAME`, which is
//! on record: so whatever stands between two marks belongs to the thing that the first one names.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

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

#[test]
fn every_way_to_open_for_writing_is_on_record() {
    all_refused_and_on_record(
        r#"
flags = dict(wronly=os.O_WRONLY, rdwr=os.O_RDWR, trunc=os.O_TRUNC, append=os.O_WRONLY | os.O_APPEND)
for name, flag in flags.items(): attempt(name, os.open, '/src/target', flag)
attempt('create', os.open, '/src/new', os.O_WRONLY | os.O_CREAT)
attempt('create-to-read', os.open, '/src/new', os.O_RDONLY | os.O_CREAT)
attempt('exclusive', os.open, '/src/new', os.O_RDWR | os.O_CREAT | os.O_EXCL)
attempt('deep', os.open, '/src/no/such/dir/new', os.O_RDWR | os.O_CREAT)
attempt('unnamed', os.open, '/src', os.O_TMPFILE | os.O_RDWR)
attempt('python', open, '/src/target', 'w')
for place in ('/new', '/etc/new', '/usr/new', '/dev/new', '/proc/new', '/src/empty/new', '/lib/new', '/bin/new'):
    attempt(place, os.open, place, os.O_WRONLY | os.O_CREAT)
attempt('passwd', '/etc/passwd')
attempt('library', os.path.realpath(os.__file__))
attempt('python-itself', os.path.realpath(sys.executable))
"#,
    );
}

#[test]
fn a_way_to_open_for_nothing_gives_no_write() {
    // Access mode 3 asks for both rights and gives neither, on a read-only mount too.
    let input = Input::new(
        r#"
import os
fd = os.open('/src/target', 3)
for act, *args in ((os.write, fd, b'x'), (os.ftruncate, fd, 0), (os.read, fd, 1)):
    try: act(*args); print('done', act)
    except OSError: print('refused')
"#,
    );
    let ran = input.python().run();
    ran.violates(CLASS);
    assert_eq!(ran.out(), "refused\nrefused\nrefused\n");
    input.assert_untouched();
}

#[test]
fn every_call_that_changes_a_directory_is_on_record() {
    all_refused_and_on_record(
        r#"
attempt('mkdir', os.mkdir, '/src/new')
attempt('rmdir', os.rmdir, '/src/empty')
attempt('unlink', os.unlink, '/src/target')
attempt('rename-from', os.rename, '/src/target', '/work/x')
open('/work/mine', 'w').close()
attempt('rename-to', os.rename, '/work/mine', '/src/new')
attempt('rename-over', os.rename, '/work/mine', '/src/target')
attempt('rename-dir', os.rename, '/src/empty', '/src/full')
attempt('link', os.link, '/src/target', '/src/new')
attempt('symlink', os.symlink, '/work/mine', '/src/new')
attempt('mkfifo', os.mkfifo, '/src/new')
attempt('mknod', os.mknod, '/src/new', stat.S_IFREG | 0o644)
src = os.open('/src', os.O_RDONLY)
attempt('at-open', os.open, 'target', os.O_RDWR, dir_fd=src)
attempt('at-mkdir', os.mkdir, 'new', dir_fd=src)
attempt('at-rmdir', os.rmdir, 'empty', dir_fd=src)
attempt('at-unlink', os.unlink, 'target', dir_fd=src)
attempt('at-rename', os.rename, 'target', 'new', src_dir_fd=src, dst_dir_fd=src)
attempt('at-link', os.link, '/work/mine', 'new', dst_dir_fd=src)
attempt('at-symlink', os.symlink, 'mine', 'new', dir_fd=src)
attempt('at-mknod', os.mknod, 'new', dir_fd=src)
os.chdir('/src')
attempt('here-open', 'target')
attempt('here-mkdir', os.mkdir, 'new')
attempt('here-unlink', os.unlink, './target')
os.chdir('/work')
attempt('up-open', '../src/target')
attempt('up-mkdir', os.mkdir, '../../../src/empty/../new')
attempt('up-rename', os.rename, 'mine', '../src/new')
"#,
    );
}

#[test]
fn every_call_that_changes_what_is_known_of_a_file_is_on_record() {
    all_refused_and_on_record(
        r#"
me = os.getuid()
attempt('truncate', os.truncate, '/src/target', 0)
attempt('chmod', os.chmod, '/src/target', 0o600)
attempt('chown', os.chown, '/src/target', me, me)
attempt('lchown', os.lchown, '/src/target', me, me)
attempt('utime', os.utime, '/src/target', (1, 1))
attempt('utime-now', os.utime, '/src/target')
attempt('setxattr', os.setxattr, '/src/target', 'user.x', b'x')
attempt('removexattr', os.removexattr, '/src/target', 'user.x')
attempt('lsetxattr', os.setxattr, '/src/target', 'user.x', b'x', follow_symlinks=False)
fd = os.open('/src/target', os.O_RDONLY)
attempt('fchmod', os.fchmod, fd, 0o600)
attempt('fchown', os.fchown, fd, me, me)
attempt('futime', os.utime, fd, (1, 1))
attempt('fsetxattr', os.setxattr, fd, 'user.x', b'x')
attempt('fremovexattr', os.removexattr, fd, 'user.x')
src = os.open('/src', os.O_RDONLY)
attempt('at-chmod', os.chmod, 'target', 0o600, dir_fd=src)
attempt('at-chown', os.chown, 'target', me, me, dir_fd=src)
attempt('at-utime', os.utime, 'target', (1, 1), dir_fd=src)
attempt('dir-chmod', os.chmod, '/src', 0o700)
attempt('root-chmod', os.chmod, '/', 0o777)
attempt('etc-utime', os.utime, '/etc/passwd')
"#,
    );
}

#[test]
fn a_way_through_links_is_on_record() {
    all_refused_and_on_record(
        r#"
os.symlink('/src/target', 'file'); attempt('link', 'file')
os.symlink('/etc/passwd', 'passwd'); attempt('link-to-etc', 'passwd')
os.symlink('/src', 'dir'); attempt('link-to-dir', 'dir/target')
attempt('truncate', os.truncate, 'file', 0)
attempt('chmod', os.chmod, 'file', 0o600)
attempt('mkdir', os.mkdir, 'dir/new')
attempt('unlink', os.unlink, 'dir/target')
os.symlink('/src/new', 'dangling')
attempt('dangling', os.open, 'dangling', os.O_WRONLY | os.O_CREAT)
os.symlink('../src/new', 'relative')
attempt('dangling-relative', os.open, 'relative', os.O_WRONLY | os.O_CREAT)
"#,
    );
}

#[test]
fn a_dangling_link_that_would_be_made_to_read_is_on_record() {
    all_refused_and_on_record(
        r#"
os.symlink('/src/new', 'dangling')
attempt('plain', '/src/target')
attempt('dangling-to-read', os.open, 'dangling', os.O_RDONLY | os.O_CREAT)
"#,
    );
}

#[test]
fn a_long_chain_of_links_is_on_record() {
    all_refused_and_on_record(
        r#"
for base, end in (('a', '/src/target'), ('b', '/src/new')):
    for i in range(11): os.symlink(f'{base}{i + 1}', f'{base}{i}')
    os.symlink(end, f'{base}11')
attempt('chain', 'a0')
attempt('dangling-chain', os.open, 'b0', os.O_WRONLY | os.O_CREAT)
"#,
    );
}

#[test]
fn a_way_through_its_own_proc_is_on_record() {
    all_refused_and_on_record(
        r#"
fd = os.open('/src/target', os.O_RDONLY)
src = os.open('/src', os.O_PATH)
attempt('fd', f'/proc/self/fd/{fd}')
attempt('dev-fd', f'/dev/fd/{fd}')
attempt('dir-fd', f'/proc/self/fd/{src}/target')
attempt('root', '/proc/self/root/src/target')
attempt('cwd', '/proc/self/cwd/../src/target')
attempt('thread', '/proc/thread-self/root/src/target')
attempt('exe', '/proc/self/exe')
attempt('exe-trunc', os.open, '/proc/self/exe', os.O_RDONLY | os.O_TRUNC)
attempt('create', os.open, '/proc/self/root/src/new', os.O_WRONLY | os.O_CREAT)
attempt('mkdir', os.mkdir, '/proc/self/root/new')
"#,
    );
}

#[test]
fn a_way_through_proc_by_another_spelling_is_on_record() {
    all_refused_and_on_record(
        r#"
fd = os.open('/src/target', os.O_RDONLY)
me = os.getpid()
attempt('pid-root', f'/proc/{me}/root/src/target')
attempt('pid-cwd', f'/proc/{me}/cwd/../src/target')
attempt('pid-fd', f'/proc/{me}/fd/{fd}')
attempt('pid-exe', f'/proc/{me}/exe')
attempt('task', f'/proc/self/task/{me}/root/src/target')
attempt('slashes', '//proc//self/root/src/target')
attempt('dots', '/proc/./self/root/src/target')
attempt('up', '/work/../proc/self/root/src/target')
attempt('back', '/proc/self/../../src/target')
os.symlink('/proc/self/root/src/target', 'link')
attempt('link', 'link')
os.symlink(f'/proc/self/fd/{fd}', 'fd-link')
attempt('fd-link', 'fd-link')
os.symlink('/proc/self/root', 'root')
attempt('root-link', 'root/src/target')
os.chdir('/proc/self')
attempt('relative', 'root/src/target')
proc = os.open('/proc/self', os.O_PATH)
attempt('at', os.open, 'root/src/target', os.O_WRONLY, dir_fd=proc)
"#,
    );
}

#[test]
fn a_name_that_is_no_text_is_on_record() {
    all_refused_and_on_record(
        r#"
attempt('plain', '/src/target')
os.symlink('/src/target', b'/work/\xff\xfe'); attempt('link', b'/work/\xff\xfe')
os.symlink('/src/new', b'/work/\xff\xfd')
attempt('dangling', os.open, b'/work/\xff\xfd', os.O_WRONLY | os.O_CREAT)
os.mkdir(b'/work/\xff'); os.chdir(b'/work/\xff')
attempt('cwd', '../../src/target')
dir = os.open(b'/work/\xff', os.O_RDONLY)
attempt('dirfd', os.open, '../../src/target', os.O_WRONLY, dir_fd=dir)
attempt('new', os.open, b'/src/\xff', os.O_WRONLY | os.O_CREAT)
"#,
    );
}

#[test]
fn the_name_of_a_habit_hides_nothing() {
    all_refused_and_on_record(
        r#"
attempt('plain', '/src/target')
os.mkdir('/work/__pycache__')
attempt('cache', '/work/__pycache__/../../src/target')
os.symlink('/src/target', '/work/__pycache__/x.pyc')
attempt('cached-link', '/work/__pycache__/x.pyc')
os.symlink('/src/target', '/work/comm')
attempt('comm', '/proc/../work/comm')
"#,
    );
}

#[test]
fn the_kernels_own_files_are_on_record() {
    all_refused_and_on_record(
        r#"
for name in ('sys/kernel/core_pattern', 'sys/kernel/modprobe', 'sys/vm/drop_caches', 'sys/kernel/hostname', 'sysrq-trigger'):
    for how, flags in (('w', os.O_WRONLY), ('c', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
        if os.path.lexists('/proc/' + name): attempt(name + how, os.open, '/proc/' + name, flags)
attempt('around', '/proc/self/../sys/kernel/core_pattern')
attempt('thread', '/proc/thread-self/../../../sys/kernel/core_pattern')
"#,
    );
}

#[test]
fn openat2_is_looked_into() {
    let input = Input::new("");
    let ran = input.attack("openat2-writes").run();
    ran.violates(CLASS);
    input.assert_untouched();
    for what in ["plain", "create", "dirfd", "in-root"] {
        assert_eq!(ran.tells(what), "EROFS", "{what}");
    }
    assert_eq!(ran.attempts(CLASS).len(), 4, "{:#}", ran.outcome["violations"]);
}

#[test]
fn openat2_in_order_is_harmless() {
    let input = Input::new("");
    let ran = input.attack("openat2-harmless").run();
    ran.passes();
    assert!(ran.out().lines().all(|l| l.ends_with(" done")), "{}", ran.out());
}

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

#[test]
fn a_pipe_of_the_hosts_in_the_input_can_not_be_written() {
    let input = Input::new(
        "import os\ntry: os.write(os.open('/src/empty/pipe', os.O_WRONLY | os.O_NONBLOCK), b'out'); print('done')\nexcept OSError: print('refused')",
    );
    let pipe = input.path().join("empty/pipe");
    let made = std::process::Command::new("mkfifo").args(["-m", "666"]).arg(&pipe).status();
    assert!(made.expect("mkfifo is installed").success());
    // Open for both, it needs nobody at the other end.
    let mut host = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(0o4000)
        .open(&pipe)
        .expect("the test's own pipe");
    let ran = input.python().run();
    assert_eq!(ran.out(), "refused\n");
    let got = host.read(&mut [0; 8]).map_err(|e| e.kind());
    assert_eq!(got, Err(std::io::ErrorKind::WouldBlock), "it came through");
    ran.violates(CLASS);
}

#[test]
fn a_flood_of_attempts_is_counted_and_bounded() {
    let ran = python(
        "import os\n\
         for i in range(3000):\n\
         \x20   try: os.open('/src/main.py', os.O_WRONLY)\n\
         \x20   except OSError: pass\n\
         print('through')",
    )
    .flag("--timeout", "10m")
    .run();
    ran.violates(CLASS);
    assert_eq!(ran.out(), "through\n");
    let listed = ran.attempts(CLASS).len();
    assert!((1..=1000).contains(&listed), "{listed} are listed");
}

#[test]
fn a_scratch_of_nothing_is_read_only_and_attempts_are_on_record() {
    let ran = python(
        "import os\n\
         for dir in ('/work', '/tmp', '/dev/shm'):\n\
         \x20   try: open(dir + '/x', 'w'); print('done')\n\
         \x20   except OSError as e: print('refused')",
    )
    .flag("--scratch", "0")
    .run();
    ran.violates(CLASS);
    assert_eq!(ran.out(), "refused\nrefused\nrefused\n");
    assert_eq!(ran.attempts(CLASS).len(), 3);
}

#[test]
fn everything_is_in_order_in_the_scratch() {
    let ran = python(
        r#"
import fcntl, mmap, os, pathlib, shutil, stat, subprocess, tempfile
me = os.getuid()
for top in ('/work', '/tmp', '/dev/shm'):
    os.chdir(top)
    os.makedirs('a/b/c', exist_ok=True); os.makedirs(top + '/a/b', exist_ok=True)
    dir = os.open('a', os.O_RDONLY)
    with open('a/file', 'w+') as f:
        f.write('text' * 2000); f.flush()
        os.fchmod(f.fileno(), 0o600); os.fchown(f.fileno(), me, me); os.utime(f.fileno(), (1, 1))
        os.ftruncate(f.fileno(), 4096); os.posix_fallocate(f.fileno(), 0, 8192)
        fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX)
        mmap.mmap(f.fileno(), 4096)[0:2] = b'xx'
        os.open(f'/proc/self/fd/{f.fileno()}', os.O_RDWR | os.O_TRUNC)
    os.truncate('a/file', 3); os.chmod('a/file', 0o644); os.chown('a/file', me, me); os.utime('a/file')
    os.link('a/file', 'a/hard'); os.symlink('file', 'a/soft'); os.open('a/soft', os.O_WRONLY)
    os.symlink('new', 'a/dangling'); open('a/dangling', 'w').close()
    os.rename('a/hard', 'a/hard2'); os.replace('a/hard2', 'a/file'); os.mkfifo('a/fifo')
    os.mkdir('d', dir_fd=dir); os.rmdir('d', dir_fd=dir)
    os.open('e', os.O_CREAT | os.O_RDWR, dir_fd=dir); os.rename('e', 'f', src_dir_fd=dir, dst_dir_fd=dir)
    os.chmod('f', 0o600, dir_fd=dir); os.utime('f', dir_fd=dir); os.unlink('f', dir_fd=dir)
    os.open(top, os.O_TMPFILE | os.O_RDWR)
    os.open('/proc/self/cwd/new', os.O_CREAT | os.O_WRONLY)
    os.open(f'/proc/self/root{top}/new', os.O_WRONLY)
    try: os.setxattr('a/file', 'user.x', b'x'); os.removexattr('a/file', 'user.x')
    except OSError: pass
    os.chmod(top, 0o700)
    pathlib.Path('script').write_text('#!/bin/sh\necho ran\n'); os.chmod('script', 0o755)
    assert subprocess.check_output(['./script']) == b'ran\n'
    shutil.rmtree('a')
for kind in (tempfile.TemporaryFile, tempfile.NamedTemporaryFile, tempfile.SpooledTemporaryFile):
    with kind() as f: f.write(b'x')
with tempfile.TemporaryDirectory() as name: open(name + '/x', 'w').close()
subprocess.run(['mkdir', '-p', '/tmp/a/b', '/work/../tmp/a/c'], check=True)
subprocess.run(['sh', '-c', 'echo x > /tmp/a/b/x; cp -a /tmp/a /work/a; mv /work/a /tmp/z; rm -r /tmp/z /tmp/a'], check=True)
os.mkdir(b'/work/\xff'); open(b'/work/\xff/\xfe', 'w').close(); shutil.rmtree(b'/work/\xff')
"#,
    )
    .run();
    ran.passes();
}

#[test]
fn a_database_in_the_scratch_is_harmless() {
    let ran = python(
        "try: import sqlite3\n\
         except ImportError: print('no sqlite3'); raise SystemExit\n\
         for mode in ('delete', 'wal', 'truncate'):\n\
         \x20   db = sqlite3.connect('/work/db'); db.execute('pragma journal_mode=' + mode)\n\
         \x20   db.execute('create table if not exists t(a)'); db.execute('insert into t values(1)')\n\
         \x20   db.commit(); db.execute('vacuum'); db.close()",
    )
    .run();
    ran.passes();
    if ran.out().contains("no sqlite3") {
        eprintln!("this Python has no sqlite3: only that much was tried");
    }
}

#[test]
fn devices_and_streams_are_harmless() {
    let ran = python(
        r#"
import os
for name in ('null', 'zero', 'full'):
    os.open('/dev/' + name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
open('/dev/null', 'a').write('x')
try: open('/dev/tty', 'r+')
except OSError: pass
os.chdir('/dev'); open('null', 'w').write('x'); os.chdir('/work')
for name in ('/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'): open(name, 'w').write('x')
open('/dev/stderr', 'w').write('e')
os.system('echo y > /dev/stdout; echo e > /dev/stderr; echo z | tee /dev/null > /dev/null; : > /dev/null')
"#,
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "xxxy\n");
}

#[test]
fn streams_by_other_names_are_harmless() {
    let ran = python(
        r#"
import os
os.symlink('/dev/stdout', '/work/access.log'); open('/work/access.log', 'w').write('a')
os.symlink('/proc/self/fd/1', '/work/fd.log'); open('/work/fd.log', 'a').write('b')
open(f'/proc/{os.getpid()}/fd/1', 'w').write('c')
os.symlink('/dev/null', '/work/null'); open('/work/null', 'w').write('d')
"#,
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "abc");
}

#[test]
fn files_that_have_no_name_are_harmless() {
    let ran = python(
        r#"
import os
try: fd = os.memfd_create('x')
except OSError: pass # without a group
else: open(f'/proc/self/fd/{fd}', 'w').write('x'); os.fchmod(fd, 0o600)
open('/work/gone', 'w').close(); fd = os.open('/work/gone', os.O_RDWR); os.unlink('/work/gone')
open(f'/proc/self/fd/{fd}', 'w').write('x'); os.fchmod(fd, 0o600); os.utime(fd)
os.mkdir('/work/d'); os.chdir('/work/d'); os.rmdir('/work/d')
try: open('x', 'w')
except FileNotFoundError: print('gone')
"#,
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "gone\n");
}

#[test]
fn links_of_its_own_to_files_of_others_are_harmless() {
    let ran = python(
        r#"
import os, subprocess
me = os.getuid()
os.symlink('/usr/bin/env', 'env'); os.symlink('/src', 'src')
os.lchown('env', me, me); os.chown('env', me, me, follow_symlinks=False)
os.utime('env', (1, 1), follow_symlinks=False)
os.rename('env', 'env2'); os.link('env2', 'env3', follow_symlinks=False); os.unlink('env3')
subprocess.run('cp -a env2 copy && touch -h copy && chown -h cell copy && mv copy copy2 && rm copy2 && ln -sfn /usr src', shell=True, check=True)
os.unlink('src'); os.unlink('env2')
"#,
    )
    .run();
    ran.passes();
}

#[test]
fn what_would_change_nothing_is_harmless() {
    let input = Input::new(
        r#"
import errno, os, sys
os.open('/src/target', os.O_RDONLY | os.O_CREAT)
os.open('/src/target', os.O_PATH | os.O_RDWR)
os.access('/src/target', os.W_OK)
def fails(code, act, *args):
    try: act(*args); print('done', act)
    except OSError as e: assert e.errno in (code, errno.EROFS), (act, e)
fails(errno.ENOENT, os.unlink, '/src/nothing')
fails(errno.ENOENT, os.rmdir, '/src/nothing')
fails(errno.ENOENT, os.chmod, '/src/nothing', 0o600)
fails(errno.ENOENT, os.open, '/src/nothing', os.O_WRONLY)
fails(errno.ENOENT, os.open, '/nowhere/nothing', os.O_WRONLY)
fails(errno.ENOENT, os.open, '', os.O_WRONLY)
for name in ('/src', '/usr', '/', '/tmp', '/work'): fails(errno.EEXIST, os.mkdir, name)
fails(errno.EXDEV, os.link, '/src/target', '/work/hard')
os.makedirs('/src/empty', exist_ok=True)
"#,
    );
    let ran = input.python().run();
    ran.passes();
    assert_eq!(ran.out(), "");
    input.assert_untouched();
}

#[test]
fn a_module_beside_the_source_is_imported_without_an_accusation() {
    let input = Input::new(
        "import sys\nsys.dont_write_bytecode = False\nsys.path.insert(0, '/src/empty')\nimport beside\nimport tabnanny",
    );
    std::fs::write(input.path().join("empty/beside.py"), "print('beside')").expect("ours");
    let ran = input.python().flag("--env", "PYTHONDONTWRITEBYTECODE=").run();
    ran.passes();
    assert_eq!(ran.out(), "beside\n");
    assert!(!input.path().join("empty/__pycache__").exists());
}
