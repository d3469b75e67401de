//! A cache that is not whole, not ours or not writable is as good as none: every run has the right verdict.

use std::path::{Path, PathBuf};

use crate::harness::*;

const C: &str = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n";
/// Shown to the cell from where it is kept, for its size.
const LARGE: &str = "#include <stdio.h>\nvolatile char pad[400000] = { 1 };\n\
                     int main(void) { puts(pad[0] ? \"hello\" : \"\"); return 0; }\n";
const JAVA: &str = "public class Main {\n  static class A { String a() { return \"hel\"; } }\n\
                    static class B { String b() { return \"lo\"; } }\n\
                    public static void main(String[] x) { System.out.println(new A().a() + new B().b()); }\n}\n";

/// The one entry of the cache.
fn entry(place: &Place) -> PathBuf {
    let mut all: Vec<_> = std::fs::read_dir(place.cache()).expect("it is there").flatten().collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).path()
}

/// After a run that compiled, `damage` the entry: the next run must compile again, and the one behind it must not.
#[track_caller]
fn damaged(name: &str, source: &str, what: &str, damage: impl Fn(&Path)) {
    let place = Place::new();
    let file = place.write(&format!("work/{name}"), source);
    assert!(!place.run([&file]).go().says("hello\n").cached());
    damage(&entry(&place));
    let ran = place.run([&file]).go();
    assert_eq!((ran.class(), ran.out().as_str()), ("none", "hello\n"), "{what}: {}", ran.brief());
    assert!(!ran.cached(), "{what} was used");
    let ran = place.run([&file]).go().says("hello\n");
    assert!(ran.cached(), "{what} was not replaced");
    entry(&place);
}

fn cut(path: &Path, to: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("ours");
    file.set_len(to).expect("ours");
}

#[test]
fn a_truncated_file_is_not_used() {
    for source in [C, LARGE] {
        damaged("a.c", source, "a truncated file", |entry| cut(&entry.join("files/main"), 5000));
        damaged("a.c", source, "an emptied file", |entry| cut(&entry.join("files/main"), 0));
    }
}

#[test]
fn a_missing_file_is_not_used() {
    for source in [C, LARGE] {
        damaged("a.c", source, "a missing file", |entry| {
            std::fs::remove_file(entry.join("files/main")).expect("ours");
        });
        damaged("a.c", source, "a missing directory", |entry| {
            std::fs::remove_dir_all(entry.join("files")).expect("ours");
        });
    }
    damaged("Main.java", JAVA, "a missing class", |entry| {
        std::fs::remove_file(entry.join("files/Main$B.class")).expect("ours");
    });
}

#[test]
fn a_link_in_place_of_a_file_is_not_used() {
    damaged("a.c", C, "a link", |entry| {
        let (kept, moved) = (entry.join("files/main"), entry.join("moved"));
        std::fs::rename(&kept, &moved).expect("ours");
        std::os::unix::fs::symlink(&moved, &kept).expect("ours");
    });
}

#[test]
fn a_garbage_manifest_is_not_used() {
    for garbage in ["garbage", "755 12\n", "999 5 main\n", "755 -1 main\n", "\0\0\0\0\0\0\0\0", "{}\n", "\n"] {
        damaged("a.c", C, &format!("{garbage:?}"), |entry| {
            std::fs::write(entry.join("manifest"), garbage).expect("ours");
        });
    }
    damaged("a.c", C, "bytes", |entry| std::fs::write(entry.join("manifest"), [0xff, 0xfe, 0]).expect("ours"));
    damaged("a.c", C, "no manifest", |entry| std::fs::remove_file(entry.join("manifest")).expect("ours"));
    damaged("a.c", C, "a directory", |entry| {
        std::fs::remove_file(entry.join("manifest")).expect("ours");
        std::fs::create_dir(entry.join("manifest")).expect("ours");
    });
}

/// What a host that lost its power leaves of a file that was just written.
#[test]
fn an_empty_manifest_is_not_used() {
    damaged("a.c", C, "an empty manifest", |entry| cut(&entry.join("manifest"), 0));
}

#[test]
fn a_manifest_that_lacks_lines_is_not_used() {
    damaged("Main.java", JAVA, "half a manifest", |entry| {
        let text = std::fs::read_to_string(entry.join("manifest")).expect("text");
        let kept: String = text.lines().filter(|line| !line.ends_with("$B.class")).map(|l| format!("{l}\n")).collect();
        assert!(kept.len() < text.len(), "{text}");
        std::fs::write(entry.join("manifest"), kept).expect("ours");
    });
}

/// What a host that lost its power leaves: the right length, and nothing in it.
#[test]
fn a_file_of_zeros_is_not_used() {
    for source in [C, LARGE] {
        damaged("a.c", source, "a file of zeros", |entry| {
            let kept = entry.join("files/main");
            let len = std::fs::metadata(&kept).expect("it is there").len();
            std::fs::write(&kept, vec![0; len as usize]).expect("ours");
        });
    }
}

/// A manifest names what lies beside it, and nothing else of the host.
#[test]
fn a_manifest_that_leads_out_is_not_used() {
    let place = Place::new();
    let file = place.write("work/a.c", C);
    let secret = place.write("secret", "of the host");
    place.run([&file]).go().says("hello\n");
    let entry = entry(&place);
    for path in [secret.display().to_string(), "../../../../../../../secret".into()] {
        std::fs::write(entry.join("manifest"), format!("755 11 {path}\n")).expect("ours");
        let ran = place.run([&file]).go().says("hello\n");
        assert!(!ran.cached(), "{path}: {}", ran.brief());
    }
}

#[test]
fn a_file_in_place_of_an_entry_is_no_error() {
    let place = Place::new();
    let file = place.write("work/a.c", C);
    place.run([&file]).go().says("hello\n");
    let entry = entry(&place);
    std::fs::remove_dir_all(&entry).expect("ours");
    std::fs::write(&entry, "in the way").expect("ours");
    assert!(!place.run([&file]).go().says("hello\n").cached());
}

#[test]
fn a_cache_that_everybody_may_write_is_not_used() {
    let place = Place::new();
    let file = place.write("work/a.c", C);
    place.run([&file]).go().says("hello\n");
    for mode in [0o777, 0o1777, 0o770, 0o702] {
        set_mode(&place.cache(), mode);
        let before = contents(&place.cache());
        assert!(!place.run([&file]).go().says("hello\n").cached(), "{mode:o}");
        let other = place.write("work/b.c", C.replace("hello", "other"));
        assert!(!place.run([&other]).go().says("other\n").cached(), "{mode:o}");
        assert!(before == contents(&place.cache()), "{mode:o}: it was written to");
    }
    set_mode(&place.cache(), 0o700);
    assert!(place.run([&file]).go().says("hello\n").cached());
}

#[test]
fn a_cache_of_somebody_else_is_not_used() {
    if !is_root() {
        return skip("only root can give a directory away");
    }
    let place = Place::new();
    let file = place.write("work/a.c", C);
    place.run([&file]).go().says("hello\n");
    std::os::unix::fs::chown(place.cache(), Some(USER), Some(USER)).expect("root may");
    let before = contents(&place.cache());
    assert!(!place.run([&file]).go().says("hello\n").cached());
    let other = place.write("work/b.c", C.replace("hello", "other"));
    assert!(!place.run([&other]).go().says("other\n").cached());
    assert!(before == contents(&place.cache()), "it was written to");
}

/// A link is a name that somebody else may have made.
#[test]
fn a_link_in_place_of_the_cache_is_not_used() {
    let place = Place::new();
    let file = place.write("work/a.c", C);
    std::fs::create_dir(place.path("real")).expect("ours");
    std::os::unix::fs::symlink(place.path("real"), place.path("link")).expect("ours");
    for _ in 0..2 {
        assert!(!place.run([&file]).env("HOTCELL_CACHE", place.path("link")).go().says("hello\n").cached());
    }
    assert_eq!(place.files(&[]), ["link", "work/a.c"]);
}

#[test]
fn an_unwritable_cache_is_no_error() {
    let place = Place::new();
    let file = place.write("work/a.c", C);
    place.write("a-file", "in the way");
    for cache in [place.path("a-file"), place.path("a-file/below"), "/proc/hotcell".into(), "/dev/null".into()] {
        for _ in 0..2 {
            let ran = place.run([&file]).env("HOTCELL_CACHE", &cache).go().says("hello\n");
            assert!(!ran.cached() && ran.stderr.is_empty(), "{}: {}", cache.display(), ran.brief());
        }
    }
    assert_eq!(place.files(&[]), ["a-file", "work/a.c"]);
}

#[test]
fn a_cache_that_the_user_may_not_write_is_no_error() {
    if !is_root() {
        return skip("root alone can be two users");
    }
    let place = Place::new();
    let file = place.write("work/a.c", C);
    copy_program(binary(), place.path("hotcell"));
    let run = |dir: &str| {
        let run = place.run([&file]).env("HOTCELL_CACHE", place.path(dir)).env("PATH", "/usr/bin:/bin");
        run.by_user().go().says("hello\n").cached()
    };
    // Root's own, and one below root's own that can't be made.
    std::fs::create_dir(place.path("of-root")).expect("ours");
    for dir in ["of-root", "of-root/below/it"] {
        assert!(!run(dir) && !run(dir), "{dir}");
    }
    // The user's own that has been made read-only: what is there is used.
    std::fs::create_dir(place.path("own")).expect("ours");
    std::os::unix::fs::chown(place.path("own"), Some(USER), Some(USER)).expect("root may");
    assert!(!run("own") && run("own"));
    set_mode(&place.path("own"), 0o500);
    assert!(run("own"));
    let other = place.write("work/a.c", C.replace("hello", "hello "));
    let read_only = place.run([&other]).env("HOTCELL_CACHE", place.path("own")).env("PATH", "/usr/bin:/bin");
    assert!(!read_only.by_user().go().says("hello \n").cached());
}

#[test]
fn without_a_home_there_is_no_cache() {
    let place = Place::new();
    let file = place.write("work/a.c", C);
    for home in ["", "relative"] {
        let ran = place.run([&file]).env("HOME", home).go().says("hello\n");
        assert!(!ran.cached());
        assert_eq!(place.files(&[]), ["work/a.c"]);
    }
}

/// An entry as it would be of a program of so many bytes, last used so long ago.
fn entry_of(place: &Place, name: &str, bytes: u64, hours: u64) -> PathBuf {
    let manifest = place.cache().join(name).join("manifest");
    std::fs::create_dir_all(place.cache().join(name).join("files")).expect("ours");
    std::fs::write(&manifest, format!("sum\nboot\n755 {bytes} 0.0 0 main\n")).expect("ours");
    let used = std::time::SystemTime::now() - std::time::Duration::from_secs(hours * 3600);
    let file = std::fs::OpenOptions::new().append(true).open(&manifest).expect("ours");
    file.set_modified(used).expect("ours");
    place.cache().join(name)
}

#[test]
fn the_cache_is_bounded_and_the_longest_unused_goes() {
    let place = Place::new();
    let used = place.write("work/used.c", C);
    place.run([&used]).go().says("hello\n");
    let own = entry(&place);
    let aged = std::time::SystemTime::now() - std::time::Duration::from_secs(100 * 3600);
    let manifest = std::fs::OpenOptions::new().append(true).open(own.join("manifest")).expect("ours");
    manifest.set_modified(aged).expect("ours");
    drop(manifest);
    let [oldest, old, new] =
        [("0", 9), ("1", 5), ("2", 1)].map(|(n, hours)| entry_of(&place, &n.repeat(64), 2 << 30, hours));
    // Used again, and with that the last to go, though it was the first to come.
    assert!(place.run([&used]).go().says("hello\n").cached());
    let other = place.write("work/other.c", C.replace("hello", "other"));
    assert!(!place.run([&other]).go().says("other\n").cached());
    let left = [&oldest, &old, &new, &own].map(|entry| entry.exists());
    assert_eq!(left, [false, false, true, true], "more than 4 GiB are kept, or the wrong ones went");
    assert!(place.run([&other]).go().says("other\n").cached());
}

#[test]
fn what_nobody_will_finish_is_thrown_out() {
    let place = Place::new();
    let first = place.write("work/first.c", C);
    place.run([&first]).go().says("hello\n");
    let (dead, alive) = (entry_of(&place, ".new-dead", 1, 2), entry_of(&place, ".new-alive", 1, 0));
    let other = place.write("work/other.c", C.replace("hello", "other"));
    place.run([&other]).go().says("other\n");
    assert_eq!((dead.exists(), alive.exists()), (false, true));
}

/// A class that is too large to be copied is still the one that the program begins with.
#[test]
fn a_large_class_begins_from_the_cache_as_it_did_before() {
    let place = Place::new();
    let texts: String =
        (0..6).map(|n| format!("static String s{n} = \"{}\";\n", n.to_string().repeat(60_000))).collect();
    let main = "public static void main(String[] a) { System.out.println(\"hello\" + s5.charAt(0)); }";
    let file = place.write("work/Main.java", format!("class Quiet {{\n{texts}{main}\n}}\n"));
    assert!(!place.run([&file]).go().says("hello5\n").cached());
    assert!(place.run([&file]).go().says("hello5\n").cached());
}
