//! Streams watch responses. A watch reads from its cursor only when the client reads, so a slow
//! client needs no buffer and delays no other. It gets 410 when its history was compacted.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use serde_json::json;
use tokio::sync::watch as signal;
use tokio::time::{Instant, sleep_until};

use super::list::ResponseFormat;
use super::media::Form;
use super::{Shared, WatchTimeouts};
use crate::status_error::StatusError;
use crate::store::{Cursor, Stored, WatchEvent, WatchEventType};
use crate::verbs::WatchStart;

/// Changes read from the history at once.
const CHANGES_MAX: usize = 128;
/// A chunk is sent when it has at least this size.
const CHUNK_BYTES_MIN: usize = 64 << 10;

const INITIAL_END: &str = "k8s.io/initial-events-end";

/// When a watch ends, and whether it sends bookmarks.
pub(super) struct WatchParams {
    pub ends_at: Instant,
    pub bookmarks: bool,
    pub watch_timeouts: WatchTimeouts,
}

struct WatchStream {
    shared: Shared,
    format: ResponseFormat,
    params: WatchParams,
    initial: VecDeque<Arc<Stored>>,
    marks_end: bool,
    cursor: Cursor,
    written: signal::Receiver<u64>,
    outage: signal::Receiver<bool>,
    next_bookmark: Instant,
    is_first: bool,
    is_over: bool,
}

pub(super) fn watch_body(
    shared: Shared,
    format: ResponseFormat,
    start: WatchStart,
    params: WatchParams,
) -> Body {
    let WatchStart { initial, marks_end, cursor } = start;
    let watch = WatchStream {
        written: shared.written(),
        outage: shared.outage(),
        next_bookmark: Instant::now() + params.watch_timeouts.bookmark_every,
        shared,
        format,
        params,
        initial: initial.into(),
        marks_end,
        cursor,
        is_first: true,
        is_over: false,
    };
    Body::from_stream(stream::unfold(watch, |mut watch| async move {
        let chunk = watch.next_chunk().await?;
        Some((Ok::<Bytes, Infallible>(chunk), watch))
    }))
}

impl WatchStream {
    /// Waits for the next events; `None` ends the watch.
    async fn next_chunk(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        if let Some(chunk) = self.initial_chunk() {
            return Some(chunk);
        }
        loop {
            // Before reading, so that a write in between wakes the wait below.
            self.written.borrow_and_update();
            match self.read() {
                Ok(Some(chunk)) => return Some(chunk),
                Ok(None) => {}
                Err(error) => {
                    self.is_over = true;
                    return Some(error_line(&error));
                }
            }
            let bookmark_at =
                if self.params.bookmarks { self.next_bookmark } else { self.params.ends_at };
            tokio::select! {
                changed = self.written.changed() => changed.ok()?,
                () = out(&mut self.outage) => return None,
                () = sleep_until(self.params.ends_at) => return None,
                () = sleep_until(bookmark_at), if self.params.bookmarks => {
                    self.next_bookmark = Instant::now() + self.params.watch_timeouts.bookmark_every;
                    return Some(self.bookmark(false));
                }
            }
        }
    }

    fn initial_chunk(&mut self) -> Option<Bytes> {
        if self.initial.is_empty() && !self.marks_end {
            return None;
        }
        let mut chunk = BytesMut::new();
        while chunk.len() < CHUNK_BYTES_MIN
            && let Some(object) = self.initial.pop_front()
        {
            self.put(&mut chunk, &WatchEvent { kind: WatchEventType::Added, object });
        }
        if self.initial.is_empty() && std::mem::take(&mut self.marks_end) {
            chunk.put_slice(&self.bookmark(true));
        }
        Some(chunk.freeze())
    }

    fn read(&mut self) -> Result<Option<Bytes>, StatusError> {
        let events = {
            let server = self.shared.lock();
            server.store().read(&mut self.cursor, CHANGES_MAX)
        };
        let events = events.map_err(|gone| StatusError::too_old(gone.requested, gone.floor))?;
        if events.is_empty() {
            return Ok(None);
        }
        let mut chunk = BytesMut::new();
        for one in &events {
            self.put(&mut chunk, one);
        }
        Ok(Some(chunk.freeze()))
    }

    fn put(&mut self, chunk: &mut BytesMut, events: &WatchEvent) {
        let is_first = std::mem::replace(&mut self.is_first, false);
        let head = format!("{{\"type\":\"{}\",\"object\":", events.kind.as_str());
        chunk.put_slice(head.as_bytes());
        chunk.put_slice(&self.format.watch_object(&events.object, is_first));
        chunk.put_slice(b"}\n");
    }

    /// A bookmark with the current version; as upstream, the object has no other fields.
    fn bookmark(&self, ends_initial: bool) -> Bytes {
        let kind = self.format.kind;
        let mut object = match self.format.form {
            Form::Object => json!({"kind": kind.kind, "apiVersion": kind.api_version()}),
            Form::PartialMetadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"})
            }
            Form::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": null,
                "rows": [],
            }),
        };
        object["metadata"] = json!({"resourceVersion": self.cursor.revision().to_string()});
        if ends_initial {
            object["metadata"]["annotations"] = json!({INITIAL_END: "true"});
        }
        format!("{}\n", json!({"type": "BOOKMARK", "object": object})).into()
    }
}

/// Completes when an outage starts.
async fn out(outage: &mut signal::Receiver<bool>) {
    let _ = outage.wait_for(|is_out| *is_out).await;
}

fn error_line(error: &StatusError) -> Bytes {
    format!("{}\n", json!({"type": "ERROR", "object": error.to_status()})).into()
}

/// A watch that fails at its start: as upstream, status 200 with an `ERROR` event.
pub(super) fn error_body(error: &StatusError) -> Body {
    Body::from(error_line(error))
}
