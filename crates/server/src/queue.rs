//! Who comes next: bounded, and fair between tenants. Each tenant has a line of its own; they are served in turn.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::convert::Job;
use crate::run::Run;

/// A run that waits for its turn.
pub(crate) struct Queued {
    pub(crate) run: Arc<Run>,
    pub(crate) job: Job,
    pub(crate) since: Instant,
    /// After this nobody waits for it any more.
    pub(crate) until: Instant,
}

impl Queued {
    /// Its turn has come, or will not.
    pub(crate) fn waited(&self) {
        self.run.trace.iter().for_each(|trace| trace.passed("queue", self.since));
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    /// In the order of their turns; no line is empty.
    lines: VecDeque<(String, VecDeque<Queued>)>,
    len: usize,
    bytes: usize,
}

/// Why there is no place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Queue,
    Tenant,
    Bytes,
}

fn bytes_of(line: &VecDeque<Queued>) -> usize {
    line.iter().map(|queued| queued.job.bytes).sum()
}

impl Queue {
    /// `most` in all, `most_of_tenant` of one, and so many bytes.
    pub(crate) fn push(
        &mut self,
        queued: Queued,
        most: usize,
        most_of_tenant: usize,
        most_bytes: usize,
    ) -> Result<(), (Full, Box<Queued>)> {
        let line = self.lines.iter_mut().find(|(tenant, _)| *tenant == queued.run.tenant);
        let full = match &line {
            _ if self.len >= most => Some(Full::Queue),
            Some((_, line)) if line.len() >= most_of_tenant => Some(Full::Tenant),
            _ if self.bytes + queued.job.bytes > most_bytes => Some(Full::Bytes),
            // As of its places: half of them is one tenant's.
            Some((_, line)) if bytes_of(line) + queued.job.bytes > most_bytes / 2 => Some(Full::Bytes),
            _ => None,
        };
        if let Some(full) = full {
            return Err((full, Box::new(queued)));
        }
        self.len += 1;
        self.bytes += queued.job.bytes;
        match line {
            Some((_, line)) => line.push_back(queued),
            None => self.lines.push_back((queued.run.tenant.clone(), VecDeque::from([queued]))),
        }
        Ok(())
    }

    /// The first of the tenant whose turn it is, who then goes to the end.
    pub(crate) fn pop(&mut self) -> Option<Queued> {
        let (tenant, mut line) = self.lines.pop_front()?;
        let next = line.pop_front()?;
        if !line.is_empty() {
            self.lines.push_back((tenant, line));
        }
        self.gone(&next);
        Some(next)
    }

    /// Takes out what nobody waits for any more.
    pub(crate) fn expired(&mut self, now: Instant) -> Vec<Queued> {
        self.take(|queued| queued.until <= now)
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Queued> {
        self.take(|queued| queued.run.id == id).pop()
    }

    pub(crate) fn drain(&mut self) -> Vec<Queued> {
        self.take(|_| true)
    }

    fn take(&mut self, which: impl Fn(&Queued) -> bool) -> Vec<Queued> {
        let mut taken = vec![];
        for (_, line) in &mut self.lines {
            for _ in 0..line.len() {
                match line.pop_front() {
                    Some(queued) if which(&queued) => taken.push(queued),
                    Some(queued) => line.push_back(queued),
                    None => {}
                }
            }
        }
        self.lines.retain(|(_, line)| !line.is_empty());
        taken.iter().for_each(|queued| self.gone(queued));
        taken
    }

    fn gone(&mut self, queued: &Queued) {
        self.len -= 1;
        self.bytes -= queued.job.bytes;
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
