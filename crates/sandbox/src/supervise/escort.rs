//! Whoever serves the cell's connections: begun with the program, heard while it runs, ended after it.

use std::os::fd::OwnedFd;

use super::State;
use crate::recorder::{Recorder, Waiting};
use crate::wire::Failure;

impl State<'_> {
    pub(super) fn begin_egress(&mut self, listener: Option<OwnedFd>) {
        let (Some(egress), Some(listener)) = (self.egress, listener) else { return };
        let begun = Recorder::new(self.spec.on_violation).and_then(|recorder| {
            self.attempts = Some(recorder.clone());
            egress.begin(listener, recorder)
        });
        if let Err(e) = begun {
            let errno = e.raw_os_error().unwrap_or(libc::EIO);
            self.failure = Some(Failure { step: "start the egress broker".into(), what: String::new(), errno });
            self.kill_cell();
        }
    }

    /// Puts on record what was refused so far.
    pub(super) fn hear_attempts(&mut self) {
        let Some(recorder) = &self.attempts else { return };
        let Waiting { attempts, dropped } = recorder.take();
        self.violations_dropped += dropped;
        for (kind, detail, evidence) in attempts {
            self.record(kind, detail, evidence);
        }
    }

    /// However the run has ended. What was refused last is on record, and there is nobody left to be killed for it.
    pub(super) fn end_egress(&mut self) {
        if let Some(egress) = self.egress.take() {
            egress.end();
        }
        let Some(recorder) = self.attempts.take() else { return };
        let Waiting { attempts, dropped } = recorder.take();
        self.violations_dropped += dropped;
        for (kind, detail, evidence) in attempts {
            self.note(kind, detail, evidence);
        }
    }
}
