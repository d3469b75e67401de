//! The directories of a test: where hotcell is called, and what a cell gets as its input.

use std::os::unix::fs::MetadataExt;

use super::*;

/// A cell's input. Everybody may write in it, so that it is the cell that says no.
pub struct Input {
    dir: TempDir,
}

impl Input {
    /// With the hostile programs, a source, a file to attack and an empty directory.
    pub fn new(source: &str) -> Input {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("hotcell-input-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let input = Input { dir: TempDir::new(&name) };
        let path = |name: &str| input.dir.path.join(name);
        std::fs::write(path("main.py"), source).expect("our own directory");
        std::fs::write(path("target"), "as it was").expect("our own directory");
        std::fs::create_dir(path("empty")).expect("our own directory");
        copy_program(hostile(), path("hostile"));
        for (name, mode) in [("main.py", 0o666), ("target", 0o666), ("empty", 0o777), ("", 0o777)] {
            set_mode(&path(name), mode);
        }
        if as_user() && is_root() {
            for name in ["main.py", "target", "empty", "hostile"] {
                std::os::unix::fs::chown(path(name), Some(USER), Some(USER)).expect("root may");
            }
        }
        input
    }

    pub fn path(&self) -> &Path {
        &self.dir.path
    }

    /// `hotcell run` of its source.
    pub fn python(&self) -> Cell {
        let mut cell = Cell::new("run").flag("--input", self.path());
        cell.words.push(self.path().join("main.py").into());
        cell
    }

    /// `hotcell exec` of one of the hostile programs in it.
    pub fn attack(&self, name: &str) -> Cell {
        exec(&["/src/hostile", name]).flag("--input", self.path())
    }

    /// Nothing was added, removed or changed.
    #[track_caller]
    pub fn assert_untouched(&self) {
        let mut names: Vec<_> =
            std::fs::read_dir(self.path()).expect("it is there").flatten().map(|e| e.file_name()).collect();
        names.sort();
        assert_eq!(names, ["empty", "hostile", "main.py", "target"]);
        let target = self.path().join("target");
        assert_eq!(std::fs::read_to_string(&target).expect("it is there"), "as it was");
        let mode = std::fs::metadata(&target).expect("it is there").mode();
        assert_eq!(mode & 0o7777, 0o666, "its mode was changed");
    }
}

pub(super) struct TempDir {
    pub(super) path: PathBuf,
}

impl TempDir {
    pub(super) fn new(name: &str) -> TempDir {
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        if as_user() && is_root() {
            std::os::unix::fs::chown(&path, Some(USER), Some(USER)).expect("root may chown");
        }
        TempDir { path }
    }

    /// A run leaves no file but those the test itself put there.
    #[track_caller]
    pub(super) fn assert_untouched(&self) {
        let names: Vec<_> = std::fs::read_dir(&self.path)
            .expect("it is there")
            .flatten()
            .map(|e| e.file_name())
            .filter(|name| {
                let name = name.to_string_lossy();
                !(name == "main.py" || name == "result.json" || name.starts_with("input"))
            })
            .collect();
        assert!(names.is_empty(), "left in the working directory: {names:?}");
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
