//! Deliberate bugs in the simulator's model of the client and the runtime. They show that the rules
//! detect violations that do not come from the engine.

/// The bug of one run; [`crate::RunOptions`] selects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientBug {
    ForcedConflict,
    LeaseNotChecked,
    LeaseCheckedEarly,
    LeaseByWallClock,
    FirstListFromCache,
    PartialList,
    ResumeFromNow,
    FailedReadIsAbsent,
    NotLeaderUnreported,
    ScopeNotChecked,
}

impl ClientBug {
    pub const ALL: [Self; 10] = [
        Self::ForcedConflict,
        Self::LeaseNotChecked,
        Self::LeaseCheckedEarly,
        Self::LeaseByWallClock,
        Self::FirstListFromCache,
        Self::PartialList,
        Self::ResumeFromNow,
        Self::FailedReadIsAbsent,
        Self::NotLeaderUnreported,
        Self::ScopeNotChecked,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::ForcedConflict => "forced-conflict",
            Self::LeaseNotChecked => "lease-not-checked",
            Self::LeaseCheckedEarly => "lease-checked-early",
            Self::LeaseByWallClock => "lease-by-wall-clock",
            Self::FirstListFromCache => "first-list-from-cache",
            Self::PartialList => "partial-list",
            Self::ResumeFromNow => "resume-from-now",
            Self::FailedReadIsAbsent => "failed-read-is-absent",
            Self::NotLeaderUnreported => "not-leader-unreported",
            Self::ScopeNotChecked => "scope-not-checked",
        }
    }

    /// One sentence.
    pub const fn description(self) -> &'static str {
        match self {
            Self::ForcedConflict => {
                "The client answers a 409 by sending the same object with the stored resourceVersion."
            }
            Self::LeaseNotChecked => "The client sends writes without checking the lease.",
            Self::LeaseCheckedEarly => {
                "The client checks the lease before the write waits for the rate limiter."
            }
            Self::LeaseByWallClock => {
                "The client compares the renew time of the lease with its own wall clock."
            }
            Self::FirstListFromCache => {
                "The first list comes from an outdated watch cache (k/k #59848)."
            }
            Self::PartialList => "The client reports an interrupted list as complete.",
            Self::ResumeFromNow => "A disconnected watch resumes at the current revision.",
            Self::FailedReadIsAbsent => "The client reports a failed live read as an absence.",
            Self::NotLeaderUnreported => {
                "The client drops a write without the lease and never reports a result."
            }
            Self::ScopeNotChecked => {
                "The client passes on objects that are not in the scope of the instance."
            }
        }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.name() == name)
    }
}
