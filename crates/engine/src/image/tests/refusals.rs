//! What is no image, not for this host, or not what it says.

use super::*;

fn built() -> Built {
    Built::new(&[Tape::default().file("bin", "x").end(), Tape::default().file("etc", "y").end()])
}

/// Opens an archive and expects a refusal that leaves nothing.
#[track_caller]
fn refused(bytes: &[u8], says: &str) {
    let name = format!("refused-{}", sha256(&[bytes, says.as_bytes()].concat()));
    let place = Place::new(&name);
    let path = place.write("image.tar", bytes);
    let before = place.outside();
    let said = sentence(place.open(&path));
    assert!(said.contains(says), "{said}");
    assert_eq!((place.outside(), place.kept()), (before, vec![]));
}

#[test]
fn what_is_no_image() {
    let place = Place::new("none");
    assert!(sentence(place.open(&place.dir.join("nothing"))).starts_with("there is no image at"));
    let fifo = place.dir.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).expect("a FIFO");
    assert!(sentence(place.open(&fifo)).contains("neither a directory nor a file"));
    assert!(sentence(place.open(Path::new("/dev/null"))).contains("neither a directory nor a file"));
    assert!(sentence(place.open(&place.dir.join("outside"))).contains("is not an image"));
    refused(b"", "no tar archive");
    refused(&[0; 10240], "no tar archive");
    refused(&[b'x'; 10240], "no tar archive");
    refused(&Tape::default().file("bin/sh", "x").end(), "neither `index.json` nor `manifest.json`");
    refused(&gzip(&built().layout_archive()), "an archive in gzip cannot be read here: decompress it first");
    refused(b"\x28\xb5\x2f\xfd........", "an archive in zstd");
}

#[test]
fn a_layout_with_links_or_fifos_in_it() {
    let place = Place::new("layout-links");
    let layout = place.dir.join("layout");
    let built = built();
    write_layout(&layout, &built.layout());
    let blob = layout.join(format!("blobs/sha256/{}", sha256(&built.blobs[0])));
    fs::rename(&blob, place.dir.join("elsewhere")).expect("renamed");
    std::os::unix::fs::symlink(place.dir.join("elsewhere"), &blob).expect("a link");
    assert!(sentence(place.open(&layout)).contains("it is a link"));
    fs::remove_file(&blob).expect("removed");
    rustix::fs::mkfifoat(rustix::fs::CWD, &blob, rustix::fs::Mode::RWXU).expect("a FIFO");
    assert!(sentence(place.open(&layout)).contains("it is not a file"));
    fs::remove_file(&blob).expect("removed");
    assert!(sentence(place.open(&layout)).contains("is not in it"));
    assert_eq!(place.kept(), [""; 0]);
    fs::rename(place.dir.join("elsewhere"), &blob).expect("renamed");
    place.open(&layout).expect("an image");
}

#[test]
fn digests_that_differ() {
    let built = built();
    // Which file is exchanged for another of the same name, and what is said of it.
    for (bytes, says) in [
        (built.manifest(), "the manifest is not what the image says"),
        (built.config_bytes(), "the configuration is not what the image says"),
        (built.blobs[0].clone(), "layer 1 is not what the image says"),
        (built.blobs[1].clone(), "layer 2 is not what the image says"),
    ] {
        let mut files = built.layout();
        let name = format!("blobs/sha256/{}", sha256(&bytes));
        let mut other = bytes;
        let middle = other.len() / 2;
        other[middle] ^= 1;
        files.insert(name, other);
        refused(&archive(&files), says);
    }
    // Layers that are what the manifest says, but not what the configuration does.
    let mut swapped = Built::new(&built.layers);
    swapped.config["rootfs"]["diff_ids"].as_array_mut().expect("a list").swap(0, 1);
    refused(&swapped.layout_archive(), "the content of layer 1 is not what the image says");
    refused(&archive(&swapped.docker_files()), "the content of layer 1 is not what the image says");
    let mut files = built.docker_files();
    let config = format!("{}.json", sha256(&built.config_bytes()));
    let mut other = Built::new(&built.layers);
    other.config["author"] = "somebody else".into();
    files.insert(config, other.config_bytes());
    refused(&archive(&files), "the configuration is not what the image says");
}

#[test]
fn other_hosts_and_other_things() {
    let mut other = built();
    other.config["architecture"] = "arm64".into();
    refused(&other.layout_archive(), "the image is for `linux/arm64`, and this host runs linux/amd64");
    refused(&archive(&other.docker_files()), "the image is for `linux/arm64`");
    let mut fewer = built();
    fewer.config["rootfs"]["diff_ids"] = json!([]);
    refused(&fewer.layout_archive(), "it has 2 layers, and its configuration 0");
    for (what, value, says) in [
        ("Env", json!(["A=1", "=2"]), "`=2` is no variable"),
        ("Env", json!(["A=\0"]), "`A=\\0` is no variable"),
        ("Env", json!(7), "the configuration cannot be read"),
    ] {
        let mut bad = built();
        bad.config["config"][what] = value;
        refused(&bad.layout_archive(), says);
    }
    let mut zstd = built();
    zstd.blobs[0] = b"\x28\xb5\x2f\xfd........".to_vec();
    refused(&zstd.layout_archive(), "a layer in zstd cannot be read here");
    let mut files = built().layout();
    let kind = descriptor("application/vnd.oci.image.manifest.v1+json", b"{}");
    files.insert("index.json".into(), index(&[kind]));
    refused(&archive(&files), "is not in it");
    let mut sha512 = descriptor(MANIFEST, b"");
    sha512["digest"] = json!("sha512:../../../../etc/passwd");
    files.insert("index.json".into(), index(&[sha512]));
    refused(&archive(&files), "is no digest of SHA-256");
    files.insert("index.json".into(), index(&[]));
    refused(&archive(&files), "the index names no image");
    files.insert("index.json".into(), vec![b'['; 100_000]);
    refused(&archive(&files), "`index.json` cannot be read");
}

#[test]
fn an_archive_that_ends_too_early() {
    let whole = built().layout_archive();
    for end in [600, 1024, whole.len() / 2, whole.len() - 1536] {
        let place = Place::new(&format!("cut-{end}"));
        assert!(place.open(&place.write("image.tar", &whole[..end])).is_err(), "{end}");
        assert_eq!(place.kept(), [""; 0]);
    }
}

/// The two blocks that mark the end are not missed.
#[test]
fn an_archive_without_an_end() {
    let (place, built) = (Place::new("no-end"), built());
    let whole = built.layout_archive();
    place.open(&place.write("image.tar", &whole[..whole.len() - 1024])).expect("an image");
}
