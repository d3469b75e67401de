//! Flags that say who makes the cell.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args)]
pub(crate) struct BackendArgs {
    /// Who makes the cell: native, oci or docker [default: native]
    #[arg(long, value_enum, value_name = "B", hide_possible_values = true, help_heading = "Cell")]
    pub(crate) backend: Option<Backend>,
    /// The OCI runtime: runc, crun, youki, runsc or a path [default: the first there is]
    #[arg(long, value_name = "R", hide_short_help = true, help_heading = "Cell")]
    pub(crate) runtime: Option<PathBuf>,
    /// A container image for the root: an OCI layout, an archive or a directory; with docker, a name or digest
    #[arg(long, value_name = "IMAGE", hide_short_help = true, help_heading = "Cell")]
    pub(crate) image: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// This program itself
    Native,
    /// An OCI runtime
    Oci,
    /// Docker or Podman
    Docker,
}

/// Where images are unpacked, if anywhere.
fn images_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = || absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    // Ours: what cannot be used is refused, and not passed over.
    let given = std::env::var_os("HOTCELL_IMAGES").filter(|path| !path.is_empty()).map(PathBuf::from);
    given.or_else(|| Some(cache()?.join("hotcell/images")))
}

impl BackendArgs {
    pub(crate) fn asked(&self) -> hotcell_engine::AskedBackend {
        hotcell_engine::AskedBackend {
            backend: self.backend.map(|backend| match backend {
                Backend::Native => hotcell_engine::Backend::Native,
                Backend::Oci => hotcell_engine::Backend::Oci,
                Backend::Docker => hotcell_engine::Backend::Docker,
            }),
            runtime: self.runtime.clone(),
            image: self.image.clone(),
            images: images_dir(),
        }
    }
}
