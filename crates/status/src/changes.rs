//! What the controllers did, for pages: one [`Change`] per sync that wrote or failed. The details
//! of its writes are recorded only while somebody watches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use endpointd_engine::SyncSummary;
use endpointd_model::{Endpoint, EndpointSlice, Key, SharedStr};
use tokio::sync::broadcast;

/// Changes kept, of all Services together.
pub const CHANGES_MAX: usize = 4096;
/// Notices that a reader may be behind; then it misses the oldest and reads how many.
const NOTICES_MAX: usize = 4096;
/// Endpoints that one write lists; the others are counted.
pub const ENDPOINTS_SHOWN_MAX: usize = 20;

/// A finished sync that wrote something or failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When the last response arrived.
    pub at: SystemTime,
    pub sync: SyncSummary,
    /// In the order of their responses. Empty if nobody watched when they were sent.
    pub writes: Vec<WriteRecord>,
}

/// One write, and what it changed.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteRecord {
    /// See [`endpointd_model::Write::verb`].
    pub verb: &'static str,
    /// The plural name in the API.
    pub resource: &'static str,
    pub name: SharedStr,
    /// See [`endpointd_model::WriteResult::as_str`].
    pub result: &'static str,
    /// From sending it to its response.
    pub took: Duration,
    /// Of a slice: endpoints that were added, removed, or changed, at most
    /// [`ENDPOINTS_SHOWN_MAX`].
    pub endpoints: Vec<EndpointChange>,
    pub n_endpoints_not_shown: usize,
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

/// What a reader of changes gets.
#[derive(Clone, Debug)]
pub enum Notice {
    Change(Arc<Change>),
    /// A Service or one of its slices was observed to change.
    Observed(Key),
    /// A complete list was received: anything may have changed.
    Listed,
    /// The process stops.
    Stopping,
}

/// Kept by the event loop. Adding to it costs a pointer; readers get their own queue.
#[derive(Debug)]
pub struct ChangeLog {
    recent: VecDeque<Arc<Change>>,
    notices: broadcast::Sender<Notice>,
}

/// Where pages subscribe.
#[derive(Clone, Debug)]
pub(crate) struct NoticeSource(broadcast::Sender<Notice>);

impl ChangeLog {
    pub(crate) fn new(source: &NoticeSource) -> Self {
        Self { recent: VecDeque::new(), notices: source.0.clone() }
    }

    /// Whether anybody reads notices; otherwise nothing needs to be built for them.
    pub fn is_watched(&self) -> bool {
        self.notices.receiver_count() > 0
    }

    pub fn push(&mut self, change: Change) {
        if self.recent.len() == CHANGES_MAX {
            self.recent.pop_front();
        }
        let change = Arc::new(change);
        self.recent.push_back(change.clone());
        self.notify(Notice::Change(change));
    }

    /// Without readers nothing happens.
    pub fn notify(&self, notice: Notice) {
        let _ = self.notices.send(notice);
    }

    /// All that are kept, the oldest first.
    pub fn recent(&self) -> impl DoubleEndedIterator<Item = &Arc<Change>> {
        self.recent.iter()
    }

    /// The last changes of one Service, the newest first.
    pub fn of_key(&self, key: &Key, max: usize) -> Vec<Arc<Change>> {
        let of_key = self.recent.iter().rev().filter(|change| change.sync.key == *key);
        of_key.take(max).cloned().collect()
    }
}

impl Default for NoticeSource {
    fn default() -> Self {
        Self(broadcast::Sender::new(NOTICES_MAX))
    }
}

impl NoticeSource {
    pub fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.0.subscribe()
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

/// The endpoints that differ, sorted by name, and how many more there are.
pub fn endpoint_changes(
    before: Option<&EndpointSlice>,
    after: Option<&EndpointSlice>,
) -> (Vec<EndpointChange>, usize) {
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
    let n_more = changed.len().saturating_sub(ENDPOINTS_SHOWN_MAX);
    changed.truncate(ENDPOINTS_SHOWN_MAX);
    (changed, n_more)
}

#[cfg(test)]
mod tests {
    use endpointd_model::{Conditions, Controller};

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
        let (changes, n_more) = endpoint_changes(Some(&before), Some(&after));
        let text: Vec<String> = changes
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
        assert_eq!(n_more, 0);
    }

    #[test]
    fn a_large_slice_lists_some_endpoints_and_counts_the_others() {
        let names: Vec<String> = (0..100).map(|n| format!("10.0.0.{n}")).collect();
        let endpoints: Vec<(&str, bool)> = names.iter().map(|name| (name.as_str(), true)).collect();
        let (changes, n_more) = endpoint_changes(None, Some(&slice(&endpoints)));
        assert_eq!((changes.len(), n_more), (ENDPOINTS_SHOWN_MAX, 80));
    }

    #[test]
    fn the_log_is_bounded_and_has_readers_only_after_a_subscription() {
        let source = NoticeSource::default();
        let mut log = ChangeLog::new(&source);
        assert!(!log.is_watched());
        let change = |n: usize| Change {
            at: SystemTime::UNIX_EPOCH,
            sync: SyncSummary::new(Controller::Slices, Key::new("shop", format!("web-{}", n % 2))),
            writes: Vec::new(),
        };
        (0..CHANGES_MAX + 10).for_each(|n| log.push(change(n)));
        assert_eq!(log.recent().count(), CHANGES_MAX);
        assert_eq!(log.of_key(&Key::new("shop", "web-1"), 100).len(), 100);
        let reader = source.subscribe();
        assert!(log.is_watched());
        drop(reader);
        assert!(!log.is_watched());
    }
}
