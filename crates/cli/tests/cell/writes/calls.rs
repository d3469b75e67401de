//! Every call that writes: outside the scratch it is refused, and on record.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use super::{CLASS, all_refused_and_on_record};
use crate::harness::*;

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
