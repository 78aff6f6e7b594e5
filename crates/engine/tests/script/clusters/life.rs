//! The life of exports and imports while all clusters answer.

use endpointd_engine::{ImportedCounts, Input, Settings};
use endpointd_memory_api::{MemoryApi, NamespaceState};
use endpointd_model::{
    ClusterIp, Key, MultiClusterObject, MultiClusterResource, Object, PublishedResource, Service,
    ServiceImport, WatchedResource, derived_name,
};

use super::set::{ClusterSet, EXPORT, key, meta, service, slice};

#[test]
fn exports_of_all_clusters_are_one_import() {
    let mut set = ClusterSet::new(&["eu1"]);
    set.start(&["eu1"]);
    set.list("eu1");
    set.run();
    let import = set.import().expect("it is created");
    assert_eq!(import.status.clusters, ["eu1".into(), "home".into()]);
    assert_eq!(import.spec.ips.len(), 1, "{import:?}");
    assert_eq!(set.published(), ["eu1: 10.1.0.1 10.1.0.2", "home: 10.0.0.1 10.0.0.2"]);
    let export = set.home.api.exports.get(&key()).expect("it exists");
    let ready = export.conditions.iter().find(|one| one.condition_type == "Ready".into());
    assert_eq!(ready.map(|one| one.status.as_str()), Some("True"));
    set.clear_log();
    set.restart(&["eu1"]);
    set.list("eu1");
    set.home.handle(Input::SourcesListed);
    set.run();
    assert_eq!(set.sent(), [""; 0], "a restart writes nothing");
}

#[test]
fn a_change_elsewhere_is_one_write_here() {
    let mut set = ClusterSet::started(&["eu1", "us1"]);
    set.change("eu1", |api| api.force(slice("web-a", &["10.1.0.1!", "10.1.0.2"])));
    set.deliver("eu1");
    assert_eq!(set.sent(), ["update endpointslices derived"]);
    assert_eq!(set.published()[0], "eu1: 10.1.0.1! 10.1.0.2");
}

/// Feature off: nothing of it is watched or written.
#[test]
fn other_controllers_watch_nothing_of_it() {
    let engine = endpointd_engine::Engine::new(Settings::default());
    assert_eq!(engine.watched_resources(), WatchedResource::DEFAULT);
}

/// For metrics: what is imported of each cluster, and how many imports have conflicts.
#[test]
fn imported_endpoints_and_conflicts_are_counted() {
    let mut set = ClusterSet::started(&["eu1"]);
    let counts = |set: &ClusterSet| {
        let status = set.home.report();
        let conflicts: usize = status.import_conflicts.iter().map(|(_, n)| n).sum();
        (status.sources[0].endpoints, conflicts)
    };
    assert_eq!(counts(&set), (ImportedCounts { n: 2, n_ready: 2 }, 0));
    set.change("eu1", |api| {
        api.force(slice("web-a", &["10.1.0.1!", "10.1.0.2"]));
        api.put_service(Service { cluster_ip: ClusterIp::Headless, ..service() });
    });
    set.deliver("eu1");
    assert_eq!(counts(&set), (ImportedCounts { n: 2, n_ready: 1 }, 1), "{:?}", set.sent());
    set.change("eu1", |api| drop(api.remove(EXPORT, &key())));
    set.deliver("eu1");
    assert_eq!(counts(&set), (ImportedCounts::default(), 0));
}

/// M12, M2.
#[test]
fn the_last_export_takes_everything_with_it() {
    let mut set = ClusterSet::started(&["eu1"]);
    set.change("eu1", |api| drop(api.remove(EXPORT, &key())));
    set.deliver("eu1");
    assert_eq!(set.published(), ["home: 10.0.0.1 10.0.0.2"]);
    set.clear_log();
    set.home.remove_object(EXPORT, &key());
    set.run();
    set.run();
    assert_eq!(set.published(), [""; 0]);
    assert_eq!(
        set.sent(),
        ["delete endpointslices derived", "delete services derived", "delete serviceimports web"]
    );
    assert!(set.import().is_none());
}

/// M12, M2: what waits for a write is planned, in whichever order the watch and the response report it.
#[test]
fn responses_after_their_events_stop_nothing() {
    let mut set = ClusterSet::new(&["eu1"]);
    set.home.responses_last = true;
    set.start(&["eu1"]);
    set.list("eu1");
    set.home.handle(Input::SourcesListed);
    set.run();
    assert_eq!(set.published(), ["eu1: 10.1.0.1 10.1.0.2", "home: 10.0.0.1 10.0.0.2"]);
    let clusters = set.import().expect("it is created").status.clusters.clone();
    assert_eq!(clusters, ["eu1".into(), "home".into()]);
    set.change("eu1", |api| drop(api.remove(EXPORT, &key())));
    set.home.remove_object(EXPORT, &key());
    set.deliver("eu1");
    set.run();
    assert_eq!(set.published(), [""; 0]);
    assert!(set.import().is_none(), "{:?}", set.sent());
}

/// M14.
#[test]
fn imports_of_somebody_else_are_left_alone() {
    let mut set = ClusterSet::new(&["eu1"]);
    let import = ServiceImport { meta: meta("web"), ..ServiceImport::default() };
    set.home.put_object(Object::MultiCluster(MultiClusterObject::Import(import)));
    set.start(&["eu1"]);
    set.list("eu1");
    set.run();
    assert_eq!(set.sent(), ["update serviceexports/status web"]);
    assert_eq!(set.published(), [""; 0]);
}

/// M13.
#[test]
fn an_import_waits_for_its_namespace() {
    let mut set = ClusterSet::new(&["eu1"]);
    set.home.api = MemoryApi::default();
    set.start(&["eu1"]);
    set.list("eu1");
    set.run();
    assert_eq!(set.sent(), [""; 0]);
    set.home.api.put_namespace("shop", NamespaceState::Active);
    set.run();
    assert_eq!(set.published(), ["eu1: 10.1.0.1 10.1.0.2"]);
}

/// A derived Service that somebody deletes is created again.
#[test]
fn deleted_objects_are_created_again() {
    let mut set = ClusterSet::started(&["eu1"]);
    let derived = Key::new("shop", derived_name(&key()));
    let resource = PublishedResource::MultiCluster(MultiClusterResource::Derived);
    set.home.remove_object(resource, &derived);
    set.run();
    assert!(set.home.object(resource, &derived).is_some(), "{:?}", set.sent());
    let first = set
        .home
        .slices()
        .iter()
        .map(|one| one.meta.key())
        .find(|key| key.name.starts_with("derived-"));
    set.home.remove_object(PublishedResource::Slices, &first.expect("there are copies"));
    set.run();
    assert_eq!(set.published(), ["eu1: 10.1.0.1 10.1.0.2", "home: 10.0.0.1 10.0.0.2"]);
}
