//! ServiceExports, ServiceImports, derived Services, and the namespaces that a watch delivers.

use endpointd_model::{
    DerivedService, Family, Key, MultiClusterObject, MultiClusterResource, Namespace, ObjectEvent,
    ResourceEvent, ResourceVersion, ServiceExport, ServiceImport, SharedStr,
};

use crate::{MemoryApi, NamespaceState, StoredObject};

impl MemoryApi {
    pub fn put_namespace(&mut self, name: &str, state: NamespaceState) {
        self.namespaces.insert(name.into(), state);
        let is_terminating = state == NamespaceState::Terminating;
        let namespace = Namespace { name: name.into(), is_terminating, ..Namespace::default() };
        let revision = self.bump();
        self.watched_namespaces.put(namespace, revision, self.now);
    }

    pub(crate) fn multicluster_object(
        &self,
        resource: MultiClusterResource,
        key: &Key,
    ) -> Option<MultiClusterObject> {
        let import = || self.imports.get(key).map(|one| ServiceImport::clone(one));
        match resource {
            MultiClusterResource::Imports => import().map(MultiClusterObject::Import),
            MultiClusterResource::ImportStatus => import().map(MultiClusterObject::ImportStatus),
            MultiClusterResource::ExportStatus => {
                let export = self.exports.get(key).map(|one| ServiceExport::clone(one));
                export.map(MultiClusterObject::ExportStatus)
            }
            MultiClusterResource::Derived => {
                let service = self.derived.get(key).map(|one| DerivedService::clone(one));
                service.map(MultiClusterObject::Derived)
            }
        }
    }

    pub(crate) fn is_corrupt_multicluster(
        &self,
        resource: MultiClusterResource,
        key: &Key,
    ) -> bool {
        match resource {
            MultiClusterResource::Imports | MultiClusterResource::ImportStatus => {
                self.imports.is_corrupt(key)
            }
            MultiClusterResource::ExportStatus => self.exports.is_corrupt(key),
            MultiClusterResource::Derived => self.derived.is_corrupt(key),
        }
    }

    /// A status is stored through a subresource: neither write changes what the other one does.
    pub(crate) fn store_multicluster(
        &mut self,
        object: MultiClusterObject,
        revision: u64,
    ) -> MultiClusterObject {
        let now = self.now;
        let known = self.imports.get(&object.meta().key()).cloned();
        match object {
            MultiClusterObject::Import(mut import) => {
                if let Some(known) = known {
                    import.status = known.status.clone();
                }
                let stored = self.imports.put(import, revision, now);
                MultiClusterObject::Import(ServiceImport::clone(&stored))
            }
            MultiClusterObject::ImportStatus(mut import) => {
                if let Some(known) = known {
                    import =
                        ServiceImport { status: import.status, ..ServiceImport::clone(&known) };
                }
                let stored = self.imports.put(import, revision, now);
                MultiClusterObject::ImportStatus(ServiceImport::clone(&stored))
            }
            MultiClusterObject::ExportStatus(export) => {
                let stored = self.exports.put(export, revision, now);
                MultiClusterObject::ExportStatus(ServiceExport::clone(&stored))
            }
            MultiClusterObject::Derived(mut service) => {
                for family in service.families.iter().skip(service.cluster_ips.len()) {
                    service.cluster_ips.push(address(*family, revision));
                }
                let stored = self.derived.put(service, revision, now);
                MultiClusterObject::Derived(DerivedService::clone(&stored))
            }
        }
    }

    pub(crate) fn drop_multicluster(
        &mut self,
        resource: MultiClusterResource,
        key: &Key,
        revision: u64,
    ) -> bool {
        match resource {
            MultiClusterResource::Imports | MultiClusterResource::ImportStatus => {
                self.imports.remove(key, revision, self.now)
            }
            MultiClusterResource::ExportStatus => self.exports.remove(key, revision, self.now),
            MultiClusterResource::Derived => self.derived.remove(key, revision, self.now),
        }
    }
}

/// Of a Service; the revision makes it unique.
fn address(family: Family, revision: u64) -> SharedStr {
    match family {
        Family::V4 => format!("10.96.{}.{}", revision / 250, revision % 250 + 1).into(),
        Family::V6 => format!("fd00:96::{revision:x}").into(),
    }
}

impl StoredObject for Namespace {
    fn key(&self) -> Key {
        Key::new("", self.name.clone())
    }

    fn set_version(&mut self, version: ResourceVersion) {
        self.resource_version = version;
    }

    fn change(event: ObjectEvent<Self>) -> ResourceEvent {
        ResourceEvent::Namespace(event)
    }
}

macro_rules! stored {
    ($($object:ident)*) => {$(
        impl StoredObject for $object {
            fn key(&self) -> Key {
                self.meta.key()
            }

            fn set_version(&mut self, version: ResourceVersion) {
                self.meta.resource_version = version;
            }

            fn change(event: ObjectEvent<Self>) -> ResourceEvent {
                ResourceEvent::$object(event)
            }
        }
    )*};
}

stored! { ServiceExport ServiceImport DerivedService }
