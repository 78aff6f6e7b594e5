//! The inputs of one plan for one key, from the cache.

use endpointd_model::{EndpointSlice, Endpoints, Key, Pod, Service, SharedStr, names};
use endpointd_plan::{
    CarriedState, EndpointsSnapshot, MirrorSnapshot, NamesInUse, NodeState, PodOnNode,
    SliceSnapshot, Topology,
};

use super::published::Published;
use super::{Cache, Namespace};

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
        let pods = self.pods_of(key, |namespace, id| {
            let node = self.pods[id as usize].object.node;
            let state = node.map_or(NodeState::Gone, |node| self.nodes.state(node.node()));
            (self.decode_pod(namespace, id), state)
        });
        SliceInputs {
            service: self.service(key),
            pods,
            slices: self.slices_of(key),
            names_in_use: self.slice_names(key),
            topology: self.topology(),
        }
    }

    pub fn endpoints_inputs(&self, key: &Key) -> EndpointsInputs<'_> {
        EndpointsInputs {
            service: self.service(key),
            pods: self.pods_of(key, |namespace, id| self.decode_pod(namespace, id)),
            endpoints: self.endpoints(key),
        }
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

    fn pods_of<T>(&self, key: &Key, decode: impl Fn(&Namespace, u32) -> T) -> Vec<T> {
        let Some(namespace) = self.namespace(&key.namespace) else { return Vec::new() };
        let mut pods = Vec::with_capacity(namespace.selectors.n_pods(&key.name));
        pods.extend(namespace.selectors.pods(&key.name).map(|id| decode(namespace, id.0)));
        pods
    }

    fn decode_pod(&self, namespace: &Namespace, id: u32) -> Pod {
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
