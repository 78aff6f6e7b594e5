//! Everything that one plan needs about one key, borrowed and immutable.

use std::fmt::Debug;

use endpointd_model::{EndpointSlice, Endpoints, Key, Pod, Service, SharedStr, SliceManagers};

use crate::{AnnotationPolicy, CarriedState, OrphanPolicy, Topology};

/// What flags set. The caller has checked their range (docs/spec.md, section 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `--max-endpoints-per-slice`
    pub endpoints_per_slice_max: usize,
    /// `--mirroring-max-endpoints-per-subset`
    pub mirrored_per_subset_max: usize,
    /// `--honor-tolerate-unready-annotation`
    pub tolerate_unready_annotation: AnnotationPolicy,
    /// `--orphan-policy`
    pub orphan_policy: OrphanPolicy,
    /// `--service-selector`
    pub services_seen: ServicesSeen,
    /// `--controller-name`
    pub managers: SliceManagers,
}

/// Which Services snapshots can contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServicesSeen {
    #[default]
    All,
    /// Those with some labels. Another one can exist and belong to another instance, so nothing is
    /// deleted because a Service is missing.
    Selected,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            endpoints_per_slice_max: 100,
            mirrored_per_subset_max: 1000,
            tolerate_unready_annotation: AnnotationPolicy::Ignore,
            orphan_policy: OrphanPolicy::Keep,
            services_seen: ServicesSeen::All,
            managers: SliceManagers::default(),
        }
    }
}

/// Input of [`slices`](crate::slices).
#[derive(Clone, Debug)]
pub struct SliceSnapshot<'a> {
    /// None if the Service does not exist.
    pub service: Option<&'a Service>,
    /// The pods the Service's selector matches, in any order.
    pub pods: Vec<PodOnNode<'a>>,
    pub topology: &'a Topology,
    /// Slices of the namespace, in any order; at least those that have the Service's name as their
    /// service-name label. Slices that the controller does not manage are never written.
    pub slices: Vec<&'a EndpointSlice>,
    pub names_in_use: &'a dyn NamesInUse,
    pub carried: &'a CarriedState,
}

/// The names of all slices of a namespace: a new slice must not take one of them.
pub trait NamesInUse: Debug {
    fn contains(&self, name: &str) -> bool;
}

/// No slice has a name that a new one could want, except those of the snapshot.
impl NamesInUse for () {
    fn contains(&self, _: &str) -> bool {
        false
    }
}

/// A pod, and what the cache knows about its node.
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
    /// Not observed, and not confirmed absent: a published endpoint stays, a new one waits (B10).
    Unknown,
    /// Confirmed absent, or the pod has no node.
    Gone,
}

/// Input of [`endpoints`](crate::endpoints).
#[derive(Clone, Debug)]
pub struct EndpointsSnapshot<'a> {
    /// None if the Service does not exist.
    pub service: Option<&'a Service>,
    /// The pods the Service's selector matches, in any order.
    pub pods: Vec<&'a Pod>,
    /// The Endpoints object of the same key.
    pub endpoints: Option<&'a Endpoints>,
    pub carried: &'a CarriedState,
}

/// Input of [`mirror`](crate::mirror).
#[derive(Clone, Debug)]
pub struct MirrorSnapshot<'a> {
    pub key: Key,
    pub endpoints: Option<&'a Endpoints>,
    pub service: Option<&'a Service>,
    /// As in [`SliceSnapshot::slices`].
    pub slices: Vec<&'a EndpointSlice>,
    pub names_in_use: &'a dyn NamesInUse,
}
