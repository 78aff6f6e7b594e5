//! Everything one plan needs about one key, taken from the cache.

use endpointd_model::{EndpointSlice, Endpoints, Key, Pod, Service, Text, names};
use endpointd_plan::{
    EndpointsSnapshot, Memory, MirrorSnapshot, NodeState, PodOnNode, SliceSnapshot, Topology,
};

use super::{Cache, Namespace};

/// For the endpointslice controller. Pods are unpacked for the time of one plan.
pub struct SliceView<'a> {
    service: Option<&'a Service>,
    pods: Vec<(Pod, NodeState<'a>)>,
    slices: Vec<&'a EndpointSlice>,
    topology: &'a Topology,
}

/// For the endpoints controller.
pub struct EndpointsView<'a> {
    service: Option<&'a Service>,
    pods: Vec<Pod>,
    endpoints: Option<&'a Endpoints>,
}

/// For the mirroring controller.
pub struct MirrorView<'a> {
    key: &'a Key,
    service: Option<&'a Service>,
    endpoints: Option<&'a Endpoints>,
    slices: Vec<&'a EndpointSlice>,
}

impl Cache {
    /// `in_the_way` names slices that are not the Service's, but whose names it wanted.
    pub fn slice_view(&self, key: &Key, in_the_way: &[Text]) -> SliceView<'_> {
        let namespace = self.namespace(&key.namespace);
        let pods = namespace.into_iter().flat_map(|namespace| {
            namespace.matching.pods(&key.name).map(|id| {
                let node = self.pods[id.0 as usize].node;
                let state = node.map_or(NodeState::Gone, |node| self.nodes.state(node.node));
                (self.unpack_pod(namespace, id.0), state)
            })
        });
        SliceView {
            service: self.service(key),
            pods: pods.collect(),
            slices: slices_near(namespace, key, in_the_way),
            topology: self.topology(),
        }
    }

    pub fn endpoints_view(&self, key: &Key) -> EndpointsView<'_> {
        let namespace = self.namespace(&key.namespace);
        let pods = namespace.into_iter().flat_map(|namespace| {
            namespace.matching.pods(&key.name).map(|id| self.unpack_pod(namespace, id.0))
        });
        EndpointsView {
            service: self.service(key),
            pods: pods.collect(),
            endpoints: self.endpoints(key),
        }
    }

    pub fn mirror_view<'a>(&'a self, key: &'a Key, in_the_way: &[Text]) -> MirrorView<'a> {
        let namespace = self.namespace(&key.namespace);
        MirrorView {
            key,
            service: self.service(key),
            endpoints: self.endpoints(key),
            slices: slices_near(namespace, key, in_the_way),
        }
    }

    fn unpack_pod(&self, namespace: &Namespace, id: u32) -> Pod {
        let record = &self.pods[id as usize];
        let labels = namespace.matching.labels(record.seat.set);
        let node_name = record.node.map(|node| self.nodes.name(node.node));
        record.unpack(&namespace.name, labels, node_name)
    }
}

fn slices_near<'a>(
    namespace: Option<&'a Namespace>,
    key: &Key,
    in_the_way: &[Text],
) -> Vec<&'a EndpointSlice> {
    let Some(namespace) = namespace else { return Vec::new() };
    let own: Vec<&EndpointSlice> = namespace.published.slices_of(&key.name).collect();
    let others = in_the_way.iter().filter_map(|name| namespace.published.slice(name));
    let is_other = |slice: &&EndpointSlice| own.iter().all(|own| own.meta.name != slice.meta.name);
    let others: Vec<&EndpointSlice> = others.filter(is_other).collect();
    own.into_iter().chain(others).collect()
}

impl SliceView<'_> {
    pub fn snapshot<'s>(&'s self, memory: &'s Memory) -> SliceSnapshot<'s> {
        let pods = self.pods.iter().map(|(pod, node)| PodOnNode { pod, node: *node });
        SliceSnapshot {
            service: self.service,
            pods: pods.collect(),
            topology: self.topology,
            slices: self.slices.clone(),
            memory,
        }
    }

    /// Nodes that pods of this Service run on and that we have not seen, sorted.
    pub fn unknown_nodes(&self) -> Vec<Text> {
        let unknown = self.pods.iter().filter(|(_, node)| *node == NodeState::Unknown);
        let mut names: Vec<Text> = unknown.filter_map(|(pod, _)| pod.node_name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl EndpointsView<'_> {
    pub fn snapshot<'s>(&'s self, memory: &'s Memory) -> EndpointsSnapshot<'s> {
        EndpointsSnapshot {
            service: self.service,
            pods: self.pods.iter().collect(),
            endpoints: self.endpoints,
            memory,
        }
    }

    pub fn has_service(&self) -> bool {
        self.service.is_some()
    }

    /// A leader election lock.
    pub fn is_lock(&self) -> bool {
        self.endpoints.is_some_and(|one| one.meta.annotations.contains_key(names::LEADER))
    }
}

impl MirrorView<'_> {
    pub fn snapshot(&self) -> MirrorSnapshot<'_> {
        MirrorSnapshot {
            key: self.key.clone(),
            endpoints: self.endpoints,
            service: self.service,
            slices: self.slices.clone(),
        }
    }

    pub fn has_service(&self) -> bool {
        self.service.is_some()
    }

    pub fn has_endpoints(&self) -> bool {
        self.endpoints.is_some()
    }
}
