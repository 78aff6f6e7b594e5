//! `--context` on a real API server: a kubeconfig with three contexts, of which the current one leads
//! nowhere. Also as a plugin of kubectl.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use endpointd_control_plane::Cluster;
use endpointd_control_plane::binaries::is_ci;
use endpointd_scenarios::daemon::program;

use crate::run;

const NO_DIFFERENCE: &str = "No difference: what is published is what endpointd would publish.\n";

/// In the namespace `explained` there is a Service `web`; in the other there is none.
pub fn name_the_cluster_and_the_namespace(cluster: &Cluster) {
    let directory = cluster.directory().join("contexts");
    fs::create_dir_all(&directory).expect("we own the directory of a cluster");
    let kubeconfig = &kubeconfig(cluster, &directory);

    let nowhere = run(kubeconfig, &["explain", "web"]);
    assert_eq!(nowhere.code, Some(2), "the current context: {nowhere:?}");
    assert!(nowhere.err.contains("the API server at https://127.0.0.1:1"), "{nowhere:?}");
    let here = run(kubeconfig, &["explain", "web", "--context", "here"]);
    assert_eq!(here.code, Some(1), "{here:?}");
    assert!(here.out.starts_with("Service explained/web "), "{}", here.out);
    let other = run(kubeconfig, &["explain", "web", "--context", "other"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.err.contains("hint: there is one in `explained`"), "{other:?}");

    let diff = run(kubeconfig, &["diff", "svc/web", "--context", "here"]);
    assert_eq!((diff.code, diff.out.as_str()), (Some(0), NO_DIFFERENCE), "{diff:?}");
    let check = run(kubeconfig, &["check", "--pre", "--context", "here"]);
    assert!(check.out.starts_with("√ API server "), "{check:?}");
    let unknown = run(kubeconfig, &["diff", "--context", "elsewhere"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.err.contains("elsewhere") && unknown.err.contains("hint: "), "{unknown:?}");
    through_kubectl(kubeconfig, &directory);
}

/// kubectl hands its plugin the arguments and the environment.
fn through_kubectl(kubeconfig: &Path, directory: &Path) {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        assert!(!is_ci(), "no kubectl on this machine");
        eprintln!("skipped: no kubectl on this machine");
        return;
    }
    symlink(program(), directory.join("kubectl-endpointd")).expect("it is new");
    let path = std::env::var("PATH").expect("a PATH");
    let output = Command::new("kubectl")
        .args(["endpointd", "explain", "web", "--context", "here"])
        .env("PATH", format!("{}:{path}", directory.display()))
        .env("KUBECONFIG", kubeconfig)
        .output()
        .expect("kubectl starts");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.starts_with("Service explained/web "), "{out}");
}

fn kubeconfig(cluster: &Cluster, directory: &Path) -> PathBuf {
    let text = fs::read_to_string(cluster.kubeconfig()).expect("it is there");
    let (head, _) = text.split_once("contexts:\n").expect("the kubeconfig of a test");
    let nowhere = "clusters:\n- name: nowhere\n  cluster: {server: \"https://127.0.0.1:1\"}\n";
    let head = head.replacen("clusters:\n", nowhere, 1);
    let text = format!(
        "{head}contexts:
- name: here
  context: {{cluster: test, user: test, namespace: explained}}
- name: other
  context: {{cluster: test, user: test, namespace: kube-public}}
- name: nowhere
  context: {{cluster: nowhere, user: test}}
current-context: nowhere
"
    );
    let path = directory.join("kubeconfig");
    fs::write(&path, text).expect("the directory is ours");
    path
}
