//! Every form in which an image may come, and which one of several is meant.

use super::*;

fn small() -> Built {
    Built::new(&[
        Tape::default().dir("bin/").file("bin/tool", "one").link("sh", "bin/tool").end(),
        Tape::default().file("etc/conf", "two").end(),
    ])
}

const SMALL: [&str; 5] =
    ["dir 755 bin", "dir 755 etc", "file 644 bin/tool one", "file 644 etc/conf two", "link sh -> bin/tool"];

/// Opens an archive of these files in a place of its own.
fn open_files(name: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<Image, ImageError> {
    let place = Place::new(name);
    let opened = place.open(&place.write("image.tar", &archive(files)));
    if let Ok(image) = &opened {
        assert_eq!(tree(&image.root), SMALL);
    }
    opened
}

#[test]
fn an_image_is_the_same_in_every_form() {
    let (place, built) = (Place::new("forms"), small());
    write_layout(&place.dir.join("layout"), &built.layout());
    let docker = place.write("docker.tar", &archive(&built.docker_files()));
    let oci = place.write("oci.tar", &built.layout_archive());
    for (n, path) in [place.dir.join("layout"), docker, oci].iter().enumerate() {
        // Each alone, so that each is unpacked; then all in one store.
        for store in [format!("store-{n}"), "store".into()] {
            let image = open(path, &place.dir.join(&store)).expect("an image");
            assert_eq!(image.digest, built.digest());
            assert_eq!(image.root, place.dir.join(store).join(image.digest.replace(':', "-")).join("root"));
            assert_eq!(tree(&image.root), SMALL);
            assert_eq!(image.env, [("PATH".into(), "/bin".into()), ("EMPTY".into(), "".into())]);
            assert_eq!(image.left_out, 0);
        }
    }
    assert_eq!(place.kept().len(), 1);
}

#[test]
fn an_unpacked_root_is_used_where_it_lies() {
    let place = Place::new("unpacked");
    let root = place.dir.join("root");
    fs::create_dir_all(root.join("usr")).expect("a directory");
    std::os::unix::fs::symlink(&root, place.dir.join("by-link")).expect("a link");
    for path in [&root, &place.dir.join("by-link")] {
        let image = place.open(path).expect("a root");
        assert_eq!((image.root, image.digest), (root.canonicalize().expect("a path"), String::new()));
    }
    assert!(!place.store().exists());
    fs::rename(root.join("usr"), root.join("other")).expect("renamed");
    assert!(sentence(place.open(&root)).contains("is not an image: a layout has"));
    assert!(sentence(place.open(Path::new("/"))).contains("the root of this host"));
}

#[test]
fn of_several_platforms_this_one_is_chosen() {
    let built = small();
    let mut ours = descriptor(MANIFEST, &built.manifest());
    let mut other = descriptor(MANIFEST, b"another");
    other["platform"] = json!({ "os": "linux", "architecture": "arm64", "variant": "v8" });
    let mut later = descriptor(MANIFEST, b"later");
    later["platform"] = json!({ "os": "linux", "architecture": "amd64", "variant": "v3" });
    let mut proof = descriptor(MANIFEST, b"attestation");
    proof["platform"] = json!({ "os": "unknown", "architecture": "unknown" });
    let mut files = built.blob_files();
    files.insert("index.json".into(), index(&[other.clone(), later.clone(), proof.clone()]));
    let said = sentence(open_files("platform-none", &files));
    assert!(said.contains("for `linux/arm64/v8`, `linux/amd64/v3`, `unknown/unknown`, and this host runs linux/amd64"));
    ours["platform"] = json!({ "os": "linux", "architecture": "amd64" });
    let all = index(&[other, later, proof, ours.clone()]);
    files.insert("index.json".into(), all.clone());
    assert_eq!(open_files("platforms", &files).expect("an image").digest, built.digest());
    // The same one below: an index of images whose only image is an index of platforms.
    files.insert(format!("blobs/sha256/{}", sha256(&all)), all.clone());
    let nested = index(&[descriptor(INDEX, &all)]);
    files.insert("index.json".into(), nested.clone());
    assert_eq!(open_files("nested", &files).expect("an image").digest, built.digest());
    let vague = index(&[descriptor(MANIFEST, b"who knows"), ours]);
    files.insert(format!("blobs/sha256/{}", sha256(&vague)), vague.clone());
    files.insert("index.json".into(), index(&[descriptor(INDEX, &vague)]));
    assert_eq!(open_files("vague", &files).expect("an image").digest, built.digest());
    files.insert(format!("blobs/sha256/{}", sha256(&nested)), nested.clone());
    files.insert("index.json".into(), index(&[descriptor(INDEX, &nested)]));
    assert!(sentence(open_files("nested-twice", &files)).contains("an index is in an index"));
}

#[test]
fn several_images_are_named_and_refused() {
    let (built, other) = (small(), Built::new(&[Tape::default().file("bin", "x").end()]));
    let tagged = |built: &Built, tag: &str| {
        let mut one = descriptor(MANIFEST, &built.manifest());
        one["annotations"] = json!({ "org.opencontainers.image.ref.name": tag });
        one
    };
    let mut files = built.blob_files();
    files.extend(other.blob_files());
    files.insert("index.json".into(), index(&[tagged(&built, "a:1"), tagged(&other, "b:\u{1b}[2J")]));
    assert!(sentence(open_files("several", &files)).contains("several images (`a:1`, `b:\\u{1b}[2J`)"));
    // One image under two names is one.
    files.insert("index.json".into(), index(&[tagged(&built, "a:1"), tagged(&built, "a:latest")]));
    open_files("two-names", &files).expect("an image");

    let mut files = built.docker_files();
    let mut saved: Value = serde_json::from_slice(&files["manifest.json"]).expect("JSON");
    let mut second = saved[0].clone();
    saved.as_array_mut().expect("a list").push(second.clone());
    files.insert("manifest.json".into(), saved.to_string().into_bytes());
    open_files("docker-twice", &files).expect("an image");
    second["Config"] = "other.json".into();
    second["RepoTags"] = json!(["b:1"]);
    saved.as_array_mut().expect("a list").push(second);
    files.insert("manifest.json".into(), saved.to_string().into_bytes());
    assert!(sentence(open_files("docker-several", &files)).contains("several images (`cell:1`, `cell:1`, `b:1`)"));
}

/// Docker wrote a layer that occurs twice as a link to the first.
#[test]
fn a_link_in_an_archive_of_docker_is_one_in_the_archive() {
    let layer = Tape::default().dir("bin/").file("bin/tool", "one").end();
    let built = Built::new(&[layer.clone(), layer.clone()]);
    for (name, to) in [("good", "../first/layer.tar"), ("out", "../../outside/secret"), ("absolute", "/etc/passwd")] {
        let place = Place::new(&format!("archive-link-{name}"));
        let saved = json!([{ "Config": "config.json", "Layers": ["first/layer.tar", "./second/layer.tar"] }]);
        let tape = Tape::default()
            .dir("first/")
            .raw(b'0', b"first/layer.tar", b"", 0o644, &layer)
            .link("second/layer.tar", to)
            .raw(b'0', b"config.json", b"", 0o644, &built.config_bytes())
            .file("manifest.json", &saved.to_string());
        let opened = place.open(&place.write("image.tar", &tape.end()));
        if name == "good" {
            assert_eq!(tree(&opened.expect("an image").root), ["dir 755 bin", "file 644 bin/tool one"]);
        } else {
            assert!(sentence(opened).contains("`./second/layer.tar` is not in it"));
        }
    }
}
