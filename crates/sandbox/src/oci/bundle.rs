//! What a runtime reads: `config.json`, as the OCI runtime specification has it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use super::layout::Laid;
use crate::cell::root::MASKED;
use crate::cell::{GID, Step, UID};
use crate::spec::{CALLED_BY_RUNTIME, Network, RuntimeKind};
use crate::wire::{Failure, Order, Plan};

/// A container in which nothing is but our init, which makes a cell of it: the runtime sees nothing of what is to run, and
/// nothing of an image. `group` is where it may keep a group of its own: the limits are on ours, which init joins.
pub(super) fn of_shell(kind: RuntimeKind, plan: &Plan, order: &Order, laid: &Laid, group: &str) -> Value {
    let proc = ["nosuid", "noexec", "nodev"];
    let mut mounts = vec![json!({"destination": "/proc", "type": "proc", "source": "proc", "options": proc})];
    mounts.push(match kind {
        // They make devices in any case, and need a directory of their own for them.
        RuntimeKind::Crun | RuntimeKind::Youki => {
            let options = ["nosuid", "mode=755", "size=64k"];
            json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": options})
        }
        // The others make none where they are told that they are there.
        _ => {
            let options = ["rbind", "rprivate", "nosuid", "nodev"];
            json!({"destination": "/dev", "type": "bind", "source": laid.root().join("dev"), "options": options})
        }
    });
    let mut namespaces = vec!["pid", "mount", "ipc", "uts", "cgroup"];
    if plan.network != Network::Full {
        namespaces.push("network");
    }
    // Without privilege there is one id, and a container must have a root.
    let user = if order.root { order.owner } else { (0, 0) };
    let mut config = json!({
        "ociVersion": "1.0.2",
        "hostname": "cell",
        "root": {"path": laid.root(), "readonly": true},
        "mounts": mounts,
        "process": process(user, json!(CALLED_BY_RUNTIME)),
        "linux": linux(&namespaces),
    });
    if order.root {
        config["linux"]["cgroupsPath"] = json!(group);
    } else {
        // Without it who is root here could be nobody in a namespace of his own. It is gone in there.
        for set in ["bounding", "permitted", "effective"] {
            config["process"]["capabilities"][set] = json!(["CAP_SETFCAP"]);
        }
    }
    config
}

/// A container with a kernel of its own, which nothing of ours can be in.
pub(super) fn of_program(plan: &Plan, order: &Order, laid: &Laid) -> Result<Value, Failure> {
    let proc = ["nosuid", "noexec", "nodev", "ro"];
    let mut mounts = vec![json!({"destination": "/proc", "type": "proc", "source": "proc", "options": proc})];
    for (at, source) in laid.places() {
        let at = text(at.as_os_str().as_bytes())?;
        let options = ["rbind", "rprivate", "nosuid", "nodev"];
        mounts.push(json!({"destination": at, "type": "bind", "source": source, "options": options}));
    }
    let mut namespaces = vec!["pid", "mount", "ipc", "uts"];
    if plan.network != Network::Full {
        namespaces.push("network");
    }
    let texts = |all: &[Vec<u8>]| all.iter().map(|bytes| text(bytes)).collect::<Result<Vec<_>, _>>();
    let user = if order.root { (UID, GID) } else { (0, 0) };
    let mut process = process(user, json!(texts(&plan.argv)?));
    process["env"] = json!(texts(&plan.env)?);
    process["cwd"] = json!(text(plan.cwd.as_os_str().as_bytes())?);
    let limit = |name: &str, value: u64| json!({"type": name, "hard": value, "soft": value});
    process["rlimits"] = json!([
        limit("RLIMIT_CORE", 0),
        limit("RLIMIT_FSIZE", plan.limits.file_size),
        limit("RLIMIT_NOFILE", plan.limits.open_files),
        limit("RLIMIT_NPROC", plan.limits.processes),
    ]);
    Ok(json!({
        "ociVersion": "1.0.2",
        "hostname": "cell",
        "root": {"path": laid.root(), "readonly": true},
        "mounts": mounts,
        "process": process,
        "linux": linux(&namespaces),
    }))
}

fn process((uid, gid): (u32, u32), args: Value) -> Value {
    json!({
        "terminal": false,
        "user": {"uid": uid, "gid": gid},
        "args": args,
        // Youki starts nothing without it.
        "env": ["PATH=/"],
        "cwd": "/",
        "noNewPrivileges": true,
        "capabilities": {"bounding": [], "effective": [], "inheritable": [], "permitted": [], "ambient": []},
    })
}

fn linux(namespaces: &[&str]) -> Value {
    let masked: Vec<String> = MASKED.iter().map(|name| format!("/proc/{name}")).collect();
    let namespaces: Vec<Value> = namespaces.iter().map(|name| json!({"type": name})).collect();
    json!({"maskedPaths": masked, "namespaces": namespaces})
}

/// JSON has no bytes: what is no text is not changed into one.
fn text(bytes: &[u8]) -> Result<String, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EILSEQ));
    text.map(str::to_owned).step("write the bundle", OsStr::from_bytes(bytes))
}
