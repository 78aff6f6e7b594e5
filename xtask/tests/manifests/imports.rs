//! `deploy/imports`: only the import controller, with permissions of its own and no others.

use std::collections::BTreeSet;

use serde_json::json;

use super::{READ, cluster, container, dry_run, object, permissions, pod_spec, try_pod};

const NAME: &str = "endpointd-imports";
/// Group, resource, verbs. Neither pods nor Endpoints.
const PERMISSIONS: &[(&str, &str, &[&str])] = &[
    ("", "services", READ),
    ("", "nodes", READ),
    ("", "services/finalizers", &["update"]),
    ("", "services/status", &["patch"]),
    ("discovery.k8s.io", "endpointslices", super::READ_AND_WRITE),
    ("discovery.k8s.io", "endpointslices/restricted", &["create"]),
    ("gateway.networking.k8s.io", "referencegrants", &["list", "watch"]),
    ("", "events", &["create", "update", "patch"]),
    ("events.k8s.io", "events", &["create", "update", "patch"]),
];

#[test]
fn imports_have_exactly_these_permissions_and_a_lease_of_their_own() {
    let Some(cluster) = cluster() else { return };
    let objects = dry_run(cluster, "deploy/imports");
    let expected: BTreeSet<[String; 3]> = PERMISSIONS
        .iter()
        .flat_map(|(group, resource, verbs)| verbs.iter().map(|verb| [*group, *resource, *verb]))
        .map(|permission| permission.map(str::to_owned))
        .collect();
    assert_eq!(permissions(object(&objects, "ClusterRole", NAME)), expected);
    let lease = object(&objects, "Role", "endpointd-lease-imports");
    assert_eq!(lease["rules"][1]["resourceNames"], json!([NAME]));
    for binding in objects.iter().filter(|one| one["kind"] == "ClusterRoleBinding") {
        assert_eq!(binding["subjects"][0]["name"], NAME, "{binding}");
    }
}

#[test]
fn imports_run_one_controller_and_pass_the_restricted_level() {
    let Some(cluster) = cluster() else { return };
    let objects = dry_run(cluster, "deploy/imports");
    let deployment = object(&objects, "Deployment", NAME);
    let args = container(deployment)["args"].as_array().expect("a container has arguments");
    for arg in [
        "--controllers=endpointslice-import-controller",
        "--leader-elect-resource-name=endpointd-imports",
    ] {
        assert!(args.contains(&json!(arg)), "{args:?}");
    }
    assert_eq!(pod_spec(deployment)["serviceAccountName"], NAME);
    try_pod(cluster, pod_spec(deployment).clone()).expect("the restricted level permits it");
    let quota = object(&objects, "ResourceQuota", NAME);
    let scope = &quota["spec"]["scopeSelector"]["matchExpressions"][0];
    assert_eq!(scope["values"], json!([pod_spec(deployment)["priorityClassName"]]));
}
