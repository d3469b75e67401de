//! `--tty`: the program has a terminal of its own, and the caller's is the way to it.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use anyhow::{Context, bail};
use hotcell_engine::{Resized, Terminal};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::args::Output;
use crate::args::cell::{CellArgs, WatchArgs};

/// Where the caller has none: what terminals had.
const USUAL: (u16, u16) = (24, 80);

/// The program's, and who hears when the caller's has another size.
pub(crate) struct Wanted {
    pub(crate) terminal: Arc<Terminal>,
    resized: Option<Resized>,
}

/// For the beginning, when there is one thread: signals are blocked thread by thread.
pub(crate) fn wanted(args: &mut CellArgs, watch: &WatchArgs) -> anyhow::Result<Option<Wanted>> {
    if !watch.tty {
        return Ok(None);
    }
    if args.output == Output::Json || watch.watch {
        let flag = if watch.watch { "--watch" } else { "--output json" };
        bail!("--tty and {flag} are for one terminal: leave one of them out");
    }
    if !args.env.iter().any(|variable| variable.as_bytes().starts_with(b"TERM=")) {
        let term = std::env::var_os("TERM").filter(|term| !term.is_empty()).unwrap_or_else(|| "xterm".into());
        let mut variable = OsString::from("TERM=");
        variable.push(term);
        args.env.push(variable);
    }
    let (rows, columns) = size().unwrap_or(USUAL);
    let terminal = Arc::new(Terminal::new(rows, columns).context("this host gives no terminal")?);
    let has_one = std::io::stdout().is_terminal() || std::io::stdin().is_terminal();
    let resized = has_one.then(|| Resized::catch().ok()).flatten();
    Ok(Some(Wanted { terminal, resized }))
}

impl Wanted {
    /// In a thread, so after the signals of ours were caught: one that is not blocked in it would end us.
    pub(crate) fn follow(&mut self) {
        let Some(resized) = self.resized.take() else { return };
        let terminal = Arc::clone(&self.terminal);
        std::thread::spawn(move || {
            while resized.wait() {
                if let Some((rows, columns)) = size() {
                    let _ = terminal.resize(rows, columns);
                }
            }
        });
    }
}

fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(std::io::stdout()).or_else(|_| tcgetwinsize(std::io::stdin())).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

/// The caller's terminal passes every key on, from [`Raw::begin`] until this is dropped.
#[derive(Default)]
pub(crate) struct Raw(OnceCell<Termios>);

impl Raw {
    /// Once there is a program to take them.
    pub(crate) fn begin(&self) {
        let stdin = std::io::stdin();
        let Some(before) = stdin.is_terminal().then(|| tcgetattr(&stdin).ok()).flatten() else { return };
        let mut raw = before.clone();
        raw.make_raw();
        if self.0.set(before).is_ok() {
            let _ = tcsetattr(&stdin, OptionalActions::Drain, &raw);
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(before) = self.0.get() {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Drain, before);
        }
    }
}
