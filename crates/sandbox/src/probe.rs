//! Each primitive of the kernel that cells stand on: there or not, and what would grant it.

use crate::cgroup::Base;
use crate::host;
use crate::sys::seccomp;

/// One thing that a host may have or lack.
#[derive(Clone, Debug)]
pub struct Primitive {
    pub name: &'static str,
    pub present: bool,
    /// No cell without it.
    pub needed: bool,
    /// What it is here, or why it is missing.
    pub detail: String,
    /// What would grant it.
    pub remedy: Option<String>,
}

/// Looks without changing anything but an empty group directory of ours.
pub fn probe() -> Vec<Primitive> {
    vec![kernel(), proc_mounted(), user_namespaces(), seccomp_notifications(), landlock(), cgroups()]
}

fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn kernel() -> Primitive {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut parts = release.split(['.', '-']).map(|p| p.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let present = version >= (5, 14);
    Primitive {
        name: "kernel",
        present,
        needed: true,
        detail: format!("Linux {release}; 5.14 or newer is needed (mount_setattr, process limits by namespace)"),
        remedy: (!present).then(|| "install a newer kernel".into()),
    }
}

fn proc_mounted() -> Primitive {
    let present = std::fs::metadata("/proc/self/ns/user").is_ok();
    Primitive {
        name: "proc",
        present,
        needed: true,
        detail: if present { "mounted at /proc".into() } else { "nothing of proc is at /proc".into() },
        remedy: (!present).then(|| "mount -t proc proc /proc".into()),
    }
}

fn user_namespaces() -> Primitive {
    let root = rustix::process::geteuid().is_root();
    let (mut detail, mut remedy) = ("allowed".to_owned(), None);
    let mut refuse = |why: &str, command: &str| {
        detail = why.into();
        remedy = Some(command.to_owned());
    };
    if number("/proc/sys/user/max_user_namespaces") == Some(0) {
        refuse("user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces=15000");
    } else if !root && number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
        refuse("kernel.unprivileged_userns_clone is 0", "sysctl -w kernel.unprivileged_userns_clone=1");
    } else if !root && number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        refuse(
            "AppArmor restricts user namespaces to programs with a profile",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give hotcell an AppArmor profile with `userns,`",
        );
    }
    Primitive { name: "user namespaces", present: remedy.is_none(), needed: true, detail, remedy }
}

fn seccomp_notifications() -> Primitive {
    let present = seccomp::supports_notifications();
    Primitive {
        name: "seccomp",
        present,
        needed: true,
        detail: if present { "filters with user notification".into() } else { "no user notification".into() },
        remedy: (!present).then(|| "use a kernel with CONFIG_SECCOMP_FILTER, 5.5 or newer".into()),
    }
}

fn landlock() -> Primitive {
    let abi = host::landlock_abi();
    Primitive {
        name: "landlock",
        present: abi.is_some(),
        needed: false,
        detail: abi.map_or("not on: read-only mounts hold alone".into(), |abi| format!("ABI {abi}")),
        remedy: abi.is_none().then(|| "add landlock to the lsm= list of the kernel's command line".into()),
    }
}

fn cgroups() -> Primitive {
    let base = Base::find();
    let present = base.has_limits();
    let detail = match &base {
        Base::None { why } => format!("rlimits and sampling instead, because {why}"),
        _ => base.describe().0.iter().map(|a| a.mechanism.as_str()).collect::<Vec<_>>().join("; "),
    };
    Primitive {
        name: "cgroup",
        present,
        needed: false,
        detail,
        remedy: (!present).then(|| "systemd-run --user --scope -p Delegate=yes hotcell ..., or run as root".into()),
    }
}

/// What may keep cells from this process although the kernel gives them, and how it is started without: the usual reasons in a
/// container. For when a cell has failed: it is the proof, and these are guesses.
pub fn confinement() -> Option<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let is_filtered = read("/proc/self/status").lines().any(|line| line == "Seccomp:\t2");
    let filter =
        is_filtered.then(|| "without its filter of system calls (--security-opt seccomp=unconfined)".to_owned());
    let mounts = read("/proc/self/mountinfo");
    let covered = covered_parts(&mounts);
    let proc = (!covered.is_empty()).then(|| {
        let what = covered.join(", ");
        format!("with all of /proc, of which this is covered: {what} (docker: --security-opt systempaths=unconfined, podman: --security-opt unmask=ALL)")
    });
    let ways: Vec<String> = filter.into_iter().chain(proc).collect();
    (!ways.is_empty()).then(|| format!("start the container {}", ways.join(", and ")))
}

/// What somebody has put over parts of /proc. The kernel gives one of its own to a user namespace only where a whole one is seen;
/// directories that are there to be mounted on hide nothing.
fn covered_parts(mountinfo: &str) -> Vec<&str> {
    let points = mountinfo.lines().filter_map(|line| line.split(' ').nth(4));
    let is_made_for_it = |point: &&str| ["/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd"].contains(point);
    points.filter(|point| point.starts_with("/proc/") && !is_made_for_it(point)).collect()
}

#[cfg(test)]
mod tests {
    use super::covered_parts;

    #[test]
    fn what_covers_parts_of_proc_is_named_and_places_to_mount_on_are_not() {
        let proc = "22 1 0:20 / /proc rw,nosuid - proc proc rw\n";
        let kcore = "30 22 0:5 /null /proc/kcore rw - devtmpfs none rw\n";
        let binfmt = "31 22 0:30 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n";
        assert_eq!(covered_parts(&[proc, kcore, binfmt].concat()), ["/proc/kcore"]);
        assert!(covered_parts(&[proc, binfmt].concat()).is_empty());
    }
}
