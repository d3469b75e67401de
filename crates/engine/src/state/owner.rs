//! The process that a running record belongs to, and whether it is still there.

/// The process that a running record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) pid: i64,
    /// Ticks since the host's start, so that another process of that number is not taken for it.
    pub(crate) start: i64,
}

impl Owner {
    pub(crate) fn this() -> Owner {
        let pid = i64::from(std::process::id());
        Owner { pid, start: start_of(pid).unwrap_or(0) }
    }

    pub(crate) fn is_alive(self) -> bool {
        start_of(self.pid) == Some(self.start)
    }
}

fn start_of(pid: i64) -> Option<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold blanks and parentheses; 22 is the start, and the third field follows the name.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    // A zombie runs nothing any more.
    (fields.first() != Some(&"Z")).then(|| fields.get(19)?.parse().ok())?
}
