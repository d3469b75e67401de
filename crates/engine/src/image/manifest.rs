//! Which image there is, and what it is made of: from the index or the manifest to the configuration and the layers.
//!
//! An image's identity is the digest of its configuration, which has the digests of all layers as they are uncompressed: it
//! says what the root is to the last byte, and is the same in a layout, in either archive, and however layers are compressed.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::Path;

use hotcell_contract::is_hex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::error::{ImageError, shown};
use super::source::Source;
use crate::keys::hex;

const OS: &str = "linux";
const ARCHITECTURE: &str = "amd64";
const PLATFORM: &str = "linux/amd64";
/// More than any builder makes.
const MAX_LAYERS: usize = 512;

const INDEXES: [&str; 2] =
    ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];
const MANIFESTS: [&str; 2] =
    ["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"];
/// How a layer is compressed is seen, not believed. Others are encrypted, or not layers.
const LAYERS: [&str; 7] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
];

/// An image that is not unpacked.
pub(super) struct Plan {
    /// Of the configuration, in hex.
    pub(super) digest: String,
    pub(super) env: Vec<(OsString, OsString)>,
    /// The lowest first.
    pub(super) layers: Vec<Layer>,
}

pub(super) struct Layer {
    /// In its source.
    pub(super) name: String,
    /// Of the file as it lies there; an archive of Docker's does not say.
    pub(super) blob: Option<String>,
    /// Of the tar archive in it.
    pub(super) content: String,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    platform: Option<Platform>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Deserialize)]
struct Platform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    variant: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Configuration {
    #[serde(flatten)]
    platform: Platform,
    #[serde(default)]
    config: Option<Defaults>,
    rootfs: RootFs,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Defaults {
    #[serde(default)]
    env: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RootFs {
    #[serde(default)]
    diff_ids: Option<Vec<String>>,
}

impl Platform {
    fn runs_here(&self) -> bool {
        // A later variant has instructions that this host may not have.
        self.os == OS && self.architecture == ARCHITECTURE && matches!(self.variant.as_str(), "" | "v1")
    }

    fn shown(&self) -> String {
        let all = [&self.os, &self.architecture, &self.variant];
        let said: Vec<String> = all.iter().filter(|s| !s.is_empty()).map(|s| shown(s.as_bytes())).collect();
        format!("`{}`", said.join("/"))
    }
}

impl Descriptor {
    fn is_index(&self) -> bool {
        INDEXES.contains(&self.media_type.as_str())
    }

    /// Where a layout has it, and the digest in hex.
    fn blob(&self) -> Result<(String, &str), ImageError> {
        let hex = sha256(&self.digest)?;
        Ok((format!("blobs/sha256/{hex}"), hex))
    }

    /// What it describes, verified.
    fn read(&self, source: &Source, what: &str) -> Result<Vec<u8>, ImageError> {
        let (name, expected) = self.blob()?;
        let bytes = source.read(&name)?;
        same(what, &hex(&Sha256::digest(&bytes)), expected)?;
        Ok(bytes)
    }

    fn shown(&self) -> String {
        let names = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];
        let annotations = self.annotations.as_ref();
        let name = annotations.and_then(|all| names.iter().find_map(|name| all.get(*name)));
        shown(name.unwrap_or(&self.digest).as_bytes())
    }
}

fn sha256(digest: &str) -> Result<&str, ImageError> {
    let hex = digest.strip_prefix("sha256:").filter(|hex| is_hex(hex, 64));
    hex.ok_or_else(|| ImageError::corrupt(format!("`{}` is no digest of SHA-256", shown(digest.as_bytes()))))
}

/// Whether something has the digest that it should have.
pub(super) fn same(what: &str, is: &str, expected: &str) -> Result<(), ImageError> {
    let differs = || ImageError::Digest { what: what.into(), is: is.into(), expected: expected.into() };
    if is == expected { Ok(()) } else { Err(differs()) }
}

fn parse<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, ImageError> {
    serde_json::from_slice(bytes)
        .map_err(|e| ImageError::corrupt(format!("{what} cannot be read: {}", shown(e.to_string().as_bytes()))))
}

/// The image of a layout, in a directory or an archive.
pub(super) fn of_layout(source: &Source) -> Result<Plan, ImageError> {
    let index: Index = parse(&source.read("index.json")?, "`index.json`")?;
    let mut chosen = candidates(&index)?;
    if chosen.len() > 1 {
        return Err(several(source, chosen.iter().map(|one| one.shown())));
    }
    let mut one = chosen.remove(0);
    if one.is_index() {
        // The platforms of one image: the first that runs here is meant.
        let inner: Index = parse(&one.read(source, "the index")?, "the index")?;
        one = candidates(&inner)?.remove(0);
        if one.is_index() {
            return Err(ImageError::corrupt("an index is in an index that is in an index"));
        }
    }
    let manifest: Manifest = parse(&one.read(source, "the manifest")?, "the manifest")?;
    let config = manifest.config.read(source, "the configuration")?;
    let mut blobs = vec![];
    for layer in &manifest.layers {
        if !LAYERS.contains(&layer.media_type.as_str()) {
            let what = format!("a layer of the kind `{}`", shown(layer.media_type.as_bytes()));
            return Err(ImageError::Unsupported { what, instead: "save the image with layers in gzip" });
        }
        let (name, hex) = layer.blob()?;
        blobs.push((name, Some(hex.to_owned())));
    }
    plan(&config, blobs)
}

/// The image that `docker save` wrote in the way it did before there were layouts.
pub(super) fn of_docker_archive(source: &Source) -> Result<Plan, ImageError> {
    let mut saved: Vec<Saved> = parse(&source.read("manifest.json")?, "`manifest.json`")?;
    if saved.iter().any(|other| other.config != saved[0].config) {
        let names = saved.iter().map(|one| match one.repo_tags.as_deref() {
            Some([first, ..]) => shown(first.as_bytes()),
            _ => shown(one.config.as_bytes()),
        });
        return Err(several(source, names));
    }
    let one = saved.pop().ok_or_else(|| ImageError::corrupt("`manifest.json` names no image"))?;
    let config = source.read(&one.config)?;
    let blobs = one.layers.unwrap_or_default().into_iter().map(|name| (name, None)).collect();
    let plan = plan(&config, blobs)?;
    // Its name is its digest, in all archives that were seen; the digest counts, whatever the name.
    let name = Path::new(&one.config).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if is_hex(name, 64) {
        same("the configuration", &plan.digest, name)?;
    }
    Ok(plan)
}

/// What could be meant, at least one, each once.
fn candidates(index: &Index) -> Result<Vec<Descriptor>, ImageError> {
    let is_image = |one: &&Descriptor| one.is_index() || MANIFESTS.contains(&one.media_type.as_str());
    let images: Vec<&Descriptor> = index.manifests.iter().filter(is_image).collect();
    let (mut chosen, mut known) = (vec![], HashSet::new());
    for one in &images {
        if one.platform.as_ref().is_none_or(Platform::runs_here) && known.insert(&one.digest) {
            chosen.push((*one).clone());
        }
    }
    // What says that it runs here, before what does not say.
    chosen.sort_by_key(|one| one.platform.is_none());
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let others: Vec<String> = images.iter().filter_map(|one| one.platform.as_ref().map(Platform::shown)).collect();
    if others.is_empty() {
        return Err(ImageError::corrupt("the index names no image"));
    }
    Err(ImageError::Architecture { found: list(others.into_iter()), wanted: PLATFORM })
}

fn several(source: &Source, names: impl Iterator<Item = String>) -> ImageError {
    let names = list(names.map(|name| format!("`{name}`")));
    ImageError::SeveralImages { path: source.path.clone(), names }
}

fn list(mut names: impl Iterator<Item = String>) -> String {
    let first: Vec<String> = names.by_ref().take(8).collect();
    let more = if names.next().is_some() { " and more" } else { "" };
    first.join(", ") + more
}

fn plan(config: &[u8], blobs: Vec<(String, Option<String>)>) -> Result<Plan, ImageError> {
    let digest = hex(&Sha256::digest(config));
    let config: Configuration = parse(config, "the configuration")?;
    if !config.platform.runs_here() {
        return Err(ImageError::Architecture { found: config.platform.shown(), wanted: PLATFORM });
    }
    let contents = config.rootfs.diff_ids.unwrap_or_default();
    if contents.len() != blobs.len() {
        let why = format!("it has {} layers, and its configuration {}", blobs.len(), contents.len());
        return Err(ImageError::corrupt(why));
    }
    if blobs.len() > MAX_LAYERS {
        return Err(ImageError::TooLarge { why: format!("it has more than {MAX_LAYERS} layers") });
    }
    let mut layers = vec![];
    for ((name, blob), content) in blobs.into_iter().zip(&contents) {
        layers.push(Layer { name, blob, content: sha256(content)?.to_owned() });
    }
    let defaults = config.config.unwrap_or_default();
    let env = defaults.env.unwrap_or_default().iter().map(|line| variable(line)).collect::<Result<_, _>>()?;
    Ok(Plan { digest, env, layers })
}

fn variable(line: &str) -> Result<(OsString, OsString), ImageError> {
    let pair = line.split_once('=').filter(|(name, _)| !name.is_empty() && !line.contains('\0'));
    let (name, value) =
        pair.ok_or_else(|| ImageError::corrupt(format!("`{}` is no variable", shown(line.as_bytes()))))?;
    Ok((name.into(), value.into()))
}
