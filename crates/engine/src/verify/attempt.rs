//! One attempt: every check in its order, and what follows from them together.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotcell_contract::{
    FailureClass, Limits, Outcome, Phase, RetryClass, SkippedCheck, Status, TerminalEvent, Tests, Tier,
};
use hotcell_languages::{
    self as languages, Host, Language, PlannedCheck, Preparation, Ready, ReadyCheck, Results, ResultsFormat,
};
use hotcell_sandbox::{Egress, End, Launcher, Report, Spec, Streams};

use super::results::{self, Format};
use super::{Asked, Budget, Told};
use crate::build::{prepared, use_prepared};
use crate::cache::Cache;
use crate::egress;
use crate::execute::{ExecuteError, broker};
use crate::judge::{self, Verdict, judge};
use crate::outcome::{Toolchain, outcome, phase};
use crate::plan::{PlanError, check_spec, plan_sources, preparation_spec};
use crate::request::{Program, Request, Source};

/// What of a check's output is kept; test runners have much to say.
const KEEP: usize = 8 << 20;
const MAX_RESULTS: u64 = 16 << 20;

/// A check that was carried out.
struct Done {
    spec: Spec,
    report: Report,
    verdict: Verdict,
    /// Of what it printed.
    format: Option<Format>,
    flaky: bool,
}

struct Attempt<'a> {
    launcher: &'a Launcher,
    request: &'a Request,
    asked: &'a Asked<'a>,
    budget: &'a mut Budget,
    cell: Spec,
    /// What the toolchain needs made once.
    prepared: Option<(PathBuf, Preparation)>,
    phases: Vec<Phase>,
    skipped: Vec<SkippedCheck>,
    /// The first that failed, else the last.
    decisive: Option<Done>,
    /// The highest tier of which something was carried out and nothing failed.
    passed: Option<Tier>,
    failed: Option<Tier>,
    /// Groups of which one has run.
    groups: Vec<String>,
    /// Of all checks.
    egress: egress::Log,
    out_of_time: bool,
    cancelled: bool,
}

pub(super) fn attempt(
    launcher: &Launcher,
    request: &Request,
    asked: &Asked<'_>,
    budget: &mut Budget,
) -> Result<Outcome, ExecuteError> {
    let Program::Source { language, source, .. } = &request.program else {
        return Err(PlanError::NoProgram.into());
    };
    if request.capsule.is_some() {
        return Err(PlanError::CapsuleOfWhat.into());
    }
    let created_at = jiff::Timestamp::now().to_string();
    let (cell, sources) = plan_sources(request, source)?;
    let checks = languages::checks(language, &sources, request.limits.memory_bytes, &Host::this());
    let tools = languages::tools(language, &Host::this()).map_err(PlanError::from)?;
    let program = tools.first().map(|(_, found)| found.binary.display().to_string()).unwrap_or_default();
    let toolchain = Toolchain { language: language.name.clone(), program };
    let prepared = prepare(launcher, request, asked, language, &tools)?;
    let before = budget.left;
    let mut all = Attempt {
        launcher,
        request,
        asked,
        budget,
        cell,
        prepared,
        phases: vec![],
        skipped: vec![],
        decisive: None,
        passed: None,
        failed: None,
        groups: vec![],
        egress: egress::Log::default(),
        out_of_time: false,
        cancelled: false,
    };
    for tier in [Tier::L0, Tier::L1] {
        let name = if tier == Tier::L0 { "L0" } else { "L1" };
        for check in checks.iter().filter(|check| check.tier == name) {
            all.check(tier, check)?;
        }
        all.close(tier);
        if tier == Tier::L1 && !checks.iter().any(|check| check.tier == "L1") {
            all.skip("unit tests", format!("no test runner is known for {}", language.name));
        }
    }
    all.l2(&tools)?;
    let spent = before.saturating_sub(all.budget.left);
    let mut outcome = all.outcome(&toolchain, source, spent)?;
    outcome.created_at = created_at;
    Ok(outcome)
}

/// Outside the budget: it is no work of this request's.
fn prepare(
    launcher: &Launcher,
    request: &Request,
    asked: &Asked<'_>,
    language: &Language,
    tools: &languages::Tools,
) -> Result<Option<(PathBuf, Preparation)>, ExecuteError> {
    let Some(preparation) = languages::preparation(language, tools).map_err(PlanError::from)? else { return Ok(None) };
    let spec = preparation_spec(request, &preparation, tools)?;
    let cache = request.cache.as_deref().and_then(Cache::open);
    let tell = || (asked.tell)(Told::Begins("preparing the toolchain"));
    prepared(launcher, cache.as_ref(), &spec, preparation, &languages::identity(tools), asked.cancel, &tell)
}

impl Attempt<'_> {
    fn skip(&mut self, check: &str, reason: String) {
        let skipped = SkippedCheck { check: check.to_owned(), reason };
        (self.asked.tell)(Told::Skipped(&skipped));
        self.skipped.push(skipped);
    }

    fn close(&mut self, tier: Tier) {
        let ran = self.phases.iter().any(|phase| phase.tier == Some(tier));
        if ran && self.failed.is_none() && !self.out_of_time {
            self.passed = Some(tier);
        }
    }

    fn check(&mut self, tier: Tier, check: &PlannedCheck) -> Result<(), ExecuteError> {
        if let Some(failed) = self.failed.filter(|failed| *failed < tier) {
            self.skip(&check.name, format!("{failed:?} failed"));
            return Ok(());
        }
        if check.group.as_ref().is_some_and(|group| self.groups.contains(group)) {
            self.skip(&check.name, "another runner has run the tests".into());
            return Ok(());
        }
        let ready = match &check.step {
            Ok(ready) => ready,
            Err(reason) => {
                self.skip(&check.name, reason.clone());
                return Ok(());
            }
        };
        if self.is_out_of_time(&check.name) {
            return Ok(());
        }
        if let Some(probe) = &ready.probe
            && !self.is_there(probe, ready)?
        {
            let tool = probe.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
            self.skip(&check.name, format!("it is not installed for {tool}"));
            return Ok(());
        }
        if self.cancelled {
            self.skip(&check.name, "the run was called off".into());
            return Ok(());
        }
        let class = match (&check.class, tier) {
            (Some(class), _) if class == "SyntaxError" => FailureClass::SyntaxError,
            (_, Tier::L0) => FailureClass::CompileError,
            _ => FailureClass::TestFailure,
        };
        self.carry_out(tier, check, ready, class)
    }

    fn is_out_of_time(&mut self, name: &str) -> bool {
        if self.budget.left < Duration::from_millis(1) {
            self.out_of_time = true;
            self.skip(name, format!("the budget of {:?} is used up", self.asked.budget));
        }
        self.out_of_time
    }

    /// The time of one check, but never more than is left.
    fn limits(&self) -> Limits {
        let left = self.budget.left.as_millis().max(1) as u64;
        Limits { wall_ms: self.request.limits.wall_ms.min(left), ..self.request.limits.clone() }
    }

    fn is_there(&mut self, probe: &Ready, ready: &ReadyCheck) -> Result<bool, ExecuteError> {
        let spec = check_spec(&self.cell, probe.clone(), &ready.tools, &self.limits())?;
        let report = self.budget.spend(|| self.launcher.run(&spec, Streams::default()))?;
        Ok(report.end == End::Exited(0))
    }

    /// Runs it, as often as was asked for where it is tests.
    fn carry_out(
        &mut self,
        tier: Tier,
        check: &PlannedCheck,
        ready: &ReadyCheck,
        class: FailureClass,
    ) -> Result<(), ExecuteError> {
        (self.asked.tell)(Told::Begins(&check.name));
        let times = if tier == Tier::L0 { 1 } else { self.asked.repeat.max(1) };
        let (mut passes, mut first_failure, mut last) = (0, None, None);
        for _ in 0..times {
            if self.budget.left < Duration::from_millis(1) {
                self.out_of_time = true;
                break;
            }
            let mut spec = check_spec(&self.cell, ready.step.clone(), &ready.tools, &self.limits())?;
            use_prepared(&mut spec, self.prepared.as_ref());
            let broker = broker(self.request, &spec)?;
            let mut streams = Streams { keep: KEEP, cancel: self.asked.cancel, ..Streams::default() };
            streams.egress = broker.as_ref().map(|broker| broker as &dyn Egress);
            let report = self.budget.spend(|| self.launcher.run(&spec, streams))?;
            self.egress.append(broker.map(|broker| broker.log()).unwrap_or_default());
            let program = spec.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
            let mut verdict = judge(&report, self.request.on_violation, &program);
            let said = check.results.as_ref().map(|results| tests(results, &report));
            let none = matches!(&said, Some(Some(said)) if said.passed + said.failed == 0);
            let empty = check.empty.map(End::Exited) == Some(report.end) && report.violations.is_empty();
            if none && (verdict.class.is_none() || empty) {
                // What was seen in another repetition is not forgotten for that.
                if first_failure.is_some() || passes > 0 {
                    continue;
                }
                self.skip(&check.name, "it ran no test".into());
                return Ok(());
            }
            // Rust's runner does not notice a test that ends it, but what it said before counts; nobody else can print there.
            let rust = check.results.as_ref().is_some_and(|results| results.format == ResultsFormat::Cargo);
            if rust && verdict.class.is_none() && matches!(&said, Some(Some(said)) if said.failed > 0) {
                verdict.class = Some(class);
                verdict.message = Some("the runner counts failed tests".into());
            }
            // Code that ends the runner before its tests has not passed them.
            if verdict.class.is_none() && said == Some(None) {
                verdict.class = Some(class);
                verdict.message = Some("the runner ended without a word about the tests".into());
            }
            let by_itself = matches!(verdict.class, Some(FailureClass::RuntimeError | FailureClass::Signaled));
            if by_itself && verdict.terminal.is_none() {
                verdict.class = Some(class);
            }
            let format = check.results.as_ref().map(format);
            let done = Done { spec, report, verdict, format, flaky: false };
            match done.verdict.class {
                None => {
                    passes += 1;
                    last = Some(done);
                }
                Some(class) => {
                    // What the cell refused weighs more than a test that failed.
                    let worse =
                        |old: &Done| class.is_violation() && !old.verdict.class.is_some_and(|c| c.is_violation());
                    if first_failure.as_ref().is_none_or(worse) {
                        first_failure = Some(done);
                    }
                }
            }
            let ended = first_failure.as_ref().and_then(|done| done.verdict.terminal);
            if ended == Some(TerminalEvent::Cancelled) {
                self.cancelled = true;
                break;
            }
        }
        if let Some(group) = &check.group {
            self.groups.push(group.clone());
        }
        let by_test = |done: &Done| done.verdict.class.is_some_and(|class| !class.is_violation());
        let flaky = passes > 0 && first_failure.as_ref().is_some_and(by_test) && !self.cancelled;
        let Some(mut done) = first_failure.or(last) else { return Ok(()) };
        done.flaky = flaky;
        if flaky {
            done.verdict.message = Some(format!("the tests pass {passes} times of {times}"));
        }
        let mut phase = phase(&check.name, &done.report, &done.verdict);
        phase.tier = Some(tier);
        phase.tests = check.results.as_ref().and_then(|results| tests(results, &done.report));
        if let Some(format) = done.format {
            phase.stdout = results::readable(format, phase.stdout);
        }
        self.add(tier, phase, done);
        Ok(())
    }

    fn add(&mut self, tier: Tier, phase: Phase, done: Done) {
        (self.asked.tell)(Told::Ended(&phase));
        self.phases.push(phase);
        if done.verdict.class.is_some() && self.failed.is_none() {
            self.failed = Some(tier);
            self.decisive = Some(done);
        } else if self.failed.is_none() {
            self.decisive = Some(done);
        }
    }

    /// The caller's own command, in the same cell, with the language's tools.
    fn l2(&mut self, tools: &languages::Tools) -> Result<(), ExecuteError> {
        let Some(command) = &self.asked.l2 else { return Ok(()) };
        if self.cancelled {
            self.skip("L2", "the run was called off".into());
            return Ok(());
        }
        if self.is_out_of_time("L2") {
            return Ok(());
        }
        if let Some(failed) = self.failed {
            self.skip("L2", format!("{failed:?} failed"));
            return Ok(());
        }
        let argv = ["/bin/sh", "-c", command].map(Into::into).to_vec();
        let step = Ready { argv, ..Ready::default() };
        let ready = ReadyCheck { step, probe: None, tools: tools.clone() };
        let check = PlannedCheck {
            name: command.chars().take(60).collect(),
            tier: "L2".into(),
            class: None,
            group: None,
            empty: None,
            results: None,
            step: Ok(ready.clone()),
        };
        self.carry_out(Tier::L2, &check, &ready, FailureClass::TestFailure)?;
        self.close(Tier::L2);
        Ok(())
    }

    fn outcome(self, toolchain: &Toolchain, source: &Source, spent: Duration) -> Result<Outcome, ExecuteError> {
        let Some(Done { spec, report, verdict, format, flaky }) = self.decisive else {
            let what = match source {
                Source::Given { files } => files.first().map(|(name, _)| name.clone()).unwrap_or_default(),
                Source::InInput { .. } => self.request.input.clone().unwrap_or_default().display().to_string(),
            };
            let why = self.skipped.iter().map(|s| format!("{}: {}", s.check, s.reason)).collect::<Vec<_>>().join("; ");
            return Err(ExecuteError::NothingToCheck { what, why });
        };
        let timed_out = verdict.class == Some(FailureClass::TimeoutViolation) && self.budget.left.is_zero();
        let mut outcome = outcome(self.request, Some(toolchain), &spec, &report, verdict, self.phases);
        if let Some(format) = format {
            outcome.stdout = results::readable(format, outcome.stdout);
        }
        outcome.tier = match self.passed {
            Some(Tier::L1) if self.asked.generated_tests => Tier::AiTestsOnly,
            Some(tier) => tier,
            None => Tier::L0,
        };
        if self.out_of_time || timed_out {
            outcome.status = Status::Fail;
            outcome.failure_class.get_or_insert(FailureClass::TimeoutViolation);
            outcome.terminal_event = Some(TerminalEvent::BudgetExceeded);
            outcome.message = Some(format!("the budget of {:?} is used up", self.asked.budget));
        }
        outcome.retry_class = match outcome.terminal_event {
            Some(TerminalEvent::Cancelled) => None,
            _ if flaky && outcome.terminal_event.is_none() => Some(RetryClass::Flake),
            _ => judge::retry(outcome.failure_class),
        };
        outcome.skipped_checks = self.skipped;
        outcome.events = self.egress.events();
        outcome.duration_ms = spent.as_millis() as u64;
        for phase in &outcome.phases {
            outcome.usage.memory_peak_bytes = outcome.usage.memory_peak_bytes.max(phase.usage.memory_peak_bytes);
        }
        outcome.usage.wall_ms = outcome.phases.iter().map(|phase| phase.usage.wall_ms).sum();
        outcome.usage.cpu_ms = outcome.phases.iter().map(|phase| phase.usage.cpu_ms).sum();
        Ok(outcome)
    }
}

/// What the runner left in its file, or said.
fn tests(results: &Results, report: &Report) -> Option<Tests> {
    let text = match &results.file {
        Some(name) => {
            let mut text = vec![];
            let file = report.scratch.as_ref()?.open(Path::new(name)).ok()?;
            file.take(MAX_RESULTS).read_to_end(&mut text).ok()?;
            text
        }
        None => {
            let [out, err] = [&report.stdout, &report.stderr].map(|stream| [&stream.head[..], &stream.tail].concat());
            match results.format {
                ResultsFormat::Unittest => err,
                ResultsFormat::Cargo => [out, err].concat(),
                _ => out,
            }
        }
    };
    let found = results::parse(format(results), &text)?;
    Some(Tests { passed: found.passed, failed: found.failed, skipped: found.skipped, failing: found.failing })
}

fn format(results: &Results) -> Format {
    match results.format {
        ResultsFormat::Junit => Format::JunitXml,
        ResultsFormat::Junit4 => Format::Junit4,
        ResultsFormat::Unittest => Format::Unittest,
        ResultsFormat::Go => Format::GoJson,
        ResultsFormat::Tap => Format::NodeTap,
        ResultsFormat::Cargo => Format::CargoText,
    }
}
