//! What an observer is told of the run: its start, how it stands at each interval, what is put on record.

use std::time::{Duration, Instant};

use super::State;
use super::judge_limits::Samples;
use super::meters::Meters;
use crate::report::{Moved, Observed, Sample};
use crate::spec::Observer;

/// Of the time that passes, a look that takes longer with more processes has at most one part in so many.
const PARTS: u32 = 500;

#[derive(Default)]
pub(super) struct Observation<'a> {
    observer: Option<Observer<'a>>,
    next: Option<Instant>,
    moved: Paced<Option<Moved>>,
    exact: Paced<u64>,
}

/// The last answer, until enough time has passed for what it took to get.
#[derive(Default)]
struct Paced<T> {
    last: T,
    again: Option<Instant>,
}

impl<T: Copy> Paced<T> {
    fn look(&mut self, now: Instant, look: impl FnOnce(T) -> T) -> T {
        if self.again.is_none_or(|again| now >= again) {
            let begun = Instant::now();
            self.last = look(self.last);
            self.again = Some(now + begun.elapsed() * PARTS);
        }
        self.last
    }
}

impl<'a> Observation<'a> {
    pub(super) fn of(observer: Option<Observer<'a>>) -> Observation<'a> {
        Observation { observer, ..Observation::default() }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    pub(super) fn tell(&self, what: Observed<'_>) {
        if let Some(observer) = &self.observer {
            (observer.tell)(what);
        }
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.next = self.observer.map(|observer| now + observer.every);
        self.tell(Observed::Started);
    }

    /// What the last sample for the limits found, and what only an observer wants to know.
    fn sample(&mut self, now: Instant, samples: &Samples, meters: &Meters) -> Sample {
        let last = samples.last();
        let tasks = (!meters.own_kernel).then_some(last.tasks);
        let (memory, processes) = if meters.has_group() {
            let cache = if last.memory_is_rough { meters.memory_reclaimable() } else { 0 };
            (last.memory.saturating_sub(cache), meters.tasks())
        } else if last.memory_is_rough && last.processes > 1 {
            // Forks share pages, and the sum has them for each: here each is counted once.
            let exact = |_| meters.memory_exact().without_scratch(last.scratch);
            (self.exact.look(now, exact).min(last.memory), tasks)
        } else {
            (last.memory, tasks)
        };
        // What an orphan moved is forgotten with it: the sum can fall, and what was seen was seen.
        let most = |before: Option<Moved>| match (before, meters.moved()) {
            (Some(a), Some(b)) => Some(Moved { read: a.read.max(b.read), written: a.written.max(b.written) }),
            (a, b) => b.or(a),
        };
        Sample {
            cpu: last.cpu,
            memory,
            processes,
            scratch: last.scratch,
            io: self.moved.look(now, most),
            ..Sample::default()
        }
    }
}

impl State<'_> {
    pub(super) fn tell_output(&self, stream: &'static str, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.observation.tell(Observed::Output { stream, at: self.at(), bytes });
        }
    }

    /// After a sample for the limits.
    pub(super) fn observe(&mut self, now: Instant) {
        let Some(every) = self.observation.observer.map(|observer| observer.every) else { return };
        self.observation.next = Some(now + every.max(Duration::from_millis(1)));
        let sample = Sample {
            at: self.started.map_or(Duration::ZERO, |started| now - started),
            stdout: self.stdout.total(),
            stderr: self.stderr.total(),
            ..self.observation.sample(now, &self.samples, &self.meters)
        };
        self.observation.tell(Observed::Sample(sample));
    }
}
