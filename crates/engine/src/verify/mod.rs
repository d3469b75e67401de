//! From sources and their tests to a verification result: tiers of checks, a cell each, under one budget.
//!
//!   L0   does it parse, compile, lint      all of them run, so that one answer names all that is wrong
//!   L1   the unit tests that come with it  only what passed L0
//!   L2   a command that the caller names   only what passed L1
//!
//! What is not carried out is listed with its reason.

mod attempt;
mod results;

use std::time::{Duration, Instant};

use hotcell_contract::{Outcome, Phase, RetryClass, SkippedCheck, Status, TerminalEvent};
use hotcell_sandbox::{Cancel, Launcher};

use crate::execute::ExecuteError;
use crate::request::Request;
use attempt::attempt;

const MAX_ATTEMPTS: u32 = 3;

/// What is to be verified, and how.
pub struct Asked<'a> {
    /// Over all checks of all attempts.
    pub budget: Duration,
    /// How often the tests are run, to find those that can't decide.
    pub repeat: u32,
    /// The tests were generated with the code: they alone prove little.
    pub generated_tests: bool,
    /// A command for L2, for the shell.
    pub l2: Option<String>,
    pub cancel: Option<&'a dyn Cancel>,
    pub tell: &'a dyn Fn(Told<'_>),
}

/// What goes on.
pub enum Told<'a> {
    Attempt(u32),
    Begins(&'a str),
    Ended(&'a Phase),
    Skipped(&'a SkippedCheck),
}

/// Time that is shared by everything of one request.
struct Budget {
    left: Duration,
}

impl Budget {
    /// Runs something and takes its time off.
    fn spend<T>(&mut self, what: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = what();
        self.left = self.left.saturating_sub(start.elapsed());
        done
    }
}

/// Between two attempts: sees the result, and returns what is to be verified next, if anything.
pub type Repair<'a> = &'a mut dyn FnMut(&Outcome) -> Option<Request>;

/// Up to three attempts at the sources that are the program of `request`, whose wall time is that of one check.
pub fn verify(
    launcher: &Launcher,
    mut request: Request,
    asked: &Asked<'_>,
    mut repair: Option<Repair<'_>>,
) -> Result<Outcome, ExecuteError> {
    let mut budget = Budget { left: asked.budget };
    let mut number = 1;
    loop {
        (asked.tell)(Told::Attempt(number));
        let mut outcome = attempt(launcher, &request, asked, &mut budget)?;
        outcome.attempt = number;
        let worth_another = matches!(outcome.retry_class, Some(RetryClass::Syntax | RetryClass::Deterministic))
            && !budget.left.is_zero();
        let Some(repair) = repair.as_mut().filter(|_| outcome.status == Status::Fail && worth_another) else {
            return Ok(outcome);
        };
        if number == MAX_ATTEMPTS {
            outcome.terminal_event = Some(TerminalEvent::MaxRetriesExceeded);
            return Ok(outcome);
        }
        match repair(&outcome) {
            Some(next) => request = next,
            None => return Ok(outcome),
        }
        number += 1;
    }
}
