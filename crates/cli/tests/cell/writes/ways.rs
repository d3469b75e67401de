//! Every way around to a place outside the scratch: links, /proc, names that are no text or look like a habit.

use super::all_refused_and_on_record;

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
