//! Writes per second, and how long changes took, from the changes that readers see.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use endpointd_engine::SyncResult;
use endpointd_status::Change;
use serde_json::{Value, json};

use crate::change_json::millis;

/// Over which time writes per second are averaged.
const WINDOW: Duration = Duration::from_secs(10);
/// Changes whose times count.
const LATENCIES_MAX: usize = 1000;
const WRITES_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub struct Rates {
    /// When, and how many writes.
    writes: VecDeque<(SystemTime, usize)>,
    /// From the first change that a sync answers to the last response.
    latencies: VecDeque<Duration>,
}

impl Rates {
    pub fn add(&mut self, change: &Change) {
        let sync = &change.sync;
        let n_writes = sync.n_creates + sync.n_updates + sync.n_deletes;
        self.writes.push_back((change.at, n_writes));
        if self.writes.len() > WRITES_MAX {
            self.writes.pop_front();
        }
        // The initial sync waits for its turn, not for a change.
        if sync.result == SyncResult::Written && !sync.is_background {
            self.latencies.push_back(sync.waited + sync.took);
            if self.latencies.len() > LATENCIES_MAX {
                self.latencies.pop_front();
            }
        }
    }

    pub fn current(&mut self, now: SystemTime) -> Value {
        let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age > WINDOW);
        while self.writes.front().is_some_and(|(at, _)| is_old(*at)) {
            self.writes.pop_front();
        }
        let n_writes: usize = self.writes.iter().map(|(_, n)| n).sum();
        let mut sorted: Vec<Duration> = self.latencies.iter().copied().collect();
        sorted.sort_unstable();
        json!({
            "writesPerSecond": n_writes as f64 / WINDOW.as_secs_f64(),
            "latency": {
                "measured": sorted.len(),
                "p50Ms": percentile(&sorted, 50).map(millis),
                "p99Ms": percentile(&sorted, 99).map(millis),
            },
        })
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let all: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(percentile(&all, 50), Some(Duration::from_millis(50)));
        assert_eq!(percentile(&all, 99), Some(Duration::from_millis(99)));
        assert_eq!(percentile(&all[..1], 99), Some(Duration::from_millis(1)));
        assert_eq!(percentile(&[], 50), None);
    }
}
