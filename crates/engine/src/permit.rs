//! What is asked before a run is written down: is it enabled here, and does its lease allow it?

use std::path::Path;

use hotcell_contract::{Capabilities, FailureClass, Lease, NetworkPolicy, Policy};

use crate::lease::{LeaseRefusal, Leased};
use crate::policy::{AskedLimits, isolate_again};
use crate::request::Request;
use crate::state::{State, StateError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Run,
    Exec,
    Verify,
}

/// A lease as it was given, and the repository that it is for.
pub struct Given<'a> {
    pub name: &'a str,
    pub bytes: std::io::Result<Vec<u8>>,
    pub repository: Option<&'a Path>,
}

/// Why not, by class, and which lease it was when that is known.
pub(crate) struct Denied {
    pub(crate) class: FailureClass,
    pub(crate) error: StateError,
    pub(crate) lease: Option<Box<Lease>>,
}

/// Whether the operator has enabled it.
pub(crate) fn enabled(
    capabilities: &Capabilities,
    verb: Verb,
    request: &Request,
    leased: bool,
) -> Result<(), StateError> {
    let name = match verb {
        _ if leased => (capabilities.exec_with_lease, "exec_with_lease"),
        Verb::Run => (capabilities.run, "run"),
        Verb::Exec => (capabilities.exec, "exec"),
        Verb::Verify => (capabilities.verify, "verify"),
    };
    if !name.0 {
        return Err(StateError::NotEnabled(name.1));
    }
    if capabilities.lease_required && !leased {
        return Err(if verb == Verb::Verify { StateError::NotEnabled("verify") } else { StateError::LeaseRequired });
    }
    if request.network > NetworkPolicy::Local && !capabilities.network {
        return Err(StateError::NotEnabled("network"));
    }
    Ok(())
}

/// Verifies a lease and makes of the request what it allows.
pub(crate) fn permit(
    state: &mut State,
    capabilities: &Capabilities,
    policy: Option<&Policy>,
    given: Given<'_>,
    asked: &AskedLimits,
    request: &mut Request,
) -> Result<Leased, Denied> {
    let denied = |lease: Option<&Lease>| {
        let lease = lease.cloned().map(Box::new);
        move |error: StateError| Denied { class: FailureClass::LeaseViolation, error, lease }
    };
    let bytes = given.bytes.map_err(|_| denied(None)(LeaseRefusal::NotFound(given.name.to_owned()).into()))?;
    let lease = state.verify_lease(&bytes, capabilities, policy).map_err(|error| {
        // Not verified: only for the log, to say which one it claimed to be.
        denied(crate::lease::read(&bytes).ok().as_ref())(error)
    })?;
    let failed = denied(Some(&lease));
    if !lease.runner.writable_mounts.is_empty() && !capabilities.writable_mounts {
        return Err(failed(StateError::NotEnabled("writable_mounts")));
    }
    let leased = Leased::new(lease, given.repository);
    let leased = leased.and_then(|leased| {
        leased.keeps_out(state.dir())?;
        leased.apply(asked, request)?;
        Ok(leased)
    });
    let leased = leased.map_err(|e| failed(e.into()))?;
    // Now it is known what of a repository it sees.
    isolate_again(policy, asked, request).map_err(|e| {
        let class = e.class();
        let lease = Some(Box::new(leased.lease.clone()));
        Denied { class, error: StateError::Refused { class, why: e.to_string(), again_in: None }, lease }
    })?;
    match request.network > NetworkPolicy::Local && !capabilities.network {
        true => Err(denied(Some(&leased.lease))(StateError::NotEnabled("network"))),
        false => Ok(leased),
    }
}
