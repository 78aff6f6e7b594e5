//! How often each fault happened and each rule was applied. One that never did proves nothing.

use std::collections::BTreeMap;

/// What must hold. `S` at every write, `L` when the storm is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// S1: nothing that is not ours is written to.
    NoForeignObject,
    /// S2: a write names the version it was decided on, and a version the engine was told.
    NoStaleOverwrite,
    /// S2: nobody writes after the lease was to be given up.
    NoWriteWithoutLease,
    /// S3: what is published and wanted all along is never taken away.
    NoLoss,
    /// S4: what is published was right for some version the engine could know.
    NoWrongAddress,
    /// S5: a deletion that rests on an absence is confirmed by a live read.
    NoDeletionFromAbsence,
    /// S5: at most so many of them a minute.
    DeletionLimiter,
    /// L5: no write that changes nothing, and none that the API server must refuse as invalid.
    NoUselessWrite,
    /// The trigger time of what is written is a time something happened at.
    TriggerTime,
    /// L1, L2, L4: after the storm all is as the oracle says.
    Settles,
    /// L3: then nothing is written any more.
    Quiet,
    /// L3: nor after a restart.
    QuietAfterRestart,
    /// L5: what is refused for good is not tried for ever.
    BoundedWrites,
    /// L5: who is asked to wait waits.
    Patience,
    /// L6: nothing panics, nothing waits, nothing is remembered of what is gone.
    NoLeftovers,
    /// L6: readiness says what is so.
    HonestReadiness,
}

impl Rule {
    pub const ALL: [Self; 16] = [
        Self::NoForeignObject,
        Self::NoStaleOverwrite,
        Self::NoWriteWithoutLease,
        Self::NoLoss,
        Self::NoWrongAddress,
        Self::NoDeletionFromAbsence,
        Self::DeletionLimiter,
        Self::NoUselessWrite,
        Self::TriggerTime,
        Self::Settles,
        Self::Quiet,
        Self::QuietAfterRestart,
        Self::BoundedWrites,
        Self::Patience,
        Self::NoLeftovers,
        Self::HonestReadiness,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::NoForeignObject => "S1 no foreign object",
            Self::NoStaleOverwrite => "S2 no stale overwrite",
            Self::NoWriteWithoutLease => "S2 no write without lease",
            Self::NoLoss => "S3 no loss",
            Self::NoWrongAddress => "S4 no wrong address",
            Self::NoDeletionFromAbsence => "S5 no deletion from absence",
            Self::DeletionLimiter => "S5 deletion_limiter",
            Self::NoUselessWrite => "L5 no useless write",
            Self::TriggerTime => "trigger time",
            Self::Settles => "L1 L2 L4 settles",
            Self::Quiet => "L3 quiet",
            Self::QuietAfterRestart => "L3 quiet after restart",
            Self::BoundedWrites => "L5 bounded writes",
            Self::Patience => "L5 patience",
            Self::NoLeftovers => "L6 no leftovers",
            Self::HonestReadiness => "L6 honest readiness",
        }
    }
}

/// A rule that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: Rule,
    pub text: String,
}

/// By name: faults as the story calls them, and rules.
#[derive(Clone, Debug, Default)]
pub struct Census {
    pub faults: BTreeMap<&'static str, u64>,
    pub rules: BTreeMap<Rule, u64>,
    pub n_steps: u64,
    pub n_events: u64,
    pub n_writes: u64,
    /// Virtual time that passed.
    pub n_seconds: u64,
}

/// Every fault that must have happened in a full run.
pub const FAULTS: [&str; 35] = [
    "watch delay",
    "watch frozen",
    "watch dead for 90 s",
    "watch cut",
    "watch replayed",
    "watch 410",
    "old picture",
    "empty picture",
    "bookmark",
    "picture interrupted",
    "answer lost, applied",
    "answer lost, not applied",
    "applied after the answer was given up",
    "500",
    "unreachable",
    "429",
    "403",
    "overtaken (409)",
    "slow answer",
    "slow request",
    "outage",
    "blind reads",
    "quota",
    "refused for one Service",
    "webhook",
    "clock jump",
    "compaction",
    "crash",
    "crash with writes in flight",
    "sleep",
    "lease cut off",
    "lease stolen",
    "two leaders write",
    "garbled object",
    "namespace ended",
];

impl Census {
    pub fn fault(&mut self, name: &'static str) {
        *self.faults.entry(name).or_default() += 1;
    }

    pub fn rule(&mut self, rule: Rule) {
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

    /// Faults and rules that never came up.
    pub fn never(&self) -> Vec<&'static str> {
        let faults = FAULTS.into_iter().filter(|name| !self.faults.contains_key(name));
        let rules = Rule::ALL.into_iter().filter(|rule| !self.rules.contains_key(rule));
        faults.chain(rules.map(Rule::name)).collect()
    }
}
