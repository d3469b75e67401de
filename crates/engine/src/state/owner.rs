//! The process that a running record belongs to, whether it is still there, and how it is made to end what it runs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rusqlite::Row;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::store::StoreError;

/// How long a service may take to end runs that it is to end: it looks ten times a second, and grace is half of one. And how
/// long a process that runs one thing may take to write its end down.
const PATIENCE: Duration = Duration::from_secs(5);

/// The process that a running record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) pid: i64,
    /// Ticks since the host's start, so that another process of that number is not taken for it.
    pub(crate) start: i64,
    /// It runs more than this, and looks itself whether something of it was called off.
    pub(crate) is_service: bool,
}

/// In the order of [`Owner::of`].
pub(super) const OWNER: &str = "owner_pid, owner_start, owner_is_service";

impl Owner {
    pub(crate) fn this() -> Owner {
        let pid = i64::from(std::process::id());
        Owner { pid, start: start_of(pid).unwrap_or(0), is_service: false }
    }

    /// As it was written down elsewhere.
    pub(crate) fn once(pid: i64, start: i64) -> Owner {
        Owner { pid, start, is_service: false }
    }

    /// From the columns [`OWNER`], the first of which is at `from`.
    pub(super) fn of(row: &Row<'_>, from: usize) -> rusqlite::Result<Owner> {
        let is_service = row.get::<_, Option<i64>>(from + 2)?.is_some_and(|is| is != 0);
        Ok(Owner { pid: row.get(from)?, start: row.get(from + 1)?, is_service })
    }

    pub(crate) fn is_alive(self) -> bool {
        start_of(self.pid) == Some(self.start)
    }

    /// Stopped by a signal, or by who traces it: it hears nothing.
    fn is_halted(self) -> bool {
        stat_of(self.pid).is_some_and(|(state, _)| state.eq_ignore_ascii_case("t"))
    }
}

fn start_of(pid: i64) -> Option<i64> {
    let (state, start) = stat_of(pid)?;
    // A zombie runs nothing any more.
    (state != "Z").then_some(start)
}

/// Its state, and when it was started.
fn stat_of(pid: i64) -> Option<(String, i64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold blanks and parentheses; 22 is the start, and the third field follows the name.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    Some((fields.first()?.to_string(), fields.get(19)?.parse().ok()?))
}

/// Who of them is alive, each looked at once.
#[derive(Default)]
pub(super) struct Living(HashMap<Owner, bool>);

impl Living {
    pub(super) fn has(&mut self, owner: Owner) -> bool {
        *self.0.entry(owner).or_insert_with(|| owner.is_alive())
    }
}

/// Ends what they run: `going` says whose runs are left of those that are to end. Returns how many processes were told.
///
/// A process that runs one thing gets SIGTERM, which lets it write the end down; a second one, which does not wait for the
/// program; SIGKILL, when it cannot hear, or has not written anything down for long. A service is given the time to look, and is
/// killed when it has not used it.
pub(super) fn stop(owners: &[Owner], going: impl Fn() -> Result<Vec<Owner>, StoreError>) -> Result<usize, StoreError> {
    let held = |owner: &Owner| {
        let fd = pidfd_open(Pid::from_raw(owner.pid as i32)?, PidfdFlags::empty()).ok()?;
        // Looked at after it is held: the number can't be another's now.
        owner.is_alive().then_some((*owner, fd))
    };
    let (services, mut left): (Vec<_>, Vec<_>) =
        owners.iter().filter_map(held).partition(|(owner, _)| owner.is_service);
    let told = services.len() + left.len();
    let ms = Duration::from_millis;
    for (signal, only_halted, patience) in [
        (Signal::TERM, false, ms(300)),
        (Signal::TERM, false, ms(400)),
        (Signal::KILL, true, PATIENCE),
        (Signal::KILL, false, ms(200)),
    ] {
        for (_, fd) in left.iter().filter(|(owner, _)| !only_halted || owner.is_halted()) {
            // ESRCH: it is gone, as it should be.
            let _ = pidfd_send_signal(fd, signal);
        }
        let until = Instant::now() + patience;
        while !left.is_empty() && Instant::now() < until {
            left.retain(|(owner, _)| owner.is_alive());
            std::thread::sleep(ms(5));
        }
    }
    let until = Instant::now() + PATIENCE;
    for (owner, fd) in services {
        while going()?.contains(&owner) && owner.is_alive() {
            if Instant::now() > until {
                // Not the one that this is a part of: it is awake.
                if owner.pid != i64::from(std::process::id()) {
                    let _ = pidfd_send_signal(&fd, Signal::KILL);
                }
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(told)
}
