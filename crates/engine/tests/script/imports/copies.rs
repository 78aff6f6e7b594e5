//! The life of the copies.

use std::time::Duration;

use endpointd_engine::{Input, Settings};
use endpointd_memory_api::NamespaceState;
use endpointd_model::{
    CrossNamespace, EndpointSlice, Key, LiveRead, Object, PublishedResource, Service, SourceReason,
    WatchedResource, Write, names,
};

use super::pair::{
    change, cluster_with, condition, consumer, events, pair, published, sent, service, set_consent,
    settings, slice, source,
};
use crate::cluster::Cluster;
use crate::objects;

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

/// Its source is gone when a process runs again: only the copy itself says what it is.
#[test]
fn copy_edited_while_no_process_runs_is_deleted_without_its_source() {
    for manager in [None, Some(names::MANAGED_BY_SLICES)] {
        let mut cluster = pair();
        let copy = cluster.slices().into_iter().find(|one| &*one.meta.namespace == "shop").cloned();
        let mut edited = copy.expect("a copy");
        edited.meta.labels = edited.meta.labels.with(names::MANAGED_BY, manager);
        cluster.put_object(Object::Slice(edited));
        cluster.remove_object(PublishedResource::Slices, &Key::new("data", "postgres-a"));
        cluster.restart_with(settings());
        cluster.run();
        assert_eq!(published(&cluster, "shop"), [""; 0], "{manager:?}");
    }
}

/// A slice that lost the label of its manager, as a copy of the pair.
fn edited_copy(cluster: &Cluster) -> EndpointSlice {
    let copy = cluster.slices().into_iter().find(|one| &*one.meta.namespace == "shop").cloned();
    let mut edited = copy.expect("a copy");
    edited.meta.labels = edited.meta.labels.with(names::MANAGED_BY, Some("a-user"));
    edited
}

/// Nothing but the copy itself says that it is one.
#[test]
fn edited_copy_is_deleted_when_its_consumer_asks_for_nothing() {
    let mut cluster = pair();
    cluster.put_object(Object::Slice(edited_copy(&cluster)));
    change(&mut cluster, &consumer(), |service| service.cross_namespace = None);
    cluster.restart_with(settings());
    assert_eq!(published(&cluster, "shop"), [""; 0]);
}

/// It could not be decoded when the resource was listed.
#[test]
fn edited_copy_that_appears_is_deleted() {
    let mut cluster = pair();
    let edited = edited_copy(&cluster);
    set_consent(&mut cluster, None);
    cluster.run();
    assert_eq!(published(&cluster, "shop"), [""; 0]);
    cluster.put_object(Object::Slice(edited));
    cluster.run();
    assert_eq!(published(&cluster, "shop"), [""; 0]);
}

/// Publishes both slices of the source, and checks after each step that no endpoint is missing.
fn moved(cluster: &mut Cluster, slices: [(&str, &[&str]); 2]) {
    cluster.clear_log();
    for (name, addresses) in slices {
        cluster.put_object(Object::Slice(slice(name, addresses)));
    }
    while cluster.deliver() {}
    while cluster.step() {
        let all = published(cluster, "shop").join(" ");
        let is_published = |n: &usize| all.split(' ').any(|one| one == format!("10.0.0.{n}"));
        assert_eq!((1..=3).find(|n| !is_published(n)), None, "{all}: {:?}", cluster.sent);
    }
    cluster.run();
    let mut wanted = slices.map(|(_, addresses)| addresses.join(" "));
    wanted.sort();
    let mut all = published(cluster, "shop");
    all.sort();
    assert_eq!(all, wanted);
}

#[test]
fn endpoint_that_moves_between_slices_of_the_source_is_never_missing() {
    let mut cluster = pair();
    cluster.put_object(Object::Slice(slice("postgres-b", &["10.0.0.3"])));
    cluster.run();
    let (one, two, three) = ("10.0.0.1", "10.0.0.2", "10.0.0.3");
    moved(&mut cluster, [("postgres-a", &[one]), ("postgres-b", &[three, two])]);
    assert_eq!(sent(&cluster), ["update endpointslices"; 2], "one write for each slice");
    moved(&mut cluster, [("postgres-a", &[one, three, two]), ("postgres-b", &["10.0.0.4"])]);
    moved(&mut cluster, [("postgres-a", &["10.0.0.4"]), ("postgres-b", &[one, two, three])]);
    moved(&mut cluster, [("postgres-a", &[two, three]), ("postgres-b", &[one])]);
}

/// What moves stays where it is until the other slice can be written; what is gone does not.
#[test]
fn removals_do_not_wait_for_a_refused_slice() {
    let mut cluster = pair();
    cluster.rejects = Some(|write| matches!(write, Write::Create(_)));
    cluster.put_object(Object::Slice(slice("postgres-a", &["10.0.0.3"])));
    cluster.put_object(Object::Slice(slice("postgres-b", &["10.0.0.2"])));
    while cluster.deliver() {}
    cluster.run();
    assert_eq!(published(&cluster, "shop"), ["10.0.0.3 10.0.0.2"]);
    cluster.rejects = None;
    cluster.advance(Duration::from_secs(60));
    let mut all = published(&cluster, "shop");
    all.sort();
    assert_eq!(all, ["10.0.0.2", "10.0.0.3"]);
}

/// The response to the create comes late, and somebody is faster with the delete.
#[test]
fn copy_that_is_gone_meanwhile_is_not_deleted_again() {
    let mut cluster = pair();
    let copy = edited_copy(&cluster).meta.key();
    cluster.clear_log();
    cluster.responses_last = true;
    cluster.put_object(Object::Slice(slice("postgres-b", &["10.0.0.9"])));
    cluster.remove_object(PublishedResource::Slices, &Key::new("data", "postgres-a"));
    while cluster.deliver() {}
    cluster.step_until_sent(1);
    cluster.remove_object(PublishedResource::Slices, &copy);
    cluster.run();
    assert_eq!(published(&cluster, "shop"), ["10.0.0.9"]);
    assert_eq!(sent(&cluster), ["create endpointslices"]);
}
