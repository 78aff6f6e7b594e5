//! The rules of the endpoints controller (docs/spec.md, section 3).

use endpointd_model::{SharedStr, names};
use expect_test::expect;

use crate::fixture::endpoints;

#[test]
fn ready_and_not_ready_pods_are_listed_separately() {
    endpoints(
        "service web port=http:8080; pod web-a 10.0.0.2 ready on=n1; pod web-b 10.0.0.10 ready
         pod web-c 10.0.0.3 unready",
    )
    .check(expect![[r#"
        create endpoints web
          http:8080/TCP ready 10.0.0.10,10.0.0.2 not-ready 10.0.0.3"#]]);
}

#[test]
fn services_without_selector_or_of_type_external_name_get_no_endpoints() {
    endpoints("service web manual port=80; pod web-a 10.0.0.1 ready").check(expect![[""]]);
    endpoints("service web external port=80; pod web-a 10.0.0.1 ready").check(expect![[""]]);
}

#[test]
fn observed_endpoints_of_a_missing_service_are_deleted() {
    endpoints("service web port=80")
        .applied()
        .then("gone service web")
        .check(expect!["delete endpoints web"]);
    endpoints("").check(expect![[""]]);
}

#[test]
fn terminating_pods_are_listed_only_with_publish_not_ready_addresses() {
    let pods = "pod web-a 10.0.0.1 ready terminating; pod web-b 10.0.0.2 unready";
    endpoints(&format!("service web port=80; {pods}")).check(expect![[r#"
        create endpoints web
          :80/TCP not-ready 10.0.0.2
        excluded web-a: Terminating"#]]);
    endpoints(&format!("service web publish port=80; {pods}")).check(expect![[r#"
        create endpoints web
          :80/TCP ready 10.0.0.1,10.0.0.2"#]]);
}

#[test]
fn each_pod_has_one_address_of_the_primary_family() {
    let pods = "pod web-a 10.0.0.1,fd00::1 ready; pod web-b 10.0.0.2 ready";
    endpoints(&format!("service web families=6,4 port=80; {pods}")).check(expect![[r#"
        create endpoints web
          :80/TCP ready fd00::1
        excluded web-b: NoIPv6Address"#]]);
    endpoints(&format!("service web no-families port=80; {pods}")).check(expect![[r#"
        create endpoints web
          :80/TCP ready 10.0.0.1,10.0.0.2"#]]);
}

#[test]
fn without_families_and_cluster_ip_the_address_of_the_pod_decides() {
    endpoints(
        "service web no-families headless port=80; pod web-a fd00::1,10.0.0.1 ready
         pod web-b 10.0.0.2,fd00::2 ready",
    )
    .check(expect![[r#"
        create endpoints web
          :80/TCP ready 10.0.0.2,fd00::1"#]]);
}

#[test]
fn ports_with_equal_addresses_share_a_subset() {
    endpoints(
        "service web port=http:@http port=metrics:9090
         pod web-a 10.0.0.1 ready port=http:8080; pod web-b 10.0.0.2 ready port=http:8080
         pod web-c 10.0.0.3 ready port=http:8081",
    )
    .check(expect![[r#"
        create endpoints web
          http:8080/TCP ready 10.0.0.1,10.0.0.2
          http:8081/TCP ready 10.0.0.3
          metrics:9090/TCP ready 10.0.0.1,10.0.0.2,10.0.0.3"#]]);
}

#[test]
fn a_pod_without_any_of_the_ports_is_excluded() {
    endpoints("service web port=http:@http; pod web-a 10.0.0.1 ready").check(expect![[r#"
        create endpoints web
        excluded web-a: NoPort"#]]);
}

#[test]
fn only_headless_services_are_published_without_ports() {
    endpoints("service web headless; pod web-a 10.0.0.1 ready").check(expect![[r#"
        create endpoints web
          no ports ready 10.0.0.1"#]]);
    endpoints("service web; pod web-a 10.0.0.1 ready").check(expect![[r#"
        create endpoints web
        excluded web-a: ServiceWithoutPorts"#]]);
}

#[test]
fn target_port_zero_lists_the_address_without_the_port() {
    endpoints("service web port=zero:0; pod web-a 10.0.0.1 ready").check(expect![[r#"
        create endpoints web
          no ports ready 10.0.0.1"#]]);
}

#[test]
fn invalid_addresses_are_excluded() {
    endpoints("service web port=80; pod web-a 169.254.0.1 ready; pod web-b garbage,10.0.0.2 ready")
        .check(expect![[r#"
            create endpoints web
              :80/TCP ready 10.0.0.2
            Warning InvalidIPAddress: Skipped invalid IP addresses of Pods: web-a (link-local address) and 1 more
            excluded web-a: InvalidAddress: link-local address"#]]);
}

#[test]
fn order_and_layout_of_observed_subsets_cause_no_write() {
    let fixture = endpoints(
        "service web port=http:8080 port=dns:53; pod web-a 10.0.0.1 ready; pod web-b 10.0.0.2",
    );
    fixture
        .applied()
        .edit(|cluster| {
            let (_, endpoints) = cluster.endpoints.iter_mut().next().expect("one object");
            let whole = endpoints.subsets.remove(0);
            for port in whole.ports.iter().rev() {
                let mut part = whole.clone();
                part.ports = vec![port.clone()];
                endpoints.subsets.push(part);
            }
        })
        .check(expect![[""]]);
}

#[test]
fn a_missing_node_name_causes_a_write_and_a_target_version_does_not() {
    let fixture = || endpoints("service web port=80; pod web-a 10.0.0.1 ready").applied();
    fixture()
        .edit(|cluster| {
            let (_, endpoints) = cluster.endpoints.iter_mut().next().expect("one object");
            endpoints.subsets[0].addresses[0].node_name = None;
        })
        .check(expect![[r#"
            update endpoints web
              :80/TCP ready 10.0.0.1"#]]);
    fixture()
        .edit(|cluster| {
            let (_, endpoints) = cluster.endpoints.iter_mut().next().expect("one object");
            let target = endpoints.subsets[0].addresses[0].target_ref.as_mut();
            target.expect("a pod").resource_version = "7".into();
        })
        .check(expect![[""]]);
}

#[test]
fn a_changed_label_causes_a_write_and_the_headless_label_alone_does_not() {
    let fixture = || endpoints("service web port=80 label=team=x").applied();
    fixture().then("service web port=80 label=team=y").check(expect!["update endpoints web"]);
    fixture().then("service web headless port=80 label=team=x").check(expect![[""]]);
}

#[test]
fn reserved_labels_on_a_service_cause_one_write() {
    endpoints(&format!(
        "service web port=80 label={}=me label={}=x; pod web-a 10.0.0.1 ready",
        names::ENDPOINTS_MANAGED_BY,
        names::HEADLESS
    ))
    .check(expect![[r#"
        create endpoints web
          :80/TCP ready 10.0.0.1"#]]);
}

#[test]
fn annotations_of_other_clients_stay_and_the_trigger_time_is_set() {
    let fixture = endpoints(
        "service web created=100 port=80; endpoints web ready=10.0.0.9 port=x:1 note=example.com/a=b",
    );
    let plan = fixture.plan();
    let meta = plan.writes[0].object().expect("an update").meta();
    let notes: Vec<(&SharedStr, &SharedStr)> = meta.annotations.iter().collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(meta.annotations.has(names::TRIGGER_TIME, "1970-01-01T00:01:40Z"));
    assert!(meta.annotations.has("example.com/a", "b"));
}

/// `n` pods, of which the first `n_ready` are ready, all with the same port.
fn crowd(n: usize, n_ready: usize) -> String {
    let state = |i: usize| if i < n_ready { "ready" } else { "unready" };
    let pod = |i: usize| format!("pod web-{i} 10.0.{}.{} {}", i / 250, i % 250 + 1, state(i));
    (0..n).map(pod).collect::<Vec<_>>().join("; ")
}

#[test]
fn truncation_keeps_ready_addresses_first() {
    for (n, n_ready, kept) in
        [(1000, 900, (900, 100)), (1100, 900, (900, 100)), (1300, 1200, (1000, 0))]
    {
        let fixture = endpoints(&format!("service web port=80; {}", crowd(n, n_ready))).applied();
        let (_, object) = fixture.cluster.endpoints.first_key_value().expect("one object");
        let count = |pick: fn(&endpointd_model::Subset) -> usize| -> usize {
            object.subsets.iter().map(pick).sum()
        };
        let counts = (count(|one| one.addresses.len()), count(|one| one.not_ready_addresses.len()));
        assert_eq!(counts, kept, "{n} pods, {n_ready} ready");
        let annotation = object.meta.annotations.get(names::OVER_CAPACITY).map(AsRef::as_ref);
        assert_eq!(annotation, (n > 1000).then_some(names::TRUNCATED));
        let plan = endpoints(&format!("service web port=80; {}", crowd(n, n_ready))).plan();
        assert_eq!(plan.excluded_pods.len(), n - kept.0 - kept.1, "a reason for each pod");
    }
}

#[test]
fn truncation_cuts_subsets_in_proportion() {
    let pod = |i: usize| {
        format!("pod web-{i} 10.0.{}.{} ready port=p:{}", i / 250, i % 250 + 1, 8000 + i % 3)
    };
    let pods: Vec<String> = (0..1500).map(pod).collect();
    let fixture = endpoints(&format!("service web port=p:@p; {}", pods.join("; "))).applied();
    let (_, object) = fixture.cluster.endpoints.first_key_value().expect("one object");
    let sizes: Vec<usize> = object.subsets.iter().map(|one| one.addresses.len()).collect();
    assert_eq!(sizes, [334, 334, 332]);
}
