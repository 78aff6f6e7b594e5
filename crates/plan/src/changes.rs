//! Which changes of a pod can change what is published. Upstream: `podEndpointsChanged`.

use endpointd_model::Pod;
use endpointd_mutants::{Mutant, is_on};

/// How two versions of one pod differ, for the Services that may publish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodDifference {
    /// Nothing that anyone publishes.
    None,
    /// Who publishes it may differ: Services that match one version but not the other.
    Membership,
    /// What is published differs: all Services that match either version.
    Content,
}

pub fn pod_difference(old: &Pod, new: &Pod) -> PodDifference {
    let Pod {
        namespace: _, // A pod never moves.
        name: _,
        uid,
        resource_version: _,
        labels,
        node_name,
        hostname,
        subdomain,
        ips,
        phase,
        readiness: _, // By its value; the time alone changes nothing.
        is_terminating,
        named_ports,
    } = old;
    let same_content = (uid, node_name, ips) == (&new.uid, &new.node_name, &new.ips)
        && (phase == &new.phase || is_on(Mutant::PhaseIgnored))
        && is_terminating == &new.is_terminating
        && old.is_ready() == new.is_ready()
        && named_ports == &new.named_ports;
    if !same_content {
        return PodDifference::Content;
    }
    // Upstream counts hostname and subdomain with the labels, and so misses a change of either
    // on a pod whose Services stay the same; they are part of what is published.
    if (hostname, subdomain) != (&new.hostname, &new.subdomain) {
        return PodDifference::Content;
    }
    if labels == &new.labels { PodDifference::None } else { PodDifference::Membership }
}

#[cfg(test)]
mod tests {
    use endpointd_model::{Phase, Readiness};

    use super::*;

    #[test]
    fn labels_alone_change_membership() {
        let old = Pod::default();
        let labels = [("app", "web")].into_iter().collect();
        let new = Pod { labels, resource_version: 2.into(), ..Pod::default() };
        assert_eq!(pod_difference(&old, &new), PodDifference::Membership);
    }

    #[test]
    fn readiness_and_phase_change_content_but_a_later_transition_time_does_not() {
        let ready = |since: i64| {
            let since = endpointd_model::Timestamp::from_second(since).ok();
            Pod { readiness: Some(Readiness { is_ready: true, since }), ..Pod::default() }
        };
        assert_eq!(pod_difference(&Pod::default(), &ready(1)), PodDifference::Content);
        assert_eq!(pod_difference(&ready(1), &ready(2)), PodDifference::None);
        let failed = Pod { phase: Phase::Failed, ..Pod::default() };
        assert_eq!(pod_difference(&Pod::default(), &failed), PodDifference::Content);
    }

    #[test]
    fn a_new_hostname_is_published() {
        let new = Pod { hostname: Some("a".into()), ..Pod::default() };
        assert_eq!(pod_difference(&Pod::default(), &new), PodDifference::Content);
    }
}
