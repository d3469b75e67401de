//! What a run is permitted by: the operator's switches, and a lease.

use std::path::PathBuf;

use anyhow::{Context, bail};
use hotcell_contract::{Capabilities, FailureClass, Policy};
use hotcell_engine::{
    AskedLimits, Denied, Given, Leased, Request, StateError, Verb, capabilities, enabled, open_regular, permit,
};

use crate::args::cell::CellArgs;
use crate::policy::state_dir;
use crate::state;

/// A lease is a page.
const MAX_LEASE: u64 = 1 << 20;

/// What the operator has enabled, wherever that is written.
pub(crate) fn switches(flag: Option<&std::path::Path>) -> anyhow::Result<Capabilities> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    let home = home.map(|dir| dir.join("hotcell"));
    Ok(capabilities(state_dir(flag).as_deref(), home.as_deref())?)
}

/// What a file says that may be a lease. What is longer than any is cut, and malformed then.
pub(crate) fn read(path: &std::path::Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![];
    std::io::Read::read_to_end(&mut std::io::Read::take(open_regular(path)?, MAX_LEASE), &mut bytes)?;
    Ok(bytes)
}

/// Whether the request may go on, and under which lease. A refusal is written down where there is a place for it.
pub(crate) fn permit_run(
    args: &CellArgs,
    verb: Verb,
    policy: Option<&Policy>,
    asked: &AskedLimits,
    request: &mut Request,
) -> anyhow::Result<Option<Leased>> {
    let switches = switches(args.state_dir.as_deref())?;
    let deny = |request: &Request, denied: Denied| -> anyhow::Error {
        let why = denied.error.to_string();
        let told = state::of_run(args).and_then(|kept| {
            let Some(mut kept) = kept else { return Ok(()) };
            if let StateError::Lease(refusal) = &denied.error {
                kept.deny_lease(denied.lease.as_deref(), refusal)?;
            }
            Ok(kept.deny(request, &state::who(args)?, policy, denied.lease.as_deref(), denied.class, &why)?)
        });
        told.err().unwrap_or_else(|| denied.error.into())
    };
    let plainly = |error| Denied { class: FailureClass::PolicyViolation, error, lease: None };
    enabled(&switches, verb, request, args.lease.is_some()).map_err(|e| deny(request, plainly(e)))?;
    if verb == Verb::Verify && policy.is_some_and(|policy| policy.require_approval) {
        let class = FailureClass::ApprovalRequired;
        let why =
            "the policy asks for an approval, which is for one run of one program: use run instead of verify".into();
        let error = StateError::Refused { class, why };
        return Err(deny(request, Denied { class, error, lease: None }));
    }
    let Some(path) = &args.lease else {
        if policy.is_some_and(|policy| policy.two_key_lease) {
            let error = StateError::LeaseRequired;
            return Err(deny(request, Denied { class: FailureClass::LeaseViolation, error, lease: None }));
        }
        return Ok(None);
    };
    if verb == Verb::Verify {
        bail!("a lease is for run and exec: leave --lease out");
    }
    let mut kept = state::of_run(args)?
        .context("a lease is verified with the keys of a state directory, and there is none: give --state-dir")?;
    let name = path.display().to_string();
    let given = Given { name: &name, bytes: read(path), repository: args.repo.as_deref() };
    match permit(&mut kept, &switches, policy, given, asked, request) {
        Ok(leased) => Ok(Some(leased)),
        Err(denied) => Err(deny(request, denied)),
    }
}
