//! The import, its derived Service, and the order of writes (V, M4–M6, M12, M14).

use endpointd_model::{
    Family, Key, MultiClusterObject, Object, OwnerRef, Uid, derived_name, names,
};
use endpointd_plan::{Adoption, MultiClusterPlan};
use expect_test::expect;

use super::world::{World, key, two, world};

/// M12.
#[test]
fn the_import_comes_first_and_its_status_last() {
    two().check(expect![[r#"
        update serviceexports/status web
          Valid=True/Valid: The Service can be exported.
          Ready=True/Ready: Other clusters can import the Service.
          Conflict=False/NoConflicts: No other export disagrees.
        create serviceimports web ClusterSetIP http:80/TCP
        create services derived-isrlchlhrq http:80/TCP IPv4
        create endpointslices eu1:web-b IPv4 http:8080/TCP
          10.1.0.1 ready host=pod in=zb
        create endpointslices home:web-a IPv4 http:8080/TCP
          10.0.0.1 ready host=pod on=n1 in=za
        update serviceimports web ClusterSetIP http:80/TCP IPv4 10.96.0.1
        update serviceimports/status web Present [eu1 home]
          Ready=True/Ready: Clients can use it."#]]);
}

/// M5: the name that the reference implementation and Cilium use.
#[test]
fn the_derived_service_has_the_reference_name() {
    assert_eq!(&*derived_name(&Key::new("my-ns", "my-svc")), "derived-a2v4k9sqn6");
    let world = two().settled();
    let annotation = world.import().meta.annotations.get(names::DERIVED_SERVICE).cloned();
    assert_eq!(annotation, world.derived().map(|service| service.meta.name.clone()));
}

/// M5.
#[test]
fn the_derived_service_belongs_to_the_import_and_blocks_no_deletion() {
    let world = two().settled();
    let service = world.derived().expect("it is not headless");
    let owner = OwnerRef {
        api_version: "multicluster.x-k8s.io/v1beta1".into(),
        kind: "ServiceImport".into(),
        name: "web".into(),
        uid: world.import().meta.uid.clone(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    assert_eq!(service.meta.owners, [owner]);
    assert!(service.meta.labels.has(names::IMPORT_NAME, "web"));
    assert!(service.meta.labels.has(names::APP_MANAGED_BY, "endpointd"));
    // What somebody adds stays, what somebody breaks is repaired.
    let edited = world.clone().edit(|state| {
        let service = state.derived.values_mut().next().expect("one");
        service.meta.labels = [("theirs", "x"), (names::IMPORT_NAME, "web")].into_iter().collect();
        service.ports.clear();
    });
    let repaired = edited.settled();
    let service = repaired.derived().expect("still there");
    assert!(service.meta.labels.has("theirs", "x") && service.ports.len() == 1);
    assert!(service.meta.labels.has(names::APP_MANAGED_BY, "endpointd"));
}

/// V1, V3.
#[test]
fn addresses_and_families_are_written_together_and_stay() {
    let world = two().settled();
    let spec = &world.import().spec;
    assert_eq!((spec.ips.len(), spec.families.len()), (1, 1));
    let ips = spec.ips.clone();
    let world = world.then("home service port=http:80 port=grpc:90").settled();
    assert_eq!(world.import().spec.ips, ips, "V1: stable");
}

#[test]
fn a_second_family_is_added_and_removed_while_the_first_address_stays() {
    let dual = |families: &str| {
        format!(
            "eu1 service port=http:80 families={families}
                 home service port=http:80 families={families}"
        )
    };
    let world = two().settled();
    let first = world.import().spec.ips.clone();
    let world = world.then(&dual("4,6")).settled();
    assert_eq!(world.import().spec.families, [Family::V4, Family::V6]);
    assert_eq!(world.import().spec.ips[..1], first);
    // The first family cannot change, so another order leaves it.
    let world = world.then(&dual("6,4")).settled();
    assert_eq!(world.import().spec.families, [Family::V4, Family::V6]);
    let world = world.then(&dual("4")).settled();
    assert_eq!(world.import().spec.ips, first);
    // Without its first family the Service must be created again.
    let world = world.then(&dual("6")).settled();
    assert_eq!(world.import().spec.families, [Family::V6]);
}

/// V2, M6.
#[test]
fn a_headless_import_has_no_address_and_no_derived_service() {
    let headless = "eu1 service headless port=http:80\n home service headless port=http:80";
    let world = two().then(headless).settled();
    assert!(world.derived().is_none() && world.import().spec.ips.is_empty());
    assert_eq!(world.import().spec.families, [Family::V4], "clients wait for families");
    assert!(!world.import().meta.annotations.contains_key(names::DERIVED_SERVICE));
    let [slice] = world.copies("eu1")[..] else { panic!("one slice") };
    assert!(slice.meta.labels.has(names::HEADLESS, ""));
    assert!(slice.meta.labels.has(names::SERVICE_NAME, &derived_name(&key())));
}

/// M6: no slice is deleted for a change of the type, and the old Service goes last.
#[test]
fn a_change_of_the_type_replaces_the_service_and_keeps_the_slices() {
    let mut world = two().settled().then("eu1 service headless port=http:80");
    let writes = world.settle();
    let deletes: Vec<&str> = writes.lines().filter(|line| line.starts_with("delete")).collect();
    assert_eq!(deletes, [format!("delete services {}", derived_name(&key()))]);
    let last_update = writes.rfind("update endpointslices").expect("they get the label");
    assert!(last_update < writes.find("delete").expect("there is one"));
    let mut world = world.then("eu1 service port=http:80");
    assert!(!world.settle().contains("delete"));
    assert!(world.derived().is_some());
}

/// M6: until the slices have their label, clients use the old Service.
#[test]
fn the_old_service_is_deleted_when_everything_else_is_written() {
    let mut world = two().settled().then("eu1 service headless port=http:80");
    let is_deletion = |plan: &MultiClusterPlan| {
        plan.to_string().contains(&format!("delete services {}", derived_name(&key())))
    };
    while !is_deletion(&world.plan()) {
        let writes = world.plan().writes;
        assert!(!writes.is_empty(), "it is never deleted");
        writes.iter().for_each(|write| world.apply(write));
    }
    assert_eq!(world.plan().writes.len(), 1, "nothing else is left to write");
}

/// I4: the import never disappears while somebody exports.
#[test]
fn the_import_stays_when_the_oldest_export_goes() {
    let mut world = two().settled().then("eu1 gone export");
    let writes = world.settle();
    assert!(!writes.contains("delete serviceimports") && !writes.contains("delete services"));
}

fn foreign() -> World {
    two().settled().edit(|state| {
        // As another implementation leaves it.
        let meta = &mut state.imports.get_mut(&key()).expect("set").meta;
        meta.labels = [("theirs", "x")].into_iter().collect();
        meta.uid = Uid::from("theirs");
        state.home.slices.retain(|_, slice| !slice.meta.labels.contains_key(names::IMPORT_NAME));
        let service = &mut state.derived.values_mut().next().expect("one").meta;
        service.labels = [(names::IMPORT_NAME, "web")].into_iter().collect();
        service.owners.clear();
    })
}

/// M14.
#[test]
fn the_import_of_another_implementation_is_untouched() {
    let before = foreign();
    let after = before.clone().settled();
    assert_eq!(after.state.imports, before.state.imports);
    assert_eq!(after.state.derived, before.state.derived);
    assert_eq!(after.state.home.slices, before.state.home.slices);
    let says = "False/Failed: ServiceImport shop/web is managed by somebody else.";
    assert_eq!(after.export_says("Ready"), says);
}

/// M14: the derived Service has the same name, so the address stays.
#[test]
fn an_import_is_adopted_with_its_address() {
    let before = foreign();
    let ips = before.import().spec.ips.clone();
    let after = before.edit(|state| state.settings.adoption = Adoption::Adopt).settled();
    assert_eq!(after.import().spec.ips, ips);
    assert!(after.import().meta.labels.has(names::APP_MANAGED_BY, "endpointd"));
    assert_eq!(after.published("eu1"), "10.1.0.1 ready");
}

/// Somebody edited the label of what we made: that alone must not stop traffic.
#[test]
fn our_import_without_its_label_is_repaired() {
    let world = two().settled().edit(|state| {
        state.imports.get_mut(&key()).expect("set").meta.labels =
            endpointd_model::Labels::default();
    });
    let world = world.settled();
    assert!(world.import().meta.labels.has(names::APP_MANAGED_BY, "endpointd"));
    assert_eq!(world.published("eu1"), "10.1.0.1 ready");
}

/// M5.
#[test]
fn a_service_of_somebody_else_with_the_derived_name_is_untouched() {
    let world = two().edit(|state| {
        let mut service = endpointd_model::DerivedService::default();
        service.meta.namespace = "shop".into();
        service.meta.name = derived_name(&key());
        state.derived.insert(service.meta.key(), service);
    });
    let before = world.derived().cloned();
    let world = world.settled();
    assert_eq!(world.derived().cloned(), before);
    let says = world.import_says("Ready");
    assert!(says.starts_with("False/Pending: Service shop/derived-"), "{says}");
    // When everything is unexported, it stays.
    let world = world.then("home gone export\n eu1 gone export").settled();
    assert_eq!(world.derived().cloned(), before);
}

#[test]
fn nothing_is_written_for_an_import_that_is_being_deleted() {
    let world = two().settled().then("eu1 gone slice web-b").edit(|state| {
        let import = state.imports.get_mut(&key()).expect("set");
        import.meta.deleted = Some(super::world::at(900));
    });
    assert_eq!(world.plan().writes, []);
}

/// One cluster is a legal clusterset, and a second one changes no address.
#[test]
fn one_cluster_can_import_from_itself() {
    let world = world(
        "home export 10
         home service port=http:80
         home slice web-a port=http:8080 10.0.0.1:za@n1",
    );
    let world = world.settled();
    assert_eq!(
        (world.clusters(), world.published("home")),
        ("home".into(), "10.0.0.1 ready".into())
    );
}

/// The writes of one plan do not depend on each other: whatever gets through, the end is the same.
#[test]
fn a_part_of_a_plan_leads_to_the_same_end() {
    let end = two().settled();
    let mut waiting = vec![two()];
    while let Some(world) = waiting.pop() {
        for write in world.plan().writes {
            let mut partly = world.clone();
            partly.apply(&write);
            assert_eq!(partly.clone().settled().published("eu1"), end.published("eu1"));
            if !matches!(
                write.object(),
                Some(Object::MultiCluster(MultiClusterObject::ExportStatus(_)))
            ) {
                waiting.push(partly);
            }
        }
    }
}
