//! Everything one plan needs about one key, taken from the cache.

use endpointd_model::{EndpointSlice, Endpoints, Key, Pod, Service, SharedStr, names};
use endpointd_plan::{
    CarriedState, EndpointsSnapshot, MirrorSnapshot, NodeState, PodOnNode, SliceSnapshot, Topology,
};

use super::{Cache, Namespace};

/// For the endpointslice controller. Pods and slices are unpacked for the time of one plan.
pub struct SliceView<'a> {
    service: Option<&'a Service>,
    pods: Vec<(Pod, NodeState<'a>)>,
    slices: Vec<EndpointSlice>,
    topology: &'a Topology,
}

/// For the endpoints controller.
pub struct EndpointsView<'a> {
    service: Option<&'a Service>,
    pods: Vec<Pod>,
    endpoints: Option<Endpoints>,
}

/// For the mirroring controller.
pub struct MirrorView<'a> {
    key: &'a Key,
    service: Option<&'a Service>,
    endpoints: Option<Endpoints>,
    slices: Vec<EndpointSlice>,
}

impl Cache {
    /// `in_the_way` names slices that are not the Service's, but whose names it wanted.
    pub fn slice_view(&self, key: &Key, in_the_way: &[SharedStr]) -> SliceView<'_> {
        let pods = self.pods_of(key, |namespace, id| {
            let node = self.pods[id as usize].node;
            let state = node.map_or(NodeState::Gone, |node| self.nodes.state(node.node()));
            (self.unpack_pod(namespace, id), state)
        });
        SliceView {
            service: self.service(key),
            pods,
            slices: self.slices_near(key, in_the_way),
            topology: self.topology(),
        }
    }

    pub fn endpoints_view(&self, key: &Key) -> EndpointsView<'_> {
        EndpointsView {
            service: self.service(key),
            pods: self.pods_of(key, |namespace, id| self.unpack_pod(namespace, id)),
            endpoints: self.endpoints(key),
        }
    }

    pub fn mirror_view<'a>(&'a self, key: &'a Key, in_the_way: &[SharedStr]) -> MirrorView<'a> {
        MirrorView {
            key,
            service: self.service(key),
            endpoints: self.endpoints(key),
            slices: self.slices_near(key, in_the_way),
        }
    }

    fn pods_of<T>(&self, key: &Key, unpack: impl Fn(&Namespace, u32) -> T) -> Vec<T> {
        let Some(namespace) = self.namespace(&key.namespace) else { return Vec::new() };
        let mut pods = Vec::with_capacity(namespace.matching.n_pods(&key.name));
        pods.extend(namespace.matching.pods(&key.name).map(|id| unpack(namespace, id.0)));
        pods
    }

    fn unpack_pod(&self, namespace: &Namespace, id: u32) -> Pod {
        let record = &self.pods[id as usize];
        let labels = namespace.matching.labels(record.seat.set);
        let node_name = record.node.map(|node| self.nodes.name(node.node()));
        record.unpack(&namespace.name, labels, node_name)
    }

    fn slices_near(&self, key: &Key, in_the_way: &[SharedStr]) -> Vec<EndpointSlice> {
        let Some(namespace) = self.namespace(&key.namespace) else { return Vec::new() };
        let own = namespace.published.slices_of(&key.name);
        let others = in_the_way.iter().filter(|name| !own.contains(name));
        own.iter().chain(others).filter_map(|name| self.slice(&key.namespace, name)).collect()
    }
}

impl SliceView<'_> {
    pub fn snapshot<'s>(&'s self, carried: &'s CarriedState) -> SliceSnapshot<'s> {
        let pods = self.pods.iter().map(|(pod, node)| PodOnNode { pod, node: *node });
        SliceSnapshot {
            service: self.service,
            pods: pods.collect(),
            topology: self.topology,
            slices: self.slices.iter().collect(),
            carried,
        }
    }

    /// Nodes that pods of this Service run on and that we have not seen, sorted.
    pub fn unknown_nodes(&self) -> Vec<SharedStr> {
        let unknown = self.pods.iter().filter(|(_, node)| *node == NodeState::Unknown);
        let mut names: Vec<SharedStr> =
            unknown.filter_map(|(pod, _)| pod.node_name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl EndpointsView<'_> {
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

impl MirrorView<'_> {
    pub fn snapshot(&self) -> MirrorSnapshot<'_> {
        MirrorSnapshot {
            key: self.key.clone(),
            endpoints: self.endpoints.as_ref(),
            service: self.service,
            slices: self.slices.iter().collect(),
        }
    }

    pub fn has_service(&self) -> bool {
        self.service.is_some()
    }

    pub fn has_endpoints(&self) -> bool {
        self.endpoints.is_some()
    }
}
