//! Signals by their names.

/// Those of signal(7), by their numbers on x86-64.
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Of a real-time signal there is none.
pub(crate) fn name(signal: i32) -> Option<&'static str> {
    SIGNALS.get(usize::try_from(signal - 1).ok()?).copied()
}

pub(crate) fn number(name: &str) -> Option<u8> {
    SIGNALS.iter().position(|known| *known == name).and_then(|at| u8::try_from(at + 1).ok())
}
