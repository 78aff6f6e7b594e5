//! Published objects as they were last observed or written.

use endpointd_model::{
    Controller, EndpointSlice, Endpoints, Key, PublishedResource, SharedStr, Uid,
};

use super::cached::Cached;
use super::compact::{CompactObject, Identity};
use super::published::{CachedSlice, PublishedObject};
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

impl CachedSlice {
    /// The controllers that may have something to write because of this slice.
    pub(super) fn controllers(&self) -> impl Iterator<Item = Controller> {
        let is_edited = self.is_marked_copy && self.controller != Some(Controller::Import);
        self.controller.into_iter().chain(is_edited.then_some(Controller::Import))
    }

    /// The keys to sync when this slice changes.
    pub(super) fn owners(&self, namespace: &SharedStr) -> impl Iterator<Item = (Controller, Key)> {
        let key = self.service.as_ref().map(|name| Key::new(namespace.clone(), name.clone()));
        self.controllers().filter_map(move |controller| Some((controller, key.clone()?)))
    }

    /// The key whose label it has.
    pub(super) fn owner(&self, namespace: &SharedStr) -> Option<(Controller, Key)> {
        Some((self.controller?, Key::new(namespace.clone(), self.service.clone()?)))
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
