//! Decodes the response to a create or an update, and the watch event that follows. The stored
//! object is usually the sent one with new metadata; then only the metadata is decoded, because
//! equal bytes are equal objects.

use endpointd_model::{
    EndpointSlice, Endpoints, Meta, MultiClusterObject, Object, Service, ServiceStatus,
};
use prost::Message;
use prost::bytes::Bytes;
use prost::encoding::decode_varint;

use crate::decode::decode;
use crate::envelope::{Encoding, TypeMeta, Unknown};
use crate::malformed::Malformed;
use crate::meta::ObjectMeta;
use crate::watch::applied_object;

/// The object and body of a create or an update that was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentObject<'a> {
    pub object: &'a Object,
    pub body: &'a Bytes,
}

/// The same, to be compared with an event later.
#[derive(Clone, Debug)]
pub struct SentContent {
    object: Object,
    type_meta: TypeMeta,
    /// All fields but the metadata.
    content: Bytes,
}

impl SentContent {
    /// `None`: the body is not protobuf.
    pub fn new(sent: SentObject<'_>) -> Option<Self> {
        let Unknown { type_meta, raw, .. } = Unknown::open(sent.body).ok()?;
        let (_, content) = split(&raw)?;
        let (object, content) = (sent.object.clone(), raw.slice_ref(content));
        Some(Self { object, type_meta, content })
    }

    pub fn n_bytes(&self) -> usize {
        self.content.len()
    }
}

/// Decodes the protobuf event of an object that was sent. `None`: it is another event, or the
/// object is not as it was sent.
pub fn decode_event_of_sent(
    frame: &Bytes,
    sent: impl FnOnce(&Meta) -> Option<SentContent>,
) -> Option<Object> {
    let event = applied_object(frame)?;
    let (meta, content) = split(&event.raw)?;
    let meta = Meta::try_from(ObjectMeta::decode(meta).ok()?).ok()?;
    let sent = sent(&meta)?;
    let is_same = event.type_meta == sent.type_meta && content == sent.content;
    is_same.then(|| with_meta(&sent.object, meta))
}

/// Decodes the response to a create or an update.
pub fn decode_stored(
    encoding: Encoding,
    answer: &Bytes,
    sent: SentObject<'_>,
) -> Result<Object, Malformed> {
    if encoding == Encoding::Protobuf
        && let Some(meta) = new_meta(answer, sent.body)
    {
        return Ok(with_meta(sent.object, meta));
    }
    match sent.object {
        Object::Slice(_) => decode(encoding, answer).map(Object::Slice),
        Object::Endpoints(_) => decode(encoding, answer).map(Object::Endpoints),
        Object::ServiceStatus(_) => {
            decode::<Service>(encoding, answer).map(|one| Object::ServiceStatus(one.into()))
        }
        Object::MultiCluster(object) => {
            let object = match object {
                MultiClusterObject::Import(_) => {
                    MultiClusterObject::Import(decode(encoding, answer)?)
                }
                MultiClusterObject::ImportStatus(_) => {
                    MultiClusterObject::ImportStatus(decode(encoding, answer)?)
                }
                MultiClusterObject::ExportStatus(_) => {
                    MultiClusterObject::ExportStatus(decode(encoding, answer)?)
                }
                MultiClusterObject::Derived(_) => {
                    MultiClusterObject::Derived(decode(encoding, answer)?)
                }
            };
            Ok(Object::MultiCluster(object))
        }
    }
}

/// The metadata of the response, if all other bytes equal the sent ones.
fn new_meta(answer: &Bytes, sent: &Bytes) -> Option<Meta> {
    let (answer, sent) = (Unknown::open(answer).ok()?, Unknown::open(sent).ok()?);
    let (meta, content) = split(&answer.raw)?;
    let (_, sent_content) = split(&sent.raw)?;
    if answer.type_meta != sent.type_meta || content != sent_content {
        return None;
    }
    Meta::try_from(ObjectMeta::decode(meta).ok()?).ok()
}

/// Splits off the metadata, which is the first field of every object.
fn split(mut raw: &[u8]) -> Option<(&[u8], &[u8])> {
    const METADATA: u8 = 1 << 3 | 2;
    if *raw.split_off_first()? != METADATA {
        return None;
    }
    let n_bytes = usize::try_from(decode_varint(&mut raw).ok()?).ok()?;
    raw.split_at_checked(n_bytes)
}

fn with_meta(object: &Object, meta: Meta) -> Object {
    match object {
        Object::Slice(EndpointSlice { meta: _, address_type, endpoints, ports }) => {
            let (address_type, endpoints) = (address_type.clone(), endpoints.clone());
            Object::Slice(EndpointSlice { meta, address_type, endpoints, ports: ports.clone() })
        }
        Object::Endpoints(Endpoints { meta: _, subsets }) => {
            Object::Endpoints(Endpoints { meta, subsets: subsets.clone() })
        }
        Object::ServiceStatus(ServiceStatus { meta: _, condition }) => {
            Object::ServiceStatus(ServiceStatus { meta, condition: condition.clone() })
        }
        // They are sent as JSON, and decoded as a whole.
        Object::MultiCluster(object) => Object::MultiCluster(object.clone()),
    }
}
