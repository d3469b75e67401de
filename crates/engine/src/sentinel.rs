//! The sentinel: makes events of what the supervisor sees, raises alerts before a limit is met, and keeps the averages.
//!
//! It looks at a run at least every 100 ms and tells of it as often as it was asked to. Whoever is told must not wait: see
//! [`hotcell_sandbox::Observer`].

use std::cell::RefCell;
use std::time::Duration;

use hotcell_contract::{
    Admitted, Alert, Averages, Denied, FailureClass, Finished, Happened, Limits, Outcome, RecordStatus, Resource,
    RunEvent, Said, Sample, Started, Status,
};
use hotcell_sandbox::{self as sandbox, Observed, Observer};

use crate::state::{Audit, AuditError};
use crate::{outcome, state};

/// How a run is watched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watch {
    /// Between two SAMPLE events.
    pub every: Duration,
    /// The share of a limit at which there is an alert.
    pub alert_at: f64,
    /// Whether what the program says is told too.
    pub output: bool,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { every: Duration::from_millis(100), alert_at: 0.8, output: false }
    }
}

impl Watch {
    pub const EVERY: std::ops::RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(60);
    pub const ALERT_AT: std::ops::RangeInclusive<f64> = 0.01..=1.0;
}

/// However seldom samples are told, alerts are not to come later than this.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A limit of time is looked at so often before it is met.
const LOOKS: u32 = 20;
/// Processor time is counted in ticks of 10 ms on some hosts: what is shorter than this says nothing about cores.
const CORES_OVER: Duration = Duration::from_millis(95);

/// Watches one request, in the thread that runs it.
pub struct Sentinel<'a> {
    request_id: String,
    watch: Watch,
    tell: &'a dyn Fn(RunEvent),
    seen: RefCell<Seen>,
}

/// Of the phase that is going.
#[derive(Default)]
struct Seen {
    phase: Option<&'static str>,
    at: Duration,
    /// At the last sample.
    sampled: Duration,
    told: Option<Duration>,
    alerted: Vec<Resource>,
    samples: u64,
    memory: f64,
    processes: f64,
    counted: u64,
    processes_peak: Option<u64>,
    cpu: Duration,
    /// Where the present measure of cores begins.
    cores_from: (Duration, Duration),
    cores: Option<f64>,
    cores_peak: Option<f64>,
    stdout: Speech,
    stderr: Speech,
}

/// How much of a stream was told.
#[derive(Default)]
struct Speech {
    told: u64,
    /// The beginning of a character whose end is to come.
    held: Vec<u8>,
}

impl Speech {
    /// What can be told now.
    fn take(&mut self, stream: &str, bytes: &[u8], is_last: bool) -> Option<Said> {
        self.held.extend_from_slice(bytes);
        let whole = if is_last { self.held.len() } else { whole_characters(&self.held) };
        let rest = self.held.split_off(whole);
        let said = std::mem::replace(&mut self.held, rest);
        let offset = self.told;
        self.told += said.len() as u64;
        let text = || String::from_utf8_lossy(&said).into_owned();
        (!said.is_empty()).then(|| Said { stream: stream.to_owned(), offset, text: text() })
    }
}

/// Without the beginning of a character at the end. What is no UTF-8 at all waits for nothing.
fn whole_characters(bytes: &[u8]) -> usize {
    let cut = |e: std::str::Utf8Error| if e.error_len().is_none() { Some(e.valid_up_to()) } else { None };
    let tail = bytes.len().saturating_sub(4);
    // The last byte with which a character can begin: no character is longer than four.
    let start = (tail..bytes.len()).rev().find(|at| bytes[*at] & 0xC0 != 0x80).unwrap_or(bytes.len());
    let end = std::str::from_utf8(&bytes[start..]).err().and_then(cut);
    end.map_or(bytes.len(), |valid| start + valid)
}

impl<'a> Sentinel<'a> {
    pub fn new(request_id: &str, watch: Watch, tell: &'a dyn Fn(RunEvent)) -> Sentinel<'a> {
        Sentinel { request_id: request_id.to_owned(), watch, tell, seen: RefCell::default() }
    }

    fn say(&self, happened: Happened) {
        let event = {
            let seen = self.seen.borrow();
            RunEvent {
                at: state::now(),
                request_id: self.request_id.clone(),
                phase: seen.phase.map(str::to_owned),
                since_start_ms: seen.at.as_millis() as u64,
                happened,
            }
        };
        (self.tell)(event);
    }

    /// It may begin.
    pub fn admitted(&self) {
        let sample_every_ms = self.watch.every.as_millis() as u64;
        self.say(Happened::Admitted(Admitted { sample_every_ms, alert_at: self.watch.alert_at }));
    }

    /// It may not.
    pub fn denied(&self, failure_class: FailureClass, message: &str) {
        self.say(Happened::Denied(Denied { failure_class, message: message.to_owned() }));
    }

    /// The last word.
    pub fn ended(&self, outcome: &Outcome) {
        let finished = Finished {
            status: outcome.status,
            failure_class: outcome.failure_class,
            terminal_event: outcome.terminal_event,
            exit_code: outcome.exit_code,
            signal: outcome.signal,
            message: outcome.message.clone(),
            usage: Some(outcome.usage),
            averages: self.averages(),
        };
        self.seen.borrow_mut().at = Duration::from_millis(outcome.usage.wall_ms);
        self.hear("stdout", &[], true);
        self.hear("stderr", &[], true);
        self.say(match state::status_of(outcome) {
            RecordStatus::Timeout => Happened::Timeout(finished),
            RecordStatus::Killed => Happened::Killed(finished),
            _ => Happened::Finished(finished),
        });
    }

    /// The last word about a run that could not be carried out.
    pub fn failed(&self, why: &str) {
        self.say(Happened::Finished(Finished {
            status: Status::Fail,
            failure_class: Some(FailureClass::SetupFailure),
            terminal_event: None,
            exit_code: None,
            signal: None,
            message: Some(why.to_owned()),
            usage: None,
            averages: self.averages(),
        }));
    }

    pub fn averages(&self) -> Averages {
        let seen = self.seen.borrow();
        let over = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        Averages {
            memory_average_bytes: over(seen.memory, seen.samples).map(|bytes| bytes as u64),
            cpu_cores_average: (seen.samples > 0).then(|| rounded(seen.cpu.as_secs_f64() / seen.sampled.as_secs_f64())),
            cpu_cores_peak: seen.cores_peak.or(seen.cores),
            processes_average: over(seen.processes, seen.counted).map(rounded),
            processes_peak: seen.processes_peak,
        }
    }

    /// Between two looks: a whole part of what was asked for, and short beside a limit of time.
    fn look_every(&self, limits: &sandbox::Limits) -> Duration {
        let times = [Some(limits.wall), limits.cpu_time].into_iter().flatten().map(|limit| limit / LOOKS);
        let longest = times.fold(LOOK_EVERY, Duration::min).max(*Watch::EVERY.start());
        let parts = self.watch.every.as_nanos().div_ceil(longest.as_nanos()).max(1);
        self.watch.every / u32::try_from(parts).unwrap_or(u32::MAX)
    }

    pub(crate) fn see(&self, phase: &'static str, limits: &sandbox::Limits, what: Observed<'_>) {
        match what {
            Observed::Started => {
                self.seen.replace(Seen { phase: Some(phase), ..Seen::default() });
                self.say(Happened::Started(Started { limits: as_told(limits) }));
            }
            Observed::Violation(violation) => {
                self.seen.borrow_mut().at = violation.at;
                self.say(Happened::Violation(outcome::violation(violation)));
            }
            Observed::Sample(sample) => self.sample(limits, &sample),
            Observed::Output { stream, at, bytes } if self.watch.output => {
                self.seen.borrow_mut().at = at;
                self.hear(stream, bytes, false);
            }
            Observed::Output { .. } => {}
        }
    }

    fn hear(&self, stream: &str, bytes: &[u8], is_last: bool) {
        let said = {
            let mut seen = self.seen.borrow_mut();
            let speech = if stream == "stdout" { &mut seen.stdout } else { &mut seen.stderr };
            speech.take(stream, bytes, is_last)
        };
        if let Some(said) = said {
            self.say(Happened::Output(said));
        }
    }

    fn sample(&self, limits: &sandbox::Limits, sample: &sandbox::Sample) {
        let slack = self.look_every(limits) / 2;
        let (cores, is_due) = {
            let mut seen = self.seen.borrow_mut();
            seen.count(sample);
            let is_due = sample.at + slack >= seen.told.unwrap_or_default() + self.watch.every;
            if is_due {
                seen.told = Some(sample.at);
            }
            (seen.cores, is_due)
        };
        if is_due {
            self.say(Happened::Sample(Sample {
                cpu_ms: sample.cpu.as_millis() as u64,
                cpu_cores: cores,
                memory_bytes: sample.memory,
                processes: sample.processes,
                scratch_bytes: sample.scratch,
                stdout_bytes: sample.stdout,
                stderr_bytes: sample.stderr,
                io_read_bytes: sample.io.map(|io| io.read),
                io_written_bytes: sample.io.map(|io| io.written),
            }));
        }
        for (resource, limit, observed) in measured(limits, sample) {
            let share = observed as f64 / limit as f64;
            if share < self.watch.alert_at || self.seen.borrow().alerted.contains(&resource) {
                continue;
            }
            self.seen.borrow_mut().alerted.push(resource);
            self.say(Happened::Alert(Alert { resource, limit, observed, share: rounded(share) }));
        }
    }
}

impl Seen {
    fn count(&mut self, sample: &sandbox::Sample) {
        (self.at, self.sampled, self.cpu) = (sample.at, sample.at, sample.cpu);
        self.samples += 1;
        self.memory += sample.memory as f64;
        if let Some(processes) = sample.processes {
            self.counted += 1;
            self.processes += processes as f64;
            self.processes_peak = self.processes_peak.max(Some(processes));
        }
        let (from, before) = self.cores_from;
        let passed = sample.at.saturating_sub(from);
        if passed >= CORES_OVER {
            let cores = rounded(sample.cpu.saturating_sub(before).as_secs_f64() / passed.as_secs_f64());
            self.cores = Some(cores);
            self.cores_peak = Some(self.cores_peak.map_or(cores, |peak| peak.max(cores)));
            self.cores_from = (sample.at, sample.cpu);
        }
    }
}

/// The name under which an alert is in the audit log: the stream's own.
const ALERT: &str = "resource_event.ALERT";

/// Writes an alert down with the record that it belongs to. Other events are not kept there.
pub fn audit_alert(audit: &Audit, record_id: &str, event: &RunEvent) -> Result<(), AuditError> {
    let Happened::Alert(alert) = &event.happened else { return Ok(()) };
    let mut data = serde_json::to_value(alert).unwrap_or_default();
    data["record_id"] = record_id.into();
    data["request_id"] = event.request_id.as_str().into();
    data["phase"] = event.phase.as_deref().into();
    data["since_start_ms"] = event.since_start_ms.into();
    audit.append(ALERT, data)
}

/// What has a limit, the limit, and how it stands.
fn measured(limits: &sandbox::Limits, sample: &sandbox::Sample) -> Vec<(Resource, u64, u64)> {
    let ms = |time: Duration| time.as_millis() as u64;
    // One process is the program itself: where it may have no more, nothing is said by its being there.
    let processes = sample.processes.filter(|_| limits.processes > 1);
    let all = [
        Some((Resource::WallTime, ms(limits.wall), ms(sample.at))),
        limits.cpu_time.map(|limit| (Resource::CpuTime, ms(limit), ms(sample.cpu))),
        Some((Resource::Memory, limits.memory, sample.memory)),
        processes.map(|processes| (Resource::Processes, limits.processes, processes)),
        Some((Resource::Scratch, limits.scratch, sample.scratch)),
        Some((Resource::Output, limits.output, sample.stdout.max(sample.stderr))),
    ];
    // A limit of nothing is met by nothing.
    all.into_iter().flatten().filter(|(_, limit, _)| *limit > 0).collect()
}

fn as_told(limits: &sandbox::Limits) -> Limits {
    Limits {
        wall_ms: limits.wall.as_millis() as u64,
        grace_ms: limits.grace.as_millis() as u64,
        cpu_ms: limits.cpu_time.map(|time| time.as_millis() as u64),
        cpus: limits.milli_cpus as f64 / 1000.0,
        memory_bytes: limits.memory,
        processes: limits.processes,
        open_files: limits.open_files,
        file_size_bytes: limits.file_size,
        scratch_bytes: limits.scratch,
        scratch_inodes: limits.scratch_inodes,
        output_bytes: limits.output,
    }
}

/// Three places are enough for people and for machines.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// What a cell's streams carry for a sentinel; `tell` is to call its `see`.
pub(crate) fn observer<'a>(
    sentinel: Option<&Sentinel<'_>>,
    limits: &sandbox::Limits,
    tell: &'a dyn Fn(Observed<'_>),
) -> Option<Observer<'a>> {
    sentinel.map(|sentinel| Observer { every: sentinel.look_every(limits), tell })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_told_in_whole_characters() {
        let mut speech = Speech::default();
        let mut told = vec![];
        let mut hear = |bytes: &[u8], is_last| told.extend(speech.take("stdout", bytes, is_last));
        hear("a\u{20ac}".as_bytes().split_at(2).0, false);
        hear("a\u{20ac}".as_bytes().split_at(2).1, false);
        hear(b"\xff\xf0\x9f", false);
        hear(b"\x98\x80\xe2", false);
        hear(b"", true);
        let told: Vec<(u64, &str)> = told.iter().map(|said| (said.offset, said.text.as_str())).collect();
        assert_eq!(told, [(0, "a"), (1, "\u{20ac}"), (4, "\u{fffd}"), (5, "\u{1f600}"), (9, "\u{fffd}")]);
    }
}
