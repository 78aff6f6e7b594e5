//! `deploy/multicluster/controller` and `deploy/multicluster/source`: Services of several clusters, with
//! permissions that are not more than needed here, and only to read elsewhere.

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    READ, READ_AND_WRITE, cluster, container, dry_run, object, permissions, pod_spec, try_pod,
};

const NAME: &str = "endpointd-multicluster";
/// Group, resource, verbs. Neither pods nor Endpoints.
const PERMISSIONS: &[(&str, &str, &[&str])] = &[
    ("", "services", READ_AND_WRITE),
    ("", "namespaces", READ),
    ("discovery.k8s.io", "endpointslices", READ_AND_WRITE),
    ("discovery.k8s.io", "endpointslices/restricted", &["create"]),
    ("multicluster.x-k8s.io", "serviceexports", READ),
    ("multicluster.x-k8s.io", "serviceimports", READ_AND_WRITE),
    ("multicluster.x-k8s.io", "serviceexports/status", &["update"]),
    ("multicluster.x-k8s.io", "serviceimports/status", &["update"]),
    ("", "events", &["create", "update", "patch"]),
    ("events.k8s.io", "events", &["create", "update", "patch"]),
];
const ELSEWHERE: &[(&str, &str, &[&str])] = &[
    ("", "services", READ),
    ("discovery.k8s.io", "endpointslices", READ),
    ("multicluster.x-k8s.io", "serviceexports", READ),
    ("", "namespaces", &["get"]),
    ("about.k8s.io", "clusterproperties", &["get"]),
];

fn expected(permissions: &[(&str, &str, &[&str])]) -> BTreeSet<[String; 3]> {
    permissions
        .iter()
        .flat_map(|(group, resource, verbs)| verbs.iter().map(|verb| [*group, *resource, *verb]))
        .map(|permission| permission.map(str::to_owned))
        .collect()
}

#[test]
fn the_controller_has_exactly_these_permissions() {
    let Some(cluster) = cluster() else { return };
    let objects = dry_run(cluster, "deploy/multicluster/controller");
    assert_eq!(permissions(object(&objects, "ClusterRole", NAME)), expected(PERMISSIONS));
    let deployment = object(&objects, "Deployment", NAME);
    let args = container(deployment)["args"].as_array().expect("a container has arguments");
    for arg in ["--controllers=multicluster-controller", "--clusters=/etc/endpointd/clusters"] {
        assert!(args.contains(&json!(arg)), "{args:?}");
    }
    let volume = &pod_spec(deployment)["volumes"][0]["secret"];
    assert_eq!(
        (&volume["secretName"], &volume["optional"]),
        (&json!("endpointd-clusters"), &json!(true))
    );
    assert_eq!(pod_spec(deployment)["serviceAccountName"], NAME);
    try_pod(cluster, pod_spec(deployment).clone()).expect("the restricted level permits it");
}

#[test]
fn elsewhere_everything_is_only_read() {
    let Some(cluster) = cluster() else { return };
    let objects = dry_run(cluster, "deploy/multicluster/source");
    let mut role = object(&objects, "ClusterRole", "endpointd-source").clone();
    let rules = role["rules"].as_array_mut().expect("a role has rules");
    let named = rules.iter_mut().filter_map(|rule| {
        let names = rule.as_object_mut()?.remove("resourceNames")?;
        Some((rule["resources"].clone(), names))
    });
    let kube_system = (json!(["namespaces"]), json!(["kube-system"]));
    assert_eq!(named.collect::<Vec<_>>(), [kube_system]);
    assert_eq!(permissions(&role), expected(ELSEWHERE));
}
