//! Who makes the cell: this program itself, or a container runtime of the host's.

mod docker;
mod runtimes;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use hotcell_contract::{FailureClass, IsolationLevel, Mode, Policy};
use hotcell_sandbox::{Engine, Runtime, RuntimeKind};

use crate::image::{self, Image, ImageError};
use crate::policy::PolicyError;
use crate::trigger::Trigger;
pub use docker::Docker;
pub use runtimes::{FoundRuntime, Hole, survey as survey_runtimes};
use runtimes::{is_of_the_system, known_hole, must_be_patched, name_of, named, usual, version_must_be_patched};

#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    #[error("no {} is found on this host: install one of {}", if *.strict { "runtime with a kernel of its own" } else { "container runtime" }, if *.strict { "runsc (gVisor)" } else { "runc, crun" })]
    NoRuntime { strict: bool },
    #[error("`{0}` is not a runtime that is known here: give runc, crun, youki, runsc or the path of one of them")]
    Unknown(String),
    #[error("`{0}` is not found on this host: install the package {0}, or give the path of the runtime")]
    NotFound(String),
    #[error("kata has no runtime that a command can call since its version 2: use runsc for a kernel of its own")]
    Kata,
    #[error("`{}` is no runtime that is known here: {why}", path.display())]
    NotOne { path: PathBuf, why: String },
    #[error("--runtime is for containers: leave it out, or give --backend oci")]
    RuntimeOfNothing,
    #[error("--image is for containers: leave it out, or give --backend oci")]
    ImageOfNothing,
    #[error("there is no place to unpack images in: set HOME, or HOTCELL_IMAGES")]
    NoStore,
    #[error("HOTCELL_IMAGES is `{}`, which is not an absolute path: give one that begins with /", .0.display())]
    RelativeStore(PathBuf),
    #[error(transparent)]
    Image(ImageError),
    #[error(
        "no engine is found on this host: start docker or podman's service, set DOCKER_HOST, or use --backend oci, which needs none"
    )]
    NoEngine,
    #[error("DOCKER_HOST is `{0}`, and containers must be on this host: give a socket as unix:///PATH")]
    FarEngine(String),
    #[error("{0}")]
    Engine(String),
    #[error("`{name}` is no image that {engine} has: pull, build or load it there first")]
    NoSuchImage { name: String, engine: String },
    #[error("--runtime is for --backend oci: an engine calls a runtime of its own")]
    RuntimeOfEngine,
    #[error("{0} does not tell which runtime it calls and `patched-runtime` is required")]
    UnknownRuntime(String),
    #[error("--network {network} is not possible with runsc: what its kernel reaches cannot be brokered from outside")]
    Network { network: String },
    #[error("a memory limit of {memory} is too small for runsc, whose kernel takes 20 MiB of it: give {least} or more")]
    Memory { memory: String, least: String },
    #[error("`{}` does not tell its version and `patched-runtime` is required", path.display())]
    NoVersion { path: PathBuf },
    #[error("{name} {version} has known holes ({what}) and `patched-runtime` is required: install {fixed} or newer")]
    Vulnerable { name: &'static str, version: String, what: &'static str, fixed: &'static str },
}

/// Among what is required: a runtime that nothing is known against.
pub(crate) const PATCHED: &str = "patched-runtime";

/// With less, what a kernel of its own takes would be called the program's.
pub(crate) const KERNEL_BYTES: u64 = 32 << 20;

/// How people call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Native,
    Oci,
    Docker,
}

impl Backend {
    fn of(name: &str) -> Option<Backend> {
        match name {
            "native" => Some(Backend::Native),
            "oci" => Some(Backend::Oci),
            "docker" => Some(Backend::Docker),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Backend::Native => "native",
            Backend::Oci => "oci",
            Backend::Docker => "docker",
        }
    }
}

/// What the caller says about it.
#[derive(Clone, Debug, Default)]
pub struct AskedBackend {
    pub backend: Option<Backend>,
    /// A name, or the path of a binary.
    pub runtime: Option<PathBuf>,
    pub image: Option<PathBuf>,
    /// Where images are unpacked.
    pub images: Option<PathBuf>,
}

impl AskedBackend {
    /// An image, or a runtime by its path: nobody but the caller knows what is in them.
    pub fn is_of_the_callers_own(&self) -> bool {
        self.image.is_some() || self.has_own_runtime()
    }

    fn has_own_runtime(&self) -> bool {
        self.runtime.as_ref().is_some_and(|name| name.as_os_str().as_bytes().contains(&b'/'))
    }
}

/// Who makes a container, and what its root is made of.
#[derive(Clone, Debug)]
pub enum Container {
    Oci { runtime: Runtime, image: Option<Image> },
    Engine(Arc<Docker>),
}

impl Container {
    pub fn has_own_kernel(&self) -> bool {
        matches!(self, Container::Oci { runtime, .. } if runtime.kind == RuntimeKind::Runsc)
    }

    /// The digest of its image, or where it lies.
    pub(crate) fn image_name(&self) -> Option<String> {
        match self {
            Container::Oci { image, .. } => image.as_ref().map(Image::name),
            Container::Engine(docker) => docker.image.as_ref().map(Image::name),
        }
    }

    /// What its image wants to be set; nothing where there is no image.
    pub(crate) fn image_env(&self) -> Option<&[(OsString, OsString)]> {
        match self {
            Container::Oci { image, .. } => image.as_ref().map(|image| &image.env[..]),
            Container::Engine(docker) => docker.image.as_ref().map(|image| &image.env[..]),
        }
    }
}

/// Settles who makes the cell: what is asked for, at least what the policy says, never less.
pub(crate) fn choose(
    policy: Option<&Policy>,
    asked: &AskedBackend,
    require: &[String],
    raised: Option<&Trigger>,
) -> Result<Option<Container>, PolicyError> {
    let level = policy.map_or(IsolationLevel::Process, |policy| policy.isolation_level);
    let refuse = |class, why: String| {
        let why = raised.map_or(why.clone(), |trigger| format!("{why} (raised by {trigger})"));
        Err(PolicyError::Refused { policy: policy.map(|p| p.policy_id.clone()).unwrap_or_default(), class, why })
    };
    if level == IsolationLevel::None {
        return refuse(FailureClass::PolicyViolation, "isolation_level none is not enabled here".into());
    }
    let strict = level == IsolationLevel::Vm || raised.is_some();
    let needs_container = strict || level == IsolationLevel::Container;
    let of_policy = policy.and_then(|policy| Backend::of(policy.backend.as_deref()?));
    let by_default = if needs_container || asked.runtime.is_some() || asked.image.is_some() {
        Backend::Oci
    } else {
        Backend::Native
    };
    let backend = match (of_policy, asked.backend) {
        (Some(set), Some(other)) if set != other => {
            let why = format!("its backend is {}: leave --backend out", set.name());
            return refuse(FailureClass::PolicyViolation, why);
        }
        (set, asked) => set.or(asked).unwrap_or(by_default),
    };
    match backend {
        Backend::Native if needs_container => {
            let why = "it needs a container, and --backend native is none: leave it out";
            return refuse(FailureClass::PolicyViolation, why.into());
        }
        Backend::Native if asked.runtime.is_some() => return Err(BackendError::RuntimeOfNothing.into()),
        Backend::Native if asked.image.is_some() => return Err(BackendError::ImageOfNothing.into()),
        Backend::Native => return Ok(None),
        Backend::Docker if strict => {
            let why = "it needs a kernel of its own, and an engine's container has none: give --runtime runsc";
            return refuse(FailureClass::PolicyViolation, why.into());
        }
        Backend::Docker if asked.runtime.is_some() => return Err(BackendError::RuntimeOfEngine.into()),
        Backend::Docker => return Ok(Some(engine(asked, require)?)),
        Backend::Oci => {}
    }
    let found = match &asked.runtime {
        // It would be the caller's word for what the policy demands. Asked for its version, it would run already.
        Some(path) if policy.is_some() && asked.has_own_runtime() && !is_of_the_system(path) => {
            let why = format!(
                "`{}` is a runtime of your own: give the name of one of the system's, or leave --runtime out",
                path.display()
            );
            return refuse(FailureClass::PolicyViolation, why);
        }
        Some(name) => named(name),
        None => usual(strict),
    };
    let runtime = match found {
        Ok(runtime) if strict && runtime.kind != RuntimeKind::Runsc => {
            let why =
                format!("it needs a kernel of its own, and {} has none: give --runtime runsc", name_of(runtime.kind));
            return refuse(FailureClass::PolicyViolation, why);
        }
        Err(BackendError::NoRuntime { strict: true }) => {
            let asked_for = policy.is_some_and(|policy| policy.mode == Mode::Strict);
            let class = if asked_for { FailureClass::StrictModeUnavailable } else { FailureClass::StrictModeRequired };
            return refuse(class, BackendError::NoRuntime { strict: true }.to_string());
        }
        Err(none @ BackendError::NoRuntime { .. }) if needs_container => {
            return refuse(FailureClass::SetupFailure, none.to_string());
        }
        found => found?,
    };
    if require.iter().any(|layer| layer == PATCHED) {
        must_be_patched(&runtime)?;
    }
    let image = asked.image.as_deref().map(|path| {
        let store = asked.images.as_deref().ok_or(BackendError::NoStore)?;
        if store.is_relative() {
            return Err(BackendError::RelativeStore(store.to_owned()));
        }
        image::open(path, store).map_err(BackendError::Image)
    });
    Ok(Some(Container::Oci { runtime, image: image.transpose()? }))
}

/// An engine that is here.
pub(crate) struct FoundEngine {
    pub(crate) docker: Arc<Docker>,
    /// Of the runtime that it calls.
    pub(crate) hole: Option<Hole>,
}

/// Each whose socket is where it is looked for, in that order: the first is the one that is used.
pub(crate) fn survey_engines() -> Vec<Result<FoundEngine, BackendError>> {
    let places = match Docker::places() {
        Ok(places) => places,
        Err(e) => return vec![Err(e)],
    };
    let found = places.iter().map(|socket| Docker::at(socket));
    found
        .map(|found| {
            let docker = found?;
            let hole = docker.runtime().and_then(|(name, version)| known_hole(&name, &version));
            Ok(FoundEngine { docker: Arc::new(docker), hole: hole.map(|(_, hole)| hole) })
        })
        .collect()
}

fn engine(asked: &AskedBackend, require: &[String]) -> Result<Container, BackendError> {
    let docker = Docker::find()?;
    if require.iter().any(|layer| layer == PATCHED) {
        let Some((name, version)) = docker.runtime() else {
            return Err(BackendError::UnknownRuntime(docker.name().into()));
        };
        version_must_be_patched(&name, version)?;
    }
    let docker = match &asked.image {
        Some(name) => docker.with(name, asked.images.as_deref().ok_or(BackendError::NoStore)?)?,
        None => docker,
    };
    Ok(Container::Engine(Arc::new(docker)))
}
