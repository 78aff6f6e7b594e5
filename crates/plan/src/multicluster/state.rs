//! The objects of several clusters as plain maps: input of `endpointd plan --cluster` and of tests.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    ClusterId, DeleteTarget, DerivedService, EndpointSlice, Family, Key, Meta, MultiClusterObject,
    MultiClusterResource, Object, PublishedResource, ResourceVersion, Service, ServiceExport,
    ServiceImport, Timestamp, Uid, Write, derived_name, names,
};

use super::{
    ImportNamespace, MultiClusterPlan, MultiClusterSettings, MultiClusterSnapshot, SourceCluster,
    SourceState, Zones, multicluster,
};

/// A clusterset as one of its clusters sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSetState {
    pub now: Timestamp,
    pub home: ClusterObjects,
    pub remotes: Vec<ClusterObjects>,
    /// Of the home cluster, like the other fields.
    pub imports: BTreeMap<Key, ServiceImport>,
    /// The Services that have a derived name.
    pub derived: BTreeMap<Key, DerivedService>,
    /// Those of namespaces that are not included.
    pub namespaces: BTreeMap<String, ImportNamespace>,
    pub refused_families: BTreeSet<Family>,
    pub settings: MultiClusterSettings,
    /// Writes applied so far; the source of resourceVersions.
    n_applied: u64,
}

/// What one cluster exports, and all its slices.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterObjects {
    pub id: ClusterId,
    pub state: SourceState,
    pub zones: Zones,
    pub exports: BTreeMap<Key, ServiceExport>,
    pub services: BTreeMap<Key, Service>,
    pub slices: BTreeMap<Key, EndpointSlice>,
}

impl ClusterObjects {
    pub fn new(id: ClusterId) -> Self {
        Self {
            id,
            state: SourceState::InSync,
            zones: Zones::Keep,
            exports: BTreeMap::new(),
            services: BTreeMap::new(),
            slices: BTreeMap::new(),
        }
    }

    fn source(&self, key: &Key) -> SourceCluster<'_> {
        let is_of_service = |slice: &&EndpointSlice| {
            slice.meta.namespace == key.namespace
                && slice.meta.labels.has(names::SERVICE_NAME, &key.name)
        };
        SourceCluster {
            id: &self.id,
            state: self.state,
            export: self.exports.get(key),
            service: self.services.get(key),
            slices: self.slices.values().filter(is_of_service).collect(),
            zones: self.zones,
        }
    }
}

impl ClusterSetState {
    pub fn new(home: ClusterId, now: Timestamp) -> Self {
        Self {
            now,
            home: ClusterObjects::new(home),
            remotes: Vec::new(),
            imports: BTreeMap::new(),
            derived: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            refused_families: BTreeSet::new(),
            settings: MultiClusterSettings::default(),
            n_applied: 0,
        }
    }

    /// Everything that is exported or imported.
    pub fn keys(&self) -> BTreeSet<Key> {
        let exports = std::iter::once(&self.home).chain(&self.remotes);
        let exports = exports.flat_map(|cluster| cluster.exports.keys());
        exports.chain(self.imports.keys()).cloned().collect()
    }

    pub fn plan(&self, key: &Key) -> MultiClusterPlan {
        multicluster(&self.snapshot(key))
    }

    pub fn snapshot(&self, key: &Key) -> MultiClusterSnapshot<'_> {
        let derived = Key { namespace: key.namespace.clone(), name: derived_name(key) };
        let in_namespace = |slice: &&EndpointSlice| slice.meta.namespace == key.namespace;
        let namespace = self.namespaces.get(key.namespace.as_ref());
        MultiClusterSnapshot {
            key: key.clone(),
            now: self.now,
            namespace: namespace.copied().unwrap_or_default(),
            home: self.home.source(key),
            remotes: self.remotes.iter().map(|cluster| cluster.source(key)).collect(),
            import: self.imports.get(key),
            derived: self.derived.get(&derived),
            slices: self.home.slices.values().filter(in_namespace).collect(),
            refused_families: &self.refused_families,
            settings: &self.settings,
        }
    }

    /// Plans and applies until nothing is left to write, and returns the writes in their order with
    /// the last plan. Addresses are not assigned, so the derived Service has none.
    pub fn settle(&mut self, key: &Key) -> (Vec<Write>, MultiClusterPlan) {
        const ROUNDS_MAX: usize = 10;
        let mut writes = Vec::new();
        let mut plan = self.plan(key);
        for _ in 0..ROUNDS_MAX {
            if plan.writes.is_empty() {
                break;
            }
            plan.writes.iter().for_each(|write| self.apply(write));
            writes.append(&mut plan.writes);
            plan = self.plan(key);
        }
        (writes, plan)
    }

    /// Applies a write as an API server does that accepts it: a new object gets a uid, every change
    /// a new resourceVersion.
    pub fn apply(&mut self, write: &Write) {
        self.n_applied += 1;
        let version = ResourceVersion::from(900_000 + self.n_applied);
        match write {
            Write::Create(Object::Slice(slice)) | Write::Update(Object::Slice(slice)) => {
                let mut slice = slice.clone();
                stamp(&mut slice.meta, version);
                self.home.slices.insert(slice.meta.key(), slice);
            }
            Write::Create(Object::MultiCluster(object))
            | Write::Update(Object::MultiCluster(object)) => self.store(object.clone(), version),
            Write::Delete(DeleteTarget { resource, key, .. }) => self.delete(*resource, key),
            // No plan of this controller has them.
            Write::Create(Object::Endpoints(_) | Object::ServiceStatus(_))
            | Write::Update(Object::Endpoints(_) | Object::ServiceStatus(_)) => {}
        }
    }

    fn store(&mut self, object: MultiClusterObject, version: ResourceVersion) {
        match object {
            MultiClusterObject::Import(mut import) => {
                stamp(&mut import.meta, version);
                let key = import.meta.key();
                // The status has a subresource of its own.
                import.status = self.imports.remove(&key).unwrap_or_default().status;
                self.imports.insert(key, import);
            }
            MultiClusterObject::Derived(mut service) => {
                stamp(&mut service.meta, version);
                self.derived.insert(service.meta.key(), service);
            }
            MultiClusterObject::ImportStatus(import) => {
                if let Some(stored) = self.imports.get_mut(&import.meta.key()) {
                    stored.status = import.status;
                    stored.meta.resource_version = version;
                }
            }
            MultiClusterObject::ExportStatus(export) => {
                if let Some(stored) = self.home.exports.get_mut(&export.meta.key()) {
                    stored.conditions = export.conditions;
                    stored.meta.resource_version = version;
                }
            }
        }
    }

    fn delete(&mut self, resource: PublishedResource, key: &Key) {
        match resource {
            PublishedResource::Slices => drop(self.home.slices.remove(key)),
            PublishedResource::MultiCluster(MultiClusterResource::Imports) => {
                self.imports.remove(key);
            }
            PublishedResource::MultiCluster(MultiClusterResource::Derived) => {
                self.derived.remove(key);
            }
            PublishedResource::MultiCluster(
                MultiClusterResource::ImportStatus | MultiClusterResource::ExportStatus,
            )
            | PublishedResource::Endpoints
            | PublishedResource::ServiceStatus => {}
        }
    }
}

fn stamp(meta: &mut Meta, version: ResourceVersion) {
    meta.resource_version = version;
    if meta.uid.is_empty() {
        meta.uid = Uid::from(format!("uid-{}", meta.name).as_str());
    }
}
