//! When the change that a write answers happened. Upstream: `TriggerTimeTracker`.

use endpointd_model::{Annotations, Pod, Service, Text, Timestamp, names};

/// The times already accounted for, per Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriggerMemory {
    service: Option<Timestamp>,
    /// Last `Ready` transition by pod name, sorted by it.
    pods: Box<[(Text, Timestamp)]>,
}

impl TriggerMemory {
    fn of_pod(&self, name: &str) -> Option<Timestamp> {
        let at = self.pods.binary_search_by(|(pod, _)| pod.as_ref().cmp(name)).ok()?;
        Some(self.pods[at].1)
    }
}

/// The earliest of the times that are newer than remembered; for a Service seen for the first
/// time, its creation. The new memory holds for the next sync even if this one writes nothing.
pub fn observe<'a>(
    memory: Option<&TriggerMemory>,
    service: &Service,
    pods: impl Iterator<Item = &'a Pod>,
) -> (Option<Timestamp>, TriggerMemory) {
    let mut ready_since: Vec<(Text, Timestamp)> =
        pods.filter_map(|pod| Some((pod.name.clone(), pod.readiness.as_ref()?.since?))).collect();
    ready_since.sort_unstable();
    let now = TriggerMemory { service: service.created, pods: ready_since.into() };
    let Some(before) = memory else {
        return (service.created, now);
    };
    let newer_pods = now.pods.iter().filter(|(pod, since)| Some(*since) > before.of_pod(pod));
    let newer_service = now.service.filter(|created| Some(*created) > before.service);
    let earliest = newer_pods.map(|(_, since)| *since).chain(newer_service).min();
    (earliest, now)
}

/// The annotations with the trigger time set, or removed when nothing newer is known.
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
    fn the_first_sight_of_a_service_gives_its_creation() {
        let pods = [pod("a", 5)];
        let (time, _) = observe(None, &service(10), pods.iter());
        assert_eq!(time, at(10));
    }

    #[test]
    fn then_the_earliest_newer_time_counts() {
        let (_, memory) = observe(None, &service(10), [pod("a", 5), pod("b", 6)].iter());
        let pods = [pod("a", 20), pod("b", 6), pod("c", 15)];
        let (time, memory) = observe(Some(&memory), &service(10), pods.iter());
        assert_eq!(time, at(15));
        let (time, _) = observe(Some(&memory), &service(10), pods.iter());
        assert_eq!(time, None, "nothing newer");
    }

    #[test]
    fn an_older_time_is_no_trigger() {
        let (_, memory) = observe(None, &service(10), [pod("a", 50)].iter());
        let (time, _) = observe(Some(&memory), &service(9), [pod("a", 40)].iter());
        assert_eq!(time, None);
    }

    #[test]
    fn times_print_as_upstream_prints_them() {
        let time = "2026-01-02T03:04:05.60Z".parse().ok();
        let annotations = annotate(&Annotations::default(), time);
        assert!(annotations.has(names::TRIGGER_TIME, "2026-01-02T03:04:05.6Z"));
        assert!(annotate(&annotations, None).is_empty());
    }
}
