//! The next step of one pod and when it is due: a fake kubelet, and the parts of
//! kube-controller-manager that act when a node is unreachable (node lifecycle) or deleted (pod
//! garbage collection).

use std::time::Duration;

use crate::seeded::duration_between;

/// The state of a pod that a kubelet acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeletPod<'a> {
    pub name: &'a str,
    pub phase: Phase,
    pub is_ready: bool,
    /// The result of the readiness probe.
    pub probe: Probe,
    /// In deletion, with this grace period.
    pub stopping: Option<Duration>,
    pub node: PodNode,
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
pub enum PodNode {
    /// Not scheduled yet.
    Unassigned,
    /// The node does not exist.
    Missing,
    /// The kubelet does not answer.
    Unreachable,
    Ready,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Start,
    /// The pod becomes ready before the kubelet reports again.
    StartReady,
    BecomeReady,
    BecomeUnready,
    /// The pod has stopped, or its node is gone.
    Remove,
}

const STARTING: (Duration, Duration) = (Duration::from_millis(150), Duration::from_millis(700));
const WARMING_UP: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(1200));
const STOPPING: (Duration, Duration) = (Duration::from_millis(800), Duration::from_millis(2500));
/// Grace time for pods that are created before their node.
const ORPHANED: Duration = Duration::from_secs(5);

/// The next step and its delay, if any. Kubelets report once in each round.
pub fn next(pod: &KubeletPod<'_>, seed: u64, round: Duration) -> Option<(Duration, Step)> {
    let started = if warming_up(pod, seed) <= round && pod.probe == Probe::Passes {
        Step::StartReady
    } else {
        Step::Start
    };
    let takes = |(least, most)| duration_between(seed, &[pod.name], least, most);
    match (pod.node, pod.stopping) {
        (PodNode::Unassigned, _) => None,
        (PodNode::Missing, Some(_)) => Some((Duration::ZERO, Step::Remove)),
        (PodNode::Missing, None) => Some((ORPHANED, Step::Remove)),
        // The pod is in deletion and waits for its finalizers.
        (_, Some(Duration::ZERO)) => None,
        (PodNode::Unreachable, Some(_)) if pod.is_ready => {
            Some((Duration::ZERO, Step::BecomeUnready))
        }
        (PodNode::Unreachable, Some(_)) => None,
        (PodNode::Ready, Some(grace)) => Some((takes(STOPPING).min(grace), Step::Remove)),
        (PodNode::Unreachable | PodNode::Ready, None) => match pod.phase {
            Phase::Over => None,
            Phase::Pending if pod.node == PodNode::Ready => Some((takes(STARTING), started)),
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

fn warming_up(pod: &KubeletPod<'_>, seed: u64) -> Duration {
    duration_between(seed, &[pod.name, "warm"], WARMING_UP.0, WARMING_UP.1)
}

fn probed(pod: &KubeletPod<'_>) -> Option<Step> {
    let serves = pod.node == PodNode::Ready && pod.probe == Probe::Passes;
    match (pod.is_ready, serves) {
        (false, true) => Some(Step::BecomeReady),
        (true, false) => Some(Step::BecomeUnready),
        (true, true) | (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: KubeletPod<'_> = KubeletPod {
        name: "web-1",
        phase: Phase::Pending,
        is_ready: false,
        probe: Probe::Passes,
        stopping: None,
        node: PodNode::Ready,
    };
    const SERVING: KubeletPod<'_> = KubeletPod { phase: Phase::Running, is_ready: true, ..FRESH };

    fn step(pod: &KubeletPod<'_>) -> Option<Step> {
        next(pod, 1, Duration::ZERO).map(|(_, step)| step)
    }

    #[test]
    fn a_pod_starts_becomes_ready_and_then_needs_no_step() {
        assert_eq!(step(&KubeletPod { node: PodNode::Unassigned, ..FRESH }), None);
        assert_eq!(step(&FRESH), Some(Step::Start));
        assert_eq!(step(&KubeletPod { is_ready: false, ..SERVING }), Some(Step::BecomeReady));
        assert_eq!(step(&SERVING), None);
        assert_eq!(step(&KubeletPod { phase: Phase::Over, ..SERVING }), None);
    }

    #[test]
    fn a_pod_that_is_ready_within_a_round_is_reported_once() {
        let step = |pod: &KubeletPod<'_>, round| next(pod, 1, round).map(|(_, step)| step);
        assert_eq!(step(&FRESH, WARMING_UP.1), Some(Step::StartReady));
        assert_eq!(step(&FRESH, WARMING_UP.0 / 2), Some(Step::Start));
        let failing = KubeletPod { probe: Probe::Fails, ..FRESH };
        assert_eq!(step(&failing, WARMING_UP.1), Some(Step::Start));
    }

    #[test]
    fn a_failing_probe_makes_a_pod_unready_at_once() {
        let failing = KubeletPod { probe: Probe::Fails, ..SERVING };
        assert_eq!(next(&failing, 1, Duration::ZERO), Some((Duration::ZERO, Step::BecomeUnready)));
        assert_eq!(step(&KubeletPod { is_ready: false, ..failing }), None);
    }

    #[test]
    fn a_pod_stops_within_its_grace_period() {
        for millis in [1, 900, 30_000] {
            let grace = Duration::from_millis(millis);
            let stopping = KubeletPod { stopping: Some(grace), ..SERVING };
            let Some((takes, Step::Remove)) = next(&stopping, 1, Duration::ZERO) else {
                panic!("it stops")
            };
            assert!(takes <= grace && takes <= STOPPING.1, "{takes:?} of {grace:?}");
        }
        assert_eq!(step(&KubeletPod { stopping: Some(Duration::ZERO), ..SERVING }), None);
    }

    #[test]
    fn a_pod_on_an_unreachable_node_is_unready_and_does_not_stop() {
        let silent = KubeletPod { node: PodNode::Unreachable, ..SERVING };
        assert_eq!(step(&silent), Some(Step::BecomeUnready));
        let stopping = KubeletPod { stopping: Some(ORPHANED), is_ready: false, ..silent };
        assert_eq!(step(&stopping), None, "its kubelet cannot stop it");
        assert_eq!(step(&KubeletPod { node: PodNode::Unreachable, ..FRESH }), None);
    }

    #[test]
    fn a_pod_on_a_deleted_node_is_removed() {
        let lost = KubeletPod { node: PodNode::Missing, ..SERVING };
        assert_eq!(next(&lost, 1, Duration::ZERO), Some((ORPHANED, Step::Remove)));
        let stopping = KubeletPod { stopping: Some(ORPHANED), ..lost };
        assert_eq!(next(&stopping, 1, Duration::ZERO), Some((Duration::ZERO, Step::Remove)));
    }
}
