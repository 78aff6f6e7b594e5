//! resourceVersions that can be compared.

use std::fmt;

/// A resourceVersion as a number. All objects of a cluster draw from one counter, and since
/// Kubernetes 1.35 the API promises that they compare by size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(u64);

impl ResourceVersion {
    /// Older than every version an API server gives out.
    pub const OLDEST: Self = Self(0);

    /// SharedStr that is no number, as only a server of another make would send, counts as the oldest:
    /// then nothing is taken for a replay, and the guard on each write still holds.
    pub fn of(text: &str) -> Self {
        Self(text.parse().unwrap_or_default())
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
