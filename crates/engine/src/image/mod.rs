//! Container images as root file systems: a layout, an archive or an unpacked root in, a directory out.
//!
//!   path --find--> Source --choose--> Plan --unpack, verified--> store/sha256-DIGEST/root
//!
//! An image is what somebody else made, so that nothing it says is believed: every document and every layer is compared to
//! the digest under which it is named, and a layer is unpacked beneath a held directory, through no link, whatever it has
//! in it (`root.rs`). Nothing has a name in the store before it is whole.
//!
//! What is already in the store is used without reading a layer. That is sound for an archive whose files have no digests of
//! their own as well: the configuration is read and hashed each time, it names every layer by its content, and what lies
//! under the configuration's digest was compared to those names when it was unpacked.
//!
//! A root belongs to whoever runs this, is shared by all runs and written by none: it is to be mounted read-only. It has
//! links that lead anywhere; whoever looks into it from outside must not follow them.

mod error;
mod layer;
mod manifest;
mod root;
mod source;
mod store;
mod tar;
#[cfg(test)]
mod tests;
mod unpack;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use error::ImageError;
use layer::Room;
use manifest::Plan;
use source::{Found, Source};
use store::{About, Store};

/// A root file system that was made from an image, or lay there as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Absolute, and through no link.
    pub root: PathBuf,
    /// `sha256:` and the digest of the image's configuration, which is what Docker and Podman show as its id. Empty for a
    /// directory that was a root already: nobody knows what is in it.
    pub digest: String,
    /// What the image wants to be set.
    pub env: Vec<(OsString, OsString)>,
    /// Devices and FIFOs of the image that are not in the root.
    pub left_out: u64,
}

impl Image {
    /// Its digest, or where it lies when it has none.
    pub(crate) fn name(&self) -> String {
        match self.digest.is_empty() {
            true => self.root.display().to_string(),
            false => self.digest.clone(),
        }
    }
}

/// `path` is a layout of the Open Container Initiative, an archive of one, an archive of `docker save`, or an unpacked root.
/// Roots that are made are kept in `store`.
pub fn open(path: &Path, store: &Path) -> Result<Image, ImageError> {
    open_within(path, store, Room::WHOLE)
}

/// One that was unpacked before, by its digest and what else is known of it. The store is there afterwards in any case.
pub(crate) fn kept(digest: &str, env: Vec<(OsString, OsString)>, store: &Path) -> Result<Option<Image>, ImageError> {
    let store = Store::open(store)?;
    let plain =
        digest.strip_prefix("sha256:").filter(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()));
    let found = plain.and_then(|hex| store.get(hex));
    Ok(found.map(|(root, about)| Image { root, digest: digest.into(), env, left_out: about.left_out }))
}

fn open_within(path: &Path, store: &Path, room: Room) -> Result<Image, ImageError> {
    let (source, plan) = match source::find(path)? {
        Found::Root(root) => {
            return Ok(Image { root, digest: String::new(), env: vec![], left_out: 0 });
        }
        Found::Layout(source) => {
            let plan = manifest::of_layout(&source)?;
            (source, plan)
        }
        Found::DockerArchive(source) => {
            let plan = manifest::of_docker_archive(&source)?;
            (source, plan)
        }
    };
    let (root, about) = Store::open(store)?.get_or_make(&plan.digest, |root| fill(&source, &plan, root, room))?;
    let digest = format!("sha256:{}", plan.digest);
    Ok(Image { root, digest, env: plan.env, left_out: about.left_out })
}

fn fill(source: &Source, plan: &Plan, root: &root::Root, mut room: Room) -> Result<About, ImageError> {
    let mut left_out = 0;
    for (n, layer) in plan.layers.iter().enumerate() {
        left_out += layer::apply(source, layer, n + 1, root, &mut room)?;
    }
    Ok(About { left_out })
}
