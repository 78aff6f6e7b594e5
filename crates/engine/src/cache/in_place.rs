//! The inputs of a plan in place: some slices of a Service, each with the pods that it publishes.

use endpointd_model::{EndpointSlice, Key, Pod, Service, SharedStr};
use endpointd_plan::{
    CarriedState, Counts, ExcludedPod, InPlaceSnapshot, NodeState, PodOnNode, SliceWithPods,
    Topology,
};

use super::{Cache, Namespace, PodId};
use crate::in_place::Placement;

/// Slices and pods are decoded for one plan.
pub struct InPlaceInputs<'a> {
    service: &'a Service,
    slices: Vec<DecodedSlice<'a>>,
    topology: &'a Topology,
}

struct DecodedSlice<'a> {
    slice: EndpointSlice,
    pods: Vec<(Pod, NodeState<'a>)>,
    n_ready: usize,
}

impl Cache {
    /// None if a slice does not publish the pods that the placement says.
    pub fn in_place_inputs(&self, key: &Key, placement: &Placement) -> Option<InPlaceInputs<'_>> {
        let namespace = self.namespace(&key.namespace)?;
        let decode = |(index, name, n_ready): (u32, &SharedStr, usize)| {
            let slice = self.slice(&Key::new(key.namespace.clone(), name.clone()))?;
            let targets = slice.endpoints.iter().map(|one| one.target_ref.as_ref());
            let pods = targets.map(|target| self.pod_named(key, &target?.name));
            let pods = pods.collect::<Option<Vec<PodId>>>()?;
            let publishes = placement.publishes(index, &pods);
            let pods = pods.into_iter().map(|id| self.pod_on_node(namespace, id)).collect();
            publishes.then_some(DecodedSlice { slice, pods, n_ready })
        };
        Some(InPlaceInputs {
            service: self.service(key)?,
            slices: placement.to_plan().map(decode).collect::<Option<Vec<_>>>()?,
            topology: self.topology(),
        })
    }

    /// The pod of this name in the namespace of `key`.
    pub fn pod_named(&self, key: &Key, name: &SharedStr) -> Option<PodId> {
        self.find_pod(*self.namespace_by_name.get(&key.namespace)?, name)
    }

    pub(super) fn pod_on_node(&self, namespace: &Namespace, id: PodId) -> (Pod, NodeState<'_>) {
        let node = self.pods[id.index()].object.node;
        let state = node.map_or(NodeState::Gone, |node| self.nodes.state(node.node()));
        (self.decode_pod(namespace, id.0), state)
    }
}

impl InPlaceInputs<'_> {
    pub fn snapshot<'s>(
        &'s self,
        (counts, excluded_pods): (&'s Counts, &'s [ExcludedPod]),
        carried: &'s CarriedState,
    ) -> InPlaceSnapshot<'s> {
        let slices =
            self.slices.iter().map(|DecodedSlice { slice, pods, n_ready }| SliceWithPods {
                slice,
                pods: pods.iter().map(|(pod, node)| PodOnNode { pod, node: *node }).collect(),
                n_ready: *n_ready,
            });
        let (service, topology) = (self.service, self.topology);
        let slices = slices.collect();
        InPlaceSnapshot { service, topology, slices, counts, excluded_pods, carried }
    }
}
