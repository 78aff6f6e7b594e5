//! Published objects as they were last observed or written.

use endpointd_model::{EndpointSlice, Endpoints, Key, PublishedResource};

use super::cached::Cached;
use super::compact::Identity;
use super::published::PublishedObject;
use super::{Cache, Namespace};

impl Cache {
    pub fn object(&self, resource: PublishedResource, key: &Key) -> Option<PublishedObject> {
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
        };
        Some(PublishedObject { uid: uid.clone(), version })
    }

    pub fn slice(&self, key: &Key) -> Option<EndpointSlice> {
        let Namespace { name: namespace, published, .. } = self.namespace(&key.namespace)?;
        let (name, Cached { object, .. }) = published.slices.get_key_value(&key.name)?;
        let identity = Identity { namespace, name, uid: &object.uid };
        Some(object.compact.decode_slice(&identity, &self.strings))
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
