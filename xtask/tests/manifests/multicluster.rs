//! The definitions in `deploy/multicluster` on a real API server: they have exactly the schema of the
//! module `sigs.k8s.io/mcs-api`, both versions are served, and invalid objects are refused.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::binaries::is_ci;
use endpointd_control_plane::{Api, ApiError, Cluster};
use serde_json::{Value, json};

use super::{DRY_RUN, apply, items, object};

const FOLDER: &str = "deploy/multicluster";
const MODULE: &str = "sigs.k8s.io/mcs-api@v0.5.2";
/// The checksum of the module, as in a `go.sum`.
const MODULE_SUM: &str = "h1:N+vrRiCIb0WJ0dxbBo7VfNv2WJigOHEo4gsLXpffVs8=";
const NAMES: [&str; 2] =
    ["serviceexports.multicluster.x-k8s.io", "serviceimports.multicluster.x-k8s.io"];
const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];

#[test]
fn definitions_have_the_schema_of_the_module() {
    let Some(cluster) = super::cluster() else { return };
    let Some(module) = module() else { return };
    let (ours, _) = apply(cluster, Path::new(FOLDER), DRY_RUN);
    let ours = items(&ours);
    let theirs = applied_files(cluster, &module.join("config/crd"));
    for name in NAMES {
        let of = |objects: &[Value]| {
            let definition = object(objects, "CustomResourceDefinition", name);
            without_descriptions(&definition["spec"])
        };
        assert_eq!(of(&ours), of(&theirs), "{name}");
        let labels = |objects: &[Value]| {
            object(objects, "CustomResourceDefinition", name)["metadata"]["labels"].clone()
        };
        assert_eq!(labels(&ours), labels(&theirs), "{name}: they say which one is newer");
    }
}

#[test]
fn both_versions_are_served_and_stored_as_v1beta1() {
    let Some(api) = defined() else { return };
    let export = export("served");
    let created = create(api, "v1alpha1", "serviceexports", &export, "").expect("it is valid");
    assert_eq!(created["apiVersion"], "multicluster.x-k8s.io/v1alpha1");
    let read = api.get(&path("v1beta1", "serviceexports/served")).expect("the same object");
    assert_eq!(read["metadata"]["uid"], created["metadata"]["uid"]);
    assert_eq!(read["spec"], export["spec"]);
    for name in NAMES {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let definition = api.get(&path).expect("it is applied");
        assert_eq!(definition["status"]["storedVersions"], json!(["v1beta1"]), "{name}");
    }
}

#[test]
fn valid_objects_are_accepted_and_invalid_ones_refused() {
    let Some(api) = defined() else { return };
    for version in VERSIONS {
        let is_refused =
            |resource: &str, object: &Value| match dry_run(api, version, resource, object) {
                Ok(_) => false,
                Err(ApiError::Refused { status: 422, .. }) => true,
                Err(other) => panic!("{version} {resource}: {other}"),
            };
        assert!(!is_refused("serviceexports", &export("valid")));
        assert!(is_refused("serviceexports", &with(export("x"), "/spec/exportedLabels", json!(1))));
        let import = import();
        assert!(!is_refused("serviceimports", &import));
        for (field, value) in [
            ("/spec/type", json!("LoadBalancer")),
            ("/spec/type", Value::Null),
            ("/spec/ports", Value::Null),
            ("/spec/ports/0/port", json!("http")),
            ("/spec/ips", json!(["10.0.0.1", "fd00::1", "10.0.0.2"])),
        ] {
            let invalid = with(import.clone(), field, value);
            assert!(is_refused("serviceimports", &invalid), "{version}: {invalid}");
        }
    }
}

fn export(name: &str) -> Value {
    json!({
        "kind": "ServiceExport",
        "metadata": {"name": name},
        "spec": {"exportedLabels": {"team": "shop"}, "exportedAnnotations": {"owner": "shop"}},
    })
}

fn import() -> Value {
    json!({
        "kind": "ServiceImport",
        "metadata": {"name": "web"},
        "spec": {
            "type": "ClusterSetIP",
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "appProtocol": "http"}],
            "ips": ["10.96.0.10"],
            "ipFamilies": ["IPv4"],
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
            "internalTrafficPolicy": "Cluster",
            "trafficDistribution": "PreferSameZone",
        },
    })
}

fn with(mut object: Value, field: &str, value: Value) -> Value {
    *object.pointer_mut(field).expect("the object has the field") = value;
    object
}

fn path(version: &str, rest: &str) -> String {
    format!("/apis/multicluster.x-k8s.io/{version}/namespaces/default/{rest}")
}

fn create(
    api: &Api,
    version: &str,
    resource: &str,
    object: &Value,
    query: &str,
) -> Result<Value, ApiError> {
    let mut object = object.clone();
    object["apiVersion"] = format!("multicluster.x-k8s.io/{version}").into();
    api.create(&format!("{}{query}", path(version, resource)), &object)
}

fn dry_run(api: &Api, version: &str, resource: &str, object: &Value) -> Result<Value, ApiError> {
    create(api, version, resource, object, "?dryRun=All")
}

/// The shared cluster with the definitions, once the API server serves them.
fn defined() -> Option<&'static Api> {
    static DEFINED: OnceLock<()> = OnceLock::new();
    let cluster = super::cluster()?;
    DEFINED.get_or_init(|| {
        drop(apply(cluster, Path::new(FOLDER), &[]));
        for version in VERSIONS {
            for resource in ["serviceexports", "serviceimports"] {
                wait_until_served(cluster.api(), &path(version, resource));
            }
        }
    });
    Some(cluster.api())
}

fn wait_until_served(api: &Api, path: &str) {
    const SERVED_MAX: Duration = Duration::from_secs(60);
    let started = Instant::now();
    while let Err(error) = api.get(path) {
        assert!(started.elapsed() < SERVED_MAX, "{path}: {error}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// The objects that the API server would store of the files in a folder.
fn applied_files(cluster: &Cluster, folder: &Path) -> Vec<Value> {
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("--kubeconfig").arg(cluster.kubeconfig());
    kubectl.args(["apply", "--filename"]).arg(folder).args(DRY_RUN);
    let output = kubectl.output().expect("kubectl starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    items(&String::from_utf8(output.stdout).expect("kubectl prints UTF-8"))
}

/// Texts are our own; everything else must be equal.
fn without_descriptions(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept =
                fields.iter().filter(|(name, value)| *name != "description" || !value.is_string());
            let kept = kept.map(|(name, value)| (name.clone(), without_descriptions(value)));
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(without_descriptions).collect(),
        other => other.clone(),
    }
}

/// The folder of the module, which Go downloads once. Without Go the test is skipped, except in CI.
fn module() -> Option<PathBuf> {
    let empty = tempfile::tempdir().expect("a folder outside of any module");
    let output = Command::new("go")
        .args(["mod", "download", "-json", MODULE])
        .current_dir(empty.path())
        .env("GOFLAGS", "")
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            assert!(!is_ci(), "Go is not installed: {error}");
            eprintln!("skipped: `go` cannot be started: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{MODULE}: {}", String::from_utf8_lossy(&output.stdout));
    let module: Value = serde_json::from_slice(&output.stdout).expect("Go prints JSON");
    assert_eq!(module["Sum"], MODULE_SUM, "{MODULE} is not what it was");
    Some(module["Dir"].as_str().expect("the folder of the module").into())
}
