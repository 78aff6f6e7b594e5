//! What the controllers did, for pages: one [`Change`] per sync that wrote or failed. The details
//! of its writes are recorded only while somebody watches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use endpointd_engine::SyncSummary;
use endpointd_model::{Key, SharedStr};
use tokio::sync::broadcast;

use crate::endpoint_diff::EndpointDiff;

/// Changes kept, of all Services together.
pub const CHANGES_MAX: usize = 4096;
/// Notices that a reader may be behind; then it misses the oldest and reads how many.
const NOTICES_MAX: usize = 4096;
/// Changes that nobody has compared yet, with the slices before and after: a reader compares them when it
/// gets them. Of more, the event loop compares the oldest itself.
const NOT_COMPARED_MAX: usize = 256;

/// A finished sync that wrote something or failed.
#[derive(Debug)]
pub struct Change {
    /// When the last response arrived.
    pub at: SystemTime,
    pub sync: SyncSummary,
    /// In the order of their responses. Empty if nobody watched when they were sent.
    pub writes: Vec<WriteRecord>,
}

/// One write, and what it changed.
#[derive(Debug)]
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
    pub endpoints: EndpointDiff,
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

impl Change {
    /// Compares the slices of its writes, if nobody has done so.
    pub fn compare(&self) {
        for write in &self.writes {
            write.endpoints.get();
        }
    }
}

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
        if let Some(old) = self.recent.iter().nth_back(NOT_COMPARED_MAX) {
            old.compare();
        }
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

#[cfg(test)]
mod tests {
    use endpointd_model::Controller;

    use super::*;

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
