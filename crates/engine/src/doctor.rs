//! `hotcell doctor`: every primitive, and a real cell as the proof.

use hotcell_contract::Status;
use hotcell_sandbox::{Launcher, probe};

use crate::execute::{Call, execute};
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
    checks.push(languages());
    checks.push(cell(launcher));
    let ok = checks.iter().all(|check| check.present || !check.needed);
    Diagnosis { checks, ok }
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
    let (present, detail) = match execute(launcher, &request, Call { keep: 4096, ..Call::default() }) {
        Ok(outcome) if outcome.status == Status::Pass => {
            (true, format!("ran `true` in one, {} us from request to start", outcome.timings.exec))
        }
        Ok(outcome) => (false, format!("`true` failed in one: {:?} {}", outcome.failure_class, outcome.stderr)),
        Err(e) => (false, e.to_string()),
    };
    Check { name: "cell".into(), present, needed: true, detail, remedy: None }
}
