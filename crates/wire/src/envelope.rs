//! The envelope of protobuf bodies: `k8s\0`, then a `runtime.Unknown` with apiVersion, kind, and
//! the encoded object.

use prost::Message;
use prost::bytes::Bytes;

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encoding {
    Json,
    Protobuf,
}

impl Encoding {
    /// The value for `Accept` and `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// The encoding of a `Content-Type`; its parameters are ignored.
    pub fn of_media_type(text: &str) -> Option<Self> {
        let bare = text.split(';').next().unwrap_or_default().trim();
        [Self::Json, Self::Protobuf]
            .into_iter()
            .find(|encoding| encoding.media_type().eq_ignore_ascii_case(bare))
    }
}

pub(crate) const MAGIC: &[u8; 4] = b"k8s\0";

/// `runtime.Unknown` with the object not decoded.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Unknown {
    #[prost(message, required, tag = "1")]
    pub(crate) type_meta: TypeMeta,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) raw: Bytes,
    #[prost(string, tag = "3")]
    pub(crate) content_encoding: String,
    #[prost(string, tag = "4")]
    pub(crate) content_type: String,
}

/// `runtime.TypeMeta`.
#[derive(Clone, PartialEq, prost::Message, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct TypeMeta {
    #[prost(string, tag = "1")]
    pub(crate) api_version: String,
    #[prost(string, tag = "2")]
    pub(crate) kind: String,
}

impl Unknown {
    /// Borrows from `body`: nothing is copied.
    pub(crate) fn open(body: &Bytes) -> Result<Self, String> {
        if !body.starts_with(MAGIC) {
            return Err("no protobuf object: the prefix is missing".to_owned());
        }
        let unknown = Self::decode(body.slice(MAGIC.len()..)).map_err(|error| error.to_string())?;
        if !unknown.content_encoding.is_empty() {
            return Err(format!("unknown content encoding: `{}`", unknown.content_encoding));
        }
        Ok(unknown)
    }

    pub(crate) fn read<W: Message + Default>(self) -> Result<W, String> {
        W::decode(self.raw).map_err(|error| error.to_string())
    }
}

/// Wraps a message for the API server.
pub(crate) fn seal(api_version: &str, kind: &str, message: &impl Message) -> Vec<u8> {
    let type_meta = TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() };
    let raw = Bytes::from(message.encode_to_vec());
    let unknown = Unknown { type_meta, raw, ..Default::default() };
    let mut body = Vec::with_capacity(MAGIC.len() + unknown.encoded_len());
    body.extend_from_slice(MAGIC);
    unknown.encode(&mut body).expect("a vector grows as needed");
    body
}
