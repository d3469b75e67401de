//! A line on the terminal for what takes long. It appears after a moment, counts, and is gone when the program speaks.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hotcell_engine::Progress;

/// Nobody wants to read of what is over by then.
const PATIENCE: Duration = Duration::from_millis(300);

pub(crate) struct Line {
    say: Option<Sender<Option<String>>>,
    writer: Option<JoinHandle<()>>,
}

impl Line {
    pub(crate) fn new(wanted: bool) -> Line {
        if !wanted || !std::io::stderr().is_terminal() {
            return Line { say: None, writer: None };
        }
        let (say, heard) = channel::<Option<String>>();
        let writer = std::thread::spawn(move || {
            let (mut what, mut since, mut shown): (Option<String>, _, _) = (None, Instant::now(), false);
            loop {
                let next = match what {
                    Some(_) => heard.recv_timeout(PATIENCE),
                    None => heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                match next {
                    Ok(new) => {
                        if std::mem::take(&mut shown) {
                            let _ = write!(std::io::stderr(), "\r\x1b[K");
                        }
                        (what, since) = (new, Instant::now());
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if let Some(what) = &what {
                            let seconds = since.elapsed().as_secs_f32();
                            let _ = write!(std::io::stderr(), "\r\x1b[Khotcell: {what} ... {seconds:.1}s");
                            shown = true;
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        if shown {
                            let _ = write!(std::io::stderr(), "\r\x1b[K");
                        }
                        return;
                    }
                }
            }
        });
        Line { say: Some(say), writer: Some(writer) }
    }

    pub(crate) fn tell(&self, progress: Progress<'_>) {
        let Some(say) = &self.say else { return };
        let _ = say.send(match progress {
            Progress::Preparing(what) => Some(format!("preparing {what}, once")),
            Progress::Compiling(what) => Some(format!("compiling {what}")),
            Progress::Planned { .. } | Progress::Running | Progress::Ran { .. } => None,
        });
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        drop(self.say.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
