//! How a run goes, for a client that wants to know: that it waits, its stages, what was refused, its last line.

use hotcell_contract::{Happened, attempt, harmless};
use rmcp::RoleServer;
use rmcp::model::{NumberOrString, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};

use crate::run::Run;

/// That a client gives us to say it back: ours have 36.
pub(super) const MAX_WORD: usize = 256;
/// A line that fits into a status bar.
const MAX_LINE: usize = 160;
/// One that does not say more is none.
const MAX_SENTENCES: usize = 16;

pub(super) struct Progress<'a> {
    peer: &'a Peer<RoleServer>,
    token: ProgressToken,
    /// It has to grow with every word.
    told: u32,
    /// Of the events of the run.
    seen: u64,
}

impl Progress<'_> {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Option<Progress<'_>> {
        let token = context.meta.get_progress_token()?;
        // It is in every notification.
        if matches!(&token.0, NumberOrString::String(word) if word.len() > MAX_WORD) {
            return None;
        }
        Some(Progress { peer: &context.peer, token, told: 0, seen: 0 })
    }

    /// What is new.
    pub(super) async fn tell(&mut self, run: &Run) {
        let mut sentences = vec![];
        if self.told == 0 {
            sentences.push("waits for its turn".to_owned());
        }
        let mut last = None;
        for numbered in run.log.after(self.seen).events {
            self.seen = numbered.number;
            let event = &numbered.event;
            let phase = event.phase.as_deref().unwrap_or("run");
            match &event.happened {
                Happened::Started(_) => sentences.push(format!("{} has begun", harmless(phase))),
                Happened::Violation(violation) => sentences.push(format!("refused: {}", line(&attempt(violation)))),
                Happened::Output(said) => {
                    let bytes = said.offset + said.text.len() as u64;
                    let text = said.text.lines().last().map(line).unwrap_or_default();
                    last = Some(format!("{}, {bytes} bytes so far: {text}", said.stream));
                }
                _ => {}
            }
        }
        let more = sentences.len().saturating_sub(MAX_SENTENCES);
        sentences.truncate(MAX_SENTENCES);
        sentences.extend((more > 0).then(|| format!("and {more} more")));
        sentences.extend(last);
        for sentence in sentences {
            self.told += 1;
            let word = ProgressNotificationParam::new(self.token.clone(), f64::from(self.told)).with_message(sentence);
            // Who has gone hears nothing.
            let _ = self.peer.notify_progress(word).await;
        }
    }
}

fn line(text: &str) -> String {
    harmless(&text.chars().take(MAX_LINE).collect::<String>())
}
