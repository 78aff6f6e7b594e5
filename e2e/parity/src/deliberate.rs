//! The rules that recognize deliberate differences. Each rule requires the exact shape of its
//! difference: a case in which a deliberate difference is possible does not excuse another one.

mod hints;
mod invalid_address;
mod mirroring;
mod order;
mod truncation;
mod writes;

use std::collections::BTreeMap;
use std::fmt;

use endpointd_model::{Controller, Key};
use endpointd_plan::{ClusterState, Plan};

use crate::answer::Answer;
use crate::case::{Case, Expected};
use crate::judge::Aspect;

/// The ids of `docs/spec.md`, section 9, that show in the result of one sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeliberateDifference {
    /// A rejected write does not stop the others; upstream stops at the first error.
    B6,
    /// Only observed objects are deleted, and a recycled slice keeps its finalizers.
    B8,
    /// Addresses that the API server rejects are excluded.
    B9,
    /// Hint events on transitions only.
    B14,
    /// A fixed order, where upstream uses the order of a Go map or of a hash.
    B16,
    /// No write without effect, and none that the next sync would repeat.
    B18,
    /// Mirrored slices that are being deleted are ignored; duplicates hide no missing endpoint.
    B19,
}

impl fmt::Display for DeliberateDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One sync with both results.
pub struct Sync<'a> {
    pub case: &'a Case,
    pub controller: Controller,
    pub key: &'a Key,
    /// The cluster state before our writes.
    pub before: &'a ClusterState,
    pub plan: &'a Plan,
    /// The cluster state after our writes.
    pub after: &'a ClusterState,
    /// Upstream's result as recorded; `upstream` is its canonical form.
    pub expected: &'a Expected,
    pub upstream: &'a Answer,
    pub ours: &'a Answer,
    pub step: SyncStep,
}

/// Which sync of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncStep {
    First,
    AfterChange,
}

impl SyncStep {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::AfterChange => "then",
        }
    }
}

impl Sync<'_> {
    /// The deliberate difference that explains a difference in this aspect, if one does.
    pub fn explain(&self, aspect: Aspect) -> Option<DeliberateDifference> {
        if aspect == Aspect::Idempotence {
            return None;
        }
        [
            (
                DeliberateDifference::B6,
                Self::upstream_stopped_at_injected_error as fn(&Self, Aspect) -> bool,
            ),
            (DeliberateDifference::B8, Self::deletes_unobserved_endpoints),
            (DeliberateDifference::B8, Self::differs_only_by_finalizers),
            (DeliberateDifference::B16, Self::differs_only_by_truncation_order),
            (DeliberateDifference::B16, Self::differs_only_by_hash_order),
            (DeliberateDifference::B16, Self::differs_only_by_duplicate_winner),
            (DeliberateDifference::B14, Self::is_repeated_hint_event),
            (DeliberateDifference::B19, Self::upstream_lost_a_create),
            (DeliberateDifference::B19, Self::upstream_misreads_mirrored_slices),
            (DeliberateDifference::B18, Self::is_write_without_change),
            (DeliberateDifference::B18, Self::differs_only_by_number_of_updates),
            (DeliberateDifference::B18, Self::differs_only_by_unconverged_hints),
            (DeliberateDifference::B16, Self::differs_only_by_slice_names),
            (DeliberateDifference::B9, Self::has_invalid_address),
        ]
        .into_iter()
        .find_map(|(id, holds)| holds(self, aspect).then_some(id))
    }

    fn has_invalid_address(&self, aspect: Aspect) -> bool {
        invalid_address::explains(self, aspect)
    }
}

fn is_subset(part: &[String], whole: &[String]) -> bool {
    without(part, whole).is_empty()
}

/// The multiset difference.
fn without(list: &[String], other: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for item in other {
        *counts.entry(item).or_default() += 1;
    }
    let rest = list.iter().filter(|item| match counts.get_mut(item) {
        Some(n) if *n > 0 => {
            *n -= 1;
            false
        }
        _ => true,
    });
    rest.cloned().collect()
}
