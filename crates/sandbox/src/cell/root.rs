//! The cell's file system, step by step.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::{Step, c_path};
use crate::scratch;
use crate::spec::{Limits, Tree};
use crate::sys::files;
use crate::sys::mount::{
    self, ATTR_NODEV, ATTR_NOEXEC, ATTR_NOSUID, ATTR_RDONLY, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY,
};
use crate::wire::{Failure, PlannedFile};

/// The host's root, while it can still be reached.
pub(crate) struct Host {
    dir: Option<OwnedFd>,
}

impl Host {
    fn dir(&self) -> io::Result<BorrowedFd<'_>> {
        self.dir.as_ref().map(AsFd::as_fd).ok_or_else(|| io::Error::from_raw_os_error(libc::ESTALE))
    }

    pub(super) fn take(&mut self) -> Host {
        Host { dir: self.dir.take() }
    }

    /// As this process sees it now.
    pub(crate) fn here() -> Result<Host, Failure> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Host { dir: Some(rustix::fs::open("/", flags, Mode::empty()).step("open", "/")?) })
    }

    /// Back to it, out of a root that was entered.
    pub(crate) fn enter(&self) -> Result<(), Failure> {
        rustix::process::fchdir(self.dir().step("leave the root", "")?).step("leave the root", "")?;
        rustix::process::chroot(".").step("leave the root", "")
    }

    /// The host disappears, once.
    pub(crate) fn detach(&mut self) -> Result<(), Failure> {
        let Some(dir) = self.dir.take() else { return Ok(()) };
        rustix::process::fchdir(&dir).step("step aside", "")?;
        drop(dir);
        mount::detach_here().step("detach the host", "")?;
        rustix::process::chdir("/").step("enter the root", "")
    }
}

/// Name, major, minor: what each must be, or it is not bound.
const DEVICES: [(&str, u32, u32); 5] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9)];

/// What tells of the host or its kernel more than a program needs. All of /proc is read-only besides.
pub(crate) const MASKED: [&str; 9] =
    ["kcore", "keys", "key-users", "kallsyms", "modules", "timer_list", "cmdline", "config.gz", "locks"];

const ETC: [(&str, &str); 6] = [
    ("etc/passwd", "cell:x:1000:1000:cell:/work:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
    ("etc/group", "cell:x:1000:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost cell\n::1 localhost\n"),
    ("etc/hostname", "cell\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    ("etc/host.conf", "multi on\n"),
];

fn dir(path: impl AsRef<Path>) -> Result<(), Failure> {
    let path = path.as_ref();
    match rustix::fs::mkdirat(CWD, path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(e) => Err(e).step("make a directory in the root", path),
    }
}

fn file(path: impl AsRef<Path>, mode: u32) -> Result<OwnedFd, Failure> {
    let path = path.as_ref();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::from_raw_mode(mode)).step("make a file in the root", path)
}

/// `/a/b` as `a/b`, with every directory above the last name made; nothing but plain names.
fn inside(path: &Path) -> Result<PathBuf, Failure> {
    let mut relative = PathBuf::new();
    for part in path.components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => relative.push(name),
            _ => {
                return Err(io::Error::from_raw_os_error(libc::EINVAL)).step("place in the root", path);
            }
        }
    }
    for above in relative.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
        if !above.as_os_str().is_empty() {
            dir(above)?;
        }
    }
    Ok(relative)
}

/// A root of our own, with the host's still reachable by the fd that is returned.
pub(super) fn build() -> Result<Host, Failure> {
    mount::make_private().step("make mounts private", "/")?;
    let host = Host::here()?;
    // Any directory that surely exists can carry the new root for the moment until it is the root.
    mount::mount_new(c"tmpfs", c"/proc", MS_NOSUID | MS_NODEV, c"mode=755").step("mount the root", "tmpfs")?;
    rustix::process::chdir("/proc").step("enter the root", "")?;
    skeleton(&host)?;
    mount::mount_new(c"proc", c"proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, c"").step("mount", "proc")?;
    mask()?;
    mount::pivot_here().step("pivot to the root", "")?;
    Ok(host)
}

/// The same in a container, over an image where there is one. /proc is the container's, with all that its maker has masked:
/// the kernel gives no new one to who sees only a part.
pub(crate) fn build_within(image: Option<BorrowedFd<'_>>) -> Result<Host, Failure> {
    mount::make_private().step("make mounts private", "/")?;
    let host = Host::here()?;
    let proc = mount::clone_tree(host.dir().step("bind", "/proc")?, c"proc", true).step("bind", "/proc")?;
    mount::set_attr(proc.as_fd(), ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC, true)
        .step("make read-only", "/proc")?;
    mount::mount_new(c"tmpfs", c"/proc", MS_NOSUID | MS_NODEV, c"mode=755").step("mount the root", "tmpfs")?;
    rustix::process::chdir("/proc").step("enter the root", "")?;
    if let Some(tree) = image {
        ["root", "lower", "upper", "work"].into_iter().try_for_each(dir)?;
        begin_upper()?;
        mount::attach(tree, CWD, c"lower").step("attach the image", "")?;
        let options = c"lowerdir=lower,upperdir=upper,workdir=work";
        mount::mount_new(c"overlay", c"root", MS_NOSUID | MS_NODEV, options).step("mount the image", "")?;
        rustix::process::chdir("root").step("enter the root", "")?;
    }
    let at = rustix::fs::open(".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let at = at.step("enter the root", "")?;
    // What an image has in it may be links to anywhere: anywhere is inside.
    rustix::process::chroot(".").step("enter the root", "")?;
    if image.is_some() {
        mount::mount_new(c"tmpfs", c"dev", MS_NOSUID, c"mode=755").step("mount", "/dev")?;
    }
    skeleton(&host)?;
    mount::attach(proc.as_fd(), CWD, c"proc").step("bind", "/proc")?;
    mask()?;
    host.enter()?;
    rustix::process::fchdir(&at).step("enter the root", "")?;
    mount::pivot_here().step("pivot to the root", "")?;
    Ok(host)
}

/// Directories of every root, of which the cell makes something.
const PLACES: [&str; 6] = ["proc", "dev", "etc", "src", "work", "tmp"];

/// What is laid over an image, in `upper`: what it has under these names is beneath, if it is a directory. Anything else is not
/// there, a link among it. And what others own could not be added to.
pub(crate) fn begin_upper() -> Result<(), Failure> {
    PLACES.iter().try_for_each(|name| dir(Path::new("upper").join(name)))
}

fn mask() -> Result<(), Failure> {
    for name in MASKED {
        let target = c_path(format!("proc/{name}")).step("mask", name)?;
        match mount::bind(c"dev/null", &target) {
            // Not every kernel has every file.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => other.step("mask", format!("/proc/{name}"))?,
        }
    }
    Ok(())
}

/// What every root has, made in the working directory.
pub(crate) fn skeleton(host: &Host) -> Result<(), Failure> {
    PLACES.into_iter().chain(["dev/shm"]).try_for_each(dir)?;
    for (path, text) in ETC {
        // An image has its own.
        if rustix::fs::statat(CWD, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_err() {
            rustix::io::write(file(path, 0o644)?, text.as_bytes()).step("write", path)?;
        }
    }
    devices(host)
}

fn devices(host: &Host) -> Result<(), Failure> {
    for (name, major, minor) in DEVICES {
        let what = format!("/dev/{name}");
        let node = c_path(format!("dev/{name}")).step("bind a device", &what)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(host.dir().step("bind a device", &what)?, &node, flags, Mode::empty())
            .step("bind a device", &what)?;
        let stat = rustix::fs::fstat(&fd).step("bind a device", &what)?;
        let real = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
            && (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)) == (major, minor);
        if !real {
            return Err(io::Error::from_raw_os_error(libc::ENODEV)).step("bind a device", &what);
        }
        drop(file(Path::new("dev").join(name), 0o666)?);
        let tree = mount::clone_tree(fd.as_fd(), c"", false).step("bind a device", &what)?;
        mount::attach(tree.as_fd(), CWD, &node).step("bind a device", &what)?;
    }
    for (link, to) in [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")] {
        rustix::fs::symlinkat(to, CWD, Path::new("dev").join(link)).step("link in /dev", link)?;
    }
    Ok(())
}

pub(crate) fn links(links: &[(PathBuf, PathBuf)]) -> Result<(), Failure> {
    // The working directory is the root of the cell since the pivot.
    for (at, to) in links {
        rustix::fs::symlinkat(to, CWD, inside(at)?).step("make a link", at)?;
    }
    Ok(())
}

/// A tree of the host's, whose root directory `root` is, detached and harmless: read-only, no setuid, no devices, all the
/// way down.
pub(crate) fn open_tree(root: BorrowedFd<'_>, tree: &Tree) -> io::Result<OwnedFd> {
    let name = |path: &Path| c_path(path.strip_prefix("/").unwrap_or(path));
    let fd = match &tree.beneath {
        None => mount::clone_tree(root, &name(&tree.host)?, true)?,
        Some(dir) => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = rustix::fs::openat(root, &name(dir)?, flags, Mode::empty())?;
            let found = match tree.host.as_os_str().is_empty() {
                true => dir,
                false => files::open_beneath(dir.as_fd(), &name(&tree.host)?, libc::O_PATH)?,
            };
            mount::clone_tree(found.as_fd(), c"", true)?
        }
    };
    let no_devices = if tree.has_devices { 0 } else { ATTR_NODEV };
    mount::set_attr(fd.as_fd(), ATTR_RDONLY | ATTR_NOSUID | no_devices, true)?;
    Ok(fd)
}

fn attach(tree: BorrowedFd<'_>, at: &Path) -> Result<(), Failure> {
    let target = inside(at)?;
    let stat = rustix::fs::fstat(tree).step("look at a tree", at)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        dir(&target)?;
    } else if rustix::fs::statat(CWD, &target, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_err() {
        drop(file(&target, 0o644)?);
    }
    mount::attach(tree, CWD, &c_path(&target).step("attach a tree", at)?).step("attach a tree", at)
}

/// Trees that the launcher opened with root's rights.
pub(crate) fn attach_trees(trees: &[Tree], opened: &[OwnedFd]) -> Result<(), Failure> {
    if trees.len() != opened.len() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL)).step("attach the trees", "");
    }
    trees.iter().zip(opened).try_for_each(|(tree, fd)| attach(fd.as_fd(), &tree.cell))
}

/// Trees that this process, with the caller's own id, may see.
pub(crate) fn open_trees(host: &Host, trees: &[Tree]) -> Result<Vec<OwnedFd>, Failure> {
    // From the host's root, not from ours: the fd decides where the relative name starts.
    let open = |tree: &Tree| open_tree(host.dir()?, tree);
    trees.iter().map(|tree| open(tree).step("open", &tree.host)).collect()
}

/// Sources and the like. Nobody else is here yet, so that nothing can be in the way.
pub(crate) fn write_files(planned: &[PlannedFile], contents: BorrowedFd<'_>, mut offset: u64) -> Result<(), Failure> {
    for one in planned {
        let fd = file(inside(&one.path)?, one.mode)?;
        files::copy(contents, offset as i64, fd.as_fd(), one.len).step("write", &one.path)?;
        offset += one.len;
    }
    Ok(())
}

/// One tmpfs under one cap, seen at three places and where else the program may write. With a cap of 0 the three stay
/// directories of the read-only root.
pub(crate) fn scratch(limits: &Limits, writable: &[PathBuf]) -> Result<OwnedFd, Failure> {
    let open = |path: &str| {
        rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .step("open the scratch", path)
    };
    if limits.scratch == 0 {
        return open("work");
    }
    // The directories of ours take no inode from the program's share.
    let inodes = limits.scratch_inodes.saturating_add(4 + writable.len() as u64);
    let options = format!("mode=755,size={},nr_inodes={inodes}", limits.scratch);
    let options = c_path(options).step("mount the scratch", "")?;
    mount::mount_new(c"tmpfs", c"work", MS_NOSUID | MS_NODEV, &options).step("mount the scratch", "tmpfs")?;
    let whole = open("work")?;
    for (name, mode) in [("work", 0o755), ("tmp", 0o1777), ("shm", 0o1777)] {
        rustix::fs::mkdirat(&whole, name, Mode::from_raw_mode(mode)).step("make the scratch", name)?;
    }
    let bind = |name: &std::ffi::CStr, at: &std::ffi::CStr| {
        let tree = mount::clone_tree(whole.as_fd(), name, false).step("bind the scratch", "")?;
        mount::attach(tree.as_fd(), CWD, at).step("bind the scratch", "")
    };
    bind(c"tmp", c"tmp")?;
    bind(c"shm", c"dev/shm")?;
    for (n, at) in writable.iter().enumerate() {
        let name = scratch::writable_name(n);
        rustix::fs::mkdirat(&whole, &name, Mode::from_raw_mode(0o755)).step("make the scratch", at)?;
        let target = inside(at)?;
        dir(&target)?;
        bind(&c_path(&name).step("bind the scratch", at)?, &c_path(&target).step("bind the scratch", at)?)?;
    }
    // Last, over the whole of it, which then is reachable by the fd alone.
    bind(c"work", c"work")?;
    Ok(whole)
}

/// All of the scratch becomes `owner`'s. Nobody else is here yet, so that nothing can be in the way.
pub(crate) fn give(scratch: &OwnedFd, owner: (u32, u32)) -> io::Result<()> {
    let (uid, gid) = (rustix::fs::Uid::from_raw(owner.0), rustix::fs::Gid::from_raw(owner.1));
    for entry in rustix::fs::Dir::read_from(scratch)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        rustix::fs::chownat(scratch, name, Some(uid), Some(gid), rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
        if entry.file_type() == FileType::Directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            give(&rustix::fs::openat(scratch, name, flags, Mode::empty())?, owner)?;
        }
    }
    Ok(())
}

/// The root becomes read-only. Returns fds of it and of its proc.
pub(crate) fn seal() -> Result<(OwnedFd, OwnedFd), Failure> {
    // A relative name of the root directory is the root mount itself, with what is stacked upon it left out.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open("/", flags, Mode::empty()).step("open the root", "/")?;
    let proc_dir = rustix::fs::open("/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .step("open", "/proc")?;
    mount::set_attr(root.as_fd(), ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV, false)
        .step("make the root read-only", "/")?;
    // What `/` is now must be what was sealed: never a directory of the host.
    let (a, b) =
        (rustix::fs::stat("/").step("check the root", "")?, rustix::fs::fstat(&root).step("check the root", "")?);
    if (a.st_dev, a.st_ino) != (b.st_dev, b.st_ino) {
        return Err(io::Error::from_raw_os_error(libc::EXDEV)).step("check the root", "");
    }
    Ok((root, proc_dir))
}
