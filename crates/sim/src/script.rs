//! A history before it happens: what people, kubelets, and bad luck do, one act after the other.
//! Acts name places (`pod 3 of namespace a`), not objects, so that a script still makes sense when
//! acts are left out of it.

use std::time::Duration;

use endpointd_model::WatchedResource;

#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub seed: u64,
    pub setup: Setup,
    pub steps: Vec<Step>,
}

/// What holds for a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub endpoints_per_slice_max: usize,
    pub mirrored_per_subset_max: usize,
    pub batch_period: Duration,
    /// One process without election, or several that stand for one lease.
    pub n_processes: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            endpoints_per_slice_max: 3,
            mirrored_per_subset_max: 1000,
            batch_period: Duration::ZERO,
            n_processes: 1,
        }
    }
}

/// An act, and how long nothing else is done afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub act: Act,
    pub pause: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    Pod(Place, PodAct),
    Service(Place, ServiceAct),
    Node(u8, NodeAct),
    /// Endpoints written by hand, under the name of a Service.
    Endpoints(Place, EndpointsAct),
    Namespace(u8, NamespaceAct),
    /// Someone else writes to the slice with this index, or adds one.
    Slice(u32, SliceAct),
    /// The object at this index of a kind becomes unreadable.
    Garble(WatchedResource, u32),
    /// Of one process.
    Watch(u8, WatchedResource, WatchFault),
    /// What becomes of the next write.
    Mishap(Mishap),
    Fault(Fault),
    Process(u8, ProcessFault),
    Check(Check),
    /// All faults end; everything must come to rest and be right.
    Calm,
}

/// Namespace and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub namespace: u8,
    pub number: u16,
}

/// `u32` is a variety: which labels, addresses, ports, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodAct {
    Create(u32),
    Ready,
    Unready,
    Terminate,
    Fail,
    Succeed,
    Remove,
    /// Removed, and another of the same name at once.
    Replace(u32),
    Relabel(u32),
    Readdress(u32),
    Move(u32),
    Rename(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceAct {
    Create(u32),
    Remove,
    Recreate(u32),
    Relabel(u32),
    Ports(u32),
    Select(u32),
    Unselect,
    External,
    Internal,
    PublishNotReady,
    PublishReady,
    Families(u32),
    Topology(u32),
    /// Deletion has begun and is held up.
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeAct {
    Put(u32),
    Remove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointsAct {
    Put(u32),
    SkipMirror,
    Lock,
    Unmark,
    Annotate(u32),
    Empty,
    Remove,
    Recreate(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceAct {
    End,
    Begin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceAct {
    Delete,
    DropEndpoint,
    Readdress,
    Unhint,
    Relabel,
    Disown,
    GiveAway,
    SetFinalizer,
    DropFinalizer,
    /// Another writer's slice for a Service.
    AddForeign(u32),
    /// With our label, but nobody's.
    AddImpostor(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFault {
    /// Every change comes so much later from now on.
    Delay(Duration),
    /// Nothing comes, not even an end.
    Freeze(Duration),
    /// Cut, and resumed where it was.
    Cut(Duration),
    /// Resumed so many changes earlier: they come twice.
    Replay(u32),
    /// History is gone: 410, then a new picture.
    Gone(Duration),
    /// The next picture is so many revisions old.
    OldPicture(u32),
    Bookmark,
    /// A picture that shows nothing at all, as a broken server might give it.
    EmptyPicture,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// Stored, but the answer is lost.
    LostApplied,
    LostNotApplied,
    /// The client gives up, and later it is stored after all.
    AppliedLate(Duration),
    ServerError,
    Unreachable,
    Throttled(u32),
    Forbidden,
    /// Someone else writes to the same object just before.
    Overtaken,
    SlowAnswer(Duration),
    SlowRequest(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nobody can reach the API server.
    Outage(Duration),
    /// Live reads fail.
    Blind(Duration),
    /// Creates are refused (a quota).
    NoCreates(Duration),
    /// Every write for this Service is refused.
    Refused(Place, Duration),
    Webhook(Duration),
    ClockJump(i64),
    Compact(WatchedResource),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessFault {
    /// Killed, and started again after this time.
    Crash(Duration),
    /// Stopped and continued, as by SIGSTOP.
    Sleep(Duration),
    /// It cannot renew its lease.
    CutOffLease(Duration),
    /// It takes the lease as if nobody held it.
    StealLease,
}

/// What a script can ask for by itself, besides what always holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// From here on requests are counted.
    Mark,
    /// So many requests at most since the mark.
    FewRequests(u64),
    /// Nothing is published that is not wanted, whatever else is missing.
    NothingUnwanted,
}

impl Step {
    pub fn new(act: Act, pause: Duration) -> Self {
        Self { act, pause }
    }
}
