//! Decodes a watch: splits the byte stream into frames, and decodes a frame into an event.

use std::borrow::Cow;

use endpointd_model::{InvalidResourceVersion, ResourceVersion};
use prost::Message;
use prost::bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decode::{Decoded, from_envelope, from_json, malformed_without_identity, read_json};
use crate::envelope::{Encoding, Unknown};
use crate::malformed::Malformed;
use crate::meta::MapEntry;
use crate::status::{Status, decode_status};

/// A watch event.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent<T> {
    Added(T),
    Modified(T),
    /// The last state of the object.
    Deleted(T),
    Bookmark(Bookmark),
    Error(Status),
}

/// All events up to this version have been sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bookmark {
    pub resource_version: ResourceVersion,
    /// The initial list of the watch is complete (annotation `k8s.io/initial-events-end`).
    pub ends_initial_events: bool,
}

/// Splits a watch stream into frames: by length prefix in protobuf, by line in JSON.
#[derive(Debug)]
pub struct Frames {
    encoding: Encoding,
    received: BytesMut,
    /// Bytes of the incomplete line that contain no line end.
    n_searched: usize,
}

/// The frame is longer than [`FRAME_BYTES_MAX`]; the watch must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("watch event longer than {FRAME_BYTES_MAX} bytes: {n_bytes}")]
pub struct FrameTooLong {
    pub n_bytes: usize,
}

/// The limit of client-go, several times the largest object that the API server stores.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

const LENGTH_BYTES: usize = 4;
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl Frames {
    pub fn new(encoding: Encoding) -> Self {
        Self { encoding, received: BytesMut::new(), n_searched: 0 }
    }

    pub fn push(&mut self, piece: &[u8]) {
        self.received.extend_from_slice(piece);
    }

    /// The next complete frame, if it has arrived.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameTooLong> {
        match self.encoding {
            Encoding::Json => self.next_line(),
            Encoding::Protobuf => self.next_message(),
        }
    }

    fn next_message(&mut self) -> Result<Option<Bytes>, FrameTooLong> {
        let Some(&length) = self.received.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let n_bytes = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if n_bytes > FRAME_BYTES_MAX {
            return Err(FrameTooLong { n_bytes });
        }
        if self.received.len() < LENGTH_BYTES + n_bytes {
            return Ok(None);
        }
        self.received.advance(LENGTH_BYTES);
        Ok(Some(self.received.split_to(n_bytes).freeze()))
    }

    fn next_line(&mut self) -> Result<Option<Bytes>, FrameTooLong> {
        while let Some(at) = self.received[self.n_searched..].iter().position(|&b| b == b'\n') {
            let line = self.received.split_to(self.n_searched + at + 1).freeze();
            self.n_searched = 0;
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
        self.n_searched = self.received.len();
        if self.n_searched > FRAME_BYTES_MAX {
            return Err(FrameTooLong { n_bytes: self.n_searched });
        }
        Ok(None)
    }
}

/// `metav1.WatchEvent` with the object not decoded.
#[derive(Clone, PartialEq, prost::Message)]
struct RawEvent {
    #[prost(string, tag = "1")]
    type_: String,
    #[prost(message, required, tag = "2")]
    object: RawExtension,
}

/// `runtime.RawExtension`: an object in its own envelope.
#[derive(Clone, PartialEq, prost::Message)]
struct RawExtension {
    #[prost(bytes = "bytes", tag = "1")]
    raw: Bytes,
}

#[derive(Deserialize)]
struct RawJsonEvent<'a> {
    #[serde(borrow, rename = "type")]
    type_: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Decodes one frame of a watch on `T`.
pub fn decode_watch_event<T: Decoded>(
    encoding: Encoding,
    frame: &Bytes,
) -> Result<WatchEvent<T>, Malformed> {
    let (type_, object) = match encoding {
        Encoding::Json => {
            let RawJsonEvent { type_, object } = serde_json::from_slice(frame)
                .map_err(|error| malformed_without_identity::<T>(error.to_string()))?;
            (type_.into_owned(), frame.slice_ref(object.get().as_bytes()))
        }
        Encoding::Protobuf => {
            let RawEvent { type_, object } = RawEvent::decode(frame.clone())
                .map_err(|error| malformed_without_identity::<T>(error.to_string()))?;
            (type_, object.raw)
        }
    };
    Ok(match type_.as_str() {
        "ADDED" => WatchEvent::Added(read_object(encoding, &object)?),
        "MODIFIED" => WatchEvent::Modified(read_object(encoding, &object)?),
        "DELETED" => WatchEvent::Deleted(read_object(encoding, &object)?),
        "BOOKMARK" => {
            let partial =
                read_partial(encoding, &object).map_err(malformed_without_identity::<T>)?;
            let bookmark = Bookmark::try_from(partial.metadata);
            WatchEvent::Bookmark(
                bookmark.map_err(|error| malformed_without_identity::<T>(error.to_string()))?,
            )
        }
        "ERROR" => WatchEvent::Error(decode_status(encoding, &object)?),
        other => {
            return Err(malformed_without_identity::<T>(format!(
                "unknown type of watch event: `{other}`"
            )));
        }
    })
}

/// The object of a protobuf event, not decoded, if it was added or modified.
pub(crate) fn applied_object(frame: &Bytes) -> Option<Unknown> {
    let RawEvent { type_, object } = RawEvent::decode(frame.clone()).ok()?;
    let is_applied = matches!(type_.as_str(), "ADDED" | "MODIFIED");
    Unknown::open(&object.raw).ok().filter(|_| is_applied)
}

/// What a `DELETED` event says even if its object cannot be decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Empty for a node.
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: ResourceVersion,
}

/// Decodes only the identity of a deleted object. `None`: the event is no deletion, or the identity
/// itself cannot be decoded.
pub fn decode_deletion(encoding: Encoding, frame: &Bytes) -> Option<Deletion> {
    let (type_, identity): (String, DeletedMeta) = match encoding {
        Encoding::Json => {
            let RawJsonEvent { type_, object } = serde_json::from_slice(frame).ok()?;
            let object: DeletedJson = serde_json::from_str(object.get()).ok()?;
            (type_.into_owned(), object.metadata)
        }
        Encoding::Protobuf => {
            let RawEvent { type_, object } = RawEvent::decode(frame.clone()).ok()?;
            (type_, Unknown::open(&object.raw).ok()?.read::<DeletedMessage>().ok()?.metadata)
        }
    };
    let DeletedMeta { name, namespace, uid, resource_version } = identity;
    let resource_version = ResourceVersion::parse(&resource_version).ok()?;
    let is_complete = type_ == "DELETED" && !name.is_empty() && !resource_version.is_none();
    is_complete.then_some(Deletion { namespace, name, uid, resource_version })
}

/// An object without the fields that can be malformed.
#[derive(Clone, PartialEq, prost::Message)]
struct DeletedMessage {
    #[prost(message, required, tag = "1")]
    metadata: DeletedMeta,
}

#[derive(Deserialize)]
struct DeletedJson {
    metadata: DeletedMeta,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeletedMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
}

fn read_object<T: Decoded>(encoding: Encoding, object: &Bytes) -> Result<T, Malformed> {
    match encoding {
        Encoding::Json => from_json(object),
        Encoding::Protobuf => from_envelope(object),
    }
}

/// `metav1.PartialObjectMetadata`, as far as bookmarks need it.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
struct PartialObjectMetadata {
    #[prost(message, required, tag = "1")]
    metadata: PartialMeta,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PartialMeta {
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(message, repeated, tag = "12")]
    #[serde(with = "crate::string_map")]
    annotations: Vec<MapEntry>,
}

fn read_partial(encoding: Encoding, object: &Bytes) -> Result<PartialObjectMetadata, String> {
    match encoding {
        Encoding::Json => read_json(object),
        Encoding::Protobuf => Unknown::open(object)?.read(),
    }
}

impl TryFrom<PartialMeta> for Bookmark {
    type Error = InvalidResourceVersion;

    fn try_from(meta: PartialMeta) -> Result<Self, Self::Error> {
        let PartialMeta { resource_version, annotations } = meta;
        Ok(Self {
            resource_version: ResourceVersion::parse(&resource_version)?,
            ends_initial_events: annotations
                .iter()
                .any(|MapEntry { key, value }| key == INITIAL_EVENTS_END && value == "true"),
        })
    }
}

#[cfg(test)]
mod tests {
    use endpointd_model::Service;

    use super::*;
    use crate::envelope::seal;

    /// Metadata with an annotation whose value is no UTF-8, as a client can write it by protobuf.
    #[derive(Clone, PartialEq, prost::Message)]
    struct Metadata {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, tag = "3")]
        namespace: String,
        #[prost(string, tag = "5")]
        uid: String,
        #[prost(string, tag = "6")]
        resource_version: String,
        #[prost(message, repeated, tag = "12")]
        annotations: Vec<Annotation>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Annotation {
        #[prost(string, tag = "1")]
        key: String,
        #[prost(bytes = "vec", tag = "2")]
        value: Vec<u8>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Object {
        #[prost(message, required, tag = "1")]
        metadata: Metadata,
    }

    fn event(type_: &str) -> Bytes {
        let annotations = vec![Annotation { key: "a".to_owned(), value: vec![0xff] }];
        let metadata = Metadata {
            name: "web".to_owned(),
            namespace: "shop".to_owned(),
            uid: "u".to_owned(),
            resource_version: "7".to_owned(),
            annotations,
        };
        let object = RawExtension { raw: seal("v1", "Service", &Object { metadata }).into() };
        RawEvent { type_: type_.to_owned(), object }.encode_to_vec().into()
    }

    #[test]
    fn deletion_of_an_object_that_is_no_utf8_has_its_identity() {
        let frame = event("DELETED");
        decode_watch_event::<Service>(Encoding::Protobuf, &frame).expect_err("no UTF-8");
        let deletion = Deletion {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            uid: "u".to_owned(),
            resource_version: 7.into(),
        };
        assert_eq!(decode_deletion(Encoding::Protobuf, &frame), Some(deletion));
        assert_eq!(decode_deletion(Encoding::Protobuf, &event("MODIFIED")), None);
    }
}
