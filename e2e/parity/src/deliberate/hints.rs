//! B14 and B18: topology hints and their events.

use endpointd_model::{Controller, Endpoint, TopologyMode};
use endpointd_plan::ClusterState;

use super::{Sync, SyncStep, without};
use crate::answer::Answer;
use crate::canonical::{self, HintsIn};
use crate::judge::Aspect;

impl Sync<'_> {
    /// B18: only hints differ, and upstream would write hints again in its next sync, because it
    /// redistributes only once per sync.
    pub(super) fn differs_only_by_unconverged_hints(&self, aspect: Aspect) -> bool {
        let union = |answer: &Answer| canonical::union(&answer.slices, HintsIn::Ignored);
        self.controller == Controller::Slices
            && !matches!(aspect, Aspect::Events | Aspect::Errors)
            && (!self.expected.second_sync_writes.is_empty()
                || self.has_zone_without_usable_nodes())
            && union(self.upstream) == union(self.ours)
    }

    /// The annotation is on, and a ready endpoint is in a zone without usable nodes. Upstream hints
    /// it for that zone and rejects the hint in every sync.
    pub(super) fn has_zone_without_usable_nodes(&self) -> bool {
        let usable: Vec<_> = self
            .before
            .nodes
            .values()
            .filter(|node| node.is_ready && !node.is_control_plane)
            .filter_map(|node| node.zone.as_ref())
            .collect();
        let is_deserted = |one: &Endpoint| {
            one.is_ready() && one.zone.as_ref().is_some_and(|zone| !usable.contains(&zone))
        };
        let mut endpoints = self.after.slices.values().flat_map(|slice| &slice.endpoints);
        let service = self.before.services.get(self.key);
        service.is_some_and(|one| one.topology == TopologyMode::Auto) && endpoints.any(is_deserted)
    }

    /// B14: upstream repeats hint events and never forgets a family that once had hints.
    pub(super) fn is_repeated_hint_event(&self, aspect: Aspect) -> bool {
        let more = without(&self.upstream.events, &self.ours.events);
        let less = without(&self.ours.events, &self.upstream.events);
        let families = |cluster: &ClusterState| {
            cluster.services.get(self.key).map(|one| (one.families.clone(), one.cluster_ip))
        };
        let has_other_families = self.step == SyncStep::AfterChange
            && self
                .case
                .objects
                .to_cluster_state()
                .is_ok_and(|first| families(&first) != families(self.before));
        let is_forgotten =
            |event: &String| has_other_families && event.contains("\"TopologyAwareHintsEnabled\"");
        aspect == Aspect::Events
            && less.iter().all(is_forgotten)
            && more.iter().all(|event| event.contains("\"TopologyAwareHints"))
    }
}
