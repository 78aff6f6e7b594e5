//! Inputs and effects: all that can happen to an engine, and all that it can ask for.

use endpointd_model::{
    ClusterId, Controller, EventRecord, Key, LiveRead, LiveReadResult, Timestamp, Uid, WatchSignal,
    WatchedResource, Write, WriteResult,
};
use endpointd_plan::{ContactLimits, KubeconfigFile, Zones};

use crate::SyncSummary;

/// Everything that can happen to an engine.
#[derive(Clone, Debug)]
pub enum Input {
    Watch(WatchedResource, WatchSignal),
    /// The response to an [`Effect::Send`].
    WriteResult(RequestId, WriteResult),
    /// The response to an [`Effect::LiveRead`].
    LiveReadResult(RequestId, LiveReadResult),
    /// This process holds the lease, or needs none: writing may start.
    LeadershipAcquired,
    /// This process does not hold the lease any more: writing must stop.
    LeadershipLost,
    /// resourceVersions went backwards, as after etcd was restored from a backup: what is cached
    /// cannot be compared with what the API server has now.
    VersionsRolledBack,
    /// The wall-clock time at the time of this input: before [`Self::LeadershipAcquired`], and once a
    /// second while there are other clusters, whose states follow from it.
    Clock(Timestamp),
    /// Something happened to another cluster of the set.
    Source(ClusterId, SourceInput),
    /// All clusters that are configured have been told. Until then, a cluster that published objects
    /// name counts as unknown.
    SourcesListed,
}

/// What can happen to another cluster of the set.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceInput {
    /// It is configured now, or otherwise than before.
    Configured {
        limits: ContactLimits,
        zones: Zones,
        /// Of a former process.
        last_contact: Option<Timestamp>,
    },
    /// Whether its kubeconfig is there.
    Kubeconfig(KubeconfigFile),
    /// Under its name there is another cluster: everything is listed again.
    Replaced,
    Watch(WatchedResource, WatchSignal),
    /// Its API server has answered, while its watches are silent.
    Answered,
    /// Status 401 or 403.
    Denied,
}

/// Everything an engine can ask for. The caller must answer each [`Effect::Send`] and each
/// [`Effect::LiveRead`] exactly once, with the same id.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send this write, if this process still holds the lease.
    Send { id: RequestId, controller: Controller, write: Box<Write> },
    /// GET one object from the API server, bypassing all caches.
    LiveRead { id: RequestId, read: LiveRead },
    /// List this resource again: the last list was older than what the watch had reported.
    Relist(WatchedResource),
    /// Replace all watches by ones that begin with a list. No signal of the old ones may follow.
    RelistAll,
    /// The same for another cluster: this resource, or all of them.
    RelistSource { cluster: ClusterId, resource: Option<WatchedResource> },
    /// Record a Kubernetes Event on the object of this key.
    RecordEvent {
        controller: Controller,
        key: Key,
        /// Empty if the object is not cached.
        uid: Uid,
        record: EventRecord,
    },
    /// A sync has ended; for metrics and logs.
    SyncFinished(Box<SyncSummary>),
}

/// Connects a response to the effect that asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);
