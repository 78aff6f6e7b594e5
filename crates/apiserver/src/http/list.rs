//! Streams list responses: the body is built in chunks from shared objects, so that a list of
//! 50,000 pods is not copied.

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

/// A chunk is sent when it has at least this size.
const CHUNK_BYTES_MIN: usize = 64 << 10;

/// How the objects of one response are encoded.
#[derive(Clone, Copy)]
pub(super) struct ResponseFormat {
    pub kind: &'static Kind,
    pub form: Form,
    pub include: Include,
    pub now: Timestamp,
}

impl ResponseFormat {
    /// One object as a complete response body.
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

    /// One object of a watch event; a table has its columns in the first event only.
    pub(super) fn watch_object(&self, stored: &Stored, is_first: bool) -> Bytes {
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

    /// The JSON before the first item.
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

/// The rest of a list that is being sent.
struct ListBody {
    format: ResponseFormat,
    head: Option<String>,
    objects: std::vec::IntoIter<Arc<Stored>>,
    is_first: bool,
    is_done: bool,
}

pub(super) fn list_body(format: ResponseFormat, page: Page) -> Body {
    let head = Some(format.head(&page));
    let body = ListBody {
        format,
        head,
        objects: page.objects.into_iter(),
        is_first: true,
        is_done: false,
    };
    Body::from_stream(stream::unfold(body, |mut body| async move {
        let chunk = body.chunk()?;
        Some((Ok::<Bytes, std::convert::Infallible>(chunk), body))
    }))
}

impl ListBody {
    fn chunk(&mut self) -> Option<Bytes> {
        if self.is_done {
            return None;
        }
        let mut chunk = BytesMut::with_capacity(CHUNK_BYTES_MIN * 2);
        if let Some(head) = self.head.take() {
            chunk.put_slice(head.as_bytes());
        }
        while chunk.len() < CHUNK_BYTES_MIN {
            let Some(object) = self.objects.next() else {
                chunk.put_slice(b"]}\n");
                self.is_done = true;
                break;
            };
            if !std::mem::take(&mut self.is_first) {
                chunk.put_u8(b',');
            }
            chunk.put_slice(&self.format.item(&object));
        }
        Some(chunk.freeze())
    }
}
