//! Clusters that do not answer, come back, expire, go, or are replaced.

use endpointd_engine::{Input, SOURCE_RESOURCES, SourceInput};
use endpointd_memory_api::{MemoryApi, NamespaceState};
use endpointd_model::{
    ClusterIp, Family, Key, LiveRead, PublishedResource, Service, Timestamp, WatchSignal,
    WatchedResource,
};
use endpointd_plan::KubeconfigFile;

use super::set::{ClusterSet, EXPORT, HOUR, START, id, key, service, slice};

/// U3: a restart while another cluster does not answer.
#[test]
fn nothing_is_deleted_for_a_cluster_that_was_not_seen() {
    let mut set = ClusterSet::started(&["eu1"]);
    let published = set.published();
    set.restart(&["eu1"]);
    set.home.handle(Input::SourcesListed);
    set.pass(2 * HOUR, &[]);
    assert_eq!((set.state("eu1"), set.sent()), ("Unknown", vec![]));
    assert_eq!(set.published(), published);
    // Local changes go on.
    set.home.put_object(slice("web-a", &["10.0.0.3"]));
    set.run();
    assert_eq!(set.sent(), ["update endpointslices derived"]);
    // When it is seen, and exports no more, it is asked again before anything is deleted.
    set.change("eu1", |api| drop(api.remove(EXPORT, &key())));
    set.list("eu1");
    set.run();
    let read = LiveRead::Source(id("eu1"), Box::new(LiveRead::Object(EXPORT, key())));
    assert_eq!(set.home.live_reads, [read]);
    assert_eq!(set.published(), ["home: 10.0.0.3"]);
}

/// Before all clusters are configured, those that objects name are unknown.
#[test]
fn nothing_is_deleted_before_all_clusters_are_known() {
    let mut set = ClusterSet::started(&["eu1"]);
    set.restart(&[]);
    set.run();
    assert_eq!(set.sent(), [""; 0]);
    set.home.handle(Input::SourcesListed);
    set.run();
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2"]);
}

/// A list that is short, or a watch that is wrong: the cluster still exports.
#[test]
fn an_export_that_only_seems_to_be_gone_is_kept() {
    let mut set = ClusterSet::started(&["eu1"]);
    let published = set.published();
    for signal in [WatchSignal::InitStarted, WatchSignal::InitDone(999.into())] {
        set.source("eu1", SourceInput::Watch(WatchedResource::ServiceExports, signal));
    }
    set.run();
    assert_eq!(set.home.live_reads.len(), 1);
    assert_eq!(set.published(), published);
    assert!(set.sent().iter().all(|line| !line.starts_with("delete")));
}

/// What a lost cluster does not have any more is confirmed when it is in contact again, although no
/// state of it changes what is published.
#[test]
fn a_deletion_that_a_lost_cluster_reports_is_done_when_it_is_in_sync() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    set.disconnect("eu1");
    set.pass(40, &["us1"]);
    assert_eq!(set.state("eu1"), "Lost");
    set.change("eu1", |api| {
        drop(api.remove(PublishedResource::Slices, &Key::new("shop", "web-a")));
    });
    // The watch of slices is there before the others.
    let slices = WatchedResource::Slices;
    set.source("eu1", SourceInput::Watch(slices, WatchSignal::Reconnected));
    set.deliver("eu1");
    assert_eq!((set.state("eu1"), set.home.live_reads.len()), ("Lost", 0));
    set.reconnect("eu1");
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2", "us1: 10.2.0.1 10.2.0.2"]);
}

/// U1: by any wall clock, which may jump, contacts were as long ago as before.
#[test]
fn a_wall_clock_that_jumps_loses_no_cluster() {
    let mut set = ClusterSet::started(&["eu1"]);
    for days in [1, 2, -2] {
        set.jump(days * 24 * HOUR as i64);
        assert_eq!((set.state("eu1"), set.sent()), ("InSync", vec![]), "{days} days");
    }
}

/// The live read of a dead cluster holds no other write of the key up.
#[test]
fn a_cluster_that_does_not_answer_delays_nothing() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    let eu1 = set.home.sources.remove(&id("eu1")).expect("a cluster");
    for signal in [WatchSignal::InitStarted, WatchSignal::InitDone(999.into())] {
        set.source("eu1", SourceInput::Watch(WatchedResource::ServiceExports, signal));
    }
    set.change("us1", |api| api.force(slice("web-a", &["10.2.0.9"])));
    set.deliver("us1");
    let lines = ["eu1: 10.1.0.1 10.1.0.2", "home: 10.0.0.1 10.0.0.2", "us1: 10.2.0.9"];
    assert_eq!(set.published(), lines);
    // It answers, and has no export.
    set.home.sources.insert(id("eu1"), eu1);
    set.change("eu1", |api| drop(api.remove(EXPORT, &key())));
    set.pass(20, &["eu1", "us1"]);
    assert_eq!(set.published(), lines[1..]);
}

/// U0, U1.
#[test]
fn a_lost_cluster_is_demoted_after_five_minutes_and_comes_back_at_once() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    set.disconnect("eu1");
    set.pass(20, &["us1"]);
    assert_eq!(set.state("eu1"), "InSync");
    set.pass(20, &["us1"]);
    assert_eq!((set.state("eu1"), set.sent()), ("Lost", vec![]));
    for _ in 0..10 {
        set.pass(29, &["us1"]);
    }
    assert_eq!(set.state("eu1"), "Demoted");
    assert_eq!(set.published()[0], "eu1: 10.1.0.1! 10.1.0.2!");
    let sent = set.sent();
    assert_eq!(sent[0], "update endpointslices derived");
    assert!(sent[1..].iter().all(|line| line == "update serviceimports/status web"), "{sent:?}");
    set.reconnect("eu1");
    assert_eq!(set.state("eu1"), "InSync");
    assert_eq!(set.published()[0], "eu1: 10.1.0.1 10.1.0.2");
}

/// The lists of a lost cluster, one after the other: it is fresh when the last is complete.
#[test]
fn a_cluster_that_is_listed_again_is_lost_until_its_lists_are_complete() {
    for begins_by_configuration in [true, false] {
        let mut set = ClusterSet::started(&["eu1", "us1"]);
        if begins_by_configuration {
            set.pass(40, &["us1"]);
            set.configure("eu1");
        } else {
            set.disconnect("eu1");
            set.pass(40, &["us1"]);
        }
        assert_eq!(set.state("eu1"), "Lost");
        for resource in SOURCE_RESOURCES {
            set.run();
            assert_eq!(set.state("eu1"), "Lost", "before the list of {}", resource.as_str());
            set.list_one("eu1", resource);
        }
        set.run();
        assert_eq!((set.state("eu1"), set.sent()), ("InSync", vec![]));
    }
}

/// Lists come one after the other: a Service of now and its export of then are not planned together.
#[test]
fn changes_of_a_cluster_wait_for_all_its_lists() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    let before = set.published();
    set.disconnect("eu1");
    set.pass(40, &["us1"]);
    set.change("eu1", |api| {
        let families = vec![Family::V6];
        api.put_service(Service { families, cluster_ip: ClusterIp::Ip(Family::V6), ..service() });
        drop(api.remove(EXPORT, &key()));
    });
    for resource in SOURCE_RESOURCES {
        assert_eq!((set.published(), set.sent()), (before.clone(), vec![]));
        set.list_one("eu1", resource);
        set.run();
    }
    assert_eq!(set.published(), before[1..]);
    // A list that does not end delays changes for a while only.
    set.disconnect("us1");
    set.list_one("us1", WatchedResource::Slices);
    set.change("us1", |api| api.force(slice("web-a", &["10.2.0.9"])));
    set.deliver("us1");
    assert_eq!(set.published(), before[1..]);
    set.pass(31, &["eu1"]);
    assert_eq!(set.published()[1], "us1: 10.2.0.9");
}

/// U1.
#[test]
fn a_link_that_flaps_causes_no_write() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    for _ in 0..20 {
        set.disconnect("eu1");
        for _ in 0..8 {
            set.pass(29, &["us1"]);
        }
        assert_eq!(set.state("eu1"), "Lost");
        set.reconnect("eu1");
        assert_eq!(set.state("eu1"), "InSync");
    }
    assert_eq!(set.sent(), [""; 0]);
}

/// U2.
#[test]
fn if_no_cluster_answers_none_is_demoted() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    set.disconnect("eu1");
    set.disconnect("us1");
    set.pass(HOUR, &[]);
    assert_eq!((set.state("eu1"), set.state("us1")), ("Lost", "Lost"));
    assert_eq!(set.sent(), [""; 0]);
    set.reconnect("us1");
    assert_eq!((set.state("eu1"), set.state("us1")), ("Demoted", "InSync"));
}

#[test]
fn a_lost_cluster_expires_after_a_day() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    set.disconnect("eu1");
    for _ in 0..24 * HOUR / 29 + 4 {
        set.pass(28, &["us1"]);
    }
    assert_eq!(set.state("eu1"), "Expired");
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2", "us1: 10.2.0.1 10.2.0.2"]);
    let clusters = &set.import().expect("others export").status.clusters;
    assert_eq!(*clusters, ["home".into(), "us1".into()]);
}

#[test]
fn a_cluster_without_kubeconfig_is_removed() {
    let mut set = ClusterSet::started(&["eu1"]);
    let since = Timestamp::from_second(START).expect("in range");
    set.source("eu1", SourceInput::Kubeconfig(KubeconfigFile::Missing { since, n_looks: 1 }));
    set.pass(20, &[]);
    assert_eq!((set.state("eu1"), set.sent()), ("InSync", vec![]), "a file may be replaced");
    set.source("eu1", SourceInput::Kubeconfig(KubeconfigFile::Missing { since, n_looks: 2 }));
    set.run();
    assert_eq!(set.state("eu1"), "Removed");
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2"]);
    set.configure("eu1");
    set.list("eu1");
    set.run();
    assert_eq!(set.published(), ["eu1: 10.1.0.1 10.1.0.2", "home: 10.0.0.1 10.0.0.2"]);
}

/// Another cluster under the same name is unknown until it is listed.
#[test]
fn a_replaced_cluster_deletes_nothing_before_it_is_listed() {
    let mut set = ClusterSet::started(&["eu1"]);
    let published = set.published();
    let mut api = MemoryApi::default();
    api.put_namespace("shop", NamespaceState::Active);
    set.home.sources.insert(id("eu1"), api);
    set.source("eu1", SourceInput::Replaced);
    set.pass(HOUR, &["eu1"]);
    assert_eq!((set.state("eu1"), set.sent()), ("Unknown", vec![]));
    assert_eq!(set.published(), published);
    set.list("eu1");
    set.run();
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2"]);
}

/// resourceVersions of another cluster that go backwards void only what is known of it.
#[test]
fn a_cluster_that_was_restored_is_listed_again() {
    let mut set = ClusterSet::started(&["eu1"]);
    let published = set.published();
    for _ in 0..2 {
        for signal in [WatchSignal::InitStarted, WatchSignal::InitDone(1.into())] {
            set.source("eu1", SourceInput::Watch(WatchedResource::Slices, signal));
        }
    }
    set.run();
    assert_eq!(set.home.source_relists.last(), Some(&(id("eu1"), None)));
    assert_eq!((set.state("eu1"), set.sent()), ("Unknown", vec![]));
    set.list("eu1");
    set.run();
    assert_eq!((set.state("eu1"), set.published()), ("InSync", published));
    assert_eq!(set.sent(), [""; 0]);
}
