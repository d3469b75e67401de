//! A WebSocket to a run: its events and output go out, its input comes in.
//!
//!   out   text: the events of the run, as its stream has them; `{"event":"missed","data":{"events":3}}` for a gap
//!   in    binary: bytes for standard input
//!         text: `{"stdin":"..."}`, `{"close_stdin":true}`, `{"cancel":true}`, `{"signal":"SIGINT"}`,
//!         `{"resize":{"rows":24,"columns":80}}` of a terminal
//!
//! The first one who attaches has the input, of a run that was asked for with `attach`. When he goes away his run is called
//! off, unless he came with `keep`.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{StatusCode, Uri};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hotcell_contract::{KeyScope, TerminalSize};
use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::{Answer, Id, query};
use crate::auth::Caller;
use crate::problem::Problem;
use crate::run::Run;
use crate::service::Service;
use crate::settings::{MAX_WAITING, STREAM_PULSE};
use crate::signals;
use crate::streams::{REVOKED, Seat};

const NOT_YOURS: &str = "this run is not yours to talk to";

/// A line that somebody types, or a piece of a file.
const MAX_MESSAGE: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manner {
    #[serde(default)]
    keep: bool,
}

/// What a client says in text.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Word {
    stdin: Option<String>,
    close_stdin: bool,
    cancel: bool,
    signal: Option<String>,
    resize: Option<TerminalSize>,
}

pub(super) async fn attach(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Id(id): Id,
    uri: Uri,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    caller.may(KeyScope::Run)?;
    let Manner { keep } = query(&uri)?;
    let Some(run) = service.run(&caller.tenant, &id) else {
        service.view(&caller.tenant, &id)?;
        return Err(Problem::new(StatusCode::GONE, "gone", "it has ended: its result is at /v1/runs/ID"));
    };
    let upgrade = upgrade.map_err(|e| {
        Problem::new(StatusCode::UPGRADE_REQUIRED, "web-socket", format!("this is for WebSockets: {}", e.body_text()))
    })?;
    let mut seat = Seat::take(&service, &caller)?;
    let upgrade = upgrade.max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
    Ok(upgrade.on_upgrade(move |socket| async move {
        talk(&service, &run, socket, keep, &mut seat).await;
    }))
}

async fn talk(service: &Arc<Service>, run: &Arc<Run>, socket: WebSocket, keep: bool, seat: &mut Seat) {
    let input = run.to_stdin.lock().unwrap_or_else(PoisonError::into_inner).take();
    let is_owner = input.is_some();
    let mut input = input.and_then(|fd| pipe::Sender::from_owned_fd(fd).ok());
    let (mut out, mut from) = socket.split();
    let mut why = None;
    tokio::select! {
        () = tell(run, &mut out) => {}
        said = listen(service, run, &mut from, &mut input) => why = Some(said),
        () = seat.revoked() => why = Some(Err(REVOKED)),
    }
    let is_left = is_owner && !keep && !run.has_ended();
    if is_left {
        service.cancel(run);
    }
    let (code, reason) = match why {
        None => (close_code::NORMAL, "the run has ended"),
        Some(Ok(())) => (close_code::NORMAL, ""),
        Some(Err(wrong)) => (close_code::POLICY, wrong),
    };
    let _ = out.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
    if is_left {
        // The input stays open until then: its end may be what lets the program end as if all were well.
        let _ = run.end().await;
    }
}

/// Until nothing comes any more, or nobody is there to hear it.
async fn tell(run: &Run, out: &mut SplitSink<WebSocket, Message>) {
    let mut changes = run.log.changes();
    let mut seen = 0;
    loop {
        changes.borrow_and_update();
        let page = run.log.after(seen);
        if page.missed > 0 {
            let missed = format!("{{\"event\":\"missed\",\"data\":{{\"events\":{}}}}}", page.missed);
            if out.send(Message::Text(missed.into())).await.is_err() {
                return;
            }
        }
        for numbered in &page.events {
            seen = numbered.number;
            let Ok(text) = serde_json::to_string(&*numbered.event) else { return };
            if out.send(Message::Text(text.into())).await.is_err() {
                return;
            }
        }
        if page.closed {
            return;
        }
        match timeout(STREAM_PULSE, changes.changed()).await {
            Ok(_) => {}
            Err(_) if out.send(Message::Ping(Default::default())).await.is_err() => return,
            Err(_) => {}
        }
    }
}

/// Until the client goes away, or says what nobody understands.
async fn listen(
    service: &Arc<Service>,
    run: &Arc<Run>,
    from: &mut SplitStream<WebSocket>,
    input: &mut Option<pipe::Sender>,
) -> Result<(), &'static str> {
    let is_owner = input.is_some();
    // What the program has not read yet: who writes it is heard all the same, as long as it is not too much.
    let (mut waiting, mut closes) = (VecDeque::new(), false);
    loop {
        if closes && waiting.is_empty() {
            *input = None;
        }
        let message = tokio::select! {
            wrote = write(input, &mut waiting), if !waiting.is_empty() => {
                if wrote.is_err() {
                    // A program that reads no more has closed it; that is its own business.
                    waiting.clear();
                }
                continue;
            }
            message = from.next(), if waiting.len() < MAX_WAITING => message,
        };
        let bytes = match message {
            Some(Ok(Message::Binary(bytes))) => bytes.to_vec(),
            Some(Ok(Message::Text(text))) => {
                let wrong = "say stdin, close_stdin, cancel, signal or resize, as a JSON object";
                if !text.trim_start().starts_with('{') {
                    return Err(wrong);
                }
                let word: Word = serde_json::from_str(&text).map_err(|_| wrong)?;
                if word.cancel {
                    service.cancel(run);
                }
                if let Some(signal) = word.signal {
                    let signal = signals::number(&signal).ok_or("there is no such signal")?;
                    run.passed.as_ref().filter(|_| is_owner).ok_or(NOT_YOURS)?.send(signal);
                }
                if let Some(size) = word.resize {
                    let terminal = run.terminal.as_ref().ok_or("this run has no terminal")?;
                    if !is_owner {
                        return Err(NOT_YOURS);
                    }
                    if !size.is_usual() || terminal.resize(size.rows, size.columns).is_err() {
                        return Err("a terminal has 1 to 1000 rows and columns");
                    }
                }
                closes |= word.close_stdin;
                word.stdin.unwrap_or_default().into_bytes()
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Close(_))) | Some(Err(_)) | None => return Ok(()),
        };
        if !bytes.is_empty() && input.is_none() {
            return Err(NOT_YOURS);
        }
        waiting.extend(bytes);
    }
}

/// As much of it as the program's pipe takes now.
async fn write(input: &mut Option<pipe::Sender>, waiting: &mut VecDeque<u8>) -> std::io::Result<()> {
    let to = input.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
    let wrote = to.write(waiting.as_slices().0).await?;
    waiting.drain(..wrote);
    Ok(())
}
