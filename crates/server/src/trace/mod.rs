//! A trace of each run, for a collector that the operator names: OTLP over HTTP, as JSON.
//!
//!   hotcell run                             from the request to the answer, in the caller's trace where he has one
//!     admit  queue  record  admit           its policy; its turn; its record; its plan
//!     compile                               with the stages of its own cell
//!     exec (clone, cgroup, mounts) run collect
//!     record
//!
//! These are the stages of `timings`, with their true times; a stage that came in parts has a span for each. What was built
//! before anybody asked is no part of a trace. Nothing that a program or its author wrote is in a span.

mod export;
mod target;

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use hotcell_contract::{Outcome, Phase, RecordStatus, Tier};
use hotcell_engine::{Program, Stage, Step, Verb};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::convert::Job;
use crate::problem::Problem;
use crate::run::Run;
use crate::service::held;

pub(crate) use export::Exporter;
pub use target::{BadTarget, Target};

/// A verification has a span for each of its checks.
const MAX_SPANS: usize = 128;

/// The caller's own span (W3C Trace Context).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parent {
    trace_id: u128,
    span_id: u64,
    is_sampled: bool,
}

impl Parent {
    /// What cannot be read is as if it were not there: so the specification has it.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Parent> {
        let mut all = headers.get_all("traceparent").iter();
        let (Some(value), None) = (all.next(), all.next()) else { return None };
        Parent::read(value.to_str().ok()?)
    }

    fn read(text: &str) -> Option<Parent> {
        let mut parts = text.split('-');
        let mut hex = |len: usize| {
            let part = parts.next().filter(|part| part.len() == len)?;
            let is_hex = part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            is_hex.then(|| u128::from_str_radix(part, 16).ok())?
        };
        let (version, trace_id, span_id, flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
        // Later versions may say more behind it.
        let is_known = version != 0xff && (version != 0 || parts.next().is_none());
        let is_set = trace_id != 0 && span_id != 0;
        (is_known && is_set).then_some(Parent { trace_id, span_id: span_id as u64, is_sampled: flags & 1 == 1 })
    }
}

/// What one run has told so far.
pub(crate) struct Trace {
    id: u128,
    root: u64,
    parent: Option<u64>,
    name: &'static str,
    language: Option<String>,
    /// One moment by both clocks.
    began: Instant,
    began_at: SystemTime,
    spans: Mutex<Spans>,
}

#[derive(Default)]
struct Spans {
    list: Vec<Span>,
    /// Of ids, which follow each other.
    given: u64,
    dropped: u64,
    ahead: Duration,
}

/// Of one run, as it is sent: a tenth of what it takes before.
pub(crate) struct Told {
    count: usize,
    json: String,
}

struct Span {
    id: u64,
    parent: u64,
    name: &'static str,
    /// Of a check.
    of: Option<String>,
    from: Instant,
    to: Instant,
}

impl Trace {
    /// Of what began then. `None`: whoever has the trace keeps none of it.
    pub(crate) fn new(began: Instant, parent: Option<Parent>, job: &Job) -> Option<Trace> {
        if parent.is_some_and(|parent| !parent.is_sampled) {
            return None;
        }
        let (id, (root, _)) = (Uuid::new_v4().as_u128(), Uuid::new_v4().as_u64_pair());
        let name = match job.verb {
            Verb::Run => "hotcell run",
            Verb::Exec => "hotcell exec",
            Verb::Verify => "hotcell verify",
        };
        let language = match &job.request.program {
            Program::Source { language, .. } => Some(language.name.clone()),
            Program::Command(_) => None,
        };
        let began_at = SystemTime::now().checked_sub(began.elapsed()).unwrap_or(UNIX_EPOCH);
        let (id, parent) = parent.map_or((id, None), |parent| (parent.trace_id, Some(parent.span_id)));
        Some(Trace { id, root, parent, name, language, began, began_at, spans: Mutex::default() })
    }

    /// Something that has just ended.
    pub(crate) fn passed(&self, name: &'static str, from: Instant) {
        self.add(self.root, name, None, from, Instant::now());
    }

    pub(crate) fn checked(&self, check: &Phase, from: Instant) {
        // That of the last tier is the caller's own command.
        let name = if check.tier == Some(Tier::L2) { "L2" } else { &check.name };
        self.add(self.root, "check", Some(name.to_owned()), from, Instant::now());
    }

    pub(crate) fn planned(&self, from: Instant, took: Duration) {
        self.add(self.root, "admit", None, from, from + took);
    }

    /// A cell has ended.
    pub(crate) fn ran(&self, phase: &str, stages: &[Stage]) {
        let Some(exec) = stages.iter().find(|stage| stage.step == Step::Exec) else { return };
        let end = stages.iter().map(|stage| stage.began + stage.took).max().unwrap_or(exec.began);
        let of_phase = match phase {
            "compile" => self.add(self.root, "compile", None, exec.began, end),
            _ => self.root,
        };
        let of_exec = self.add(of_phase, "exec", None, exec.began, exec.began + exec.took);
        for Stage { step, began, took } in stages {
            let to = *began + *took;
            match step {
                Step::Exec => {}
                _ if to <= exec.began => held(&self.spans).ahead += *took,
                Step::Clone | Step::Cgroup | Step::Mounts => {
                    let from = (*began).max(exec.began);
                    held(&self.spans).ahead += from - *began;
                    self.add(of_exec, step.name(), None, from, to);
                }
                Step::Run | Step::Collect => drop(self.add(of_phase, step.name(), None, *began, to)),
            }
        }
    }

    /// Its id.
    fn add(&self, parent: u64, name: &'static str, of: Option<String>, from: Instant, to: Instant) -> u64 {
        let mut spans = held(&self.spans);
        spans.given += 1;
        let id = self.root.wrapping_add(spans.given).max(1);
        if spans.list.len() < MAX_SPANS {
            spans.list.push(Span { id, parent, name, of, from, to });
        } else {
            spans.dropped += 1;
        }
        id
    }

    /// For the log.
    pub(crate) fn id(&self) -> String {
        format!("{:032x}", self.id)
    }

    /// All of it, in the words of OTLP.
    pub(crate) fn finish(&self, run: &Run, status: RecordStatus, result: Result<&Outcome, &Problem>) -> Told {
        let Spans { list, dropped, ahead, .. } = std::mem::take(&mut *held(&self.spans));
        let class = match result {
            Ok(outcome) => outcome.failure_class,
            Err(problem) => problem.failure_class,
        };
        let class = class.map(|class| format!("{class:?}"));
        let words = [
            ("hotcell.run_id", Some(run.id.as_str())),
            ("hotcell.tenant", Some(&run.tenant)),
            ("hotcell.policy", Some(&run.policy_id)),
            ("hotcell.language", self.language.as_deref()),
            ("hotcell.status", Some(status.name())),
            ("hotcell.failure_class", class.as_deref()),
            ("hotcell.problem", result.err().map(|problem| problem.kind)),
        ];
        let numbers = [
            ("hotcell.exit_code", result.ok().and_then(|outcome| outcome.exit_code).map(i64::from)),
            ("hotcell.cpu_ms", result.ok().map(|outcome| outcome.usage.cpu_ms as i64)),
            ("hotcell.memory_peak_bytes", result.ok().map(|outcome| outcome.usage.memory_peak_bytes as i64)),
            ("hotcell.built_ahead_us", Some(ahead.as_micros() as i64).filter(|us| *us > 0)),
            ("hotcell.spans_dropped", Some(dropped as i64).filter(|n| *n > 0)),
        ];
        let words = words.into_iter().filter_map(|(key, word)| Some(attribute(key, word?)));
        let numbers = numbers.into_iter().filter_map(|(key, number)| {
            // As the specification writes 64 bits.
            Some(json!({ "key": key, "value": { "intValue": number?.to_string() } }))
        });
        let mut root = self.span(self.root, self.name, self.began, Instant::now());
        root["kind"] = json!(SERVER);
        root["attributes"] = words.chain(numbers).collect();
        if let Some(parent) = self.parent {
            root["parentSpanId"] = json!(hex(parent));
        }
        if result.is_err_and(|problem| problem.status.is_server_error()) {
            root["status"] = json!({ "code": ERROR });
        }
        let of_stage = |span: &Span| {
            let mut shown = self.span(span.id, span.name, span.from, span.to);
            shown["parentSpanId"] = json!(hex(span.parent));
            if let Some(check) = &span.of {
                shown["attributes"] = json!([attribute("hotcell.check", check)]);
            }
            shown
        };
        let spans: Vec<String> =
            std::iter::once(root).chain(list.iter().map(of_stage)).map(|span| span.to_string()).collect();
        Told { count: spans.len(), json: spans.join(",") }
    }

    fn span(&self, id: u64, name: &str, from: Instant, to: Instant) -> Value {
        json!({
            "traceId": self.id(),
            "spanId": hex(id),
            "name": name,
            "kind": INTERNAL,
            "startTimeUnixNano": self.nanos(from),
            "endTimeUnixNano": self.nanos(to),
        })
    }

    fn nanos(&self, at: Instant) -> String {
        let since = self.began_at.duration_since(UNIX_EPOCH).unwrap_or_default() + (at - self.began);
        since.as_nanos().to_string()
    }
}

const INTERNAL: u32 = 1;
const SERVER: u32 = 2;
const ERROR: u32 = 2;

fn hex(id: u64) -> String {
    format!("{id:016x}")
}

fn attribute(key: &str, word: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": word } })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_parent_is_what_the_specification_says_and_nothing_else() {
        let good = Parent::read(GOOD).expect("it is one");
        assert_eq!(good.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!((good.span_id, good.is_sampled), (0xb7ad_6b71_6920_3331, true));
        assert!(!Parent::read(&GOOD.replace("-01", "-00")).expect("not sampled").is_sampled);
        assert!(Parent::read(&format!("{}-more", GOOD.replace("00-0a", "cc-0a"))).is_some(), "a later version");
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(Parent::read(bad), None, "{bad}");
        }
    }
}
