//! Everything one plan needs to know about one key, borrowed and immutable.

use endpointd_model::{EndpointSlice, Endpoints, Key, Pod, Service, SharedStr};

use crate::{CarriedState, Topology};

/// The two limits people may set, already checked to be in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `--max-endpoints-per-slice`
    pub endpoints_per_slice_max: usize,
    /// `--mirroring-max-endpoints-per-subset`
    pub mirrored_per_subset_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { endpoints_per_slice_max: 100, mirrored_per_subset_max: 1000 }
    }
}

/// For the endpointslice controller.
#[derive(Clone, Debug)]
pub struct SliceSnapshot<'a> {
    /// Absent: the Service is gone.
    pub service: Option<&'a Service>,
    /// The pods the Service's selector matches, in any order.
    pub pods: Vec<PodOnNode<'a>>,
    pub topology: &'a Topology,
    /// Slices of the namespace, in any order; at least all that carry the Service's name. Those
    /// that are not ours are never touched, but their names are taken.
    pub slices: Vec<&'a EndpointSlice>,
    pub carried: &'a CarriedState,
}

/// A pod, and what is known of the node it runs on.
#[derive(Clone, Debug)]
pub struct PodOnNode<'a> {
    pub pod: &'a Pod,
    pub node: NodeState<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState<'a> {
    Known {
        zone: Option<&'a SharedStr>,
    },
    /// Not seen yet: what is published stays, what is not waits.
    Unknown,
    /// Known not to exist (or the pod has no node).
    Gone,
}

/// For the endpoints controller.
#[derive(Clone, Debug)]
pub struct EndpointsSnapshot<'a> {
    /// Absent: the Service is gone.
    pub service: Option<&'a Service>,
    /// The pods the Service's selector matches, in any order.
    pub pods: Vec<&'a Pod>,
    /// The Endpoints object of the same key.
    pub endpoints: Option<&'a Endpoints>,
    pub carried: &'a CarriedState,
}

/// For the mirroring controller.
#[derive(Clone, Debug)]
pub struct MirrorSnapshot<'a> {
    pub key: Key,
    pub endpoints: Option<&'a Endpoints>,
    pub service: Option<&'a Service>,
    /// As in [`SliceSnapshot::slices`].
    pub slices: Vec<&'a EndpointSlice>,
}
