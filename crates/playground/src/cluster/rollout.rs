//! How far a Deployment's next step goes. Upstream: `rolloutRolling` and `rolloutRecreate` in
//! pkg/controller/deployment.

/// What a Deployment asks for, in pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub n_replicas: usize,
    pub strategy: Strategy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Rolling {
        max_surge: usize,
        max_unavailable: usize,
    },
    /// All old pods go before the first new one comes.
    Recreate,
}

/// One ReplicaSet: what it is told to have, what it has, and what of it serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    pub n_replicas: usize,
    pub n_pods: usize,
    pub n_available: usize,
}

/// What each ReplicaSet is to have after the step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    pub new: usize,
    /// In the order they were given.
    pub old: Vec<usize>,
}

/// `old` is oldest first.
pub fn step(wanted: Wanted, new: Generation, old: &[Generation]) -> Targets {
    match wanted.strategy {
        Strategy::Recreate => recreate(wanted.n_replicas, new, old),
        Strategy::Rolling { max_surge, max_unavailable } => {
            let new_target = grow(wanted.n_replicas, max_surge, new, old);
            let least = wanted.n_replicas.saturating_sub(max_unavailable);
            Targets { new: new_target, old: shrink(least, new, old) }
        }
    }
}

fn recreate(n_replicas: usize, new: Generation, old: &[Generation]) -> Targets {
    let is_empty = old.iter().all(|one| one.n_replicas == 0 && one.n_pods == 0);
    let new = if is_empty { n_replicas } else { new.n_replicas.min(n_replicas) };
    Targets { new, old: vec![0; old.len()] }
}

/// Upstream: `NewRSNewReplicas`.
fn grow(n_replicas: usize, max_surge: usize, new: Generation, old: &[Generation]) -> usize {
    if new.n_replicas >= n_replicas {
        return n_replicas;
    }
    let n_told = new.n_replicas + old.iter().map(|one| one.n_replicas).sum::<usize>();
    let n_more = (n_replicas + max_surge).saturating_sub(n_told);
    new.n_replicas + n_more.min(n_replicas - new.n_replicas)
}

/// First what does not serve anyway, then as many as `least` allows, oldest first. Upstream:
/// `reconcileOldReplicaSets`.
fn shrink(least: usize, new: Generation, old: &[Generation]) -> Vec<usize> {
    let mut targets: Vec<usize> = old.iter().map(|one| one.n_replicas).collect();
    let n_told = new.n_replicas + targets.iter().sum::<usize>();
    let n_new_missing = new.n_replicas.saturating_sub(new.n_available);
    let mut n_spare = n_told.saturating_sub(least + n_new_missing);
    for (target, one) in targets.iter_mut().zip(old) {
        let n_idle = one.n_replicas.saturating_sub(one.n_available).min(n_spare);
        *target -= n_idle;
        n_spare -= n_idle;
    }
    let n_available = new.n_available + old.iter().map(|one| one.n_available).sum::<usize>();
    let mut n_spare = n_spare.min(n_available.saturating_sub(least));
    for target in &mut targets {
        let n_less = (*target).min(n_spare);
        *target -= n_less;
        n_spare -= n_less;
    }
    targets
}

/// `25%` or `3`, of so many. Upstream: `ResolveFenceposts`.
pub fn strategy(n_replicas: usize, surge: Amount, unavailable: Amount) -> Strategy {
    let max_surge = match surge {
        Amount::Pods(n) => n,
        Amount::Percent(percent) => (n_replicas * percent).div_ceil(100),
    };
    let max_unavailable = match unavailable {
        Amount::Pods(n) => n,
        Amount::Percent(percent) => n_replicas * percent / 100,
    };
    // Both at zero would never move.
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

    fn generation(n_replicas: usize, n_available: usize) -> Generation {
        Generation { n_replicas, n_pods: n_replicas, n_available }
    }

    fn rolling(n_replicas: usize, max_surge: usize, max_unavailable: usize) -> Wanted {
        let strategy = Strategy::Rolling { max_surge, max_unavailable };
        Wanted { n_replicas, strategy }
    }

    #[test]
    fn a_new_deployment_gets_all_its_pods_at_once() {
        let targets = step(rolling(10, 3, 2), Generation::default(), &[]);
        assert_eq!(targets, Targets { new: 10, old: vec![] });
    }

    #[test]
    fn scaling_down_needs_no_patience() {
        let targets = step(rolling(3, 1, 0), generation(10, 10), &[]);
        assert_eq!(targets.new, 3);
    }

    #[test]
    fn a_rollout_surges_first_and_shrinks_by_what_may_be_missing() {
        let targets = step(rolling(10, 3, 2), Generation::default(), &[generation(10, 10)]);
        assert_eq!(targets, Targets { new: 3, old: vec![8] });
    }

    #[test]
    fn pods_that_do_not_serve_go_first() {
        let old = [generation(5, 5), generation(5, 0)];
        let targets = step(rolling(10, 0, 6), generation(0, 0), &old);
        assert_eq!(targets.old, [4, 0], "the five idle ones, then one of those that serve");
    }

    #[test]
    fn nothing_goes_while_the_new_pods_do_not_come_up() {
        let old = [generation(8, 8)];
        let targets = step(rolling(10, 3, 2), generation(5, 0), &old);
        assert_eq!(targets, Targets { new: 5, old: vec![8] });
    }

    #[test]
    fn recreate_waits_until_the_last_old_pod_is_gone() {
        let wanted = Wanted { n_replicas: 3, strategy: Strategy::Recreate };
        let going = Generation { n_replicas: 0, n_pods: 1, n_available: 0 };
        assert_eq!(step(wanted, Generation::default(), &[going]).new, 0);
        assert_eq!(step(wanted, Generation::default(), &[Generation::default()]).new, 3);
    }

    #[test]
    fn percentages_round_up_for_surge_and_down_for_absence() {
        let percent = Amount::Percent(25);
        let rolled = strategy(10, percent, percent);
        assert_eq!(rolled, Strategy::Rolling { max_surge: 3, max_unavailable: 2 });
        let stuck = strategy(10, Amount::Pods(0), Amount::Percent(1));
        assert_eq!(stuck, Strategy::Rolling { max_surge: 0, max_unavailable: 1 });
    }

    /// Every rollout ends, and on its way keeps its promises.
    #[test]
    fn rollouts_end_within_their_bounds() {
        for n_replicas in 0..12 {
            for (max_surge, max_unavailable) in [(0, 1), (1, 0), (3, 2), (12, 12), (1, 1)] {
                check_rollout(rolling(n_replicas, max_surge, max_unavailable));
            }
        }
    }

    fn check_rollout(wanted: Wanted) {
        let Strategy::Rolling { max_surge, max_unavailable } = wanted.strategy else { return };
        let mut new = Generation::default();
        let mut old = generation(wanted.n_replicas, wanted.n_replicas);
        for _ in 0..100 {
            let Targets { new: new_target, old: old_target } = step(wanted, new, &[old]);
            old = generation(old_target[0], old_target[0].min(old.n_available));
            let n_serving = new.n_available + old.n_available;
            assert!(n_serving + max_unavailable >= wanted.n_replicas, "{wanted:?} {new:?} {old:?}");
            assert!(new_target + old.n_replicas <= wanted.n_replicas + max_surge, "{wanted:?}");
            // One pod a round comes up.
            new = generation(new_target, new_target.min(new.n_available + 1));
        }
        assert_eq!((new.n_available, old.n_replicas), (wanted.n_replicas, 0), "{wanted:?}");
    }
}
