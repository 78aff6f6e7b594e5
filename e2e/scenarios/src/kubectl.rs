//! kubectl, where a test must do what an operator does.

use std::path::Path;
use std::process::Command;

use endpointd_control_plane::Cluster;
use endpointd_control_plane::binaries::is_ci;

/// Like a missing control plane, a missing `kubectl` skips the test, and fails it in CI.
///
/// # Panics
///
/// In CI, if it is missing.
pub fn is_installed() -> bool {
    let found = Command::new("kubectl").args(["version", "--client"]).output().is_ok();
    assert!(found || !is_ci(), "`kubectl` is not installed");
    found
}

/// Applies a folder of the repository with `--kustomize`.
///
/// # Panics
///
/// If that fails.
pub fn apply(cluster: &Cluster, folder: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("e2e/scenarios");
    let output = command(cluster).args(["apply", "--kustomize"]).arg(root.join(folder)).output();
    let output = output.expect("`kubectl` is installed");
    assert!(output.status.success(), "{folder}: {}", String::from_utf8_lossy(&output.stderr));
}

/// As the administrator of a cluster.
pub fn command(cluster: &Cluster) -> Command {
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("--kubeconfig").arg(cluster.kubeconfig());
    kubectl
}
