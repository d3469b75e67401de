//! cgroup v1: one directory a controller, and on a hybrid host a v2 directory for kill and cpu.stat.

use std::cell::OnceCell;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Access, AtFlags, Mode, OFlags};

use super::dir::{self, Dir, Mounts};
use super::v2::open_meters;
use super::{CPU_PERIOD_US, Counters, Meter, cpu_quota, memory_line};
use crate::report::Applied;
use crate::spec::Limits;

/// Our directory in each hierarchy.
pub(crate) struct Base {
    memory: Rc<OwnedFd>,
    pids: Rc<OwnedFd>,
    cpu: Option<Rc<OwnedFd>>,
    /// The v2 half of a hybrid host.
    unified: Option<Rc<OwnedFd>>,
    /// Counts cpu time for those who are in no v2 group. Often it is in the hierarchy of `cpu`.
    cpuacct: Cpuacct,
}

enum Cpuacct {
    Joint,
    Own { mount: PathBuf, ours: OnceCell<Option<Rc<OwnedFd>>> },
    Missing,
}

/// The directory that the child is cloned into, where there is one, and the name of the others.
///
/// Who is not cloned stays out of it: the way into a v2 group from outside is behind a lock that all processors have to agree on,
/// for up to 13 ms. That of a v1 group is not, for a thread that goes by itself.
pub(crate) struct Seed {
    unified: Option<Dir>,
    name: CString,
}

pub(crate) struct Group {
    memory: Dir,
    pids: Dir,
    cpu: Option<Dir>,
    unified: Option<Dir>,
    cpuacct: Option<Dir>,
}

fn ours(mount: &Path) -> io::Result<Rc<OwnedFd>> {
    let path = mount.join("hotcell");
    let fd = match dir::open(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => match rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => dir::open(&path)?,
            Err(e) => return Err(e.into()),
        },
        other => other?,
    };
    // Root's, when it is there already and this is not root.
    rustix::fs::accessat(rustix::fs::CWD, &path, Access::WRITE_OK, AtFlags::EACCESS)?;
    Ok(Rc::new(fd))
}

impl Base {
    pub(super) fn find(mounts: &Mounts) -> Result<Base, String> {
        let need = |controller: &str| {
            let mount = mounts
                .v1
                .get(controller)
                .ok_or_else(|| format!("the `{controller}` cgroup controller is not mounted"))?;
            ours(mount).map_err(|e| format!("no group can be made in {}: {e}", mount.display()))
        };
        let maybe = |mount: Option<&Path>| mount.and_then(|mount| ours(mount).ok());
        let cpuacct = match (mounts.v1.get("cpuacct"), mounts.v1.get("cpu")) {
            (None, _) => Cpuacct::Missing,
            (Some(counts), Some(limits)) if counts == limits => Cpuacct::Joint,
            (Some(mount), _) => Cpuacct::Own { mount: mount.clone(), ours: OnceCell::new() },
        };
        Ok(Base {
            memory: need("memory")?,
            pids: need("pids")?,
            cpu: maybe(mounts.v1.get("cpu").map(|p| p.as_path())),
            unified: maybe(mounts.v2.as_deref()),
            cpuacct,
        })
    }

    /// Most need none: it is made for the first who does.
    fn cpuacct(&self) -> Option<&Rc<OwnedFd>> {
        match &self.cpuacct {
            Cpuacct::Own { mount, ours: made } => made.get_or_init(|| ours(mount).ok()).as_ref(),
            Cpuacct::Joint | Cpuacct::Missing => None,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Rc<OwnedFd>> {
        [&self.memory, &self.pids].into_iter().chain(&self.cpu).chain(&self.unified).chain(self.cpuacct())
    }

    pub(super) fn begin(&self, cloned: bool) -> io::Result<Seed> {
        // A name that a crashed launcher of the same pid left is passed over, not joined.
        self.begin_named(dir::fresh_name(), cloned).or_else(|_| self.begin_named(dir::fresh_name(), cloned))
    }

    fn begin_named(&self, name: CString, cloned: bool) -> io::Result<Seed> {
        let unified = self.unified.as_ref().filter(|_| cloned);
        Ok(Seed { unified: unified.map(|base| Dir::make(base, &name)).transpose()?, name })
    }

    /// Everything is made or nothing but the seed is left, in which a child lives already.
    pub(super) fn complete(&self, seed: Seed, with_cpu: bool) -> Result<(Group, Vec<OwnedFd>), (io::Error, Seed)> {
        let counted = seed.unified.is_some();
        let cpu = self.cpu.as_ref().filter(|_| with_cpu || !counted && matches!(self.cpuacct, Cpuacct::Joint));
        let cpuacct = if counted { None } else { self.cpuacct() };
        let bases = [Some(&self.memory), Some(&self.pids), cpu, cpuacct];
        let mut made: [Option<Dir>; 4] = [const { None }; 4];
        let mut joins = vec![];
        for (base, slot) in bases.into_iter().zip(&mut made) {
            let Some(base) = base else { continue };
            let joined = Dir::make(base, &seed.name).and_then(|dir| {
                let tasks = dir::open_file(dir.fd(), "tasks", OFlags::WRONLY);
                *slot = Some(dir);
                tasks
            });
            match joined {
                Ok(tasks) => joins.push(tasks),
                Err(e) => {
                    made.into_iter().flatten().for_each(Dir::remove);
                    return Err((e, seed));
                }
            }
        }
        let [Some(memory), Some(pids), cpu, cpuacct] = made else {
            return Err((io::ErrorKind::NotFound.into(), seed));
        };
        Ok((Group { memory, pids, cpu, unified: seed.unified, cpuacct }, joins))
    }

    pub(super) fn sweep(&self) {
        for base in self.all() {
            dir::sweep(base.as_fd(), |group| {
                // Exists in the v2 half only; elsewhere the tasks die with their launcher.
                let _ = dir::write(group, "cgroup.kill", "1");
            });
        }
    }

    pub(super) fn describe(&self) -> (Vec<Applied>, Vec<Applied>) {
        let mut on = vec![
            Applied::new("memory", "cgroup v1 memory.limit_in_bytes with memory.memsw"),
            Applied::new("processes", "cgroup v1 pids.max"),
        ];
        let mut off = vec![];
        match self.cpu {
            Some(_) => on.push(Applied::new("cpu", "cgroup v1 cpu.cfs_quota_us")),
            None => off.push(Applied::new("cpu", "`cpus` is not enforced, because there is no cpu controller")),
        }
        (on, off)
    }
}

impl Seed {
    pub(super) fn clone_into(&self) -> Option<BorrowedFd<'_>> {
        self.unified.as_ref().map(Dir::fd)
    }

    pub(super) fn remove(self) {
        self.unified.into_iter().for_each(Dir::remove);
    }
}

impl Group {
    fn counts_cpu(&self) -> Option<&Dir> {
        self.cpuacct.as_ref().or(self.cpu.as_ref())
    }

    pub(super) fn limit(&self, limits: &Limits, tasks: u64) -> io::Result<()> {
        let line = memory_line(limits).to_string();
        dir::write(self.memory.fd(), "memory.limit_in_bytes", &line)?;
        // Absent without swap accounting. Memory plus swap at the same line: no swap.
        match dir::write(self.memory.fd(), "memory.memsw.limit_in_bytes", &line) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        dir::write(self.pids.fd(), "pids.max", &tasks.to_string())?;
        if let Some(cpu) = &self.cpu {
            dir::write(cpu.fd(), "cpu.cfs_period_us", &CPU_PERIOD_US.to_string())?;
            dir::write(cpu.fd(), "cpu.cfs_quota_us", &cpu_quota(limits).to_string())?;
        }
        Ok(())
    }

    pub(super) fn meters(&self) -> Vec<(Meter, OwnedFd)> {
        let mut meters = open_meters(
            self.memory.fd(),
            &[
                (Meter::MemoryCurrent, "memory.usage_in_bytes"),
                (Meter::MemoryStat, "memory.stat"),
                (Meter::OomKills, "memory.oom_control"),
            ],
        );
        let pids = [(Meter::PidsRefused, "pids.events"), (Meter::PidsCurrent, "pids.current")];
        meters.extend(open_meters(self.pids.fd(), &pids));
        if let Some(unified) = &self.unified {
            meters.extend(open_meters(unified.fd(), &[(Meter::CpuStat, "cpu.stat")]));
        } else if let Some(cpuacct) = self.counts_cpu() {
            meters.extend(open_meters(cpuacct.fd(), &[(Meter::CpuNanos, "cpuacct.usage")]));
        }
        meters
    }

    pub(super) fn kill(&self) {
        if let Some(unified) = &self.unified {
            let _ = dir::write(unified.fd(), "cgroup.kill", "1");
        }
    }

    pub(super) fn counters(&self) -> Counters {
        let memory = self.memory.fd();
        let stat = self.unified.as_ref().and_then(|dir| dir::read(dir.fd(), "cpu.stat").ok());
        let cpu = |key| dir::keyed(stat.as_deref()?, key);
        let nanos = |name| self.counts_cpu().and_then(|dir| dir::number(dir.fd(), name, ""));
        // The sum is exact; its parts are of whole ticks, and tell how it is shared.
        let shared = || {
            let (sum, user, system) =
                (nanos("cpuacct.usage")? / 1000, nanos("cpuacct.usage_user")?, nanos("cpuacct.usage_sys")?);
            let of_user = (u128::from(sum) * u128::from(user + 1) / u128::from(user + system + 1)) as u64;
            Some((of_user, sum - of_user))
        };
        let (user, system) = cpu("user_usec").zip(cpu("system_usec")).or_else(shared).unzip();
        Counters {
            oom_kills: dir::number(memory, "memory.oom_control", "oom_kill").unwrap_or(0),
            pids_refused: dir::number(self.pids.fd(), "pids.events", "max").unwrap_or(0),
            memory_peak: dir::number(memory, "memory.max_usage_in_bytes", ""),
            processes_peak: dir::number(self.pids.fd(), "pids.peak", ""),
            cpu_user_us: user,
            cpu_system_us: system,
        }
    }

    pub(super) fn remove(self) {
        let all = [Some(self.memory), Some(self.pids), self.cpu, self.unified, self.cpuacct];
        all.into_iter().flatten().for_each(Dir::remove);
    }
}
