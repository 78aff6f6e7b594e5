//! What a kubelet does next with one pod, and how long it takes. Together with the parts of
//! kube-controller-manager that act when a node is silent (node lifecycle) or gone (pod garbage
//! collection).

use std::time::Duration;

use crate::chance::lasting;

/// A pod as its kubelet sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Housed<'a> {
    pub name: &'a str,
    pub phase: Phase,
    pub is_ready: bool,
    /// What the readiness probe finds.
    pub probe: Probe,
    /// Being deleted, with this much time to stop.
    pub stopping: Option<Duration>,
    pub house: House,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Pending,
    Running,
    /// Succeeded or failed.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    Passes,
    Fails,
}

/// The node a pod is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum House {
    /// None yet.
    None,
    /// Named, but there is no such node.
    Missing,
    /// Its kubelet does not answer.
    Silent,
    Ready,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Start,
    /// It will serve before its kubelet reports again.
    StartReady,
    BecomeReady,
    BecomeUnready,
    /// It has stopped, or nobody will ever hear of it again.
    Remove,
}

const STARTING: (Duration, Duration) = (Duration::from_millis(150), Duration::from_millis(700));
const WARMING_UP: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(1200));
const STOPPING: (Duration, Duration) = (Duration::from_millis(800), Duration::from_millis(2500));
/// A node may be a little later than its pods.
const ORPHANED: Duration = Duration::from_secs(5);

/// Nothing, or a step and when it is due. Kubelets report once a round.
pub fn next(pod: &Housed<'_>, seed: u64, round: Duration) -> Option<(Duration, Step)> {
    let started = if warming_up(pod, seed) <= round && pod.probe == Probe::Passes {
        Step::StartReady
    } else {
        Step::Start
    };
    let takes = |(least, most)| lasting(seed, &[pod.name], least, most);
    match (pod.house, pod.stopping) {
        (House::None, _) => None,
        (House::Missing, Some(_)) => Some((Duration::ZERO, Step::Remove)),
        (House::Missing, None) => Some((ORPHANED, Step::Remove)),
        // It is going already, and waits for its finalizers.
        (_, Some(Duration::ZERO)) => None,
        (House::Silent, Some(_)) if pod.is_ready => Some((Duration::ZERO, Step::BecomeUnready)),
        (House::Silent, Some(_)) => None,
        (House::Ready, Some(grace)) => Some((takes(STOPPING).min(grace), Step::Remove)),
        (House::Silent | House::Ready, None) => match pod.phase {
            Phase::Over => None,
            Phase::Pending if pod.house == House::Ready => Some((takes(STARTING), started)),
            Phase::Pending => None,
            Phase::Running => probed(pod).map(|step| match step {
                Step::BecomeReady => (warming_up(pod, seed), step),
                Step::Start | Step::StartReady | Step::BecomeUnready | Step::Remove => {
                    (Duration::ZERO, step)
                }
            }),
        },
    }
}

fn warming_up(pod: &Housed<'_>, seed: u64) -> Duration {
    lasting(seed, &[pod.name, "warm"], WARMING_UP.0, WARMING_UP.1)
}

fn probed(pod: &Housed<'_>) -> Option<Step> {
    let serves = pod.house == House::Ready && pod.probe == Probe::Passes;
    match (pod.is_ready, serves) {
        (false, true) => Some(Step::BecomeReady),
        (true, false) => Some(Step::BecomeUnready),
        (true, true) | (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Housed<'_> = Housed {
        name: "web-1",
        phase: Phase::Pending,
        is_ready: false,
        probe: Probe::Passes,
        stopping: None,
        house: House::Ready,
    };
    const SERVING: Housed<'_> = Housed { phase: Phase::Running, is_ready: true, ..FRESH };

    fn step(pod: &Housed<'_>) -> Option<Step> {
        next(pod, 1, Duration::ZERO).map(|(_, step)| step)
    }

    #[test]
    fn a_pod_starts_warms_up_and_rests() {
        assert_eq!(step(&Housed { house: House::None, ..FRESH }), None);
        assert_eq!(step(&FRESH), Some(Step::Start));
        assert_eq!(step(&Housed { is_ready: false, ..SERVING }), Some(Step::BecomeReady));
        assert_eq!(step(&SERVING), None);
        assert_eq!(step(&Housed { phase: Phase::Over, ..SERVING }), None);
    }

    #[test]
    fn what_comes_up_within_a_round_is_reported_once() {
        let step = |pod: &Housed<'_>, round| next(pod, 1, round).map(|(_, step)| step);
        assert_eq!(step(&FRESH, WARMING_UP.1), Some(Step::StartReady));
        assert_eq!(step(&FRESH, WARMING_UP.0 / 2), Some(Step::Start));
        let failing = Housed { probe: Probe::Fails, ..FRESH };
        assert_eq!(step(&failing, WARMING_UP.1), Some(Step::Start));
    }

    #[test]
    fn a_failing_probe_counts_at_once_and_keeps_counting() {
        let failing = Housed { probe: Probe::Fails, ..SERVING };
        assert_eq!(next(&failing, 1, Duration::ZERO), Some((Duration::ZERO, Step::BecomeUnready)));
        assert_eq!(step(&Housed { is_ready: false, ..failing }), None);
    }

    #[test]
    fn a_pod_stops_within_its_grace() {
        for millis in [1, 900, 30_000] {
            let grace = Duration::from_millis(millis);
            let stopping = Housed { stopping: Some(grace), ..SERVING };
            let Some((takes, Step::Remove)) = next(&stopping, 1, Duration::ZERO) else {
                panic!("it stops")
            };
            assert!(takes <= grace && takes <= STOPPING.1, "{takes:?} of {grace:?}");
        }
        assert_eq!(step(&Housed { stopping: Some(Duration::ZERO), ..SERVING }), None);
    }

    #[test]
    fn a_silent_node_stops_serving_and_stops_nothing() {
        let silent = Housed { house: House::Silent, ..SERVING };
        assert_eq!(step(&silent), Some(Step::BecomeUnready));
        let stopping = Housed { stopping: Some(ORPHANED), is_ready: false, ..silent };
        assert_eq!(step(&stopping), None, "nobody is there to stop it");
        assert_eq!(step(&Housed { house: House::Silent, ..FRESH }), None);
    }

    #[test]
    fn what_was_on_a_lost_node_is_removed() {
        let lost = Housed { house: House::Missing, ..SERVING };
        assert_eq!(next(&lost, 1, Duration::ZERO), Some((ORPHANED, Step::Remove)));
        let stopping = Housed { stopping: Some(ORPHANED), ..lost };
        assert_eq!(next(&stopping, 1, Duration::ZERO), Some((Duration::ZERO, Step::Remove)));
    }
}
