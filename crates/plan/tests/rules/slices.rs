//! The rules of the endpointslice controller (docs/spec.md, section 4).

use endpointd_model::{SharedStr, Write, names};
use expect_test::expect;

use crate::fixture::{Fixture, slices};

const TWO_NODES: &str = "node n1 za; node n2 zb";

/// A Service with one port and `n` ready pods on two nodes in turn.
fn web(n: usize) -> Fixture {
    let pod = |i: usize| format!("pod web-{i} 10.0.0.{i} ready on=n{}", i % 2 + 1);
    let pods: Vec<String> = (1..=n).map(pod).collect();
    slices(&format!("service web port=http:8080; {TWO_NODES}; {}", pods.join("; ")))
}

#[test]
fn a_service_without_selector_or_of_type_external_name_gets_no_slices() {
    slices("service web manual port=80; pod web-a 10.0.0.1 ready").check(expect![[""]]);
    slices("service web external port=80; pod web-a 10.0.0.1 ready").check(expect![[""]]);
}

#[test]
fn a_missing_service_leaves_its_slices_to_the_garbage_collector() {
    web(1).applied().then("gone service web").check(expect![[""]]);
}

#[test]
fn only_pods_with_every_selector_pair_are_published() {
    web(1).then("pod other 10.0.0.9 ready on=n1 label=app=other").check(expect![[r#"
        create endpointslices web-* IPv4 http:8080/TCP
          10.0.0.1 ready on=n2 in=zb"#]]);
}

#[test]
fn ended_pods_and_pods_without_address_are_excluded() {
    slices(
        "service web port=80; node n1 za
         pod web-a 10.0.0.1 ready failed on=n1; pod web-b 10.0.0.2 ready succeeded on=n1
         pod web-c ready on=n1",
    )
    .check(expect![[r#"
        create endpointslices web-* IPv4 no ports
        excluded web-a: Failed
        excluded web-b: Succeeded
        excluded web-c: NoAddress"#]]);
}

#[test]
fn conditions_follow_readiness_and_termination() {
    slices(
        "service web port=80; node n1 za
         pod web-a 10.0.0.1 ready on=n1; pod web-b 10.0.0.2 unready on=n1
         pod web-c 10.0.0.3 on=n1; pod web-d 10.0.0.4 ready terminating on=n1
         pod web-e 10.0.0.5 unready terminating on=n1",
    )
    .check(expect![[r#"
        create endpointslices web-* IPv4 80/TCP
          10.0.0.1 ready on=n1 in=za
          10.0.0.2 not-ready on=n1 in=za
          10.0.0.3 not-ready on=n1 in=za
          10.0.0.4 not-ready serving terminating on=n1 in=za
          10.0.0.5 not-ready terminating on=n1 in=za"#]]);
}

#[test]
fn publish_not_ready_addresses_makes_all_endpoints_ready() {
    slices(
        "service web publish port=80; pod web-a 10.0.0.1 unready on=ghost
         pod web-b 10.0.0.2 ready terminating",
    )
    .check(expect![[r#"
        create endpointslices web-* IPv4 80/TCP
          10.0.0.1 ready on=ghost
          10.0.0.2 ready terminating"#]]);
}

#[test]
fn named_ports_resolve_by_name_and_protocol_and_group_pods() {
    slices(
        "service web port=http:@http port=dns:@dns/UDP; node n1 za
         pod web-a 10.0.0.1 ready on=n1 port=http:8080 port=dns:53/UDP
         pod web-b 10.0.0.2 ready on=n1 port=http:9090 port=dns:53
         pod web-c 10.0.0.3 ready on=n1",
    )
    .check(expect![[r#"
        create endpointslices web-* IPv4 no ports
          10.0.0.3 ready on=n1 in=za
        create endpointslices web-* IPv4 http:9090/TCP
          10.0.0.2 ready on=n1 in=za
        create endpointslices web-* IPv4 dns:53/UDP,http:8080/TCP
          10.0.0.1 ready on=n1 in=za"#]]);
}

#[test]
fn the_first_port_of_a_name_wins_and_target_port_zero_is_published() {
    slices(
        "service web port=http:@http port=zero:0; node n1 za
         pod web-a 10.0.0.1 ready on=n1 port=http:1 port=http:2",
    )
    .check(expect![[r#"
        create endpointslices web-* IPv4 http:1/TCP,zero:0/TCP
          10.0.0.1 ready on=n1 in=za"#]]);
}

#[test]
fn a_service_without_ports_publishes_endpoints_without_ports() {
    slices("service web headless; node n1 za; pod web-a 10.0.0.1 ready on=n1").check(expect![[
        r#"
        create endpointslices web-* IPv4 no ports
          10.0.0.1 ready on=n1 in=za"#
    ]]);
    slices("service web; node n1 za; pod web-a 10.0.0.1 ready on=n1").check(expect![[r#"
        create endpointslices web-* IPv4 no ports
          10.0.0.1 ready on=n1 in=za"#]]);
}

#[test]
fn each_family_has_its_own_slices() {
    slices(
        "service web families=6,4 port=80; node n1 za
         pod web-a 10.0.0.1,fd00::1 ready on=n1; pod web-b 10.0.0.2 ready on=n1",
    )
    .check(expect![[r#"
        create endpointslices web-* IPv4 80/TCP
          10.0.0.1 ready on=n1 in=za
          10.0.0.2 ready on=n1 in=za
        create endpointslices web-* IPv6 80/TCP
          fd00::1 ready on=n1 in=za
        excluded web-b: NoIPv6Address"#]]);
}

#[test]
fn without_families_the_cluster_ip_decides_and_headless_gets_both() {
    slices("service web no-families port=80")
        .check(expect!["create endpointslices web-* IPv4 no ports"]);
    slices("service web no-families headless port=80").check(expect![[r#"
        create endpointslices web-* IPv4 no ports
        create endpointslices web-* IPv6 no ports"#]]);
}

#[test]
fn slices_of_an_unsupported_family_are_deleted() {
    slices("service web port=80").applied().then("service web families=6 port=80").check(expect![
        [r#"
            create endpointslices web-* IPv6 no ports
            delete endpointslices web-4r2zrflk48"#]
    ]);
}

#[test]
fn addresses_are_written_canonically_and_two_of_one_family_share_an_endpoint() {
    slices("service web port=80; node n1; pod web-a 010.0.0.002,::ffff:10.0.0.1 ready on=n1")
        .check(expect![[r#"
            create endpointslices web-* IPv4 80/TCP
              10.0.0.1,10.0.0.2 ready on=n1"#]]);
}

#[test]
fn invalid_addresses_are_excluded_and_reported_once() {
    let fixture = slices(
        "service web port=80; node n1 za; pod web-a 127.0.0.1 ready on=n1
         pod web-b 10.0.0.2 ready on=n1; pod web-c garbage ready on=n1",
    );
    fixture.check(expect![[r#"
        create endpointslices web-* IPv4 80/TCP
          10.0.0.2 ready on=n1 in=za
        Warning InvalidIPAddress: Skipped invalid IP addresses of Pods: web-a (loopback address) and 1 more
        excluded web-a: InvalidAddress: loopback address
        excluded web-c: InvalidAddress: not an IP address"#]]).then("pod web-b 10.0.0.2 unready on=n1").check(expect![[r#"
        update endpointslices web-2smwnc6jlm IPv4 80/TCP
          10.0.0.2 not-ready on=n1 in=za
        excluded web-a: InvalidAddress: loopback address
        excluded web-c: InvalidAddress: not an IP address"#]]);
}

#[test]
fn a_hostname_needs_the_service_as_subdomain() {
    slices(
        "service web port=80; node n1 za; pod web-a 10.0.0.1 ready on=n1 host=a subdomain=web
         pod web-b 10.0.0.2 ready on=n1 host=b subdomain=other; pod web-c 10.0.0.3 on=n1 host=c",
    )
    .check(expect![[r#"
        create endpointslices web-* IPv4 80/TCP
          10.0.0.1 ready host=a on=n1 in=za
          10.0.0.2 ready on=n1 in=za
          10.0.0.3 not-ready on=n1 in=za"#]]);
}

#[test]
fn a_pod_on_a_missing_node_is_excluded_and_reported() {
    slices(
        "service web port=80; node n1 za; pod web-a 10.0.0.1 ready on=n1
         pod web-b 10.0.0.2 ready on=ghost; pod web-c 10.0.0.3 ready",
    )
    .check(expect![[r#"
        create endpointslices web-* IPv4 80/TCP
          10.0.0.1 ready on=n1 in=za
        Warning FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service ns/web: [skipping Pod web-b for Service ns/web: Node ghost Not Found, skipping Pod web-c for Service ns/web: Node  Not Found]
        excluded web-b: NodeNotFound
        excluded web-c: NotScheduled
        retry: [skipping Pod web-b for Service ns/web: Node ghost Not Found, skipping Pod web-c for Service ns/web: Node  Not Found]"#]]);
}

#[test]
fn a_family_that_loses_all_endpoints_turns_its_slice_into_the_placeholder() {
    web(1).applied().then("gone node n1; gone node n2").check(expect![[r#"
        update endpointslices web-hfkv7cv5k6 IPv4 no ports
        Warning FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service ns/web: skipping Pod web-1 for Service ns/web: Node n2 Not Found
        excluded web-1: NodeNotFound
        retry: skipping Pod web-1 for Service ns/web: Node n2 Not Found"#]]);
}

#[test]
fn an_excluded_pod_keeps_its_port_set_in_use() {
    let emptied = web(1).applied().edit(|cluster| {
        cluster.slices.values_mut().for_each(|slice| slice.endpoints.clear());
    });
    emptied.then("gone node n1; gone node n2").check(expect![[r#"
        Warning FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service ns/web: skipping Pod web-1 for Service ns/web: Node n2 Not Found
        excluded web-1: NodeNotFound
        retry: skipping Pod web-1 for Service ns/web: Node n2 Not Found"#]]);
}

#[test]
fn a_family_without_endpoints_gets_a_placeholder() {
    slices("service web port=80 label=team=x")
        .check(expect!["create endpointslices web-* IPv4 no ports"]);
}

#[test]
fn a_placeholder_of_a_deleted_service_is_kept() {
    slices("service web port=80")
        .applied()
        .then("service web uid=new port=80")
        .check(expect![[""]]);
}

#[test]
fn a_slice_of_a_deleted_service_is_replaced() {
    web(2).applied().then("service web uid=new port=http:8080").check(expect![[r#"
        create endpointslices web-* IPv4 http:8080/TCP
          10.0.0.1 ready on=n2 in=zb
          10.0.0.2 ready on=n1 in=za
        delete endpointslices web-hfkv7cv5k6"#]]);
}

#[test]
fn changed_slices_are_filled_fullest_first() {
    let fixture = web(6).max(3).applied();
    fixture.then("gone pod web-1; pod web-7 10.0.0.7 ready on=n1").check(expect![[r#"
        update endpointslices web-hfkv7cv5k6 IPv4 http:8080/TCP
          10.0.0.2 ready on=n1 in=za
          10.0.0.3 ready on=n2 in=zb
          10.0.0.7 ready on=n1 in=za"#]]);
}

#[test]
fn remaining_endpoints_go_into_the_unchanged_slice_they_fill_best() {
    let fixture = web(4).max(3).applied();
    fixture.then("pod web-5 10.0.0.5 ready on=n1").check(expect![[r#"
        update endpointslices web-rsmrccr8f6 IPv4 http:8080/TCP
          10.0.0.4 ready on=n1 in=za
          10.0.0.5 ready on=n1 in=za"#]]);
    // The slices hold three, two, and one endpoints; the second becomes full.
    let fixture = web(7).max(3).applied().then("gone pod web-6").applied();
    fixture.then("pod web-8 10.0.0.8 ready on=n1").check(expect![[r#"
        update endpointslices web-rsmrccr8f6 IPv4 http:8080/TCP
          10.0.0.4 ready on=n1 in=za
          10.0.0.5 ready on=n2 in=zb
          10.0.0.8 ready on=n1 in=za"#]]);
}

#[test]
fn remaining_endpoints_without_room_go_into_new_slices_full_ones_first() {
    let fixture = web(2).max(2).applied();
    fixture
        .then(
            "pod web-3 10.0.0.3 ready on=n1; pod web-4 10.0.0.4 ready on=n1
             pod web-5 10.0.0.5 ready on=n1",
        )
        .check(expect![[r#"
            create endpointslices web-* IPv4 http:8080/TCP
              10.0.0.5 ready on=n1 in=za
            create endpointslices web-* IPv4 http:8080/TCP
              10.0.0.3 ready on=n1 in=za
              10.0.0.4 ready on=n1 in=za"#]]);
}

#[test]
fn an_emptied_slice_is_deleted_or_recycled_for_new_ports() {
    web(2).applied().then("service web port=http:9090").check(expect![[r#"
        update endpointslices web-hfkv7cv5k6 IPv4 http:9090/TCP
          10.0.0.1 ready on=n2 in=zb
          10.0.0.2 ready on=n1 in=za"#]]);
    let fixture = web(4).max(2).applied();
    fixture
        .then("gone pod web-1; gone pod web-2")
        .check(expect!["delete endpointslices web-hfkv7cv5k6"]);
}

#[test]
fn label_changes_rewrite_slices_and_reserved_labels_alone_do_not() {
    web(1).applied().then("service web label=team=x port=http:8080").check(expect![[r#"
        update endpointslices web-hfkv7cv5k6 IPv4 http:8080/TCP
          10.0.0.1 ready on=n2 in=zb"#]]);
    web(1)
        .applied()
        .then("service web headless label=kubernetes.io/service-name=x port=http:8080")
        .check(expect![[""]]);
}

#[test]
fn slices_of_another_manager_are_not_written() {
    web(1)
        .applied()
        .edit(|cluster| {
            let (_, mut slice) = cluster.slices.pop_first().expect("one slice");
            slice.meta.labels = slice.meta.labels.with(names::MANAGED_BY, Some("someone-else"));
            cluster.slices.insert(slice.meta.key(), slice);
        })
        .check(expect![[r#"
            create endpointslices web-* IPv4 http:8080/TCP
              10.0.0.1 ready on=n2 in=zb"#]]);
}

#[test]
fn a_slice_being_deleted_is_ignored() {
    web(1)
        .applied()
        .edit(|cluster| {
            for slice in cluster.slices.values_mut() {
                slice.meta.finalizers = vec!["example.com/hold".into()];
                slice.meta.deleted = Some(endpointd_model::Timestamp::UNIX_EPOCH);
            }
        })
        .check(expect![[r#"
            create endpointslices web-* IPv4 http:8080/TCP
              10.0.0.1 ready on=n2 in=zb"#]]);
}

#[test]
fn a_service_being_deleted_gets_no_new_slices() {
    web(2)
        .max(1)
        .applied()
        .then("service web deleting port=http:8080; gone pod web-1; pod web-3 10.0.0.3 ready on=n1")
        .check(expect![[r#"
            update endpointslices web-hfkv7cv5k6 IPv4 http:8080/TCP
              10.0.0.3 ready on=n1 in=za"#]]);
    slices("service web deleting port=80").check(expect![[""]]);
}

#[test]
fn the_trigger_time_is_written_and_removed() {
    let time = |plan: &endpointd_plan::Plan| -> Vec<Option<SharedStr>> {
        let objects = plan.writes.iter().filter_map(Write::object);
        objects.map(|one| one.meta().annotations.get(names::TRIGGER_TIME).cloned()).collect()
    };
    let mut fixture = slices(
        "service web created=100 port=80; node n1 za; pod web-a 10.0.0.1 ready since=90 on=n1",
    );
    assert_eq!(time(&fixture.apply()), [Some("1970-01-01T00:01:40Z".into())]);
    fixture = fixture.then("pod web-a 10.0.0.1 unready since=200 on=n1");
    assert_eq!(time(&fixture.apply()), [Some("1970-01-01T00:03:20Z".into())]);
    fixture = fixture.then("pod web-a 10.0.0.1 ready since=200 on=n1");
    assert_eq!(time(&fixture.apply()), [None], "no newer time");
}

#[test]
fn updates_and_deletes_have_preconditions() {
    let mut fixture =
        web(3).max(1).applied().then("gone pod web-1; pod web-2 10.0.0.2 unready on=n1");
    for write in fixture.apply().writes {
        match write {
            Write::Create(object) => assert!(object.meta().resource_version.is_none()),
            Write::Update(object) => assert!(!object.meta().resource_version.is_none()),
            Write::Delete(target) => {
                assert!(!target.uid.is_empty() && !target.resource_version.is_none());
            }
        }
    }
}

#[test]
fn an_update_keeps_annotations_finalizers_and_owners_of_other_clients() {
    let mut fixture = web(1).applied().edit(|cluster| {
        for slice in cluster.slices.values_mut() {
            slice.meta.annotations = slice.meta.annotations.with("example.com/a", Some("b"));
            slice.meta.finalizers = vec!["example.com/hold".into()];
            let mut owner = slice.meta.owners[0].clone();
            owner.kind = "Other".into();
            slice.meta.owners.push(owner);
        }
    });
    fixture = fixture.then("pod web-1 10.0.0.1 unready on=n2");
    let plan = fixture.apply();
    let meta = plan.writes[0].object().expect("an update").meta();
    assert!(meta.annotations.has("example.com/a", "b"));
    assert_eq!((meta.finalizers.len(), meta.owners.len()), (1, 2));
}

#[test]
fn a_recycled_slice_keeps_its_finalizers() {
    let fixture = web(1).applied().edit(|cluster| {
        for slice in cluster.slices.values_mut() {
            slice.meta.finalizers = vec!["example.com/hold".into()];
        }
    });
    let plan = fixture.then("service web port=http:9090").plan();
    let Some(Write::Update(object)) = plan.writes.first() else { panic!("not recycled: {plan}") };
    assert_eq!(object.meta().finalizers, ["example.com/hold".into()]);
}

fn plan_without_nodes_seen(fixture: &Fixture) -> endpointd_plan::Plan {
    let index = fixture.cluster.index();
    let key = endpointd_model::Key::new("ns", "web");
    let mut snapshot = index.slice_snapshot(&key, &fixture.carried);
    for pod in &mut snapshot.pods {
        pod.node = endpointd_plan::NodeState::Unknown;
    }
    endpointd_plan::slices(&snapshot, &fixture.settings)
}

#[test]
fn an_unknown_node_keeps_published_endpoints_and_delays_new_ones() {
    let fixture = web(1).applied().then("pod web-2 10.0.0.2 ready on=n1");
    let plan = plan_without_nodes_seen(&fixture);
    expect![[r#"
        Warning FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service ns/web: skipping Pod web-2 for Service ns/web: Node n1 Not Found
        excluded web-2: NodeNotFound
        retry: skipping Pod web-2 for Service ns/web: Node n1 Not Found"#]].assert_eq(&plan.to_string());
}

#[test]
fn a_recreated_pod_on_an_unknown_node_waits() {
    let fixture = web(1).applied().edit(|cluster| {
        for pod in cluster.pods.values_mut() {
            pod.uid = "another".into();
        }
    });
    let plan = plan_without_nodes_seen(&fixture);
    assert_eq!(plan.excluded_pods.len(), 1, "{plan}");
}
