//! `hotcell doctor`: every primitive, and a real cell as the proof.

use hotcell_contract::Status;
use hotcell_sandbox::{End, Engine, Launcher, Streams, confinement, probe};

use crate::backend::{Container, Hole, survey_engines, survey_runtimes};
use crate::execute::{Call, ExecuteError, execute};
use crate::plan::plan;
use crate::request::{Program, Request};

/// One line of the diagnosis.
#[derive(Clone, Debug)]
pub struct Check {
    pub name: String,
    pub present: bool,
    pub needed: bool,
    pub detail: String,
    pub remedy: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Diagnosis {
    pub checks: Vec<Check>,
    /// The default policy can be met.
    pub ok: bool,
}

pub fn diagnose(launcher: &Launcher) -> Diagnosis {
    let mut checks: Vec<Check> = probe()
        .into_iter()
        .map(|p| Check {
            name: p.name.into(),
            present: p.present,
            needed: p.needed,
            detail: p.detail,
            remedy: p.remedy,
        })
        .collect();
    checks.extend(containers(launcher));
    checks.push(languages());
    checks.push(cell(launcher));
    let ok = checks.iter().all(|check| check.present || !check.needed);
    Diagnosis { checks, ok }
}

/// Each runtime and each engine, what is known against it, and a container as the proof.
fn containers(launcher: &Launcher) -> Vec<Check> {
    let found = survey_runtimes();
    let mut checks = vec![];
    if found.is_empty() {
        checks.push(Check {
            name: "containers".into(),
            present: false,
            needed: false,
            detail: "no runtime is found: --backend oci and policies that need a container are refused".into(),
            remedy: Some("apt-get install runc, or runsc for a kernel of its own".into()),
        });
    }
    checks.extend(found.into_iter().map(|found| {
        let container = Container::Oci { runtime: found.runtime, image: None };
        self::container(launcher, found.name, container, found.version, found.hole)
    }));
    checks.extend(survey_engines().into_iter().map(|found| match found {
        Ok(found) => {
            let (name, version) = (found.docker.name().to_owned(), found.docker.version.clone());
            container(launcher, &name, Container::Engine(found.docker), version, found.hole)
        }
        Err(e) => Check { name: "engine".into(), present: false, needed: false, detail: e.to_string(), remedy: None },
    }));
    checks
}

fn container(
    launcher: &Launcher,
    name: &str,
    container: Container,
    version: Option<String>,
    hole: Option<Hole>,
) -> Check {
    let what = match container.has_own_kernel() {
        true => "a kernel of its own; what is refused inside is contained and not on record",
        false => "verdicts are proved as in a cell",
    };
    let request = Request { container: Some(container), ..Request::of(Program::Command(vec!["/bin/true".into()])) };
    let ran = plan(&request)
        .map_err(ExecuteError::from)
        .and_then(|planned| Ok(launcher.run(&planned.run, Streams::default())?));
    let (present, ran) = match ran {
        Ok(report) if report.end == End::Exited(0) => (true, format!("ran `true`, {what}")),
        Ok(report) => (false, format!("`true` failed in one: {:?}", report.end)),
        Err(e) => (false, e.to_string()),
    };
    let version = version.unwrap_or_else(|| "of an unknown version".into());
    let (hole, remedy) = match hole {
        Some(hole) => (
            format!("; known holes: {}", hole.what),
            Some(format!("install {} or newer, or a package that has the fixes", hole.fixed_in)),
        ),
        None => (String::new(), None),
    };
    Check { name: name.into(), present, needed: false, detail: format!("{version}: {ran}{hole}"), remedy }
}

/// Cells run commands without any of them: `hotcell languages` says more.
fn languages() -> Check {
    let host = hotcell_languages::Host::this();
    let all = hotcell_languages::Catalogue::load(None).map(|c| c.all().to_vec()).unwrap_or_default();
    let found: Vec<&str> =
        all.iter().filter(|l| hotcell_languages::tools(l, &host).is_ok()).map(|l| l.name.as_str()).collect();
    Check {
        name: "languages".into(),
        present: !found.is_empty(),
        needed: false,
        detail: if found.is_empty() { "no toolchain is found".into() } else { found.join(", ") },
        remedy: found.is_empty().then(|| "apt-get install python3".into()),
    }
}

fn cell(launcher: &Launcher) -> Check {
    let request = Request::of(Program::Command(vec!["true".into()]));
    let (present, detail) = match execute(launcher, &request, Call { keep: 4096, others: true, ..Call::default() }) {
        Ok(outcome) if outcome.status == Status::Pass => {
            (true, format!("ran `true` in one, {} us from request to start", outcome.timings.exec))
        }
        Ok(outcome) => (false, format!("`true` failed in one: {:?} {}", outcome.failure_class, outcome.stderr)),
        Err(e) => (false, e.to_string()),
    };
    let remedy = if present { None } else { confinement() };
    Check { name: "cell".into(), present, needed: true, detail, remedy }
}
