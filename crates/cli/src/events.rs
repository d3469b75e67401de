//! Where the events of a run go: a file, the audit log, the view. Each has a thread of its own and a queue before it, so
//! that neither a reader who does not read nor a lock of somebody else's makes the run's supervisor wait.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use hotcell_contract::{Happened, RunEvent};
use hotcell_engine::{Audit, audit_alert};

use crate::view::View;

/// What waits for a reader at most.
const WAITING: usize = 1024;
/// How long, after the run, a reader may take for what is waiting.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens the file for events, and adds to one that is there. A named pipe is waited for until somebody reads it.
pub(crate) fn open(path: &Path) -> anyhow::Result<File> {
    if path == Path::new("-") {
        bail!("--events `-` is no file: standard output is the program's own, so give a file, or /dev/fd/3");
    }
    let opened = OpenOptions::new().append(true).create(true).open(path);
    let file = opened.with_context(|| format!("cannot write events to `{}`", path.display()))?;
    let place = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    let own = rustix::fs::fstat(&file).map(place);
    for stream in [rustix::fs::fstat(std::io::stdout()), rustix::fs::fstat(std::io::stderr())] {
        if own.is_ok() && path != Path::new("/dev/null") && own == stream.map(place) {
            bail!("--events `{}` is where the program writes too: give another file", path.display());
        }
    }
    Ok(file)
}

struct Queue {
    say: SyncSender<RunEvent>,
    done: Receiver<anyhow::Result<()>>,
    lost: Cell<u64>,
}

impl Queue {
    fn start(mut write: impl FnMut(&RunEvent) -> anyhow::Result<()> + Send + 'static) -> Queue {
        let (say, heard) = sync_channel::<RunEvent>(WAITING);
        let (tell, done) = channel();
        std::thread::spawn(move || {
            let mut result = Ok(());
            for event in heard {
                if result.is_ok() {
                    result = write(&event);
                }
            }
            let _ = tell.send(result);
        });
        Queue { say, done, lost: Cell::new(0) }
    }

    fn put(&self, event: RunEvent) {
        if self.say.try_send(event).is_err() {
            self.lost.set(self.lost.get() + 1);
        }
    }

    /// The last one: it may wait now.
    fn put_last(&self, mut event: RunEvent) {
        let until = Instant::now() + PATIENCE;
        while let Err(TrySendError::Full(back)) = self.say.try_send(event) {
            if Instant::now() > until {
                self.lost.set(self.lost.get() + 1);
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
            event = back;
        }
    }

    /// Waits until all is written, or for as long as a reader may take.
    fn close(self) -> anyhow::Result<()> {
        drop(self.say);
        match self.done.recv_timeout(PATIENCE) {
            Ok(result) => result?,
            Err(RecvTimeoutError::Timeout) => bail!("nobody reads them"),
            Err(RecvTimeoutError::Disconnected) => bail!("its writer is gone"),
        }
        match self.lost.get() {
            0 => Ok(()),
            lost => Err(anyhow!("they were not read as fast as they came, and {lost} are lost")),
        }
    }
}

/// A file, and the queue before it: begun with the first event, because a thread that is there before the caller's signals
/// are caught would be killed by them.
struct Destination {
    path: PathBuf,
    file: Cell<Option<File>>,
    queue: OnceCell<Queue>,
}

impl Destination {
    fn queue(&self) -> &Queue {
        self.queue.get_or_init(|| {
            let mut file = self.file.take();
            Queue::start(move |event| {
                let Some(to) = &mut file else { return Ok(()) };
                let mut line = serde_json::to_vec(event)?;
                line.push(b'\n');
                // One write: nobody sees half a line.
                match to.write_all(&line) {
                    // A reader who left has read enough.
                    Err(e) if e.kind() == ErrorKind::BrokenPipe => file = None,
                    written => written?,
                }
                Ok(())
            })
        })
    }

    fn close(self) -> anyhow::Result<()> {
        let closed = self.queue.into_inner().map_or(Ok(()), Queue::close);
        closed.with_context(|| format!("not all events are in `{}`", self.path.display()))
    }
}

pub(crate) struct Events {
    file: Option<Destination>,
    /// Where alerts are written down, and for which record.
    audit: OnceCell<(Audit, String)>,
    alerts: RefCell<Option<Queue>>,
    view: RefCell<Option<View>>,
}

impl Events {
    pub(crate) fn new(file: Option<(PathBuf, File)>) -> Events {
        let file = file.map(|(path, file)| Destination { path, file: Cell::new(Some(file)), queue: OnceCell::new() });
        Events { file, audit: OnceCell::new(), alerts: RefCell::default(), view: RefCell::default() }
    }

    pub(crate) fn show_in(&self, view: View) {
        self.view.replace(Some(view));
    }

    /// From now on alerts are written down, with the record that they belong to.
    pub(crate) fn audit_to(&self, audit: &Audit, record_id: &str) {
        let _ = self.audit.set((audit.clone(), record_id.to_owned()));
    }

    pub(crate) fn are_wanted(&self) -> bool {
        self.file.is_some() || self.view.borrow().is_some() || self.audit.get().is_some()
    }

    /// Never waits, but for the last one, which comes when nothing runs any more.
    pub(crate) fn tell(&self, event: RunEvent) {
        if let Some(view) = &*self.view.borrow() {
            view.tell(&event);
        }
        if let (Happened::Alert(_), Some((audit, record_id))) = (&event.happened, self.audit.get()) {
            let mut alerts = self.alerts.borrow_mut();
            let alerts = alerts.get_or_insert_with(|| {
                let (audit, record_id) = (audit.clone(), record_id.clone());
                Queue::start(move |event| Ok(audit_alert(&audit, &record_id, event)?))
            });
            alerts.put(event.clone());
        }
        if let Some(file) = &self.file {
            match event.happened {
                Happened::Finished(_) | Happened::Timeout(_) | Happened::Killed(_) => file.queue().put_last(event),
                _ => file.queue().put(event),
            }
        }
    }

    /// When nothing runs any more: the terminal is as it was, and alerts are in the log before the end is.
    pub(crate) fn calm(&self) -> anyhow::Result<()> {
        drop(self.view.take());
        self.alerts.take().map_or(Ok(()), Queue::close).context("an alert is not in the audit log")
    }

    pub(crate) fn close(mut self) -> anyhow::Result<()> {
        self.file.take().map_or(Ok(()), Destination::close)
    }
}

impl Drop for Events {
    /// A refusal is told too; what it is about is said already.
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let _ = file.close();
        }
    }
}
