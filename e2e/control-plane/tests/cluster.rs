//! A cluster starts, stores objects, survives restarts, and runs controllers.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::binaries::is_ci;
use endpointd_control_plane::{ApiError, Audit, Binaries, Cluster, Options, Program, Stop};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn service_and_ready_pod_are_stored() {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = cluster.namespace("stored").unwrap();
    create_service(cluster, &namespace);
    create_ready_pod(cluster, &namespace);

    let pod = cluster.api().get(&format!("/api/v1/namespaces/{namespace}/pods/web-a")).unwrap();
    assert_eq!(pod["status"]["podIP"], "10.0.0.1");
    let services = cluster.api().get(&format!("/api/v1/namespaces/{namespace}/services")).unwrap();
    assert_eq!(services["items"][0]["spec"]["ipFamilies"], json!(["IPv4"]));
}

#[test]
fn namespaces_with_the_same_hint_are_distinct() {
    let Some(cluster) = Cluster::shared() else { return };
    assert_ne!(cluster.namespace("same").unwrap(), cluster.namespace("same").unwrap());
}

#[test]
fn api_server_has_the_pinned_version() {
    let Some(cluster) = Cluster::shared() else { return };
    let version = cluster.api().get("/version").unwrap();
    assert_eq!(version["gitVersion"], "v1.36.4");
    assert_eq!(version["minor"], "36");
}

#[test]
fn service_kubernetes_is_published() {
    let Some(cluster) = Cluster::shared() else { return };
    let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    let slice = eventually(|| cluster.api().get(path).ok());
    assert_eq!(slice["endpoints"][0]["addresses"], json!(["192.0.2.1"]));
}

#[test]
fn kubeconfig_works_with_kubectl() {
    let Some(cluster) = Cluster::shared().filter(|_| has_kubectl()) else { return };
    let namespace = cluster.namespace("kubectl").unwrap();
    let output = kubectl(&cluster.kubeconfig(), &["get", "namespace", &namespace, "-o", "name"]);
    assert_eq!(output, format!("namespace/{namespace}\n"));
}

#[test]
fn service_account_has_no_permissions_until_bound() {
    let Some(cluster) = Cluster::shared().filter(|_| has_kubectl()) else { return };
    let namespace = cluster.namespace("account").unwrap();
    let kubeconfig = cluster.service_account(&namespace, "robot").unwrap();
    let can = |account: &Path| kubectl(account, &["auth", "can-i", "list", "pods", "-A"]);
    assert_eq!(can(&kubeconfig), "no\n");

    let binding = json!({
        "metadata": {"name": format!("{namespace}-robot")},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    cluster.api().create(bindings, &binding).unwrap();
    eventually(|| (can(&kubeconfig) == "yes\n").then_some(()));
}

#[test]
fn error_has_the_message_of_the_server() {
    let Some(cluster) = Cluster::shared() else { return };
    let refused = cluster.api().get("/api/v1/namespaces/absent").unwrap_err();
    let ApiError::Refused { status: 404, message } = refused else { panic!("{refused}") };
    assert_eq!(message, "namespaces \"absent\" not found");
}

#[test]
fn controllers_write_an_endpoint_slice_for_a_ready_pod() {
    let Some(binaries) = Binaries::for_test() else { return };
    let cluster = Cluster::start(&binaries, Options::default()).unwrap();
    let namespace = cluster.namespace("slices").unwrap();
    // A pod on a node that does not exist is not published.
    cluster.api().create("/api/v1/nodes", &json!({"metadata": {"name": "node-1"}})).unwrap();
    create_service(&cluster, &namespace);
    create_ready_pod(&cluster, &namespace);
    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
    let endpoints = format!("/api/v1/namespaces/{namespace}/endpoints/web");
    assert_eq!(cluster.api().get(&slices).unwrap()["items"], json!([]));

    cluster.start_controller_manager(&["endpointslice-controller"], &[]).unwrap();
    let slice = eventually(|| cluster.api().get(&slices).unwrap()["items"].get(0).cloned());
    assert_eq!(slice["endpoints"][0]["addresses"], json!(["10.0.0.1"]));
    assert_eq!(slice["endpoints"][0]["conditions"]["ready"], true);
    let metrics = cluster.controller_manager().unwrap().text("/metrics").unwrap();
    assert!(metrics.contains("endpoint_slice_controller_syncs"));
    let absent = cluster.api().get(&endpoints).unwrap_err();
    assert!(
        matches!(absent, ApiError::Refused { status: 404, .. }),
        "only the slice controller runs"
    );

    cluster.stop(Program::ControllerManager, Stop::Terminate).unwrap();
    cluster.start_controller_manager(&["endpoints-controller"], &["--v=2"]).unwrap();
    let endpoints = eventually(|| cluster.api().get(&endpoints).ok());
    assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], "10.0.0.1");
}

#[test]
fn unknown_controller_is_an_error_with_its_name() {
    let Some(cluster) = Cluster::shared() else { return };
    let error = cluster.start_controller_manager(&["no-such-controller"], &[]).unwrap_err();
    assert!(error.to_string().contains("no-such-controller"), "{error}");
    cluster.stop(Program::ControllerManager, Stop::Kill).unwrap();
}

#[test]
fn restarted_api_server_has_the_same_port_and_objects() {
    let Some(binaries) = Binaries::for_test() else { return };
    let options = Options { audit: Audit::Metadata, ..Options::default() };
    let cluster = Cluster::start(&binaries, options).unwrap();
    let path = format!("/api/v1/namespaces/{}", cluster.namespace("restart").unwrap());
    for how in [Stop::Terminate, Stop::Kill] {
        cluster.stop(Program::ApiServer, how).unwrap();
        assert!(matches!(cluster.api().get(&path), Err(ApiError::Unreachable(_))));
        cluster.start_apiserver().unwrap();
        assert!(cluster.api().get(&path).is_ok(), "after {how:?}");
    }

    let audit = fs::read_to_string(cluster.audit_log()).unwrap();
    let created = |line: &str| line.contains(r#""verb":"create""#) && line.contains("namespaces");
    assert!(audit.lines().any(created), "the audit log has the namespace's creation");
}

#[test]
fn cluster_starts_with_the_saved_data_of_another_one() {
    let Some(binaries) = Binaries::for_test() else { return };
    let first = Cluster::start(&binaries, Options::default()).unwrap();
    let path = format!("/api/v1/namespaces/{}", first.namespace("kept").unwrap());
    let data = Some(first.stop_and_save().unwrap());
    for _ in 0..2 {
        let options = Options { data: data.clone(), ..Options::default() };
        let next = Cluster::start(&binaries, options).unwrap();
        assert!(next.pid(Program::ApiServer).is_some());
        assert!(next.api().get(&path).is_ok());
        next.api().delete(&path).unwrap(); // Changes only its own copy.
    }
}

#[test]
fn write_waits_for_a_paused_etcd() {
    let Some(binaries) = Binaries::for_test() else { return };
    let cluster = Cluster::start(&binaries, Options::default()).unwrap();
    cluster.pause(Program::Etcd).unwrap();
    thread::scope(|scope| {
        let write = scope.spawn(|| cluster.namespace("paused").unwrap());
        thread::sleep(Duration::from_secs(1));
        assert!(!write.is_finished(), "etcd cannot have stored the namespace");
        cluster.resume(Program::Etcd).unwrap();
    });
}

fn create_service(cluster: &Cluster, namespace: &str) {
    let service = json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    let services = format!("/api/v1/namespaces/{namespace}/services");
    cluster.api().create(&services, &service).expect("the Service is valid");
}

fn create_ready_pod(cluster: &Cluster, namespace: &str) {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let pod = json!({
        "metadata": {"name": "web-a", "labels": {"app": "web"}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "web", "image": "web"}]},
    });
    let mut pod = cluster.api().create(&pods, &pod).expect("the Pod is valid");
    pod["status"] = json!({
        "phase": "Running",
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    let status = format!("{pods}/web-a/status");
    cluster.api().replace(&status, &pod).expect("the status is valid");
}

/// Like a missing control plane, a missing `kubectl` skips the test, and fails it in CI.
fn has_kubectl() -> bool {
    let found = Command::new("kubectl").args(["version", "--client"]).output().is_ok();
    assert!(found || !is_ci(), "`kubectl` is not installed");
    found
}

/// Returns standard output. The exit code is ignored, because `auth can-i` fails for "no".
fn kubectl(kubeconfig: &Path, args: &[&str]) -> String {
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("--kubeconfig").arg(kubeconfig).args(args);
    let output = kubectl.output().expect("`kubectl` is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn eventually<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(started.elapsed() < TIMEOUT, "nothing after {TIMEOUT:?}");
        thread::sleep(Duration::from_millis(50));
    }
}
