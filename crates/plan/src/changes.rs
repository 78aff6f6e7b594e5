//! Which changes of a pod can change published objects. Upstream: `podEndpointsChanged`.

use endpointd_model::Pod;
/// How two versions of one pod differ, and which Services must be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodDifference {
    /// No published field differs; no Service is synced.
    None,
    /// The labels differ: sync the Services that match one version and not the other.
    Membership,
    /// Conditions of the endpoints differ and nothing else of them: sync all Services that match
    /// either version. Those that match both publish the pod where they did before.
    Conditions,
    /// Published fields differ: sync all Services that match either version.
    Content,
}

pub fn pod_difference(old: &Pod, new: &Pod) -> PodDifference {
    let Pod {
        namespace: _, // Namespace and name identify the pod.
        name: _,
        uid,
        resource_version: _,
        labels,
        node_name,
        hostname,
        subdomain,
        ips,
        phase,
        readiness: _, // Compared by `is_ready`: a later transition time changes nothing.
        is_terminating,
        named_ports,
    } = old;
    // Upstream treats hostname and subdomain like labels, and so misses a change of either on a
    // pod whose Services stay the same. Both are published (B11).
    let same_content = (uid, node_name, ips) == (&new.uid, &new.node_name, &new.ips)
        && phase == &new.phase
        && named_ports == &new.named_ports
        && (hostname, subdomain) == (&new.hostname, &new.subdomain);
    if !same_content {
        return PodDifference::Content;
    }
    if is_terminating != &new.is_terminating || old.is_ready() != new.is_ready() {
        return PodDifference::Conditions;
    }
    if labels == &new.labels { PodDifference::None } else { PodDifference::Membership }
}

#[cfg(test)]
mod tests {
    use endpointd_model::{Phase, Readiness};

    use super::*;

    #[test]
    fn changed_labels_change_membership() {
        let old = Pod::default();
        let labels = [("app", "web")].into_iter().collect();
        let new = Pod { labels, resource_version: 2.into(), ..Pod::default() };
        assert_eq!(pod_difference(&old, &new), PodDifference::Membership);
    }

    #[test]
    fn changed_readiness_changes_conditions_and_a_later_transition_time_changes_nothing() {
        let ready = |since: i64| {
            let since = endpointd_model::Timestamp::from_second(since).ok();
            Pod { readiness: Some(Readiness { is_ready: true, since }), ..Pod::default() }
        };
        assert_eq!(pod_difference(&Pod::default(), &ready(1)), PodDifference::Conditions);
        assert_eq!(pod_difference(&ready(1), &ready(2)), PodDifference::None);
        let terminating = Pod { is_terminating: true, ..Pod::default() };
        assert_eq!(pod_difference(&Pod::default(), &terminating), PodDifference::Conditions);
    }

    #[test]
    fn changed_phase_or_uid_changes_content_also_with_the_readiness() {
        let readiness = Some(Readiness { is_ready: true, since: None });
        let other = Pod { uid: "other".into(), readiness, ..Pod::default() };
        assert_eq!(pod_difference(&Pod::default(), &other), PodDifference::Content);
        let failed = Pod { phase: Phase::Failed, ..Pod::default() };
        assert_eq!(pod_difference(&Pod::default(), &failed), PodDifference::Content);
    }

    #[test]
    fn a_changed_hostname_changes_content() {
        let new = Pod { hostname: Some("a".into()), ..Pod::default() };
        assert_eq!(pod_difference(&Pod::default(), &new), PodDifference::Content);
    }
}
