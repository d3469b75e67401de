//! Damage everywhere: an archive with one wrong byte is refused, or is the same image; a layer with one goes nowhere.

use super::*;
use crate::image::root::Root;
use crate::image::tar::Tar;
use crate::image::unpack::unpack;

fn layers() -> Vec<Vec<u8>> {
    let lower = Tape::default().dir("d/").file("d/x", "content").link("l", "../../../outside").hard_link("h", "d/x");
    let long = "n".repeat(150);
    let upper = Tape::default()
        .file("d/.wh.x", "")
        .pax(&[("path", long.as_bytes()), ("mtime", b"5")])
        .file("short", "x")
        .raw(b'L', b"././@LongLink", b"", 0, b"d/other\0")
        .raw(b'3', b"null", b"", 0, b"")
        .file("d/.wh..wh..opq", "");
    vec![lower.end(), upper.end()]
}

/// Another bit of each byte in turn.
fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut other = bytes.to_vec();
    other[at] ^= 1 << (at % 8);
    other
}

#[test]
fn archives() {
    let built = Built::new(&layers());
    for (name, whole) in [("oci", built.layout_archive()), ("docker", archive(&built.docker_files()))] {
        let place = Place::new(&format!("fuzz-{name}"));
        let path = place.write("image.tar", &whole);
        let expected = tree(&place.open(&path).expect("an image").root);
        let (before, mut refused) = (place.outside(), 0);
        for at in (0..whole.len()).step_by(31) {
            fs::write(&path, flipped(&whole, at)).expect("a file");
            fs::remove_dir_all(place.store()).expect("removed");
            fs::create_dir(place.store()).expect("a directory");
            fs::set_permissions(place.store(), fs::Permissions::from_mode(0o700)).expect("permissions");
            match place.open(&path) {
                Ok(image) => {
                    assert_eq!((tree(&image.root), image.digest), (expected.clone(), built.digest()), "{name} {at}");
                }
                Err(e) => {
                    refused += 1;
                    sentence(Err(e));
                    assert_eq!(place.kept(), [""; 0], "{name} {at}");
                }
            }
        }
        assert!(refused > 100, "{refused}");
        assert_eq!(place.outside(), before);
    }
}

/// Without digests that would notice: with a checksum that is right again, so that the header is believed.
#[test]
fn headers() {
    let place = Place::new("fuzz-headers");
    let before = place.outside();
    let root = place.dir.join("store/new/root");
    for layer in layers() {
        for at in (0..layer.len()).step_by(5) {
            let mut other = flipped(&layer, at);
            let block = at / 512 * 512..(at / 512 + 1) * 512;
            let right = summed(other[block.clone()].try_into().expect("a block"));
            other[block].copy_from_slice(&right);
            fs::create_dir_all(&root).expect("a directory");
            let to = Root::open(&root).expect("a directory");
            let mut tar = Tar::new(std::io::BufReader::new(other.as_slice()));
            if let Err(e) = unpack(&mut tar, &to, &mut 1000) {
                sentence(Err(e));
            }
            look(&root, &mut |path, meta| {
                assert!(meta.is_dir() || meta.is_file() || meta.is_symlink(), "{at}: {}", path.display());
            });
            fs::remove_dir_all(&root).expect("removed");
        }
    }
    fs::remove_dir_all(place.store()).expect("removed");
    assert_eq!(place.outside(), before);
}
