//! One Service of many: precedence and conflicts, field by field (C).

use endpointd_model::{Family, ImportType, InternalTrafficPolicy};
use expect_test::expect;

use super::world::{World, two, world};

/// The condition of this cluster's export about disagreements.
fn conflict(world: &World) -> String {
    world.export_says("Conflict")
}

fn ports(world: &World) -> String {
    let ports = world.import().spec.ports.iter();
    ports.map(|port| format!("{}:{}", port.name, port.number)).collect::<Vec<_>>().join(" ")
}

#[test]
fn exports_that_agree_have_no_conflict() {
    assert_eq!(conflict(&two().settled()), "False/NoConflicts: No other export disagrees.");
}

/// C1, C2.
#[test]
fn the_oldest_export_wins_and_all_exports_are_told() {
    let world = two().then("eu1 service headless port=http:80").settled();
    assert_eq!(world.import().spec.import_type, ImportType::Headless);
    assert_eq!(
        conflict(&world),
        "True/TypeConflict: Conflicting type. Using \"Headless\" from oldest service export in \
         \"eu1\". 1/2 clusters disagree."
    );
    let world = world.then("home export 5").settled();
    assert_eq!(world.import().spec.import_type, ImportType::ClusterSetIp);
}

/// C1, ours.
#[test]
fn exports_of_the_same_second_are_ordered_by_cluster() {
    let text = "home export 10\n home service headless port=http:80
        eu1 export 10\n eu1 service port=http:80
        us1 export 10\n us1 service headless port=http:80";
    assert_eq!(world(text).settled().import().spec.import_type, ImportType::ClusterSetIp);
}

/// C4 ports.
#[test]
fn ports_are_united_by_name_then_by_number() {
    let of = |oldest: &str, newer: &str| {
        let text = format!("eu1 service {oldest}\n home service {newer}");
        let world = two().then(&text).settled();
        (ports(&world), conflict(&world).starts_with("True/PortConflict"))
    };
    assert_eq!(of("port=http:80", "port=http:80"), ("http:80".into(), false));
    let union = "http:80 grpc:90".to_owned();
    assert_eq!(of("port=http:80", "port=http:80 port=grpc:90"), (union, true));
    // The name is taken, then the number.
    assert_eq!(of("port=http:80", "port=http:81"), ("http:80".into(), true));
    assert_eq!(of("port=http:80", "port=web:80"), ("http:80".into(), true));
    assert_eq!(of("port=dns:53", "port=dns-udp:53/UDP").0, "dns:53 dns-udp:53");
    assert_eq!(of("port=http:80(http)", "port=http:80(h2c)"), ("http:80".into(), true));
    // An empty name is a name.
    assert_eq!(of("port=80", "port=81"), (":80".into(), true));
}

/// C5: others compare lists.
#[test]
fn another_order_of_ports_is_no_conflict() {
    let world = two().then(
        "eu1 service port=a:1 port=b:2
         home service port=b:2 port=a:1",
    );
    assert_eq!(conflict(&world.settled()), "False/NoConflicts: No other export disagrees.");
}

/// C4: affinity, policy, distribution.
#[test]
fn traffic_fields_are_those_of_the_oldest() {
    let of = |oldest: &str, newer: &str| {
        let text = format!("eu1 service port=http:80 {oldest}\n home service port=http:80 {newer}");
        let world = two().then(&text).settled();
        conflict(&world).split_once(':').map(|(reason, _)| reason.to_owned()).unwrap_or_default()
    };
    assert_eq!(of("", "affinity=60"), "True/SessionAffinityConflict");
    assert_eq!(of("affinity=60", "affinity=61"), "True/SessionAffinityConfigConflict");
    assert_eq!(of("affinity=10800", "affinity=default"), "False/NoConflicts", "three hours");
    assert_eq!(of("local", ""), "True/InternalTrafficPolicyConflict");
    assert_eq!(of("prefer=PreferSameZone", ""), "True/TrafficDistributionConflict");
    assert_eq!(of("local", "local"), "False/NoConflicts");
    let world =
        two().then("eu1 service port=http:80 local affinity=60 prefer=PreferSameNode").settled();
    let derived = world.derived().expect("it is not headless");
    assert_eq!(derived.traffic, world.import().spec.traffic);
    assert_eq!(derived.traffic.internal_policy, InternalTrafficPolicy::Local);
    assert_eq!(derived.traffic.session_affinity.timeout_secs(), Some(60));
    assert_eq!(derived.traffic_distribution, world.import().spec.traffic_distribution);
}

/// C4: the set as a whole.
#[test]
fn exported_labels_are_those_of_the_oldest() {
    let world = two().then("eu1 export 10 label.a=1\n home export 20 label.b=2 anno.c=3").settled();
    let labels = &world.import().meta.labels;
    assert!(labels.has("a", "1") && !labels.contains_key("b"));
    let says = conflict(&world);
    assert!(says.starts_with("True/AnnotationsConflict,LabelsConflict: "), "{says}");
}

/// M10: all reasons, one sentence each.
#[test]
fn several_conflicts_are_told_together() {
    let world = two().then("home service headless port=web:81").settled();
    expect![[r#"True/PortConflict,TypeConflict: Conflicting ports. Using the first definition of each name and number, from oldest service export in "eu1". 1/2 clusters disagree. Conflicting type. Using "ClusterSetIP" from oldest service export in "eu1". 1/2 clusters disagree."#]]
        .assert_eq(&conflict(&world));
}

/// C8.
#[test]
fn families_are_those_that_all_clusters_have() {
    let of = |families: [&str; 3]| {
        let [eu1, home, us1] = families;
        let world = two().then(&format!(
            "eu1 service port=http:80 families={eu1}
             home service port=http:80 families={home}
             us1 export 30
             us1 service port=http:80 families={us1}"
        ));
        let world = world.settled();
        let says = conflict(&world);
        (world.import().spec.families.clone(), says.starts_with("True/IPFamilyConflict"))
    };
    let (v4, v6) = (Family::V4, Family::V6);
    assert_eq!(of(["4", "4", "4"]), (vec![v4], false));
    assert_eq!(of(["6,4", "4,6", "6,4"]), (vec![v6, v4], false), "in the order of the oldest");
    assert_eq!(of(["6,4", "4", "4"]), (vec![v4], false), "no family reaches only some");
    assert_eq!(of(["4", "6", "4"]), (vec![v4], true), "one cluster is passed over");
    assert_eq!(of(["6,4", "4", "6"]), (vec![v4], true));
}

#[test]
fn a_cluster_without_a_common_family_is_left_out() {
    let world = two().then(
        "eu1 service port=http:80 port=other:90 families=6
         eu1 slice web-b IPv6 port=http:8080 fd00::1
         eu1 export 30",
    );
    let world = world.settled();
    assert_eq!(
        (world.published("eu1"), world.published("home")),
        (String::new(), "10.0.0.1 ready".into())
    );
    assert_eq!(ports(&world), "http:80", "nobody serves the other port");
    let report = world.plan().sources.into_iter().find(|one| one.cluster.as_str() == "eu1");
    assert!(report.expect("it exports").is_passed_over);
}

/// C8: what this cluster cannot do.
#[test]
fn a_family_that_this_cluster_refused_is_dropped() {
    let dual = "eu1 service port=http:80 families=4,6\n home service port=http:80 families=4,6";
    let refuse = |world: World, families: &[Family]| {
        let refused = families.iter().copied().collect();
        world.edit(|state| state.refused_families = refused)
    };
    let world = refuse(two().then(dual), &[Family::V6]).settled();
    // V3: others tell the families of the set.
    assert_eq!(world.import().spec.families, [Family::V4]);
    assert_eq!(world.import().spec.ips.len(), 1);
    let world = refuse(world, &[Family::V4, Family::V6]).settled();
    assert!(world.derived().is_none() && world.copies("eu1").is_empty());
    assert_eq!(
        world.import_says("Ready"),
        "False/IPFamilyNotSupported: This cluster has no address family of the exported Services."
    );
}
