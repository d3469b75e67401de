//! Layers that want out. Each is refused by name, or does what it does inside; beside each a harmless one that is like it.

use super::*;

/// Refused, with nothing made and nothing touched.
#[track_caller]
fn refused(name: &str, layers: &[Tape], says: &str) {
    let place = Place::new(&format!("hostile-{name}"));
    let layers: Vec<Vec<u8>> = layers.iter().map(|tape| tape.clone().end()).collect();
    place.write("image.tar", b"");
    let before = place.outside();
    let said = sentence(place.open_layers(&layers));
    assert!(said.contains(says), "{name}: {said}");
    assert_eq!(place.outside(), before, "{name}");
    assert_eq!(place.kept(), [""; 0], "{name}");
}

/// Unpacked to this, with nothing touched outside.
#[track_caller]
fn unpacked(name: &str, layers: &[Tape], expected: &[&str]) -> u64 {
    let place = Place::new(&format!("harmless-{name}"));
    let layers: Vec<Vec<u8>> = layers.iter().map(|tape| tape.clone().end()).collect();
    place.write("image.tar", b"");
    let before = place.outside();
    let image = place.open_layers(&layers).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(tree(&image.root), expected, "{name}");
    assert_eq!(place.outside(), before, "{name}");
    image.left_out
}

fn tape() -> Tape {
    Tape::default()
}

/// From `store/.sha256-DIGEST.new/root` to what is beside the store.
const OUT: &str = "../../../outside";

#[test]
fn names_that_lead_up() {
    for name in ["..", "../x", "a/../../x", "a/..", "/../x", "./../x", "../../../outside/secret", "a/../b"] {
        refused("up", &[tape().file(name, "x")], "it has `..` in it");
        refused("up-dir", &[tape().dir(name)], "it has `..` in it");
        refused("up-link", &[tape().link(name, "x")], "it has `..` in it");
        refused("up-pax", &[tape().pax(&[("path", name.as_bytes())]).file("x", "x")], "it has `..` in it");
        let long = format!("{name}\0");
        refused("up-gnu", &[tape().raw(b'L', b"l", b"", 0, long.as_bytes()).file("x", "x")], "it has `..` in it");
    }
    // A prefix of ustar's is part of the name.
    let mut block: [u8; 512] = tape().file("x", "").0.try_into().expect("a block");
    block[345..355].copy_from_slice(b"../outside");
    refused("up-prefix", &[Tape(summed(block).to_vec())], "`../outside/x`: it has `..` in it");
    let dots = ["dir 755 a", "file 644 ..x x", "file 644 a/... x", "file 644 x.. x"];
    unpacked("up", &[tape().file("..x", "x").file("a/...", "x").file("x..", "x")], &dots);
}

#[test]
fn absolute_names_begin_at_the_root_of_the_image() {
    let place = Place::new("absolute");
    let target = place.dir.join("outside/secret").display().to_string();
    let image = place.open_layers(&[tape().file(&target, "x").hard_link("/also", &target).end()]).expect("an image");
    assert_eq!(fs::read_to_string(place.dir.join("outside/secret")).expect("a file"), "untouched");
    assert_eq!(fs::read_to_string(image.root.join(&target[1..])).expect("a file"), "x");
    unpacked("absolute", &[tape().file("//a//./b/", "x")], &["dir 755 a", "file 644 a/b x"]);
}

#[test]
fn links_are_not_written_through() {
    for out in [OUT, "/", "/tmp", "/proc/self/cwd", "/proc/self/root", ".", "/etc", "loop"] {
        let link = tape().link("loop", "loop").link("l", out);
        let through = "it goes through a link";
        for (n, write) in [
            link.clone().file("l/secret", "x"),
            link.clone().file("l/new/deep", "x"),
            link.clone().dir("l/new"),
            link.clone().link("l/new", "x"),
            link.clone().file("x", "x").hard_link("l/new", "x"),
            link.clone().raw(b'6', b"l/secret", b"", 0, b""),
            link.clone().file("l/.wh.secret", ""),
            link.clone().file("l/.wh..wh..opq", ""),
            link.clone().hard_link("stolen", "l/secret"),
        ]
        .iter()
        .enumerate()
        {
            refused(&format!("through-{n}"), std::slice::from_ref(write), through);
        }
        // In a layer of its own, and by a chain of links.
        refused("through-layers", &[link.clone(), tape().file("l/secret", "x")], through);
        refused("through-chain", &[link.link("a", "l").file("a/secret", "x")], through);
    }
    let beside = tape().link("l", OUT).file("secret", "x").link("m/l", "/etc/passwd");
    let expected = ["dir 755 m", "file 644 secret x", "link l -> ../../../outside", "link m/l -> /etc/passwd"];
    unpacked("beside", &[beside], &expected);
}

/// What has the same name as a link takes its place.
#[test]
fn links_are_replaced_not_followed() {
    let link = tape().link("l", "../../../outside/secret");
    unpacked("over-file", &[link.clone().file("l", "x")], &["file 644 l x"]);
    unpacked("over-layers", &[link.clone(), tape().file("l", "x")], &["file 644 l x"]);
    unpacked("over-hard", &[link.clone().file("x", "x").hard_link("l", "x")], &["file 644 l x", "file 644 x x"]);
    unpacked("over-white", &[link.clone(), tape().file(".wh.l", "")], &[]);
    assert_eq!(unpacked("over-device", &[link, tape().raw(b'3', b"l", b"", 0, b"")], &[]), 1);
    // A directory becomes a link and a directory again; the mode is not that of what the link led to.
    let dance = tape().file("d/x", "1").link("d", OUT).raw(b'5', b"d/", b"", 0o777, b"").file("d/secret", "2");
    unpacked("dance", &[dance], &["dir 777 d", "file 644 d/secret 2"]);
    let layers = [tape().file("d/x", "1"), tape().link("d", OUT), tape().dir("d/").file("d/y", "2")];
    unpacked("dance-layers", &layers, &["dir 755 d", "file 644 d/y 2"]);
    refused("dance-out", &[tape().dir("d/").link("d", OUT).file("d/secret", "2")], "it goes through a link");
}

#[test]
fn hard_links_stay_inside() {
    for to in [&format!("{OUT}/secret"), "../about.json", "a/../../x", ".."] {
        refused("hard-up", &[tape().dir("a").hard_link("h", to)], "it has `..` in it");
    }
    refused("hard-none", &[tape().hard_link("h", "/etc/passwd")], "`h` is a link to `/etc/passwd`, which is not there");
    refused("hard-root", &[tape().hard_link("h", "/")], "a link to the root itself");
    refused("hard-dir", &[tape().dir("d").hard_link("h", "d")], "a hard link to a directory");
    refused("hard-self", &[tape().file("h", "x").hard_link("h", "h")], "which is not there");
    // Of a symbolic link it is the link that is had twice, and what follows does not write through either of them.
    let twice = tape().link("l", "../../../outside/secret").hard_link("h", "l");
    let both = ["link h -> ../../../outside/secret", "link l -> ../../../outside/secret"];
    unpacked("hard-link", std::slice::from_ref(&twice), &both);
    unpacked("hard-over", &[twice.file("h", "x")], &["file 644 h x", both[1]]);
    let good = tape().file("a/x", "x").hard_link("b/y", "a/x").hard_link("/z", "./a/x");
    let all = ["dir 755 a", "dir 755 b", "file 644 a/x x", "file 644 b/y x", "file 644 z x"];
    unpacked("hard", std::slice::from_ref(&good), &all);
    // A new file under one of the names is a new one.
    let changed = ["dir 755 a", "dir 755 b", "file 644 a/x x", "file 644 b/y new", "file 644 z x"];
    unpacked("hard-new", &[good, tape().file("b/y", "new")], &changed);
}

#[test]
fn whiteouts_with_tricks() {
    let below = tape().file("a/x", "x").file("b", "b");
    for name in [".wh.", ".wh..", ".wh...", "a/.wh..", "a/.wh...", "a/.wh..wh.", ".wh..wh.plnk", ".wh..wh..opqx"] {
        refused("white-name", &[below.clone(), tape().file(name, "")], "it is a whiteout of no name");
    }
    for name in [".wh.../x", ".wh.a/x", "a/.wh..wh..opq/x", ".wh../../x", ".wh./.wh.x"] {
        let says = if name.contains("/../") { "it has `..` in it" } else { "a whiteout is no directory" };
        refused("white-dir", &[below.clone(), tape().file(name, "")], says);
    }
    refused("white-up", &[below.clone(), tape().file("../.wh.outside", "")], "it has `..` in it");
    // Whatever it is an entry of, it is a whiteout.
    for flag in [b'0', b'1', b'2', b'3', b'5'] {
        let white = tape().raw(flag, b".wh.b", b"../../../outside/secret", 0, b"");
        unpacked("white-kind", &[below.clone(), white], &["dir 755 a", "file 644 a/x x"]);
    }
    unpacked("white-file", &[below.clone(), tape().file("a/.wh.x", "")], &["dir 755 a", "file 644 b b"]);
    unpacked("white-tree", &[below.clone(), tape().file("/./.wh.a", "")], &["file 644 b b"]);
    unpacked("white-opaque", &[below.clone(), tape().file("a/.wh..wh..opq", "")], &["dir 755 a", "file 644 b b"]);
    unpacked("white-all", &[below.clone(), tape().file(".wh..wh..opq", "")], &[]);
    let same = ["dir 755 a", "file 644 a/x x", "file 644 b b"];
    let nothing = tape().file(".wh.nothing", "").file("no/where/.wh.x", "").file("no/.wh..wh..opq", "");
    unpacked("white-nothing", &[below.clone(), nothing], &same);
    unpacked(
        "white-almost",
        &[below, tape().file(".whx", "").file("x.wh.b", "")],
        &[same[0], "file 644 .whx ", same[1], same[2], "file 644 x.wh.b "],
    );
}

#[test]
fn the_root_itself_stays() {
    for name in ["", ".", "/", "./", "//."] {
        for flag in [b'0', b'1', b'2', b'3'] {
            refused("root", &[tape().raw(flag, name.as_bytes(), b"x", 0o644, b"")], "would replace the root itself");
        }
    }
    let place = Place::new("root-mode");
    let image =
        place.open_layers(&[tape().raw(b'5', b"./", b"", 0o4000, b"").file("./x", "x").end()]).expect("an image");
    assert_eq!(fs::metadata(&image.root).expect("metadata").mode() & 0o7777, 0o755);
}

#[test]
fn what_a_root_does_not_have() {
    let devices = tape().raw(b'3', b"dev/null", b"", 0o666, b"").raw(b'4', b"dev/sda", b"", 0o666, b"").raw(
        b'6',
        b"dev/fifo",
        b"",
        0o666,
        b"",
    );
    assert_eq!(unpacked("devices", &[devices.file("dev/x", "x")], &["dir 755 dev", "file 644 dev/x x"]), 3);
    let bits = tape()
        .raw(b'0', b"su", b"", 0o6755, b"x")
        .raw(b'5', b"tmp", b"", 0o7777, b"")
        .raw(b'0', b"none", b"", 0, b"x")
        .raw(b'5', b"shut", b"", 0, b"")
        .file("shut/x", "x");
    let expected = ["dir 1777 tmp", "dir 700 shut", "file 400 none x", "file 644 shut/x x", "file 755 su x"];
    unpacked("bits", &[bits], &expected);
    // Attributes and owners that a header names are not there.
    let place = Place::new("attributes");
    let records: [(&str, &[u8]); 4] = [
        ("SCHILY.xattr.user.x", b"y"),
        ("SCHILY.xattr.security.capability", b"\x01\0\0\x02\0\x20\0\0"),
        ("uid", b"12345"),
        ("uname", b"nobody"),
    ];
    let image = place.open_layers(&[tape().pax(&records).file("x", "x").end()]).expect("an image");
    let (mut list, file) = ([0u8; 256], image.root.join("x"));
    assert_eq!(rustix::fs::listxattr(&file, &mut list).expect("a list"), 0);
    assert_eq!(fs::metadata(&file).expect("metadata").uid(), rustix::process::geteuid().as_raw());
}

#[test]
fn names_that_are_too_much() {
    let long = |n: usize| "x".repeat(n);
    let pax = |name: &str| tape().pax(&[("path", name.as_bytes())]).file("short", "x");
    refused("long-name", &[pax(&long(256))], "has too long a name");
    refused("deep", &[pax(&"d/".repeat(129))], "lies too deep");
    refused("long-path", &[pax(&format!("{}/", long(250)).repeat(17))], "lies too deep");
    refused("zero", &[pax("a\0b")], "has a zero byte in its name");
    let escape = tape().file("a\u{1b}]0;x\u{7}/..", "x");
    refused("terminal", &[escape], "`a\\u{1b}]0;x\\u{7}/..`");
    unpacked("long-name", &[pax(&long(255))], &[&format!("file 644 {} x", long(255))]);
    unpacked("not-utf8", &[tape().raw(b'0', b"\xff", b"", 0o644, b"x")], &["file 644 \u{fffd} x"]);
    let place = Place::new("deep");
    let name = format!("{}x", "d/".repeat(127));
    let image = place.open_layers(&[pax(&name).end(), tape().file(".wh.d", "").end()]).expect("an image");
    assert_eq!(tree(&image.root), [""; 0]);
}

#[test]
fn headers_that_lie() {
    refused("kind", &[tape().raw(b'?', b"x", b"", 0, b"")], "`x`, which is of an unknown kind");
    refused("sparse", &[tape().raw(b'S', b"x", b"", 0, b"")], "an archive with sparse files");
    let sparse: [(&str, &[u8]); 2] = [("GNU.sparse.major", b"1"), ("GNU.sparse.name", b"../x")];
    refused("sparse-pax", &[tape().pax(&sparse).file("x", "x")], "an archive with sparse files");
    for text in ["", "8 path=x\n", "99999999999999999999 path=x\n", "1000 path=x\n", "8 pathx\n\n", "-1 path=x\n", "x"]
    {
        let layer = tape().raw(b'x', b"p", b"", 0, text.as_bytes()).file("y", "y");
        if text.is_empty() {
            unpacked("pax-empty", &[layer], &["file 644 y y"]);
        } else {
            refused("pax", &[layer], "a PAX header");
        }
    }
    for size in ["-1", "99999999999999999999", "x", "18446744073709551615"] {
        refused("pax-size", &[tape().pax(&[("size", size.as_bytes())]).file("x", "x")], "a PAX header whose `size`");
    }
    refused("pax-far", &[tape().pax(&[("size", b"9223372036854775807")]).file("x", "x")], "ends in the middle");
    refused("link-empty", &[tape().link("l", "")], "is a link to no path");
    refused("link-zero", &[tape().pax(&[("linkpath", b"a\0b")]).link("l", "x")], "is a link to no path");
    refused("link-long", &[tape().pax(&[("linkpath", &[b'x'; 4096])]).link("l", "x")], "is a link to no path");
    refused("below-file", &[tape().file("f", "x").file("f/x", "x")], "lies below what is no directory");
    let mut block: [u8; 512] = tape().file("x", "").0.try_into().expect("a block");
    block[0] = b'y';
    refused("sum", &[Tape(block.to_vec())], "a wrong checksum");
    for (at, bytes, says) in [
        (124, &b"99999999999\0"[..], "a size that is no number"),
        (124, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "a size below zero"),
        (124, b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "a size that is no number"),
        (124, b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", "ends in the middle"),
        (100, b"xxxxxxx\0", "a mode that is no number"),
    ] {
        block[at..at + bytes.len()].copy_from_slice(bytes);
        refused("number", &[Tape(summed(block).to_vec())], says);
        block = tape().file("x", "").0.try_into().expect("a block");
    }
    // Times at both ends of what can be written.
    for time in ["9223372036854775807", "-9223372036854775808", "0.5"] {
        unpacked("time", &[tape().pax(&[("mtime", time.as_bytes())]).file("x", "x")], &["file 644 x x"]);
    }
}
