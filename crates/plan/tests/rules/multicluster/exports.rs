//! Which exports count (E, I), and what they are told (M10).

use endpointd_model::names;
use endpointd_plan::ImportNamespace;
use expect_test::expect;

use super::world::{at, key, two, world};

/// E1.
#[test]
fn a_service_without_an_export_of_its_own_contributes_nothing() {
    let world = two().then("eu1 gone export").settled();
    assert_eq!((world.published("eu1"), world.clusters()), (String::new(), "home".into()));
}

/// E2, E6.
#[test]
fn an_export_without_a_service_is_not_valid_until_there_is_one() {
    let world = world("home export 10").check(expect![[r#"
        update serviceexports/status web
          Valid=False/NoService: There is no Service shop/web.
          Ready=False/Pending: The export is not valid.
          Conflict=False/NoConflicts: No other export disagrees."#]]);
    assert!(world.state.imports.is_empty());
    let world = world.then("home service port=http:80").settled();
    assert_eq!(world.export_says("Valid"), "True/Valid: The Service can be exported.");
    assert_eq!(world.export_says("Ready"), "True/Ready: Other clusters can import the Service.");
}

/// E2.
#[test]
fn an_external_name_cannot_be_exported() {
    let world = world("home export 10\n home service external").settled();
    let says = "False/InvalidServiceType: A Service of type ExternalName has no endpoints.";
    assert_eq!(world.export_says("Valid"), says);
    assert!(world.state.imports.is_empty());
}

/// M1: others freeze the import.
#[test]
fn an_invalid_local_export_costs_only_itself() {
    let world = two().settled().then("home gone service\n home gone slice web-a");
    let world = world.then("eu1 slice web-b port=http:8080 10.1.0.9:zb").settled();
    assert_eq!((world.clusters(), world.published("eu1")), ("eu1".into(), "10.1.0.9 ready".into()));
    assert_eq!(world.export_says("Valid"), "False/NoService: There is no Service shop/web.");
}

/// E3, I4.
#[test]
fn the_import_goes_with_the_last_export_and_not_before() {
    let world = two().settled().then("home gone export").settled();
    assert_eq!(world.clusters(), "eu1");
    let world = world.then("eu1 gone export").check(expect![[r#"
        delete endpointslices derived-isrlchlhrq-ljj7cvxv7j
        delete services derived-isrlchlhrq
        delete serviceimports web"#]]);
    assert!(world.state.imports.is_empty() && world.state.derived.is_empty());
    assert_eq!(world.state.home.slices.len(), 1, "the slice of the Service itself stays");
}

#[test]
fn an_export_that_is_being_deleted_exports_nothing() {
    let world = two().settled().edit(|state| {
        let export = state.remotes[0].exports.get_mut(&key()).expect("set");
        export.meta.deleted = Some(at(900));
    });
    assert_eq!(world.settled().clusters(), "home");
}

/// E4, C4, M4.
#[test]
fn only_exported_labels_and_annotations_reach_the_import() {
    let world = two()
        .then("eu1 export 10 label.team=shop label.app.kubernetes.io/name=x anno.note=hi")
        .edit(|state| {
            let home = state.home.exports.get_mut(&key()).expect("set");
            home.meta.labels = [("not", "exported")].into_iter().collect();
        })
        .settled();
    let meta = &world.import().meta;
    let labels = [("team", "shop"), (names::APP_MANAGED_BY, "endpointd")].into_iter().collect();
    assert_eq!(meta.labels, labels);
    assert!(meta.annotations.has("note", "hi"));
    // What is no longer exported goes; what others wrote stays.
    let world = world
        .then("eu1 export 10")
        .edit(|state| {
            let meta = &mut state.imports.get_mut(&key()).expect("set").meta;
            meta.annotations = meta.annotations.with("theirs", Some("stays"));
        })
        .settled();
    let meta = &world.import().meta;
    assert_eq!(meta.labels, [(names::APP_MANAGED_BY, "endpointd")].into_iter().collect());
    assert!(meta.annotations.has("theirs", "stays") && !meta.annotations.contains_key("note"));
}

/// I1: three cases, and a namespace that does not exist.
#[test]
fn a_service_is_imported_wherever_its_namespace_exists() {
    let elsewhere = two().then("home gone export\n home gone service").settled();
    assert_eq!(elsewhere.clusters(), "eu1");
    let only_here = two().then("eu1 gone export").settled();
    assert_eq!(only_here.clusters(), "home");
    assert_eq!(two().settled().clusters(), "eu1 home");
    for namespace in [ImportNamespace::Missing, ImportNamespace::Terminating] {
        let world = two().edit(|state| {
            state.namespaces.insert("shop".into(), namespace);
        });
        assert_eq!(world.plan().writes, [], "{namespace:?}");
    }
}

#[test]
fn an_excluded_namespace_has_no_imports() {
    let exclude = |world: super::world::World| {
        world.edit(|state| {
            state.namespaces.insert("shop".into(), ImportNamespace::Excluded);
        })
    };
    assert!(exclude(two()).settled().state.imports.is_empty());
    let world = exclude(two().settled()).settled();
    assert!(world.state.imports.is_empty() && world.state.derived.is_empty());
}

/// I5, I6, M9.
#[test]
fn the_status_lists_clusters_and_says_whether_there_are_slices() {
    let world = two().settled();
    let status = &world.import().status;
    assert_eq!(status.slice_objects.map(|one| one.as_str()), Some("Present"));
    assert_eq!(world.import_says("Ready"), "True/Ready: Clients can use it.");
    assert_eq!(world.import_says("endpointd/SourcesReachable"), "", "nothing to tell");
    let world = world.then("home gone slice web-a\n eu1 gone slice web-b").settled();
    let status = &world.import().status;
    assert_eq!(status.slice_objects.map(|one| one.as_str()), Some("Absent"));
}

/// The transition time is that of the status, and nothing is written for the time alone.
#[test]
fn conditions_change_on_transitions_only() {
    let world = two().settled().edit(|state| state.now = at(2_000));
    assert_eq!(world.plan().writes, []);
    let since = |world: &super::world::World| {
        let conditions = &world.state.home.exports[&key()].conditions;
        conditions
            .iter()
            .map(|one| one.last_transition.expect("set").as_second())
            .collect::<Vec<_>>()
    };
    assert_eq!(since(&world), [1_000, 1_000, 1_000]);
    let world = world.then("eu1 service headless port=http:80").settled();
    assert_eq!(since(&world), [1_000, 1_000, 2_000], "only Conflict changed");
}

#[test]
fn conditions_of_others_stay() {
    let world = two()
        .edit(|state| {
            let theirs = endpointd_model::Condition {
                condition_type: "example.com/Seen".into(),
                ..endpointd_model::Condition::default()
            };
            state.home.exports.get_mut(&key()).expect("set").conditions.push(theirs);
        })
        .settled();
    assert_eq!(world.export_says("example.com/Seen"), "Unknown/: ");
}
