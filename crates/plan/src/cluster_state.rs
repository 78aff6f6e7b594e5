//! All objects that the controllers read, as plain maps: input of `endpointd plan` and tests.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{
    Controller, DeleteTarget, EndpointSlice, Endpoints, Key, Node, Object, Pod, PublishedResource,
    ReferenceGrant, ResourceVersion, Service, ServiceStatus, SharedStr, Timestamp, Uid, Write,
    names,
};

use crate::{
    CarriedState, EndpointsSnapshot, ImportSnapshot, MirrorSnapshot, NodeState, Plan, PodOnNode,
    Settings, SliceSnapshot, Topology, endpoints, endpoints_left_behind, import, mirror, slices,
    slices_left_behind,
};

/// The objects that the controllers read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterState {
    pub services: BTreeMap<Key, Service>,
    pub pods: BTreeMap<Key, Pod>,
    pub nodes: BTreeMap<SharedStr, Node>,
    pub endpoints: BTreeMap<Key, Endpoints>,
    pub slices: BTreeMap<Key, EndpointSlice>,
    pub grants: BTreeMap<Key, ReferenceGrant>,
    /// Writes applied so far; the source of resourceVersions.
    n_applied: u64,
}

/// A cluster state with the indexes that planning many keys needs.
pub struct IndexedCluster<'a> {
    cluster: &'a ClusterState,
    topology: Topology,
    /// By namespace, label key, and label value.
    pods_by_label: BTreeMap<(&'a str, &'a str, &'a str), Vec<&'a Pod>>,
    /// By namespace and the value of the service-name label.
    slices_by_service: BTreeMap<(&'a str, &'a str), Vec<&'a EndpointSlice>>,
}

impl ClusterState {
    pub fn index(&self) -> IndexedCluster<'_> {
        let mut indexed = IndexedCluster {
            cluster: self,
            topology: Topology::default(),
            pods_by_label: BTreeMap::new(),
            slices_by_service: BTreeMap::new(),
        };
        if !self.nodes.is_empty() {
            indexed.topology = Topology::of(self.nodes.values());
        }
        for pod in self.pods.values() {
            for (key, value) in pod.labels.iter() {
                let label = (pod.namespace.as_ref(), key.as_ref(), value.as_ref());
                indexed.pods_by_label.entry(label).or_default().push(pod);
            }
        }
        for slice in self.slices.values() {
            if let Some(service) = slice.meta.labels.get(names::SERVICE_NAME) {
                let label = (slice.meta.namespace.as_ref(), service.as_ref());
                indexed.slices_by_service.entry(label).or_default().push(slice);
            }
        }
        indexed
    }

    /// Plans one key. For many keys, [`index`](Self::index) once is cheaper.
    pub fn plan(
        &self,
        controller: Controller,
        key: &Key,
        carried: &CarriedState,
        settings: &Settings,
    ) -> Plan {
        self.index().plan(controller, key, carried, settings)
    }

    /// Applies a write as an API server does that accepts it: a new object gets a uid, every change
    /// a new resourceVersion, and an object with finalizers is marked as being deleted.
    pub fn apply(&mut self, write: &Write) {
        self.n_applied += 1;
        let version = (900_000 + self.n_applied).into();
        match write {
            Write::Create(object) | Write::Update(object) => self.store(object.clone(), version),
            Write::Delete(target) => self.delete(target, version),
        }
    }

    fn store(&mut self, object: Object, version: ResourceVersion) {
        match object {
            Object::Slice(mut slice) => {
                stamp(&mut slice.meta, version);
                self.slices.insert(slice.meta.key(), slice);
            }
            Object::Endpoints(mut endpoints) => {
                stamp(&mut endpoints.meta, version);
                self.endpoints.insert(endpoints.meta.key(), endpoints);
            }
            Object::ServiceStatus(status) => self.store_status(status, version),
            // `ClusterSetState` has them.
            Object::MultiCluster(_) => {}
        }
    }

    fn store_status(&mut self, status: ServiceStatus, version: ResourceVersion) {
        let ServiceStatus { meta, condition } = status;
        if let Some(service) = self.services.get_mut(&meta.key()) {
            service.set_condition(condition);
            service.resource_version = version;
        }
    }

    fn delete(&mut self, target: &DeleteTarget, version: ResourceVersion) {
        let meta = match target.resource {
            PublishedResource::Slices => {
                self.slices.get_mut(&target.key).map(|slice| &mut slice.meta)
            }
            PublishedResource::Endpoints => {
                self.endpoints.get_mut(&target.key).map(|endpoints| &mut endpoints.meta)
            }
            PublishedResource::ServiceStatus | PublishedResource::MultiCluster(_) => None,
        };
        match meta {
            Some(meta) if !meta.finalizers.is_empty() => {
                meta.deleted = Some(Timestamp::UNIX_EPOCH);
                meta.resource_version = version;
            }
            Some(_) | None => match target.resource {
                PublishedResource::Slices => drop(self.slices.remove(&target.key)),
                PublishedResource::Endpoints => drop(self.endpoints.remove(&target.key)),
                PublishedResource::ServiceStatus | PublishedResource::MultiCluster(_) => {}
            },
        }
    }
}

fn stamp(meta: &mut endpointd_model::Meta, version: ResourceVersion) {
    meta.resource_version = version;
    if meta.uid.is_empty() {
        meta.uid = Uid::from(format!("uid-{}", meta.name).as_str());
    }
}

impl<'a> IndexedCluster<'a> {
    /// The keys that a controller syncs when it starts: every Service and Endpoints object that can
    /// concern it. Endpoints that are leader election locks are not deleted (3.1).
    pub fn keys(&self, controller: Controller, settings: &Settings) -> BTreeSet<Key> {
        let services = self.cluster.services.keys();
        let is_lock = |one: &Endpoints| one.meta.annotations.contains_key(names::LEADER);
        let endpoints = self.cluster.endpoints.iter();
        match controller {
            Controller::Slices => services.cloned().collect(),
            Controller::Endpoints => {
                let leftovers = endpoints.filter(|(_, one)| !is_lock(one)).map(|(key, _)| key);
                services.chain(leftovers).cloned().collect()
            }
            Controller::Mirror => {
                let mirrored = self.keys_of_slices(&settings.managers.mirror);
                endpoints.map(|(key, _)| key.clone()).chain(mirrored).collect()
            }
            Controller::Import => {
                let concerns = |service: &Service| service.cross_namespace.is_some();
                let services = self.cluster.services.iter().filter(|(_, one)| concerns(one));
                let imported = self.keys_of_slices(&settings.managers.import);
                services.map(|(key, _)| key.clone()).chain(imported).collect()
            }
            // It needs the objects of several clusters: `ClusterSetState`.
            Controller::MultiCluster => BTreeSet::new(),
        }
    }

    pub fn plan(
        &self,
        controller: Controller,
        key: &Key,
        carried: &CarriedState,
        settings: &Settings,
    ) -> Plan {
        match controller {
            Controller::Slices => slices(&self.slice_snapshot(key, carried), settings),
            Controller::Endpoints => endpoints(&self.endpoints_snapshot(key, carried), settings),
            Controller::Mirror => mirror(&self.mirror_snapshot(key), settings),
            Controller::Import => {
                let snapshot = self.import_snapshot(key, carried);
                import(&snapshot, settings).with_condition(snapshot.service)
            }
            Controller::MultiCluster => Plan::default(),
        }
    }

    /// What is left of a time when the Service had a selector, and that plans keep by default.
    pub fn left_behind(
        &self,
        controller: Controller,
        key: &Key,
        settings: &Settings,
    ) -> Vec<DeleteTarget> {
        let Some(service) = self.cluster.services.get(key) else { return Vec::new() };
        match controller {
            Controller::Slices => slices_left_behind(service, &self.slices_near(key), settings),
            Controller::Endpoints => {
                let endpoints = self.cluster.endpoints.get(key);
                endpoints_left_behind(service, endpoints).into_iter().collect()
            }
            Controller::Mirror | Controller::Import | Controller::MultiCluster => Vec::new(),
        }
    }

    pub fn slice_snapshot<'s>(&'s self, key: &Key, carried: &'s CarriedState) -> SliceSnapshot<'s> {
        let service = self.cluster.services.get(key);
        let pods = self.matching_pods(service).into_iter();
        SliceSnapshot {
            service,
            pods: pods.map(|pod| PodOnNode { pod, node: self.node_of(pod) }).collect(),
            topology: &self.topology,
            slices: self.slices_near(key),
            names_in_use: &(),
            carried,
        }
    }

    pub fn endpoints_snapshot<'s>(
        &self,
        key: &Key,
        carried: &'s CarriedState,
    ) -> EndpointsSnapshot<'s>
    where
        'a: 's,
    {
        let service = self.cluster.services.get(key);
        EndpointsSnapshot {
            service,
            pods: self.matching_pods(service),
            endpoints: self.cluster.endpoints.get(key),
            carried,
        }
    }

    pub fn mirror_snapshot(&self, key: &Key) -> MirrorSnapshot<'a> {
        MirrorSnapshot {
            key: key.clone(),
            endpoints: self.cluster.endpoints.get(key),
            service: self.cluster.services.get(key),
            slices: self.slices_near(key),
            names_in_use: &(),
        }
    }

    pub fn import_snapshot<'s>(
        &'s self,
        key: &Key,
        carried: &'s CarriedState,
    ) -> ImportSnapshot<'s> {
        let service = self.cluster.services.get(key);
        let source = service.and_then(Service::source);
        let in_namespace = |grant: &&ReferenceGrant| {
            source.as_ref().is_some_and(|source| grant.namespace == source.namespace)
        };
        ImportSnapshot {
            service,
            source: source.as_ref().and_then(|key| self.cluster.services.get(key)),
            source_slices: source.as_ref().map(|key| self.labelled_slices(key)).unwrap_or_default(),
            grants: self.cluster.grants.values().filter(in_namespace).collect(),
            slices: self.slices_near(key),
            topology: &self.topology,
            carried,
        }
    }

    /// Uses the label pair of the selector that the fewest pods have.
    fn matching_pods(&self, service: Option<&Service>) -> Vec<&'a Pod> {
        let Some(service) = service else { return Vec::new() };
        let candidates = service.selector.iter().map(|(key, value)| {
            let label = (service.namespace.as_ref(), key.as_ref(), value.as_ref());
            self.pods_by_label.get(&label).map_or(&[][..], Vec::as_slice)
        });
        let fewest = candidates.min_by_key(|pods| pods.len()).unwrap_or_default();
        fewest.iter().copied().filter(|pod| service.selector.selects(&pod.labels)).collect()
    }

    fn node_of(&self, pod: &Pod) -> NodeState<'a> {
        let node = pod.node_name.as_ref().and_then(|name| self.cluster.nodes.get(name));
        node.map_or(NodeState::Gone, |node| NodeState::Known { zone: node.zone.as_ref() })
    }

    /// The slices labelled for the key, and those whose names new slices could otherwise take.
    fn slices_near(&self, key: &Key) -> Vec<&'a EndpointSlice> {
        let has_prefix =
            |one: &Key| one.namespace == key.namespace && one.name.starts_with(key.name.as_ref());
        let same_prefix = self.cluster.slices.range(key..).take_while(|(one, _)| has_prefix(one));
        let unlabelled = same_prefix
            .map(|(_, slice)| slice)
            .filter(|slice| !slice.meta.labels.has(names::SERVICE_NAME, &key.name));
        self.labelled_slices(key).into_iter().chain(unlabelled).collect()
    }

    fn labelled_slices(&self, key: &Key) -> Vec<&'a EndpointSlice> {
        let label = (key.namespace.as_ref(), key.name.as_ref());
        self.slices_by_service.get(&label).cloned().unwrap_or_default()
    }

    /// The keys that slices of one manager name.
    fn keys_of_slices(&self, manager: &str) -> impl Iterator<Item = Key> {
        let slices = self.cluster.slices.values();
        slices.filter_map(move |slice| {
            let EndpointSlice { meta, .. } = slice;
            let name = meta.labels.get(names::SERVICE_NAME)?;
            let is_managed = meta.labels.has(names::MANAGED_BY, manager);
            is_managed.then(|| Key { namespace: meta.namespace.clone(), name: name.clone() })
        })
    }
}
