//! What runsc writes down when it gives up. It has its file alone: nothing inside the container can write there.

use serde::Deserialize;

/// How it begins what it says of a container whose program it never started.
const NOT_STARTED: &str = "running container: starting container: ";

/// How its kernel calls the reasons not to execute a program.
const REASONS: [(&str, i32); 7] = [
    ("no such file or directory", libc::ENOENT),
    // Of a name on the way: nothing can be found there.
    ("not a directory", libc::ENOENT),
    ("permission denied", libc::EACCES),
    ("is a directory", libc::EACCES),
    ("exec format error", libc::ENOEXEC),
    ("file name too long", libc::ENAMETOOLONG),
    ("argument list too long", libc::E2BIG),
];

#[derive(Deserialize)]
struct Line {
    msg: String,
    level: String,
}

/// Why a program was never started.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotStarted<'a> {
    /// The path that was to be executed, and what its kernel said. Without a path: none was found along PATH.
    Refused { path: Option<&'a str>, errno: i32 },
    /// What went wrong is the runtime's own.
    Failed,
}

/// The last error of a log. Its lines are JSON, not always with a line's end between them.
pub(super) fn last_error(log: &str) -> Option<String> {
    let lines = serde_json::Deserializer::from_str(log).into_iter::<Line>();
    lines.map_while(Result::ok).filter(|line| line.level == "error").last().map(|line| line.msg)
}

/// `None` when the program was started, whatever happened then.
pub(super) fn not_started(error: &str) -> Option<NotStarted<'_>> {
    let why = error.strip_prefix(NOT_STARTED)?;
    let refused = REASONS.iter().find_map(|(name, errno)| {
        let rest = why.strip_suffix(name)?.strip_suffix(": ")?;
        if rest.contains("error finding executable ") {
            return Some(NotStarted::Refused { path: None, errno: *errno });
        }
        let path = rest.split_once("failed to load ")?.1;
        Some(NotStarted::Refused { path: Some(path), errno: *errno })
    });
    Some(refused.unwrap_or(NotStarted::Failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As runsc of December 2022 writes them.
    const AT: &str = "running container: starting container: starting root container: starting sandbox: ";

    #[test]
    fn why_a_program_was_not_started() {
        let refused = |path, errno| Some(NotStarted::Refused { path, errno });
        for (error, found) in [
            ("error finding executable \"x\" in PATH [/bin]: no such file or directory", refused(None, libc::ENOENT)),
            ("creating process: failed to load /x: no such file or directory", refused(Some("/x"), libc::ENOENT)),
            ("creating process: failed to load /x/y: not a directory", refused(Some("/x/y"), libc::ENOENT)),
            ("creating process: failed to load /x: permission denied", refused(Some("/x"), libc::EACCES)),
            ("creating process: failed to load /x: exec format error", refused(Some("/x"), libc::ENOEXEC)),
            (
                "creating process: failed to load /x: permission denied: exec format error",
                refused(Some("/x: permission denied"), libc::ENOEXEC),
            ),
            ("creating process: failed to load /x: out of luck", Some(NotStarted::Failed)),
            ("urpc method failed: EOF", Some(NotStarted::Failed)),
        ] {
            assert_eq!(not_started(&format!("{AT}{error}")), found, "{error}");
            assert_eq!(not_started(error), None, "{error}");
        }
        assert_eq!(not_started(&format!("waiting on container: {AT}failed to load /x: permission denied")), None);
    }

    #[test]
    fn the_last_error_of_a_log() {
        let line = |level: &str, msg: &str| format!("{{\"msg\":\"{msg}\",\"level\":\"{level}\",\"time\":\"t\"}}");
        let (first, second) = (line("error", "a"), line("error", "b"));
        assert_eq!(last_error(&format!("{first}{second}")).as_deref(), Some("b"));
        assert_eq!(last_error(&format!("{second}\n{first}\n{}\n", line("warning", "c"))).as_deref(), Some("a"));
        assert_eq!(last_error(""), None);
        assert_eq!(last_error("it is no JSON"), None);
    }
}
