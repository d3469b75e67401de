//! What a client writes on our standard input, and that it has ended.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use rmcp::transport::StdioReader;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

use crate::settings::MAX_MESSAGE;

pub(super) struct Input {
    inner: StdioReader,
    /// Bytes of the line that is being read.
    line: usize,
    ended: watch::Sender<bool>,
    is_too_long: Arc<AtomicBool>,
}

impl Input {
    pub(super) fn new(inner: StdioReader, ended: watch::Sender<bool>, is_too_long: Arc<AtomicBool>) -> Input {
        Input { inner, line: 0, ended, is_too_long }
    }
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let input = self.get_mut();
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut input.inner).poll_read(context, buffer));
        let new = &buffer.filled()[before..];
        input.line = match new.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => new.len() - at - 1,
            None => input.line + new.len(),
        };
        if input.line > MAX_MESSAGE {
            // Nobody knows which request this would have been: who waits for its answer must learn that there is none.
            input.is_too_long.store(true, Ordering::Relaxed);
            input.ended.send_replace(true);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        if read.is_err() || new.is_empty() {
            input.ended.send_replace(true);
        }
        Poll::Ready(read)
    }
}
