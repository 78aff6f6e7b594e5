//! Endpoints of other namespaces (docs/spec.md, section 10). The consumer is `shop/db`, the source
//! `data/postgres`, whose slices somebody else writes.

use std::time::Duration;

use endpointd_engine::{ControllerSettings, Input, Settings};
use endpointd_memory_api::NamespaceState;
use endpointd_model::{
    ClusterIp, Controller, CrossNamespace, Endpoint, EndpointPort, EndpointSlice, Family,
    GrantedFrom, GrantedTo, Key, Labels, LiveRead, Meta, Object, PublishedResource, ReferenceGrant,
    ResourceVersion, Service, SourceReason, Uid, WatchSignal, WatchedResource, Write, names,
};

use crate::cluster::{Cluster, WriteFault};
use crate::objects;

pub fn settings() -> Settings {
    let controllers = vec![ControllerSettings::new(Controller::Import)];
    Settings { controllers, ..Settings::default() }
}

fn consumer() -> Key {
    Key::new("shop", "db")
}

fn source() -> Key {
    Key::new("data", "postgres")
}

pub fn service(key: &Key, from: Option<&str>, to: Option<&str>) -> Service {
    let cross =
        CrossNamespace { from: from.map(Into::into), to: to.map(Into::into), condition: None };
    let is_set = cross != CrossNamespace::default();
    Service {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: Uid::from(format!("uid-{key}").as_str()),
        selector: Labels::default(),
        cluster_ip: ClusterIp::Ip(Family::V4),
        families: vec![Family::V4],
        cross_namespace: is_set.then(|| Box::new(cross)),
        ..objects::service("x")
    }
}

/// A slice of the source; an address with `!` is not ready.
pub fn slice(name: &str, addresses: &[&str]) -> EndpointSlice {
    let endpoint = |address: &&str| {
        let mut endpoint = Endpoint {
            addresses: vec![address.trim_end_matches('!').into()],
            ..Endpoint::default()
        };
        endpoint.conditions.ready = Some(!address.ends_with('!'));
        endpoint
    };
    let labels = [(names::SERVICE_NAME, "postgres"), (names::MANAGED_BY, names::MANAGED_BY_SLICES)];
    EndpointSlice {
        meta: Meta {
            namespace: "data".into(),
            name: name.into(),
            labels: labels.into_iter().collect(),
            ..Meta::default()
        },
        endpoints: addresses.iter().map(endpoint).collect(),
        ports: vec![EndpointPort {
            name: Some("".into()),
            port: Some(80),
            ..EndpointPort::default()
        }],
        ..EndpointSlice::default()
    }
}

pub fn grant(namespace: &str) -> ReferenceGrant {
    let (group, kind) = ("".into(), "Service".into());
    ReferenceGrant {
        namespace: "data".into(),
        name: "shop-may".into(),
        from: vec![GrantedFrom { group, kind, namespace: namespace.into() }],
        to: vec![GrantedTo { group: "".into(), kind: "Service".into(), name: None }],
        ..ReferenceGrant::default()
    }
}

/// Nothing is started yet.
fn cluster_with(to: Option<&str>) -> Cluster {
    let mut cluster = Cluster::new(settings());
    for namespace in ["shop", "data"] {
        cluster.api.namespaces.insert(namespace.into(), NamespaceState::Active);
    }
    cluster.put_service(service(&source(), None, to));
    cluster.put_service(service(&consumer(), Some("data/postgres"), None));
    cluster.put_object(Object::Slice(slice("postgres-a", &["10.0.0.1", "10.0.0.2"])));
    cluster
}

/// A pair at rest.
fn pair() -> Cluster {
    let mut cluster = cluster_with(Some("shop"));
    cluster.start();
    cluster
}

/// Changes a Service as `kubectl apply` does: its status stays.
fn change(cluster: &mut Cluster, key: &Key, change: impl FnOnce(&mut Service)) {
    let mut service = cluster.service(key).expect("the Service exists").clone();
    change(&mut service);
    cluster.put_service(service);
}

fn set_consent(cluster: &mut Cluster, to: Option<&str>) {
    change(cluster, &source(), |service| {
        let cross =
            to.map(|to| CrossNamespace { to: Some(to.into()), ..CrossNamespace::default() });
        service.cross_namespace = cross.map(Box::new);
    });
}

/// The slices of a namespace, each with its addresses.
fn published(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let slices = cluster.slices().into_iter().filter(|one| &*one.meta.namespace == namespace);
    let text = |slice: &EndpointSlice| {
        let addresses = slice.endpoints.iter().map(|one| {
            let mark = if one.is_ready() { "" } else { "!" };
            format!("{}{mark}", one.addresses[0])
        });
        addresses.collect::<Vec<_>>().join(" ")
    };
    slices.map(text).collect()
}

fn condition(cluster: &Cluster) -> String {
    let service = cluster.service(&consumer()).expect("the consumer exists");
    let cross = service.cross_namespace.as_ref();
    let condition = cross.and_then(|cross| cross.condition.as_ref());
    condition.map_or("none".to_owned(), |one| format!("{} {}", one.status.as_str(), one.reason))
}

/// `verb resource` of what was sent.
fn sent(cluster: &Cluster) -> Vec<String> {
    let words = |line: &String| line.rsplit_once(' ').map_or("", |(words, _)| words).to_owned();
    cluster.sent.iter().map(words).collect()
}

fn events(cluster: &Cluster) -> Vec<&'static str> {
    cluster.event_records.iter().map(|one| one.reason.as_str()).collect()
}

#[test]
fn pair_is_published_and_then_told() {
    let cluster = pair();
    assert_eq!(published(&cluster, "shop"), ["10.0.0.1 10.0.0.2"]);
    assert_eq!(sent(&cluster), ["create endpointslices", "update services/status"]);
    assert_eq!(
        (condition(&cluster).as_str(), events(&cluster)),
        ("True Mirrored", vec!["Mirrored"])
    );
    assert_eq!(cluster.report().n_consumers, [(SourceReason::Mirrored, 1)].into());
}

#[test]
fn restart_on_a_pair_at_rest_writes_nothing() {
    let mut cluster = pair();
    cluster.restart_with(settings());
    assert_eq!(cluster.sent, [""; 0]);
}

#[test]
fn change_of_the_source_is_one_write_for_each_consumer() {
    let mut cluster = pair();
    cluster.put_service(service(&Key::new("shop", "db2"), Some("data/postgres"), None));
    cluster.run();
    cluster.clear_log();
    cluster.put_object(Object::Slice(slice("postgres-a", &["10.0.0.1", "10.0.0.2!"])));
    cluster.run();
    assert_eq!(sent(&cluster), ["update endpointslices"; 2]);
    assert_eq!(published(&cluster, "shop"), ["10.0.0.1 10.0.0.2!"; 2]);
    cluster.clear_log();
    let mut annotated = slice("postgres-a", &["10.0.0.1", "10.0.0.2!"]);
    annotated.meta.annotations =
        [(names::TRIGGER_TIME, "2026-01-01T00:00:00Z")].into_iter().collect();
    cluster.put_object(Object::Slice(annotated));
    cluster.run();
    assert_eq!(cluster.sent, [""; 0], "an annotation alone causes no write");
}

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

#[test]
fn edited_copies_are_repaired() {
    let original = pair().slices().into_iter().find(|one| &*one.meta.namespace == "shop").cloned();
    let original = original.expect("a copy");
    let edits: [fn(&mut EndpointSlice); 4] = [
        |slice| slice.meta.labels = slice.meta.labels.with(names::SERVICE_NAME, Some("other")),
        |slice| slice.meta.labels = slice.meta.labels.with(names::MANAGED_BY, None),
        |slice| slice.meta.owners.clear(),
        |slice| slice.endpoints.clear(),
    ];
    for (n, edit) in edits.into_iter().enumerate() {
        for is_restarted in [false, true] {
            let mut cluster = pair();
            let mut edited = original.clone();
            edit(&mut edited);
            cluster.put_object(Object::Slice(edited));
            if is_restarted {
                cluster.restart_with(settings());
            }
            cluster.run();
            let copies: Vec<EndpointSlice> = cluster
                .slices()
                .into_iter()
                .filter(|one| &*one.meta.namespace == "shop")
                .cloned()
                .collect();
            let [copy] = copies.as_slice() else { panic!("edit {n}: {copies:#?}") };
            assert_eq!(copy.meta.labels, original.meta.labels, "edit {n}");
            assert_eq!(copy.meta.owners, original.meta.owners, "edit {n}");
            assert_eq!(copy.endpoints, original.endpoints, "edit {n}");
        }
    }
}

#[test]
fn slices_of_others_are_never_written() {
    let mut cluster = pair();
    let mut foreign = slice("db-by-hand", &["10.9.9.9"]);
    foreign.meta.namespace = "shop".into();
    foreign.meta.labels = [(names::SERVICE_NAME, "db")].into_iter().collect();
    let foreign = cluster.put_object(Object::Slice(foreign));
    cluster.run();
    set_consent(&mut cluster, None);
    cluster.run();
    assert_eq!(cluster.object(PublishedResource::Slices, &foreign.meta().key()), Some(foreign));
}

#[test]
fn deleted_source_is_confirmed_by_a_live_read() {
    let mut cluster = pair();
    cluster.clear_log();
    cluster.list_nothing(WatchedResource::Services);
    // The consumer is missing from the list, too: only its own watch brings it back.
    cluster.list(WatchedResource::Services);
    cluster.run();
    assert_eq!(
        published(&cluster, "shop"),
        ["10.0.0.1 10.0.0.2"],
        "an incomplete list deletes nothing"
    );
    cluster.clear_log();
    cluster.remove_service(&source());
    cluster.run();
    assert!(cluster.live_reads.contains(&LiveRead::Service(source())), "{:?}", cluster.live_reads);
    assert_eq!(published(&cluster, "shop"), [""; 0]);
    assert_eq!(condition(&cluster), "False RefNotPermitted", "the consent went with the source");
    cluster.put_service(service(&source(), None, Some("shop")));
    cluster.run();
    assert_eq!(published(&cluster, "shop"), ["10.0.0.1 10.0.0.2"], "it was created again");
}

#[test]
fn source_with_many_consumers_may_be_deleted_at_once() {
    let mut cluster = pair();
    for n in 0..50 {
        let key = Key::new("shop", format!("db-{n}"));
        cluster.put_service(service(&key, Some("data/postgres"), None));
    }
    cluster.run();
    cluster.advance(Duration::from_secs(1));
    cluster.remove_service(&source());
    cluster.run();
    cluster.advance(Duration::from_secs(5));
    assert_eq!(published(&cluster, "shop"), [""; 0]);
    assert!(!cluster.report().deletion_limiter.is_active, "the watch has reported the deletion");
}

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

#[test]
fn crash_after_any_write_leads_to_the_same_end() {
    for n_writes in 1..=4 {
        let mut cluster = cluster_with(Some("shop"));
        for kind in cluster.engine.watched_resources() {
            cluster.list(kind);
        }
        cluster.put_object(Object::Slice(slice("postgres-b", &["10.0.0.3"])));
        cluster.handle(Input::LeadershipAcquired);
        while cluster.sent.len() < n_writes && cluster.step() {}
        cluster.restart_with(settings());
        assert_eq!(published(&cluster, "shop").len(), 2, "after {n_writes} writes");
        assert_eq!(condition(&cluster), "True Mirrored");
    }
}

#[test]
fn thousand_consumers_of_one_source_do_not_delay_another() {
    let mut cluster = pair();
    for n in 0..1000 {
        let namespace = format!("team-{n:04}");
        cluster.api.namespaces.insert(namespace.as_str().into(), NamespaceState::Active);
        cluster.put_service(service(&Key::new(namespace, "db"), Some("data/postgres"), None));
    }
    set_consent(&mut cluster, Some("*"));
    cluster.put_service(service(&Key::new("data", "other"), None, Some("shop")));
    cluster.put_service(service(&Key::new("shop", "other"), Some("data/other"), None));
    cluster.run();
    cluster.advance(Duration::from_secs(10));
    cluster.clear_log();
    cluster.put_object(Object::Slice(slice("postgres-a", &["10.0.0.7"])));
    let mut other = slice("other-a", &["10.0.1.1"]);
    other.meta.labels = other.meta.labels.with(names::SERVICE_NAME, Some("other"));
    while cluster.deliver() {}
    cluster.put_object(Object::Slice(other));
    cluster.run();
    let n_before = cluster.sent.iter().position(|line| line.contains(" other-"));
    assert!(n_before.is_some_and(|n| n <= 64), "{n_before:?} of {}", cluster.sent.len());
    cluster.advance(Duration::from_secs(2));
    let n_updates = sent(&cluster).iter().filter(|one| *one == "update endpointslices").count();
    assert_eq!(n_updates, 1001, "one write for each consumer");
}

#[test]
fn controller_is_off_unless_it_is_named() {
    let mut cluster = Cluster::new(Settings::default());
    assert!(!cluster.engine.watched_resources().contains(&WatchedResource::ReferenceGrants));
    for namespace in ["shop", "data"] {
        cluster.api.namespaces.insert(namespace.into(), NamespaceState::Active);
    }
    cluster.put_service(service(&source(), None, Some("shop")));
    cluster.put_service(service(&consumer(), Some("data/postgres"), None));
    cluster.put_object(Object::Slice(slice("postgres-a", &["10.0.0.1"])));
    cluster.start();
    assert_eq!(cluster.sent, [""; 0]);
    assert_eq!(cluster.report().n_consumers, [].into());
    let alone = Cluster::new(settings()).engine.watched_resources();
    assert!(
        !alone.contains(&WatchedResource::Pods) && !alone.contains(&WatchedResource::Endpoints)
    );
}

/// All controllers in one process: the source has pods.
#[test]
fn endpoints_of_pods_reach_the_consumer() {
    let mut cluster = Cluster::new(Settings::of_all_controllers());
    cluster.api.namespaces.insert("shop".into(), NamespaceState::Active);
    cluster.put_node(objects::node("n"));
    let to = CrossNamespace { to: Some("shop".into()), ..CrossNamespace::default() };
    let web = Service { cross_namespace: Some(Box::new(to)), ..objects::service("web") };
    cluster.put_service(web);
    cluster.put_service(service(&consumer(), Some("ns/web"), None));
    cluster.put_pod(objects::pod("web-0"));
    cluster.start();
    assert_eq!(published(&cluster, "shop"), ["10.0.0.1"]);
    cluster.change_pod(&Key::new("ns", "web-0"), objects::unready);
    cluster.run();
    assert_eq!(published(&cluster, "shop"), ["10.0.0.1!"]);
    let is_copy_written = |write: &Write| matches!(write, Write::Create(_));
    cluster.rejects = Some(is_copy_written);
    cluster.restart_with(Settings::of_all_controllers());
    assert_eq!(cluster.sent, [""; 0]);
}
