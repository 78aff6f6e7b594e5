//! The flags of the three programs. All others have their defaults.

use std::path::{Path, PathBuf};

use crate::certificates::{
    CA_FILE, SERVING_FILE, SERVING_KEY_FILE, TOKEN_KEY_FILE, TOKEN_PUBLIC_KEY_FILE,
};

pub const TOKENS_FILE: &str = "tokens.csv";
pub const AUDIT_POLICY_FILE: &str = "audit-policy.yaml";
pub const AUDIT_LOG_FILE: &str = "audit.log";
const ETCD_SOCKET_FILE: &str = "etcd.sock";

/// Metadata of all requests, without bodies.
pub const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

pub fn etcd(directory: &Path) -> Vec<String> {
    vec![
        "--name=endpointd".to_owned(),
        "--initial-cluster=endpointd=http://127.0.0.1:0".to_owned(),
        "--initial-advertise-peer-urls=http://127.0.0.1:0".to_owned(),
        format!("--data-dir={}", etcd_data(directory).display()),
        // A socket needs no free port, and other users cannot reach it.
        format!("--listen-client-urls={}", etcd_url(directory)),
        // etcd rejects a socket here. No client uses the advertised address, and there are no
        // peers. Upstream: `RunCustomEtcd` in test/integration/framework/etcd.go.
        "--advertise-client-urls=http://127.0.0.1:0".to_owned(),
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        // The data need not survive a crash of the machine.
        "--unsafe-no-fsync".to_owned(),
        "--quota-backend-bytes=8589934592".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

pub fn apiserver(directory: &Path, port: u16) -> Vec<String> {
    let file = |name: &str| directory.join(name).display().to_string();
    let mut flags = serving(directory, port);
    flags.extend([
        format!("--etcd-servers={}", etcd_url(directory)),
        // Endpoints must not be loopback addresses; with this one (RFC 5737) the Service
        // `kubernetes` is published as in a real cluster.
        "--advertise-address=192.0.2.1".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        format!("--token-auth-file={}", file(TOKENS_FILE)),
        format!("--client-ca-file={}", file(CA_FILE)),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file(TOKEN_PUBLIC_KEY_FILE)),
        format!("--service-account-signing-key-file={}", file(TOKEN_KEY_FILE)),
        // It rejects pods until a controller has created the default ServiceAccount of the
        // namespace.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
    ]);
    flags
}

pub fn audit(directory: &Path) -> [String; 2] {
    [
        format!("--audit-policy-file={}", directory.join(AUDIT_POLICY_FILE).display()),
        format!("--audit-log-path={}", directory.join(AUDIT_LOG_FILE).display()),
    ]
}

pub fn controller_manager(
    directory: &Path,
    port: u16,
    kubeconfig: &Path,
    controllers: &[&str],
) -> Vec<String> {
    let kubeconfig = kubeconfig.display();
    let mut flags = serving(directory, port);
    flags.extend([
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--controllers={}", controllers.join(",")),
        "--leader-elect=false".to_owned(),
        // Each controller with its own role, as kubeadm does.
        "--use-service-account-credentials=true".to_owned(),
    ]);
    flags
}

fn serving(directory: &Path, port: u16) -> Vec<String> {
    vec![
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--permit-port-sharing=true".to_owned(), // With this process: see `port`.
        format!("--tls-cert-file={}", directory.join(SERVING_FILE).display()),
        format!("--tls-private-key-file={}", directory.join(SERVING_KEY_FILE).display()),
    ]
}

/// The data directory of etcd.
pub fn etcd_data(directory: &Path) -> PathBuf {
    directory.join("etcd")
}

fn etcd_url(directory: &Path) -> String {
    format!("unix://{}", etcd_socket(directory).display())
}

pub fn etcd_socket(directory: &Path) -> PathBuf {
    directory.join(ETCD_SOCKET_FILE)
}
