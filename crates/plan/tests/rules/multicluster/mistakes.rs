//! Mistakes of other implementations of the API that this one must not make, where no other test of
//! these rules has the case already: a derived Service per cluster, one endpoint for a whole cluster,
//! no reaction to a lost one.

use super::world::two;

/// One address for all clusters, not one per cluster.
#[test]
fn an_import_has_one_derived_service_however_many_clusters_export() {
    let world = two().then(
        "us1 export 30
         us1 service port=http:80
         us1 slice web-c port=http:8080 10.2.0.1",
    );
    let world = world.settled();
    assert_eq!((world.state.derived.len(), world.import().spec.ips.len()), (1, 1));
    assert_eq!(world.clusters(), "eu1 home us1");
}

/// Every endpoint with its own readiness, in both families.
#[test]
fn every_endpoint_of_a_cluster_is_published() {
    let world = two().then(
        "eu1 service port=http:80 families=4,6
         home service port=http:80 families=4,6
         eu1 slice web-b port=http:8080 10.1.0.1 10.1.0.2! 10.1.0.3
         eu1 slice web-6 IPv6 port=http:8080 fd00::1 fd00::2!",
    );
    let expected =
        "fd00::1 ready, fd00::2 not-ready, 10.1.0.1 ready, 10.1.0.2 not-ready, 10.1.0.3 ready";
    assert_eq!(world.settled().published("eu1"), expected);
}

/// Node names of two clusters can be equal: `internalTrafficPolicy: Local` must not reach the other.
#[test]
fn endpoints_of_another_cluster_are_local_to_no_node() {
    let local = "eu1 service port=http:80 local\n home service port=http:80 local";
    let world = two().then(local).settled();
    let nodes = |cluster: &str| world.copies(cluster)[0].endpoints[0].node_name.clone();
    assert_eq!((nodes("home").as_deref(), nodes("eu1")), (Some("n1"), None));
}

/// Istio skips slices with the label of an import; endpoints with a pod that it cannot find, too.
#[test]
fn no_endpoint_refers_to_a_pod_of_another_cluster() {
    let world = two().settled();
    let slices = world.copies("eu1");
    let mut endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    assert!(endpoints.all(|endpoint| endpoint.target_ref.is_none() && endpoint.hints.is_none()));
}
