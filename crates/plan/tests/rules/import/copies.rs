//! What the copies contain, and which slices are copies (N4 to N8).

use endpointd_model::{Annotations, EndpointSlice, Hints, Key, Labels, OwnerRef, Uid, names};
use endpointd_plan::ImportPlan;
use expect_test::expect;

use super::world::{pair, set};

#[test]
fn endpoints_of_the_source_are_copied() {
    let world = pair().check(expect![[r#"
        Mirrored: 2 endpoints in 1 slice from data/postgres
        create endpointslices db-* IPv4 pg:5432/TCP
          10.0.0.1 ready on=n1 in=za
          10.0.0.2 ready on=n1 in=zb"#]]);
    let EndpointSlice { meta, endpoints, .. } = world.copy();
    assert_eq!(endpoints[0].target_ref.as_ref().unwrap().namespace.as_ref(), "data");
    let labels: Vec<_> = meta.labels.iter().map(|(key, value)| (&**key, &**value)).collect();
    let managed_by = "endpointslice.kubernetes.io/managed-by";
    assert_eq!(labels, [(managed_by, "endpointd-mirror"), ("kubernetes.io/service-name", "db")]);
    assert_eq!(meta.owners[0].uid, Uid::from("uid-of-shop/db"));
}

#[test]
fn changes_of_the_source_follow() {
    let world = pair().applied();
    let world = world.then("slice data/postgres-1 of=postgres port=pg:5432 10.0.0.1:za! 10.0.0.3");
    let world = world.check(expect![[r#"
        Mirrored: 2 endpoints in 1 slice from data/postgres
        update endpointslices db-hdvtnh2swz IPv4 pg:5432/TCP
          10.0.0.1 not-ready on=n1 in=za
          10.0.0.3 ready on=n1"#]]);
    world.then("gone data/postgres-1").check(expect![[r#"
        Mirrored: 0 endpoints in 0 slices from data/postgres
        delete endpointslices db-hdvtnh2swz"#]]);
}

/// N4.
#[test]
fn slices_of_any_manager_are_copied() {
    for manager in ["endpointslice-controller.k8s.io", "my-operator"] {
        let slice = format!(
            "slice data/postgres-1 of=postgres by={manager} port=pg:5432 10.0.0.1 10.0.0.2"
        );
        let plan = pair().then(&slice).plan();
        assert_eq!(plan.state.to_string(), "2 endpoints in 1 slice from data/postgres");
    }
}

#[test]
fn a_copy_of_a_copy_is_refused() {
    let world = pair().then("service data/postgres from=other/pg to=shop port=pg:5432");
    assert_eq!(world.reason(), "ChainNotAllowed");
    // A Service with a selector publishes its own pods, whatever it asks for.
    let world = world.then("service data/postgres selector=pg from=o/pg to=shop port=pg:5432");
    assert_eq!(world.reason(), "Mirrored");
    let world =
        world.then("slice data/postgres-1 of=postgres by=endpointd-mirror port=pg:5432 10.0.0.1");
    assert_eq!(world.plan().state.to_string(), "0 endpoints in 0 slices from data/postgres");
}

/// N5.
#[test]
fn hints_are_decided_by_the_consumer() {
    let world =
        pair().then("service shop/db from=data/postgres prefer=PreferSameZone port=pg:5432");
    let world = world.check(expect![[r#"
        Mirrored: 2 endpoints in 1 slice from data/postgres
        create endpointslices db-* IPv4 pg:5432/TCP
          10.0.0.1 ready on=n1 in=za for=za
          10.0.0.2 ready on=n1 in=zb for=zb"#]]);
    world.then("service shop/db from=data/postgres prefer=PreferSameNode port=pg:5432").check(
        expect![[r#"
            Mirrored: 2 endpoints in 1 slice from data/postgres
            update endpointslices db-hdvtnh2swz IPv4 pg:5432/TCP
              10.0.0.1 ready on=n1 in=za for=za,n1
              10.0.0.2 ready on=n1 in=zb for=zb,n1"#]],
    );
}

/// N5, by the annotation `service.kubernetes.io/topology-mode` of the consumer.
#[test]
fn topology_hints_are_those_of_the_consumer() {
    let world = pair().then("zones za zb");
    let world = world.then("service shop/db from=data/postgres auto port=pg:5432");
    world.check(expect![[r#"
        Mirrored: 2 endpoints in 1 slice from data/postgres
        create endpointslices db-* IPv4 pg:5432/TCP
          10.0.0.1 ready on=n1 in=za for=za
          10.0.0.2 ready on=n1 in=zb for=zb
        Normal TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4"#]]);
}

#[test]
fn the_trigger_time_is_copied_and_causes_no_write() {
    let at = |time: &str| {
        format!("slice data/postgres-1 of=postgres since={time} port=pg:5432 10.0.0.1")
    };
    let world = pair().then(&at("2026-01-01T00:00:00Z")).applied();
    let time = |annotations: &Annotations| annotations.get(names::TRIGGER_TIME).cloned();
    assert_eq!(time(&world.copy().meta.annotations), Some("2026-01-01T00:00:00Z".into()));
    let world = world.then(&at("2026-01-01T00:00:09Z"));
    assert_eq!(world.plan().plan.writes, []);
}

/// N6.
#[test]
fn ports_are_matched_by_name_then_number_then_if_there_is_one() {
    let of = |consumer: &str, source: &str| {
        let world = pair().then(&format!(
            "service shop/db from=data/postgres {consumer}
             service data/postgres to=shop {source}
             slice data/postgres-1 of=postgres port=pg:5432 port=web:8080 port=dns:53/UDP 10.0.0.1"
        ));
        let ImportPlan { plan, state } = world.plan();
        let ports = plan.to_string().lines().next().unwrap_or("").to_owned();
        let ports = ports.split_whitespace().nth(4).unwrap_or("-").to_owned();
        (ports, state.to_string())
    };
    let two = "port=pg:5432 port=web:80";
    let all = "1 endpoint in 1 slice from data/postgres".to_owned();
    assert_eq!(of("port=pg:1", two), ("pg:5432/TCP".into(), all.clone()));
    assert_eq!(of("port=sql:5432", two), ("sql:5432/TCP".into(), all.clone()));
    assert_eq!(
        of("port=http:80 port=pg:1", two),
        ("http:8080/TCP,pg:5432/TCP".into(), all.clone())
    );
    assert_eq!(of("port=any:1", "port=web:80"), ("any:8080/TCP".into(), all.clone()));
    let nothing = "data/postgres has nothing for port".to_owned();
    assert_eq!(of("port=any:1", two), ("-".into(), format!("{nothing} any")));
    assert_eq!(of("port=any:1/UDP", "port=web:80"), ("-".into(), format!("{nothing} any")));
    assert_eq!(of("port=dns:80", "port=dns:53/UDP"), ("-".into(), format!("{nothing} dns")));
    // What has a counterpart is published all the same.
    let some = of("port=pg:1 port=a:2 port=b:3", two);
    assert_eq!(some, ("pg:5432/TCP".into(), format!("{nothing}s a, b")));
}

#[test]
fn a_slice_without_a_wanted_port_is_not_copied() {
    let world = pair().then("slice data/postgres-2 of=postgres port=other:1 10.0.0.9");
    assert_eq!(world.plan().state.to_string(), "2 endpoints in 1 slice from data/postgres");
}

/// N7.
#[test]
fn only_families_of_the_consumer_are_copied() {
    let world = pair().then(
        "slice data/postgres-2 of=postgres IPv6 port=pg:5432 fd00::1
         slice data/postgres-3 of=postgres FQDN port=pg:5432 example.com",
    );
    assert_eq!(world.plan().state.to_string(), "2 endpoints in 1 slice from data/postgres");
    let world = world.then("service shop/db from=data/postgres dual port=pg:5432");
    assert_eq!(world.plan().state.to_string(), "3 endpoints in 2 slices from data/postgres");
}

#[test]
fn a_headless_consumer_has_the_label_and_needs_no_ports() {
    let world = pair().then("service shop/db from=data/postgres headless").check(expect![[r#"
        Mirrored: 2 endpoints in 1 slice from data/postgres
        create endpointslices db-* IPv4 no ports
          10.0.0.1 ready on=n1 in=za
          10.0.0.2 ready on=n1 in=zb"#]]);
    assert!(world.copy().meta.labels.has(names::HEADLESS, ""));
}

/// N8.
#[test]
fn a_name_is_derived_from_the_source_slice_and_never_foreign() {
    let name = pair().applied().copy().meta.name.clone();
    assert_eq!(name.as_ref(), "db-hdvtnh2swz");
    let first = "slice shop/db-hdvtnh2swz of=db by=me port=pg:1 192.0.2.1";
    let second = "slice shop/db-7wrxjj6p4z of=db by=me port=pg:1 192.0.2.1";
    let world = pair().then(first).then(second).applied();
    let names: Vec<&str> = world.slices.keys().map(|key| key.name.as_ref()).collect();
    assert_eq!(names, ["postgres-1", "db-7wrxjj6p4z", "db-hdvtnh2swz", "db-vjp4dk9l8z"]);
    assert_eq!(world.slices[&Key::new("shop", "db-hdvtnh2swz")].endpoints.len(), 1, "untouched");
    // When the names become free, the copy keeps its own.
    let world = world.then("gone shop/db-hdvtnh2swz\ngone shop/db-7wrxjj6p4z");
    assert_eq!(world.plan().plan.writes, []);
}

/// A tenant who edits a copy gains nothing by it.
#[test]
fn edited_copies_are_repaired() {
    let world = pair().applied();
    let edited = |edit: &dyn Fn(&mut EndpointSlice)| {
        let mut world = world.clone();
        let copy = world.slices.get_mut(&Key::new("shop", "db-hdvtnh2swz")).unwrap();
        edit(copy);
        let text = world.plan().plan.to_string();
        assert!(text.starts_with("update endpointslices db-hdvtnh2swz"), "{text}");
        world.applied();
    };
    edited(&|slice| slice.meta.labels = Labels::default());
    edited(&|slice| set(&mut slice.meta.labels, names::MANAGED_BY, "me"));
    edited(&|slice| set(&mut slice.meta.labels, names::SERVICE_NAME, "other"));
    edited(&|slice| set(&mut slice.meta.labels, "more", "labels"));
    edited(&|slice| slice.meta.owners.clear());
    edited(&|slice| slice.meta.owners.push(OwnerRef::default()));
    edited(&|slice| slice.endpoints[0].addresses = vec!["10.9.9.9".into()]);
    edited(&|slice| slice.ports.clear());
    edited(&|slice| slice.endpoints[0].hints = Some(Hints::default()));
}

/// It says itself what it was copied from.
#[test]
fn an_edited_copy_is_known_without_its_source() {
    let mut pair = pair().applied();
    let mut edited = pair.copy().clone();
    assert!(edited.meta.annotations.has(names::SOURCE_SLICE, "data/postgres-1"));
    set(&mut edited.meta.labels, names::MANAGED_BY, "somebody");
    let mut renamed = edited.clone();
    renamed.meta.name = "db-by-hand".into();
    for slice in [edited, renamed] {
        pair.slices.insert(slice.meta.key(), slice);
    }
    let pair = pair.then("gone data/postgres-1").applied();
    assert_eq!(&*pair.copy().meta.name, "db-by-hand", "the name must be that of a copy, too");
}

/// The API server would reject the whole copy.
#[test]
fn forbidden_addresses_are_left_out() {
    let world = pair()
        .then("slice data/postgres-1 of=postgres port=pg:5432 127.0.0.1 10.0.0.1 169.254.1.1");
    assert_eq!(world.plan().state.to_string(), "1 endpoint in 1 slice from data/postgres");
}

#[test]
fn a_consumer_that_is_being_deleted_gets_no_new_slices() {
    let world = pair().then("service shop/db deleting from=data/postgres port=pg:5432");
    assert_eq!(world.plan().plan.writes, []);
}

/// The simulator, seed 559: the endpointslice controller had adopted it.
#[test]
fn a_copy_with_the_label_of_another_controller_is_its_own_with_a_selector() {
    let mut pair = pair().applied();
    let copy = pair.slices.get_mut(&Key::new("shop", "db-hdvtnh2swz")).unwrap();
    set(&mut copy.meta.labels, names::MANAGED_BY, names::MANAGED_BY_SLICES);
    let pair = pair.then("service shop/db from=data/postgres selector=db port=pg:5432").applied();
    assert_eq!(pair.reason(), "HasSelector");
    assert!(pair.copy().meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_SLICES));
}
