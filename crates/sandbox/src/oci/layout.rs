//! The cell's root as a cell would make it, in a tmpfs over a directory that nobody needs.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::inside;
use crate::cell::root::{self, Host};
use crate::cell::{GID, Step, UID, c_path};
use crate::spec::RuntimeKind;
use crate::sys::files;
use crate::sys::mount::{self, MS_NODEV, MS_NOSUID};
use crate::wire::{Failure, Order, Plan};

/// Directories that surely exist on a host and that no runtime needs: the first in which it does not live carries the
/// tmpfs. What is covered there is covered for the porter and the runtime alone.
const PLACES: [&str; 3] = ["/mnt", "/media", "/srv"];

pub(super) struct Laid {
    at: PathBuf,
    pub(super) scratch: OwnedFd,
}

impl Laid {
    /// `files` are the contents of the plan's, and where they begin; `trees` are those that the launcher has opened.
    pub(super) fn new(
        plan: &Plan,
        order: &Order,
        files: (BorrowedFd<'_>, u64),
        trees: Vec<OwnedFd>,
    ) -> Result<Laid, Failure> {
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |path: &Path, flags: OFlags| rustix::fs::open(path, flags, Mode::empty()).step("open", path);
        let host = Host::here()?;
        // Everything of the host's by its fd, before anything is covered.
        let trees = if order.trees_opened { trees } else { root::open_trees(&host, &plan.trees)? };
        let image = plan.root.as_deref().map(|dir| open(dir, directory)).transpose()?;
        let has_init = plan.runtime.as_ref().is_some_and(|runtime| runtime.kind != RuntimeKind::Runsc);
        let init = has_init.then(|| open(Path::new("/proc/self/exe"), OFlags::RDONLY | OFlags::CLOEXEC)).transpose()?;

        let at = cover(plan)?;
        if let Some(image) = &image {
            let options = format!("lowerdir=/proc/self/fd/{},upperdir=upper,workdir=work", image.as_raw_fd());
            let options = c_path(options).step("mount the image", "")?;
            mount::mount_new(c"overlay", c"root", MS_NOSUID | MS_NODEV, &options).step("mount the image", "")?;
        }
        // What an image has in it may be links to anywhere: from here on, anywhere is inside.
        rustix::process::chroot("root").step("enter the root", "")?;
        rustix::process::chdir("/").step("enter the root", "")?;
        if image.is_some() {
            let _ = rustix::fs::mkdirat(CWD, "dev", Mode::from_raw_mode(0o755));
            mount::mount_new(c"tmpfs", c"dev", MS_NOSUID, c"mode=755").step("mount", "/dev")?;
        }
        root::skeleton(&host)?;
        root::links(&plan.links)?;
        root::attach_trees(&plan.trees, &trees)?;
        let scratch = root::scratch(&plan.limits, &plan.writable)?;
        root::write_files(&plan.files, files.0, files.1)?;
        if let Some(init) = init {
            put_init(&init)?;
        }
        if order.root && plan.limits.scratch > 0 {
            // A kernel of its own knows no ids but its own.
            let owner = if has_init { order.owner } else { (UID, GID) };
            root::give(&scratch, owner).step("give the scratch away", "")?;
        }
        host.enter()?;
        rustix::process::chdir(&at).step("enter the bundle", &at)?;
        if plan.limits.scratch > 0 {
            // Once more where no other mount covers it.
            let tree = mount::clone_tree(scratch.as_fd(), c"shm", false).step("bind the scratch", "")?;
            mount::attach(tree.as_fd(), CWD, c"shm").step("bind the scratch", "")?;
        }
        Ok(Laid { at, scratch })
    }

    pub(super) fn root(&self) -> PathBuf {
        self.at.join("root")
    }

    /// The scratch's part for /dev/shm.
    pub(super) fn shm(&self) -> PathBuf {
        self.at.join("shm")
    }

    pub(super) fn bundle(&self) -> PathBuf {
        self.at.join("bundle")
    }

    /// What the runtime writes down about its containers.
    pub(super) fn state(&self) -> PathBuf {
        self.at.join("state")
    }

    /// Whether a program of this path, from where it was to be executed, is in the root: links lead to the root itself.
    pub(super) fn has(&self, plan: &Plan, path: &str) -> bool {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open(self.root(), flags | OFlags::DIRECTORY, Mode::empty());
        let path = plan.cwd.join(path);
        root.is_ok_and(|root| rustix::fs::openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT).is_ok())
    }

    /// Nothing of ours is in the container any more.
    pub(super) fn take_init_away(&self) -> Result<(), Failure> {
        let path = self.root().join(inside::AT.trim_start_matches('/'));
        rustix::fs::unlink(&path).step("remove", &path)
    }
}

/// Mounts the tmpfs and enters it.
fn cover(plan: &Plan) -> Result<PathBuf, Failure> {
    let runtime = plan.runtime.as_ref().map(|runtime| runtime.path.as_path()).unwrap_or(Path::new(""));
    let free = |at: &&Path| !runtime.starts_with(at) && at.is_dir();
    let Some(at) = PLACES.map(Path::new).into_iter().find(free) else {
        return Err(io::Error::from_raw_os_error(libc::ENOENT)).step("find a place for the bundle, such as", PLACES[0]);
    };
    let place = c_path(at).step("mount the bundle", at)?;
    mount::mount_new(c"tmpfs", &place, MS_NOSUID | MS_NODEV, c"mode=711").step("mount the bundle", at)?;
    rustix::process::chdir(at).step("enter the bundle", at)?;
    for name in ["bundle", "state", "root", "shm", "upper", "work"] {
        rustix::fs::mkdirat(CWD, name, Mode::from_raw_mode(0o755)).step("make the bundle", name)?;
    }
    Ok(at.to_owned())
}

/// A copy of this program.
fn put_init(own: &OwnedFd) -> Result<(), Failure> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let copy = rustix::fs::open(inside::AT, flags, Mode::from_raw_mode(0o555)).step("put init in place", inside::AT)?;
    let len = rustix::fs::fstat(own).step("put init in place", "")?.st_size as u64;
    files::copy(own.as_fd(), 0, copy.as_fd(), len).step("put init in place", "")
}
