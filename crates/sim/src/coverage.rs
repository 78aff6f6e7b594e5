//! How often each fault occurred and each rule was checked. A run that misses one fails.

use std::collections::BTreeMap;

/// Safety rules (S) are checked at every write, liveness rules (L) in quiescent phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// S1: no write to an object that another controller or a user owns.
    NoForeignObject,
    /// S1: no write to an object of another instance's scope.
    OwnScope,
    /// S2: a write names a resourceVersion that the engine received.
    NoStaleOverwrite,
    /// S2: no write after the renew deadline.
    NoWriteWithoutLease,
    /// S2: no process acquires the lease while another one still holds it.
    OneLeader,
    /// S3: an endpoint desired in every version the engine may have observed is never removed.
    NoLoss,
    /// S6: neither a slice nor a condition tells of another namespace without its consent.
    NoByteWithoutConsent,
    /// S7: nothing of a cluster is written, changed, or deleted before its lists are complete.
    UnknownStays,
    /// S7: each imported slice has the endpoints of one cluster.
    OneClusterPerSlice,
    /// S4: what is published is desired in some version that the engine may have observed.
    NoWrongAddress,
    /// S5: a deletion caused by a missing object is confirmed by a live read.
    NoDeletionFromAbsence,
    /// S5: what a Service without selector has left is deleted only after a live read of it.
    NoDeletionOfLeftBehind,
    /// S5: at most twenty of them per minute.
    DeletionLimiter,
    /// L5: no write that changes nothing, and none that the API server rejects as invalid.
    NoRedundantWrite,
    /// The trigger time annotation is the time of some change.
    TriggerTime,
    /// L1, L2, L4: in a quiescent phase the cluster matches the oracle.
    Converges,
    /// L1: then each Service is in the cache of exactly one process that leads.
    OneWriter,
    /// L3: then no request is sent.
    Quiescent,
    /// L3: nor after a restart.
    QuiescentAfterRestart,
    /// L3: nor if a link is cut off for less than five minutes.
    NoWriteForFlap,
    /// L5: few attempts of a write that is rejected permanently.
    BoundedWrites,
    /// L5: at most 64 writes in flight.
    WritesInFlight,
    /// L5: no write before the Retry-After time of a 429.
    RetryAfter,
    /// A failed write gives the Event that upstream records; none is without a cause or repeated.
    Events,
    /// L6: no panic, no pending key, no state of deleted objects.
    NoLeftovers,
    /// L6: the engine is not ready while a watch is lost, and ready in quiescence.
    AccurateReadiness,
}

impl Rule {
    pub const ALL: [Self; 26] = [
        Self::NoForeignObject,
        Self::OwnScope,
        Self::NoStaleOverwrite,
        Self::NoWriteWithoutLease,
        Self::OneLeader,
        Self::NoLoss,
        Self::NoByteWithoutConsent,
        Self::UnknownStays,
        Self::OneClusterPerSlice,
        Self::NoWrongAddress,
        Self::NoDeletionFromAbsence,
        Self::NoDeletionOfLeftBehind,
        Self::DeletionLimiter,
        Self::NoRedundantWrite,
        Self::TriggerTime,
        Self::Converges,
        Self::OneWriter,
        Self::Quiescent,
        Self::QuiescentAfterRestart,
        Self::NoWriteForFlap,
        Self::BoundedWrites,
        Self::WritesInFlight,
        Self::RetryAfter,
        Self::Events,
        Self::NoLeftovers,
        Self::AccurateReadiness,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::NoForeignObject => "S1 no foreign object",
            Self::OwnScope => "S1 no object of another scope",
            Self::NoStaleOverwrite => "S2 no stale overwrite",
            Self::NoWriteWithoutLease => "S2 no write without lease",
            Self::OneLeader => "S2 one leader",
            Self::NoLoss => "S3 no loss",
            Self::NoByteWithoutConsent => "S6 no byte without consent",
            Self::UnknownStays => "S7 unknown clusters stay",
            Self::OneClusterPerSlice => "S7 one cluster per slice",
            Self::NoWrongAddress => "S4 no wrong address",
            Self::NoDeletionFromAbsence => "S5 no deletion from absence",
            Self::NoDeletionOfLeftBehind => "S5 no deletion of what a Service left without a read",
            Self::DeletionLimiter => "S5 deletion limiter",
            Self::NoRedundantWrite => "L5 no redundant write",
            Self::TriggerTime => "trigger time",
            Self::Converges => "L1 L2 L4 converges",
            Self::OneWriter => "L1 one writer",
            Self::Quiescent => "L3 quiescent",
            Self::QuiescentAfterRestart => "L3 quiescent after restart",
            Self::NoWriteForFlap => "L3 no write for a flap",
            Self::BoundedWrites => "L5 bounded writes",
            Self::WritesInFlight => "L5 writes in flight",
            Self::RetryAfter => "L5 Retry-After",
            Self::Events => "Events",
            Self::NoLeftovers => "L6 no leftovers",
            Self::AccurateReadiness => "L6 accurate readiness",
        }
    }
}

/// A rule that a run broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: Rule,
    pub text: String,
}

/// Counts by fault and by rule.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    pub faults: BTreeMap<&'static str, u64>,
    pub rules: BTreeMap<Rule, u64>,
    pub n_steps: u64,
    pub n_events: u64,
    pub n_writes: u64,
    /// Virtual time.
    pub n_seconds: u64,
}

/// Every fault that must occur in a full run.
pub const FAULTS: [&str; 52] = [
    "watch delay",
    "watch frozen",
    "watch dead for 90 s",
    "watch disconnected",
    "events replayed",
    "watch 410",
    "outdated list",
    "empty list",
    "short list",
    "empty first list",
    "bookmark",
    "list interrupted",
    "response lost, applied",
    "request lost, not applied",
    "applied after the client timed out",
    "500",
    "500 for all writes",
    "unreachable",
    "429",
    "403",
    "concurrent write (409)",
    "slow response",
    "slow request",
    "write held back in the client",
    "outage",
    "failed reads",
    "quota",
    "rejected for one Service",
    "rejected with 500",
    "webhook adds an annotation",
    "webhook adds a label",
    "webhook changes endpoints",
    "contested label",
    "clock jump",
    "clock jump of a process",
    "compaction",
    "crash",
    "crash with writes in flight",
    "sleep",
    "lease cut off",
    "lease stolen",
    "two leaders write",
    "undecodable object",
    "namespace deleted",
    "tolerate-unready annotation",
    "instance started beside others",
    "cluster cut off",
    "cluster restored from backup",
    "cluster replaced",
    "kubeconfig removed",
    "credentials expired",
    "Service leaves a label selector",
];

impl Coverage {
    pub fn count_fault(&mut self, name: &'static str) {
        *self.faults.entry(name).or_default() += 1;
    }

    pub fn count_rule(&mut self, rule: Rule) {
        *self.rules.entry(rule).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (name, n) in &other.faults {
            *self.faults.entry(name).or_default() += n;
        }
        for (rule, n) in &other.rules {
            *self.rules.entry(*rule).or_default() += n;
        }
        self.n_steps += other.n_steps;
        self.n_events += other.n_events;
        self.n_writes += other.n_writes;
        self.n_seconds += other.n_seconds;
    }

    /// Faults that never occurred and rules that were never checked.
    pub fn missing(&self) -> Vec<&'static str> {
        let faults = FAULTS.into_iter().filter(|name| !self.faults.contains_key(name));
        let rules = Rule::ALL.into_iter().filter(|rule| !self.rules.contains_key(rule));
        faults.chain(rules.map(Rule::name)).collect()
    }
}
