//! What mirroring upstream does that we do not: recycling that loses a create, slices being
//! deleted that are waited for, duplicates that hide or displace each other.

use endpointd_model::{Controller, names};
use serde_json::json;

use super::{Sync, is_subset};
use crate::answer::Answer;
use crate::canonical::{self, HintsIn};
use crate::judge::Aspect;

impl Sync<'_> {
    /// Upstream recycles across address types and drops the wrong create: less is mirrored than
    /// should be, and it takes another sync, or an error, to notice.
    pub(super) fn is_lost_create(&self, aspect: Aspect) -> bool {
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

    /// Upstream does not see that two subsets have the same port if it has an `appProtocol`. Both
    /// then land in one slice, and of an address in both the one in the later subset counts, later
    /// by a hash.
    pub(super) fn is_other_duplicate(&self, aspect: Aspect) -> bool {
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

    /// Two subsets have the same port, with an `appProtocol`.
    pub(super) fn has_app_protocol_twice(&self) -> bool {
        let Some(before) = self.before.endpoints.get(self.key) else { return false };
        let mut ports: Vec<_> = before.subsets.iter().flat_map(|subset| &subset.ports).collect();
        ports.retain(|port| port.app_protocol.is_some());
        ports.sort_unstable();
        self.controller == Controller::Mirror && ports.windows(2).any(|pair| pair[0] == pair[1])
    }

    pub(super) fn is_mirrored_oddity(&self, aspect: Aspect) -> bool {
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
        // Upstream waits for a slice to go that a finalizer holds, and does nothing till then.
        let is_waiting = self.upstream.errors.iter().any(|error| error.ends_with("out of date"));
        self.controller == Controller::Mirror
            && (aspect != Aspect::Events || is_waiting)
            && odd.next().is_some()
    }
}
