//! The manifests in `deploy/` on a real API server: it accepts them, they grant exactly upstream's
//! permissions, and their pods pass the strictest pod security level.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use endpointd_control_plane::binaries::is_ci;
use endpointd_control_plane::{ApiError, Cluster};
use serde_json::{Value, json};

/// Each account, and the upstream role that its role must equal; `endpointd` has all of them.
const ACCOUNTS: &[(&str, &str)] = &[
    ("endpointd-endpoints", "system:controller:endpoint-controller"),
    ("endpointd-slices", "system:controller:endpointslice-controller"),
    ("endpointd-mirror", "system:controller:endpointslicemirroring-controller"),
];
const READ: &[&str] = &["get", "list", "watch"];
const READ_AND_WRITE: &[&str] = &["get", "list", "watch", "create", "update", "delete"];
/// Group, resource, verbs.
const PERMISSIONS: &[(&str, &str, &[&str])] = &[
    ("", "services", READ),
    ("", "pods", READ),
    ("", "nodes", READ),
    ("", "services/finalizers", &["update"]),
    ("", "endpoints", READ_AND_WRITE),
    ("", "endpoints/finalizers", &["update"]),
    ("", "endpoints/restricted", &["create"]),
    ("discovery.k8s.io", "endpointslices", READ_AND_WRITE),
    ("", "events", &["create", "update", "patch"]),
    ("events.k8s.io", "events", &["create", "update", "patch"]),
];

#[test]
fn combined_role_has_exactly_these_permissions() {
    let Some(cluster) = cluster() else { return };
    let expected: BTreeSet<Permission> = PERMISSIONS
        .iter()
        .flat_map(|(group, resource, verbs)| verbs.iter().map(|verb| [*group, *resource, *verb]))
        .map(|permission| permission.map(str::to_owned))
        .collect();
    let objects = dry_run(cluster, "deploy");
    assert_eq!(permissions(object(&objects, "ClusterRole", "endpointd")), expected);
}

#[test]
fn separate_roles_equal_upstreams_roles() {
    let Some(cluster) = cluster() else { return };
    let mut all = BTreeSet::new();
    let objects = dry_run(cluster, "deploy/separate-accounts");
    for (name, upstream) in ACCOUNTS {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{upstream}");
        let theirs = permissions(&cluster.api().get(&path).unwrap());
        assert_eq!(permissions(object(&objects, "ClusterRole", name)), theirs, "{name}");
        all.extend(theirs);
    }
    let objects = dry_run(cluster, "deploy");
    assert_eq!(permissions(object(&objects, "ClusterRole", "endpointd")), all);
}

/// Access to a Lease is limited to its name, except for create, which RBAC cannot limit by name.
#[test]
fn each_account_has_access_to_one_lease() {
    let Some(cluster) = cluster() else { return };
    let mut objects = dry_run(cluster, "deploy");
    objects.extend(dry_run(cluster, "deploy/separate-accounts"));
    for name in ["endpointd", "endpointd-endpoints", "endpointd-slices", "endpointd-mirror"] {
        let role = object(&objects, "Role", &format!("{name}-lease"));
        let (group, resource) = (json!(["coordination.k8s.io"]), json!(["leases"]));
        let expected = json!([
            {"apiGroups": group, "resources": resource, "verbs": ["create"]},
            {
                "apiGroups": group,
                "resources": resource,
                "resourceNames": [name],
                "verbs": ["get", "update"],
            },
        ]);
        assert_eq!(role["rules"], expected);
        assert_eq!(role["metadata"]["namespace"], "endpointd");
        let wanted = format!("--leader-elect-resource-name={name}");
        let deployment = object(&objects, "Deployment", name);
        let args = container(deployment)["args"].as_array().unwrap();
        assert!(args.contains(&json!(wanted)), "{name}: {args:?}");
    }
}

#[test]
fn every_binding_connects_an_account_with_its_role() {
    let Some(cluster) = cluster() else { return };
    let mut objects = dry_run(cluster, "deploy");
    objects.extend(dry_run(cluster, "deploy/separate-accounts"));
    let kind = |object: &Value| object["kind"].as_str().unwrap().to_owned();
    let bindings: Vec<&Value> =
        objects.iter().filter(|object| kind(object).ends_with("Binding")).collect();
    assert_eq!(bindings.len(), 8);
    for binding in bindings {
        assert_eq!(binding["roleRef"]["name"], binding["metadata"]["name"]);
        let subjects = binding["subjects"].as_array().unwrap();
        assert_eq!(subjects.len(), 1, "{binding}");
        let account = subjects[0]["name"].as_str().unwrap();
        assert_eq!(
            binding["roleRef"]["name"].as_str().unwrap().trim_end_matches("-lease"),
            account
        );
        assert_eq!(subjects[0]["namespace"], "endpointd");
        object(&objects, "ServiceAccount", account);
        assert_eq!(
            pod_spec(object(&objects, "Deployment", account))["serviceAccountName"],
            account
        );
    }
}

#[test]
fn pods_pass_the_restricted_pod_security_level() {
    let Some(cluster) = cluster() else { return };
    let mut objects = dry_run(cluster, "deploy");
    objects.extend(dry_run(cluster, "deploy/separate-accounts"));
    let deployments: Vec<&Value> =
        objects.iter().filter(|object| object["kind"] == "Deployment").collect();
    assert_eq!(deployments.len(), 4);
    for deployment in deployments {
        try_pod(cluster, pod_spec(deployment).clone()).unwrap();
        // Without one of the settings the API server rejects the pod, so the check can fail.
        let mut spec = pod_spec(deployment).clone();
        spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
        let Err(ApiError::Refused { status: 403, message }) = try_pod(cluster, spec) else {
            panic!("a pod that may escalate was taken");
        };
        assert!(message.contains("PodSecurity"), "{message}");
        // Set in the manifests although the level does not require it.
        let security = &container(deployment)["securityContext"];
        assert_eq!(security["readOnlyRootFilesystem"], true);
    }
}

#[test]
fn replicas_have_probes_and_a_disruption_budget() {
    let Some(cluster) = cluster() else { return };
    let mut objects = dry_run(cluster, "deploy");
    objects.extend(dry_run(cluster, "deploy/separate-accounts"));
    for deployment in objects.iter().filter(|object| object["kind"] == "Deployment") {
        let name = deployment["metadata"]["name"].as_str().unwrap();
        assert_eq!(deployment["spec"]["replicas"], 2, "{name}");
        let container = container(deployment);
        assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/livez", "{name}");
        assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz", "{name}");
        let budget = object(&objects, "PodDisruptionBudget", name);
        assert_eq!(budget["spec"]["maxUnavailable"], 1, "{name}");
        assert_eq!(budget["spec"]["selector"], deployment["spec"]["selector"], "{name}");
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels, "{name}");
    }
}

/// Group, resource, verb.
type Permission = [String; 3];

/// The permissions of a role. Rules with wildcards or resource names are not supported.
fn permissions(role: &Value) -> BTreeSet<Permission> {
    let mut all = BTreeSet::new();
    let list = |value: &Value| -> Vec<String> {
        let texts = value.as_array().into_iter().flatten();
        texts.map(|text| text.as_str().expect("a list of names").to_owned()).collect()
    };
    for rule in role["rules"].as_array().expect("a role has rules") {
        assert!(rule["resourceNames"].is_null() && rule["nonResourceURLs"].is_null(), "{rule}");
        for group in list(&rule["apiGroups"]) {
            for resource in list(&rule["resources"]) {
                let of = |verb| [group.clone(), resource.clone(), verb];
                all.extend(list(&rule["verbs"]).into_iter().map(of));
            }
        }
    }
    all
}

fn object<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn pod_spec(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]
}

fn container(deployment: &Value) -> &Value {
    &pod_spec(deployment)["containers"][0]
}

/// A dry-run create of the pod. The ServiceAccount admission plugin is off, so the account need not
/// exist.
fn try_pod(cluster: &Cluster, spec: Value) -> Result<Value, ApiError> {
    let pod = json!({"metadata": {"generateName": "try-"}, "spec": spec});
    cluster.api().create("/api/v1/namespaces/endpointd/pods?dryRun=All", &pod)
}

/// The objects that the API server would store, with defaults. A warning fails the test.
fn dry_run(cluster: &Cluster, folder: &str) -> Vec<Value> {
    let folder = root().join(folder);
    let folder = folder.to_str().expect("the path is UTF-8");
    let applied =
        kubectl(cluster, &["apply", "--dry-run=server", "--output=json", "--kustomize", folder]);
    let list: Value = serde_json::from_str(&applied).expect("kubectl prints JSON");
    list["items"].as_array().expect("a list of objects").clone()
}

/// The shared cluster with our namespace, which a dry run of namespaced objects needs.
fn cluster() -> Option<&'static Cluster> {
    static NAMESPACE: OnceLock<()> = OnceLock::new();
    let cluster = Cluster::shared().filter(|_| has_kubectl())?;
    let file = root().join("deploy/namespace.yaml");
    let file = file.to_str().expect("the path is UTF-8");
    NAMESPACE.get_or_init(|| drop(kubectl(cluster, &["apply", "--filename", file])));
    Some(cluster)
}

fn kubectl(cluster: &Cluster, args: &[&str]) -> String {
    let kubeconfig = cluster.kubeconfig();
    let kubeconfig = kubeconfig.to_str().expect("the path is UTF-8");
    let mut kubectl = Command::new("kubectl");
    kubectl.args(["--kubeconfig", kubeconfig]).args(args);
    let output = kubectl.output().expect("kubectl starts");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "kubectl {args:?}: {complaints}");
    String::from_utf8(output.stdout).expect("kubectl prints UTF-8")
}

/// Without `kubectl` the tests are skipped, except in CI, where they fail.
fn has_kubectl() -> bool {
    let is_installed = Command::new("kubectl").args(["version", "--client"]).output().is_ok();
    assert!(is_installed || !is_ci(), "`kubectl` is not installed");
    is_installed
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_owned()
}
