//! Counts writes, and measures the time from the change of a pod to the first slice that shows it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use endpointd_apiserver::store::Key;

use crate::view_state::Latency;

/// The state of a pod as slices publish it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodState {
    /// Pods without an address are not published.
    pub has_address: bool,
    pub is_ready: bool,
    pub is_terminating: bool,
}

/// Latencies kept for the percentiles.
const LATENCIES_MAX: usize = 10_000;
/// After this time a change is dropped: no Service selects the pod.
const PENDING_MAX: Duration = Duration::from_secs(60);
const RATE_OVER: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct LatencyTracker {
    pub n_ready: usize,
    pub n_terminating: usize,
    pub n_slice_writes: u64,
    pub n_endpoints_writes: u64,
    /// The number of ready pods at which the cluster is complete.
    n_pods_complete: usize,
    /// Changes that no slice shows yet; `None`: the pod is deleted.
    pending: BTreeMap<Key, (Option<PodState>, Duration)>,
    n_slices_by_pod: BTreeMap<Key, u32>,
    expired_at: Duration,
    latencies: VecDeque<Duration>,
    n_measured: u64,
    longest: Duration,
    /// Numbers of writes by second.
    writes: VecDeque<(u64, u64)>,
}

impl LatencyTracker {
    pub fn expecting(n_pods_complete: usize) -> Self {
        Self { n_pods_complete, ..Self::default() }
    }

    pub fn pod_changed(
        &mut self,
        key: &Key,
        old: Option<PodState>,
        new: Option<PodState>,
        now: Duration,
    ) {
        let count = |state: Option<PodState>| state.unwrap_or_default();
        self.n_ready -= usize::from(count(old).is_ready);
        self.n_ready += usize::from(count(new).is_ready);
        self.n_terminating -= usize::from(count(old).is_terminating);
        self.n_terminating += usize::from(count(new).is_terminating);
        let visible = |state: Option<PodState>| state.filter(|state| state.has_address);
        if visible(old) == visible(new) {
            return;
        }
        if visible(new).is_none() && !self.n_slices_by_pod.contains_key(key) {
            // No slice contains the pod: its node was deleted before it.
            self.pending.remove(key);
        } else {
            self.pending.insert(key.clone(), (visible(new), now));
        }
    }

    /// A slice contains a pod with this state.
    pub fn pod_published(&mut self, key: &Key, state: PodState, now: Duration) {
        *self.n_slices_by_pod.entry(key.clone()).or_default() += 1;
        if self.pending.get(key).is_some_and(|(wanted, _)| *wanted == Some(state)) {
            self.record_latency(key, now);
        }
    }

    /// A slice that contained a pod was replaced. Call it after `pod_published` for the new slice.
    pub fn slice_replaced(&mut self, key: &Key, now: Duration) {
        let Some(n) = self.n_slices_by_pod.get_mut(key) else { return };
        *n -= 1;
        if *n > 0 {
            return;
        }
        self.n_slices_by_pod.remove(key);
        if self.pending.get(key).is_some_and(|(wanted, _)| wanted.is_none()) {
            self.record_latency(key, now);
        }
    }

    fn record_latency(&mut self, key: &Key, now: Duration) {
        let Some((_, since)) = self.pending.remove(key) else { return };
        let took = now.saturating_sub(since);
        if took > PENDING_MAX {
            return; // A Service selected the pod later.
        }
        self.n_measured += 1;
        self.longest = self.longest.max(took);
        if self.latencies.len() == LATENCIES_MAX {
            self.latencies.pop_front();
        }
        self.latencies.push_back(took);
    }

    pub fn count_write(&mut self, resource: &str, now: Duration) {
        match resource {
            "endpointslices" => self.n_slice_writes += 1,
            "endpoints" => self.n_endpoints_writes += 1,
            _ => return,
        }
        match self.writes.back_mut() {
            Some((second, n)) if *second == now.as_secs() => *n += 1,
            _ => self.writes.push_back((now.as_secs(), 1)),
        }
        self.expire(now);
    }

    pub fn writes_per_second(&mut self, now: Duration) -> f64 {
        self.expire(now);
        let over = RATE_OVER.min(now.max(Duration::from_secs(1)));
        let n_writes: u64 = self.writes.iter().map(|(_, n)| n).sum();
        n_writes as f64 / over.as_secs_f64()
    }

    fn expire(&mut self, now: Duration) {
        let oldest = now.saturating_sub(RATE_OVER).as_secs();
        while self.writes.front().is_some_and(|(second, _)| *second < oldest) {
            self.writes.pop_front();
        }
        if self.expired_at + PENDING_MAX / 10 <= now {
            self.expired_at = now;
            self.pending.retain(|_, (_, since)| now.saturating_sub(*since) <= PENDING_MAX);
        }
    }

    /// Drops the observed objects, which will be listed again; measurements stay.
    pub fn reset(&mut self) {
        (self.n_ready, self.n_terminating) = (0, 0);
        self.pending.clear();
        self.n_slices_by_pod.clear();
    }

    /// All initial pods are ready and published.
    pub fn is_complete(&self) -> bool {
        self.n_ready >= self.n_pods_complete && self.pending.is_empty()
    }

    pub fn latency(&self) -> Latency {
        let mut sorted: Vec<Duration> = self.latencies.iter().copied().collect();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
            sorted.get(index).copied().unwrap_or_default()
        };
        let (median, p99) = (at(50), at(99));
        Latency { n_measured: self.n_measured, median, p99, max: self.longest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: PodState = PodState { has_address: true, is_ready: true, is_terminating: false };
    const UNREADY: PodState = PodState { is_ready: false, ..READY };

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn latency_is_from_the_change_to_the_slice_that_shows_it() {
        let (mut tracker, key) = (LatencyTracker::default(), Key::new("shop", "web-1"));
        tracker.pod_changed(&key, None, Some(UNREADY), millis(10));
        tracker.pod_published(&key, UNREADY, millis(13));
        tracker.pod_changed(&key, Some(UNREADY), Some(READY), millis(20));
        for (state, at) in [(UNREADY, 21), (READY, 25)] {
            tracker.pod_published(&key, state, millis(at));
            tracker.slice_replaced(&key, millis(at));
        }
        tracker.pod_changed(&key, Some(READY), None, millis(30));
        tracker.slice_replaced(&key, millis(31));
        let latency = tracker.latency();
        assert_eq!((latency.n_measured, latency.median, latency.max), (3, millis(3), millis(5)));
    }

    #[test]
    fn a_pod_without_an_address_is_not_awaited() {
        let (mut tracker, key) = (LatencyTracker::default(), Key::new("shop", "web-1"));
        tracker.pod_changed(&key, None, Some(PodState::default()), millis(10));
        assert!(tracker.is_complete());
        tracker.pod_changed(&key, Some(PodState::default()), Some(READY), millis(20));
        assert!(!tracker.is_complete());
        tracker.pod_published(&key, READY, millis(20));
        assert!(tracker.is_complete());
    }

    #[test]
    fn a_deleted_pod_that_no_slice_contains_is_not_awaited() {
        let (mut tracker, key) = (LatencyTracker::default(), Key::new("shop", "web-1"));
        tracker.pod_changed(&key, None, Some(READY), millis(10));
        tracker.pod_published(&key, READY, millis(11));
        tracker.slice_replaced(&key, millis(12));
        tracker.pod_changed(&key, Some(READY), None, millis(20));
        assert!(tracker.is_complete());
    }

    #[test]
    fn the_write_rate_covers_the_last_seconds() {
        let mut tracker = LatencyTracker::default();
        (0..10).for_each(|n| tracker.count_write("endpointslices", millis(n * 100)));
        tracker.count_write("pods", millis(500));
        assert_eq!(tracker.writes_per_second(Duration::from_secs(5)), 2.0);
        assert_eq!(tracker.writes_per_second(Duration::from_secs(60)), 0.0);
    }
}
