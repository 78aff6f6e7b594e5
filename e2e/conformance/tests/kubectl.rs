//! The kubectl of this machine against the embedded API server.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use endpointd_apiserver::GcMode;
use endpointd_conformance::start_embedded;
use endpointd_control_plane::binaries::is_ci;

struct Kubectl {
    url: String,
    home: std::path::PathBuf,
}

impl Kubectl {
    /// `None` if there is no kubectl: the test is skipped. With `CI=true` that is a failure.
    fn for_test(home: &str) -> Option<Self> {
        let found = Command::new("kubectl").args(["version", "--client"]).output();
        if !found.is_ok_and(|output| output.status.success()) {
            assert!(!is_ci(), "no kubectl on this machine");
            eprintln!("skipped: no kubectl on this machine");
            return None;
        }
        let (_, url) = start_embedded(GcMode::Immediate).expect("the server starts");
        let home = std::env::temp_dir().join(format!("{home}-{}", std::process::id()));
        std::fs::create_dir_all(&home).expect("a directory of its own");
        Some(Self { url, home })
    }

    fn try_run(&self, args: &str, stdin: &str) -> Output {
        let mut command = Command::new("kubectl");
        command.arg(format!("--server={}", self.url)).args(args.split(' '));
        command.env("HOME", &self.home).env("KUBECONFIG", "/dev/null");
        command.env("KUBE_EDITOR", "sed -i s/old/new/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl starts");
        let mut pipe = child.stdin.take().expect("it was piped");
        pipe.write_all(stdin.as_bytes()).expect("kubectl reads");
        drop(pipe);
        child.wait_with_output().expect("kubectl ends")
    }

    /// Runs kubectl, which must succeed, and returns its output.
    fn run(&self, args: &str) -> String {
        self.run_with_stdin(args, "")
    }

    fn run_with_stdin(&self, args: &str, stdin: &str) -> String {
        let output = self.try_run(args, stdin);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {args}: {stdout}{stderr}");
        stdout
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        // A directory that remains only takes space.
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// The words of the line that starts with `name`.
fn row(stdout: &str, name: &str) -> Vec<String> {
    let line = stdout.lines().find(|line| line.split_whitespace().next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("no `{name}` in:\n{stdout}"));
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn tables_have_the_columns_of_kubernetes() {
    let Some(kubectl) = Kubectl::for_test("kubectl-tables") else { return };
    for (resource, columns) in [
        ("nodes", "NAME STATUS ROLES AGE VERSION"),
        ("pods", "NAME READY STATUS RESTARTS AGE"),
        ("services", "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE"),
        ("endpoints", "NAME ENDPOINTS AGE"),
        ("endpointslices", "NAME ADDRESSTYPE PORTS ENDPOINTS AGE"),
        ("namespaces", "NAME STATUS AGE"),
        ("deployments", "NAME READY UP-TO-DATE AVAILABLE AGE"),
        ("replicasets", "NAME DESIRED CURRENT READY AGE"),
        ("leases", "NAME HOLDER AGE"),
        ("configmaps", "NAME DATA AGE"),
        ("serviceaccounts", "NAME AGE"),
        ("events", "LAST SEEN TYPE REASON OBJECT MESSAGE"),
    ] {
        fill(&kubectl, resource);
        let stdout = kubectl.run(&format!("get {resource}"));
        let head: Vec<&str> = stdout.lines().next().unwrap_or("").split_whitespace().collect();
        assert_eq!(head.join(" "), columns, "{resource}");
    }
}

/// kubectl prints no header without rows, so each resource needs an object.
fn fill(kubectl: &Kubectl, resource: &str) {
    let pod = "{containers: [{name: c, image: i}]}";
    let template = format!("{{metadata: {{labels: {{a: b}}}}, spec: {pod}}}");
    let more = match resource {
        "nodes" => "kind: Node\napiVersion: v1".to_owned(),
        "pods" => format!("kind: Pod\napiVersion: v1\nspec: {pod}"),
        "deployments" | "replicasets" => {
            let kind = if resource == "deployments" { "Deployment" } else { "ReplicaSet" };
            let spec = format!("{{selector: {{matchLabels: {{a: b}}}}, template: {template}}}");
            format!("kind: {kind}\napiVersion: apps/v1\nspec: {spec}")
        }
        "leases" => "kind: Lease\napiVersion: coordination.k8s.io/v1".to_owned(),
        "configmaps" => "kind: ConfigMap\napiVersion: v1".to_owned(),
        "serviceaccounts" => "kind: ServiceAccount\napiVersion: v1".to_owned(),
        "events" => "kind: Event\napiVersion: v1\ninvolvedObject: {kind: Pod, namespace: default}"
            .to_owned(),
        _ => return,
    };
    kubectl.run_with_stdin("create -f -", &format!("metadata: {{name: substitute}}\n{more}\n"));
}

#[test]
fn a_deployment_is_created_scaled_and_updated() {
    let Some(kubectl) = Kubectl::for_test("kubectl-deployment") else { return };
    kubectl.run("create deployment web --image=nginx:1");
    kubectl.run("scale deployment web --replicas=3");
    kubectl.run("set image deployment/web nginx=nginx:2");
    let path = "jsonpath={.spec.replicas}/{.spec.template.spec.containers[0].image}";
    assert_eq!(kubectl.run(&format!("get deployment web -o {path}")), "3/nginx:2");
    let status = r#"{"status":{"observedGeneration":3,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3}}"#;
    kubectl.run(&format!("patch deployment web --subresource=status --type=merge -p {status}"));
    let rolled = kubectl.run("rollout status deployment/web --timeout=10s");
    assert!(rolled.contains("successfully rolled out"), "{rolled}");
    assert_eq!(row(&kubectl.run("get deployments"), "web")[1..4], ["3/3", "3", "3"]);
    kubectl.run("expose deployment web --port=80");
    let described = kubectl.run("describe service web");
    assert!(described.contains("TargetPort:               80/TCP"), "{described}");
    kubectl.run("delete deployment web");
    assert!(!kubectl.try_run("get deployment web", "").status.success());
}

#[test]
fn objects_are_applied_edited_labelled_and_waited_for() {
    let Some(kubectl) = Kubectl::for_test("kubectl-apply") else { return };
    let config = |value: &str| {
        format!("kind: ConfigMap\napiVersion: v1\nmetadata: {{name: c}}\ndata: {{k: {value}}}\n")
    };
    assert!(kubectl.run_with_stdin("apply -f -", &config("first")).contains("created"));
    assert!(kubectl.run_with_stdin("apply -f -", &config("first")).contains("unchanged"));
    assert!(kubectl.run_with_stdin("apply -f -", &config("old")).contains("configured"));
    assert!(kubectl.run("edit configmap c").contains("edited"));
    kubectl.run("label configmap c a=b");
    kubectl.run("annotate configmap c x=y");
    kubectl.run(r#"patch configmap c --type=json -p [{"op":"add","path":"/data/n","value":"m"}]"#);
    kubectl.run("wait --for=jsonpath={.data.n}=m configmap/c --timeout=10s");
    let path = "jsonpath={.data.k}{.data.n}{.metadata.labels.a}{.metadata.annotations.x}";
    assert_eq!(kubectl.run(&format!("get configmap c -o {path}")), "newmby");
    assert!(kubectl.run("describe configmap c").contains("Name:         c"));
    let output = kubectl.try_run("apply --server-side -f -", &config("x"));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("server-side apply is not supported"), "{stderr}");
    assert!(kubectl.run("get configmaps --watch --request-timeout=1s").contains('c'));
    assert!(kubectl.run("delete configmap c").contains("deleted"));
}

#[test]
fn a_namespace_is_deleted_with_its_objects() {
    let Some(kubectl) = Kubectl::for_test("kubectl-namespace") else { return };
    kubectl.run("create namespace shop");
    kubectl.run("-n shop create serviceaccount s");
    kubectl.run("-n shop run p --image=i");
    assert_eq!(row(&kubectl.run("-n shop get pods"), "p")[1..3], ["0/1", "Pending"]);
    kubectl.run("delete namespace shop --timeout=20s");
    assert!(!kubectl.run("get namespaces").contains("shop"));
}

#[test]
fn types_are_explained_and_resources_listed() {
    let Some(kubectl) = Kubectl::for_test("kubectl-explain") else { return };
    let explained = kubectl.run("explain endpointslice.endpoints.conditions");
    assert!(explained.contains("serving"), "{explained}");
    let explained = kubectl.run("explain deployment.spec.template.spec.containers.image");
    assert!(explained.contains("FIELD: image <string>"), "{explained}");
    let resources = kubectl.run("api-resources --no-headers");
    assert_eq!(resources.lines().count(), 15, "{resources}");
    let output =
        kubectl.try_run("create -f -", "kind: Pod\napiVersion: v1\nspec: {containerz: []}\n");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("unknown field \"spec.containerz\""), "{stderr}");
}
