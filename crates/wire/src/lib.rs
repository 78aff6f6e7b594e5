//! Decodes and encodes Kubernetes objects as JSON and protobuf. One set of partial structs derives
//! both `prost::Message` and `serde`; they are converted from and to `endpointd-model`. Start at
//! [`decode`] and [`encode`].
//!
//! Absent, null, and empty fields decode to the same value, and unused fields are skipped. A field
//! of the wrong type gives [`Malformed`], which names the object, so that one malformed object of a
//! list does not affect the others. No function here performs I/O.

mod any;
mod condition;
mod decode;
mod delete;
mod derived_service;
mod encode;
mod endpoints;
mod envelope;
mod int_or_string;
mod lenient;
mod list;
mod malformed;
mod managers;
mod meta;
mod multicluster;
mod namespace;
mod node;
mod pod;
mod pod_uids;
mod quantity;
mod reference_grant;
mod service;
mod service_status;
mod service_traffic;
mod slice;
mod status;
mod stored;
mod string_map;
mod time;
mod watch;

pub use any::{AnyObject, flatten};
pub use decode::{Decoded, decode, decode_value};
pub use delete::encode_delete;
pub use derived_service::derived_service_to_json;
pub use encode::{PATCH_MEDIA_TYPE, encode, to_json_value};
pub use envelope::Encoding;
pub use list::{Page, decode_list};
pub use malformed::{Identity, Malformed};
pub use managers::decode_field_manager;
pub use multicluster::{export_to_json, import_to_json};
pub use pod_uids::{PodUidPage, decode_pod_uids};
pub use prost::bytes::Bytes;
pub use status::{Status, StatusCause, StatusDetails, decode_status};
pub use stored::{SentContent, SentObject, decode_event_of_sent, decode_stored};
pub use watch::{
    Bookmark, Deletion, FRAME_BYTES_MAX, FrameTooLong, Frames, WatchEvent, decode_deletion,
    decode_watch_event,
};

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
