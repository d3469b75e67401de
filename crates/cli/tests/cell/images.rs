//! Images as the root of a cell: whatever is in them leads to themselves.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::containers::{each, own};
use crate::harness::*;

/// A root file system with one program in it.
fn image(cell: &Cell) -> PathBuf {
    let root = own(cell).join("image");
    std::fs::create_dir_all(root.join("bin")).expect("the test's own directory");
    copy_program("/bin/busybox", root.join("bin/busybox"));
    root
}

#[test]
fn an_image_is_the_root() {
    if !Path::new("/bin/busybox").exists() {
        return skip("busybox is not installed");
    }
    each(|name| {
        let cell = exec(&["/bin/busybox", "sh", "-c", "/bin/busybox ls / | /bin/busybox sort; echo x > /work/x"]);
        let root = image(&cell);
        let ran = cell.flag("--runtime", name).flag("--image", &root).run();
        ran.passes();
        // Another kernel has a place for its own.
        let sys = if name == "runsc" { "sys\n" } else { "" };
        assert_eq!(ran.out(), format!("bin\ndev\netc\nproc\nsrc\n{sys}tmp\nwork\n"));
    });
}

/// What an image has where the cell has something of its own: a link, a file, a directory that lacks most.
#[test]
fn an_image_may_have_anything_where_the_cells_own_is() {
    if !Path::new("/bin/busybox").exists() {
        return skip("busybox is not installed");
    }
    let uses = "set -e; cd /work; echo a > a; echo b > /tmp/b; echo c > /dev/shm/c; cat a /tmp/b /dev/shm/c; \
                head -n 1 /etc/passwd; cat /etc/own; cat /src/main";
    each(|name| {
        for kind in ["nothing", "links", "files", "dead links"] {
            let cell =
                exec(&["/bin/busybox", "sh", "-c", &format!("alias cat='busybox cat' head='busybox head'\n{uses}")]);
            let root = image(&cell);
            std::fs::create_dir_all(root.join("etc")).expect("the test's own directory");
            std::fs::write(root.join("etc/own"), "of the image\n").expect("the test's own directory");
            std::fs::create_dir_all(root.join("var/tmp")).expect("the test's own directory");
            for at in ["tmp", "work", "src", "dev", "proc"] {
                match kind {
                    "links" => symlink("var/tmp", root.join(at)).expect("the test's own directory"),
                    "dead links" => symlink("/nowhere", root.join(at)).expect("the test's own directory"),
                    "files" => std::fs::write(root.join(at), "").expect("the test's own directory"),
                    _ => {}
                }
            }
            let input = own(&cell).join("source");
            std::fs::create_dir(&input).expect("the test's own directory");
            std::fs::write(input.join("main"), "the source\n").expect("the test's own directory");
            let ran = cell.flag("--runtime", name).flag("--image", &root).flag("--input", &input).run();
            ran.passes();
            let passwd = "cell:x:1000:1000:cell:/work:/bin/sh";
            assert_eq!(ran.out(), format!("a\nb\nc\n{passwd}\nof the image\nthe source\n"), "{name}, {kind}");
        }
    });
}

#[test]
fn the_result_names_the_image() {
    if !Path::new("/bin/busybox").exists() {
        return skip("busybox is not installed");
    }
    each(|name| {
        let run = |program: &str, images: &str| {
            let cell = exec(&[program, "true"]).flag("--runtime", name).env("HOTCELL_IMAGES", images);
            let root = image(&cell);
            (cell.flag("--image", &root).run(), root)
        };
        let (ran, root) = run("/bin/busybox", "/nowhere");
        ran.passes();
        assert_eq!(ran.outcome["runtime_config"]["image"], root.to_str().expect("text"));
        let (ran, _) = run("/bin/nope", "/nowhere");
        assert_eq!((ran.code, ran.class()), (127, "SetupFailure"), "{}", ran.outcome);
        let message = ran.outcome["message"].as_str().expect("a sentence");
        assert!(message.contains("`/bin/nope` is not found in the image"), "{message}");
        let (ran, _) = run("/bin/busybox", "somewhere");
        ran.refused("HOTCELL_IMAGES is `somewhere`, which is not an absolute path");
        let ran = exec(&["/bin/true"]).flag("--runtime", name).run();
        assert_eq!(ran.outcome["runtime_config"]["image"], serde_json::Value::Null);
    });
}

/// What a runtime resolves from the host's root, from the container's, and from its own working directory, must not
/// differ: links that lead to each of them, by ways that only one of them has.
#[test]
fn an_image_whose_devices_lead_elsewhere_shows_nothing_of_the_host() {
    if !Path::new("/bin/busybox").exists() {
        return skip("busybox is not installed");
    }
    let secret = std::env::temp_dir().join(format!("hotcell-secret-{}", std::process::id()));
    std::fs::write(&secret, "of the host").expect("a file can be made");
    let looks = "/bin/busybox find / -xdev -name 'hotcell-secret-*' 2>/dev/null; \
                 for dir in /dev /mnt /q /mnt/root/q /root/q /run; do /bin/busybox ls $dir 2>/dev/null; done; \
                 /bin/busybox cat /mnt/root/q/etc/passwd /mnt/etc/passwd /dev/passwd /q/etc/passwd 2>/dev/null";
    let ways = [
        (vec!["e/f", "e/dev"], "/run/../dev", vec![("run", "e/f")]),
        (
            vec!["proc/self", "mnt/root/q", "root/q"],
            "/proc/self/cwd/../root/q",
            vec![("proc/self/cwd", "/"), ("q", "/")],
        ),
        (vec!["proc/self", "mnt/etc", "etc"], "/proc/self/cwd/../etc", vec![("proc/self/cwd", "/")]),
    ];
    each(|name| {
        for (dirs, dev, links) in &ways {
            let cell = exec(&["/bin/busybox", "sh", "-c", looks]);
            let root = image(&cell);
            dirs.iter().for_each(|dir| std::fs::create_dir_all(root.join(dir)).expect("the test's own directory"));
            symlink(dev, root.join("dev")).expect("the test's own directory");
            links.iter().for_each(|(at, to)| symlink(to, root.join(at)).expect("the test's own directory"));
            let ran = cell.flag("--runtime", name).flag("--image", &root).run();
            let said = ran.outcome["stdout"].as_str().unwrap_or_default();
            let of_host =
                ["hotcell-secret", "root:x:0", "vda", "kmsg", "mem\n"].into_iter().find(|word| said.contains(word));
            assert_eq!(of_host, None, "{name} {dev}: {said}{}", ran.stderr);
        }
    });
    std::fs::remove_file(secret).expect("it is still there");
}

#[test]
fn an_image_that_points_at_the_host_reaches_nothing_of_it() {
    if !Path::new("/bin/busybox").exists() {
        return skip("busybox is not installed");
    }
    each(|name| {
        let source = "echo x > /src/made 2>/dev/null; echo x > /work/made 2>/dev/null; echo went on";
        let cell = exec(&["/bin/busybox", "sh", "-c", source]);
        // Of whoever runs hotcell, and not of the run's: it is looked at afterwards.
        let victim = std::env::temp_dir().join(format!("hotcell-victim-{name}-{}", std::process::id()));
        std::fs::create_dir(&victim).expect("a directory can be made");
        std::fs::set_permissions(&victim, PermissionsExt::from_mode(0o777)).expect("the test's own directory");
        let root = image(&cell);
        for at in ["src", "etc", "dev", "proc", "work", "tmp", ".hotcell-init"] {
            symlink(&victim, root.join(at)).expect("the test's own directory");
        }
        let input = own(&cell).join("empty");
        std::fs::create_dir(&input).expect("the test's own directory");
        let ran = cell.flag("--runtime", name).flag("--image", &root).flag("--input", &input).run();
        println!("{name}: {} {}", ran.code, ran.stderr);
        let made = std::fs::read_dir(&victim).expect("it is there").count();
        std::fs::remove_dir_all(&victim).expect("the test's own directory");
        assert_eq!(made, 0, "{name}: something was made");
    });
}

#[test]
fn images_that_are_none() {
    each(|name| {
        for (path, part) in [("/nowhere", "/nowhere"), ("/etc/passwd", "/etc/passwd"), ("/", "/"), ("/proc", "/proc")] {
            let ran = exec(&["true"]).flag("--runtime", name).flag("--image", path).run();
            assert_eq!((ran.code, ran.outcome.is_null()), (125, true), "{path}: {}", ran.stderr);
            assert!(ran.stderr.contains(part), "{path}: {}", ran.stderr);
        }
        let ran = python("print(1)").flag("--runtime", name).flag("--image", "/usr").run();
        ran.refused("an image has its own: use `exec --image");
    });
}
