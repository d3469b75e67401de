//! Where a runtime finds its bundle: a tmpfs over a directory that nobody needs, seen by the porter and the runtime alone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::inside;
use crate::cell::root::{self, Host};
use crate::cell::{GID, Step, UID, c_path, furnish};
use crate::scratch;
use crate::spec::Runtime;
use crate::sys::files;
use crate::sys::mount::{self, ATTR_NODEV, ATTR_NOSUID, ATTR_RDONLY, MS_NODEV, MS_NOSUID};
use crate::wire::{Failure, Order, Plan};

/// Directories that surely exist on a host and that no runtime needs: the first in which it does not live carries the
/// tmpfs.
const PLACES: [&str; 3] = ["/mnt", "/media", "/srv"];

pub(super) struct Laid {
    at: PathBuf,
    /// Where the program may write, and what is to be mounted there.
    places: Vec<(PathBuf, PathBuf)>,
}

impl Laid {
    /// A root for our init, with nothing of the request's in it.
    pub(super) fn of_shell(runtime: &Runtime) -> Result<Laid, Failure> {
        let own = Own::find()?;
        let host = Host::here()?;
        let at = cover(runtime)?;
        rustix::process::chdir("root").step("enter the root", "")?;
        root::skeleton(&host)?;
        put_init(&own)?;
        rustix::process::chdir(&at).step("enter the bundle", &at)?;
        Ok(Laid { at, places: vec![] })
    }

    /// The cell's root as a cell would make it, and its scratch. `files` are the contents of the plan's, and where they begin;
    /// `trees` and `image` are detached.
    pub(super) fn of_program(
        runtime: &Runtime,
        plan: &Plan,
        order: &Order,
        files: (BorrowedFd<'_>, u64),
        (image, trees): (Option<&OwnedFd>, &[OwnedFd]),
    ) -> Result<(Laid, OwnedFd), Failure> {
        let host = Host::here()?;
        let at = cover(runtime)?;
        if let Some(image) = image {
            mount::attach(image.as_fd(), CWD, c"lower").step("attach the image", "")?;
            root::begin_upper()?;
            let options = c"lowerdir=lower,upperdir=upper,workdir=work";
            mount::mount_new(c"overlay", c"root", MS_NOSUID | MS_NODEV, options).step("mount the image", "")?;
        }
        // What an image has in it may be links to anywhere: from here on, anywhere is inside.
        rustix::process::chroot("root").step("enter the root", "")?;
        rustix::process::chdir("/").step("enter the root", "")?;
        if image.is_some() {
            mount::mount_new(c"tmpfs", c"dev", MS_NOSUID, c"mode=755").step("mount", "/dev")?;
        }
        root::skeleton(&host)?;
        let scratch = furnish(plan, files, trees)?;
        let mut places = vec![];
        if plan.limits.scratch > 0 {
            if order.root {
                // A kernel of its own knows no ids but its own.
                root::give(&scratch, (UID, GID)).step("give the scratch away", "")?;
            }
            let usual = [("/work", "work"), ("/tmp", "tmp"), ("/dev/shm", "shm")];
            places.extend(usual.map(|(place, name)| (PathBuf::from(place), name.to_owned())));
            places
                .extend(plan.writable.iter().enumerate().map(|(n, place)| (place.clone(), scratch::writable_name(n))));
        }
        host.enter()?;
        rustix::process::chdir(&at).step("enter the bundle", &at)?;
        let mounted = |(place, name): (PathBuf, String)| {
            // Once more where no name of the image's leads: the runtime looks from the host's root.
            let source = Path::new("places").join(&name);
            rustix::fs::mkdirat(CWD, &source, Mode::from_raw_mode(0o755)).step("bind the scratch", &place)?;
            let name = c_path(&name).step("bind the scratch", &place)?;
            let tree = mount::clone_tree(scratch.as_fd(), &name, false).step("bind the scratch", &place)?;
            let target = c_path(&source).step("bind the scratch", &place)?;
            mount::attach(tree.as_fd(), CWD, &target).step("bind the scratch", &place)?;
            Ok((place, at.join(source)))
        };
        let places = places.into_iter().map(mounted).collect::<Result<_, Failure>>()?;
        Ok((Laid { at, places }, scratch))
    }

    pub(super) fn root(&self) -> PathBuf {
        self.at.join("root")
    }

    pub(super) fn places(&self) -> &[(PathBuf, PathBuf)] {
        &self.places
    }

    pub(super) fn bundle(&self) -> PathBuf {
        self.at.join("bundle")
    }

    /// What the runtime writes down about its containers.
    pub(super) fn state(&self) -> PathBuf {
        self.at.join("state")
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.at.join("temporary")
    }

    /// Whether a program of this path, from where it was to be executed, is in the root: links lead to the root itself.
    pub(super) fn has(&self, plan: &Plan, path: &str) -> bool {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open(self.root(), flags | OFlags::DIRECTORY, Mode::empty());
        let path = plan.cwd.join(path);
        root.is_ok_and(|root| rustix::fs::openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT).is_ok())
    }
}

/// Mounts the tmpfs and enters it.
fn cover(runtime: &Runtime) -> Result<PathBuf, Failure> {
    let free = |at: &&Path| !runtime.path.starts_with(at) && at.is_dir();
    let Some(at) = PLACES.map(Path::new).into_iter().find(free) else {
        return Err(io::Error::from_raw_os_error(libc::ENOENT)).step("find a place for the bundle, such as", PLACES[0]);
    };
    let place = c_path(at).step("mount the bundle", at)?;
    mount::mount_new(c"tmpfs", &place, MS_NOSUID | MS_NODEV, c"mode=711").step("mount the bundle", at)?;
    rustix::process::chdir(at).step("enter the bundle", at)?;
    for name in ["bundle", "state", "temporary", "root", "places", "lower", "upper", "work"] {
        rustix::fs::mkdirat(CWD, name, Mode::from_raw_mode(0o755)).step("make the bundle", name)?;
    }
    Ok(at.to_owned())
}

/// This program, in the root that is the working directory: itself where it still has its name, or else a copy.
fn put_init(own: &Own) -> Result<(), Failure> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = inside::AT.trim_start_matches('/');
    let file = rustix::fs::open(name, flags, Mode::from_raw_mode(0o555)).step("put init in place", inside::AT)?;
    if let Some(tree) = &own.tree {
        let name = c_path(name).step("put init in place", "")?;
        return mount::attach(tree.as_fd(), CWD, &name).step("put init in place", "");
    }
    let len = rustix::fs::fstat(&own.file).step("put init in place", "")?.st_size as u64;
    files::copy(own.file.as_fd(), 0, file.as_fd(), len).step("put init in place", "")
}

struct Own {
    file: OwnedFd,
    /// Detached and read-only.
    tree: Option<OwnedFd>,
}

impl Own {
    fn find() -> Result<Own, Failure> {
        let open = |path: &Path| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let file = open(Path::new("/proc/self/exe")).step("open", "/proc/self/exe")?;
        // By its name in this namespace: what was executed is in another one, whose mounts are not ours to show.
        let named = || -> io::Result<Option<OwnedFd>> {
            let named = open(&std::fs::read_link("/proc/self/exe")?)?;
            let (one, other) = (rustix::fs::fstat(&file)?, rustix::fs::fstat(&named)?);
            if (one.st_dev, one.st_ino) != (other.st_dev, other.st_ino) {
                return Ok(None);
            }
            let tree = mount::clone_tree(named.as_fd(), c"", false)?;
            mount::set_attr(tree.as_fd(), ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV, false)?;
            Ok(Some(tree))
        };
        let tree = named().unwrap_or_default();
        Ok(Own { file, tree })
    }
}
