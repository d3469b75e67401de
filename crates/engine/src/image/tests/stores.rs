//! The store: whole or not there, for however many at once.

use std::sync::Barrier;

use super::*;
use crate::image::store::{About, Store};

fn layers() -> Vec<Vec<u8>> {
    let many = (0..200).fold(Tape::default(), |tape, n| tape.file(&format!("d{}/f{n}", n % 7), "content"));
    vec![many.end(), Tape::default().file(".wh.d0", "").file("bin", "x").end()]
}

#[test]
fn eight_at_once_get_one() {
    let (place, built) = (Place::new("eight"), Built::new(&layers()));
    let paths =
        [place.write("oci.tar", &built.layout_archive()), place.write("docker.tar", &archive(&built.docker_files()))];
    let together = Barrier::new(8);
    let opened: Vec<Image> = std::thread::scope(|scope| {
        let (place, together) = (&place, &together);
        let open = |n: usize| {
            let path = &paths[n % 2];
            scope.spawn(move || {
                together.wait();
                let image = place.open(path).expect("an image");
                // It is whole from the first moment.
                (tree(&image.root).len(), image)
            })
        };
        let all: Vec<_> = (0..8).map(open).collect();
        all.into_iter()
            .map(|one| one.join().expect("no panic"))
            .inspect(|(n, _)| assert_eq!(*n, 178))
            .map(|(_, i)| i)
            .collect()
    });
    assert!(opened.iter().all(|image| *image == opened[0]));
    assert_eq!(place.kept(), [built.digest().replace(':', "-")]);
}

#[test]
fn what_is_there_is_not_read_again() {
    let (place, built) = (Place::new("again"), Built::new(&layers()));
    let first = place.open(&place.write("image.tar", &built.layout_archive())).expect("an image");
    // The same documents, and layers that are no layers: nobody looks at them.
    let mut files = built.layout();
    for blob in &built.blobs {
        files.insert(format!("blobs/sha256/{}", sha256(blob)), b"rubbish".to_vec());
    }
    let without = place.write("without.tar", &archive(&files));
    let inode = |image: &Image| fs::metadata(&image.root).expect("metadata").ino();
    let again = place.open(&without).expect("an image");
    assert_eq!((&again, inode(&again)), (&first, inode(&first)));
    let elsewhere = open(&without, &place.dir.join("elsewhere"));
    assert!(sentence(elsewhere).contains("layer 1 is not what the image says"));
    // Nor is the configuration believed by its name.
    let mut files = built.layout();
    let name = format!("blobs/sha256/{}", sha256(&built.config_bytes()));
    let mut other = Built::new(&layers());
    other.config["config"]["Env"] = json!(["LD_PRELOAD=/evil"]);
    files.insert(name, other.config_bytes());
    assert!(sentence(place.open(&place.write("other.tar", &archive(&files)))).contains("the configuration is not"));
}

#[test]
fn devices_are_counted_the_second_time_as_well() {
    let place = Place::new("counted");
    let layer = Tape::default().raw(b'3', b"null", b"", 0, b"").file("x", "x").end();
    for _ in 0..2 {
        assert_eq!(place.open_layers(std::slice::from_ref(&layer)).expect("an image").left_out, 1);
    }
}

#[test]
fn what_somebody_left_half_made_goes() {
    let (place, built) = (Place::new("half"), Built::new(&layers()));
    let path = place.write("image.tar", &built.layout_archive());
    let name = built.digest().replace(':', "-");
    for half in [format!(".{name}.new"), format!(".sha256-{}.new", "0".repeat(64))] {
        fs::create_dir_all(place.store().join(&half).join("root/d0/deep")).expect("a directory");
        fs::write(place.store().join(&half).join("root/evil"), "x").expect("a file");
    }
    fs::set_permissions(place.store(), fs::Permissions::from_mode(0o700)).expect("permissions");
    fs::write(place.store().join(format!(".sha256-{}.lock", "1".repeat(64))), "").expect("a file");
    // One without all of its parts is none.
    fs::create_dir_all(place.store().join(&name).join("root/half")).expect("a directory");
    let image = place.open(&path).expect("an image");
    assert_eq!(tree(&image.root).len(), 178);
    assert_eq!(place.kept(), [name]);
}

/// What somebody is making is left alone, and not taken before it is whole.
#[test]
fn what_somebody_is_making_stays() {
    let (place, built) = (Place::new("making"), Built::new(&layers()));
    let path = place.write("image.tar", &built.layout_archive());
    let store = Store::open(&place.store()).expect("a store");
    let (theirs, ours) = ("a".repeat(64), built.digest().replace(':', "-"));
    let made = store.get_or_make(&theirs, |root| {
        let fd = root.directory(Path::new("")).expect("a directory");
        rustix::fs::mkdirat(&fd, "begun", rustix::fs::Mode::RWXU).expect("a directory");
        assert!(store.get(&theirs).is_none());
        place.open(&path).expect("an image");
        assert_eq!(place.kept(), [format!(".sha256-{theirs}.lock"), format!(".sha256-{theirs}.new"), ours.clone()]);
        Ok(About { left_out: 0 })
    });
    assert_eq!(tree(&made.expect("made").0), ["dir 700 begun"]);
    let mut both = [format!("sha256-{theirs}"), ours];
    both.sort();
    assert_eq!(place.kept(), both);
}

/// Whoever died while making one left its lock to nobody.
#[test]
fn a_panic_leaves_nothing() {
    let place = Place::new("panic");
    let store = Store::open(&place.store()).expect("a store");
    let digest = "b".repeat(64);
    let died = std::thread::scope(|scope| {
        scope.spawn(|| store.get_or_make(&digest, |_| panic!("on purpose")).map(drop)).join()
    });
    assert!(died.is_err());
    assert_eq!(place.kept(), [""; 0]);
    store.get_or_make(&digest, |_| Ok(About { left_out: 0 })).expect("made");
}

#[test]
fn modes_and_owners() {
    let (place, built) = (Place::new("modes"), Built::new(&layers()));
    let path = place.write("image.tar", &built.layout_archive());
    let image = place.open(&path).expect("an image");
    let mode = |path: &Path| fs::metadata(path).expect("metadata").mode() & 0o7777;
    assert_eq!(mode(&place.store()), 0o700);
    assert_eq!((mode(&image.root), mode(image.root.parent().expect("above"))), (0o755, 0o755));
    // A store that others may enter is none, whatever is in it.
    for bad in [0o755, 0o710, 0o707] {
        fs::set_permissions(place.store(), fs::Permissions::from_mode(bad)).expect("permissions");
        assert!(sentence(place.open(&path)).contains("chmod 700 it"));
    }
    fs::set_permissions(place.store(), fs::Permissions::from_mode(0o700)).expect("permissions");
    // However it is named, a root is named in one way.
    assert_eq!(open(&path, &place.dir.join("outside/../store")).expect("an image").root, image.root);
    std::os::unix::fs::symlink(place.store(), place.dir.join("link")).expect("a link");
    assert!(sentence(open(&path, &place.dir.join("link"))).contains("chmod 700 it"));
    assert!(sentence(open(&path, &path)).contains("cannot be used"));
}
