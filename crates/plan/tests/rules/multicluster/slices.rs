//! Imported slices: their content (M7, M8, S, C6, C7), and who reads what of it.

use endpointd_model::{EndpointSlice, Labels, derived_name, names};
use expect_test::expect;

use super::world::{World, key, two, world};

/// S1, S2, S3, M7.
#[test]
fn a_slice_names_its_service_its_import_and_its_cluster() {
    let world = two().settled();
    for cluster in ["home", "eu1"] {
        let [slice] = world.copies(cluster)[..] else { panic!("one slice of {cluster}") };
        let derived = derived_name(&key());
        let labels: Labels = [
            (names::SERVICE_NAME, &*derived),
            (names::IMPORT_NAME, "web"),
            (names::SOURCE_CLUSTER, cluster),
            (names::MANAGED_BY, "endpointd-import"),
        ]
        .into_iter()
        .collect();
        assert_eq!(slice.meta.labels, labels);
        // ingress-nginx finds slices by this prefix.
        assert!(slice.meta.name.starts_with(&format!("{derived}-")), "{}", slice.meta.name);
        assert_eq!(slice.meta.owners[0].uid, world.import().meta.uid);
    }
}

/// M7: what means something elsewhere only is not copied; here it is.
#[test]
fn nodes_and_pods_of_other_clusters_are_not_copied() {
    let world = two().settled();
    let remote = &world.copies("eu1")[0].endpoints[0];
    assert_eq!((&remote.node_name, &remote.target_ref, &remote.hints), (&None, &None, &None));
    assert_eq!((remote.zone.as_deref(), remote.hostname.as_deref()), (Some("zb"), Some("pod")));
    let home = &world.copies("home")[0].endpoints[0];
    assert_eq!(home.node_name.as_deref(), Some("n1"));
    assert!(home.target_ref.is_some() && home.hints.is_none());
}

/// M7: others publish all endpoints as ready.
#[test]
fn conditions_are_those_of_the_source() {
    let world = two().then("eu1 slice web-b port=http:8080 10.1.0.1 10.1.0.2!").edit(|state| {
        let slice = state.remotes[0].slices.values_mut().next().expect("one");
        slice.endpoints[1].conditions.terminating = Some(true);
        slice.endpoints[1].conditions.serving = Some(true);
    });
    let source = world.state.remotes[0].slices.values().next().expect("one").endpoints.clone();
    let world = world.settled();
    let copied = &world.copies("eu1")[0].endpoints;
    assert_eq!(copied[0].conditions, source[0].conditions);
    assert_eq!(copied[1].conditions, source[1].conditions);
}

/// kube-proxy measures the time since then.
#[test]
fn the_trigger_time_is_copied_and_alone_no_reason_to_write() {
    let slice = |time: &str| format!("eu1 slice web-b port=http:8080 since={time} 10.1.0.1:zb@n1");
    let world = two().then(&slice("2026-01-02T03:04:05Z")).settled();
    let annotations = &world.copies("eu1")[0].meta.annotations;
    assert!(annotations.has(names::TRIGGER_TIME, "2026-01-02T03:04:05Z"));
    assert!(annotations.has(names::SOURCE_SLICE, "web-b"));
    assert_eq!(world.then(&slice("2026-01-02T03:04:06Z")).plan().writes, []);
}

/// One change of a source is one write.
#[test]
fn a_changed_endpoint_is_one_update() {
    let world = two().settled().then("eu1 slice web-b port=http:8080 10.1.0.1:zb@n1!");
    expect![[r#"
        update endpointslices derived-isrlchlhrq-ljj7cvxv7j IPv4 http:8080/TCP
          10.1.0.1 not-ready host=pod in=zb"#]]
    .assert_eq(&world.plan().to_string());
}

/// S5.
#[test]
fn a_slice_goes_with_its_source() {
    let world = two().then("eu1 slice web-c port=http:8080 10.1.0.7").settled();
    assert_eq!(world.copies("eu1").len(), 2);
    let world = world.then("eu1 gone slice web-b").settled();
    assert_eq!(world.published("eu1"), "10.1.0.7 ready");
}

/// C7: others go by the name, and the cluster gets no traffic.
#[test]
fn a_port_of_another_name_and_the_same_number_gets_traffic() {
    let world = two()
        .then("home service port=web:80\n home slice web-a port=web:8080 10.0.0.1:za@n1")
        .settled();
    assert_eq!((world.ports("home"), world.ports("eu1")), ("http:8080".into(), "http:8080".into()));
}

/// C7: SHOULD of the KEP, required here.
#[test]
fn a_conflicting_port_gets_traffic_only_from_clusters_that_have_it() {
    let world = two()
        .then(
            "home service port=http:81 port=grpc:90
             home slice web-a port=http:8081 port=grpc:9090 10.0.0.1:za@n1",
        )
        .settled();
    assert_eq!(world.ports("eu1"), "http:8080");
    assert_eq!(world.ports("home"), "grpc:9090", "its `http` is another number");
    let report = &world.plan().sources[0];
    assert_eq!(report.left_out_ports, ["http 81/TCP".into()]);
}

#[test]
fn a_slice_without_a_port_left_is_not_published() {
    let world = two().then("home service port=http:81").settled();
    assert!(world.copies("home").is_empty());
}

/// C7: DNS reads the ports of a headless Service from its slices.
#[test]
fn ports_of_headless_services_are_copied_as_they_are() {
    let world = two()
        .then(
            "eu1 service headless port=http:80
             home service headless port=web:81
             home slice web-a port=web:8081 port=other:1 10.0.0.1",
        )
        .settled();
    assert_eq!(world.ports("home"), "web:8081 other:1");
}

/// C6: others make a Service that the API server refuses.
#[test]
fn an_unnamed_port_gets_a_name_when_there_are_several() {
    let world = two()
        .then(
            "eu1 service port=80
             eu1 slice web-b port=8080 10.1.0.1
             home service port=http:81 port=grpc:90
             home slice web-a port=http:8081 port=grpc:9090 10.0.0.1",
        )
        .settled();
    let names: Vec<&str> = world.import().spec.ports.iter().map(|port| &*port.name).collect();
    assert_eq!(names, ["", "http", "grpc"], "the import keeps it");
    let service = world.derived().expect("it is not headless");
    let names: Vec<&str> = service.ports.iter().map(|port| &*port.name).collect();
    assert_eq!(names, ["port-80-tcp", "http", "grpc"]);
    assert_eq!(world.ports("eu1"), "port-80-tcp:8080");
    // Alone, it needs none.
    let world = two().then("eu1 service port=80\n home service port=80").settled();
    assert_eq!(&*world.derived().expect("one").ports[0].name, "");
}

#[test]
fn the_name_of_an_unnamed_port_is_not_one_that_exists() {
    let world = two().then("eu1 service port=80\n home service port=port-80-tcp:81").settled();
    let service = world.derived().expect("it is not headless");
    let names: Vec<&str> = service.ports.iter().map(|port| &*port.name).collect();
    assert_eq!(names, ["port-80-tcp-2", "port-80-tcp"]);
}

fn hints(slice: &EndpointSlice) -> Vec<(String, String)> {
    let join = |texts: &[endpointd_model::SharedStr]| texts.join(",");
    let of = |endpoint: &endpointd_model::Endpoint| {
        let hints = endpoint.hints.clone().unwrap_or_default();
        (join(&hints.for_zones), join(&hints.for_nodes))
    };
    slice.endpoints.iter().map(of).collect()
}

fn preferring(what: &str) -> World {
    let world = two().then(&format!(
        "eu1 service port=http:80 prefer={what}
         home service port=http:80 prefer={what}
         eu1 slice web-b port=http:8080 10.1.0.1:zb@n1 10.1.0.2:zb@n1! 10.1.0.3"
    ));
    world.settled()
}

/// M7: hints are decided here.
#[test]
fn zones_are_hinted_for_ready_endpoints_that_have_one() {
    let world = preferring("PreferSameZone");
    assert_eq!(hints(world.copies("home")[0]), [("za".into(), String::new())]);
    let none = (String::new(), String::new());
    assert_eq!(hints(world.copies("eu1")[0]), [("zb".into(), String::new()), none.clone(), none]);
}

/// M7: without a name of no node, one remote endpoint would switch same-node routing off.
#[test]
fn remote_endpoints_are_hinted_for_a_node_that_is_not_here() {
    let world = preferring("PreferSameNode");
    assert_eq!(hints(world.copies("home")[0]), [("za".into(), "n1".into())]);
    let remote = "eu1.clusterset.local".to_owned();
    let none = (String::new(), String::new());
    let expected = [("zb".into(), remote.clone()), none, (String::new(), remote)];
    assert_eq!(hints(world.copies("eu1")[0]), expected);
}

/// M8.
#[test]
fn zones_of_a_cluster_can_be_dropped_or_prefixed() {
    let zone = |world: World| {
        let world = world.settled();
        (
            world.copies("eu1")[0].endpoints[0].zone.clone(),
            world.copies("home")[0].endpoints[0].zone.clone(),
        )
    };
    let home = Some("za".into());
    assert_eq!(zone(two()), (Some("zb".into()), home.clone()));
    assert_eq!(zone(two().then("eu1 zones drop")), (None, home.clone()));
    assert_eq!(zone(two().then("eu1 zones prefix")), (Some("eu1.zb".into()), home.clone()));
    let long =
        format!("eu1 zones prefix\n eu1 slice web-b port=http:8080 10.1.0.1:{}", "z".repeat(60));
    assert_eq!(zone(two().then(&long)), (None, home), "no label value is longer");
}

/// M11.
#[test]
fn the_same_address_in_two_clusters_is_reported() {
    let world = two()
        .then("eu1 slice web-b port=http:8080 10.0.0.1 10.1.0.1\n eu1 slice web-c port=http:8080 10.0.0.1")
        .settled();
    let says = "True/AddressesOverlap: 10.0.0.1 is an address in eu1 and in home.";
    assert_eq!(world.import_says("endpointd/AddressesOverlap"), says);
    assert_eq!(world.published("home"), "10.0.0.1 ready", "nobody knows which one is right");
    let world =
        world.then("eu1 slice web-b port=http:8080 10.1.0.1\n eu1 gone slice web-c").settled();
    let says = "False/NoOverlap: No two clusters have the same address.";
    assert_eq!(world.import_says("endpointd/AddressesOverlap"), says);
}

/// A hostile or careless cluster costs only its own endpoints.
#[test]
fn addresses_that_the_api_server_rejects_are_left_out() {
    let world = two()
        .then("eu1 slice web-b port=http:8080 127.0.0.1 10.1.0.1 169.254.169.254 nonsense")
        .settled();
    assert_eq!(world.published("eu1"), "10.1.0.1 ready");
}

#[test]
fn only_ip_families_of_the_import_are_copied() {
    let world = two()
        .then(
            "eu1 slice web-6 IPv6 port=http:8080 fd00::1
             eu1 slice web-f FQDN port=http:8080 example.com",
        )
        .settled();
    assert_eq!(world.published("eu1"), "10.1.0.1 ready");
}

/// No loops: what was imported is not exported again, even if somebody labels it so.
#[test]
fn imported_slices_are_not_sources() {
    let world = two().edit(|state| {
        for (label, value) in [(names::MANAGED_BY, "endpointd-import"), (names::IMPORT_NAME, "x")] {
            let mut slice = state.remotes[0].slices.values().next().expect("one").clone();
            slice.meta.name = format!("copy-{value}").as_str().into();
            slice.meta.labels = slice.meta.labels.with(label, Some(value));
            state.remotes[0].slices.insert(slice.meta.key(), slice);
        }
    });
    assert_eq!(world.settled().copies("eu1").len(), 1);
}

/// What somebody does to our slices is repaired; slices of others are never touched.
#[test]
fn edited_slices_are_repaired() {
    let settled = two().settled();
    let edits: [fn(&mut EndpointSlice); 4] = [
        |slice| slice.meta.labels = Labels::default(),
        |slice| slice.endpoints.clear(),
        |slice| slice.meta.owners.clear(),
        |slice| slice.ports.clear(),
    ];
    for edit in edits {
        let world = settled.clone().edit(|state| {
            let is_copy =
                |slice: &&mut EndpointSlice| slice.meta.labels.has(names::SOURCE_CLUSTER, "eu1");
            edit(state.home.slices.values_mut().find(is_copy).expect("one"));
        });
        let world = world.settled();
        assert_eq!(world.published("eu1"), "10.1.0.1 ready");
        assert_eq!(world.state.home.slices.len(), settled.state.home.slices.len());
    }
}

#[test]
fn a_name_that_is_taken_costs_the_next_one() {
    let name = two().settled().copies("eu1")[0].meta.name.clone();
    let world = world(&format!("home slice {name} port=x:1 10.9.9.9\n{}", super::world::TWO));
    let world = world.settled();
    assert_eq!(world.published("eu1"), "10.1.0.1 ready");
    assert_ne!(world.copies("eu1")[0].meta.name, name);
}
