//! Published objects as they were last observed or written.

use endpointd_model::{EndpointSlice, Endpoints, Key, PublishedResource, SharedStr, Uid};

use super::cached::Cached;
use super::compact::{CompactObject, Identity};
use super::published::PublishedObject;
use super::{Cache, Namespace};
use crate::interner::Interner;

/// A slice as the cache has it. Taking it copies a few kilobytes; decoding it needs neither the cache
/// nor its thread.
#[derive(Clone, Debug)]
pub struct EncodedSlice {
    namespace: SharedStr,
    name: SharedStr,
    uid: Uid,
    compact: CompactObject,
}

impl EncodedSlice {
    pub fn decode(&self) -> EndpointSlice {
        let Self { namespace, name, uid, compact } = self;
        compact.decode_slice(&Identity { namespace, name, uid }, &Interner::default())
    }
}

impl Cache {
    pub fn object(&self, resource: PublishedResource, key: &Key) -> Option<PublishedObject> {
        if let PublishedResource::MultiCluster(resource) = resource {
            return self.multicluster_object(resource, key);
        }
        let published = &self.namespace(&key.namespace)?.published;
        let (uid, version) = match resource {
            PublishedResource::Slices => {
                let cached = published.slices.get(&key.name)?;
                (&cached.object.uid, cached.version())
            }
            PublishedResource::Endpoints => {
                let cached = published.endpoints.get(&key.name)?;
                (&cached.object.uid, cached.version())
            }
            PublishedResource::ServiceStatus => {
                let cached = self.namespace(&key.namespace)?.services.get(&key.name)?;
                (&cached.object.uid, cached.version())
            }
            PublishedResource::MultiCluster(_) => return None,
        };
        Some(PublishedObject { uid: uid.clone(), version })
    }

    pub fn slice(&self, key: &Key) -> Option<EndpointSlice> {
        let Namespace { name: namespace, published, .. } = self.namespace(&key.namespace)?;
        let (name, Cached { object, .. }) = published.slices.get_key_value(&key.name)?;
        let identity = Identity { namespace, name, uid: &object.uid };
        Some(object.compact.decode_slice(&identity, &self.strings))
    }

    pub fn encoded_slice(&self, key: &Key) -> Option<EncodedSlice> {
        let Namespace { name: namespace, published, .. } = self.namespace(&key.namespace)?;
        let (name, Cached { object, .. }) = published.slices.get_key_value(&key.name)?;
        let (namespace, name, uid) = (namespace.clone(), name.clone(), object.uid.clone());
        Some(EncodedSlice { namespace, name, uid, compact: object.compact.clone() })
    }

    pub fn endpoints(&self, key: &Key) -> Option<Endpoints> {
        let Namespace { name: namespace, published, .. } = self.namespace(&key.namespace)?;
        let (name, Cached { object, .. }) = published.endpoints.get_key_value(&key.name)?;
        let identity = Identity { namespace, name, uid: &object.uid };
        Some(object.compact.decode_endpoints(&identity, &self.strings))
    }

    /// Counted object by object, to check `n_compact_bytes`.
    pub(super) fn count_compact_bytes(&self) -> usize {
        self.namespaces.iter().map(|(_, namespace)| namespace.published.n_compact_bytes()).sum()
    }
}
