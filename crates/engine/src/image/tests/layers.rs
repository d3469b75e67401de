//! What layers become, one over the other.

use super::*;
use crate::image::layer::Room;
use crate::image::open_within;

fn tape() -> Tape {
    Tape::default()
}

#[track_caller]
fn becomes(name: &str, layers: &[Tape], expected: &[&str]) {
    let place = Place::new(&format!("layers-{name}"));
    let layers: Vec<Vec<u8>> = layers.iter().map(|tape| tape.clone().end()).collect();
    let image = place.open_layers(&layers).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(tree(&image.root), expected, "{name}");
}

#[test]
fn the_upper_hides_the_lower() {
    let lower = tape().dir("d/").file("d/x", "1").file("d/y", "1").file("f", "1");
    becomes("none", &[], &[]);
    becomes(
        "over",
        &[lower.clone(), tape().file("d/x", "2")],
        &["dir 755 d", "file 644 d/x 2", "file 644 d/y 1", "file 644 f 1"],
    );
    becomes("file-over-dir", &[lower.clone(), tape().file("d", "2")], &["file 644 d 2", "file 644 f 1"]);
    becomes(
        "dir-entry-over-file",
        &[lower.clone(), tape().dir("f").file("f/x", "2")],
        &["dir 755 d", "dir 755 f", "file 644 d/x 1", "file 644 d/y 1", "file 644 f/x 2"],
    );
    becomes(
        "mode",
        &[lower.clone(), tape().raw(b'5', b"d", b"", 0o711, b"")],
        &["dir 711 d", "file 644 d/x 1", "file 644 d/y 1", "file 644 f 1"],
    );
    becomes("twice", &[tape().file("x", "1").file("x", "22").file("./x", "3")], &["file 644 x 3"]);
}

/// A whiteout is for the layers below, wherever in its own layer it stands.
#[test]
fn whiteouts_spare_their_own_layer() {
    let lower = tape().file("d/x", "1").file("d/sub/old", "1").file("f", "1");
    let white = [".wh..wh..opq", "d/.wh..wh..opq", ".wh.d"];
    for name in white {
        let upper = tape().file("d/sub/new", "2").file("d/x", "2");
        let before = tape().file(name, "").file("d/sub/new", "2").file("d/x", "2");
        let mut expected = vec!["dir 755 d", "dir 755 d/sub", "file 644 d/sub/new 2", "file 644 d/x 2"];
        if name != ".wh..wh..opq" {
            expected.push("file 644 f 1");
        }
        becomes("white-after", &[lower.clone(), upper.file(name, "")], &expected);
        becomes("white-before", &[lower.clone(), before], &expected);
    }
    becomes(
        "white-then-again",
        &[lower.clone(), tape().file(".wh.d", ""), tape().file("d/z", "3")],
        &["dir 755 d", "file 644 d/z 3", "file 644 f 1"],
    );
    becomes("white-link", &[lower, tape().file(".wh.d", "").link("d", "f")], &["file 644 f 1", "link d -> f"]);
}

#[test]
fn long_names_in_each_way() {
    let name = format!("{}/{}", "d".repeat(120), "f".repeat(120));
    let dir = format!("dir 755 {}", "d".repeat(120));
    let expected = [dir.clone(), format!("file 644 {name} x"), format!("link l -> {name}")];
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    let gnu = |name: &str| format!("{name}\0").into_bytes();
    let pax = tape().pax(&[("path", name.as_bytes())]).file("short", "x").pax(&[("linkpath", name.as_bytes())]);
    becomes("pax", &[pax.link("l", "short")], &expected);
    let long = tape().raw(b'L', b"././@LongLink", b"", 0, &gnu(&name)).file("short", "x");
    let long = long.raw(b'K', b"././@LongLink", b"", 0, &gnu(&name)).link("l", "short");
    becomes("gnu", &[long], &expected);
    let mut block: [u8; 512] = tape().file("f", "").0.try_into().expect("a block");
    block[345..347].copy_from_slice(b"d/");
    becomes("prefix", &[Tape(summed(block).to_vec())], &["dir 755 d", "file 644 d/f "]);
    // GNU's own format has no prefix: those bytes are something else.
    block[257..265].copy_from_slice(b"ustar  \0");
    becomes("no-prefix", &[Tape(summed(block).to_vec())], &["file 644 f "]);
    // What is said of all entries that follow is left aside, as builders and engines do.
    let global = tape().raw(b'g', b"g", b"", 0, b"17 path=elsewhere\n").file("x", "x");
    becomes("global", &[global], &["file 644 x x"]);
    becomes("old-directory", &[tape().raw(0, b"d/", b"", 0o755, b"")], &["dir 755 d"]);
}

#[test]
fn times_are_kept() {
    let place = Place::new("times");
    let layer = tape().file("x", "x").pax(&[("mtime", b"1234567890.75")]).file("y", "y").end();
    let image = place.open_layers(&[layer]).expect("an image");
    let time = |name: &str| fs::metadata(image.root.join(name)).expect("metadata").mtime();
    assert_eq!((time("x"), time("y")), (1_000_000_000, 1_234_567_890));
}

/// Several streams of gzip in one file are one.
#[test]
fn gzip_in_pieces() {
    let layer = tape().file("x", "x").end();
    let mut built = Built::new(std::slice::from_ref(&layer));
    built.blobs[0] = [gzip(&layer[..600]), gzip(&layer[600..])].concat();
    let place = Place::new("pieces");
    let image = place.open(&place.write("image.tar", &built.layout_archive())).expect("an image");
    assert_eq!(tree(&image.root), ["file 644 x x"]);
    // What follows is part of the blob, and no gzip.
    built.blobs[0] = [gzip(&layer), b"rubbish".to_vec()].concat();
    let place = Place::new("rubbish");
    assert!(sentence(place.open(&place.write("image.tar", &built.layout_archive()))).contains("damaged"));
}

#[test]
fn a_layer_that_is_too_large() {
    let zeros = "\0".repeat(1 << 20);
    let layers = [tape().file("a", "x").end(), tape().file("zeros", &zeros).file("b", "x").end()];
    let built = Built::new(&layers);
    let place = Place::new("large");
    let path = place.write("image.tar", &built.layout_archive());
    assert!(fs::metadata(&path).expect("metadata").len() < 20_000, "compressed");
    let before = place.outside();
    let all: u64 = layers.iter().map(|layer| layer.len() as u64).sum();
    let enough = Room { bytes: all, entries: 3 };
    let bytes = open_within(&path, &place.store(), Room { bytes: all - 1, ..enough });
    assert!(sentence(bytes).contains("too large: its layers have more than"));
    let entries = open_within(&path, &place.store(), Room { entries: 2, ..enough });
    assert!(sentence(entries).contains("too large: it has more than"));
    assert_eq!((place.outside(), place.kept()), (before, vec![]));
    open_within(&path, &place.store(), enough).expect("an image");
    // Directories that nobody named are counted as well.
    let deep = Built::new(&[tape().file("a/b/c/d", "x").end()]);
    let path = place.write("deep.tar", &deep.layout_archive());
    let few = open_within(&path, &place.store(), Room { bytes: 1 << 20, entries: 3 });
    assert!(sentence(few).contains("too large"));
    open_within(&path, &place.store(), Room { bytes: 1 << 20, entries: 4 }).expect("an image");
}
