//! Numbers for Prometheus, in its text format: a few counters and histograms of our own need no library.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hotcell_contract::{Outcome, RecordStatus};

use crate::problem::Problem;
use crate::service::Service;
use crate::trace::Exporter;

/// Seconds: from a cell that is there already to a compiler's two minutes.
const BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0, 180.0];

#[derive(Default)]
pub(crate) struct Metrics {
    /// By status and failure class.
    runs: Mutex<BTreeMap<(String, String), u64>>,
    /// By kind.
    refusals: Mutex<BTreeMap<String, u64>>,
    stages: Mutex<BTreeMap<&'static str, Histogram>>,
    /// By method, route and status.
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
    pub(crate) connections: AtomicU64,
}

#[derive(Default)]
struct Histogram {
    counts: [u64; BOUNDS.len()],
    sum: f64,
    count: u64,
}

impl Metrics {
    pub(crate) fn ended(&self, status: RecordStatus, result: &Result<Box<Outcome>, Problem>) {
        let class = match result {
            Ok(outcome) => outcome.failure_class,
            Err(problem) => problem.failure_class,
        };
        let class = class.map(|class| format!("{class:?}")).unwrap_or_default();
        *self.runs.lock().unwrap_or_else(PoisonError::into_inner).entry((status.name().into(), class)).or_default() +=
            1;
        let Ok(outcome) = result else { return };
        let timings = &outcome.timings;
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, micros) in [
            ("admit", timings.admit),
            ("cgroup", timings.cgroup),
            ("clone", timings.clone),
            ("mounts", timings.mounts),
            ("exec", timings.exec),
            ("run", timings.run),
            ("collect", timings.collect),
            ("record", timings.record),
        ] {
            stages.entry(name).or_default().add(micros as f64 / 1e6);
        }
    }

    pub(crate) fn refused(&self, problem: &Problem) {
        let kind = problem.failure_class.map_or_else(|| problem.kind.to_owned(), |class| format!("{class:?}"));
        *self.refusals.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }

    /// `route` is one of ours, never what a client wrote: their number is bounded.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((method.to_owned(), route.to_owned(), status)).or_default() += 1;
    }

    pub(crate) fn text(&self, service: &Service) -> String {
        let mut out = String::new();
        let (running, waiting) = service.load();
        gauge(&mut out, "hotcell_cells", "Runs that are going.", running as u64);
        gauge(&mut out, "hotcell_queue_depth", "Runs that wait for their turn.", waiting as u64);
        let connections = self.connections.load(Ordering::Relaxed);
        gauge(&mut out, "hotcell_connections", "Connections that are open.", connections);
        head(&mut out, "hotcell_runs_total", "counter", "Runs that have ended, by status and failure class.");
        for ((status, class), count) in &*self.runs.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = writeln!(out, "hotcell_runs_total{{status=\"{status}\",failure_class=\"{class}\"}} {count}");
        }
        head(&mut out, "hotcell_refusals_total", "counter", "Runs that were refused, by reason.");
        for (kind, count) in &*self.refusals.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = writeln!(out, "hotcell_refusals_total{{reason=\"{kind}\"}} {count}");
        }
        head(&mut out, "hotcell_http_requests_total", "counter", "Requests, by method, route and status.");
        for ((method, route, status), count) in &*self.requests.lock().unwrap_or_else(PoisonError::into_inner) {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            let _ = writeln!(out, "hotcell_http_requests_total{{{labels}}} {count}");
        }
        if let Some((sent, dropped)) = service.traces.as_ref().map(Exporter::counts) {
            head(&mut out, "hotcell_trace_spans_total", "counter", "Spans, by what became of them.");
            let _ = writeln!(out, "hotcell_trace_spans_total{{became=\"sent\"}} {sent}");
            let _ = writeln!(out, "hotcell_trace_spans_total{{became=\"dropped\"}} {dropped}");
        }
        head(&mut out, "hotcell_stage_seconds", "histogram", "What the stages of runs took.");
        for (stage, histogram) in &*self.stages.lock().unwrap_or_else(PoisonError::into_inner) {
            histogram.write(&mut out, "hotcell_stage_seconds", stage);
        }
        out
    }
}

impl Histogram {
    fn add(&mut self, seconds: f64) {
        for (count, bound) in self.counts.iter_mut().zip(BOUNDS) {
            *count += u64::from(seconds <= bound);
        }
        self.sum += seconds;
        self.count += 1;
    }

    fn write(&self, out: &mut String, name: &str, stage: &str) {
        for (count, bound) in self.counts.iter().zip(BOUNDS) {
            let _ = writeln!(out, "{name}_bucket{{stage=\"{stage}\",le=\"{bound}\"}} {count}");
        }
        let _ = writeln!(out, "{name}_bucket{{stage=\"{stage}\",le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(out, "{name}_sum{{stage=\"{stage}\"}} {}", self.sum);
        let _ = writeln!(out, "{name}_count{{stage=\"{stage}\"}} {}", self.count);
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn gauge(out: &mut String, name: &str, help: &str, value: u64) {
    head(out, name, "gauge", help);
    let _ = writeln!(out, "{name} {value}");
}
