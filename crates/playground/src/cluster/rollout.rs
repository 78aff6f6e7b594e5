//! One step of a rollout. Upstream: `rolloutRolling` and `rolloutRecreate` in
//! pkg/controller/deployment.

/// The part of a Deployment's spec that controls a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutSpec {
    pub n_replicas: usize,
    pub strategy: Strategy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Rolling {
        max_surge: usize,
        max_unavailable: usize,
    },
    /// Deletes all old pods before creating new ones.
    Recreate,
}

/// The spec and status of one ReplicaSet, in pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaSetCounts {
    pub n_replicas: usize,
    pub n_pods: usize,
    pub n_available: usize,
}

/// The replicas of each ReplicaSet after the step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    pub new: usize,
    /// In the order of the argument.
    pub old: Vec<usize>,
}

/// `old` is oldest first.
pub fn step(wanted: RolloutSpec, new: ReplicaSetCounts, old: &[ReplicaSetCounts]) -> Targets {
    match wanted.strategy {
        Strategy::Recreate => recreate(wanted.n_replicas, new, old),
        Strategy::Rolling { max_surge, max_unavailable } => {
            let new_target = grow(wanted.n_replicas, max_surge, new, old);
            let n_available_min = wanted.n_replicas.saturating_sub(max_unavailable);
            Targets { new: new_target, old: shrink(n_available_min, new, old) }
        }
    }
}

fn recreate(n_replicas: usize, new: ReplicaSetCounts, old: &[ReplicaSetCounts]) -> Targets {
    let is_empty = old.iter().all(|one| one.n_replicas == 0 && one.n_pods == 0);
    let new = if is_empty { n_replicas } else { new.n_replicas.min(n_replicas) };
    Targets { new, old: vec![0; old.len()] }
}

/// Upstream: `NewRSNewReplicas`.
fn grow(
    n_replicas: usize,
    max_surge: usize,
    new: ReplicaSetCounts,
    old: &[ReplicaSetCounts],
) -> usize {
    if new.n_replicas >= n_replicas {
        return n_replicas;
    }
    let n_requested = new.n_replicas + old.iter().map(|one| one.n_replicas).sum::<usize>();
    let n_more = (n_replicas + max_surge).saturating_sub(n_requested);
    new.n_replicas + n_more.min(n_replicas - new.n_replicas)
}

/// First unavailable pods, then as many as `n_available_min` allows, oldest ReplicaSet first.
/// Upstream: `reconcileOldReplicaSets`.
fn shrink(n_available_min: usize, new: ReplicaSetCounts, old: &[ReplicaSetCounts]) -> Vec<usize> {
    let mut targets: Vec<usize> = old.iter().map(|one| one.n_replicas).collect();
    let n_requested = new.n_replicas + targets.iter().sum::<usize>();
    let n_new_missing = new.n_replicas.saturating_sub(new.n_available);
    let mut n_spare = n_requested.saturating_sub(n_available_min + n_new_missing);
    for (target, one) in targets.iter_mut().zip(old) {
        let n_idle = one.n_replicas.saturating_sub(one.n_available).min(n_spare);
        *target -= n_idle;
        n_spare -= n_idle;
    }
    let n_available = new.n_available + old.iter().map(|one| one.n_available).sum::<usize>();
    let mut n_spare = n_spare.min(n_available.saturating_sub(n_available_min));
    for target in &mut targets {
        let n_less = (*target).min(n_spare);
        *target -= n_less;
        n_spare -= n_less;
    }
    targets
}

/// Resolves percentages. Upstream: `ResolveFenceposts`.
pub fn strategy(n_replicas: usize, surge: Amount, unavailable: Amount) -> Strategy {
    let max_surge = match surge {
        Amount::Pods(n) => n,
        Amount::Percent(percent) => (n_replicas * percent).div_ceil(100),
    };
    let max_unavailable = match unavailable {
        Amount::Pods(n) => n,
        Amount::Percent(percent) => n_replicas * percent / 100,
    };
    // With both at zero the rollout could not proceed.
    let max_unavailable = if max_surge + max_unavailable == 0 { 1 } else { max_unavailable };
    Strategy::Rolling { max_surge, max_unavailable }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Pods(usize),
    Percent(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(n_replicas: usize, n_available: usize) -> ReplicaSetCounts {
        ReplicaSetCounts { n_replicas, n_pods: n_replicas, n_available }
    }

    fn rolling(n_replicas: usize, max_surge: usize, max_unavailable: usize) -> RolloutSpec {
        let strategy = Strategy::Rolling { max_surge, max_unavailable };
        RolloutSpec { n_replicas, strategy }
    }

    #[test]
    fn a_new_deployment_gets_all_its_pods_at_once() {
        let targets = step(rolling(10, 3, 2), ReplicaSetCounts::default(), &[]);
        assert_eq!(targets, Targets { new: 10, old: vec![] });
    }

    #[test]
    fn scaling_down_takes_one_step() {
        let targets = step(rolling(3, 1, 0), generation(10, 10), &[]);
        assert_eq!(targets.new, 3);
    }

    #[test]
    fn a_rollout_surges_first_and_shrinks_by_max_unavailable() {
        let targets = step(rolling(10, 3, 2), ReplicaSetCounts::default(), &[generation(10, 10)]);
        assert_eq!(targets, Targets { new: 3, old: vec![8] });
    }

    #[test]
    fn unavailable_pods_are_deleted_first() {
        let old = [generation(5, 5), generation(5, 0)];
        let targets = step(rolling(10, 0, 6), generation(0, 0), &old);
        assert_eq!(targets.old, [4, 0], "the five idle ones, then one of those that serve");
    }

    #[test]
    fn no_old_pod_is_deleted_while_new_pods_are_unavailable() {
        let old = [generation(8, 8)];
        let targets = step(rolling(10, 3, 2), generation(5, 0), &old);
        assert_eq!(targets, Targets { new: 5, old: vec![8] });
    }

    #[test]
    fn recreate_waits_until_the_last_old_pod_is_gone() {
        let wanted = RolloutSpec { n_replicas: 3, strategy: Strategy::Recreate };
        let going = ReplicaSetCounts { n_replicas: 0, n_pods: 1, n_available: 0 };
        assert_eq!(step(wanted, ReplicaSetCounts::default(), &[going]).new, 0);
        assert_eq!(
            step(wanted, ReplicaSetCounts::default(), &[ReplicaSetCounts::default()]).new,
            3
        );
    }

    #[test]
    fn percentages_round_up_for_surge_and_down_for_unavailable() {
        let percent = Amount::Percent(25);
        let rolled = strategy(10, percent, percent);
        assert_eq!(rolled, Strategy::Rolling { max_surge: 3, max_unavailable: 2 });
        let stuck = strategy(10, Amount::Pods(0), Amount::Percent(1));
        assert_eq!(stuck, Strategy::Rolling { max_surge: 0, max_unavailable: 1 });
    }

    /// Every rollout completes and respects its limits.
    #[test]
    fn rollouts_complete_within_their_limits() {
        for n_replicas in 0..12 {
            for (max_surge, max_unavailable) in [(0, 1), (1, 0), (3, 2), (12, 12), (1, 1)] {
                check_rollout(rolling(n_replicas, max_surge, max_unavailable));
            }
        }
    }

    fn check_rollout(wanted: RolloutSpec) {
        let Strategy::Rolling { max_surge, max_unavailable } = wanted.strategy else { return };
        let mut new = ReplicaSetCounts::default();
        let mut old = generation(wanted.n_replicas, wanted.n_replicas);
        for _ in 0..100 {
            let Targets { new: new_target, old: old_target } = step(wanted, new, &[old]);
            old = generation(old_target[0], old_target[0].min(old.n_available));
            let n_serving = new.n_available + old.n_available;
            assert!(n_serving + max_unavailable >= wanted.n_replicas, "{wanted:?} {new:?} {old:?}");
            assert!(new_target + old.n_replicas <= wanted.n_replicas + max_surge, "{wanted:?}");
            // One new pod becomes available in each round.
            new = generation(new_target, new_target.min(new.n_available + 1));
        }
        assert_eq!((new.n_available, old.n_replicas), (wanted.n_replicas, 0), "{wanted:?}");
    }
}
