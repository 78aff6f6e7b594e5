//! The trigger-time annotation: the time of the change that causes a write (docs/spec.md,
//! section 2). Upstream: `TriggerTimeTracker`.

use std::sync::Arc;

use endpointd_model::{Annotations, Pod, Service, SharedStr, Timestamp, names};
/// The times that earlier syncs of a Service have observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedTrigger {
    service: Option<Timestamp>,
    /// Last `Ready` transition by pod name, sorted by name. Whole seconds, as the API server stores
    /// them, and shared between equal states, because the engine holds one entry per pod.
    pods: Arc<[(SharedStr, i64)]>,
}

impl CarriedTrigger {
    /// Shares the pods' times with `other` if they are equal.
    pub fn share_with(&mut self, other: &Self) {
        if self.pods == other.pods {
            self.pods = other.pods.clone();
        }
    }
}

/// The earliest of the times that are newer than in `carried`; in the first sync of a Service, its
/// creation. The returned state is valid for the next sync even if this one writes nothing.
pub fn observe<'a>(
    carried: Option<&CarriedTrigger>,
    service: &Service,
    pods: impl Iterator<Item = &'a Pod>,
) -> (Option<Timestamp>, CarriedTrigger) {
    let since = |pod: &'a Pod| Some((&pod.name, pod.readiness.as_ref()?.since?));
    let mut times: Vec<(&SharedStr, Timestamp)> = Vec::with_capacity(pods.size_hint().0);
    times.extend(pods.filter_map(since));
    times.sort_unstable();
    let carry = |pods| CarriedTrigger { service: service.created, pods };
    let own = || times.iter().map(|(pod, since)| ((*pod).clone(), since.as_second())).collect();
    let Some(before) = carried else {
        return (service.created, carry(own()));
    };
    let newer_service = service.created.filter(|created| Some(*created) > before.service);
    let seconds = times.iter().map(|(pod, since)| (*pod, since.as_second()));
    let is_known = before.pods.iter().map(|(pod, since)| (pod, *since)).eq(seconds);
    if is_known {
        return (newer_service, carry(before.pods.clone()));
    }
    let is_newer = |(pod, since): &&(&SharedStr, Timestamp)| {
        let known = before.pods.binary_search_by(|(known, _)| known.cmp(pod)).ok();
        known.is_none_or(|at| since.as_second() > before.pods[at].1)
    };
    let newer_pods = times.iter().filter(is_newer).map(|(_, since)| *since);
    (newer_pods.chain(newer_service).min(), carry(own()))
}

/// The annotations with the trigger time set, or removed if there is none.
pub fn annotate(annotations: &Annotations, time: Option<Timestamp>) -> Annotations {
    annotations.with(names::TRIGGER_TIME, time.map(|time| time.to_string()).as_deref())
}

#[cfg(test)]
mod tests {
    use endpointd_model::Readiness;

    use super::*;

    fn at(second: i64) -> Option<Timestamp> {
        Timestamp::from_second(second).ok()
    }

    fn pod(name: &str, since: i64) -> Pod {
        let readiness = Some(Readiness { is_ready: true, since: at(since) });
        Pod { name: name.into(), readiness, ..Pod::default() }
    }

    fn service(created: i64) -> Service {
        Service { created: at(created), ..Service::default() }
    }

    #[test]
    fn the_first_sync_of_a_service_gives_its_creation_time() {
        let pods = [pod("a", 5)];
        let (time, _) = observe(None, &service(10), pods.iter());
        assert_eq!(time, at(10));
    }

    #[test]
    fn later_syncs_give_the_earliest_newer_time() {
        let (_, carried) = observe(None, &service(10), [pod("a", 5), pod("b", 6)].iter());
        let pods = [pod("a", 20), pod("b", 6), pod("c", 15)];
        let (time, carried) = observe(Some(&carried), &service(10), pods.iter());
        assert_eq!(time, at(15));
        let (time, _) = observe(Some(&carried), &service(10), pods.iter());
        assert_eq!(time, None, "nothing newer");
    }

    #[test]
    fn an_older_time_is_ignored() {
        let (_, carried) = observe(None, &service(10), [pod("a", 50)].iter());
        let (time, _) = observe(Some(&carried), &service(9), [pod("a", 40)].iter());
        assert_eq!(time, None);
    }

    #[test]
    fn equal_times_are_shared_and_different_ones_are_not() {
        let remembered = |since| observe(None, &service(10), [pod("a", since)].iter()).1;
        let first = remembered(5);
        let mut second = remembered(5);
        second.share_with(&first);
        assert!(Arc::ptr_eq(&first.pods, &second.pods));
        let mut third = remembered(6);
        third.share_with(&first);
        assert_eq!(third, remembered(6));
    }

    #[test]
    fn trigger_times_are_formatted_like_upstream() {
        let time = "2026-01-02T03:04:05.60Z".parse().ok();
        let annotations = annotate(&Annotations::default(), time);
        assert!(annotations.has(names::TRIGGER_TIME, "2026-01-02T03:04:05.6Z"));
        assert!(annotate(&annotations, None).is_empty());
    }
}
