//! The trigger-time annotation: the time of the change that causes a write (docs/spec.md,
//! section 2). Upstream: `TriggerTimeTracker`.

use std::sync::Arc;

use endpointd_model::{Annotations, Pod, Service, SharedStr, Timestamp, names};
/// The times that earlier syncs of a Service have observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedTrigger {
    service: Option<Timestamp>,
    /// The pods whose `Ready` condition has a time, sorted by name. Both lists are shared between
    /// equal states, because the engine holds one entry per pod.
    pods: Arc<[SharedStr]>,
    /// Their last transitions, in the same order. Whole seconds, as the API server stores them.
    seconds: Arc<[i64]>,
}

impl CarriedTrigger {
    /// Shares what is equal with `other`.
    pub fn share_with(&mut self, other: &Self) {
        if Arc::ptr_eq(&self.pods, &other.pods) || self.pods == other.pods {
            self.pods = other.pods.clone();
            if self.seconds == other.seconds {
                self.seconds = other.seconds.clone();
            }
        }
    }

    /// The index of a pod; `next` is where it is if pods are asked for in their order.
    fn find(&self, pod: &SharedStr, next: usize) -> Option<usize> {
        if self.pods.get(next) == Some(pod) {
            return Some(next);
        }
        self.pods.binary_search(pod).ok()
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
    let seconds = || times.iter().map(|(_, since)| since.as_second());
    let carry =
        |pods| CarriedTrigger { service: service.created, pods, seconds: seconds().collect() };
    let own = || times.iter().map(|(pod, _)| (*pod).clone()).collect();
    let Some(before) = carried else {
        return (service.created, carry(own()));
    };
    let newer_service = service.created.filter(|created| Some(*created) > before.service);
    let are_same_pods = before.pods.iter().eq(times.iter().map(|(pod, _)| *pod));
    if are_same_pods && before.seconds.iter().copied().eq(seconds()) {
        return (newer_service, CarriedTrigger { service: service.created, ..before.clone() });
    }
    let is_newer = |(at, (pod, since)): &(usize, &(&SharedStr, Timestamp))| {
        let known = if are_same_pods { Some(*at) } else { before.find(pod, *at) };
        known.is_none_or(|at| since.as_second() > before.seconds[at])
    };
    let newer_pods = times.iter().enumerate().filter(is_newer).map(|(_, (_, since))| *since);
    let pods = if are_same_pods { before.pods.clone() } else { own() };
    (newer_pods.chain(newer_service).min(), carry(pods))
}

/// The same, if no other pods than these have changed since `before`. None if the `Ready` condition
/// of one of them has a time now and had none before, or the other way round.
pub fn observe_changed<'a>(
    before: &CarriedTrigger,
    service: &Service,
    pods: impl Iterator<Item = &'a Pod>,
) -> Option<(Option<Timestamp>, CarriedTrigger)> {
    let mut changed: Vec<(usize, Timestamp)> = Vec::new();
    let mut next = 0;
    for pod in pods {
        let since = pod.readiness.as_ref().and_then(|readiness| readiness.since);
        match (before.find(&pod.name, next), since) {
            (Some(at), Some(since)) => {
                next = at + 1;
                if since.as_second() != before.seconds[at] {
                    changed.push((at, since));
                }
            }
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => return None,
        }
    }
    let newer_service = service.created.filter(|created| Some(*created) > before.service);
    let newer = changed.iter().filter(|(at, since)| since.as_second() > before.seconds[*at]);
    let time = newer.map(|(_, since)| *since).chain(newer_service).min();
    let mut after = CarriedTrigger { service: service.created, ..before.clone() };
    if !changed.is_empty() {
        let mut seconds = before.seconds.to_vec();
        changed.iter().for_each(|(at, since)| seconds[*at] = since.as_second());
        after.seconds = seconds.into();
    }
    Some((time, after))
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
        assert!(Arc::ptr_eq(&first.seconds, &second.seconds));
        let mut third = remembered(6);
        third.share_with(&first);
        assert!(Arc::ptr_eq(&first.pods, &third.pods));
        assert_eq!(third, remembered(6));
    }

    #[test]
    fn only_the_changed_pods_are_needed_if_the_same_pods_have_a_time() {
        let all = |b: i64| [pod("a", 5), pod("b", b), pod("c", 7)];
        let (_, before) = observe(None, &service(10), all(6).iter());
        for b in [6, 20, 3] {
            let changed = observe_changed(&before, &service(10), [pod("b", b)].iter());
            assert_eq!(changed, Some(observe(Some(&before), &service(10), all(b).iter())));
        }
        let without_time = Pod { name: "b".into(), ..Pod::default() };
        for other in [without_time, pod("d", 5)] {
            assert_eq!(observe_changed(&before, &service(10), [other].iter()), None);
        }
    }

    #[test]
    fn trigger_times_are_formatted_like_upstream() {
        let time = "2026-01-02T03:04:05.60Z".parse().ok();
        let annotations = annotate(&Annotations::default(), time);
        assert!(annotations.has(names::TRIGGER_TIME, "2026-01-02T03:04:05.6Z"));
        assert!(annotate(&annotations, None).is_empty());
    }
}
