//! Many objects that go at once: what a person deletes is cleaned up at once, what only a list omits
//! slowly.

use std::time::Duration;

use endpointd_model::{LiveRead, PublishedResource, WatchedResource, Write};

use crate::cluster::{Cluster, WriteFault};
use crate::objects::{converged, key, manual_endpoints, service};

const N_SERVICES: usize = 60;

fn names() -> Vec<String> {
    (0..N_SERVICES).map(|n| format!("s{n:02}")).collect()
}

fn many_services() -> Cluster {
    let names = names();
    let services: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    converged(&services)
}

/// As the API server does: the Endpoints first or last, depending on which watch is held.
fn remove_with_endpoints(cluster: &mut Cluster, name: &str) {
    cluster.remove_service(&key(name));
    cluster.remove_object(PublishedResource::Endpoints, &key(name));
}

fn n_endpoints(cluster: &Cluster) -> usize {
    let published = cluster.published().into_iter();
    published.filter(|(resource, _)| *resource == PublishedResource::Endpoints).count()
}

fn assert_limiter_unused(cluster: &Cluster) {
    let limiter = cluster.report().deletion_limiter;
    assert_eq!((limiter.is_active, limiter.n_deletions_last_minute), (false, 0));
}

#[test]
fn creates_repeated_after_lost_requests_are_no_deletions() {
    let mut cluster = converged(&[]);
    cluster.write_faults.extend(vec![WriteFault::DroppedNoResponse; 60]);
    (0..30).for_each(|n| cluster.put_service(service(&format!("s{n}"))));
    cluster.advance(Duration::from_secs(5));
    assert_eq!(cluster.published().len(), 60, "a slice and Endpoints of each");
    assert_limiter_unused(&cluster);
}

#[test]
fn objects_left_by_services_deleted_before_the_start_are_deleted_slowly() {
    let mut cluster = converged(&[]);
    for n in 0..100 {
        cluster.put_endpoints(&format!("left-{n:03}"));
    }
    cluster.restart();
    let n_deleted = |cluster: &Cluster| cluster.sent.len();
    assert_eq!(n_deleted(&cluster), 20, "at once");
    assert!(cluster.report().deletion_limiter.is_active);
    cluster.advance(Duration::from_secs(59));
    assert_eq!(n_deleted(&cluster), 20, "within the minute");
    cluster.advance(Duration::from_secs(600));
    assert_eq!(n_deleted(&cluster), 100, "after all");
    assert!(!cluster.report().deletion_limiter.is_active);
}

/// A webhook is down: the writes are answered 500, and repeated.
#[test]
fn deletions_that_are_sent_again_count_once() {
    let mut cluster = converged(&[]);
    for n in 0..15 {
        cluster.put_endpoints(&format!("left-{n:03}"));
    }
    cluster.rejects = Some(|write| matches!(write, Write::Delete(_)));
    cluster.rejection = WriteFault::DroppedNoResponse;
    cluster.restart();
    cluster.advance(Duration::from_secs(30));
    assert!(cluster.sent.len() > 3 * 15, "{:?}", cluster.sent);
    let limiter = cluster.report().deletion_limiter;
    assert_eq!((limiter.is_active, limiter.n_deletions_last_minute), (false, 15));
}

#[test]
fn deletions_that_the_watch_reports_are_not_limited() {
    let mut cluster = many_services();
    names().iter().for_each(|name| cluster.remove_service(&key(name)));
    cluster.run();
    assert_eq!(n_endpoints(&cluster), 0, "at once");
    assert_eq!(cluster.live_reads.len(), N_SERVICES, "each confirmed");
    assert_limiter_unused(&cluster);
}

#[test]
fn deletions_that_only_a_list_shows_are_limited() {
    let mut cluster = many_services();
    names().iter().for_each(|name| cluster.remove_service(&key(name)));
    cluster.drop_pending_events(WatchedResource::Services);
    cluster.list(WatchedResource::Services);
    cluster.run();
    assert_eq!(n_endpoints(&cluster), N_SERVICES - 20);
    assert!(cluster.report().deletion_limiter.is_active);
}

#[test]
fn service_that_returned_and_is_missing_from_a_list_counts() {
    let mut cluster = many_services();
    cluster.hold_watch(WatchedResource::Endpoints);
    for name in names() {
        cluster.remove_service(&key(&name));
        cluster.put_service(service(&name));
    }
    cluster.run();
    names().iter().for_each(|name| cluster.remove_service(&key(name)));
    cluster.drop_pending_events(WatchedResource::Services);
    cluster.list(WatchedResource::Services);
    cluster.run();
    assert_eq!(n_endpoints(&cluster), N_SERVICES - 20, "the earlier event proves nothing now");
}

#[test]
fn endpoints_that_are_gone_already_do_not_count() {
    let mut cluster = many_services();
    cluster.hold_watch(WatchedResource::Endpoints);
    names().iter().for_each(|name| remove_with_endpoints(&mut cluster, name));
    cluster.drop_pending_events(WatchedResource::Services);
    cluster.list(WatchedResource::Services);
    cluster.run();
    assert_eq!(cluster.sent, [""; 0], "nothing is left to delete");
    assert_limiter_unused(&cluster);
}

#[test]
fn endpoints_deleted_with_their_service_do_not_come_back() {
    let mut cluster = many_services();
    cluster.hold_watch(WatchedResource::Services);
    names().iter().for_each(|name| remove_with_endpoints(&mut cluster, name));
    cluster.run();
    assert_eq!(cluster.sent, [""; 0], "a live read shows that the Service is gone");
    cluster.release_watches();
    assert_eq!((cluster.sent.len(), n_endpoints(&cluster)), (0, 0));
    assert_limiter_unused(&cluster);
}

#[test]
fn endpoints_deleted_during_an_update_do_not_come_back() {
    let mut cluster = converged(&[("web", 2)]);
    cluster.hold_watch(WatchedResource::Services);
    cluster.hold_watch(WatchedResource::Endpoints);
    remove_with_endpoints(&mut cluster, "web");
    cluster.change_pod(&key("web-0"), crate::objects::unready);
    cluster.run();
    assert_eq!(n_endpoints(&cluster), 0, "{:?}", cluster.sent);
    cluster.release_watches();
    assert_eq!(n_endpoints(&cluster), 0, "{:?}", cluster.sent);
}

#[test]
fn endpoints_deleted_by_someone_come_back_after_a_live_read() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.remove_object(PublishedResource::Endpoints, &key("web"));
    cluster.run();
    assert_eq!(cluster.live_reads, [LiveRead::Service(key("web"))]);
    assert_eq!(cluster.sent, ["create endpoints web"]);
}

#[test]
fn service_recreated_under_its_name_gets_endpoints() {
    let mut cluster = converged(&[("web", 1)]);
    cluster.hold_watch(WatchedResource::Services);
    remove_with_endpoints(&mut cluster, "web");
    cluster.run();
    cluster.put_service(service("web"));
    cluster.release_watches();
    assert_eq!(n_endpoints(&cluster), 1);
}

#[test]
fn slices_mirrored_from_deleted_endpoints_are_deleted_at_once() {
    let mut cluster = converged(&[]);
    for name in names() {
        let manual = endpointd_model::Service { selector: Default::default(), ..service(&name) };
        cluster.put_service(manual);
        cluster.put_object(manual_endpoints(&name));
    }
    cluster.run();
    assert_eq!(cluster.slices().len(), N_SERVICES);
    for name in names() {
        cluster.remove_object(PublishedResource::Endpoints, &key(&name));
    }
    cluster.run();
    assert_eq!(cluster.slices().len(), 0);
    assert_limiter_unused(&cluster);
}
