//! The condition of the consumer.

use std::time::Duration;

use endpointd_model::{Key, LiveRead, Object, PublishedResource, WatchedResource};

use super::pair::{
    change, cluster_with, condition, consumer, events, pair, published, sent, set_consent, slice,
    source,
};
use crate::cluster::WriteFault;
use crate::objects;

#[test]
fn edited_condition_is_repaired() {
    let mut cluster = pair();
    change(&mut cluster, &consumer(), |service| service.set_condition(None));
    cluster.run();
    assert_eq!(condition(&cluster), "True Mirrored");
    cluster.clear_log();
    change(&mut cluster, &consumer(), |service| service.labels = objects::labels("other"));
    cluster.run();
    assert_eq!(cluster.sent, [""; 0]);
}

#[test]
fn condition_goes_with_the_annotation() {
    let mut cluster = pair();
    change(&mut cluster, &consumer(), |service| {
        let cross = service.cross_namespace.as_mut().expect("a consumer");
        cross.from = None;
    });
    cluster.run();
    assert_eq!((published(&cluster, "shop"), condition(&cluster).as_str()), (vec![], "none"));
}

#[test]
fn condition_is_not_written_when_slices_are_refused() {
    let mut cluster = cluster_with(Some("shop"));
    cluster.rejects = Some(|write| write.resource() == PublishedResource::Slices);
    cluster.start();
    assert_eq!(
        (sent(&cluster), condition(&cluster).as_str()),
        (vec!["create endpointslices".to_owned()], "none")
    );
    assert_eq!(events(&cluster), ["FailedToImportEndpoints"]);
    cluster.rejects = None;
    cluster.advance(Duration::from_secs(60));
    assert_eq!(condition(&cluster), "True Mirrored");
}

#[test]
fn slices_are_written_when_the_condition_is_refused() {
    let mut cluster = cluster_with(Some("shop"));
    cluster.rejects = Some(|write| write.resource() == PublishedResource::ServiceStatus);
    cluster.start();
    assert_eq!(published(&cluster, "shop"), ["10.0.0.1 10.0.0.2"]);
    assert_eq!(events(&cluster), ["FailedToImportEndpoints"]);
    cluster.put_object(Object::Slice(slice("postgres-a", &["10.0.0.1"])));
    cluster.run();
    assert_eq!(published(&cluster, "shop"), ["10.0.0.1"]);
}

#[test]
fn outdated_condition_is_a_conflict_and_read_again() {
    let mut cluster = cluster_with(Some("shop"));
    cluster.start();
    cluster.clear_log();
    set_consent(&mut cluster, None);
    cluster.hold_watch(WatchedResource::Services);
    // The label arrives only with the live read.
    cluster.api.put_service({
        let mut service = cluster.service(&consumer()).expect("it exists").clone();
        service.labels = objects::labels("other");
        service
    });
    cluster.list(WatchedResource::Slices);
    cluster.run();
    cluster.release_watches();
    cluster.advance(Duration::from_secs(10));
    assert_eq!(condition(&cluster), "False RefNotPermitted");
    let service = cluster.service(&consumer()).expect("it exists");
    assert_eq!(service.labels, objects::labels("other"), "nothing else was written");
}

#[test]
fn lost_response_to_a_condition_is_read_and_not_repeated() {
    for fault in [WriteFault::AppliedNoResponse, WriteFault::DroppedNoResponse] {
        let mut cluster = cluster_with(Some("shop"));
        cluster.write_faults = [WriteFault::None, fault].into();
        cluster.start();
        cluster.advance(Duration::from_secs(60));
        assert_eq!(condition(&cluster), "True Mirrored");
        assert!(cluster.live_reads.contains(&LiveRead::Service(consumer())));
    }
}

/// A list without the source proves nothing (B12): an Event and a condition would say what is wrong.
#[test]
fn missing_source_is_read_before_the_condition_says_so() {
    let mut cluster = cluster_with(Some("shop"));
    cluster.start();
    cluster.remove_object(PublishedResource::Slices, &Key::new("data", "postgres-a"));
    cluster.run();
    cluster.clear_log();
    cluster.list_nothing(WatchedResource::Services);
    change(&mut cluster, &consumer(), |service| service.labels = objects::labels("other"));
    cluster.run();
    assert!(cluster.live_reads.contains(&LiveRead::Service(source())), "{:?}", cluster.live_reads);
    assert_eq!((condition(&cluster).as_str(), events(&cluster)), ("True Mirrored", vec![]));
}
