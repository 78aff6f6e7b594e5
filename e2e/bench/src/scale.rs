//! Sizes, rates, and durations of the scenarios.

use std::time::Duration;

use crate::load::Layout;
use crate::subject::{CONTROLLERS, Subject};

#[derive(Clone, Debug)]
pub struct Scale {
    pub subjects: Vec<Subject>,
    pub n_rounds: usize,
    /// Services and pods of a cold start.
    pub cold: Vec<Layout>,
    /// The converged cluster of restart, churn, and idle.
    pub settled: Layout,
    /// Time without work before settled memory is read.
    pub settle: Duration,
    /// Readiness toggles per second.
    pub rates: Vec<u32>,
    pub churn: Duration,
    pub rollout_pods: usize,
    /// Numbers of Services in one namespace.
    pub service_counts: Vec<usize>,
    pub service_counts_duration: Duration,
    pub idle: Duration,
    pub engine_pods: usize,
    /// Consumers of one source in `imports`, and changes of the source for each number.
    pub consumer_counts: Vec<usize>,
    pub source_changes: usize,
}

/// Pods replaced at once in a rollout.
pub const BATCH: usize = 50;
/// Toggles per second in `services-per-namespace`: a rate that every subject sustains.
pub const SERVICE_COUNTS_RATE: u32 = 20;
/// Pods per Service in `services-per-namespace`.
pub const PODS_PER_SERVICE: usize = 2;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

impl Scale {
    /// The scale of the documented numbers.
    pub fn full() -> Self {
        Self {
            subjects: CONTROLLERS.to_vec(),
            n_rounds: 3,
            cold: vec![Layout::spread(1000, 20_000), Layout::spread(5000, 50_000)],
            settled: Layout::spread(1000, 20_000),
            settle: secs(10),
            rates: vec![20, 50, 100, 200],
            churn: secs(60),
            rollout_pods: 5000,
            service_counts: vec![100, 1000, 5000],
            service_counts_duration: secs(20),
            idle: secs(60),
            engine_pods: 150_000,
            consumer_counts: vec![1, 100],
            source_changes: 1000,
        }
    }

    /// The order of subjects in a round: each round starts with another one.
    pub fn subjects(&self, round: usize) -> Vec<Subject> {
        let mut all = self.subjects.clone();
        let n_all = all.len();
        all.rotate_left(round % n_all);
        all
    }

    /// Adds the largest cluster.
    pub fn large() -> Self {
        let mut scale = Self::full();
        scale.cold.push(Layout::spread(10_000, 150_000));
        scale
    }

    /// Takes minutes: a smoke test with approximate numbers.
    pub fn quick() -> Self {
        Self {
            subjects: CONTROLLERS.to_vec(),
            n_rounds: 1,
            cold: vec![Layout::spread(200, 4000)],
            settled: Layout::spread(200, 4000),
            settle: secs(5),
            rates: vec![20, 50],
            churn: secs(10),
            rollout_pods: 500,
            service_counts: vec![100, 500],
            service_counts_duration: secs(10),
            idle: secs(10),
            engine_pods: 20_000,
            consumer_counts: vec![1, 100],
            source_changes: 200,
        }
    }

    /// Takes seconds: for the test of the bench itself.
    pub fn tiny() -> Self {
        Self {
            subjects: CONTROLLERS.to_vec(),
            n_rounds: 1,
            cold: vec![Layout::spread(5, 50)],
            settled: Layout::spread(5, 50),
            settle: secs(1),
            rates: vec![10],
            churn: secs(2),
            rollout_pods: 100,
            service_counts: vec![5, 10],
            service_counts_duration: secs(2),
            idle: secs(2),
            engine_pods: 1000,
            consumer_counts: vec![1, 3],
            source_changes: 10,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Subject::{Endpointd, Kcm, KcmUnthrottled};

    #[test]
    fn every_subject_is_in_every_round_and_starts_one() {
        let scale = Scale::full();
        let rounds: Vec<_> = (0..3).map(|round| scale.subjects(round)).collect();
        assert_eq!(
            rounds,
            [
                [Kcm, KcmUnthrottled, Endpointd],
                [KcmUnthrottled, Endpointd, Kcm],
                [Endpointd, Kcm, KcmUnthrottled]
            ]
        );
    }
}
