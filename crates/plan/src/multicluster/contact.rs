//! What is known about a source cluster, and what follows from how long it has not answered
//! (docs/spec.md, U rules). The caller keeps the history; this is a function of it and of the time.

use std::collections::BTreeMap;

use endpointd_model::{ClusterId, Timestamp};

/// What a plan may make of the lists of a source cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// No complete lists since the start: nothing of this cluster is written, changed, or deleted.
    Unknown,
    InSync,
    /// Its endpoints stay as they were seen last.
    Lost {
        last_contact: Option<Timestamp>,
    },
    /// Its endpoints become not ready where other clusters have enough of them.
    Demoted {
        last_contact: Option<Timestamp>,
    },
    /// Its endpoints are deleted: what is known of it is too old.
    Expired,
    /// Nobody configures it any more.
    Removed,
}

impl SourceState {
    /// Every state, without its time.
    pub const NAMES: [&str; 6] = ["Unknown", "InSync", "Lost", "Demoted", "Expired", "Removed"];

    /// One word for metrics, JSON, and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::InSync => "InSync",
            Self::Lost { .. } => "Lost",
            Self::Demoted { .. } => "Demoted",
            Self::Expired => "Expired",
            Self::Removed => "Removed",
        }
    }
}

/// The history of contacts with one source cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contact {
    pub knowledge: Knowledge,
    pub access: Access,
    /// When its lists were known to be current last; it survives a restart.
    pub last_contact: Option<Timestamp>,
    pub kubeconfig: KubeconfigFile,
    pub limits: ContactLimits,
}

/// The exports, Services, and slices of a cluster, as far as they have been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Not all lists were complete since the start.
    Nothing,
    /// They were complete, and may have changed since.
    Outdated,
    /// The watches deliver every change.
    Current,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Granted,
    /// Status 401 or 403.
    Denied,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeconfigFile {
    Present,
    Missing {
        since: Timestamp,
        /// How often it was looked for.
        n_looks: u32,
    },
}

/// In seconds since the last contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContactLimits {
    pub lost_after: i64,
    pub demote_after: i64,
    /// None: never.
    pub expire_after: Option<i64>,
}

/// A file that is replaced may be missing for a moment.
const LOOKS_MIN: u32 = 2;
const MISSING_SECS_MIN: i64 = 10;

impl Default for ContactLimits {
    fn default() -> Self {
        Self { lost_after: 30, demote_after: 5 * 60, expire_after: Some(24 * 60 * 60) }
    }
}

/// The states of all source clusters, which depend on each other: if none of several answers, the
/// cause is here, and nobody is demoted (U2).
pub fn source_states(
    now: Timestamp,
    contacts: &BTreeMap<ClusterId, Contact>,
) -> BTreeMap<ClusterId, SourceState> {
    let configured = || contacts.values().filter(|contact| !contact.is_removed(now));
    let nobody_answers =
        configured().count() >= 2 && configured().all(|contact| contact.is_lost(now));
    let states = contacts.iter().map(|(id, contact)| {
        let state = match contact.state(now) {
            SourceState::Demoted { last_contact } if nobody_answers => {
                SourceState::Lost { last_contact }
            }
            state => state,
        };
        (id.clone(), state)
    });
    states.collect()
}

impl Contact {
    fn state(&self, now: Timestamp) -> SourceState {
        let Self { knowledge, last_contact, limits, .. } = *self;
        let age = self.age(now);
        if self.is_removed(now) {
            return SourceState::Removed;
        }
        if !self.is_lost(now) && knowledge != Knowledge::Nothing {
            return SourceState::InSync;
        }
        // A cluster that was never seen has no age.
        if age.zip(limits.expire_after).is_some_and(|(age, limit)| age >= limit) {
            return SourceState::Expired;
        }
        match knowledge {
            Knowledge::Nothing => SourceState::Unknown,
            Knowledge::Outdated | Knowledge::Current => {
                match age.is_some_and(|age| age >= limits.demote_after) {
                    true => SourceState::Demoted { last_contact },
                    false => SourceState::Lost { last_contact },
                }
            }
        }
    }

    fn is_lost(&self, now: Timestamp) -> bool {
        let is_silent = self.age(now).is_none_or(|age| age >= self.limits.lost_after);
        self.access == Access::Denied || is_silent
    }

    fn is_removed(&self, now: Timestamp) -> bool {
        match self.kubeconfig {
            KubeconfigFile::Present => false,
            KubeconfigFile::Missing { since, n_looks } => {
                n_looks >= LOOKS_MIN && seconds(now, since) >= MISSING_SECS_MIN
            }
        }
    }

    fn age(&self, now: Timestamp) -> Option<i64> {
        self.last_contact.map(|at| seconds(now, at))
    }
}

/// Negative if a clock was set back; no limit is reached then.
fn seconds(now: Timestamp, since: Timestamp) -> i64 {
    now.as_second().saturating_sub(since.as_second())
}
