//! Reading a watch: bytes into frames, and a frame into what happened.

use std::borrow::Cow;

use endpointd_model::{InvalidResourceVersion, Key, ResourceVersion};
use prost::Message;
use prost::bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decode::{Decoded, from_envelope, from_json, read_json, unplaced};
use crate::envelope::{Encoding, Unknown};
use crate::malformed::Malformed;
use crate::meta::{Pair, text};
use crate::status::{Status, decode_status};

/// What a watch says, by Kubernetes' names.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent<T> {
    Added(T),
    Modified(T),
    /// As it was last.
    Deleted(T),
    Bookmark(Bookmark),
    Error(Status),
}

/// Everything up to this version has been said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bookmark {
    pub resource_version: ResourceVersion,
    /// The objects that were there when the watch began have all been told.
    pub ends_initial_events: bool,
}

/// A watch in pieces as they arrive, cut into frames: by length in protobuf, by line in JSON.
#[derive(Debug)]
pub struct Frames {
    encoding: Encoding,
    received: BytesMut,
    /// Bytes of the unfinished line known to hold no line end.
    n_searched: usize,
}

/// The frame is longer than [`FRAME_BYTES_MAX`]: the watch must be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("watch event longer than {FRAME_BYTES_MAX} bytes: {n_bytes}")]
pub struct FrameTooLong {
    pub n_bytes: usize,
}

/// The limit of client-go, several times what the API server stores of one object.
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

/// `metav1.WatchEvent`, with the object still unread.
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

/// Reads one frame of a watch on `T`.
pub fn decode_watch_event<T: Decoded>(
    encoding: Encoding,
    frame: &Bytes,
) -> Result<WatchEvent<T>, Malformed> {
    let (type_, object) = match encoding {
        Encoding::Json => {
            let RawJsonEvent { type_, object } =
                serde_json::from_slice(frame).map_err(|error| unplaced::<T>(error.to_string()))?;
            (type_.into_owned(), frame.slice_ref(object.get().as_bytes()))
        }
        Encoding::Protobuf => {
            let RawEvent { type_, object } = RawEvent::decode(frame.clone())
                .map_err(|error| unplaced::<T>(error.to_string()))?;
            (type_, object.raw)
        }
    };
    Ok(match type_.as_str() {
        "ADDED" => WatchEvent::Added(read_object(encoding, &object)?),
        "MODIFIED" => WatchEvent::Modified(read_object(encoding, &object)?),
        "DELETED" => WatchEvent::Deleted(read_object(encoding, &object)?),
        "BOOKMARK" => {
            let marked = read_marked(encoding, &object).map_err(unplaced::<T>)?;
            let bookmark = Bookmark::try_from(marked.metadata);
            WatchEvent::Bookmark(bookmark.map_err(|error| unplaced::<T>(error.to_string()))?)
        }
        "ERROR" => WatchEvent::Error(decode_status(encoding, &object)?),
        other => return Err(unplaced::<T>(format!("unknown type of watch event: `{other}`"))),
    })
}

/// Which object a frame is about, and the version it has now, without reading the object. Only
/// protobuf makes that cheap; of anything else, and of a deletion, nothing is said.
pub fn peek_key_and_version(encoding: Encoding, frame: &Bytes) -> Option<(Key, ResourceVersion)> {
    if encoding == Encoding::Json {
        return None;
    }
    let RawEvent { type_, object } = RawEvent::decode(frame.clone()).ok()?;
    if !["ADDED", "MODIFIED"].contains(&type_.as_str()) {
        return None;
    }
    let Marked { metadata } = read_marked(encoding, &object.raw).ok()?;
    let MarkedMeta { name, namespace, resource_version, annotations: _ } = metadata;
    let version = ResourceVersion::parse(&resource_version).ok()?;
    Some((Key::new(text(namespace), text(name)), version))
}

fn read_object<T: Decoded>(encoding: Encoding, object: &Bytes) -> Result<T, Malformed> {
    match encoding {
        Encoding::Json => from_json(object),
        Encoding::Protobuf => from_envelope(object),
    }
}

/// An object of any kind of which only the mark matters.
#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default)]
struct Marked {
    #[prost(message, required, tag = "1")]
    metadata: MarkedMeta,
}

#[derive(Clone, PartialEq, prost::Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MarkedMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(message, repeated, tag = "12")]
    #[serde(with = "crate::pairs")]
    annotations: Vec<Pair>,
}

fn read_marked(encoding: Encoding, object: &Bytes) -> Result<Marked, String> {
    match encoding {
        Encoding::Json => read_json(object),
        Encoding::Protobuf => Unknown::open(object)?.read(),
    }
}

impl TryFrom<MarkedMeta> for Bookmark {
    type Error = InvalidResourceVersion;

    fn try_from(meta: MarkedMeta) -> Result<Self, Self::Error> {
        let MarkedMeta { resource_version, annotations, .. } = meta;
        Ok(Self {
            resource_version: ResourceVersion::parse(&resource_version)?,
            ends_initial_events: annotations
                .iter()
                .any(|Pair { key, value }| key == INITIAL_EVENTS_END && value == "true"),
        })
    }
}
