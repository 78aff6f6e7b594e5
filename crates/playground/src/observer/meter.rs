//! Counts writes, and measures from a change of a pod to the first slice that shows it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use endpointd_apiserver::store::Key;

use crate::picture::Latency;

/// What slices tell of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodState {
    /// Without one no slice tells of it.
    pub has_address: bool,
    pub is_ready: bool,
    pub is_terminating: bool,
}

/// Latencies kept; older ones are forgotten.
const LATENCIES_MAX: usize = 10_000;
/// A change that no slice has shown by then is of a pod that no Service selects.
const PENDING_MAX: Duration = Duration::from_secs(60);
const RATE_OVER: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Meter {
    pub n_ready: usize,
    pub n_terminating: usize,
    pub n_slice_writes: u64,
    pub n_endpoints_writes: u64,
    /// Ready pods of a complete world.
    n_pods_complete: usize,
    /// Changes no slice has shown yet; `None`: the pod is gone.
    pending: BTreeMap<Key, (Option<PodState>, Duration)>,
    n_slices_by_pod: BTreeMap<Key, u32>,
    swept_at: Duration,
    latencies: VecDeque<Duration>,
    n_measured: u64,
    longest: Duration,
    /// Writes by the second they came in.
    writes: VecDeque<(u64, u64)>,
}

impl Meter {
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
            // No slice tells of it any more: its node went before it.
            self.pending.remove(key);
        } else {
            self.pending.insert(key.clone(), (visible(new), now));
        }
    }

    /// A slice tells of a pod.
    pub fn shown(&mut self, key: &Key, state: PodState, now: Duration) {
        *self.n_slices_by_pod.entry(key.clone()).or_default() += 1;
        if self.pending.get(key).is_some_and(|(wanted, _)| *wanted == Some(state)) {
            self.arrived(key, now);
        }
    }

    /// A slice that told of a pod has been replaced; call it after [`Meter::shown`] for the new one.
    pub fn replaced(&mut self, key: &Key, now: Duration) {
        let Some(n) = self.n_slices_by_pod.get_mut(key) else { return };
        *n -= 1;
        if *n > 0 {
            return;
        }
        self.n_slices_by_pod.remove(key);
        if self.pending.get(key).is_some_and(|(wanted, _)| wanted.is_none()) {
            self.arrived(key, now);
        }
    }

    fn arrived(&mut self, key: &Key, now: Duration) {
        let Some((_, since)) = self.pending.remove(key) else { return };
        let took = now.saturating_sub(since);
        if took > PENDING_MAX {
            return; // A Service came to select it later.
        }
        self.n_measured += 1;
        self.longest = self.longest.max(took);
        if self.latencies.len() == LATENCIES_MAX {
            self.latencies.pop_front();
        }
        self.latencies.push_back(took);
    }

    pub fn count_write(&mut self, shelf: &str, now: Duration) {
        match shelf {
            "endpointslices" => self.n_slice_writes += 1,
            "endpoints" => self.n_endpoints_writes += 1,
            _ => return,
        }
        match self.writes.back_mut() {
            Some((second, n)) if *second == now.as_secs() => *n += 1,
            _ => self.writes.push_back((now.as_secs(), 1)),
        }
        self.forget(now);
    }

    pub fn writes_per_second(&mut self, now: Duration) -> f64 {
        self.forget(now);
        let over = RATE_OVER.min(now.max(Duration::from_secs(1)));
        let n_writes: u64 = self.writes.iter().map(|(_, n)| n).sum();
        n_writes as f64 / over.as_secs_f64()
    }

    fn forget(&mut self, now: Duration) {
        let oldest = now.saturating_sub(RATE_OVER).as_secs();
        while self.writes.front().is_some_and(|(second, _)| *second < oldest) {
            self.writes.pop_front();
        }
        if self.swept_at + PENDING_MAX / 10 <= now {
            self.swept_at = now;
            self.pending.retain(|_, (_, since)| now.saturating_sub(*since) <= PENDING_MAX);
        }
    }

    /// What was seen is to be seen anew; what was measured stays.
    pub fn forget_all(&mut self) {
        (self.n_ready, self.n_terminating) = (0, 0);
        self.pending.clear();
        self.n_slices_by_pod.clear();
    }

    /// Everything the world began with is ready, and slices say so.
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
    fn latency_counts_from_the_change_to_the_slice_that_shows_it() {
        let (mut meter, key) = (Meter::default(), Key::new("shop", "web-1"));
        meter.pod_changed(&key, None, Some(UNREADY), millis(10));
        meter.shown(&key, UNREADY, millis(13));
        meter.pod_changed(&key, Some(UNREADY), Some(READY), millis(20));
        for (state, at) in [(UNREADY, 21), (READY, 25)] {
            meter.shown(&key, state, millis(at));
            meter.replaced(&key, millis(at));
        }
        meter.pod_changed(&key, Some(READY), None, millis(30));
        meter.replaced(&key, millis(31));
        let latency = meter.latency();
        assert_eq!((latency.n_measured, latency.median, latency.max), (3, millis(3), millis(5)));
    }

    #[test]
    fn what_no_slice_can_show_is_not_waited_for() {
        let (mut meter, key) = (Meter::default(), Key::new("shop", "web-1"));
        meter.pod_changed(&key, None, Some(PodState::default()), millis(10));
        assert!(meter.is_complete());
        meter.pod_changed(&key, Some(PodState::default()), Some(READY), millis(20));
        assert!(!meter.is_complete());
        meter.shown(&key, READY, millis(20));
        assert!(meter.is_complete());
    }

    #[test]
    fn a_pod_that_no_slice_tells_of_may_go_unseen() {
        let (mut meter, key) = (Meter::default(), Key::new("shop", "web-1"));
        meter.pod_changed(&key, None, Some(READY), millis(10));
        meter.shown(&key, READY, millis(11));
        meter.replaced(&key, millis(12));
        meter.pod_changed(&key, Some(READY), None, millis(20));
        assert!(meter.is_complete());
    }

    #[test]
    fn the_rate_is_of_the_last_seconds() {
        let mut meter = Meter::default();
        (0..10).for_each(|n| meter.count_write("endpointslices", millis(n * 100)));
        meter.count_write("pods", millis(500));
        assert_eq!(meter.writes_per_second(Duration::from_secs(5)), 2.0);
        assert_eq!(meter.writes_per_second(Duration::from_secs(60)), 0.0);
    }
}
