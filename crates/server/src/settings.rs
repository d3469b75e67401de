//! What the operator says about the service, and the bounds that nobody can change.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::trace::Target;

/// A request is sources, which people write, and data beside them: more belongs elsewhere.
pub(crate) const MAX_BODY: usize = 32 << 20;
/// Values in it: a request has a few hundred.
pub(crate) const MAX_MARKS: usize = 100_000;
/// Of all bodies that are being read or wait in the queue: what strangers can make us hold in memory.
pub(crate) const MAX_BODIES: usize = 256 << 20;
/// Of one tenant: half of all.
pub(crate) const MAX_BODIES_OF_TENANT: usize = MAX_BODIES / 2;
/// Of a message of MCP, which is in memory several times before it is understood: an agent writes far less, and who has more has
/// `/v1/runs`.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;
/// So it counts for more than another body.
pub(crate) const MESSAGE_WEIGHT: usize = 8;
/// A head is a key and a few names.
pub(crate) const MAX_HEAD: usize = 32 << 10;
pub(crate) const MAX_HEADERS: usize = 64;
/// Who takes longer for a head, or leaves a connection idle for so long, holds it for nothing.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(20);
/// A body of the largest size within it is 1 MiB/s.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);
/// Who takes nothing of an answer, or of a stream, for so long is gone, or wishes us ill.
pub(crate) const WRITE_TIME: Duration = Duration::from_secs(60);
/// Input of an attached program that it has not read: behind more of it, nothing is heard of who writes it.
pub(crate) const MAX_WAITING: usize = 1 << 20;
/// Streams of events and attached terminals cost a connection each for as long as somebody likes.
pub(crate) const MAX_STREAMS: usize = 512;
/// Of one tenant: half of all, so that nobody has all of them.
pub(crate) const MAX_STREAMS_OF_TENANT: usize = MAX_STREAMS / 2;
/// A comment so often keeps an idle stream alive, and finds out that its reader is gone.
pub(crate) const STREAM_PULSE: Duration = Duration::from_secs(15);
/// So often the key of who watches is looked at.
pub(crate) const KEY_PULSE: Duration = Duration::from_secs(1);
/// What a run has open at once in this process, with room to spare: pipes, sockets, a listener, its scratch.
pub(crate) const FILES_OF_RUN: u64 = 32;
/// Databases, logs, results that are read.
pub(crate) const FILES_OF_OURS: u64 = 128;
/// More would be idle ones.
pub(crate) const MAX_CONNECTIONS: u64 = 4096;
/// How often expired jobs are looked for, and old results.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_millis(250);
/// Runs that have ended and whose events can still be read: a megabyte and a half each, at most.
pub(crate) const REMEMBERED: usize = 128;
/// So long a thread waits for another run before it goes: to make one takes as long as a good part of a short run.
pub(crate) const IDLE_THREAD: Duration = Duration::from_secs(10);
/// Threads for calls that wait: for disks, mostly.
pub(crate) const BLOCKING_THREADS: usize = 64;
/// A header of ours, or of anybody's who asks twice: a UUID has 36.
pub(crate) const MAX_IDEMPOTENCY_KEY: usize = 255;

pub struct Settings {
    pub listen: SocketAddr,
    pub state_dir: PathBuf,
    /// Where `hotcell.toml` is looked for when the state directory has none.
    pub config_dir: Option<PathBuf>,
    /// Where compiled programs are kept, in a directory for each tenant: what one has compiled must not tell another.
    pub cache: Option<PathBuf>,
    /// Runs at once.
    pub concurrency: usize,
    /// Runs that wait.
    pub queue: usize,
    /// Of a caller who has none of his own.
    pub policy: String,
    /// Nothing: nobody comes back for what has ended. Only one service may keep something in a state directory.
    pub keep: Option<Keep>,
    /// Who is told how each run went.
    pub traces: Option<Target>,
    /// How long runs may go on after the service was told to end.
    pub grace: Duration,
}

/// How much is kept of runs that have ended: the oldest go first.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    pub runs: usize,
    pub time: Duration,
    /// Results and artifacts together.
    pub bytes: u64,
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { runs: 10_000, time: Duration::from_secs(24 * 3600), bytes: 4 << 30 }
    }
}

impl Settings {
    /// Of one tenant, where others wait too: half of the queue, so that one cannot fill it.
    pub(crate) fn queue_of_tenant(&self) -> usize {
        (self.queue / 2).max(1)
    }
}
