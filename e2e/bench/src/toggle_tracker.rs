//! Latency of readiness toggles: from the acknowledged status update to the slice event that shows
//! it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::load::{PodNumber, Readiness};

/// Toggles that are not published yet, and completed ones.
#[derive(Debug, Default)]
pub struct ToggleTracker {
    waiting: HashMap<PodNumber, Toggle>,
    completed: Vec<CompletedToggle>,
}

#[derive(Clone, Copy, Debug)]
struct Toggle {
    wanted: Readiness,
    /// When the server acknowledged the status update.
    acknowledged: Option<Instant>,
}

/// A toggle that was published or superseded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedToggle {
    pub readiness: Readiness,
    pub latency: Latency,
}

/// From the acknowledged status update to the slice event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    Took(Duration),
    /// The slice event arrived before the response to the status update.
    BeforeResponse,
    /// The pod toggled again before a slice event showed this toggle.
    MoreThan(Duration),
    /// As `MoreThan`, but without a response to the status update, so the start is unknown.
    Unknown,
}

impl Latency {
    /// A lower bound of the latency; `None` if the start is unknown.
    pub fn at_least(self) -> Option<Duration> {
        match self {
            Self::Took(time) | Self::MoreThan(time) => Some(time),
            Self::BeforeResponse => Some(Duration::ZERO),
            Self::Unknown => None,
        }
    }

    pub fn is_superseded(self) -> bool {
        match self {
            Self::MoreThan(_) | Self::Unknown => true,
            Self::Took(_) | Self::BeforeResponse => false,
        }
    }
}

impl ToggleTracker {
    /// To be called before the status update is sent, because the slice event can precede the
    /// response. A toggle that reverts an unpublished one is not tracked: the slice may not change
    /// at all.
    pub fn started(&mut self, pod: PodNumber, wanted: Readiness, now: Instant) {
        let Some(old) = self.waiting.remove(&pod) else {
            self.waiting.insert(pod, Toggle { wanted, acknowledged: None });
            return;
        };
        let latency = old
            .acknowledged
            .map_or(Latency::Unknown, |acknowledged| Latency::MoreThan(now - acknowledged));
        self.completed.push(CompletedToggle { readiness: old.wanted, latency });
    }

    /// The response may belong to the previous toggle of the pod, which had the opposite readiness.
    pub fn acknowledged(&mut self, pod: PodNumber, readiness: Readiness, now: Instant) {
        if let Some(toggle) = self.waiting.get_mut(&pod)
            && toggle.wanted == readiness
        {
            toggle.acknowledged = Some(now);
        }
    }

    /// A slice event shows a pod with this readiness; before the toggle it was the opposite.
    pub fn published(&mut self, pod: PodNumber, readiness: Readiness, now: Instant) {
        if let Some(&Toggle { wanted, acknowledged }) = self.waiting.get(&pod)
            && wanted == readiness
        {
            let latency =
                acknowledged.map_or(Latency::BeforeResponse, |then| Latency::Took(now - then));
            self.completed.push(CompletedToggle { readiness, latency });
            self.waiting.remove(&pod);
        }
    }

    pub fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The toggles completed since the last call.
    pub fn take_completed(&mut self) -> Vec<CompletedToggle> {
        std::mem::take(&mut self.completed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Readiness::{Ready, Unready};

    const MS: Duration = Duration::from_millis(1);

    fn completed(tracker: &mut ToggleTracker) -> Vec<(Readiness, Latency)> {
        tracker.take_completed().into_iter().map(|one| (one.readiness, one.latency)).collect()
    }

    #[test]
    fn latency_is_from_the_response_to_the_first_matching_event() {
        let (mut tracker, start) = (ToggleTracker::default(), Instant::now());
        tracker.started(1, Unready, start);
        tracker.acknowledged(1, Unready, start + 2 * MS);
        tracker.published(1, Ready, start + 3 * MS); // Another pod of the slice changed.
        assert_eq!(tracker.n_waiting(), 1);
        tracker.published(1, Unready, start + 5 * MS);
        tracker.published(1, Unready, start + 9 * MS);
        assert_eq!(completed(&mut tracker), [(Unready, Latency::Took(3 * MS))]);
        assert_eq!(tracker.n_waiting(), 0);
    }

    #[test]
    fn event_before_the_response_is_recorded_as_such() {
        let (mut tracker, start) = (ToggleTracker::default(), Instant::now());
        tracker.started(1, Ready, start);
        tracker.published(1, Ready, start + MS);
        tracker.acknowledged(1, Ready, start + 2 * MS);
        assert_eq!(completed(&mut tracker), [(Ready, Latency::BeforeResponse)]);
        assert_eq!(Latency::BeforeResponse.at_least(), Some(Duration::ZERO));
        assert_eq!(tracker.n_waiting(), 0);
    }

    #[test]
    fn superseded_toggle_has_a_lower_bound() {
        let (mut tracker, start) = (ToggleTracker::default(), Instant::now());
        tracker.started(1, Unready, start);
        tracker.acknowledged(1, Unready, start);
        tracker.started(1, Ready, start + 7 * MS);
        tracker.acknowledged(1, Ready, start + 8 * MS);
        assert_eq!(completed(&mut tracker), [(Unready, Latency::MoreThan(7 * MS))]);
        assert_eq!(tracker.n_waiting(), 0);
    }

    #[test]
    fn superseded_toggle_without_response_has_no_latency() {
        let (mut tracker, start) = (ToggleTracker::default(), Instant::now());
        tracker.started(1, Unready, start);
        tracker.started(1, Ready, start + 7 * MS);
        tracker.acknowledged(1, Unready, start + 8 * MS);
        assert_eq!(completed(&mut tracker), [(Unready, Latency::Unknown)]);
        assert!(Latency::Unknown.is_superseded());
        assert_eq!(Latency::Unknown.at_least(), None);
        assert_eq!(tracker.n_waiting(), 0);
    }

    #[test]
    fn late_response_is_not_attributed_to_the_next_toggle() {
        let (mut tracker, start) = (ToggleTracker::default(), Instant::now());
        tracker.started(1, Unready, start);
        tracker.published(1, Unready, start + MS);
        tracker.started(1, Ready, start + 2 * MS);
        tracker.acknowledged(1, Unready, start + 3 * MS);
        tracker.published(1, Ready, start + 4 * MS);
        tracker.acknowledged(1, Ready, start + 5 * MS);
        let want = [(Unready, Latency::BeforeResponse), (Ready, Latency::BeforeResponse)];
        assert_eq!(completed(&mut tracker), want);
    }
}
