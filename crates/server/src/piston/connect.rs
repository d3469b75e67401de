//! A WebSocket to a program that goes: `init` begins it, its stages and what it says come out, input and signals go in.
//!
//!   in    init (as for execute), data {stream: stdin, data}, signal {signal}
//!   out   runtime {language, version}, then for each stage: stage, data {stream, data}, exit {code, signal}; or error {message}
//!   end   4999 when it is done, 4000 to 4005 for what a client does wrong
//!
//! Who goes away, or is sent away, takes his run with him.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hotcell_contract::{KeyScope, Outcome, TerminalEvent};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::answer::Stage;
use super::request::Asked;
use super::runtimes::Runtime;
use super::{Caller, Refusal};
use crate::auth;
use crate::convert::Job;
use crate::http::runs::with_live_input;
use crate::problem::Problem;
use crate::run::{How, Run};
use crate::service::Service;
use crate::settings::STREAM_PULSE;
use crate::signals;
use crate::streams::{REVOKED, Seat};
use crate::transcript::{Piece, Transcript};
use crate::waiting;

/// Everybody who connects may make us hold so much: what is larger is for execute.
const MAX_MESSAGE: usize = 1 << 20;
/// To say what is to be run.
const INIT_TIME: Duration = Duration::from_secs(1);
/// For what a run has said, once it has ended: until then we hold it for who reads slowly.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// Why it is closed.
type Close = (u16, &'static str);
const ALREADY: Close = (4000, "Already Initialized");
const TOO_LATE: Close = (4001, "Initialization Timeout");
const TOLD: Close = (4002, "Notified Error");
const NOT_YET: Close = (4003, "Not yet initialized");
const NOT_STDIN: Close = (4004, "Can only write to stdin");
const NO_SIGNAL: Close = (4005, "Invalid signal");
const DONE: Close = (4999, "Job Completed");

pub(super) async fn connect(
    State(service): State<Arc<Service>>,
    Caller(caller): Caller,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    caller.may(KeyScope::Run)?;
    let upgrade = upgrade.map_err(|_| Refusal::not_found())?;
    let mut seat = Seat::take(&service, &caller)?;
    let upgrade = upgrade.max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let (mut out, mut from) = socket.split();
        talk(&service, &caller, &mut out, &mut from, &mut seat).await;
    }))
}

/// From the first word to the last.
async fn talk(service: &Arc<Service>, caller: &auth::Caller, out: &mut Out, from: &mut In, seat: &mut Seat) {
    let begun = match first(from).await {
        Ok(init) => begin(service, caller, init).await.map_err(|refusal| Ended::Said(refusal.message())),
        Err(ended) => Err(ended),
    };
    let begun = match begun {
        Ok(begun) => begun,
        Err(ended) => {
            let _ = timeout(LAST_WORDS, close(out, ended)).await;
            return;
        }
    };
    let run = Arc::clone(&begun.run);
    let input = run.to_stdin.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut input = input.and_then(|fd| pipe::Sender::from_owned_fd(fd).ok());
    let ended = tokio::select! {
        ended = tell(&begun, out) => ended,
        ended = listen(service, &begun, from, &mut input) => ended,
        () = seat.revoked() => Ended::Said(REVOKED.into()),
    };
    drop(begun);
    let _ = timeout(LAST_WORDS, close(out, ended)).await;
    // The input stays open until then: its end may be what lets the program end as if all were well.
    run.ended().await;
}

/// The last word.
async fn close(out: &mut Out, ended: Ended) {
    let (code, reason) = match ended {
        Ended::Gone => return,
        Ended::Close(close) => close,
        Ended::Said(message) => {
            let told = say(out, &json!({ "type": "error", "message": message })).await;
            if told.is_err() {
                return;
            }
            TOLD
        }
    };
    let _ = out.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
}

type Out = SplitSink<WebSocket, Message>;
type In = SplitStream<WebSocket>;

/// Why no more is said.
enum Ended {
    Gone,
    Close(Close),
    /// What went wrong, to be told.
    Said(String),
}

impl From<Problem> for Ended {
    fn from(problem: Problem) -> Ended {
        Ended::Said(Refusal::from(problem).message())
    }
}

async fn say(out: &mut Out, what: &Value) -> Result<(), Ended> {
    out.send(Message::Text(what.to_string().into())).await.map_err(|_| Ended::Gone)
}

/// The next message with something in it.
async fn next(from: &mut In) -> Result<Value, Ended> {
    loop {
        let message = match from.next().await {
            Some(Ok(message)) => message,
            _ => return Err(Ended::Gone),
        };
        let bytes = match &message {
            Message::Text(text) => text.as_bytes(),
            Message::Binary(bytes) => bytes,
            Message::Close(_) => return Err(Ended::Gone),
            Message::Ping(_) | Message::Pong(_) => continue,
        };
        return serde_json::from_slice(bytes).map_err(|e| Ended::Said(format!("the message is not JSON: {e}")));
    }
}

/// What is to be run. Words that nobody knows are passed over, as there.
async fn first(from: &mut In) -> Result<Value, Ended> {
    let until = Instant::now() + INIT_TIME;
    loop {
        let message = timeout_at(until, next(from)).await.map_err(|_| Ended::Close(TOO_LATE))??;
        match message["type"].as_str() {
            Some("init") => return Ok(message),
            Some("data" | "signal") => return Err(Ended::Close(NOT_YET)),
            _ => {}
        }
    }
}

/// A run that is going, or about to.
struct Begun {
    runtime: Runtime,
    run: Arc<Run>,
    transcript: Arc<Transcript>,
    /// With which the client has ended it.
    /// By the client.
    is_killed: AtomicBool,
    _waiting: waiting::Waiting,
}

async fn begin(service: &Arc<Service>, caller: &auth::Caller, init: Value) -> Result<Begun, Refusal> {
    let asked = service.blocking(move |service| {
        let bytes = init.to_string().len();
        Ok(Asked::of(service, &init, bytes).map(Asked::with_live_input))
    });
    let asked = asked.await??;
    let runtime = asked.runtime.clone();
    let transcript = Arc::new(Transcript::default());
    let how = How { transcript: Some(Arc::clone(&transcript)), ..How::default() };
    let by = caller.clone();
    let with_input = |job: Job| match job.policy.require_approval {
        true => Err(Problem::field("stdin", "the policy asks for an approval, which is not for an input: use execute")),
        false => with_live_input(job),
    };
    let submitted = waiting::submit(service, move |service| asked.submit(service, &by, how, with_input));
    let (run, waiting) = submitted.await?;
    Ok(Begun { runtime, run, transcript, is_killed: AtomicBool::new(false), _waiting: waiting })
}

/// Stages and what is said in them, until the run has ended.
async fn tell(begun: &Begun, out: &mut Out) -> Ended {
    let patience = async {
        begun.run.ended().await;
        sleep(LAST_WORDS).await;
    };
    tokio::select! {
        told = tell_all(begun, out) => told.map_or_else(|ended| ended, |()| Ended::Close(DONE)),
        () = patience => Ended::Gone,
    }
}

async fn tell_all(begun: &Begun, out: &mut Out) -> Result<(), Ended> {
    let Begun { runtime, run, transcript, .. } = begun;
    let mut stage = None;
    loop {
        // In this order: what it said last is there when it has ended.
        let has_ended = run.has_ended();
        for piece in transcript.take() {
            match piece {
                Piece::Began(name) => enter(out, runtime, &mut stage, &name).await?,
                Piece::Said { stream, text } => {
                    say(out, &json!({ "type": "data", "stream": stream, "data": text })).await?;
                }
            }
        }
        if has_ended {
            break;
        }
        tokio::select! {
            () = transcript.more() => {}
            () = run.ended() => {}
            () = sleep(STREAM_PULSE) => {
                out.send(Message::Ping(Default::default())).await.map_err(|_| Ended::Gone)?;
            }
        }
    }
    let outcome = run.end().await?;
    leave(out, runtime, stage, &outcome, begun.is_killed.load(Ordering::Relaxed)).await
}

/// A stage begins, and with it the one before has passed.
async fn enter(out: &mut Out, runtime: &Runtime, stage: &mut Option<String>, name: &str) -> Result<(), Ended> {
    let begins = |name: &str| json!({ "type": "stage", "stage": name });
    if stage.is_none() {
        let Runtime { language, version, .. } = runtime;
        say(out, &json!({ "type": "runtime", "language": language, "version": version })).await?;
        if name == "run" && runtime.is_compiled {
            // The same was compiled before.
            say(out, &begins("compile")).await?;
            *stage = Some("compile".into());
        }
    }
    if let Some(before) = stage {
        say(out, &json!({ "type": "exit", "stage": before, "code": 0, "signal": null })).await?;
    }
    *stage = Some(name.to_owned());
    say(out, &begins(name)).await
}

/// The end of the last one. What the client killed is told to have been.
async fn leave(
    out: &mut Out,
    runtime: &Runtime,
    mut stage: Option<String>,
    outcome: &Outcome,
    is_killed: bool,
) -> Result<(), Ended> {
    if stage.is_none() {
        // It was ended before its program began.
        enter(out, runtime, &mut stage, "run").await?;
    }
    let last = Stage::last(outcome);
    let is_killed = is_killed && outcome.terminal_event == Some(TerminalEvent::Cancelled);
    let signal = if is_killed { Some("SIGKILL") } else { last.signal };
    let mut exit = json!({ "type": "exit", "stage": stage, "code": last.code, "signal": signal });
    if let Some(message) = last.message.filter(|_| last.is_of_ours) {
        exit["error"] = message.into();
    }
    say(out, &exit).await
}

/// Until the client goes away, or does what it must not. It is listened to while the program does not read.
async fn listen(service: &Arc<Service>, begun: &Begun, from: &mut In, input: &mut Option<pipe::Sender>) -> Ended {
    let mut waiting = vec![];
    loop {
        tokio::select! {
            message = next(from), if waiting.len() < MAX_MESSAGE => {
                let heeded = message.and_then(|message| heed(service, begun, &message, &mut waiting));
                if let Err(ended) = heeded {
                    return ended;
                }
            }
            written = write(input, &waiting), if !waiting.is_empty() => {
                waiting.drain(..written);
            }
        }
    }
}

/// How much of it is done with.
async fn write(input: &mut Option<pipe::Sender>, bytes: &[u8]) -> usize {
    match input {
        // A program that reads no more has closed it; that is its own business.
        Some(to) => to.write(bytes).await.unwrap_or(bytes.len()),
        None => bytes.len(),
    }
}

/// `waiting` is what the program is still to read.
fn heed(service: &Arc<Service>, begun: &Begun, message: &Value, waiting: &mut Vec<u8>) -> Result<(), Ended> {
    match message["type"].as_str() {
        Some("init") => return Err(Ended::Close(ALREADY)),
        Some("data") if message["stream"] != "stdin" => return Err(Ended::Close(NOT_STDIN)),
        Some("data") => waiting.extend(message["data"].as_str().unwrap_or_default().as_bytes()),
        Some("signal") => {
            let signal = message["signal"].as_str().and_then(signals::number).ok_or(Ended::Close(NO_SIGNAL))?;
            send(service, begun, signal);
        }
        _ => {}
    }
    Ok(())
}

/// For the program. The last one of them ends all of the run.
fn send(service: &Arc<Service>, begun: &Begun, signal: u8) {
    if signals::name(signal.into()) != Some("SIGKILL") {
        begun.run.passed.iter().for_each(|passed| passed.send(signal));
        return;
    }
    begun.is_killed.store(true, Ordering::Relaxed);
    service.cancel(&begun.run);
    // Without the time that others have.
    begun.run.cancel();
}
