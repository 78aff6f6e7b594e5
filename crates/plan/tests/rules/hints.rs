//! Hints for the topology annotation and for `trafficDistribution` (docs/spec.md, 4.10 and 5).

use endpointd_plan::{Topology, is_overloaded};
use expect_test::expect;

use crate::fixture::{Fixture, slices};

/// `pods` gives the number of pods per zone, `cores` the CPU cores of each zone's only node.
fn cluster(service: &str, pods: &[(&str, usize)], cores: &[(&str, u32)]) -> Fixture {
    let mut text = format!("service web port=80 {service}");
    for (zone, cores) in cores {
        text += &format!("; node n-{zone} {zone} cpu={cores}");
    }
    let mut n = 0;
    for (zone, count) in pods {
        for _ in 0..*count {
            n += 1;
            text += &format!("; pod web-{n} 10.0.0.{n} ready on=n-{zone}");
        }
    }
    slices(&text)
}

const EVEN: &[(&str, u32)] = &[("za", 4), ("zb", 4)];

#[test]
fn ready_endpoints_are_hinted_in_proportion_to_cpu() {
    cluster("auto", &[("za", 4)], EVEN).check(expect![[r#"
        create endpointslices web-* IPv4 80/TCP
          10.0.0.1 ready on=n-za in=za for=zb
          10.0.0.2 ready on=n-za in=za for=zb
          10.0.0.3 ready on=n-za in=za for=za
          10.0.0.4 ready on=n-za in=za for=za
        Normal TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4"#]]);
}

#[test]
fn valid_hints_stay() {
    cluster("auto", &[("za", 6), ("zb", 6)], EVEN)
        .max(6)
        .applied()
        .then("pod web-x 10.0.0.99 ready on=n-za")
        .check(expect![[r#"
            create endpointslices web-* IPv4 80/TCP
              10.0.0.99 ready on=n-za in=za for=za"#]]);
}

#[test]
fn unready_endpoints_get_no_hints() {
    cluster("auto", &[("za", 2), ("zb", 2)], EVEN)
        .then("pod web-9 10.0.0.9 unready on=n-za")
        .check(expect![[r#"
            create endpointslices web-* IPv4 80/TCP
              10.0.0.1 ready on=n-za in=za for=za
              10.0.0.2 ready on=n-za in=za for=za
              10.0.0.3 ready on=n-zb in=zb for=zb
              10.0.0.4 ready on=n-zb in=zb for=zb
              10.0.0.9 not-ready on=n-za in=za
            Normal TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4"#]]);
}

#[test]
fn refused_hints_give_upstreams_reasons() {
    let record = |fixture: Fixture| -> Vec<String> {
        fixture.plan().event_records.into_iter().map(|record| record.message).collect()
    };
    let few = cluster("auto", &[("za", 1)], EVEN);
    let one_zone = cluster("auto", &[("za", 3)], &[("za", 4)]);
    let overload = cluster("auto", &[("za", 3)], &[("za", 100), ("zb", 1), ("zc", 1)]);
    let no_node = slices("service web port=80 auto");
    let no_zone = cluster("auto", &[("za", 2), ("zb", 1)], EVEN)
        .then("node odd unready; pod web-9 10.0.0.9 ready on=odd");
    let all: Vec<String> =
        [few, one_zone, overload, no_node, no_zone].into_iter().flat_map(record).collect();
    expect![[r#"
        Insufficient number of endpoints (1 endpoints, 2 zones), addressType: IPv4
        Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4
        Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (3 endpoints, 3 zones), addressType: IPv4
        Nodes only ready in one zone, addressType: IPv4
        One or more endpoints do not have a zone specified, addressType: IPv4"#]].assert_eq(&all.join("\n"));
}

#[test]
fn a_node_without_zone_or_cpu_makes_the_nodes_insufficient() {
    for node in ["node odd", "node odd za cpu=0"] {
        let fixture = cluster("auto", &[("za", 2), ("zb", 2)], EVEN).then(node);
        assert_eq!(Topology::of(fixture.cluster.nodes.values()), Topology::Insufficient, "{node}");
    }
    for node in ["node odd unready", "node odd control-plane"] {
        let fixture = cluster("auto", &[("za", 2), ("zb", 2)], EVEN).then(node);
        assert_ne!(Topology::of(fixture.cluster.nodes.values()), Topology::Insufficient, "{node}");
    }
}

#[test]
fn refused_hints_are_removed_and_reported_once() {
    cluster("auto", &[("za", 2), ("zb", 2)], EVEN)
        .applied()
        .then("node n-zb zb cpu=4 unready")
        .check(expect![[r#"
            update endpointslices web-2smwnc6jlm IPv4 80/TCP
              10.0.0.1 ready on=n-za in=za
              10.0.0.2 ready on=n-za in=za
              10.0.0.3 ready on=n-zb in=zb
              10.0.0.4 ready on=n-zb in=zb
            Warning TopologyAwareHintsDisabled: Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4"#]])
        .then("pod web-1 10.0.0.1 unready on=n-za")
        .check(expect![[r#"
            update endpointslices web-2smwnc6jlm IPv4 80/TCP
              10.0.0.1 not-ready on=n-za in=za
              10.0.0.2 ready on=n-za in=za
              10.0.0.3 ready on=n-zb in=zb
              10.0.0.4 ready on=n-zb in=zb"#]]);
}

#[test]
fn annotation_turned_off_removes_hints_and_records_an_event() {
    cluster("auto", &[("za", 2), ("zb", 2)], EVEN)
        .applied()
        .then("service web port=80")
        .check(expect![[r#"
            update endpointslices web-2smwnc6jlm IPv4 80/TCP
              10.0.0.1 ready on=n-za in=za
              10.0.0.2 ready on=n-za in=za
              10.0.0.3 ready on=n-zb in=zb
              10.0.0.4 ready on=n-zb in=zb
            Warning TopologyAwareHintsDisabled: Topology Aware Hints has been disabled, addressType: IPv4"#]]);
}

#[test]
fn a_zone_without_usable_nodes_is_hinted_once() {
    cluster("auto", &[("za", 3), ("zb", 3)], EVEN)
        .then("node n-zc zc unready; pod web-9 10.0.0.9 ready on=n-zc")
        .check(expect![[r#"
            create endpointslices web-* IPv4 80/TCP
              10.0.0.1 ready on=n-za in=za for=za
              10.0.0.2 ready on=n-za in=za for=za
              10.0.0.3 ready on=n-za in=za for=za
              10.0.0.4 ready on=n-zb in=zb for=zb
              10.0.0.5 ready on=n-zb in=zb for=zb
              10.0.0.6 ready on=n-zb in=zb for=zb
              10.0.0.9 ready on=n-zc in=zc for=zc
            Normal TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4"#]]);
}

#[test]
fn a_service_below_the_minimum_of_a_zone_is_overloaded() {
    let mut fixture = cluster("auto", &[("za", 3), ("zb", 3)], EVEN);
    fixture.apply();
    let topology = |fixture: &Fixture| Topology::of(fixture.cluster.nodes.values());
    assert!(!is_overloaded(&fixture.carried.hints, &topology(&fixture)));
    fixture = fixture.then("node n-za za cpu=40");
    assert!(is_overloaded(&fixture.carried.hints, &topology(&fixture)));
    fixture = fixture.then("gone node n-za");
    assert!(is_overloaded(&fixture.carried.hints, &topology(&fixture)), "no ratios at all");
}

#[test]
fn traffic_distribution_hints_the_own_zone_or_node() {
    for (prefer, expected) in [
        (
            "PreferClose",
            expect![[r#"
            create endpointslices web-* IPv4 80/TCP
              10.0.0.1 ready on=n-za in=za for=za
              10.0.0.2 ready on=n-zb in=zb for=zb
              10.0.0.8 ready on=bare
              10.0.0.9 not-ready on=n-za in=za"#]],
        ),
        (
            "PreferSameZone",
            expect![[r#"
            create endpointslices web-* IPv4 80/TCP
              10.0.0.1 ready on=n-za in=za for=za
              10.0.0.2 ready on=n-zb in=zb for=zb
              10.0.0.8 ready on=bare
              10.0.0.9 not-ready on=n-za in=za"#]],
        ),
        (
            "PreferSameNode",
            expect![[r#"
            create endpointslices web-* IPv4 80/TCP
              10.0.0.1 ready on=n-za in=za for=za,n-za
              10.0.0.2 ready on=n-zb in=zb for=zb,n-zb
              10.0.0.8 ready on=bare for=bare
              10.0.0.9 not-ready on=n-za in=za"#]],
        ),
        (
            "Nonsense",
            expect![[r#"
            create endpointslices web-* IPv4 80/TCP
              10.0.0.1 ready on=n-za in=za
              10.0.0.2 ready on=n-zb in=zb
              10.0.0.8 ready on=bare
              10.0.0.9 not-ready on=n-za in=za"#]],
        ),
    ] {
        cluster(&format!("prefer={prefer}"), &[("za", 1), ("zb", 1)], EVEN)
            .then("node bare; pod web-8 10.0.0.8 ready on=bare; pod web-9 10.0.0.9 unready on=n-za")
            .check(expected);
    }
}

#[test]
fn the_annotation_wins_over_traffic_distribution() {
    cluster("auto prefer=PreferSameNode", &[("za", 1), ("zb", 1)], EVEN).check(expect![[r#"
        create endpointslices web-* IPv4 80/TCP
          10.0.0.1 ready on=n-za in=za for=za
          10.0.0.2 ready on=n-zb in=zb for=zb
        Normal TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4"#]]);
}

#[test]
fn changed_traffic_distribution_rewrites_only_differing_slices() {
    cluster("prefer=PreferSameNode", &[("za", 1), ("zb", 1)], EVEN)
        .applied()
        .then("service web port=80 prefer=PreferClose")
        .check(expect![[r#"
            update endpointslices web-2smwnc6jlm IPv4 80/TCP
              10.0.0.1 ready on=n-za in=za for=za
              10.0.0.2 ready on=n-zb in=zb for=zb"#]])
        .then("service web port=80 prefer=PreferSameZone")
        .check(expect![[""]]);
}
