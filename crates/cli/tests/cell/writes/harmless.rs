//! What writes and does no harm: all of the scratch, devices, streams, what would change nothing.

use crate::harness::*;

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
