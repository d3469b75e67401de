//! What a runtime reads: `config.json`, as the OCI runtime specification has it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value, json};

use super::inside;
use crate::cell::root::MASKED;
use crate::cell::{GID, Step, UID};
use crate::spec::{Network, RuntimeKind};
use crate::wire::{Failure, Order, Plan};

/// The host id of a container's root: nobody's, and no process of the container has it once the program runs.
const ROOT_OUTSIDE: u32 = 0x6fff_ffff;

/// A container whose root directory is `rootfs`.
pub(super) struct Bundle<'a> {
    pub(super) plan: &'a Plan,
    pub(super) order: &'a Order,
    pub(super) rootfs: &'a Path,
    pub(super) shm: &'a Path,
    /// Where the runtime may keep a group of its own: the limits are on ours, which init joins.
    pub(super) group: &'a str,
}

impl Bundle<'_> {
    pub(super) fn config(&self, kind: RuntimeKind) -> Result<Value, Failure> {
        let own_kernel = kind.has_own_kernel();
        let mut mounts = vec![json!({
            "destination": "/proc",
            "type": "proc",
            "source": "proc",
            "options": ["nosuid", "noexec", "nodev", "ro"],
        })];
        if kind == RuntimeKind::Crun {
            // It makes devices in any case, and needs a directory of its own for them.
            let options = ["nosuid", "nodev", "mode=755", "size=64k", "ro"];
            mounts.push(json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": options}));
        }
        mounts.extend(self.places(kind)?.iter().map(|at| self.bind(at)));
        Ok(json!({
            "ociVersion": "1.0.2",
            "hostname": "cell",
            "root": {"path": self.rootfs, "readonly": true},
            "mounts": mounts,
            "process": self.process(own_kernel)?,
            "linux": self.linux(own_kernel),
        }))
    }

    /// What of the root is mounted once more. A kernel of its own has devices of its own, and takes the writable places
    /// as mounts; runc makes no devices when it is told that they are there.
    fn places(&self, kind: RuntimeKind) -> Result<Vec<String>, Failure> {
        let scratch = |places: &[&str]| match self.plan.limits.scratch {
            0 => vec![],
            _ => places.iter().map(|at| (*at).to_owned()).collect(),
        };
        match kind {
            RuntimeKind::Runc | RuntimeKind::Youki => Ok(vec!["/dev".into()]),
            RuntimeKind::Crun => Ok(scratch(&["/dev/shm"])),
            RuntimeKind::Runsc => {
                let writable = self.plan.writable.iter().map(|at| text(at.as_os_str().as_bytes()));
                scratch(&["/work", "/tmp", "/dev/shm"]).into_iter().map(Ok).chain(writable).collect()
            }
        }
    }

    fn bind(&self, at: &str) -> Value {
        let source = match at {
            "/dev/shm" => self.shm.to_owned(),
            _ => self.rootfs.join(at.trim_start_matches('/')),
        };
        let mut options = vec!["rbind", "rprivate", "nosuid", "nodev"];
        if at == "/dev" {
            // Only the directory: what is in it are mounts of their own.
            options.push("ro");
        }
        json!({"destination": at, "type": "bind", "source": source, "options": options})
    }

    fn process(&self, own_kernel: bool) -> Result<Value, Failure> {
        let plan = self.plan;
        // Without privilege there is one id, and a container must have a root.
        let (uid, gid) = if self.order.root { (UID, GID) } else { (0, 0) };
        let mut process = json!({
            "terminal": false,
            "user": {"uid": uid, "gid": gid},
            "args": [inside::AT],
            "cwd": "/",
            "noNewPrivileges": true,
            "capabilities": {"bounding": [], "effective": [], "inheritable": [], "permitted": [], "ambient": []},
        });
        if own_kernel {
            let limits = &plan.limits;
            let limit = |name: &str, value: u64| json!({"type": name, "hard": value, "soft": value});
            let texts = |all: &[Vec<u8>]| all.iter().map(|bytes| text(bytes)).collect::<Result<Vec<_>, _>>();
            process["args"] = json!(texts(&plan.argv)?);
            process["env"] = json!(texts(&plan.env)?);
            process["cwd"] = json!(text(plan.cwd.as_os_str().as_bytes())?);
            process["rlimits"] = json!([
                limit("RLIMIT_CORE", 0),
                limit("RLIMIT_FSIZE", limits.file_size),
                limit("RLIMIT_NOFILE", limits.open_files),
                limit("RLIMIT_NPROC", limits.processes),
            ]);
        }
        Ok(process)
    }

    fn linux(&self, own_kernel: bool) -> Value {
        let mut namespaces = vec!["pid", "mount", "ipc", "uts"];
        if self.plan.network != Network::Full {
            namespaces.push("network");
        }
        let masked: Vec<String> = MASKED.iter().map(|name| format!("/proc/{name}")).collect();
        let mut linux = json!({"maskedPaths": masked});
        if !own_kernel {
            namespaces.push("cgroup");
            let map = |inside: u32, outside: u32| {
                json!([
                    {"containerID": 0, "hostID": ROOT_OUTSIDE, "size": 1},
                    {"containerID": inside, "hostID": outside, "size": 1},
                ])
            };
            // Without privilege the porter is in a user namespace already, and init makes its own.
            if self.order.root {
                namespaces.push("user");
                linux["uidMappings"] = map(UID, self.order.owner.0);
                linux["gidMappings"] = map(GID, self.order.owner.1);
                linux["cgroupsPath"] = json!(self.group);
            }
        }
        linux["namespaces"] = namespaces.iter().map(|name| json!({"type": name})).collect();
        linux
    }
}

/// JSON has no bytes: what is no text is not changed into one.
fn text(bytes: &[u8]) -> Result<String, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EILSEQ));
    text.map(str::to_owned).step("write the bundle", OsStr::from_bytes(bytes))
}
