//! Who may start first: a webhook without endpoints keeps every pod from being created, those of a
//! Deployment of endpointd too. A static pod needs no admission, so it publishes the endpoints of the
//! webhook, and pods can be created again.
//!
//! kube-apiserver calls the webhook at the address in its EndpointSlice, which must not be loopback. So
//! the test runs itself again in a network namespace with one more address, which ends with it.

use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::binaries::is_ci;
use endpointd_control_plane::{ApiError, Binaries, Cluster, Options, certificates};
use endpointd_fault_proxy::{AdmissionWebhook, Verdict};
use endpointd_scenarios::cluster::controllers_under_test;
use endpointd_scenarios::pods::Pod;
use endpointd_scenarios::{Controllers, Daemon, DaemonFlags, TestNamespace};
use serde_json::{Value, json};

/// Set in the process that runs in the network namespace.
const INSIDE_VARIABLE: &str = "ENDPOINTD_STATIC_POD_TEST";
/// For documentation (RFC 5737), so it is the address of nothing else.
const WEBHOOK_IP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const TEST: &str = "a_static_pod_lifts_the_block_of_a_webhook";
/// For the certificate in the kubeconfig of the static pod.
const VALID_FOR: Duration = Duration::from_secs(3600);
/// Ten times what the steps took on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

#[test]
fn a_static_pod_lifts_the_block_of_a_webhook() {
    if controllers_under_test() == Controllers::ControllerManager {
        return;
    }
    let Some(binaries) = Binaries::for_test() else { return };
    match env::var_os(INSIDE_VARIABLE) {
        None => run_in_network_namespace(),
        Some(_) => lift_the_block(&binaries),
    }
}

fn run_in_network_namespace() {
    let namespace = ["--map-root-user", "--net", "--"];
    let can = Command::new("unshare").args(namespace).args(["ip", "link"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        assert!(!is_ci(), "`unshare --net` and `ip` do not work here");
        eprintln!("skipped: `unshare --net` and `ip` do not work here");
        return;
    }
    let prepare =
        format!("ip link set lo up && ip address add {WEBHOOK_IP}/32 dev lo && exec \"$0\" \"$@\"");
    let mut unshare = Command::new("unshare");
    unshare.args(namespace).args(["sh", "-c", &prepare]).arg(env::current_exe().expect("a path"));
    unshare.args(["--exact", TEST, "--nocapture"]).env(INSIDE_VARIABLE, "1");
    let output = unshare.output().expect("it could be started before");
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{error}");
}

fn lift_the_block(binaries: &Binaries) {
    // Calls a webhook at an endpoint, because nothing here implements Service addresses.
    let apiserver_flags = vec!["--enable-aggregator-routing=true".to_owned()];
    let options = Options { apiserver_flags, ..Options::default() };
    let cluster = Cluster::start(binaries, options).expect("a cluster starts");
    kubectl(&cluster, &["apply", "--kustomize", "deploy/static-pod"]);
    let file = ["--filename=deploy/static-pod/endpointd.yaml", "--output=json"];
    let pod = kubectl(
        &cluster,
        &[&["create", "--dry-run=server", "--validate=strict"], &file[..]].concat(),
    );
    let pod: Value = serde_json::from_str(&pod).expect("kubectl prints JSON");

    let policy = TestNamespace::new(cluster.api(), "policy");
    policy.node_in("a", "zone-a");
    let verdict = Verdict::Allow;
    let webhook = AdmissionWebhook::start_at(WEBHOOK_IP, cluster.directory(), verdict);
    let webhook = webhook.expect("the address is ours");
    policy.pod(&Pod::new("webhook-0", &WEBHOOK_IP.to_string()).labelled(json!({"app": "webhook"})));
    let port = json!({"port": 443, "targetPort": webhook.port()});
    policy.service("webhook", &json!({"selector": {"app": "webhook"}, "ports": [port]}));
    register(&cluster, &webhook);

    wait_for("no pod is admitted", || match create_pod(&cluster) {
        Err(ApiError::Refused { status: 500, message }) => message.contains("pods.example.com"),
        Ok(_) | Err(_) => false,
    });
    assert_eq!(webhook.n_asked(), 0, "the webhook has no endpoints");

    let daemon = Daemon::start(&cluster, "static-pod", &flags(&cluster, &pod));
    wait_for("a pod is admitted", || create_pod(&cluster).is_ok());
    assert!(webhook.n_asked() > 0, "nobody asked the webhook");
    daemon.stop();
}

/// As the kubelet runs the pod, except for the path of the kubeconfig.
fn flags(cluster: &Cluster, pod: &Value) -> DaemonFlags {
    let args = pod["spec"]["containers"][0]["args"].as_array().expect("a list");
    let mut args = args.iter().map(|arg| arg.as_str().expect("text"));
    assert_eq!(args.next(), Some("run"));
    assert_eq!(args.next(), Some("--kubeconfig=/etc/kubernetes/endpointd.conf"));
    args.fold(DaemonFlags::elected(&kubeconfig(cluster)), |flags, arg| flags.with(arg))
}

/// What `kubeadm kubeconfig user --client-name endpointd` makes.
fn kubeconfig(cluster: &Cluster) -> PathBuf {
    let directory = cluster.directory();
    let client = certificates::client(directory, "endpointd", "endpointd", VALID_FOR);
    let client = client.expect("the authority signs it");
    let (certificate, key) = (directory.join("endpointd.crt"), directory.join("endpointd.key"));
    fs::write(&certificate, client.certificate).expect("we own the directory of a cluster");
    fs::write(&key, client.key).expect("we own the directory of a cluster");
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {
            "server": cluster.url(), "certificate-authority": directory.join("ca.crt"),
        }}],
        "users": [{"name": "endpointd", "user": {
            "client-certificate": certificate, "client-key": key,
        }}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "endpointd"}}],
        "current-context": "test",
    });
    let path = directory.join("endpointd.conf");
    fs::write(&path, config.to_string()).expect("we own the directory of a cluster");
    path
}

fn register(cluster: &Cluster, webhook: &AdmissionWebhook) {
    let authority = fs::read_to_string(cluster.directory().join("ca.crt")).expect("it is there");
    let mut client = webhook.client_config(&authority);
    client.as_object_mut().expect("an object").remove("url");
    client["service"] = json!({"namespace": "policy", "name": "webhook"});
    let configuration = json!({
        "metadata": {"name": "pods"},
        "webhooks": [{
            "name": "pods.example.com",
            "clientConfig": client,
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                "operations": ["CREATE"],
            }],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    cluster.api().create(path, &configuration).expect("the configuration is valid");
}

/// Tries to create a pod as the Deployment in `deploy/` would.
fn create_pod(cluster: &Cluster) -> Result<Value, ApiError> {
    let pod = json!({
        "metadata": {"generateName": "endpointd-"},
        "spec": {
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "endpointd",
                "image": "endpointd",
                "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
                },
            }],
        },
    });
    cluster.api().create("/api/v1/namespaces/endpointd/pods?dryRun=All", &pod)
}

fn kubectl(cluster: &Cluster, args: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("e2e/scenarios");
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("--kubeconfig").arg(cluster.kubeconfig()).args(args).current_dir(root);
    let output = kubectl.output().expect("`kubectl` is installed");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {args:?}: {error}");
    String::from_utf8(output.stdout).expect("kubectl prints UTF-8")
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < WAIT_MAX, "not in time: {what}");
        thread::sleep(POLL);
    }
}
