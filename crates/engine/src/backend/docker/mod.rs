//! Docker and Podman: a daemon makes a container, and a cell is built inside of it.
//!
//! The container gets two things of ours: this program, as its first process, and a socket at which that calls. Everything
//! else goes through the socket, as file descriptors: streams, sources, trees, groups. So nothing of the host's is mounted
//! into the container by its path, no file goes through the engine's archives, and no byte through its logs.

mod api;
mod meeting;

use std::fs::OpenOptions;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotcell_sandbox::{CALL_AT, CALLED_BY_ENGINE, Engine, Limits, Network, Started};
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::api::{Answer, Api, escape};
use self::meeting::Meeting;
use super::BackendError;
use crate::image::{self, Image, ImageError};
use crate::keys::hex;
use crate::state::Owner;

/// Who a container belongs to: whoever finds one whose owner is dead removes it.
const LABEL: &str = "hotcell.owner";
/// An image with nothing in it, which is made when there is none. Podman knows no tag of what is imported but this.
const EMPTY: &str = "localhost/hotcell-empty:latest";
/// From its start, a container's first process has so long to call.
const PATIENCE: Duration = Duration::from_secs(60);
/// Above what cells of this program itself have (the launcher's, which end where numbers of processes do).
const FIRST_ID: u32 = 0x7040_0000;
const IDS: u32 = 0x0040_0000;

/// An engine that answers, and the image that it is to use.
#[derive(Clone, Debug)]
pub struct Docker {
    api: Api,
    name: String,
    pub version: Option<String>,
    pub image: Option<Image>,
}

impl Docker {
    /// The engine that `DOCKER_HOST` names, or else the first whose socket is where they usually are.
    pub(super) fn find() -> Result<Docker, BackendError> {
        match Docker::places()?.first() {
            Some(socket) => Docker::at(socket),
            None => Err(BackendError::NoEngine),
        }
    }

    pub(super) fn places() -> Result<Vec<PathBuf>, BackendError> {
        let given = std::env::var_os("DOCKER_HOST").filter(|text| !text.is_empty());
        match given {
            Some(text) => match text.to_str().and_then(|text| text.strip_prefix("unix://")) {
                Some(path) => Ok(vec![PathBuf::from(path)]),
                None => Err(BackendError::FarEngine(text.to_string_lossy().into_owned())),
            },
            None => Ok(usual_places().into_iter().filter(|path| path.exists()).collect()),
        }
    }

    pub(super) fn at(socket: &Path) -> Result<Docker, BackendError> {
        let api = Api::at(socket);
        let told = api.get("/version").map_err(BackendError::Engine)?;
        let said = told.json();
        if !told.is_ok() || said["ApiVersion"].as_str().is_none() {
            return Err(BackendError::Engine(format!("what listens at `{}` is no engine", socket.display())));
        }
        let components = said["Components"].as_array().cloned().unwrap_or_default();
        let is_podman = components.iter().any(|one| one["Name"].as_str() == Some("Podman Engine"));
        let name = if is_podman { "podman" } else { "docker" }.to_owned();
        let docker = Docker { api, name, version: said["Version"].as_str().map(str::to_owned), image: None };
        docker.sweep();
        Ok(docker)
    }

    /// With an image that it has, by its name or its digest. It is unpacked into `store` as any other, once, and handed in: no
    /// container is made from it, because what an engine and a kernel see in its names may differ.
    pub(super) fn with(self, name: &Path, store: &Path) -> Result<Docker, BackendError> {
        let Some(text) = name.to_str().filter(|name| !name.is_empty()) else {
            return Err(BackendError::NoSuchImage { name: name.display().to_string(), engine: self.name });
        };
        let found = self.api.get(&format!("/images/{}/json", escape(text))).map_err(BackendError::Engine)?;
        let about = found.json();
        let Some(id) = about["Id"].as_str().filter(|_| found.is_ok()) else {
            return Err(BackendError::NoSuchImage { name: text.into(), engine: self.name });
        };
        let id = if id.starts_with("sha256:") { id.to_owned() } else { format!("sha256:{id}") };
        let words = about["Config"]["Env"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let pair = |word: &str| word.split_once('=').map(|(key, value)| (key.into(), value.into()));
        let env = words.filter_map(pair).collect();
        let image = match image::kept(&id, env, store).map_err(BackendError::Image)? {
            Some(image) => image,
            None => self.fetch(&id, store)?,
        };
        Ok(Docker { image: Some(image), ..self })
    }

    fn fetch(&self, id: &str, store: &Path) -> Result<Image, BackendError> {
        let path = meeting::new_name(store, ".archive-");
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let error = |error| BackendError::Image(ImageError::Store { path: store.to_owned(), error });
        let mut file = made.map_err(error)?;
        let saved = self.api.save(&format!("/images/{}/get", escape(id)), &mut file).map_err(BackendError::Engine);
        let opened = saved.and_then(|()| image::open(&path, store).map_err(BackendError::Image));
        std::fs::remove_file(&path).map_err(error)?;
        opened
    }

    pub fn socket(&self) -> &Path {
        self.api.socket()
    }

    /// The runtime that it calls, and its version, where it tells.
    pub(super) fn runtime(&self) -> Option<(String, String)> {
        let said = self.api.get("/version").ok()?.json();
        said["Components"].as_array()?.iter().find_map(|one| {
            let name = one["Name"].as_str()?.to_lowercase();
            let name = ["runc", "crun", "youki", "runsc"].into_iter().find(|known| name.contains(known))?;
            let version = one["Version"].as_str()?;
            // Podman gives all that the runtime says.
            let version = version.split_once("version ").map_or(version, |(_, rest)| rest);
            Some((name.to_owned(), version.split_whitespace().next()?.to_owned()))
        })
    }

    /// Removes the containers of those who died before they could.
    fn sweep(&self) {
        let filters = json!({ "label": [LABEL] }).to_string();
        let Ok(answer) = self.api.get(&format!("/containers/json?all=true&filters={}", escape(&filters))) else {
            return;
        };
        for one in answer.json().as_array().into_iter().flatten() {
            let owner = one["Labels"][LABEL].as_str().unwrap_or_default();
            if let (Some(id), true) = (one["Id"].as_str().filter(|id| is_id(id)), is_dead(owner)) {
                let _ = self.api.delete(&format!("/containers/{id}?force=true&v=true"));
            }
        }
    }

    /// Who the container is, seen from the engine's own namespace.
    fn user(&self) -> (u32, u32) {
        // An engine of a user's has his ids alone, and his own is its root's.
        if self.api.socket().metadata().is_ok_and(|meta| meta.uid() != 0) {
            return (0, 0);
        }
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        if !uid.is_root() {
            return (uid.as_raw(), gid.as_raw());
        }
        let id = FIRST_ID + uuid::Uuid::new_v4().as_fields().0 % IDS;
        (id, id)
    }

    fn create(&self, meeting: &Meeting, limits: &Limits, network: Network) -> Result<String, String> {
        let image = match self.empty()? {
            Some(image) => image,
            None => {
                self.make_empty()?;
                self.empty()?.ok_or("what was imported as an empty image is another one")?
            }
        };
        let asked = container(&image, self.user(), meeting.path(), limits, network)?;
        let answer = self.api.post("/containers/create", &asked)?;
        let said = answer.json();
        let id = said["Id"].as_str().filter(|id| answer.is_ok() && is_id(id)).map(str::to_owned);
        id.ok_or_else(|| answer.complaint())
    }

    /// The image of that name, if it is what we have made: one directory, and nothing that it asks for.
    fn empty(&self) -> Result<Option<String>, String> {
        let about = self.api.get(&format!("/images/{}/json", escape(EMPTY)))?.json();
        let layers = json!([format!("sha256:{}", hex(&Sha256::digest(empty_archive())))]);
        let config = &about["Config"];
        let asks =
            ["Volumes", "Env", "Entrypoint", "Cmd", "OnBuild", "Healthcheck"].iter().any(|key| !config[key].is_null());
        let id = about["Id"].as_str().filter(|_| about["RootFS"]["Layers"] == layers && !asks);
        Ok(id.map(str::to_owned))
    }

    fn make_empty(&self) -> Result<(), String> {
        let (repo, tag) = EMPTY.rsplit_once(':').unwrap_or((EMPTY, "latest"));
        let path = format!("/images/create?fromSrc=-&repo={}&tag={tag}", escape(repo));
        let answer = self.api.post_archive(&path, &empty_archive())?;
        if answer.is_ok() { Ok(()) } else { Err(answer.complaint()) }
    }
}

impl Engine for Docker {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&self, limits: &Limits, network: Network, cancel: Option<BorrowedFd<'_>>) -> Result<Started, String> {
        let said = |why: String| format!("{}: {why}", self.name);
        let meeting = Meeting::new()?;
        let id = self.create(&meeting, limits, network).map_err(said)?;
        // From here on it is removed, whatever happens.
        let keeper = Keeper { api: self.api.clone(), id };
        let answer = self.api.tell(&format!("/containers/{}/start", keeper.id)).map_err(said)?;
        if !answer.is_ok() {
            return Err(said(answer.complaint()));
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match meeting.called(Duration::from_secs(1), cancel).map_err(|e| said(e.to_string()))? {
                Some(init) => return Ok(Started { init, keeper: Box::new(keeper) }),
                None if !keeper.is_alive() => return Err(said("the container ended before anything ran in it".into())),
                None if Instant::now() > until => return Err(said("the container has not called".into())),
                None => {}
            }
        }
    }
}

/// Removes the container.
struct Keeper {
    api: Api,
    id: String,
}

impl Keeper {
    fn is_alive(&self) -> bool {
        let seen = self.api.get(&format!("/containers/{}/json", self.id));
        seen.is_ok_and(|answer| answer.json()["State"]["Running"].as_bool() == Some(true))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let removed = self.api.delete(&format!("/containers/{}?force=true&v=true", self.id));
        // The engine is at it already: it was told to when the container was made.
        if removed.is_ok_and(|answer: Answer| answer.status == 409) {
            let _ = self.api.tell(&format!("/containers/{}/wait?condition=removed", self.id));
        }
    }
}

/// It becomes a part of a path.
fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn usual_places() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let of_user = runtime.into_iter().flat_map(|dir| [dir.join("docker.sock"), dir.join("podman/podman.sock")]);
    let of_host = ["/run/docker.sock", "/run/podman/podman.sock"].map(PathBuf::from);
    of_user.chain(of_host).collect()
}

/// What a container is made from. The limits are ours, on our groups, and the engine's a second line for whoever has none.
fn container(
    image: &str,
    (uid, gid): (u32, u32),
    call: &Path,
    limits: &Limits,
    network: Network,
) -> Result<Value, String> {
    let own = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let place = |path: &Path| match path.to_str() {
        Some(text) if path.exists() => Ok(text.to_owned()),
        _ => Err(format!("an engine cannot be told of `{}`", path.display())),
    };
    let mount = |from: &Path, to: &str, read_only: bool| {
        Ok::<_, String>(json!({ "Type": "bind", "Source": place(from)?, "Target": to, "ReadOnly": read_only }))
    };
    // A profile of the engine's would hide what ours witnesses: of two filters the kernel takes the stricter answer, and
    // tells nobody. One that forbids mounts would forbid the cell.
    let mut security = vec!["no-new-privileges", "seccomp=unconfined"];
    let apparmor = std::fs::read_to_string("/sys/module/apparmor/parameters/enabled").unwrap_or_default();
    if apparmor.starts_with('Y') {
        security.push("apparmor=unconfined");
    }
    if Path::new("/sys/fs/selinux/enforce").exists() {
        security.push("label=disable");
    }
    // An engine's own would be above what it may give where it lacks the privilege: Podman's, and no more than ours.
    let limit = |name: &str, resource: Resource, most: u64| {
        let value = getrlimit(resource).maximum.unwrap_or(most).min(most);
        json!({ "Name": name, "Soft": value, "Hard": value })
    };
    // Twice what is allowed: what the cell itself takes is in there, and who is first is to be us.
    let memory = limits.memory.saturating_mul(2).max(64 << 20).min(i64::MAX as u64);
    Ok(json!({
        "Image": image,
        "Entrypoint": CALLED_BY_ENGINE,
        "Cmd": [],
        "User": format!("{uid}:{gid}"),
        "WorkingDir": "/",
        "Hostname": "cell",
        "Labels": { LABEL: owner() },
        "HostConfig": {
            "AutoRemove": true,
            "IpcMode": "none",
            "NetworkMode": if network == Network::Full { "host" } else { "none" },
            "ReadonlyRootfs": true,
            "CapDrop": ["ALL"],
            // Without it who is root there could be nobody in a namespace of his own. It is gone in there.
            "CapAdd": if uid == 0 { &["SETFCAP"][..] } else { &[] },
            "SecurityOpt": security,
            "UsernsMode": "host",
            "PidsLimit": limits.processes.saturating_mul(2).saturating_add(16).min(1 << 22),
            "Memory": memory,
            "MemorySwap": memory,
            "LogConfig": { "Type": "none" },
            "Ulimits": [limit("nofile", Resource::Nofile, 1 << 20), limit("nproc", Resource::Nproc, 1 << 15)],
            "Mounts": [mount(&own, CALLED_BY_ENGINE[0], true)?, mount(call, CALL_AT, false)?],
        },
    }))
}

/// This process, on this host, since it was started.
fn owner() -> String {
    let Owner { pid, start, .. } = Owner::this();
    format!("{pid} {start} {} {}", pid_namespace(), boot())
}

fn is_dead(owner: &str) -> bool {
    let words: Vec<&str> = owner.split(' ').collect();
    let [pid, start, namespace, of] = words[..] else { return false };
    let (Ok(pid), Ok(start)) = (pid.parse(), start.parse()) else { return false };
    // Of another namespace nobody can tell.
    of != boot() || (namespace == pid_namespace() && !Owner::once(pid, start).is_alive())
}

fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn pid_namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").map(PathBuf::into_os_string).unwrap_or_default();
    String::from_utf8_lossy(&link.into_vec()).into_owned()
}

/// One directory, as tar has it.
fn empty_archive() -> Vec<u8> {
    let mut head = [0u8; 512];
    let mut put = |at: usize, text: &[u8]| head[at..at + text.len()].copy_from_slice(text);
    put(0, b"proc/");
    put(100, b"0000755\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, b"00000000000\0");
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"5");
    put(257, b"ustar\x0000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    // Two empty blocks end it.
    [&head[..], &[0; 1024]].concat()
}
