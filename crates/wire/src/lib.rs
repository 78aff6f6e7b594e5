//! Kubernetes objects on the wire: one set of partial structs that carry both `prost::Message`
//! and `serde`, and their conversions to and from `model`. Start at [`decode`] and [`encode`].
//!
//! Absent, null, and empty are the same when reading, and fields we do not use are skipped. What
//! has the wrong type is [`Malformed`], which names the object, so that one bad object never
//! hides its neighbours. No function here performs I/O.

mod any;
mod decode;
mod delete;
mod encode;
mod endpoints;
mod envelope;
mod int_or_string;
mod lenient;
mod list;
mod malformed;
mod meta;
mod node;
mod pairs;
mod pod;
mod quantity;
mod service;
mod slice;
mod status;
mod stored;
mod time;
mod watch;

pub use any::{AnyObject, flatten};
pub use decode::{Decoded, decode};
pub use delete::encode_delete;
pub use encode::{encode, to_json_value};
pub use envelope::Encoding;
pub use list::{Page, decode_list};
pub use malformed::{Identity, Malformed};
pub use prost::bytes::Bytes;
pub use status::{Status, StatusCause, StatusDetails, decode_status};
pub use stored::{SentObject, decode_stored};
pub use watch::{
    Bookmark, FRAME_BYTES_MAX, FrameTooLong, Frames, WatchEvent, decode_watch_event,
    peek_key_and_version,
};
