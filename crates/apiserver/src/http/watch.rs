//! Watches as streams. A watch is a cursor into the shared history and reads only when its client
//! does: a slow one buffers nothing and slows nobody, and is cut off with 410 when the history it
//! still needs is gone.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use serde_json::json;
use tokio::sync::watch as signal;
use tokio::time::{Instant, sleep_until};

use super::list::Look;
use super::media::Form;
use super::{Pace, Shared};
use crate::refusal::Refusal;
use crate::store::{Cursor, Seen, SeenKind, Stored};
use crate::verbs::WatchStart;

/// At most this many changes are taken from the history at once.
const CHANGES_MAX: usize = 128;
/// A piece is sent when it is at least this long.
const PIECE_BYTES: usize = 64 << 10;

const INITIAL_END: &str = "k8s.io/initial-events-end";

/// Whether a watch ends by itself, and whether it says that it lives.
pub(super) struct Terms {
    pub ends_at: Instant,
    pub bookmarks: bool,
    pub pace: Pace,
}

struct Watching {
    shared: Shared,
    look: Look,
    terms: Terms,
    initial: VecDeque<Arc<Stored>>,
    marks_end: bool,
    cursor: Cursor,
    written: signal::Receiver<u64>,
    next_bookmark: Instant,
    is_first: bool,
    is_over: bool,
}

pub(super) fn watch_body(shared: Shared, look: Look, start: WatchStart, terms: Terms) -> Body {
    let WatchStart { initial, marks_end, cursor } = start;
    let watching = Watching {
        written: shared.written(),
        next_bookmark: Instant::now() + terms.pace.bookmark_every,
        shared,
        look,
        terms,
        initial: initial.into(),
        marks_end,
        cursor,
        is_first: true,
        is_over: false,
    };
    Body::from_stream(stream::unfold(watching, |mut watching| async move {
        let piece = watching.next_piece().await?;
        Some((Ok::<Bytes, Infallible>(piece), watching))
    }))
}

impl Watching {
    /// Waits until there is something to say; `None` ends the watch.
    async fn next_piece(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        if let Some(piece) = self.initial_piece() {
            return Some(piece);
        }
        loop {
            // Seen before reading: a write in between wakes the wait below.
            self.written.borrow_and_update();
            match self.read() {
                Ok(Some(piece)) => return Some(piece),
                Ok(None) => {}
                Err(refusal) => {
                    self.is_over = true;
                    return Some(error_line(&refusal));
                }
            }
            let bookmark_at =
                if self.terms.bookmarks { self.next_bookmark } else { self.terms.ends_at };
            tokio::select! {
                changed = self.written.changed() => changed.ok()?,
                () = sleep_until(self.terms.ends_at) => return None,
                () = sleep_until(bookmark_at), if self.terms.bookmarks => {
                    self.next_bookmark = Instant::now() + self.terms.pace.bookmark_every;
                    return Some(self.bookmark(false));
                }
            }
        }
    }

    fn initial_piece(&mut self) -> Option<Bytes> {
        if self.initial.is_empty() && !self.marks_end {
            return None;
        }
        let mut piece = BytesMut::new();
        while piece.len() < PIECE_BYTES
            && let Some(object) = self.initial.pop_front()
        {
            self.put(&mut piece, &Seen { kind: SeenKind::Added, object });
        }
        if self.initial.is_empty() && std::mem::take(&mut self.marks_end) {
            piece.put_slice(&self.bookmark(true));
        }
        Some(piece.freeze())
    }

    fn read(&mut self) -> Result<Option<Bytes>, Refusal> {
        let seen = {
            let server = self.shared.lock();
            server.store().read(&mut self.cursor, CHANGES_MAX)
        };
        let seen = seen.map_err(|gone| Refusal::too_old(gone.asked, gone.floor))?;
        if seen.is_empty() {
            return Ok(None);
        }
        let mut piece = BytesMut::new();
        for one in &seen {
            self.put(&mut piece, one);
        }
        Ok(Some(piece.freeze()))
    }

    fn put(&mut self, piece: &mut BytesMut, seen: &Seen) {
        let is_first = std::mem::replace(&mut self.is_first, false);
        let head = format!("{{\"type\":\"{}\",\"object\":", seen.kind.word());
        piece.put_slice(head.as_bytes());
        piece.put_slice(&self.look.watched(&seen.object, is_first));
        piece.put_slice(b"}\n");
    }

    /// Tells how far the watch has come; upstream leaves all else of the object empty.
    fn bookmark(&self, ends_initial: bool) -> Bytes {
        let kind = self.look.kind;
        let mut object = match self.look.form {
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

fn error_line(refusal: &Refusal) -> Bytes {
    format!("{}\n", json!({"type": "ERROR", "object": refusal.to_status()})).into()
}

/// A watch that ends with the refusal it began with: upstream answers 200 and tells it inside.
pub(super) fn refused_body(refusal: &Refusal) -> Body {
    Body::from(error_line(refusal))
}
