//! From what is asked to a run that may begin, and from its end to the record of it: the same for every surface.

use std::time::{Duration, Instant};

use hotcell_contract::{Averages, Capabilities, FailureClass, Outcome, Policy};
use hotcell_sandbox::SandboxError;

use crate::execute::ExecuteError;
use crate::lease::{Leased, LeasedRun, Staging};
use crate::permit::{Denied, Given, Verb, enabled, permit};
use crate::policy::{AskedLimits, PolicyError, settle};
use crate::request::Request;
use crate::state::{State, StateError, Ticket, Who};

/// What is asked for beside the request itself.
pub struct Application<'a> {
    pub verb: Verb,
    pub who: &'a Who,
    pub policy: Option<&'a Policy>,
    pub limits: &'a AskedLimits,
    pub capabilities: &'a Capabilities,
    pub lease: Option<Given<'a>>,
}

/// Settles a request under its policy, looks whether it is enabled, and makes of it what its lease allows. A refusal is
/// written down where `state` has a place for it.
pub fn admit<E>(
    asked: Application<'_>,
    request: &mut Request,
    state: impl Fn() -> Result<Option<State>, E>,
) -> Result<Option<Leased>, E>
where
    E: From<PolicyError> + From<StateError>,
{
    let Application { verb, who, policy, limits, capabilities, lease } = asked;
    if let Err(e) = settle(policy, limits, request) {
        if let PolicyError::Refused { class, why, .. } = &e
            && let Some(mut state) = state()?
        {
            state.deny(request, who, policy, None, *class, why)?;
        }
        return Err(e.into());
    }
    let deny = |request: &Request, denied: Denied| -> E {
        let why = denied.error.to_string();
        let told = state().and_then(|state| {
            let Some(mut state) = state else { return Ok(()) };
            if let StateError::Lease(refusal) = &denied.error {
                state.deny_lease(denied.lease.as_deref(), refusal)?;
            }
            Ok(state.deny(request, who, policy, denied.lease.as_deref(), denied.class, &why)?)
        });
        told.err().unwrap_or_else(|| denied.error.into())
    };
    let plainly = |class, error| Denied { class, error, lease: None };
    enabled(capabilities, verb, request, lease.is_some())
        .map_err(|e| deny(request, plainly(FailureClass::PolicyViolation, e)))?;
    if verb == Verb::Verify && policy.is_some_and(|policy| policy.require_approval) {
        let class = FailureClass::ApprovalRequired;
        let why =
            "the policy asks for an approval, which is for one run of one program: use run instead of verify".into();
        return Err(deny(request, plainly(class, StateError::Refused { class, why, again_in: None })));
    }
    let Some(lease) = lease else {
        if policy.is_some_and(|policy| policy.two_key_lease) {
            return Err(deny(request, plainly(FailureClass::LeaseViolation, StateError::LeaseRequired)));
        }
        return Ok(None);
    };
    if verb == Verb::Verify {
        return Err(StateError::LeaseForVerify.into());
    }
    let mut here = state()?.ok_or(StateError::NoKeys)?;
    permit(&mut here, capabilities, policy, lease, limits, request).map(Some).map_err(|denied| deny(request, denied))
}

/// A run that is written down, and the place for what it leaves under a lease.
pub struct Begun<'a> {
    ticket: Ticket,
    lease: Option<(&'a Leased, Staging)>,
    /// What it took to write that down.
    took: Duration,
}

impl Begun<'_> {
    pub fn record_id(&self) -> &str {
        self.ticket.record_id()
    }

    /// For an end that could not be written down: see [`State::write_end`].
    pub fn into_ticket(self) -> Ticket {
        self.ticket
    }

    pub fn leased_run(&self) -> Option<LeasedRun<'_>> {
        self.lease.as_ref().map(|(leased, staging)| LeasedRun { leased, staging })
    }

    /// Whether something can be taken back.
    pub fn has_pack(&self) -> bool {
        self.lease.as_ref().is_some_and(|(_, staging)| staging.pack().is_some())
    }
}

/// Writes a run down, if it may begin now.
pub fn begin<'a>(
    state: &mut State,
    request: &Request,
    who: &Who,
    policy: Option<&Policy>,
    leased: Option<&'a Leased>,
) -> Result<Begun<'a>, StateError> {
    let start = Instant::now();
    let mut ticket = state.begin(request, who, policy, leased.map(|leased| &leased.lease))?;
    let took = start.elapsed();
    let Some(leased) = leased else { return Ok(Begun { ticket, lease: None, took }) };
    match Staging::make(state.dir(), &leased.lease.lease_id, ticket.record_id()) {
        Ok(staging) => Ok(Begun { ticket, lease: Some((leased, staging)), took }),
        Err(e) => {
            let error = StateError::Staging(e);
            state.fail(&mut ticket, &error.to_string())?;
            Err(error)
        }
    }
}

/// Writes the end down, whatever it was.
pub fn end(
    state: &mut State,
    begun: &mut Begun<'_>,
    outcome: &mut Result<Outcome, ExecuteError>,
    averages: &Averages,
) -> Result<(), StateError> {
    match outcome {
        Ok(outcome) => {
            let start = Instant::now();
            let written = state.finish(&mut begun.ticket, outcome, averages);
            outcome.timings.record = (begun.took + start.elapsed()).as_micros() as u64;
            written
        }
        Err(e @ ExecuteError::Sandbox(SandboxError::Cancelled { .. })) => {
            state.cancel(&mut begun.ticket, &e.to_string())
        }
        Err(e) => state.fail(&mut begun.ticket, &e.to_string()),
    }
}

/// Leaves what a run under a lease has to leave.
pub fn leave(state: &mut State, begun: &Begun<'_>, outcome: &Outcome) -> Result<(), StateError> {
    begun.leased_run().map_or(Ok(()), |run| state.leave(&run, outcome))
}
