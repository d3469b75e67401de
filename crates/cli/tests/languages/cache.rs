//! What is compiled is kept, by what it was made from; nothing can write there but the one who keeps it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::*;

const C: &str = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n";
/// Large enough to be shown to the cell from where it is kept, instead of being copied.
const GO: &str = "package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"hello\") }\n";

fn words(file: &Path) -> Vec<PathBuf> {
    vec![file.to_owned()]
}

#[test]
fn the_same_source_is_compiled_once() {
    let place = Place::new();
    for (name, source) in [
        ("a.c", C),
        ("a.go", GO),
        ("a.rs", "fn main() { println!(\"hello\") }"),
        ("Main.java", "class Main { public static void main(String[] a) { System.out.println(\"hello\"); } }"),
    ] {
        let file = place.write(&format!("work/{name}"), source);
        let first = place.run(words(&file)).go().says("hello\n");
        assert!(!first.cached(), "{name}");
        assert_eq!(first.phases(), ["compile", "run"]);
        let again = place.run(words(&file)).go().says("hello\n");
        assert!(again.cached(), "{name}: {}", again.brief());
        assert_eq!(again.phases(), ["compile", "run"]);
        // By what it is, and not by where.
        let elsewhere = place.write(&format!("elsewhere/{name}"), source);
        assert!(place.run(words(&elsewhere)).go().says("hello\n").cached(), "{name}");
    }
}

#[test]
fn another_source_or_name_is_compiled() {
    let place = Place::new();
    let file = place.write("work/a.c", C);
    assert!(!place.run(words(&file)).go().says("hello\n").cached());
    let file = place.write("work/a.c", C.replace("hello", "other"));
    assert!(!place.run(words(&file)).go().says("other\n").cached());
    // Its name is in what it prints.
    let name = "#include <stdio.h>\nint main(void) { puts(__FILE__); return 0; }\n";
    let (one, two) = (place.write("work/one.c", name), place.write("work/two.c", name));
    assert!(!place.run(words(&one)).go().says("/src/one.c\n").cached());
    assert!(!place.run(words(&two)).go().says("/src/two.c\n").cached());
    let file = place.write("work/a.c", C);
    assert!(place.run(words(&file)).go().says("hello\n").cached());
}

#[test]
fn another_flag_of_the_language_file_is_compiled() {
    let place = Place::new();
    let file = place.write("work/a.c", "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", N); return 0; }\n");
    for n in ["1", "2"] {
        place.write(
            "languages/c.toml",
            format!(
                "name = \"c\"\nextensions = [\"c\"]\npackage = \"gcc\"\n[tools.cc]\n[[way]]\ntools = [\"cc\"]\n\
                 compile.argv = [\"{{cc}}\", \"-DN={n}\", \"-o\", \"/work/main\", \"{{sources}}\"]\n\
                 run.argv = [\"/build/main\"]\n"
            ),
        );
        let run = || place.run(words(&file)).env("HOTCELL_LANGUAGES", place.path("languages")).go();
        assert!(!run().says(&format!("{n}\n")).cached());
        assert!(run().says(&format!("{n}\n")).cached());
    }
    // A variable of the step is as good as a flag.
    let with = |n: &str| {
        place.write(
            "languages/c.toml",
            format!(
                "name = \"c\"\nextensions = [\"c\"]\npackage = \"gcc\"\n[tools.cc]\n[env]\nN = \"{n}\"\n[[way]]\n\
                 tools = [\"cc\"]\ncompile.argv = [\"/bin/sh\", \"-c\", 'exec {{cc}} -DN=$N -o /work/main /src/a.c']\n\
                 run.argv = [\"/build/main\"]\n"
            ),
        );
        place.run(words(&file)).env("HOTCELL_LANGUAGES", place.path("languages")).go()
    };
    assert!(!with("3").says("3\n").cached());
    assert!(!with("4").says("4\n").cached());
    assert!(with("3").says("3\n").cached());
}

/// Where a compiler starts is part of what it is told.
#[test]
fn another_directory_of_the_compile_step_is_compiled() {
    let place = Place::new();
    let file = place.write("work/a.where", "");
    for dir in ["/src", "/tmp"] {
        place.write(
            "languages/where.toml",
            format!(
                "name = \"where\"\nextensions = [\"where\"]\npackage = \"dash\"\n[tools.sh]\n[[way]]\ntools = [\"sh\"]\n\
                 compile.argv = [\"/bin/sh\", \"-c\", \"pwd > /work/out\"]\ncompile.cwd = \"{dir}\"\n\
                 run.argv = [\"/bin/cat\", \"/build/out\"]\n"
            ),
        );
        let ran = place.run(words(&file)).env("HOTCELL_LANGUAGES", place.path("languages")).go();
        ran.says(&format!("{dir}\n"));
    }
}

#[test]
fn a_directory_is_compiled_again_when_anything_in_it_changes() {
    let place = Place::new();
    let main = "#include <stdio.h>\n#include \"it.h\"\nint main(void) { printf(\"%d\\n\", it()); return 0; }\n";
    place.write("project/main.c", main);
    place.write("project/it.h", "int it(void);\n");
    place.write("project/it.c", "int it(void) { return 1; }\n");
    let run = || place.run([place.path("project")]).go();
    assert!(!run().says("1\n").cached());
    assert!(run().says("1\n").cached());
    // The same bytes with a new time are the same source.
    place.write("project/it.h", "int it(void);\n");
    assert!(run().says("1\n").cached());
    // The same size, and within the same second.
    place.write("project/it.c", "int it(void) { return 2; }\n");
    assert!(!run().says("2\n").cached());
    // Not a source of the language, but read by one.
    place.write("project/it.c", "int it(void) { return\n#include \"n.inc\"\n; }\n");
    place.write("project/n.inc", "3");
    assert!(!run().says("3\n").cached());
    place.write("project/n.inc", "4");
    assert!(!run().says("4\n").cached());
    place.write("project/more/unused.txt", "a new file");
    assert!(!run().says("4\n").cached());
    std::fs::remove_dir_all(place.path("project/more")).expect("ours");
    assert!(run().says("4\n").cached());
    assert!(place.files(&["home/.cache/hotcell/build"]).iter().all(|name| name.starts_with("project/")));
}

/// Tries everything that changes a file or a directory on all of /build, and says what it could do.
const HOSTILE: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
volatile char pad[400000] = { 1 };
int main(void) {
    DIR *dir = opendir("/build");
    struct dirent *entry;
    char path[512];
    int n = 0, could = 0;
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/build/%s", entry->d_name);
        n++;
        could += chmod(path, 0777) == 0;
        could += open(path, O_WRONLY) >= 0;
        could += open(path, O_RDWR | O_TRUNC) >= 0;
        could += truncate(path, 0) == 0;
        could += mount(0, path, 0, MS_REMOUNT | MS_BIND, 0) == 0;
        could += open(path, O_WRONLY) >= 0;
        could += rename(path, "/build/other") == 0;
        could += rename(path, "/work/other") == 0;
        could += link(path, "/work/linked") == 0;
        could += unlink(path) == 0;
    }
    could += open("/build/new", O_CREAT | O_WRONLY, 0644) >= 0;
    could += mkdir("/build/dir", 0755) == 0;
    could += symlink("/etc/passwd", "/build/link") == 0;
    could += chmod("/build", 0777) == 0;
    could += rmdir("/build") == 0;
    could += umount2("/build", MNT_DETACH) == 0;
    printf("%d files, could %d, %d\n", n, could, pad[0]);
    return 0;
}
"#;

#[test]
fn a_run_cannot_write_into_the_cache() {
    let place = Place::new();
    let small = place.write("work/small.c", HOSTILE.replace("400000", "4"));
    let large = place.write("work/large.c", HOSTILE);
    for (file, least) in [(&small, 0), (&large, 256 * 1024)] {
        // One run to have it there, with the hostile part in it already: each run tries.
        for round in 0..3 {
            let before = contents(&place.cache());
            let ran = place.run(words(file)).go();
            assert_eq!(ran.class(), "FilesystemWriteViolation", "{}", ran.brief());
            assert_eq!(ran.out(), "1 files, could 0, 1\n", "{}", ran.brief());
            assert_eq!(ran.cached(), round > 0, "{}", ran.brief());
            let after = contents(&place.cache());
            if round > 0 {
                assert!(before == after, "the cache was changed");
            }
            assert!(after.iter().any(|(path, _, bytes)| path.ends_with("files/main") && bytes.len() > least));
        }
    }
}

#[test]
fn a_compiler_cannot_write_into_the_cache() {
    let place = Place::new();
    let file = place.write("work/a.c", C);
    place.run(words(&file)).go().says("hello\n");
    let before = contents(&place.cache());
    let cache = place.cache().display().to_string();
    place.write(
        "languages/evil.toml",
        format!(
            "name = \"evil\"\nextensions = [\"evil\"]\npackage = \"sh\"\n[tools.sh]\n[[way]]\ntools = [\"sh\"]\n\
             compile.argv = [\"/bin/sh\", \"-c\", 'ls {cache}; rm -rf {cache}; echo x > {cache}/x; \
             find / -name hotcell -o -name manifest 2>/dev/null | grep -v ^/usr | grep -v ^/proc; \
             cp /bin/true /work/main']\nrun.argv = [\"/build/main\"]\n"
        ),
    );
    let source = place.write("work/a.evil", "");
    let ran = place.run(words(&source)).env("HOTCELL_LANGUAGES", place.path("languages")).go();
    assert_eq!(ran.outcome["phases"][0]["stdout"], "", "{}", ran.brief());
    let after = contents(&place.cache());
    assert!(before.iter().all(|entry| after.contains(entry)), "the cache was changed");
}

#[test]
fn the_cache_may_be_deleted_between_runs() {
    let place = Place::new();
    for (name, source) in [("a.c", C), ("a.go", GO)] {
        let file = place.write(&format!("work/{name}"), source);
        for _ in 0..2 {
            assert!(!place.run(words(&file)).go().says("hello\n").cached());
            assert!(place.run(words(&file)).go().says("hello\n").cached());
            std::fs::remove_dir_all(place.path("home/.cache")).expect("it is there");
        }
    }
}

fn while_it_is_deleted(name: &str, source: &str, runs: usize) {
    let place = Place::new();
    let file = place.write(&format!("work/{name}"), source);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let remover = scope.spawn(|| {
            let mut times = 0;
            while !over.load(Ordering::Relaxed) {
                times += usize::from(std::fs::remove_dir_all(place.path("home/.cache")).is_ok());
                // Room for an entry to come, and not always the same.
                std::thread::sleep(std::time::Duration::from_micros(500 * (times as u64 % 40)));
            }
            times
        });
        let runners: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let ran: Vec<Ran> = (0..runs).map(|_| place.run(words(&file)).go()).collect();
                    ran
                })
            })
            .collect();
        let ran: Vec<Ran> = runners.into_iter().flat_map(|runner| runner.join().expect("it does not panic")).collect();
        over.store(true, Ordering::Relaxed);
        assert!(remover.join().expect("it does not panic") > 0, "nothing was deleted");
        let wrong: Vec<String> =
            ran.iter().filter(|ran| (ran.code, ran.out().as_str()) != (0, "hello\n")).map(Ran::brief).collect();
        assert!(wrong.is_empty(), "{} of {} are wrong: {}", wrong.len(), ran.len(), wrong[0]);
    });
}

#[test]
fn the_cache_may_be_deleted_while_small_programs_run() {
    while_it_is_deleted("a.c", C, 25);
}

#[test]
fn the_cache_may_be_deleted_while_large_programs_run() {
    let source = "#include <stdio.h>\nvolatile char pad[400000] = { 1 };\n\
                  int main(void) { puts(pad[0] ? \"hello\" : \"\"); return 0; }\n";
    while_it_is_deleted("a.c", source, 25);
}

/// There when it is looked at and gone when it is used, or the other way round: as often as can be.
#[test]
fn the_cache_may_vanish_between_a_look_and_its_use() {
    let place = Place::new();
    let source = "#include <stdio.h>\nvolatile char pad[400000] = { 1 };\n\
                  int main(void) { puts(pad[0] ? \"hello\" : \"\"); return 0; }\n";
    let file = place.write("work/a.c", source);
    place.run(words(&file)).go().says("hello\n");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let aside = place.path("aside");
                if std::fs::rename(place.cache(), &aside).is_ok() {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    // One that was made meanwhile is in the way.
                    let _ = std::fs::remove_dir_all(place.cache());
                    let _ = std::fs::rename(&aside, place.cache());
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let ran: Vec<Ran> = (0..40).map(|_| place.run(words(&file)).go()).collect();
        over.store(true, Ordering::Relaxed);
        let wrong: Vec<String> =
            ran.iter().filter(|ran| (ran.code, ran.out().as_str()) != (0, "hello\n")).map(Ran::brief).collect();
        assert!(wrong.is_empty(), "{} of {} are wrong: {}", wrong.len(), ran.len(), wrong[0]);
    });
}

/// Started while it was there, and still going when it is gone.
#[test]
fn a_program_that_runs_outlives_the_cache() {
    let place = Place::new();
    let source = "#include <stdio.h>\n#include <unistd.h>\n#include <fcntl.h>\nvolatile char pad[400000] = { 1 };\n\
                  int main(void) { char c; puts(\"here\"); fflush(stdout); while (read(0, &c, 1) > 0); \
                  int fd = open(\"/build/main\", O_RDONLY); printf(\"%ld %d\\n\", (long)read(fd, &c, 1), pad[0]); }\n";
    let file = place.write("work/a.c", source);
    place.run(words(&file)).go().says("here\n1 1\n");
    let mut child = std::process::Command::new(binary())
        .args(["run", "--output", "text"])
        .arg(&file)
        .env("HOME", place.path("home"))
        .env_remove("XDG_CACHE_HOME")
        .env_remove("HOTCELL_CACHE")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("hotcell starts");
    let mut out = child.stdout.take().expect("piped");
    let mut first = [0u8; 5];
    std::io::Read::read_exact(&mut out, &mut first).expect("it says that it is here");
    std::fs::remove_dir_all(place.path("home/.cache")).expect("it is there");
    drop(child.stdin.take());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).expect("text");
    assert_eq!((rest.as_str(), child.wait().expect("ours").code()), ("1 1\n", Some(0)));
}

#[test]
fn no_cache_leaves_nothing() {
    let place = Place::new();
    let file = place.write("work/a.c", C);
    for _ in 0..2 {
        let ran = place.run(words(&file).into_iter().chain(["--no-cache".into()])).go().says("hello\n");
        assert!(!ran.cached());
        assert_eq!(place.files(&[]), ["work/a.c"]);
        assert!(!place.path("home/.cache").exists());
    }
    // What is there is not used either.
    place.run(words(&file)).go().says("hello\n");
    let ran = place.run(words(&file).into_iter().chain(["--no-cache".into()])).go().says("hello\n");
    assert!(!ran.cached());
}

#[test]
fn the_cache_is_where_the_environment_says() {
    let place = Place::new();
    let file = place.write("work/a.c", C);
    let run = |key: &str, value: PathBuf| place.run(words(&file)).env(key, value).go().says("hello\n").cached();
    assert!(!run("HOTCELL_CACHE", place.path("mine/and/deep")));
    assert!(run("HOTCELL_CACHE", place.path("mine/and/deep")));
    assert_eq!(place.files(&["mine/and/deep"]), ["work/a.c"]);
    assert!(!run("XDG_CACHE_HOME", place.path("xdg")));
    assert!(run("XDG_CACHE_HOME", place.path("xdg")));
    assert_eq!(place.files(&["mine/and/deep", "xdg/hotcell/build"]), ["work/a.c"]);
    // Everybody but the owner is kept out.
    for dir in ["mine/and/deep", "xdg/hotcell/build"] {
        assert_eq!(std::fs::metadata(place.path(dir)).expect("it is there").mode() & 0o777, 0o700, "{dir}");
    }
    let both = place.run(words(&file)).env("XDG_CACHE_HOME", place.path("other"));
    assert!(both.env("HOTCELL_CACHE", place.path("mine/and/deep")).go().says("hello\n").cached());
    assert!(!place.path("other").exists());
}

#[test]
fn nothing_but_the_cache_is_left() {
    let place = Place::new();
    for (name, source) in [("a.c", C), ("a.go", GO), ("b.c", "int main(void) { return 3 }"), ("a.py", "print(1)")] {
        let file = place.write(&format!("work/{name}"), source);
        place.run(words(&file)).go();
        std::fs::remove_file(file).expect("ours");
    }
    assert_eq!(place.files(&["home/.cache/hotcell/build"]), Vec::<String>::new());
    // Entries that are whole, and none that is not.
    for entry in std::fs::read_dir(place.cache()).expect("it is there").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
        assert!(entry.path().join("manifest").is_file() && entry.path().join("files").is_dir());
    }
}
