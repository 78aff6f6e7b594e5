//! What a write changed in a slice. The event loop only keeps the slice before and the write; they are
//! compared on the thread of the first reader, because a write that is due must not wait for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use endpointd_engine::EncodedSlice;
use endpointd_model::{Endpoint, EndpointSlice, Object, SharedStr, Write};

/// Endpoints that one write lists; the others are counted.
pub const ENDPOINTS_SHOWN_MAX: usize = 20;

/// Compared at most once; then the slices are dropped.
#[derive(Debug, Default)]
pub struct EndpointDiff {
    slices: Mutex<Option<WrittenSlice>>,
    changes: OnceLock<EndpointChanges>,
}

/// A slice before and after a write.
#[derive(Debug)]
pub struct WrittenSlice {
    pub before: Option<EncodedSlice>,
    pub write: Arc<Write>,
}

/// Endpoints that were added, removed, or changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EndpointChanges {
    /// Sorted by name, at most [`ENDPOINTS_SHOWN_MAX`].
    pub shown: Vec<EndpointChange>,
    pub n_not_shown: usize,
}

/// One endpoint in a slice, before and after a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointChange {
    /// The pod, else the first address.
    pub name: SharedStr,
    /// `None`: it was not in this slice.
    pub before: Option<EndpointCondition>,
    /// `None`: it is not in this slice any more.
    pub after: Option<EndpointCondition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointCondition {
    Ready,
    NotReady,
    /// It is being deleted and still answers.
    Serving,
    Terminating,
}

impl EndpointDiff {
    pub fn new(slice: WrittenSlice) -> Self {
        Self { slices: Mutex::new(Some(slice)), changes: OnceLock::new() }
    }

    pub fn get(&self) -> &EndpointChanges {
        self.changes.get_or_init(|| {
            let slices = self.slices.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(WrittenSlice { before, write }) = slices else {
                return EndpointChanges::default();
            };
            compare(before.map(|before| before.decode()).as_ref(), slice_of(&write))
        })
    }
}

/// The slice that a write leaves; `None` if it deletes it, or is about another resource.
pub fn slice_of(write: &Write) -> Option<&EndpointSlice> {
    match write {
        Write::Create(Object::Slice(slice)) | Write::Update(Object::Slice(slice)) => Some(slice),
        Write::Create(
            Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_),
        )
        | Write::Update(
            Object::Endpoints(_) | Object::ServiceStatus(_) | Object::MultiCluster(_),
        )
        | Write::Delete(_) => None,
    }
}

impl EndpointCondition {
    pub fn of(endpoint: &Endpoint) -> Self {
        let conditions = &endpoint.conditions;
        match (conditions.terminating, conditions.ready, conditions.serving) {
            (Some(true), _, Some(true)) => Self::Serving,
            (Some(true), _, _) => Self::Terminating,
            (_, Some(false), _) => Self::NotReady,
            // Kubernetes: consumers interpret an absent condition as ready.
            (_, _, _) => Self::Ready,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NotReady => "not ready",
            Self::Serving => "serving while terminating",
            Self::Terminating => "terminating",
        }
    }
}

/// The endpoints that differ, sorted by name.
fn compare(before: Option<&EndpointSlice>, after: Option<&EndpointSlice>) -> EndpointChanges {
    let mut all: BTreeMap<(SharedStr, SharedStr), EndpointChange> = BTreeMap::new();
    let entry = |endpoint: &Endpoint| {
        let address = endpoint.addresses.first().cloned().unwrap_or_default();
        let pod = endpoint.target_ref.as_ref().map(|target| target.name.clone());
        let name = pod.unwrap_or_else(|| address.clone());
        let change = EndpointChange { name: name.clone(), before: None, after: None };
        ((name, address), change)
    };
    for endpoint in before.iter().flat_map(|slice| &slice.endpoints) {
        let (key, change) = entry(endpoint);
        all.entry(key).or_insert(change).before = Some(EndpointCondition::of(endpoint));
    }
    for endpoint in after.iter().flat_map(|slice| &slice.endpoints) {
        let (key, change) = entry(endpoint);
        all.entry(key).or_insert(change).after = Some(EndpointCondition::of(endpoint));
    }
    let mut changed: Vec<EndpointChange> =
        all.into_values().filter(|change| change.before != change.after).collect();
    let n_not_shown = changed.len().saturating_sub(ENDPOINTS_SHOWN_MAX);
    changed.truncate(ENDPOINTS_SHOWN_MAX);
    EndpointChanges { shown: changed, n_not_shown }
}

#[cfg(test)]
mod tests {
    use endpointd_model::Conditions;

    use super::*;

    fn slice(endpoints: &[(&str, bool)]) -> EndpointSlice {
        let endpoint = |(address, is_ready): &(&str, bool)| Endpoint {
            addresses: vec![(*address).into()],
            conditions: Conditions { ready: Some(*is_ready), ..Conditions::default() },
            ..Endpoint::default()
        };
        EndpointSlice {
            endpoints: endpoints.iter().map(endpoint).collect(),
            ..EndpointSlice::default()
        }
    }

    #[test]
    fn endpoints_that_differ_are_listed_and_the_others_are_not() {
        let before = slice(&[("10.0.0.1", true), ("10.0.0.2", true), ("10.0.0.3", true)]);
        let after = slice(&[("10.0.0.2", false), ("10.0.0.3", true), ("10.0.0.4", true)]);
        let EndpointChanges { shown, n_not_shown } = compare(Some(&before), Some(&after));
        let text: Vec<String> = shown
            .iter()
            .map(|one| format!("{} {:?} {:?}", one.name, one.before, one.after))
            .collect();
        assert_eq!(
            text,
            [
                "10.0.0.1 Some(Ready) None",
                "10.0.0.2 Some(Ready) Some(NotReady)",
                "10.0.0.4 None Some(Ready)",
            ]
        );
        assert_eq!(n_not_shown, 0);
    }

    #[test]
    fn a_large_slice_lists_some_endpoints_and_counts_the_others() {
        let names: Vec<String> = (0..100).map(|n| format!("10.0.0.{n}")).collect();
        let endpoints: Vec<(&str, bool)> = names.iter().map(|name| (name.as_str(), true)).collect();
        let EndpointChanges { shown, n_not_shown } = compare(None, Some(&slice(&endpoints)));
        assert_eq!((shown.len(), n_not_shown), (ENDPOINTS_SHOWN_MAX, 80));
    }

    #[test]
    fn slices_are_compared_once_and_then_dropped() {
        let write = Arc::new(Write::Create(Object::Slice(slice(&[("10.0.0.1", true)]))));
        let diff = EndpointDiff::new(WrittenSlice { before: None, write: write.clone() });
        assert_eq!(Arc::strong_count(&write), 2);
        assert_eq!(diff.get().shown.len(), 1);
        assert_eq!(diff.get().shown.len(), 1);
        assert_eq!(Arc::strong_count(&write), 1, "it is dropped");
        assert_eq!(*EndpointDiff::default().get(), EndpointChanges::default());
    }
}
