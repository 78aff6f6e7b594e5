//! How long a key rests after it was written, so that changes which come in a stream are collected.
//!
//! A rollout tells of hundreds of pods within a second. Whoever writes after each of them makes
//! every node of the cluster read the same slice again and again. So a key rests in proportion to
//! what its last writes took: not at all for a Service whose pods change now and then, and longer the
//! larger it is and the busier the API server. What takes traffic away rests least.

use std::time::Duration;

use crate::Moment;
use crate::queue::Priority;

/// No change waits longer for being collected.
const REST_MAX: Duration = Duration::from_millis(250);

/// The last time a key was written: how long it took, and when it was over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    landed: Moment,
    took: Duration,
}

impl Rest {
    pub fn after(planned: Moment, landed: Moment) -> Self {
        Self { landed, took: landed.since(planned) }
    }

    /// Nothing of this priority is due before.
    pub fn until(self, priority: Priority) -> Moment {
        let times = match priority {
            Priority::Removal => 1,
            Priority::Live | Priority::Background => 4,
        };
        self.landed + self.took.saturating_mul(times).min(REST_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::after_start(Duration::from_millis(millis))
    }

    #[test]
    fn who_was_never_written_does_not_rest() {
        assert_eq!(Rest::default().until(Priority::Live), Moment::START);
    }

    #[test]
    fn removals_rest_least_and_nobody_for_long() {
        let rest = Rest::after(at(1000), at(1010));
        assert_eq!(rest.until(Priority::Removal), at(1020));
        assert_eq!(rest.until(Priority::Live), at(1050));
        let slow = Rest::after(at(1000), at(9000));
        assert_eq!(slow.until(Priority::Removal), at(9250));
        assert_eq!(slow.until(Priority::Live), at(9250));
    }
}
