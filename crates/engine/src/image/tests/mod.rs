//! Images made in code, good and bad, and a look from outside at what became of them.

mod formats;
mod fuzz;
mod hostile;
mod layers;
mod refusals;
mod stores;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Image, ImageError, open};
use crate::keys::hex;

/// A directory with a store, and something beside it that nobody may touch.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn new(name: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("hotcell-image-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("outside/below")).expect("a directory");
        fs::write(dir.join("outside/secret"), "untouched").expect("a file");
        fs::write(dir.join("outside/below/file"), "untouched").expect("a file");
        std::os::unix::fs::symlink("secret", dir.join("outside/link")).expect("a link");
        Place { dir }
    }

    fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.join(name);
        fs::write(&path, bytes).expect("a file");
        path
    }

    fn open(&self, path: &Path) -> Result<Image, ImageError> {
        open(path, &self.store())
    }

    /// Opens an image of these layers as an archive of a layout.
    fn open_layers(&self, layers: &[Vec<u8>]) -> Result<Image, ImageError> {
        let path = self.write("image.tar", &Built::new(layers).layout_archive());
        self.open(&path)
    }

    /// Everything but the store, to the last time stamp that a change would change.
    fn outside(&self) -> BTreeMap<PathBuf, String> {
        let mut seen = BTreeMap::new();
        look(&self.dir.join("outside"), &mut |path, meta| {
            let content = if meta.is_file() { fs::read(path).expect("a file") } else { vec![] };
            let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
            let all = (meta.ino(), meta.nlink(), meta.mode(), meta.uid(), times, content);
            seen.insert(path.to_owned(), format!("{all:?}"));
        });
        let beside = fs::read_dir(&self.dir).expect("a directory").flatten().map(|entry| entry.file_name());
        seen.insert(PathBuf::new(), format!("{:?}", beside.filter(|name| name != "store").collect::<Vec<_>>().len()));
        seen
    }

    /// The names in the store.
    fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.store()).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn look(dir: &Path, with: &mut dyn FnMut(&Path, &fs::Metadata)) {
    with(dir, &fs::symlink_metadata(dir).expect("metadata"));
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let meta = entry.metadata().expect("metadata");
        if meta.is_dir() { look(&entry.path(), with) } else { with(&entry.path(), &meta) }
    }
}

/// A root as lines: `dir 755 etc`, `file 644 etc/x content`, `link etc/y -> x`.
fn tree(root: &Path) -> Vec<String> {
    let mut lines = vec![];
    look(root, &mut |path, meta| {
        let name = path.strip_prefix(root).expect("below").to_string_lossy().into_owned();
        let mode = meta.permissions().mode() & 0o7777;
        lines.push(match fs::read_link(path) {
            Ok(to) => format!("link {name} -> {}", to.display()),
            Err(_) if meta.is_dir() => format!("dir {mode:o} {name}"),
            Err(_) if meta.is_file() => {
                format!("file {mode:o} {name} {}", String::from_utf8_lossy(&fs::read(path).expect("a file")))
            }
            Err(_) => format!("something {name}"),
        });
    });
    lines.sort();
    lines.into_iter().filter(|line| line != "dir 755 ").collect()
}

/// A tar archive in the making.
#[derive(Clone, Default)]
struct Tape(Vec<u8>);

impl Tape {
    /// Any header, with a checksum that is right.
    fn raw(mut self, flag: u8, name: &[u8], link: &[u8], mode: u32, data: &[u8]) -> Tape {
        let mut block = [0u8; 512];
        block[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
        block[100..108].copy_from_slice(format!("{mode:07o}\0").as_bytes());
        block[124..136].copy_from_slice(format!("{:011o}\0", data.len()).as_bytes());
        block[136..148].copy_from_slice(format!("{:011o}\0", 1_000_000_000).as_bytes());
        block[156] = flag;
        block[157..157 + link.len().min(100)].copy_from_slice(&link[..link.len().min(100)]);
        block[257..265].copy_from_slice(b"ustar\x0000");
        self.0.extend(summed(block));
        self.0.extend(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, name: &str, data: &str) -> Tape {
        self.raw(b'0', name.as_bytes(), b"", 0o644, data.as_bytes())
    }

    fn dir(self, name: &str) -> Tape {
        self.raw(b'5', name.as_bytes(), b"", 0o755, b"")
    }

    fn link(self, name: &str, to: &str) -> Tape {
        self.raw(b'2', name.as_bytes(), to.as_bytes(), 0o777, b"")
    }

    fn hard_link(self, name: &str, to: &str) -> Tape {
        self.raw(b'1', name.as_bytes(), to.as_bytes(), 0o644, b"")
    }

    /// Headers of the entry that follows.
    fn pax(self, records: &[(&str, &[u8])]) -> Tape {
        let mut text = vec![];
        for (key, value) in records {
            let bare = key.len() + value.len() + 3;
            let length = (1..).map(|digits| bare + digits).find(|n| n.to_string().len() + bare == *n).expect("one");
            text.extend(format!("{length} {key}=").as_bytes());
            text.extend(*value);
            text.push(b'\n');
        }
        self.raw(b'x', b"pax", b"", 0o644, &text)
    }

    fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

/// With the checksum that it should have.
fn summed(mut block: [u8; 512]) -> [u8; 512] {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut to = GzEncoder::new(vec![], Compression::fast());
    to.write_all(bytes).expect("memory");
    to.finish().expect("memory")
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// An image as its files.
struct Built {
    /// As they are uncompressed.
    layers: Vec<Vec<u8>>,
    /// As they lie in a layout.
    blobs: Vec<Vec<u8>>,
    config: Value,
}

impl Built {
    /// Every second layer is compressed.
    fn new(layers: &[Vec<u8>]) -> Built {
        let pack = |(n, layer): (usize, &Vec<u8>)| if n % 2 == 1 { gzip(layer) } else { layer.clone() };
        let contents: Vec<String> = layers.iter().map(|layer| format!("sha256:{}", sha256(layer))).collect();
        let config = json!({
            "architecture": "amd64", "os": "linux",
            "config": { "Env": ["PATH=/bin", "EMPTY="], "WorkingDir": "/work/" },
            "rootfs": { "type": "layers", "diff_ids": contents },
        });
        Built { layers: layers.to_vec(), blobs: layers.iter().enumerate().map(pack).collect(), config }
    }

    fn config_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self.config).expect("JSON")
    }

    fn digest(&self) -> String {
        format!("sha256:{}", sha256(&self.config_bytes()))
    }

    fn manifest(&self) -> Vec<u8> {
        let layer = "application/vnd.oci.image.layer.v1.tar+gzip";
        let layers: Vec<Value> = self.blobs.iter().map(|blob| descriptor(layer, blob)).collect();
        let config = descriptor("application/vnd.oci.image.config.v1+json", &self.config_bytes());
        serde_json::to_vec(&json!({ "schemaVersion": 2, "config": config, "layers": layers })).expect("JSON")
    }

    /// All but the index.
    fn blob_files(&self) -> BTreeMap<String, Vec<u8>> {
        let all = self.blobs.iter().cloned().chain([self.config_bytes(), self.manifest()]);
        let mut files: BTreeMap<String, Vec<u8>> =
            all.map(|bytes| (format!("blobs/sha256/{}", sha256(&bytes)), bytes)).collect();
        files.insert("oci-layout".into(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec());
        files
    }

    fn layout(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = self.blob_files();
        files.insert("index.json".into(), index(&[descriptor(MANIFEST, &self.manifest())]));
        files
    }

    fn layout_archive(&self) -> Vec<u8> {
        archive(&self.layout())
    }

    fn docker_files(&self) -> BTreeMap<String, Vec<u8>> {
        let config = format!("{}.json", sha256(&self.config_bytes()));
        let names: Vec<String> = self.layers.iter().map(|layer| format!("{}/layer.tar", sha256(layer))).collect();
        let saved = json!([{ "Config": config, "RepoTags": ["cell:1"], "Layers": names }]);
        let mut files: BTreeMap<String, Vec<u8>> = names.into_iter().zip(self.layers.iter().cloned()).collect();
        files.insert(config, self.config_bytes());
        files.insert("manifest.json".into(), serde_json::to_vec(&saved).expect("JSON"));
        files
    }
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": format!("sha256:{}", sha256(bytes)), "size": bytes.len() })
}

fn index(manifests: &[Value]) -> Vec<u8> {
    serde_json::to_vec(&json!({ "schemaVersion": 2, "manifests": manifests })).expect("JSON")
}

fn archive(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let add = |tape: Tape, (name, bytes): (&String, &Vec<u8>)| tape.raw(b'0', name.as_bytes(), b"", 0o644, bytes);
    files.iter().fold(Tape::default(), add).end()
}

fn write_layout(dir: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, bytes).expect("a file");
    }
}

/// What the sentence says, and that it is one.
#[track_caller]
fn sentence(opened: Result<Image, ImageError>) -> String {
    let said = opened.expect_err("refused").to_string();
    assert!(!said.contains('\n') && !said.chars().any(char::is_control) && !said.ends_with('.'), "{said:?}");
    said
}
