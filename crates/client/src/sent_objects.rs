//! Objects in create and update requests whose watch events have not arrived. The event of a write
//! mostly has the bytes that were sent: then only its metadata is decoded. That changes nothing but
//! the time it takes, because equal bytes are equal objects.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use endpointd_model::{Key, Meta, Object, WatchedResource};
use endpointd_wire::{Bytes, Encoding, SentContent, SentObject, decode_event_of_sent};

/// Of all objects together, as sent. While watches are down, events do not arrive; with more than
/// this, all events are decoded as usual.
const BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct SentObjects(Mutex<Sent>);

#[derive(Debug, Default)]
struct Sent {
    objects: BTreeMap<(WatchedResource, Key), SentContent>,
    n_bytes: usize,
}

impl SentObjects {
    pub(crate) fn add(&self, sent: SentObject<'_>) {
        let Some(resource) = watched(sent.object) else { return };
        let Some(content) = SentContent::new(sent) else { return };
        let mut all = self.lock();
        let place = (resource, sent.object.meta().key());
        all.remove(&place);
        if all.n_bytes + content.n_bytes() > BYTES_MAX {
            *all = Sent::default();
        }
        if content.n_bytes() <= BYTES_MAX {
            all.n_bytes += content.n_bytes();
            all.objects.insert(place, content);
        }
    }

    /// The object was not stored.
    pub(crate) fn forget(&self, object: &Object) {
        if let Some(resource) = watched(object) {
            self.lock().remove(&(resource, object.meta().key()));
        }
    }

    /// The object of an event, if it was stored as it was sent. The first event of an object is
    /// that of the write, or the write conflicts with it.
    pub(crate) fn decode_event(
        &self,
        resource: WatchedResource,
        encoding: Encoding,
        frame: &Bytes,
    ) -> Option<Object> {
        if encoding != Encoding::Protobuf || self.lock().objects.is_empty() {
            return None;
        }
        decode_event_of_sent(frame, |meta: &Meta| self.lock().remove(&(resource, meta.key())))
    }

    fn lock(&self) -> MutexGuard<'_, Sent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sent {
    fn remove(&mut self, place: &(WatchedResource, Key)) -> Option<SentContent> {
        let removed = self.objects.remove(place)?;
        self.n_bytes -= removed.n_bytes();
        Some(removed)
    }
}

/// The others are sent as JSON.
fn watched(object: &Object) -> Option<WatchedResource> {
    match object {
        Object::Slice(_) => Some(WatchedResource::Slices),
        Object::Endpoints(_) => Some(WatchedResource::Endpoints),
        Object::ServiceStatus(_) | Object::MultiCluster(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use endpointd_model::{Endpoint, EndpointSlice};
    use endpointd_wire::encode;

    use super::*;

    fn slice(name: &str, n_endpoints: usize) -> Object {
        let addresses = vec!["10.0.0.1".into()];
        let endpoint = Endpoint { addresses, ..Endpoint::default() };
        let meta = Meta { namespace: "shop".into(), name: name.into(), ..Meta::default() };
        let endpoints = vec![endpoint; n_endpoints];
        Object::Slice(EndpointSlice { meta, endpoints, ..EndpointSlice::default() })
    }

    fn add(sent: &SentObjects, object: &Object) {
        let body = encode(Encoding::Protobuf, object).into();
        sent.add(SentObject { object, body: &body });
    }

    /// A protobuf event of the object, whose body is short.
    fn event(object: &Object) -> Bytes {
        let body = encode(Encoding::Protobuf, object);
        let length = |bytes: &[u8]| u8::try_from(bytes.len()).expect("it is short");
        let raw = [&[0x0a, length(&body)], &body[..]].concat();
        [b"\x0a\x08MODIFIED\x12".as_slice(), &[length(&raw)], &raw].concat().into()
    }

    #[test]
    fn event_is_decoded_by_what_was_sent_once_and_for_its_resource() {
        const SLICES: WatchedResource = WatchedResource::Slices;
        let (sent, object) = (SentObjects::default(), slice("web", 0));
        let frame = event(&object);
        assert!(frame.len() < 128);
        let decode = |resource| {
            sent.decode_event(resource, Encoding::Protobuf, &frame) == Some(slice("web", 0))
        };
        assert!(!decode(SLICES));
        add(&sent, &object);
        assert!(!decode(WatchedResource::Endpoints));
        assert!(sent.decode_event(SLICES, Encoding::Json, &frame).is_none());
        assert!(decode(SLICES));
        assert!(!decode(SLICES));
        add(&sent, &object);
        sent.forget(&object);
        assert!(!decode(SLICES));
    }

    #[test]
    fn bytes_are_bounded() {
        let sent = SentObjects::default();
        let large = slice("large", 1000);
        for n in 0..200 {
            add(&sent, &slice(&format!("web-{n}"), 1000));
            let all = sent.lock();
            assert!(all.n_bytes <= BYTES_MAX && !all.objects.is_empty(), "{}", all.n_bytes);
            let counted: usize = all.objects.values().map(SentContent::n_bytes).sum();
            assert_eq!(counted, all.n_bytes);
        }
        add(&sent, &large);
        let before = sent.lock().objects.len();
        add(&sent, &large);
        assert_eq!(sent.lock().objects.len(), before, "one of each object");
        sent.forget(&large);
        assert_eq!(sent.lock().objects.len(), before - 1);
    }
}
