//! Lists as streams: the page holds shared objects, and the body is made of them piece by piece, so
//! that fifty thousand pods are never in memory twice.

use std::sync::Arc;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::media::Form;
use crate::kinds::Kind;
use crate::store::Stored;
use crate::table::Include;
use crate::verbs::{Page, item, present, shown_as};

/// A piece is sent when it is at least this long.
const PIECE_BYTES: usize = 64 << 10;

/// How objects of one request are shown.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub kind: &'static Kind,
    pub form: Form,
    pub include: Include,
    pub now: Timestamp,
}

impl Look {
    /// One object as the answer to a request, whole.
    pub(super) fn one(&self, stored: &Stored) -> Bytes {
        match self.form {
            Form::Object => present(self.kind, stored),
            Form::PartialMetadata => self.partial(&stored.value()).to_string().into(),
            Form::Table => {
                let mut table = self.table_head(stored.revision);
                table["columnDefinitions"] = self.kind.columns.definitions();
                table["rows"] = json!([self.row(stored)]);
                table.to_string().into()
            }
        }
    }

    /// One object of a watch; a table tells its columns only once.
    pub(super) fn watched(&self, stored: &Stored, is_first: bool) -> Bytes {
        if self.form == Form::Table && !is_first {
            let mut table = self.table_head(stored.revision);
            table["columnDefinitions"] = Value::Null;
            table["rows"] = json!([self.row(stored)]);
            return table.to_string().into();
        }
        self.one(stored)
    }

    fn item(&self, stored: &Stored) -> Bytes {
        match self.form {
            Form::Object => item(self.kind, stored),
            Form::PartialMetadata => self.partial(&stored.value()).to_string().into(),
            Form::Table => self.row(stored).to_string().into(),
        }
    }

    fn partial(&self, object: &Value) -> Value {
        json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": object["metadata"],
        })
    }

    fn row(&self, stored: &Stored) -> Value {
        let object = stored.value();
        let shown = match self.include {
            Include::None => Value::Null,
            Include::Metadata => self.partial(&object),
            Include::Object => {
                let mut shown = shown_as(self.kind, object.clone());
                shown["kind"] = json!(self.kind.kind);
                shown["apiVersion"] = json!(self.kind.api_version());
                shown
            }
        };
        self.kind.columns.row(&object, self.now, shown)
    }

    fn table_head(&self, revision: u64) -> Value {
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": revision.to_string()},
        })
    }

    /// Everything of the list before its first item.
    fn head(&self, page: &Page) -> String {
        let mut meta = json!({"resourceVersion": page.revision.to_string()});
        if !page.continue_token.is_empty() {
            meta["continue"] = json!(page.continue_token);
        }
        if let Some(n_remaining) = page.n_remaining {
            meta["remainingItemCount"] = json!(n_remaining);
        }
        let (kind, version, items) = match self.form {
            Form::Object => (format!("{}List", self.kind.kind), self.kind.api_version(), "items"),
            Form::PartialMetadata => {
                ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned(), "items")
            }
            Form::Table => {
                let columns = self.kind.columns.definitions();
                let rows = format!("columnDefinitions\":{columns},\"rows");
                return format!(
                    "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{meta},\"{rows}\":["
                );
            }
        };
        format!(
            "{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",\"metadata\":{meta},\"{items}\":["
        )
    }
}

/// What is left to send of a list.
struct Sending {
    look: Look,
    head: Option<String>,
    objects: std::vec::IntoIter<Arc<Stored>>,
    is_first: bool,
    is_done: bool,
}

pub(super) fn list_body(look: Look, page: Page) -> Body {
    let head = Some(look.head(&page));
    let sending =
        Sending { look, head, objects: page.objects.into_iter(), is_first: true, is_done: false };
    Body::from_stream(stream::unfold(sending, |mut sending| async move {
        let piece = sending.piece()?;
        Some((Ok::<Bytes, std::convert::Infallible>(piece), sending))
    }))
}

impl Sending {
    fn piece(&mut self) -> Option<Bytes> {
        if self.is_done {
            return None;
        }
        let mut piece = BytesMut::with_capacity(PIECE_BYTES * 2);
        if let Some(head) = self.head.take() {
            piece.put_slice(head.as_bytes());
        }
        while piece.len() < PIECE_BYTES {
            let Some(object) = self.objects.next() else {
                piece.put_slice(b"]}\n");
                self.is_done = true;
                break;
            };
            if !std::mem::take(&mut self.is_first) {
                piece.put_u8(b',');
            }
            piece.put_slice(&self.look.item(&object));
        }
        Some(piece.freeze())
    }
}
