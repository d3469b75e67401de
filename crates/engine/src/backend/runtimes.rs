//! Which runtimes this host has, what they say of themselves, and what is known against them.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use hotcell_sandbox::{Runtime, RuntimeKind};

use super::BackendError;

/// Where runtimes are looked for. Not along the caller's PATH: what is found gets the host's privileges.
const PLACES: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// In the order in which they are taken when nobody says which.
const KINDS: [(RuntimeKind, &str); 4] = [
    (RuntimeKind::Runc, "runc"),
    (RuntimeKind::Crun, "crun"),
    (RuntimeKind::Youki, "youki"),
    (RuntimeKind::Runsc, "runsc"),
];

/// What is known against a version, by the upstream's own numbers: distributions mend without changing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    kind: RuntimeKind,
    /// Of each line of releases, the first without it; older lines never got one.
    fixed: &'static [[u32; 3]],
    pub fixed_in: &'static str,
    pub what: &'static str,
}

/// As of November 2025.
const HOLES: [Hole; 4] = [
    Hole {
        kind: RuntimeKind::Runc,
        fixed: &[[1, 2, 8], [1, 3, 3], [1, 4, 0]],
        fixed_in: "1.2.8, 1.3.3 or 1.4.0",
        what: "CVE-2025-31133, CVE-2025-52565, CVE-2025-52881: masked paths and /dev/console can be redirected",
    },
    Hole {
        kind: RuntimeKind::Youki,
        fixed: &[[0, 5, 7]],
        fixed_in: "0.5.7",
        what: "CVE-2025-62161, CVE-2025-62596: the same as runc's of November 2025",
    },
    Hole {
        kind: RuntimeKind::Crun,
        fixed: &[[1, 4, 4]],
        fixed_in: "1.4.4",
        what: "CVE-2022-27650: inheritable capabilities are not empty",
    },
    Hole {
        kind: RuntimeKind::Runsc,
        fixed: &[[20_241_028, 0, 0]],
        fixed_in: "release 20241028",
        what: "CVE-2024-10026, CVE-2024-10603: its network stack can be told apart and its ports guessed",
    },
];

/// One that is here.
#[derive(Clone, Debug)]
pub struct FoundRuntime {
    pub name: &'static str,
    pub runtime: Runtime,
    /// As it tells it; `None` when it does not.
    pub version: Option<String>,
    pub hole: Option<Hole>,
}

/// All of them, each asked for its version.
pub fn survey() -> Vec<FoundRuntime> {
    let found = KINDS.iter().filter_map(|(kind, name)| Some((kind, name, find(name)?)));
    found
        .map(|(kind, name, path)| {
            let version = said(&path).ok().and_then(|text| version_in(&text));
            let hole = version.as_deref().and_then(|version| hole(*kind, version));
            FoundRuntime { name, runtime: Runtime { path, kind: *kind }, version, hole }
        })
        .collect()
}

pub(super) fn name_of(kind: RuntimeKind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("runtime", |(_, name)| name)
}

/// Refuses one that something is known against, or of which it cannot be known.
pub(super) fn must_be_patched(runtime: &Runtime) -> Result<(), BackendError> {
    let name = name_of(runtime.kind);
    let version = said(&runtime.path).ok().and_then(|text| version_in(&text));
    let Some(version) = version else { return Err(BackendError::NoVersion { path: runtime.path.clone() }) };
    version_must_be_patched(name, version)
}

/// The same of one that somebody else calls.
pub(super) fn version_must_be_patched(name: &str, version: String) -> Result<(), BackendError> {
    match known_hole(name, &version) {
        None => Ok(()),
        Some((name, hole)) => Err(BackendError::Vulnerable { name, version, what: hole.what, fixed: hole.fixed_in }),
    }
}

pub(super) fn known_hole(name: &str, version: &str) -> Option<(&'static str, Hole)> {
    let (kind, name) = KINDS.iter().find(|(_, known)| *known == name)?;
    Some((name, hole(*kind, version)?))
}

/// The first that there is.
pub(super) fn usual(strict: bool) -> Result<Runtime, BackendError> {
    let fits = |kind: RuntimeKind| (kind == RuntimeKind::Runsc) == strict;
    let mut found = KINDS.iter().filter(|(kind, _)| fits(*kind)).filter_map(|(kind, name)| Some((*kind, find(name)?)));
    found.next().map(|(kind, path)| Runtime { path, kind }).ok_or(BackendError::NoRuntime { strict })
}

/// By its name, or by the path of a binary, which says itself what it is.
pub(super) fn named(name: &Path) -> Result<Runtime, BackendError> {
    let text = name.to_string_lossy();
    if !text.contains('/') {
        if text.starts_with("kata") {
            return Err(BackendError::Kata);
        }
        let Some((kind, name)) = KINDS.iter().find(|(_, known)| *known == text) else {
            return Err(BackendError::Unknown(text.into_owned()));
        };
        let path = find(name).ok_or_else(|| BackendError::NotFound((*name).into()))?;
        return Ok(Runtime { path, kind: *kind });
    }
    let not_one = |why: &str| BackendError::NotOne { path: name.to_owned(), why: why.into() };
    let path = name.canonicalize().map_err(|e| not_one(&e.to_string()))?;
    if !is_program(&path) {
        return Err(not_one("it is no file that can be executed"));
    }
    let said = said(&path).map_err(|e| not_one(&format!("asked for its --version: {e}")))?;
    let first = said.split_whitespace().next().unwrap_or_default();
    match KINDS.iter().find(|(_, known)| *known == first) {
        Some((kind, _)) => Ok(Runtime { path, kind: *kind }),
        None => Err(not_one("asked for its --version, it does not say that it is runc, crun, youki or runsc")),
    }
}

fn find(name: &str) -> Option<PathBuf> {
    PLACES.iter().map(|place| Path::new(place).join(name)).find(|path| is_program(path))
}

/// Whether a path is in one of the places where runtimes are looked for.
pub(super) fn is_of_the_system(path: &Path) -> bool {
    let dir = path.parent().and_then(|dir| dir.canonicalize().ok());
    dir.is_some_and(|dir| PLACES.iter().any(|place| Path::new(place).canonicalize().is_ok_and(|place| place == dir)))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// So long one may think about its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// What it answers to `--version`: the beginning of it, whatever it is.
fn said(path: &Path) -> io::Result<String> {
    let mut asked = Command::new(path)
        .arg("--version")
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let said = asked.stdout.take().map_or(Ok(vec![]), hear);
    // One that goes on is none, and neither is who it leaves behind. Gone already, as a rule.
    if let Some(group) = i32::try_from(asked.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    asked.wait()?;
    Ok(String::from_utf8_lossy(&said?).into_owned())
}

/// The first 4096 bytes, or all there are.
fn hear(mut from: ChildStdout) -> io::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let (mut said, mut buf) = (vec![], [0u8; 4096]);
    loop {
        let left = rustix::event::Timespec::try_from(until.saturating_duration_since(Instant::now()));
        let left = left.map_err(|_| io::ErrorKind::InvalidInput)?;
        let ready = match rustix::event::poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&left)) {
            Err(rustix::io::Errno::INTR) => continue,
            ready => ready?,
        };
        if ready == 0 {
            return Err(io::Error::other(format!("it does not end within {} s", PATIENCE.as_secs())));
        }
        let n = from.read(&mut buf[said.len()..])?;
        said.extend_from_slice(&buf[said.len()..][..n]);
        if n == 0 || said.len() == buf.len() {
            return Ok(said);
        }
    }
}

/// `runc version 1.1.5+ds1`, `youki version: 0.5.7`, `runsc version release-20241028.0`.
fn version_in(text: &str) -> Option<String> {
    let rest = text.lines().next()?.split_once("version")?.1;
    rest.trim_start_matches(':').split_whitespace().next().map(str::to_owned)
}

/// The numbers of a version; a date is one number.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let version = version.trim_start_matches("release-").trim_start_matches("0.0~");
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let mut parts = version[..end].split('.').filter(|part| !part.is_empty());
    let first = parts.next()?.parse().ok()?;
    if first > 1_000_000 {
        return Some([first, 0, 0]);
    }
    let mut next = || parts.next().map_or(Some(0), |part| part.parse().ok());
    Some([first, next()?, next()?])
}

fn hole(kind: RuntimeKind, version: &str) -> Option<Hole> {
    let hole = HOLES.iter().find(|hole| hole.kind == kind)?;
    let own = numbers(version)?;
    let line = hole.fixed.iter().find(|fixed| fixed[..2] == own[..2]);
    let newest = hole.fixed.last()?;
    // A candidate of the release that mends it may be from before.
    let candidate = version.contains("-rc") && hole.fixed.contains(&own);
    let mended = match line {
        Some(fixed) => own >= *fixed && !candidate,
        None => own > *newest,
    };
    (!mended).then_some(*hole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_a_fix_have_its_hole() {
        for (kind, old, new) in [
            (
                RuntimeKind::Runc,
                vec!["1.1.5+ds1", "1.2.7", "1.3.2", "1.0.0-rc93", "1.4.0-rc.1"],
                vec!["1.2.8", "1.3.3", "1.4.1", "2.0.0"],
            ),
            (RuntimeKind::Youki, vec!["0.5.6", "0.3.0"], vec!["0.5.7", "0.6.0"]),
            (RuntimeKind::Crun, vec!["1.4.3", "0.20"], vec!["1.8.1", "1.25"]),
            (
                RuntimeKind::Runsc,
                vec!["0.0~20221219.0", "release-20240101.0"],
                vec!["release-20241028.0", "20251101.0"],
            ),
        ] {
            for version in old {
                assert!(hole(kind, version).is_some(), "{kind:?} {version}");
            }
            for version in new {
                assert!(hole(kind, version).is_none(), "{kind:?} {version}");
            }
        }
    }

    #[test]
    fn a_version_is_read_as_each_tells_it() {
        for (text, version) in [
            ("runc version 1.1.5+ds1\ncommit: x\n", Some("1.1.5+ds1")),
            ("crun version 1.8.1\n", Some("1.8.1")),
            ("youki version: 0.5.7\ncommit: y", Some("0.5.7")),
            ("runsc version 0.0~20221219.0\n", Some("0.0~20221219.0")),
            ("bash, 5.2", None),
            ("", None),
        ] {
            assert_eq!(version_in(text).as_deref(), version, "{text}");
        }
    }
}
