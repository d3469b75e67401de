//! All that a run says, in the order in which it came, for one reader who must miss nothing.
//!
//! Who writes never waits for who reads. What is held is bounded by the run's own limits of output, and the pieces by their
//! number: beyond it what comes is put to what is there, so that the order is lost between the streams, and no text.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use hotcell_contract::{Happened, RunEvent};
use tokio::sync::Notify;

/// Of pieces that nobody has taken. Programs that change between the streams so often do not mean an order.
const MAX_PIECES: usize = 1 << 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A phase: `compile` or `run`.
    Began(String),
    Said {
        stream: String,
        text: String,
    },
}

#[derive(Debug, Default)]
pub struct Transcript {
    pieces: Mutex<VecDeque<Piece>>,
    more: Notify,
}

impl Transcript {
    pub(crate) fn put(&self, event: &RunEvent) {
        match &event.happened {
            Happened::Started(_) => self.push(Piece::Began(event.phase.clone().unwrap_or_default())),
            Happened::Output(said) => self.say(&said.stream, &said.text),
            _ => {}
        }
    }

    fn push(&self, piece: Piece) {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).push_back(piece);
        self.more.notify_one();
    }

    fn say(&self, stream: &str, text: &str) {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = if pieces.len() < MAX_PIECES { 1 } else { 2 };
        let said = pieces.iter_mut().rev().take(behind).find_map(|piece| match piece {
            Piece::Said { stream: of, text } if of == stream => Some(text),
            _ => None,
        });
        match said {
            Some(before) => before.push_str(text),
            None => pieces.push_back(Piece::Said { stream: stream.to_owned(), text: text.to_owned() }),
        }
        drop(pieces);
        self.more.notify_one();
    }

    /// What has come since the last time.
    pub fn take(&self) -> Vec<Piece> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    /// Waits until there may be something to take.
    pub async fn more(&self) {
        self.more.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(stream: &str, text: &str) -> Piece {
        Piece::Said { stream: stream.into(), text: text.into() }
    }

    #[test]
    fn what_is_said_stays_in_its_order() {
        let transcript = Transcript::default();
        transcript.push(Piece::Began("run".into()));
        for (stream, text) in [("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")] {
            transcript.say(stream, text);
        }
        let all = [Piece::Began("run".into()), said("stdout", "ab"), said("stderr", "c"), said("stdout", "d")];
        assert_eq!(transcript.take(), all);
        assert_eq!(transcript.take(), []);
    }

    #[test]
    fn too_many_pieces_lose_their_order_and_nothing_else() {
        let transcript = Transcript::default();
        for _ in 0..MAX_PIECES {
            transcript.say("stdout", "o");
            transcript.say("stderr", "e");
        }
        let pieces = transcript.take();
        assert_eq!(pieces.len(), MAX_PIECES);
        let of = |which: &str| {
            let texts = pieces.iter().map(|piece| match piece {
                Piece::Said { stream, text } if stream == which => text.len(),
                _ => 0,
            });
            texts.sum::<usize>()
        };
        assert_eq!((of("stdout"), of("stderr")), (MAX_PIECES, MAX_PIECES));
    }
}
