//! The real program behind a name on this host. A shim (pyenv, rustup, asdf) is a detour that costs more than many
//! programs and needs its manager inside the cell; what it stands for is found here instead, by the manager's own rules.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::catalogue::Tool;

const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What of the host decides which toolchain is meant.
#[derive(Clone, Debug)]
pub struct Host {
    pub path: OsString,
    pub home: Option<PathBuf>,
    pub here: PathBuf,
    /// The environment, for the managers' own variables.
    pub variable: fn(&str) -> Option<String>,
}

impl Host {
    pub fn this() -> Host {
        Host {
            path: std::env::var_os("PATH").unwrap_or_default(),
            home: std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
            here: std::env::current_dir().unwrap_or_else(|_| "/".into()),
            variable: |name| std::env::var(name).ok().filter(|value| !value.is_empty()),
        }
    }

    /// What is installed for everybody, whoever asks and from wherever.
    pub fn of_the_system() -> Host {
        Host { path: SYSTEM_PATH.into(), home: None, here: "/".into(), variable: |_| None }
    }
}

/// A program and what of its installation it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub binary: PathBuf,
    /// The directory above its `bin`.
    pub prefix: PathBuf,
    /// Beside /usr, which every cell has.
    pub trees: Vec<PathBuf>,
}

impl Found {
    /// Changes when the program does.
    pub fn identity(&self) -> String {
        use std::os::unix::fs::MetadataExt;
        let path = self.binary.display();
        match self.binary.metadata() {
            Ok(meta) => format!("{path} {} {} {}.{}", meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()),
            Err(_) => path.to_string(),
        }
    }
}

/// Places of a cell that are its own. A toolchain of the host that lies there is seen elsewhere.
const OWN: [&str; 7] = ["/work", "/tmp", "/src", "/build", "/dev", "/proc", "/opt/host"];

/// Where a cell has what the host has at `path`.
pub fn in_cell(path: &Path) -> PathBuf {
    match OWN.iter().any(|own| path.starts_with(own)) {
        true => Path::new("/opt/host").join(path.strip_prefix("/").unwrap_or(path)),
        false => path.to_owned(),
    }
}

/// The first that is real: along PATH, then where else the language says.
pub(crate) fn find(name: &str, tool: &Tool, host: &Host) -> Option<Found> {
    let along = std::env::split_paths(&host.path).filter(|dir| dir.is_absolute());
    let also = tool.also.iter().flat_map(|pattern| expand(pattern, host).into_iter().rev());
    along.chain(also).find_map(|dir| {
        if dir.ends_with("shims") {
            return shimmed(&dir, name, tool, host);
        }
        let candidate = dir.join(name);
        if is_rustup(&candidate, &dir) { rustup(name, tool, host) } else { accept(&candidate, tool) }
    })
}

/// pyenv and its kin keep `versions/`, asdf and mise keep `installs/`.
fn shimmed(shims: &Path, name: &str, tool: &Tool, host: &Host) -> Option<Found> {
    let root = shims.parent()?;
    if root.join("versions").is_dir() { versions(root, name, tool, host) } else { installs(root, name, tool, host) }
}

/// pyenv's own order of deciding: the environment, a file above the working directory, the global file.
fn versions(root: &Path, name: &str, tool: &Tool, host: &Host) -> Option<Found> {
    let (variable, file) = match name {
        "node" => ("NODENV_VERSION", ".node-version"),
        "go" => ("GOENV_VERSION", ".go-version"),
        _ => ("PYENV_VERSION", ".python-version"),
    };
    let local = || host.here.ancestors().find_map(|dir| read_small(&dir.join(file)));
    let wanted = (host.variable)(variable).or_else(local).or_else(|| read_small(&root.join("version")))?;
    wanted.split([':', '\n', ' ']).map(str::trim).filter(|version| is_plain(version)).find_map(|version| {
        let versions = root.join("versions");
        let exact = accept(&versions.join(version).join("bin").join(name), tool);
        // `3.10` is short for the newest 3.10.x.
        let newest = || star(&versions.join(format!("{version}.*"))).into_iter().rev();
        exact.or_else(|| newest().find_map(|dir| accept(&dir.join("bin").join(name), tool)))
    })
}

/// `.tool-versions`, above the working directory or at home: a plugin and its versions on each line.
fn installs(root: &Path, name: &str, tool: &Tool, host: &Host) -> Option<Found> {
    let above = host.here.ancestors().map(Path::to_owned).chain(host.home.clone());
    above.filter_map(|dir| read_small(&dir.join(".tool-versions"))).find_map(|text| {
        text.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let plugin = words.next().filter(|plugin| is_plain(plugin))?;
            words.filter(|version| is_plain(version)).find_map(|version| {
                accept(&root.join("installs").join(plugin).join(version).join("bin").join(name), tool)
            })
        })
    })
}

/// A file that says a version. The working directory may be anybody's: a FIFO there must not hold us, nor a device fill us.
fn read_small(path: &Path) -> Option<String> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    const O_NONBLOCK: i32 = 0o4000;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(64 << 10).read_to_string(&mut text).ok()?;
    Some(text)
}

/// One name of a directory and nothing that leads elsewhere.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && name != "." && name != ".."
}

/// A proxy is a link to rustup, symbolic or hard.
fn is_rustup(candidate: &Path, dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    let own = id(candidate);
    own.is_some() && own == id(&dir.join("rustup"))
}

/// rustup's own order: the environment, an override of a directory, a toolchain file, the default.
fn rustup(name: &str, tool: &Tool, host: &Host) -> Option<Found> {
    let home = match (host.variable)("RUSTUP_HOME") {
        Some(home) => PathBuf::from(home),
        None => host.home.as_ref()?.join(".rustup"),
    };
    let table = |path: PathBuf| read_small(&path)?.parse::<toml::Table>().ok();
    let settings = table(home.join("settings.toml")).unwrap_or_default();
    let text = |value: &toml::Value| value.as_str().map(str::to_owned);
    let overridden = || {
        let of = settings.get("overrides")?.as_table()?;
        host.here.ancestors().find_map(|dir| text(of.get(dir.to_str()?)?))
    };
    let local = || {
        host.here.ancestors().find_map(|dir| {
            let named = |name: &str| text(table(dir.join(name))?.get("toolchain")?.get("channel")?);
            let plain = || {
                let text = read_small(&dir.join("rust-toolchain"))?;
                Some(text.trim().to_owned()).filter(|name| is_plain(name) && !name.contains('\n'))
            };
            named("rust-toolchain.toml").or_else(|| named("rust-toolchain")).or_else(plain)
        })
    };
    let default = || text(settings.get("default_toolchain")?);
    let asked = (host.variable)("RUSTUP_TOOLCHAIN");
    let wanted = asked.or_else(overridden).or_else(local).or_else(default)?;
    let toolchains = home.join("toolchains");
    if !is_plain(&wanted) {
        return None;
    }
    // `stable` is short for `stable-x86_64-unknown-linux-gnu`.
    let long = format!("{wanted}-{}-unknown-linux-gnu", std::env::consts::ARCH);
    [wanted, long].iter().find_map(|name_of| accept(&toolchains.join(name_of).join("bin").join(name), tool))
}

fn accept(candidate: &Path, tool: &Tool) -> Option<Found> {
    let real = candidate.canonicalize().ok()?;
    let executable = std::os::unix::fs::MetadataExt::mode(&real.metadata().ok()?) & 0o111 != 0;
    if !real.is_file() || !(tool.script || executable && is_elf(&real)) {
        return None;
    }
    let prefix = real.parent()?.parent()?.to_owned();
    if tool.marker.as_ref().is_some_and(|marker| !prefix.join(marker).exists()) {
        return None;
    }
    // A virtual environment is its own directory and the installation that it was made from.
    let environment = candidate.parent()?.parent()?;
    let (binary, mut trees) = match environment.join("pyvenv.cfg").is_file() {
        true => (candidate.to_owned(), vec![environment.to_owned()]),
        false => (real.clone(), vec![]),
    };
    for tree in &tool.trees {
        match tree.strip_prefix('/') {
            Some(_) => trees.extend(star(Path::new(tree))),
            None => trees.extend(Some(prefix.join(tree)).filter(|path| path.exists())),
        }
    }
    if !trees.iter().any(|tree| real.starts_with(tree)) {
        trees.push(real);
    }
    trees.retain(|tree| !tree.starts_with("/usr") && tree.parent().is_some());
    Some(Found { binary, prefix, trees })
}

fn is_elf(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0u8; 4];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}

fn expand(pattern: &str, host: &Host) -> Vec<PathBuf> {
    match (pattern.strip_prefix("~/"), &host.home) {
        (Some(below), Some(home)) => star(&home.join(below)),
        (Some(_), None) => vec![],
        (None, _) => star(Path::new(pattern)),
    }
}

/// What exists of a path in which one name may have a `*`; versions in their own order.
fn star(pattern: &Path) -> Vec<PathBuf> {
    let Some(at) = pattern.iter().position(|part| part.to_string_lossy().contains('*')) else {
        return if pattern.exists() { vec![pattern.to_owned()] } else { vec![] };
    };
    let before: PathBuf = pattern.iter().take(at).collect();
    let behind: PathBuf = pattern.iter().skip(at + 1).collect();
    let part = pattern.iter().nth(at).unwrap_or_default().to_string_lossy().into_owned();
    let (head, tail) = part.split_once('*').unwrap_or((&part, ""));
    let mut names: Vec<String> = std::fs::read_dir(&before)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail))
        .collect();
    names.sort_by_key(|name| numbers(name));
    let whole =
        |name: String| if behind.as_os_str().is_empty() { before.join(name) } else { before.join(name).join(&behind) };
    names.into_iter().map(whole).filter(|path| path.exists()).collect()
}

/// v9 before v10.
fn numbers(name: &str) -> (Vec<u64>, String) {
    let parts = name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    (parts.collect(), name.to_owned())
}
