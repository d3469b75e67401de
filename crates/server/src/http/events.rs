//! The events of a run as a stream (server-sent events). Each has its number as its id: who comes again with `Last-Event-ID`
//! goes on where he was. Who was too slow, or came too late, is told how many he has missed; whose key is revoked is told so last.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use futures_util::stream::unfold;
use hotcell_contract::KeyScope;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Answer, Id};
use crate::auth::Caller;
use crate::log::{Log, Page};
use crate::problem::Problem;
use crate::service::Service;
use crate::settings::STREAM_PULSE;
use crate::streams::{REVOKED, Seat};

pub(super) async fn stream(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Id(id): Id,
    headers: HeaderMap,
) -> Answer {
    caller.may(KeyScope::Read)?;
    let log = match service.log(&caller.tenant, &id) {
        Some(log) => log,
        // It is known, or is not.
        None => {
            service.view(&caller.tenant, &id)?;
            let detail = "its events are not kept any more: its result is at /v1/runs/ID";
            return Err(Problem::new(StatusCode::GONE, "gone", detail));
        }
    };
    let seen =
        match headers.get("last-event-id") {
            None => 0,
            Some(value) => value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
                Problem::field("Last-Event-ID", "it is none of the ids of these events: leave it out")
            })?,
        };
    let seat = Seat::take(&service, &caller)?;
    let reader = Reader { changes: log.changes(), log, seen, is_over: false };
    let body = Body::from_stream(unfold((reader, seat), |(mut reader, mut seat)| async move {
        let bytes = tokio::select! {
            biased;
            () = seat.revoked(), if !reader.is_over => reader.sent_away(),
            bytes = reader.next() => bytes?,
        };
        Some((Ok::<_, Infallible>(bytes), (reader, seat)))
    }));
    let content_type = HeaderValue::from_static("text/event-stream");
    Ok(([(header::CONTENT_TYPE, content_type)], body).into_response())
}

struct Reader {
    log: Arc<Log>,
    changes: watch::Receiver<u64>,
    seen: u64,
    is_over: bool,
}

impl Reader {
    /// What there is, as soon as there is something; a sign of life otherwise.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.is_over {
            self.changes.borrow_and_update();
            let page = self.log.after(self.seen);
            self.is_over = page.closed;
            if let Some(bytes) = self.written(&page) {
                return Some(bytes);
            }
            if !self.is_over && timeout(STREAM_PULSE, self.changes.changed()).await.is_err() {
                return Some(Bytes::from_static(b": still there\n\n"));
            }
        }
        None
    }

    fn sent_away(&mut self) -> Bytes {
        self.is_over = true;
        format!("event: closed\ndata: {{\"reason\":\"{REVOKED}\"}}\n\n").into()
    }

    fn written(&mut self, page: &Page) -> Option<Bytes> {
        let mut text = String::new();
        if page.missed > 0 {
            text.push_str(&format!("event: missed\ndata: {{\"events\":{}}}\n\n", page.missed));
        }
        for numbered in &page.events {
            self.seen = numbered.number;
            let (name, data) = (numbered.event.happened.name(), serde_json::to_string(&*numbered.event).ok()?);
            // JSON has no line ends of its own in it.
            text.push_str(&format!("id: {}\nevent: {name}\ndata: {data}\n\n", numbered.number));
        }
        (!text.is_empty()).then(|| text.into())
    }
}
