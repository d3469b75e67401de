//! What a compiler leaves, on its way from its cell to the program's.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hotcell_sandbox::{self as sandbox, Scratch, Spec, Tree};

/// Where the program finds it.
pub(crate) const AT: &str = "/build";

/// A compiler that makes more is making something else.
const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 512 << 20;

/// From here on a kept file is shown to the cell instead of copied into it.
pub(crate) const LARGE: usize = 256 * 1024;

pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
    /// Where it is kept.
    pub(crate) kept: Option<PathBuf>,
}

pub(crate) type Product = Vec<File>;

/// Every regular file of the compiler's working directory that is not hidden.
pub(crate) fn take(scratch: &Scratch) -> io::Result<Product> {
    let too_much = || io::Error::other("the compiler left more than a program can be");
    let (found, unlisted) = scratch.files(MAX_FILES)?;
    let total: u64 = found.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
    if unlisted.more || total > MAX_BYTES {
        return Err(too_much());
    }
    let mut product = vec![];
    for file in found {
        if file.path.as_os_str().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let mut open = scratch.open(&file.path)?;
        let mode = if open.metadata()?.mode() & 0o111 != 0 { 0o755 } else { 0o644 };
        let mut bytes = Vec::with_capacity(file.bytes as usize);
        // A file that is sparse enough to be longer than it said would be a surprise, and is cut.
        open.by_ref().take(file.bytes).read_to_end(&mut bytes)?;
        product.push(File { path: file.path, mode, bytes, kept: None });
    }
    Ok(product)
}

/// Shows the product to the cell that runs it.
pub(crate) fn attach(product: &Product, spec: &mut Spec) {
    for file in product {
        let cell = Path::new(AT).join(&file.path);
        match &file.kept {
            // Bound by itself, so that it stays whatever happens to where it is kept.
            Some(host) if file.bytes.len() >= LARGE || file.bytes.is_empty() => {
                spec.trees.push(Tree::new(host.clone(), cell));
            }
            _ => spec.files.push(sandbox::File { path: cell, mode: file.mode, bytes: file.bytes.clone() }),
        }
    }
}

/// The class that a Java program begins with: one that has a `main`, at best the one the file is named after.
pub(crate) fn main_class(product: &Product, entry: &Path) -> OsString {
    let name = |file: &File| file.path.with_extension("").to_string_lossy().replace('/', ".");
    let has = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    let classes = || product.iter().filter(|f| f.path.extension().is_some_and(|e| e == "class"));
    let begins = |f: &&File| has(&f.bytes, b"\x04main") && has(&f.bytes, b"([Ljava/lang/String;)V");
    let stem = entry.file_stem().unwrap_or_default();
    let named = |f: &&File| f.path.file_stem() == Some(stem);
    let found =
        classes().filter(begins).find(named).or_else(|| classes().find(begins)).or_else(|| classes().find(named));
    found.map_or_else(|| stem.to_owned(), |file| name(file).into())
}
