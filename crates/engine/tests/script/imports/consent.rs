//! Consent that is given and withdrawn.

use endpointd_engine::Input;
use endpointd_model::{Key, Object, ResourceVersion, WatchSignal, WatchedResource};

use super::pair::{
    cluster_with, condition, consumer, grant, pair, published, sent, service, set_consent, slice,
    source,
};

#[test]
fn withdrawn_consent_goes_before_other_work() {
    let mut cluster = pair();
    for n in 0..20 {
        let key = Key::new("data", format!("user-{n}"));
        cluster.put_service(service(&key, Some("data/postgres"), None));
    }
    cluster.run();
    cluster.clear_log();
    let mut ports = slice("postgres-a", &["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    ports.meta.labels = ports.meta.labels.clone();
    cluster.put_object(Object::Slice(ports));
    cluster.deliver();
    set_consent(&mut cluster, None);
    cluster.deliver();
    cluster.step_until_sent(1);
    assert_eq!(sent(&cluster)[0], "delete endpointslices", "{:?}", cluster.sent);
    cluster.run();
    assert_eq!(published(&cluster, "shop"), [""; 0]);
    assert_eq!(condition(&cluster), "False RefNotPermitted");
    set_consent(&mut cluster, Some("*"));
    cluster.run();
    assert_eq!(published(&cluster, "shop"), ["10.0.0.1 10.0.0.2 10.0.0.3"]);
    assert_eq!(condition(&cluster), "True Mirrored");
}

#[test]
fn without_consent_the_status_does_not_tell_whether_the_source_exists() {
    let told = |remove: bool| {
        let mut cluster = cluster_with(None);
        if remove {
            cluster.remove_service(&source());
        }
        cluster.start();
        let service = cluster.service(&consumer()).expect("it exists").clone();
        let cross = service.cross_namespace.expect("it has a condition");
        let events: Vec<String> =
            cluster.event_records.iter().map(|one| one.message.clone()).collect();
        (published(&cluster, "shop"), cross.condition.expect("it has one").message, events)
    };
    assert_eq!(told(false), told(true));
    assert_eq!(told(true).0, [""; 0]);
}

#[test]
fn grant_permits_and_its_deletion_forbids() {
    let mut cluster = cluster_with(None);
    cluster.start();
    assert_eq!(condition(&cluster), "False RefNotPermitted");
    cluster.api.put_grant(grant("other"));
    cluster.run();
    assert_eq!(published(&cluster, "shop"), [""; 0], "it is for another namespace");
    cluster.api.put_grant(grant("shop"));
    cluster.run();
    assert_eq!(published(&cluster, "shop"), ["10.0.0.1 10.0.0.2"]);
    cluster.clear_log();
    cluster.api.remove_grant(&grant("shop").key());
    cluster.run();
    assert_eq!(sent(&cluster), ["delete endpointslices", "update services/status"]);
    assert_eq!(condition(&cluster), "False RefNotPermitted");
}

#[test]
fn grants_end_when_they_are_not_served_any_more() {
    let mut cluster = cluster_with(None);
    cluster.api.put_grant(grant("shop"));
    cluster.start();
    assert_eq!(condition(&cluster), "True Mirrored");
    let resource = WatchedResource::ReferenceGrants;
    cluster.hold_watch(resource);
    cluster.handle(Input::Watch(resource, WatchSignal::InitStarted));
    cluster.handle(Input::Watch(resource, WatchSignal::InitDone(ResourceVersion::NONE)));
    cluster.run();
    assert_eq!(published(&cluster, "shop"), [""; 0]);
    cluster.list(resource);
    cluster.run();
    assert_eq!(published(&cluster, "shop"), ["10.0.0.1 10.0.0.2"], "they are served again");
}
