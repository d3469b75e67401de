//! Escapes that worked elsewhere: each is looked at from inside and from outside.

use crate::harness::*;

/// Words that are of the host and must be nowhere in a cell.
const SECRET: &str = "SECRET_OF_THE_HOST";

#[test]
fn init_shows_nothing_of_the_host() {
    let ran = python(
        r#"
import errno, os
for name in ('exe', 'root', 'cwd', 'ns/mnt', 'ns/user'):
    try: print('done', name, os.readlink('/proc/1/' + name))
    except OSError as e: assert e.errno == errno.EACCES, (name, e)
for name in ('environ', 'mem', 'maps', 'smaps', 'auxv', 'fd', 'fdinfo', 'map_files', 'io', 'stack', 'syscall', 'pagemap', 'root/etc/shadow', 'cwd/x'):
    path = '/proc/1/' + name
    try: print('done', name, os.listdir(path) if os.path.isdir(path) else open(path, 'rb').read(100))
    except OSError as e: assert e.errno in (errno.EACCES, errno.EPERM, errno.ENOENT), (name, e)
import subprocess
try: print('done', subprocess.run(['/proc/1/exe', '--version']))
except OSError as e: assert e.errno == errno.EACCES, e
print('looked')
"#,
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "looked\n");
}

#[test]
fn the_command_line_of_hotcell_is_not_shown_inside() {
    let cell = python("print(open('/proc/1/cmdline', 'rb').read(), open('/proc/1/comm').read())");
    let ran = cell.flag("--request-id", "id-for-the-host-only").run();
    ran.passes();
    assert!(!ran.out().contains("id-for-the-host-only"), "{}", ran.out());
    assert!(!ran.out().contains("--output"), "{}", ran.out());
}

#[test]
fn the_environment_of_the_host_is_nowhere_inside() {
    let ran = python(
        r#"
import glob, os
seen = ' '.join(os.environ)
for name in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/task/*/environ') + ['/proc/self/environ']:
    try: seen += open(name).read()
    except OSError: pass
# What the kernel put above the stack of this very process.
for line in open('/proc/self/maps'):
    if '[stack]' in line:
        first, last = (int(n, 16) for n in line.split()[0].split('-'))
        mem = open('/proc/self/mem', 'rb'); mem.seek(first); seen += mem.read(last - first).decode('latin1')
word = 'SECRET' + '_OF_THE_HOST'
print(word in seen, sorted(os.environ))
"#,
    )
    .run();
    ran.passes();
    assert_eq!(
        ran.out(),
        "False ['HOME', 'HOTCELL_TEST_MARK', 'LANG', 'LOGNAME', 'PATH', 'PYTHONDONTWRITEBYTECODE', 'TERM', 'TMPDIR', 'USER']\n"
    );
    // The one way in is to ask for it.
    let ran = python("import os; print(os.environ['SECRET_OF_THE_HOST'])").flag("--env", SECRET).run();
    ran.passes();
    assert_eq!(ran.out(), "do-not-tell\n");
}

#[test]
fn fds_that_hotcell_was_started_with_stay_outside() {
    let ran = exec(&["sh", "-c", "for fd in /proc/self/fd/*; do echo ${fd##*/}; done"])
        .inheriting("3</etc/passwd 4</ 5<>/dev/null 7</proc 9<&0")
        .run();
    ran.passes();
    // The shell itself has the directory open while it looks: as the lowest that is free.
    assert_eq!(ran.out(), "0\n1\n2\n3\n");
    let ran =
        exec(&["sh", "-c", "readlink /proc/self/fd/4 /proc/self/fd/5 /proc/self/fd/7 /proc/self/fd/9 || echo none"])
            .inheriting("4</ 5</etc 7</proc 9<&0")
            .run();
    ran.passes();
    assert_eq!(ran.out(), "none\n");
    // Nor are there any beyond the limit, where the listener was handed over.
    let ran = python(
        "import os\n\
         for fd in range(3, 70000):\n\
         \x20   try: os.fstat(fd); print('open', fd)\n\
         \x20   except OSError: pass",
    )
    .inheriting("4</ 8</etc/passwd")
    .run();
    ran.passes();
    assert_eq!(ran.out(), "");
}

#[test]
fn files_of_the_host_are_not_there() {
    let own = python("");
    let host_file = own.dir().join("input");
    std::fs::write(&host_file, "of the host").expect("the test's own directory");
    let ran = python(&format!(
        r#"
import os
for name in ('/etc/shadow', '/etc/ssh', '/etc/machine-id', '/home', '/var', '/run', '/sys', '/boot', '/mnt', '/opt', '/srv',
             '/etc/resolv.conf', '/proc/sys/fs/binfmt_misc/register', '/sys/fs/cgroup', '/dev/mem', '/dev/kmsg', '/dev/tty',
             '/dev/ptmx', '/dev/pts', '/dev/console', '/dev/kvm', '/dev/fuse', '/dev/net/tun', '/dev/vda', '/dev/sda',
             '/root/.ssh', '/root/.bashrc', '/root/.profile', '{}'):
    if os.path.lexists(name): print('there:', name)
allowed = {{'bin', 'dev', 'etc', 'lib', 'lib32', 'lib64', 'libx32', 'proc', 'root', 'sbin', 'src', 'tmp', 'usr', 'work'}}
print(set(os.listdir('/')) - allowed, os.listdir('/work'), os.listdir('/tmp'), os.listdir('/dev/shm'), sorted(os.listdir('/dev')))
print(open('/etc/passwd').read().count('\n'), open('/etc/hostname').read().strip(), os.uname().nodename)
"#,
        host_file.display()
    ))
    .run();
    ran.passes();
    let devices = "['fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', 'zero']";
    assert_eq!(ran.out(), format!("set() [] [] [] {devices}\n2 cell cell\n"));
}

#[test]
fn a_link_in_the_input_leads_nowhere_on_the_host() {
    let own = python("");
    let secret = own.dir().join("input");
    std::fs::write(&secret, "of the host").expect("the test's own directory");
    let input = Input::new(
        r#"
import os
for name in ('absolute', 'relative', 'shadow'):
    try: print('done', open('/src/empty/' + name).read())
    except FileNotFoundError: print('nothing')
print(open('/src/empty/passwd').read().count('\n'))
"#,
    );
    let up = format!("../../../../../../../../{}", secret.display());
    for (name, to) in [
        ("absolute", secret.display().to_string()),
        ("relative", up),
        ("shadow", "/etc/shadow".into()),
        ("passwd", "/etc/passwd".into()),
    ] {
        std::os::unix::fs::symlink(to, input.path().join("empty").join(name)).expect("ours");
    }
    let ran = input.python().run();
    ran.passes();
    assert_eq!(ran.out(), "nothing\nnothing\nnothing\n2\n");
}

#[test]
fn what_proc_tells_of_the_kernel_is_masked() {
    let ran = python(
        r#"
import os
for name in ('kcore', 'keys', 'key-users', 'kallsyms', 'modules', 'timer_list', 'cmdline', 'config.gz', 'kmsg', 'kpagecount', 'slabinfo', 'vmallocinfo'):
    try: data = open('/proc/' + name, 'rb').read(100)
    except OSError: continue
    if data: print('tells:', name)
"#,
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "");
}

#[test]
fn the_root_of_the_cell_is_its_own_and_above_it_is_nothing() {
    let ran = python(
        r#"
import os
root = os.stat('/')
for name in ('/..', '/../..', '/work/../..', '/proc/self/root/..', '/proc/self/cwd/../..'):
    s = os.stat(name); assert (s.st_dev, s.st_ino) == (root.st_dev, root.st_ino), name
fd = os.open('/', os.O_PATH)
os.chdir('/work')
s = os.stat('../../../../..', dir_fd=fd); assert (s.st_dev, s.st_ino) == (root.st_dev, root.st_ino)
print(os.getcwd())
"#,
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "/work\n");
}

#[test]
fn it_has_no_privilege_and_can_get_none() {
    let ran = python(
        r#"
import os
CONTAINER = os.environ.get('CONTAINER')
status = dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines())
for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'): assert int(status[name], 16) == 0, name
assert status['NoNewPrivs'].strip() == '1' and status['Seccomp'].strip() == '2'
assert set(status['Groups'].split()) <= {'1000', '65534'}, status['Groups']
assert os.getresuid() == os.getresgid() == (1000, 1000, 1000)
for act in (os.setuid, os.setgid, os.seteuid, os.setegid):
    try: act(0); print('became root')
    except OSError: pass
try: os.setgroups([0]); print('has groups')
except OSError: pass
for name in ('uid_map', 'gid_map'):
    ids = [tuple(map(int, line.split())) for line in open('/proc/self/' + name)]
    assert [inside for inside, _, _ in ids] == [1000], ids
    # In a container of an ordinary user's, 0 is himself, in the namespace that he made.
    assert all((outside != 0 or CONTAINER == 'user') and count == 1 for _, outside, count in ids), ids
print(open('/proc/self/setgroups').read().strip() if os.getresuid()[0] else '')
"#,
    );
    let who = if as_user() { "CONTAINER=user" } else { "CONTAINER=root" };
    let ran = if backend().is_some() { ran.flag("--env", who).run() } else { ran.run() };
    ran.passes();
    if as_user() {
        assert_eq!(ran.out(), "deny\n");
    }
}

/// While a script is being executed, /proc/self/exe is still who executes it.
#[test]
fn hotcell_itself_cannot_be_executed_from_inside() {
    let input = Input::new("");
    let script = input.path().join("script");
    write_program(&script, "#!/proc/self/exe --version\n", 0o755);
    let ran = exec(&["/src/script"]).flag("--input", input.path()).run();
    assert_eq!((ran.code, ran.class()), (126, "SetupFailure"), "{:#}", ran.outcome);
    write_program(&script, "#!/bin/cat\n", 0o755);
    let ran = exec(&["/src/script"]).flag("--input", input.path()).run();
    ran.passes();
    assert_eq!(ran.out(), "#!/bin/cat\n");
}

#[test]
fn a_setuid_program_gives_nothing() {
    let input = Input::new(
        "import os, subprocess\n\
         assert os.stat('/src/empty/id').st_mode & 0o6000 == 0o6000\n\
         print(subprocess.check_output(['/src/empty/id', '-u']), subprocess.check_output(['/src/empty/id', '-g']))\n\
         import shutil; shutil.copy('/src/empty/id', '/work/id'); os.chmod('/work/id', 0o6755)\n\
         print(subprocess.check_output(['/work/id', '-u']))",
    );
    let id = input.path().join("empty/id");
    copy_program("/usr/bin/id", &id);
    set_mode(&id, 0o6755);
    let ran = input.python().run();
    ran.passes();
    assert_eq!(ran.out(), "b'1000\\n' b'1000\\n'\nb'1000\\n'\n");
}

#[test]
fn every_mount_is_read_only_but_the_scratch_and_none_has_setuid_or_devices() {
    let ran = python("print(open('/proc/self/mountinfo').read())").run();
    ran.passes();
    let mut seen = 0;
    for line in ran.out().lines().filter(|l| !l.is_empty()) {
        let fields: Vec<&str> = line.split(' ').collect();
        let (point, options) = (fields[4], fields[5]);
        let has = |name| options.split(',').any(|o| o == name);
        let scratch = ["/work", "/tmp", "/dev/shm"].contains(&point);
        let device = ["/null", "/zero", "/full", "/random", "/urandom"].contains(&fields[3]);
        // A device is no program: the flag means nothing there.
        assert!(device || has("nosuid"), "{line}");
        assert!(device || has("nodev"), "{line}");
        assert!(device || scratch || has("ro"), "{line}");
        assert!(!line.contains(" - cgroup") && !line.contains(" - sysfs"), "{line}");
        assert!(!line.contains("shared:") && !line.contains("master:"), "{line}");
        seen += 1;
    }
    assert!(seen > 8, "{}", ran.out());
}

#[test]
fn device_nodes_can_not_be_made() {
    let ran = python(
        r#"
import errno, os, stat
for kind in (stat.S_IFCHR, stat.S_IFBLK):
    for device in (os.makedev(1, 1), os.makedev(8, 0), os.makedev(254, 0)):
        for dir in ('/work', '/tmp', '/dev/shm'):
            try: os.mknod(dir + '/node', kind | 0o666, device); print('done')
            except OSError as e: assert e.errno in (errno.EPERM, errno.EACCES), e
os.mkfifo('/work/fifo'); os.mknod('/work/file')
"#,
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "");
}

#[test]
fn the_host_name_can_not_be_changed() {
    let ran = python("import socket\ntry: socket.sethostname('x')\nexcept OSError: print(socket.gethostname())").run();
    ran.violates("SyscallViolation");
    assert_eq!(ran.attempts("SyscallViolation")[0]["syscall"], "sethostname");
    assert_eq!(ran.out(), "cell\n");
}

#[test]
fn a_program_sees_its_own_processes_only_and_can_signal_no_other() {
    let ran = python(
        r#"
import os, signal, subprocess
child = subprocess.Popen(['cat'], stdin=subprocess.PIPE)
print(sorted(int(n) for n in os.listdir('/proc') if n.isdigit()) == [1, os.getpid(), child.pid])
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGHUP): os.kill(1, number)
os.kill(-1, signal.SIGKILL)
print(child.wait())
print(os.getppid())
"#,
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "True\n-9\n1\n");
}

#[test]
fn signals_do_not_disturb_init() {
    let ran = attack("tame-init").run();
    ran.passes();
    assert_eq!(ran.out(), "alive\n");
}

#[test]
fn init_can_not_be_made_deaf() {
    // With no fd allowed, init's own poll fails.
    let ran = attack("tame-init").program(&["7"]).flag("--timeout", "60s").run();
    ran.passes();
    assert_eq!(ran.out(), "alive\n");
}

#[test]
fn init_can_not_be_killed_by_taking_its_time_away() {
    let all: Vec<String> = (0..16).map(|n| n.to_string()).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let ran = attack("tame-init").program(&all).flag("--timeout", "60s").run();
    ran.passes();
    assert_eq!(ran.out(), "alive\n");
}

#[test]
fn a_cell_sees_nothing_of_another() {
    let input = Input::new(
        r#"
import os, socket
for name in ('/tmp/held', '/work/held', '/dev/shm/held'): assert not os.path.lexists(name), name
assert 'holding' not in [open(f'/proc/{n}/comm').read().strip() for n in os.listdir('/proc') if n.isdigit()]
try: socket.socket(socket.AF_UNIX).connect('\0hotcell-held'); print('reached')
except ConnectionRefusedError: pass
assert 'held' not in open('/proc/net/unix').read()
"#,
    );
    let other = input.attack("hold").holding_stdin().start();
    other.wait_for_name("holding");
    let ran = input.python().run();
    ran.passes();
    assert_eq!(ran.out(), "");
    let held = other.finish();
    held.passes();
    assert!(held.out().contains("alone"), "{}", held.out());
}

#[test]
fn a_lock_on_a_shared_file_tells_another_cell_nothing() {
    let input = Input::new(
        "import fcntl\n\
         try: fcntl.flock(open('/src/target'), fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
         except BlockingIOError: print('somebody has it')\n\
         except OSError: pass",
    );
    let other = input.attack("hold").holding_stdin().start();
    other.wait_for_name("holding");
    let seen = input.python().run();
    // Nor may a cell hold up the host.
    let file = std::fs::File::open(input.path().join("target")).expect("the test's own");
    let free = file.try_lock();
    other.finish();
    assert_eq!(seen.out(), "", "a channel between cells");
    assert!(free.is_ok(), "a cell holds a lock of the host's");
}

#[test]
fn shared_memory_counts_against_the_scratch() {
    let ran = python(
        r#"
import errno, os
fd = os.open('/dev/shm/big', os.O_WRONLY | os.O_CREAT)
try:
    while True: os.write(fd, b'x' * (1 << 20))
except OSError as e: print(errno.errorcode[e.errno], os.stat('/dev/shm/big').st_size <= 8 << 20)
try: open('/work/x', 'w').write('x' * 100000)
except OSError as e: print(errno.errorcode[e.errno])
"#,
    )
    .flag("--scratch", "8m")
    .flag("--file-size", "64m")
    .run();
    ran.violates("DiskLimitViolation");
    assert_eq!(ran.out(), "ENOSPC True\nENOSPC\n");
    python("open('/dev/shm/small', 'w').write('x' * 1000000)").flag("--scratch", "8m").run().passes();
}

#[test]
fn a_program_that_goes_into_the_background_does_not_outlive_the_run() {
    // Harness looks for what is left.
    let ran = python(
        r#"
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in (0, 1, 2): os.close(fd)
        time.sleep(1000)
    os._exit(0)
os.wait()
print('gone')
"#,
    )
    .run();
    ran.passes();
    assert_eq!(ran.out(), "gone\n");
}

#[test]
fn what_is_left_for_the_host_is_regular_files_and_nothing_that_they_point_to() {
    let out = Input::new("");
    let to = out.path().join("empty");
    let ran = python(
        r#"
import os, socket
open('plain', 'w').write('plain')
os.symlink('/etc/shadow', 'shadow'); os.symlink('/proc/self/environ', 'environ'); os.symlink('..', 'up')
os.symlink('plain', 'soft'); os.link('plain', 'hard'); os.mkfifo('pipe')
socket.socket(socket.AF_UNIX).bind('socket')
open(b'no text \xff', 'w').write('x'); open('closed', 'w').write('x'); os.chmod('closed', 0)
os.mkdir('shut'); open('shut/in', 'w').write('x'); os.chmod('shut', 0)
open('.hotcell-events', 'w').write('a name like any other')
os.mkdir('-rf'); open('-rf/x\n', 'w').write('x')
fd = os.open('sparse', os.O_RDWR | os.O_CREAT); os.ftruncate(fd, 256 << 20)
"#,
    )
    .flag("--scratch", "64m")
    .flag("--file-size", "512m")
    .flag("--artifacts", &to)
    .run();
    ran.passes();
    let mut names: Vec<String> = std::fs::read_dir(&to)
        .expect("it is there")
        .flatten()
        .inspect(|e| {
            let kind = e.file_type().expect("it is there");
            assert!(kind.is_file() || kind.is_dir(), "{:?}", e.file_name());
        })
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "closed" && name != "shut")
        .collect();
    names.sort();
    assert_eq!(names, ["-rf", ".hotcell-events", "hard", "plain"]);
    let skipped = ran.outcome["skipped_checks"].to_string();
    // Root reads them all the same; from whom they are kept is told so.
    assert!(to.join("shut/in").exists() || skipped.contains("a directory that may not be read"), "{skipped}");
    assert!(skipped.contains("sparse") && skipped.contains(r"no text \\xff"), "{skipped}");
}
