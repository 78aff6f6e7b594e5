//! The inputs of one plan for one key, from the cache.

use std::collections::BTreeSet;

use endpointd_model::{
    EndpointSlice, Endpoints, Key, Pod, ReferenceGrant, Service, SharedStr, Uid, WatchedResource,
    names,
};
use endpointd_plan::{
    CarriedState, EndpointsSnapshot, ImportSnapshot, MirrorSnapshot, NamesInUse, NodeState,
    PodOnNode, SliceSnapshot, Topology, slices_named_as_copy,
};

use super::published::Published;
use super::{Cache, Namespace, PodId};

/// For the endpointslice controller. Pods and slices are decoded for one plan.
pub struct SliceInputs<'a> {
    service: Option<&'a Service>,
    pods: Vec<(Pod, NodeState<'a>)>,
    slices: Vec<EndpointSlice>,
    names_in_use: SliceNames<'a>,
    topology: &'a Topology,
}

/// For the endpoints controller.
pub struct EndpointsInputs<'a> {
    service: Option<&'a Service>,
    pods: Vec<Pod>,
    endpoints: Option<Endpoints>,
}

/// For the mirroring controller.
pub struct MirrorInputs<'a> {
    key: &'a Key,
    service: Option<&'a Service>,
    endpoints: Option<Endpoints>,
    slices: Vec<EndpointSlice>,
    names_in_use: SliceNames<'a>,
}

/// For the import controller.
pub struct ImportInputs<'a> {
    /// With its version, which the write of its condition names.
    service: Option<Service>,
    /// The Service that the consumer names, which may not exist.
    source_key: Option<Key>,
    source: Option<&'a Service>,
    source_slices: Vec<EndpointSlice>,
    grants: Vec<&'a ReferenceGrant>,
    slices: Vec<EndpointSlice>,
    topology: &'a Topology,
}

/// Of all slices of a namespace.
#[derive(Debug)]
struct SliceNames<'a>(Option<&'a Published>);

impl NamesInUse for SliceNames<'_> {
    fn contains(&self, name: &str) -> bool {
        self.0.is_some_and(|published| published.slices.contains_key(name))
    }
}

impl Cache {
    pub fn slice_inputs(&self, key: &Key) -> SliceInputs<'_> {
        let pods = self.pods_of(key, |namespace, id| self.pod_on_node(namespace, PodId(id)));
        let slices = self.slices_of(key);
        let pods = self.without_unlisted(key, pods, |(pod, _)| pod, || published_in(&slices));
        SliceInputs {
            service: self.service(key),
            pods,
            slices,
            names_in_use: self.slice_names(key),
            topology: self.topology(),
        }
    }

    pub fn endpoints_inputs(&self, key: &Key) -> EndpointsInputs<'_> {
        let endpoints = self.endpoints(key);
        let pods = self.pods_of(key, |namespace, id| self.decode_pod(namespace, id));
        let pods = self.without_unlisted(key, pods, |pod| pod, || addresses_of(&endpoints));
        EndpointsInputs { service: self.service(key), pods, endpoints }
    }

    /// Unlisted pods stay published where they are, and are published nowhere else.
    fn without_unlisted<T>(
        &self,
        key: &Key,
        mut pods: Vec<T>,
        pod: impl Fn(&T) -> &Pod,
        published: impl Fn() -> BTreeSet<Uid>,
    ) -> Vec<T> {
        if let Some(unlisted) = self.unlisted_pods_of(&key.namespace) {
            let published = published();
            pods.retain(|one| {
                let pod = pod(one);
                !unlisted.contains(&pod.name) || published.contains(&pod.uid)
            });
        }
        pods
    }

    pub fn mirror_inputs<'a>(&'a self, key: &'a Key) -> MirrorInputs<'a> {
        MirrorInputs {
            key,
            service: self.service(key),
            endpoints: self.endpoints(key),
            slices: self.slices_of(key),
            names_in_use: self.slice_names(key),
        }
    }

    pub fn import_inputs(&self, key: &Key) -> ImportInputs<'_> {
        let version = self.version(WatchedResource::Services, key).unwrap_or_default();
        let with_version = |one: &Service| Service { resource_version: version, ..one.clone() };
        let service = self.service(key).map(with_version);
        let source_key = service.as_ref().and_then(Service::source);
        let source_slices = source_key.as_ref().map(|source| self.slices_of(source));
        let source_slices = source_slices.unwrap_or_default();
        let mut slices = self.slices_of(key);
        let labelled =
            |slice: &EndpointSlice| slice.meta.labels.has(names::SERVICE_NAME, &key.name);
        for source in &source_slices {
            // A copy whose label was edited is found by its name.
            let find =
                |name: &SharedStr| self.slice(&Key::new(key.namespace.clone(), name.clone()));
            let named = slices_named_as_copy(&key.name, source, find);
            slices.extend(named.into_iter().filter(|slice| !labelled(slice)));
        }
        ImportInputs {
            source: source_key.as_ref().and_then(|source| self.service(source)),
            grants: source_key.iter().flat_map(|one| self.grants_in(&one.namespace)).collect(),
            topology: self.topology(),
            service,
            source_key,
            source_slices,
            slices,
        }
    }

    fn pods_of<T>(&self, key: &Key, decode: impl Fn(&Namespace, u32) -> T) -> Vec<T> {
        let Some(namespace) = self.namespace(&key.namespace) else { return Vec::new() };
        let mut pods = Vec::with_capacity(namespace.selectors.n_pods(&key.name));
        pods.extend(namespace.selectors.pods(&key.name).map(|id| decode(namespace, id.0)));
        pods
    }

    pub(super) fn decode_pod(&self, namespace: &Namespace, id: u32) -> Pod {
        let record = &self.pods[id as usize].object;
        let labels = namespace.selectors.labels(record.slot.set);
        let node_name = record.node.map(|node| self.nodes.name(node.node()));
        record.decode(&namespace.name, labels, node_name)
    }

    /// In no particular order.
    pub fn slices_of(&self, key: &Key) -> Vec<EndpointSlice> {
        let Some(namespace) = self.namespace(&key.namespace) else { return Vec::new() };
        let names = namespace.published.slices_of(&key.name).iter();
        names
            .filter_map(|name| self.slice(&Key::new(key.namespace.clone(), name.clone())))
            .collect()
    }

    fn slice_names(&self, key: &Key) -> SliceNames<'_> {
        SliceNames(self.namespace(&key.namespace).map(|namespace| &namespace.published))
    }
}

/// The pods that slices publish.
fn published_in(slices: &[EndpointSlice]) -> BTreeSet<Uid> {
    let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    endpoints.filter_map(|one| Some(one.target_ref.as_ref()?.uid.clone())).collect()
}

/// The pods that Endpoints publish.
fn addresses_of(endpoints: &Option<Endpoints>) -> BTreeSet<Uid> {
    let subsets = endpoints.iter().flat_map(|endpoints| &endpoints.subsets);
    let addresses =
        subsets.flat_map(|subset| subset.addresses.iter().chain(&subset.not_ready_addresses));
    addresses.filter_map(|one| Some(one.target_ref.as_ref()?.uid.clone())).collect()
}

impl SliceInputs<'_> {
    pub fn snapshot<'s>(&'s self, carried: &'s CarriedState) -> SliceSnapshot<'s> {
        let pods = self.pods.iter().map(|(pod, node)| PodOnNode { pod, node: *node });
        SliceSnapshot {
            service: self.service,
            pods: pods.collect(),
            topology: self.topology,
            slices: self.slices.iter().collect(),
            names_in_use: &self.names_in_use,
            carried,
        }
    }

    /// Published pods that are not cached.
    pub fn uncached_pods(&self, cache: &Cache, key: &Key) -> BTreeSet<SharedStr> {
        cache.uncached_pods_of_slices(&key.namespace, &self.slices)
    }

    /// Nodes of this Service's pods that are not cached, sorted.
    pub fn unknown_nodes(&self) -> Vec<SharedStr> {
        let unknown = self.pods.iter().filter(|(_, node)| *node == NodeState::Unknown);
        let mut names: Vec<SharedStr> =
            unknown.filter_map(|(pod, _)| pod.node_name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl EndpointsInputs<'_> {
    pub fn snapshot<'s>(&'s self, carried: &'s CarriedState) -> EndpointsSnapshot<'s> {
        EndpointsSnapshot {
            service: self.service,
            pods: self.pods.iter().collect(),
            endpoints: self.endpoints.as_ref(),
            carried,
        }
    }

    /// Published pods that are not cached.
    pub fn uncached_pods(&self, cache: &Cache, key: &Key) -> BTreeSet<SharedStr> {
        cache.uncached_pods_of_endpoints(&key.namespace, &self.endpoints)
    }

    pub fn has_service(&self) -> bool {
        self.service.is_some()
    }

    /// A leader election lock.
    pub fn is_lock(&self) -> bool {
        self.endpoints.as_ref().is_some_and(|one| one.meta.annotations.contains_key(names::LEADER))
    }
}

impl MirrorInputs<'_> {
    pub fn snapshot(&self) -> MirrorSnapshot<'_> {
        MirrorSnapshot {
            key: self.key.clone(),
            endpoints: self.endpoints.as_ref(),
            service: self.service,
            slices: self.slices.iter().collect(),
            names_in_use: &self.names_in_use,
        }
    }

    pub fn has_service(&self) -> bool {
        self.service.is_some()
    }

    pub fn has_endpoints(&self) -> bool {
        self.endpoints.is_some()
    }
}

impl ImportInputs<'_> {
    pub fn snapshot<'s>(&'s self, carried: &'s CarriedState) -> ImportSnapshot<'s> {
        ImportSnapshot {
            service: self.service.as_ref(),
            source: self.source,
            source_slices: self.source_slices.iter().collect(),
            grants: self.grants.clone(),
            slices: self.slices.iter().collect(),
            topology: self.topology,
            carried,
        }
    }

    /// The source that the consumer names, if it is not cached.
    pub fn absent_source(&self) -> Option<&Key> {
        self.source_key.as_ref().filter(|_| self.source.is_none())
    }
}
