//! cgroup v2: limits, kill and counters in one directory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Access, AtFlags, Mode, OFlags};

use super::dir::{self, Dir};
use super::{CPU_PERIOD_US, Counters, Meter, cpu_quota, memory_line};
use crate::report::Applied;
use crate::spec::Limits;

/// A directory of ours whose children have the controllers.
pub(crate) struct Base {
    fd: Rc<OwnedFd>,
    path: PathBuf,
    has_cpu: bool,
}

pub(crate) struct Group {
    dir: Dir,
    has_cpu: bool,
}

/// Whether the unified mount has the controllers that limits need, or is the small half of a hybrid host.
pub(super) fn has_controllers(mount: &Path) -> bool {
    std::fs::read_to_string(mount.join("cgroup.controllers"))
        .is_ok_and(|list| ["memory", "pids"].iter().all(|want| list.split_whitespace().any(|c| c == *want)))
}

/// Turns the controllers on for the children of `path`; true when memory and pids are.
fn enable(path: &Path) -> bool {
    let on = || std::fs::read_to_string(path.join("cgroup.subtree_control")).unwrap_or_default();
    for controller in ["+memory", "+pids", "+cpu"] {
        if !on().split_whitespace().any(|c| c == &controller[1..]) {
            // One that can't be had is found missing below.
            let _ = std::fs::write(path.join("cgroup.subtree_control"), controller);
        }
    }
    let now = on();
    ["memory", "pids"].iter().all(|want| now.split_whitespace().any(|c| c == *want))
}

fn writable(path: &Path) -> bool {
    let may = |p: &Path| rustix::fs::accessat(rustix::fs::CWD, p, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    may(path) && may(&path.join("cgroup.procs"))
}

impl Base {
    /// The group must be where moving a process into it is ours to do: below an ancestor of our own group that we
    /// may write. As root that is the top.
    pub(super) fn find(mount: &Path) -> Result<Base, String> {
        let own = std::fs::read_to_string("/proc/self/cgroup")
            .ok()
            .and_then(|text| text.lines().find_map(|l| Some(l.strip_prefix("0::/")?.to_owned())))
            .ok_or("this process is in no v2 cgroup")?;
        let own = mount.join(own);
        let mut ancestors: Vec<&Path> =
            own.ancestors().skip(usize::from(own != *mount)).take_while(|a| a.starts_with(mount)).collect();
        if rustix::process::geteuid().is_root() {
            ancestors.reverse();
        }
        for place in ancestors {
            if writable(place) && enable(place) {
                return Base::below(place);
            }
        }
        if writable(&own) && leave(&own).is_ok() && enable(&own) {
            return Base::below(&own);
        }
        Err(format!("cgroup v2 at {} has no subtree that this user may write", mount.display()))
    }

    fn below(place: &Path) -> Result<Base, String> {
        let path = place.join("hotcell");
        match rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(format!("cannot make {}: {e}", path.display())),
        }
        if !enable(&path) {
            return Err(format!("{} has no memory and pids controllers", path.display()));
        }
        let fd = dir::open(&path).map_err(|e| format!("cannot open {}: {e}", path.display()))?;
        let has_cpu = std::fs::read_to_string(path.join("cgroup.subtree_control"))
            .is_ok_and(|on| on.split_whitespace().any(|c| c == "cpu"));
        Ok(Base { fd: Rc::new(fd), path, has_cpu })
    }

    pub(super) fn make(&self) -> io::Result<Group> {
        let dir = Dir::make(&self.fd, &dir::fresh_name()).or_else(|_| Dir::make(&self.fd, &dir::fresh_name()))?;
        Ok(Group { dir, has_cpu: self.has_cpu })
    }

    pub(super) fn sweep(&self) {
        dir::sweep(self.fd.as_fd(), |group| {
            let _ = dir::write(group, "cgroup.kill", "1");
        });
    }

    pub(super) fn describe(&self) -> (Vec<Applied>, Vec<Applied>) {
        let place = self.path.display();
        let mut on = vec![
            Applied::new("memory", format!("cgroup v2 memory.max, swap 0, at {place}")),
            Applied::new("processes", format!("cgroup v2 pids.max at {place}")),
        ];
        let mut off = vec![];
        if self.has_cpu {
            on.push(Applied::new("cpu", format!("cgroup v2 cpu.max at {place}")));
        } else {
            off.push(Applied::new("cpu", "`cpus` is not enforced, because the cpu controller is not delegated"));
        }
        (on, off)
    }
}

/// Where the controllers can be had only for children, the processes of a group must first leave it. Done only
/// when they are all our own: ours and our parent's.
fn leave(own: &Path) -> io::Result<()> {
    let procs = std::fs::read_to_string(own.join("cgroup.procs"))?;
    let ours = [std::process::id() as i32, rustix::process::getppid().map_or(0, |p| p.as_raw_nonzero().get())];
    let all: Vec<i32> = procs.lines().filter_map(|l| l.parse().ok()).collect();
    if !all.iter().all(|pid| ours.contains(pid)) {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    let leaf = own.join("hotcell-main");
    match rustix::fs::mkdir(&leaf, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(e) => return Err(e.into()),
    }
    all.iter().try_for_each(|pid| std::fs::write(leaf.join("cgroup.procs"), pid.to_string()))
}

impl Group {
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.dir.fd()
    }

    pub(super) fn limit(&self, limits: &Limits, tasks: u64) -> io::Result<()> {
        let dir = self.dir.fd();
        dir::write(dir, "memory.max", &memory_line(limits).to_string())?;
        // Absent where the kernel has no swap accounting; then swap is bounded by the host alone.
        match dir::write(dir, "memory.swap.max", "0") {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        dir::write(dir, "pids.max", &tasks.to_string())?;
        if self.has_cpu {
            dir::write(dir, "cpu.max", &format!("{} {CPU_PERIOD_US}", cpu_quota(limits)))?;
        }
        Ok(())
    }

    pub(super) fn meters(&self) -> Vec<(Meter, OwnedFd)> {
        open_meters(
            self.dir.fd(),
            &[
                (Meter::MemoryCurrent, "memory.current"),
                (Meter::MemoryStat, "memory.stat"),
                (Meter::CpuStat, "cpu.stat"),
                (Meter::OomKills, "memory.events"),
                (Meter::PidsRefused, "pids.events"),
                (Meter::PidsCurrent, "pids.current"),
            ],
        )
    }

    pub(super) fn kill(&self) {
        // Before 5.14 there is no such file, and the death of the cell's init does the same.
        let _ = dir::write(self.dir.fd(), "cgroup.kill", "1");
    }

    pub(super) fn counters(&self) -> Counters {
        let dir = self.dir.fd();
        let stat = dir::read(dir, "cpu.stat").unwrap_or_default();
        Counters {
            oom_kills: dir::number(dir, "memory.events", "oom_kill").unwrap_or(0),
            pids_refused: dir::number(dir, "pids.events", "max").unwrap_or(0),
            memory_peak: dir::number(dir, "memory.peak", ""),
            processes_peak: dir::number(dir, "pids.peak", ""),
            cpu_user_us: dir::keyed(&stat, "user_usec"),
            cpu_system_us: dir::keyed(&stat, "system_usec"),
        }
    }

    pub(super) fn remove(self) {
        self.dir.remove();
    }
}

pub(super) fn open_meters(dir: BorrowedFd<'_>, wanted: &[(Meter, &str)]) -> Vec<(Meter, OwnedFd)> {
    wanted.iter().filter_map(|(meter, name)| Some((*meter, dir::open_file(dir, name, OFlags::RDONLY).ok()?))).collect()
}
