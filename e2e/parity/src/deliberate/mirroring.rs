//! B16 and B19: upstream's mirroring loses creates when it recycles, waits for slices that are
//! being deleted, and lets duplicates hide or displace each other.

use endpointd_model::{Controller, names};
use serde_json::json;

use super::{Sync, is_subset};
use crate::answer::Answer;
use crate::canonical::{self, HintsIn};
use crate::judge::Aspect;

impl Sync<'_> {
    /// Upstream recycles across address types and drops the wrong create, so endpoints are missing
    /// until its next sync, or until an error.
    pub(super) fn upstream_lost_a_create(&self, aspect: Aspect) -> bool {
        let all = |answer: &Answer| -> Vec<String> {
            canonical::union(&answer.slices, HintsIn::Ignored).into_values().flatten().collect()
        };
        let is_under_taken_name =
            self.upstream.errors.iter().any(|error| error.ends_with("already exists"));
        let is_repaired_later = !self.expected.second_sync_writes.is_empty()
            && all(self.upstream).len() < all(self.ours).len()
            && is_subset(&all(self.upstream), &all(self.ours));
        self.controller == Controller::Mirror
            && aspect != Aspect::Events
            && (is_under_taken_name || is_repaired_later)
    }

    /// Upstream treats equal ports of two subsets as different if they have an `appProtocol`. Both
    /// subsets then share a slice, and the subset that is later by a hash decides an address in
    /// both.
    pub(super) fn differs_only_by_duplicate_winner(&self, aspect: Aspect) -> bool {
        let addresses = |answer: &Answer| -> Vec<String> {
            let mut all: Vec<String> = Vec::new();
            for slice in &answer.slices {
                let endpoints = slice["endpoints"].as_array().into_iter().flatten();
                let group = json!([slice["addressType"], slice["ports"]]);
                all.extend(endpoints.map(|one| json!([group, one["addresses"]]).to_string()));
            }
            all.sort_unstable();
            all
        };
        self.controller == Controller::Mirror
            && matches!(
                aspect,
                Aspect::Writes | Aspect::End | Aspect::EndUnion | Aspect::EndUnionWithHints
            )
            && self.has_app_protocol_twice()
            && addresses(self.upstream) == addresses(self.ours)
    }

    /// Two subsets have an equal port with an `appProtocol`.
    pub(super) fn has_app_protocol_twice(&self) -> bool {
        let Some(before) = self.before.endpoints.get(self.key) else { return false };
        let mut ports: Vec<_> = before.subsets.iter().flat_map(|subset| &subset.ports).collect();
        ports.retain(|port| port.app_protocol.is_some());
        ports.sort_unstable();
        self.controller == Controller::Mirror && ports.windows(2).any(|pair| pair[0] == pair[1])
    }

    pub(super) fn upstream_misreads_mirrored_slices(&self, aspect: Aspect) -> bool {
        let mirrored = self
            .before
            .slices
            .values()
            .filter(|slice| slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_MIRROR));
        let mut odd = mirrored.filter(|slice| {
            let addresses = slice.endpoints.iter().map(|endpoint| &endpoint.addresses);
            let mut sorted: Vec<_> = addresses.collect();
            sorted.sort_unstable();
            slice.meta.is_deleting() || sorted.windows(2).any(|pair| pair[0] == pair[1])
        });
        // Upstream does nothing until a slice that a finalizer holds is gone.
        let is_waiting = self.upstream.errors.iter().any(|error| error.ends_with("out of date"));
        self.controller == Controller::Mirror
            && (aspect != Aspect::Events || is_waiting)
            && odd.next().is_some()
    }
}
