//! The real program behind a name: trees as the managers of toolchains make them, with links to real programs in them,
//! and what `hotcell languages` says of them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::*;

/// A real program that any tool can be, for its format.
const PROGRAM: &str = "/usr/bin/env";

/// A copy of a real program, below the place.
fn program(place: &Place, name: &str) -> PathBuf {
    let path = place.path(name);
    std::fs::create_dir_all(path.parent().expect("it is below")).expect("ours");
    copy_program(PROGRAM, &path);
    path.canonicalize().expect("it is there")
}

/// A script as pyenv and asdf put into their `shims`.
fn shim(place: &Place, name: &str) {
    let path = place.path(name);
    std::fs::create_dir_all(path.parent().expect("it is below")).expect("ours");
    write_program(&path, "#!/bin/sh\necho this is a shim >&2\nexit 99\n", 0o755);
}

/// `hotcell languages` with nothing but these directories to look in.
fn look(place: &Place, path: &[&str]) -> Hotcell {
    let dirs = path.iter().map(|dir| if dir.starts_with('/') { dir.into() } else { place.path(dir) });
    let path = std::env::join_paths(dirs).expect("no colons");
    let mut run = place.hotcell(["languages", "--output", "json"]).env("PATH", path);
    for name in ["PYENV_VERSION", "RUSTUP_HOME", "NODENV_VERSION", "GOENV_VERSION"] {
        run = run.without(name);
    }
    run
}

/// What it says of one language: the path of its tool, or why there is none.
#[track_caller]
fn toolchain(run: Hotcell, language: &str) -> Result<PathBuf, String> {
    let ran = run.go();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let all: Value = serde_json::from_slice(&ran.stdout).expect("languages are told as JSON");
    let found = all["languages"].as_array().expect("a list").iter().find(|l| l["name"] == language).expect("known");
    match found["available"].as_bool() {
        Some(true) => Ok(found["toolchain"].as_str().expect("a path").into()),
        _ => Err(found["missing"].as_str().expect("a reason").into()),
    }
}

fn pyenv(place: &Place) -> [PathBuf; 3] {
    shim(place, "home/.pyenv/shims/python3");
    place.write("home/.pyenv/version", "3.9.1\n");
    ["3.9.1", "3.10.2", "3.11.3"].map(|version| program(place, &format!("home/.pyenv/versions/{version}/bin/python3")))
}

const SHIMS: [&str; 1] = ["home/.pyenv/shims"];

#[test]
fn pyenv_has_a_global_version() {
    let place = Place::new();
    let [old, ..] = pyenv(&place);
    assert_eq!(toolchain(look(&place, &SHIMS), "python"), Ok(old));
}

#[test]
fn pyenv_has_a_version_of_the_directory() {
    let place = Place::new();
    let [_, middle, _] = pyenv(&place);
    place.write("work/.python-version", "3.10.2\n");
    assert_eq!(toolchain(look(&place, &SHIMS), "python"), Ok(middle.clone()));
    // Or of one above it.
    place.write("work/deep/below/x", "");
    assert_eq!(toolchain(look(&place, &SHIMS).cwd(place.path("work/deep/below")), "python"), Ok(middle));
}

#[test]
fn pyenv_has_a_version_of_the_environment() {
    let place = Place::new();
    let [_, middle, new] = pyenv(&place);
    place.write("work/.python-version", "3.10.2\n");
    assert_eq!(toolchain(look(&place, &SHIMS).env("PYENV_VERSION", "3.11.3"), "python"), Ok(new.clone()));
    // More than one: the first that has the program.
    assert_eq!(toolchain(look(&place, &SHIMS).env("PYENV_VERSION", "3.6.6:3.11.3"), "python"), Ok(new));
    assert_eq!(toolchain(look(&place, &SHIMS).env("PYENV_VERSION", ""), "python"), Ok(middle));
}

/// `3.10` is 3.10.2, as pyenv itself has it.
#[test]
fn pyenv_completes_a_version_by_its_prefix() {
    let place = Place::new();
    let [_, middle, new] = pyenv(&place);
    let newer = program(&place, "home/.pyenv/versions/3.11.12/bin/python3");
    assert_ne!(new, newer);
    place.write("work/.python-version", "3.10\n");
    assert_eq!(toolchain(look(&place, &SHIMS), "python"), Ok(middle));
    place.write("work/.python-version", "3.11\n");
    assert_eq!(toolchain(look(&place, &SHIMS), "python"), Ok(newer));
}

#[test]
fn pyenv_that_leads_nowhere_is_passed_over() {
    let place = Place::new();
    pyenv(&place);
    let real = program(&place, "other/bin/python3");
    for version in ["3.6.6", "system", "../../../../other", "/", "..", "."] {
        let run = look(&place, &["home/.pyenv/shims", "other/bin"]).env("PYENV_VERSION", version);
        assert_eq!(toolchain(run, "python"), Ok(real.clone()), "{version}");
        let alone = look(&place, &SHIMS).env("PYENV_VERSION", version);
        assert!(toolchain(alone, "python").is_err_and(|why| why.contains("install python3")), "{version}");
    }
}

#[test]
fn asdf_has_versions_of_the_directory_and_of_the_home() {
    let place = Place::new();
    for name in ["python3", "node", "go"] {
        shim(&place, &format!("home/.asdf/shims/{name}"));
    }
    let home = program(&place, "home/.asdf/installs/python/3.9.1/bin/python3");
    let here = program(&place, "home/.asdf/installs/python/3.11.3/bin/python3");
    let node = program(&place, "home/.asdf/installs/nodejs/20.1.0/bin/node");
    let shims = ["home/.asdf/shims"];
    assert!(toolchain(look(&place, &shims), "python").is_err());
    place.write("home/.tool-versions", "# mine\nnodejs 20.1.0\npython 3.9.1\n");
    assert_eq!(toolchain(look(&place, &shims), "python"), Ok(home.clone()));
    assert_eq!(toolchain(look(&place, &shims), "javascript"), Ok(node.clone()));
    place.write("work/.tool-versions", "python 3.6.6 3.11.3\n");
    assert_eq!(toolchain(look(&place, &shims), "python"), Ok(here));
    // What the nearer file does not say, the farther does.
    assert_eq!(toolchain(look(&place, &shims), "javascript"), Ok(node));
    assert!(toolchain(look(&place, &shims), "go").is_err_and(|why| why.contains("install golang")));
    place.write("work/.tool-versions", "python ../../../../elsewhere\n");
    assert_eq!(toolchain(look(&place, &shims), "python"), Ok(home));
}

#[test]
fn mise_keeps_its_installs_where_asdf_does() {
    let place = Place::new();
    shim(&place, "home/.local/share/mise/shims/node");
    let node = program(&place, "home/.local/share/mise/installs/node/22.3.0/bin/node");
    // Its own short names are links.
    symlink("22.3.0", place.path("home/.local/share/mise/installs/node/22")).expect("ours");
    place.write("work/.tool-versions", "node 22\n");
    assert_eq!(toolchain(look(&place, &["home/.local/share/mise/shims"]), "javascript"), Ok(node));
}

fn rustup(place: &Place, hard: bool) -> [PathBuf; 2] {
    let proxy = program(place, "home/.cargo/bin/rustup");
    for name in ["rustc", "cargo"] {
        let link = place.path(&format!("home/.cargo/bin/{name}"));
        if hard { std::fs::hard_link(&proxy, link) } else { symlink("rustup", link) }.expect("ours");
    }
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let toolchains = ["stable", "1.80.0"].map(|name| {
        program(place, &format!("home/.rustup/toolchains/{name}-{host}/bin/cargo"));
        // Without it a directory with a `bin` is no toolchain.
        place.write(&format!("home/.rustup/toolchains/{name}-{host}/lib/rustlib/components"), "");
        program(place, &format!("home/.rustup/toolchains/{name}-{host}/bin/rustc"))
    });
    let settings =
        format!("version = \"12\"\ndefault_toolchain = \"stable-{host}\"\nprofile = \"default\"\n\n[overrides]\n");
    place.write("home/.rustup/settings.toml", settings);
    program(place, "linker/cc");
    toolchains
}

const CARGO: [&str; 2] = ["home/.cargo/bin", "linker"];

#[test]
fn rustup_has_a_default_behind_links_of_both_kinds() {
    for hard in [false, true] {
        let place = Place::new();
        let [stable, _] = rustup(&place, hard);
        assert_eq!(toolchain(look(&place, &CARGO), "rust"), Ok(stable), "hard: {hard}");
    }
}

#[test]
fn rustup_has_a_toolchain_of_the_environment() {
    let place = Place::new();
    let [_, old] = rustup(&place, false);
    place.write("work/rust-toolchain.toml", "[toolchain]\nchannel = \"stable\"\n");
    for name in ["1.80.0".to_owned(), format!("1.80.0-{}-unknown-linux-gnu", std::env::consts::ARCH)] {
        let run = look(&place, &CARGO).env("RUSTUP_TOOLCHAIN", name);
        assert_eq!(toolchain(run, "rust"), Ok(old.clone()));
    }
}

#[test]
fn rustup_has_a_toolchain_of_the_directory() {
    let place = Place::new();
    let [_, old] = rustup(&place, false);
    place.write("work/deep/x", "");
    for (file, text) in [
        ("rust-toolchain.toml", "[toolchain]\nchannel = \"1.80.0\"\ncomponents = [\"clippy\"]\n"),
        ("rust-toolchain", "1.80.0\n"),
        ("rust-toolchain", "[toolchain]\nchannel = \"1.80.0\"\n"),
    ] {
        place.write(&format!("work/{file}"), text);
        for dir in ["work", "work/deep"] {
            let run = look(&place, &CARGO).cwd(place.path(dir));
            assert_eq!(toolchain(run, "rust"), Ok(old.clone()), "{file} {text:?} in {dir}");
        }
        std::fs::remove_file(place.path(&format!("work/{file}"))).expect("ours");
    }
}

/// As TOML has it: either quote, and words behind a `#`.
#[test]
fn rustup_reads_its_files_as_toml() {
    for line in ["channel = '1.80.0'", "channel = \"1.80.0\" # not later", "channel=\"1.80.0\""] {
        let place = Place::new();
        let [_, old] = rustup(&place, false);
        place.write("work/rust-toolchain.toml", format!("[toolchain]\n{line}\n"));
        assert_eq!(toolchain(look(&place, &CARGO), "rust"), Ok(old), "{line}");
    }
}

/// `rustup override set`, which comes before the file of the directory.
#[test]
fn rustup_has_overrides_of_directories() {
    let place = Place::new();
    let [_, old] = rustup(&place, false);
    let settings = std::fs::read_to_string(place.path("home/.rustup/settings.toml")).expect("it is there");
    let name = format!("1.80.0-{}-unknown-linux-gnu", std::env::consts::ARCH);
    let work = place.path("work").canonicalize().expect("it is there");
    place.write("home/.rustup/settings.toml", format!("{settings}\"{}\" = \"{name}\"\n", work.display()));
    assert_eq!(toolchain(look(&place, &CARGO), "rust"), Ok(old));
}

#[test]
fn rustup_that_leads_nowhere_is_passed_over() {
    for hard in [false, true] {
        let place = Place::new();
        rustup(&place, hard);
        let real = program(&place, "other/bin/rustc");
        place.write("other/lib/rustlib/components", "");
        for name in ["1.70.0", "../../../other", "nightly"] {
            let run = look(&place, &["home/.cargo/bin", "linker", "other/bin"]).env("RUSTUP_TOOLCHAIN", name);
            assert_eq!(toolchain(run, "rust"), Ok(real.clone()), "{name}");
            let alone = look(&place, &CARGO).env("RUSTUP_TOOLCHAIN", name);
            assert!(toolchain(alone, "rust").is_err_and(|why| why.contains("install rustc")), "{name}");
        }
        // Without any settings there is no default.
        std::fs::remove_file(place.path("home/.rustup/settings.toml")).expect("ours");
        assert!(toolchain(look(&place, &CARGO), "rust").is_err());
    }
}

#[test]
fn rustup_has_a_home_of_its_own() {
    let place = Place::new();
    let [stable, _] = rustup(&place, false);
    std::fs::rename(place.path("home/.rustup"), place.path("elsewhere")).expect("ours");
    assert!(toolchain(look(&place, &CARGO), "rust").is_err());
    let run = look(&place, &CARGO).env("RUSTUP_HOME", place.path("elsewhere"));
    let found = toolchain(run, "rust").expect("it is there");
    assert!(found.starts_with(place.path("elsewhere").canonicalize().expect("it is there")), "{}", found.display());
    assert_eq!(found.file_name(), stable.file_name());
}

#[test]
fn nvm_has_its_newest() {
    let place = Place::new();
    for version in ["v9.11.2", "v8.17.0", "v10.2.0", "v10.10.1"] {
        program(&place, &format!("home/.nvm/versions/node/{version}/bin/node"));
    }
    let newest = place.path("home/.nvm/versions/node/v10.10.1/bin/node").canonicalize().expect("it is there");
    assert_eq!(toolchain(look(&place, &["empty"]), "javascript"), Ok(newest.clone()));
    // Not a version, and one without its program.
    place.write("home/.nvm/versions/node/v11.0.0/README", "");
    place.write("home/.nvm/versions/node/.cache/x", "");
    assert_eq!(toolchain(look(&place, &["empty"]), "javascript"), Ok(newest));
    // What is on PATH comes first: `nvm use` puts it there.
    let run = look(&place, &["home/.nvm/versions/node/v9.11.2/bin"]);
    let used = place.path("home/.nvm/versions/node/v9.11.2/bin/node").canonicalize().expect("it is there");
    assert_eq!(toolchain(run, "javascript"), Ok(used));
}

#[test]
fn a_link_is_followed_to_what_it_stands_for() {
    let place = Place::new();
    let real = program(&place, "opt/node-20/bin/node");
    std::fs::create_dir_all(place.path("alternatives")).expect("ours");
    std::fs::create_dir_all(place.path("bin")).expect("ours");
    symlink(&real, place.path("alternatives/node")).expect("ours");
    symlink(place.path("alternatives/node"), place.path("bin/node")).expect("ours");
    assert_eq!(toolchain(look(&place, &["bin"]), "javascript"), Ok(real));
}

#[test]
fn what_is_no_program_is_passed_over() {
    let place = Place::new();
    let real = program(&place, "last/python3");
    shim(&place, "script/python3");
    place.write("text/python3", "not a program");
    place.write("empty/python3", "");
    std::fs::create_dir_all(place.path("directory/python3")).expect("ours");
    std::fs::create_dir_all(place.path("dangling")).expect("ours");
    symlink("nowhere", place.path("dangling/python3")).expect("ours");
    std::fs::create_dir_all(place.path("loop")).expect("ours");
    symlink("python3", place.path("loop/python3")).expect("ours");
    let path = ["script", "text", "empty", "directory", "dangling", "loop", "absent", "last"];
    assert_eq!(toolchain(look(&place, &path), "python"), Ok(real.clone()));
    let without = &path[..path.len() - 1];
    assert!(toolchain(look(&place, without), "python").is_err_and(|why| why.contains("install python3")));
    // A name relative to wherever one happens to be is nobody's toolchain.
    let run = look(&place, &[]).env("PATH", "last:.").cwd(place.path("last"));
    assert!(toolchain(run, "python").is_err());
    assert_eq!(real.file_name(), Some("python3".as_ref()));
}

/// A program without the right to be executed is none, for a shell as for us.
#[test]
fn what_may_not_be_executed_is_passed_over() {
    let place = Place::new();
    let (locked, real) = (program(&place, "locked/python3"), program(&place, "last/python3"));
    set_mode(&locked, 0o644);
    assert_eq!(toolchain(look(&place, &["locked", "last"]), "python"), Ok(real));
}

/// The real interpreter of this host, whatever stands for it on PATH.
fn real_python(place: &Place) -> PathBuf {
    toolchain(place.hotcell(["languages", "--output", "json"]), "python").expect("python is on this host")
}

#[test]
fn a_virtual_environment_runs_with_its_own_modules() {
    let place = Place::outside_of_tmp();
    let prefix = place.path("venv");
    virtual_environment(&place, &prefix);
}

/// Where a cell has a directory of its own, it is seen elsewhere.
#[test]
fn a_virtual_environment_below_tmp_runs_with_its_own_modules() {
    let place = Place::new();
    let prefix = Path::new("/opt/host").join(place.path("venv").strip_prefix("/").expect("absolute"));
    virtual_environment(&place, &prefix);
}

#[track_caller]
fn virtual_environment(place: &Place, prefix: &Path) {
    let python = real_python(place);
    let made =
        std::process::Command::new(&python).args(["-m", "venv", "--without-pip"]).arg(place.path("venv")).status();
    assert!(made.expect("python starts").success());
    let mut packages = vec![];
    for entry in std::fs::read_dir(place.path("venv/lib")).expect("it is there").flatten() {
        packages.push(entry.path().join("site-packages"));
    }
    assert_eq!(packages.len(), 1);
    std::fs::write(packages[0].join("of_the_venv.py"), "WORD = 'of the venv'\n").expect("ours");
    let found = toolchain(look(place, &["venv/bin", "/usr/bin"]), "python");
    assert_eq!(found, Ok(place.path("venv/bin/python3")));
    let file = place.write("work/a.py", "import sys, of_the_venv\nprint(of_the_venv.WORD, sys.prefix)");
    let path = std::env::join_paths([place.path("venv/bin"), "/usr/bin".into()]).expect("no colons");
    let ran = place.run([&file]).env("PATH", path).go();
    ran.says(&format!("of the venv {}\n", prefix.display()));
    // The twin: without it, the module is not there.
    let ran = place.run([&file]).go().fails("RuntimeError", 1);
    assert!(ran.err().contains("of_the_venv"), "{}", ran.err());
}

#[test]
fn a_toolchain_outside_of_usr_runs_and_nothing_beside_it_is_seen() {
    let place = Place::outside_of_tmp();
    let bash = Path::new("/bin/bash").canonicalize().expect("bash is on this host");
    std::fs::create_dir_all(place.path("opt/tools/bin")).expect("ours");
    copy_program(bash, place.path("opt/tools/bin/bash"));
    place.write("opt/tools/secret", "of the host");
    place.write("opt/secret", "of the host");
    let source = format!("cd {} && echo *; cat secret ../secret; echo $BASH", place.path("opt/tools").display());
    let file = place.write("work/a.sh", source);
    let ran = place.run([&file]).env("PATH", place.path("opt/tools/bin")).go().passes();
    let shell = place.path("opt/tools/bin/bash");
    assert_eq!(ran.out(), format!("bin\n{}\n", shell.display()), "{}", ran.brief());
}

/// What is called /tmp on the host is something else in the cell, which must not make a toolchain disappear.
#[test]
fn a_toolchain_below_tmp_runs() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("opt/bin")).expect("ours");
    copy_program("/bin/bash", place.path("opt/bin/bash"));
    let file = place.write("work/a.sh", "echo ran; echo x > /tmp/mine && cat /tmp/mine");
    place.run([&file]).env("PATH", place.path("opt/bin")).go().says("ran\nx\n");
}
