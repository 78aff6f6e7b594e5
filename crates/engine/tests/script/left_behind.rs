//! What is left of a time when a Service had a selector (`--orphan-policy`).

use std::time::Duration;

use endpointd_engine::{OrphanPolicy, Settings};
use endpointd_model::{
    EndpointAddress, EventReason, Labels, LiveRead, Object, PublishedResource, Service,
    WatchedResource,
};

use crate::cluster::Cluster;
use crate::objects::{addresses, converged, endpoints, key, service};

fn deleting(services: &[(&str, usize)]) -> Cluster {
    let mut cluster = converged(services);
    let mut settings = Settings::default();
    settings.plan.orphan_policy = OrphanPolicy::Delete;
    cluster.restart_with(settings);
    cluster.clear_log();
    cluster
}

fn manual(name: &str) -> Service {
    Service { selector: Labels::default(), ..service(name) }
}

/// Mirroring of the Endpoints that stay is not what these tests are about.
fn sent(cluster: &Cluster) -> Vec<&str> {
    let mirrored = |one: &str| one.starts_with("create endpointslices");
    cluster.sent.iter().map(String::as_str).filter(|one| !mirrored(one)).collect()
}

fn told(cluster: &Cluster) -> Vec<&str> {
    let of_reason = |reason| reason == EventReason::DeletedLeftBehind;
    let events = cluster.event_records.iter().filter(|one| of_reason(one.reason));
    events.map(|event| event.message.as_str()).collect()
}

#[test]
fn what_is_left_behind_is_kept_by_default() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.put_service(manual("web"));
    cluster.run();
    cluster.restart();
    assert_eq!(sent(&cluster), [""; 0]);
    assert_eq!(addresses(&cluster, "web").len(), 2);
}

#[test]
fn what_is_left_behind_is_deleted_after_live_reads_and_reported() {
    for left in [manual("web"), Service { is_external_name: true, ..service("web") }] {
        let mut cluster = deleting(&[("web", 2)]);
        cluster.put_service(left);
        cluster.advance(Duration::from_secs(1));
        assert_eq!((endpoints(&cluster, "web"), addresses(&cluster, "web")), (vec![], vec![]));
        assert!(cluster.live_reads.contains(&LiveRead::Service(key("web"))));
        let told = told(&cluster);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told.contains(
                &"Deleted 1 EndpointSlice from the time when Service ns/web had a selector"
            )
        );
        assert!(
            told.contains(
                &"Deleted the Endpoints from the time when Service ns/web had a selector"
            )
        );
        cluster.clear_log();
        cluster.advance(Duration::from_secs(60));
        assert_eq!(cluster.sent, [""; 0]);
    }
}

#[test]
fn what_was_left_behind_before_the_start_is_deleted_slowly() {
    let names: Vec<String> = (0..60).map(|n| format!("s{n:02}")).collect();
    let services: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let mut cluster = converged(&services);
    names.iter().for_each(|name| cluster.put_service(manual(name)));
    cluster.run();
    let mut settings = Settings::default();
    settings.plan.orphan_policy = OrphanPolicy::Delete;
    cluster.restart_with(settings);
    let n_deleted = |cluster: &Cluster| told(cluster).len();
    let at_once = n_deleted(&cluster);
    assert_eq!(at_once, 40, "slices and Endpoints of 20 Services");
    assert!(cluster.report().deletion_limiter.is_active);
    cluster.advance(Duration::from_secs(50));
    assert_eq!(n_deleted(&cluster), at_once, "within the minute");
    cluster.advance(Duration::from_secs(60 * 15));
    assert_eq!(n_deleted(&cluster), 120, "slices and Endpoints of 60 Services");
}

#[test]
fn a_selector_that_is_back_unknown_to_the_cache_prevents_the_deletion() {
    let mut cluster = deleting(&[("web", 2)]);
    cluster.put_service(manual("web"));
    cluster.reads_fail = true;
    cluster.run();
    cluster.hold_watch(WatchedResource::Services);
    cluster.put_service(service("web"));
    cluster.reads_fail = false;
    cluster.advance(Duration::from_secs(31));
    assert_eq!(told(&cluster), [""; 0], "{:?}", cluster.sent);
    assert_eq!((endpoints(&cluster, "web").len(), addresses(&cluster, "web").len()), (2, 2));
}

/// The Service was read long before its Endpoints could be.
#[test]
fn a_selector_that_is_back_since_an_old_live_read_prevents_the_deletion() {
    let mut cluster = deleting(&[("web", 2)]);
    cluster.put_service(manual("web"));
    cluster.rejects_read = Some(|read| matches!(read, LiveRead::Object(..)));
    cluster.run();
    assert!(cluster.live_reads.contains(&LiveRead::Service(key("web"))));
    cluster.hold_watch(WatchedResource::Services);
    cluster.advance(Duration::from_secs(61));
    cluster.put_service(service("web"));
    cluster.rejects_read = None;
    cluster.advance(Duration::from_secs(31));
    assert_eq!(told(&cluster), [""; 0], "{:?}", cluster.sent);
    assert_eq!((endpoints(&cluster, "web").len(), addresses(&cluster, "web").len()), (2, 2));
}

#[test]
fn endpoints_with_addresses_of_a_user_are_kept() {
    let mut cluster = deleting(&[("web", 1)]);
    cluster.hold_watch(WatchedResource::Services);
    cluster.put_service(manual("web"));
    let stored = cluster.object(PublishedResource::Endpoints, &key("web"));
    let Some(Object::Endpoints(mut edited)) = stored else { panic!("Endpoints") };
    edited.subsets[0].addresses[0] =
        EndpointAddress { ip: "10.1.0.1".into(), ..EndpointAddress::default() };
    cluster.hold_watch(WatchedResource::Endpoints);
    cluster.put_object(Object::Endpoints(edited));
    cluster.release_watches();
    cluster.advance(Duration::from_secs(60));
    assert_eq!(addresses(&cluster, "web"), ["10.1.0.1"]);
    assert_eq!(endpoints(&cluster, "web"), ["10.1.0.1 ready"], "they are mirrored");
}
