//! How large, how fast, how long.

use std::time::Duration;

use crate::contender::{CONTENDERS, Contender};
use crate::load::Layout;

#[derive(Clone, Debug)]
pub struct Scale {
    pub contenders: Vec<Contender>,
    pub n_rounds: usize,
    /// Services and pods of a cold start.
    pub cold: Vec<Layout>,
    /// The settled cluster of restart, churn, idle.
    pub settled: Layout,
    /// After a cold start, before memory counts as settled.
    pub settle: Duration,
    /// Flips a second.
    pub rates: Vec<u32>,
    pub churn: Duration,
    pub rollout_pods: usize,
    /// Numbers of Services in one namespace.
    pub crowds: Vec<usize>,
    pub crowd: Duration,
    pub idle: Duration,
    pub engine_pods: usize,
}

/// Pods replaced at once in a rollout.
pub const BATCH: usize = 50;
/// Flips a second in a crowded namespace: few enough for everybody.
pub const CROWD_RATE: u32 = 20;
/// Pods of each Service in a crowded namespace.
pub const CROWD_PODS: usize = 2;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

impl Scale {
    /// What the documented numbers are measured with.
    pub fn full() -> Self {
        Self {
            contenders: CONTENDERS.to_vec(),
            n_rounds: 3,
            cold: vec![Layout::spread(1000, 20_000), Layout::spread(5000, 50_000)],
            settled: Layout::spread(1000, 20_000),
            settle: secs(10),
            rates: vec![20, 50, 100, 200],
            churn: secs(60),
            rollout_pods: 5000,
            crowds: vec![100, 1000, 5000],
            crowd: secs(20),
            idle: secs(60),
            engine_pods: 150_000,
        }
    }

    /// Who is measured in a round: each begins with another one.
    pub fn contenders(&self, round: usize) -> Vec<Contender> {
        let mut all = self.contenders.clone();
        let n_all = all.len();
        all.rotate_left(round % n_all);
        all
    }

    /// Also the largest cluster.
    pub fn large() -> Self {
        let mut scale = Self::full();
        scale.cold.push(Layout::spread(10_000, 150_000));
        scale
    }

    /// Minutes, not hours: to see that it works, and about where things are.
    pub fn quick() -> Self {
        Self {
            contenders: CONTENDERS.to_vec(),
            n_rounds: 1,
            cold: vec![Layout::spread(200, 4000)],
            settled: Layout::spread(200, 4000),
            settle: secs(5),
            rates: vec![20, 50],
            churn: secs(10),
            rollout_pods: 500,
            crowds: vec![100, 500],
            crowd: secs(10),
            idle: secs(10),
            engine_pods: 20_000,
        }
    }

    /// Seconds: for a test of the bench itself.
    pub fn tiny() -> Self {
        Self {
            contenders: CONTENDERS.to_vec(),
            n_rounds: 1,
            cold: vec![Layout::spread(5, 50)],
            settled: Layout::spread(5, 50),
            settle: secs(1),
            rates: vec![10],
            churn: secs(2),
            rollout_pods: 100,
            crowds: vec![5, 10],
            crowd: secs(2),
            idle: secs(2),
            engine_pods: 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Contender::{Ours, Peer, PeerRaised};

    #[test]
    fn each_takes_part_in_every_round_and_begins_one() {
        let scale = Scale::full();
        let rounds: Vec<_> = (0..3).map(|round| scale.contenders(round)).collect();
        assert_eq!(
            rounds,
            [[Peer, PeerRaised, Ours], [PeerRaised, Ours, Peer], [Ours, Peer, PeerRaised]]
        );
    }
}
