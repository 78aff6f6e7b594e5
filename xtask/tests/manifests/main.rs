//! The manifests in `deploy/` on a real API server: it accepts them, they grant exactly upstream's
//! permissions and priority levels, and their pods pass the strictest pod security level.

mod chart;
mod clusters;
mod components;
mod imports;
mod multicluster;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

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
    let objects = all_objects(cluster);
    for name in ["endpointd", "endpointd-endpoints", "endpointd-slices", "endpointd-mirror"] {
        let role = object(&objects, "Role", &lease_role(name));
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
    let objects = all_objects(cluster);
    let kind = |object: &Value| object["kind"].as_str().unwrap().to_owned();
    let bindings: Vec<&Value> = objects
        .iter()
        .filter(|object| kind(object).ends_with("Binding") && !is_delegation(object))
        .collect();
    assert_eq!(bindings.len(), 8);
    for binding in bindings {
        assert_eq!(binding["roleRef"]["name"], binding["metadata"]["name"]);
        let subjects = binding["subjects"].as_array().unwrap();
        assert_eq!(subjects.len(), 1, "{binding}");
        let account = subjects[0]["name"].as_str().unwrap();
        let role = binding["roleRef"]["name"].as_str().unwrap();
        assert!([account, &lease_role(account)].contains(&role), "{binding}");
        assert_eq!(subjects[0]["namespace"], "endpointd");
        object(&objects, "ServiceAccount", account);
        assert_eq!(
            pod_spec(object(&objects, "Deployment", account))["serviceAccountName"],
            account
        );
    }
}

/// The binding that lets an account ask the API server about users, or read the authorities of client
/// certificates.
fn is_delegation(binding: &Value) -> bool {
    binding["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("endpointd-auth-"))
}

/// The only permissions besides those of the controllers and the Lease.
#[test]
fn every_account_can_ask_who_may_see_its_pages() {
    let Some(cluster) = cluster() else { return };
    let objects = all_objects(cluster);
    let bindings = objects.iter().filter(|object| is_delegation(object));
    let all: BTreeSet<[&str; 4]> = bindings
        .map(|binding| {
            let subject = &binding["subjects"][0];
            [
                &subject["namespace"],
                &subject["name"],
                &binding["roleRef"]["name"],
                &binding["metadata"]["namespace"],
            ]
            .map(|text| text.as_str().unwrap_or_default())
        })
        .collect();
    let accounts = ["endpointd", "endpointd-endpoints", "endpointd-mirror", "endpointd-slices"];
    let expected: BTreeSet<[&str; 4]> = accounts
        .iter()
        .flat_map(|account| {
            let reader = "extension-apiserver-authentication-reader";
            [
                ["endpointd", account, "system:auth-delegator", ""],
                ["endpointd", account, reader, "kube-system"],
            ]
        })
        .collect();
    assert_eq!(all, expected);
}

#[test]
fn pods_pass_the_restricted_pod_security_level() {
    let Some(cluster) = cluster() else { return };
    let objects = all_objects(cluster);
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
    let objects = all_objects(cluster);
    for deployment in objects.iter().filter(|object| object["kind"] == "Deployment") {
        let name = deployment["metadata"]["name"].as_str().unwrap();
        assert_eq!(deployment["spec"]["replicas"], 2, "{name}");
        let container = container(deployment);
        assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/livez", "{name}");
        assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz", "{name}");
        let budget = object(&objects, "PodDisruptionBudget", name);
        assert_eq!(budget["spec"]["maxUnavailable"], 1, "{name}");
        assert_eq!(budget["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow", "{name}");
        let selector = &deployment["spec"]["selector"];
        assert_eq!(&budget["spec"]["selector"], selector, "{name}");
        let labels = deployment["spec"]["template"]["metadata"]["labels"].as_object().unwrap();
        for (label, value) in selector["matchLabels"].as_object().unwrap() {
            assert_eq!(labels.get(label), Some(value), "{name}");
        }
    }
}

#[test]
fn every_object_has_the_recommended_labels() {
    let Some(cluster) = cluster() else { return };
    for object in all_objects(cluster).iter().filter(|object| object["kind"] != "Namespace") {
        let labels = &object["metadata"]["labels"];
        for label in ["name", "instance", "version", "component", "part-of", "managed-by"] {
            let value = &labels[format!("app.kubernetes.io/{label}")];
            assert!(value.is_string(), "no label `{label}`: {}", object["metadata"]);
        }
        assert_eq!(labels["app.kubernetes.io/version"], env!("CARGO_PKG_VERSION"));
    }
}

/// How long kube-apiserver may take to use new FlowSchemas: it watches them.
const FLOW_SCHEMAS_USED_MAX: Duration = Duration::from_secs(60);

#[test]
fn requests_have_the_priority_levels_of_kube_controller_manager() {
    let Some(cluster) = cluster() else { return };
    let schema = |name: &str| {
        let path = format!("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/{name}");
        cluster.api().get(&path).unwrap()
    };
    let level = |schema: &Value| schema["spec"]["priorityLevelConfiguration"]["name"].clone();
    for account in ["endpointd", "endpointd-endpoints", "endpointd-slices", "endpointd-mirror"] {
        let suffix = account.trim_start_matches("endpointd");
        let lease = format!("/apis/coordination.k8s.io/v1/namespaces/endpointd/leases/{account}");
        let kubeconfig = cluster.kubeconfig_of("endpointd", account).unwrap();
        for (path, ours, upstreams) in [
            (
                lease.as_str(),
                format!("endpointd-leader-election{suffix}"),
                "system-leader-election",
            ),
            ("/api/v1/services", account.to_owned(), "kube-controller-manager"),
            ("/version", account.to_owned(), "kube-controller-manager"),
        ] {
            let (ours, upstreams) = (schema(&ours), schema(upstreams));
            assert_eq!(level(&ours), level(&upstreams), "{account}: {path}");
            let expected = ours["metadata"]["uid"].as_str().unwrap();
            let started = Instant::now();
            while flow_schema_uid(&kubeconfig, path) != expected {
                assert!(started.elapsed() < FLOW_SCHEMAS_USED_MAX, "{account}: {path}: {ours}");
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
    // Without a FlowSchema of its own an account falls into `service-accounts`.
    let other = cluster.service_account("endpointd", "other").unwrap();
    let expected = schema("service-accounts");
    assert_eq!(flow_schema_uid(&other, "/api/v1/services"), expected["metadata"]["uid"]);
    assert_eq!(level(&expected), "workload-low");
}

/// The FlowSchema that kube-apiserver assigned to a request. It classifies a request before it
/// checks permissions, so the answer may be an error.
fn flow_schema_uid(kubeconfig: &Path, path: &str) -> String {
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("--kubeconfig").arg(kubeconfig).args(["get", "--raw", path, "--v=8"]);
    let output = kubectl.output().expect("kubectl starts");
    let log = String::from_utf8_lossy(&output.stderr).to_lowercase();
    let (_, rest) = log
        .split_once("x-kubernetes-pf-flowschema-uid: ")
        .unwrap_or_else(|| panic!("no header of API Priority and Fairness: {log}"));
    rest.split_whitespace().next().unwrap_or_default().to_owned()
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

/// The Role for the Lease of an account.
fn lease_role(account: &str) -> String {
    account.replacen("endpointd", "endpointd-lease", 1)
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

/// The objects of both variants, one account and three.
fn all_objects(cluster: &Cluster) -> Vec<Value> {
    let mut objects = dry_run(cluster, "deploy");
    objects.extend(dry_run(cluster, "deploy/separate-accounts"));
    objects
}

const DRY_RUN: &[&str] = &["--dry-run=server", "--output=json"];

/// The objects that the API server would store, with defaults. A warning fails the test.
fn dry_run(cluster: &Cluster, folder: &str) -> Vec<Value> {
    let (applied, warnings) = apply(cluster, Path::new(folder), DRY_RUN);
    assert_eq!(warnings, "", "{folder}");
    items(&applied)
}

fn items(list: &str) -> Vec<Value> {
    let list: Value = serde_json::from_str(list).expect("kubectl prints JSON");
    list["items"].as_array().expect("a list of objects").clone()
}

/// What kubectl prints, and its warnings.
fn apply(cluster: &Cluster, folder: &Path, more: &[&str]) -> (String, String) {
    let folder = root().join(folder);
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("--kubeconfig").arg(cluster.kubeconfig());
    kubectl.args(["apply", "--kustomize"]).arg(&folder).args(more);
    let output = kubectl.output().expect("kubectl starts");
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {warnings}", folder.display());
    (String::from_utf8(output.stdout).expect("kubectl prints UTF-8"), warnings)
}

/// The shared cluster with both variants applied. Nothing there creates pods of a Deployment.
fn cluster() -> Option<&'static Cluster> {
    static APPLIED: OnceLock<()> = OnceLock::new();
    let cluster = Cluster::shared().filter(|_| has_kubectl())?;
    APPLIED.get_or_init(|| {
        for folder in ["deploy", "deploy/separate-accounts"] {
            drop(apply(cluster, Path::new(folder), &[]));
        }
    });
    Some(cluster)
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
