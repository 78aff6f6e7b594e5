//! The script of a run: what users, kubelets, and faults do, one action after the other. Actions
//! name places (`pod 3 of namespace 0`), not objects, so that a script stays meaningful when the
//! shrinker leaves actions out.

mod clusters;
mod imports;

use std::time::Duration;

use endpointd_engine::{AdditionDelay, AnnotationPolicy, OrphanPolicy};
use endpointd_memory_api::Webhook;
use endpointd_model::{Controller, WatchedResource};

pub use clusters::ClusterAction;
pub use imports::{CopyEdit, ImportAction};

use crate::instances::Instances;

#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub seed: u64,
    pub setup: Setup,
    pub steps: Vec<Step>,
}

/// Settings of a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub endpoints_per_slice_max: usize,
    pub mirrored_per_subset_max: usize,
    pub batch_period: Duration,
    pub addition_delay: AdditionDelay,
    /// Of each instance: one process without leader election, or several that compete for its lease.
    pub n_processes: usize,
    /// Time to converge in addition to what the rule allows, where the deletion limiter is right to
    /// delay something.
    pub convergence_extra: Duration,
    pub tolerate_unready_annotation: AnnotationPolicy,
    pub orphan_policy: OrphanPolicy,
    pub instances: Instances,
    pub first_pod_lists: FirstPodLists,
    /// The processes run the import controller, too.
    pub runs_imports: bool,
    /// If there are other clusters, only the controller for Services of several clusters runs.
    pub n_other_clusters: usize,
}

/// The first list of pods that a process gets after it was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPodLists {
    True,
    /// Every second one contains no pod, as a faulty API server might send it.
    Empty,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            endpoints_per_slice_max: 3,
            mirrored_per_subset_max: 1000,
            batch_period: Duration::ZERO,
            addition_delay: AdditionDelay::default(),
            n_processes: 1,
            convergence_extra: Duration::ZERO,
            tolerate_unready_annotation: AnnotationPolicy::Ignore,
            orphan_policy: OrphanPolicy::Keep,
            instances: Instances::One,
            first_pod_lists: FirstPodLists::True,
            runs_imports: false,
            n_other_clusters: 0,
        }
    }
}

impl Setup {
    /// The controllers that run.
    pub fn controllers(&self) -> &'static [Controller] {
        if self.runs_imports { &Controller::ALL } else { &Controller::DEFAULT }
    }

    /// The resources that they read.
    pub fn resources(&self) -> &'static [WatchedResource] {
        if self.runs_imports { &WatchedResource::ALL } else { &WatchedResource::DEFAULT }
    }
}

/// An action, and the virtual time that passes after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub action: Action,
    pub pause: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Pod(Place, PodAction),
    Service(Place, ServiceAction),
    Node(u8, NodeAction),
    /// Endpoints that a user writes, under the name of a Service.
    Endpoints(Place, EndpointsAction),
    Namespace(u8, NamespaceAction),
    /// Another client writes to the slice with this index, or adds one.
    Slice(u32, SliceAction),
    /// What concerns endpoints of other namespaces.
    Import(ImportAction),
    /// What concerns several clusters; in the home cluster (0) or another one.
    Cluster(u8, ClusterAction),
    /// The object with this index cannot be decoded any more.
    Corrupt(WatchedResource, u32),
    /// A watch of one process fails.
    Watch(u8, WatchedResource, WatchFault),
    /// The next write meets this fault.
    Request(RequestFault),
    Fault(Fault),
    Process(u8, ProcessFault),
    /// All processes of one instance are started, or stopped for good.
    Instance(usize, InstanceAction),
    Check(Check),
    /// All faults end; the cluster must converge and no request may follow.
    Quiesce,
}

/// Namespace and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub namespace: u8,
    pub number: u16,
}

/// The `u32` is a shape: it decides labels, addresses, ports, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodAction {
    Create(u32),
    Ready,
    Unready,
    Terminate,
    Fail,
    Succeed,
    Remove,
    /// Deleted and at once created under the same name.
    Replace(u32),
    Relabel(u32),
    ChangeAddress(u32),
    Move(u32),
    Rename(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceAction {
    Create(u32),
    /// The API server deletes the Endpoints of the same name, too.
    Remove,
    /// Its Endpoints stay, as when the API server is killed between the two deletions.
    RemoveOnly,
    Recreate(u32),
    Relabel(u32),
    Ports(u32),
    Select(u32),
    Unselect,
    External,
    Internal,
    PublishNotReady,
    PublishReady,
    /// The annotation tolerate-unready-endpoints; without effect in runs that ignore it.
    Tolerate(u32),
    Families(u32),
    Topology(u32),
    /// Deletion has begun; a finalizer keeps the object.
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeAction {
    Put(u32),
    Remove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointsAction {
    Put(u32),
    SkipMirror,
    Lock,
    RemoveMarks,
    Annotate(u32),
    Empty,
    Remove,
    Recreate(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceAction {
    End,
    Begin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceAction {
    Delete,
    DropEndpoint,
    ChangeAddress,
    DropHints,
    Relabel,
    DropOwners,
    ChangeManager,
    SetFinalizer,
    DropFinalizer,
    /// A slice of another controller for a Service.
    AddForeign(u32),
    /// A slice with our managed-by label that we did not write.
    AddMislabelled(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFault {
    /// From now on every event is delayed by this time.
    Delay(Duration),
    /// No event and no end of the stream for this time.
    Freeze(Duration),
    /// Disconnected; resumes at the same resourceVersion.
    Disconnect(Duration),
    /// Resumes so many events earlier: they are delivered twice.
    Replay(u32),
    /// The resourceVersion has expired: 410, then a relist.
    Expired(Duration),
    /// A list as of so many revisions earlier.
    OutdatedList(u32),
    Bookmark,
    /// A list without objects, as a faulty API server might send it.
    EmptyList,
    /// A list with half of the objects, likewise.
    ShortList,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// Stored, but the response is lost.
    ResponseLost,
    RequestLost,
    /// The client times out; the write is stored later.
    AppliedLate(Duration),
    ServerError,
    Unreachable,
    Throttled(u32),
    Forbidden,
    /// Another client writes to the same object just before.
    ConcurrentWrite,
    SlowResponse(Duration),
    SlowRequest(Duration),
    /// It waits in the client, for the rate limiter or for a connection.
    HeldBack(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The API server is unreachable.
    Outage(Duration),
    /// Every write is answered with a 500 and not applied, as by a webhook that is down.
    Errors(Duration),
    /// Live reads fail.
    FailedReads(Duration),
    /// Creates are refused (a quota).
    NoCreates(Duration),
    /// Every write for this Service is refused.
    Rejected(Place, Duration),
    /// What is refused is answered 500 instead of 403, as by a webhook that is down.
    RejectedWith500(Duration),
    Webhook(Webhook, Duration),
    /// Another client adds a label to every slice after each write of it.
    Contested(Duration),
    ClockJump(i64),
    Compact(WatchedResource),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessFault {
    /// Killed, and restarted after this time.
    Crash(Duration),
    /// Stopped and continued, as by SIGSTOP.
    Sleep(Duration),
    /// It cannot renew its lease.
    CutOffLease(Duration),
    /// It takes the lease although another process holds it.
    StealLease,
    /// Its wall clock is so many seconds ahead of the true time from now on.
    ClockJump(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceAction {
    Start,
    Stop,
}

/// Checks that a script asks for, in addition to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Starts to count requests.
    CountRequests,
    /// At most so many requests since the count started.
    RequestsAtMost(u64),
    /// At least so many requests since the count started.
    RequestsAtLeast(u64),
    /// The stored objects match the oracle by now.
    Converged,
    /// No published endpoint is unwanted; missing ones are allowed.
    NoUnwantedEndpoint,
}

impl Step {
    pub fn new(action: Action, pause: Duration) -> Self {
        Self { action, pause }
    }
}
