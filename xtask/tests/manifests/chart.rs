//! The Helm chart on a real API server: its default rendering equals the manifests, each file of values
//! in `ci/` is accepted, it is installed, upgraded, rolled back, tested, and removed, and bad values are
//! one sentence.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::go_tool::HELM;
use endpointd_control_plane::{ApiError, Cluster};
use endpointd_scenarios::{Daemon, DaemonFlags, daemon};
use serde_json::{Deserializer, Value, json};

use super::components::{define_operator_kinds, with_component};
use super::{cluster, container, permissions, root};

const CHART: &str = "charts/endpointd";
const POLL: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(60);

#[test]
fn the_default_rendering_equals_the_manifests() {
    let Some(cluster) = cluster() else { return };
    let Some(helm) = HELM.for_test() else { return };
    let rendered = succeed(Command::new(helm).args(template("endpointd", "endpointd")));
    let charted = parsed(cluster, &rendered);
    let manifests = succeed(Command::new("kubectl").arg("kustomize").arg(root().join("deploy")));
    let mut expected = parsed(cluster, &manifests);
    // `helm install --create-namespace` creates the namespace, without labels.
    expected.retain(|id, _| !id.starts_with("Namespace "));
    let names: Vec<&String> = charted.keys().collect();
    assert_eq!(names, expected.keys().collect::<Vec<_>>());
    for (id, object) in &charted {
        assert_eq!(object, &expected[id], "{id}");
    }
}

/// A component, the value that has the same effect, and the object that it adds or changes.
const OPTIONS: [(&str, &str, &str); 4] = [
    ("host-network", "hostNetwork=true", "Deployment"),
    ("network-policy", "networkPolicy.enabled=true", "NetworkPolicy"),
    ("monitoring", "podMonitor.enabled=true", "PodMonitor"),
    ("monitoring", "prometheusRule.enabled=true", "PrometheusRule"),
];

#[test]
fn the_options_equal_the_components() {
    let Some(cluster) = cluster() else { return };
    let Some(helm) = HELM.for_test() else { return };
    define_operator_kinds(cluster);
    for (component, value, kind) in OPTIONS {
        let mut command = Command::new(&helm);
        command.args(template("endpointd", "endpointd")).args(["--set", value]);
        let charted = parsed(cluster, &succeed(&mut command));
        let copy = with_component(component);
        let manifests = succeed(Command::new("kubectl").arg("kustomize").arg(copy.path()));
        let expected = parsed(cluster, &manifests);
        let id = format!("{kind} \"endpointd\"");
        let spec = |objects: &BTreeMap<String, Value>| {
            let mut spec = objects.get(&id).unwrap_or_else(|| panic!("no {id}"))["spec"].clone();
            // The chart selects the pods of its release only.
            for selector in ["selector", "podSelector"] {
                spec.as_object_mut().expect("an object").remove(selector);
            }
            spec
        };
        assert_eq!(spec(&charted), spec(&expected), "{value}");
    }
}

#[test]
fn the_import_controller_has_the_arguments_and_permissions_of_its_manifests() {
    let Some(cluster) = cluster() else { return };
    let Some(helm) = HELM.for_test() else { return };
    let mut command = Command::new(&helm);
    command.args(template("endpointd-imports", "endpointd"));
    let only = "imports.only=true,leaderElection.leaseName=endpointd-imports";
    let charted = parsed(cluster, &succeed(command.args(["--set", only])));
    let folder = root().join("deploy/imports");
    let expected = parsed(cluster, &succeed(Command::new("kubectl").arg("kustomize").arg(folder)));
    let args = |objects: &BTreeMap<String, Value>| {
        container(&objects["Deployment \"endpointd-imports\""])["args"].clone()
    };
    assert_eq!(args(&charted), args(&expected));
    let role = "ClusterRole \"endpointd-imports\"";
    assert_eq!(permissions(&charted[role]), permissions(&expected[role]));

    let mut command = Command::new(&helm);
    command.args(template("endpointd", "endpointd")).args(["--set", "imports.enabled=true"]);
    let both = parsed(cluster, &succeed(&mut command));
    let has = permissions(&both["ClusterRole \"endpointd\""]);
    assert!(has.is_superset(&permissions(&expected[role])), "{has:?}");
    let args = container(&both["Deployment \"endpointd\""])["args"].clone();
    assert_eq!(args[1], "--controllers=*,endpointslice-import-controller");
}

#[test]
fn every_file_of_values_is_accepted() {
    let Some(cluster) = cluster() else { return };
    let Some(helm) = HELM.for_test() else { return };
    define_operator_kinds(cluster);
    let namespace = cluster.namespace("chart-values").expect("a namespace");
    let folder = root().join(CHART).join("ci");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        let values = ["--values".as_ref(), file.as_os_str()];
        let lint = ["lint", "--strict", CHART];
        succeed(Command::new(&helm).args(lint).args(values).current_dir(root()));
        let mut command = Command::new(&helm);
        command.args(template("endpointd", &namespace)).args(values);
        let rendered = succeed(&mut command);
        let mut kubectl = kubectl(cluster);
        kubectl.args(["create", "--dry-run=server", "--validate=strict", "--filename=-"]);
        // Objects of the cluster that the manifests have created too.
        let others = rendered.replace("name: endpointd", "name: other");
        let output = with_input(&mut kubectl, &others);
        let warnings = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {warnings}", file.display());
        assert_eq!(warnings, "", "{}", file.display());
    }
}

#[test]
fn it_is_installed_upgraded_rolled_back_tested_and_removed() {
    let Some(cluster) = cluster() else { return };
    let Some(helm) = HELM.for_test() else { return };
    let release = Release { cluster, helm, namespace: "chart", name: "chart" };
    release.run(&["install", "chart", CHART, "--create-namespace"]);
    let deployment = release.deployment();
    assert_eq!(deployment["spec"]["replicas"], 2);
    let notes = release.run(&["get", "notes", "chart"]);
    assert!(notes.contains("kube-controller-manager must not run the same controllers"), "{notes}");

    release.run(&["upgrade", "chart", CHART, "--set", "replicas=3,logLevel=debug"]);
    assert_eq!(release.deployment()["spec"]["replicas"], 3);
    release.run(&["rollback", "chart", "1"]);
    assert_eq!(release.deployment()["spec"], deployment["spec"]);

    release.test_while_it_runs(&deployment);

    release.run(&["uninstall", "chart"]);
    let left = succeed(kubectl(cluster).args([
        "get",
        "--all-namespaces",
        "--selector=app.kubernetes.io/instance=chart",
        "--output=name",
        "deployments,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,\
         flowschemas,poddisruptionbudgets,pods",
    ]));
    assert_eq!(left, "");
}

#[test]
fn bad_values_are_one_sentence() {
    let Some(helm) = HELM.for_test() else { return };
    for (value, sentence) in [
        ("replica=3", "additional properties 'replica' not allowed"),
        ("logLevel=loud", "value must be one of 'error', 'warn', 'info', 'debug', 'trace'"),
        ("serving.securePort=70000", "maximum: got 70,000, want 65,535"),
        ("image.digest=latest", "does not match pattern"),
        (
            "leaderElection.enabled=false",
            "`replicas` is more than 1 and `leaderElection.enabled` is false, so two processes \
             would write: set `replicas: 1`",
        ),
        (
            "hostNetwork=true,networkPolicy.enabled=true",
            "`networkPolicy.enabled` has no effect with `hostNetwork`: switch one of them off",
        ),
        (
            "imports.only=true,controllers={endpointslice-controller}",
            "`imports.only` excludes `controllers`: set one of them",
        ),
        (
            "serviceAccount.create=false",
            "`serviceAccount.name` is empty, and `serviceAccount.create` is false: name an account \
             that exists",
        ),
    ] {
        let mut command = Command::new(&helm);
        let output = command.args(template("endpointd", "endpointd")).args(["--set", value]);
        let output = output.output().expect("helm starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{value} was accepted");
        assert!(error.contains(sentence), "{value}: {error}");
    }
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let chart = fs::read_to_string(root().join(CHART).join("Chart.yaml")).unwrap();
    for key in ["version", "appVersion"] {
        let line = format!("\n{key}: {}\n", env!("CARGO_PKG_VERSION"));
        assert!(chart.contains(&line), "{key} of the chart is another");
    }
}

#[test]
fn the_chart_has_the_alert_rules_of_the_manifests() {
    let text = |path: &str| fs::read_to_string(root().join(path)).expect("the file is there");
    let (rules, copy) = ("deploy/monitoring/rules.yaml", "charts/endpointd/files/rules.yaml");
    assert_eq!(text(copy), text(rules), "copy {rules} to {copy}");
}

struct Release<'a> {
    cluster: &'a Cluster,
    helm: PathBuf,
    namespace: &'a str,
    name: &'a str,
}

impl Release<'_> {
    fn run(&self, args: &[&str]) -> String {
        succeed(&mut self.command(args))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut helm = Command::new(&self.helm);
        helm.args(args).args(["--namespace", self.namespace, "--kubeconfig"]);
        helm.arg(self.cluster.kubeconfig()).current_dir(root());
        helm
    }

    fn path(&self, resource: &str) -> String {
        format!("/{resource}/{}-endpointd", self.name)
    }

    fn deployment(&self) -> Value {
        let path = format!("/apis/apps/v1/namespaces/{}", self.namespace);
        let found = self.cluster.api().get(&format!("{path}{}", self.path("deployments")));
        found.expect("the Deployment is there")
    }

    /// `helm test`, while a daemon with the arguments and the account of the release runs. No kubelet
    /// runs the pod of the test: this process runs its command and reports the result.
    fn test_while_it_runs(&self, deployment: &Value) {
        let account = format!("{}-endpointd", self.name);
        let kubeconfig = self.cluster.kubeconfig_of(self.namespace, &account).expect("a token");
        let flags = arguments(container(deployment), self.namespace)
            .iter()
            .filter(|flag| !flag.starts_with("--secure-port="))
            .fold(DaemonFlags::elected(&kubeconfig), |flags, flag| flags.with(flag));
        let daemon = Daemon::start(self.cluster, "chart", &flags);
        wait_for("the daemon leads", || {
            daemon.log().contains("\"status_address\"") && leads(self.cluster, self.namespace)
        });
        let mut test = self.command(&["test", self.name, "--timeout=60s"]);
        let test = test.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("helm starts");
        let path = format!("/api/v1/namespaces/{}{}-check", self.namespace, self.path("pods"));
        let mut pod = Err(ApiError::Refused { status: 404, message: String::new() });
        wait_for("helm creates the pod of the test", || {
            pod = self.cluster.api().get(&path);
            pod.is_ok()
        });
        let pod = pod.expect("it is there");
        let mut check = daemon::command();
        check.arg(pod["spec"]["containers"][0]["args"][0].as_str().expect("a command"));
        check.args(arguments(&pod["spec"]["containers"][0], self.namespace));
        let report = succeed(check.arg("--kubeconfig").arg(&kubeconfig));
        assert!(report.contains("leads"), "{report}");
        let status = json!({"status": {"phase": "Succeeded"}});
        self.cluster.api().merge(&format!("{path}/status"), &status).expect("a status");
        let output = test.wait_with_output().expect("helm ends");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        daemon.stop();
    }
}

fn leads(cluster: &Cluster, namespace: &str) -> bool {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/endpointd");
    let lease = cluster.api().get(&path);
    lease.is_ok_and(|lease| {
        lease["spec"]["holderIdentity"].as_str().is_some_and(|id| !id.is_empty())
    })
}

/// The flags of a container after its command.
fn arguments(container: &Value, namespace: &str) -> Vec<String> {
    let args = container["args"].as_array().expect("a list").iter().skip(1);
    args.map(|arg| arg.as_str().expect("text").replace("$(NAMESPACE)", namespace)).collect()
}

fn template(release: &str, namespace: &str) -> Vec<String> {
    let chart = root().join(CHART).display().to_string();
    ["template", release, &chart, "--namespace", namespace, "--skip-tests"]
        .map(str::to_owned)
        .to_vec()
}

fn kubectl(cluster: &Cluster) -> Command {
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("--kubeconfig").arg(cluster.kubeconfig());
    kubectl
}

/// By kind and name, with what differs by intention made equal: who manages the objects, and the
/// chart.
fn parsed(cluster: &Cluster, manifests: &str) -> BTreeMap<String, Value> {
    let mut kubectl = kubectl(cluster);
    kubectl.args(["create", "--dry-run=client", "--output=json", "--validate=false"]);
    let output = with_input(kubectl.arg("--filename=-"), manifests);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let objects = Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let of_list = |object: Value| match object["items"].as_array() {
        Some(items) => items.clone(),
        None => vec![object],
    };
    objects
        .flat_map(|object| of_list(object.expect("kubectl prints JSON")))
        .map(|mut object| {
            let labels = object["metadata"]["labels"].as_object_mut().expect("labels");
            labels.remove("helm.sh/chart");
            labels.remove("app.kubernetes.io/managed-by");
            if let Some(labels) = object.pointer_mut("/spec/template/metadata/labels") {
                labels.as_object_mut().expect("labels").remove("app.kubernetes.io/managed-by");
            }
            let kind = object["kind"].as_str().expect("a kind");
            (format!("{kind} {}", object["metadata"]["name"]), object)
        })
        .collect()
}

fn with_input(command: &mut Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    // The program reads all input before it prints more than a pipe takes.
    stdin.write_all(input.as_bytes()).expect("the program reads its input");
    drop(stdin);
    child.wait_with_output().expect("the program ends")
}

/// The standard output.
fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let error = String::from_utf8_lossy(&output.stderr);
    let name = Path::new(command.get_program()).display().to_string();
    assert!(output.status.success(), "{name}: {error}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < WAIT_MAX, "not in time: {what}");
        thread::sleep(POLL);
    }
}
