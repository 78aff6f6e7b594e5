//! Credentials and authorities that are replaced while the daemon runs (F26).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use endpointd_control_plane::certificates;
use endpointd_fault_proxy::Requests;
use endpointd_scenarios::cluster::{ACCOUNT, ACCOUNT_NAMESPACE};
use endpointd_scenarios::proxied_cluster::{toggle, wait_until, web};
use endpointd_scenarios::{DaemonFlags, ProxiedCluster, TestNamespace};
use serde_json::{Value, json};

use crate::connections::GROUP;

/// Until requests with the old credentials are rejected and the new ones are read.
const RECOVERY_MAX: Duration = Duration::from_secs(30);
/// kube-apiserver remembers for ten seconds that a token is valid.
const REJECTED_MAX: Duration = Duration::from_secs(40);
const CERTIFICATE: Duration = Duration::from_secs(12);

pub fn replaced_token_is_used() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let token_file = cluster.directory().join("rotated.token");
    let kubeconfig = with_token_file(cluster, &token_file);
    let old = bound_token(cluster, "old-token");
    fs::write(&token_file, &old).expect("we own the directory");
    let _daemon = cluster.daemon("token", &DaemonFlags::new(&kubeconfig));
    let ns = web(cluster.api(), "rotated-token", 2);

    fs::write(&token_file, bound_token(cluster, "new-token")).expect("we own the directory");
    let secrets = format!("/api/v1/namespaces/{ACCOUNT_NAMESPACE}/secrets");
    cluster.api().delete(&format!("{secrets}/old-token")).expect("the secret is there");
    let since = Instant::now();
    let mut is_ready = true;
    wait_until("the old token is rejected", REJECTED_MAX, || {
        is_ready = !is_ready;
        toggle(&ns, 1, is_ready, RECOVERY_MAX);
        n_rejected(cluster, since) > 0
    });
    for is_ready in [false, true, false, true] {
        toggle(&ns, 2, is_ready, RECOVERY_MAX);
    }
    let n = n_rejected(cluster, since);
    assert!(n <= 20, "{n} requests with a token that was replaced");
}

fn n_rejected(cluster: &ProxiedCluster, since: Instant) -> usize {
    let all = cluster.proxy.exchanges_of(&Requests::all());
    all.iter().filter(|one| one.code == Some(401) && one.started >= since).count()
}

/// A token that is valid as long as its Secret exists.
fn bound_token(cluster: &ProxiedCluster, secret: &str) -> String {
    let secrets = format!("/api/v1/namespaces/{ACCOUNT_NAMESPACE}/secrets");
    let created = cluster.api().create(&secrets, &json!({"metadata": {"name": secret}}));
    let uid = created.expect("the secret is new")["metadata"]["uid"].clone();
    let bound = json!({"kind": "Secret", "apiVersion": "v1", "name": secret, "uid": uid});
    let request = json!({"spec": {"boundObjectRef": bound, "expirationSeconds": 3600}});
    let accounts = format!("/api/v1/namespaces/{ACCOUNT_NAMESPACE}/serviceaccounts");
    let answer = cluster.api().create(&format!("{accounts}/{ACCOUNT}/token"), &request);
    let answer: Value = answer.expect("the account is there");
    answer["status"]["token"].as_str().expect("a token").to_owned()
}

/// The daemon's kubeconfig with the token in a file.
fn with_token_file(cluster: &ProxiedCluster, token_file: &Path) -> PathBuf {
    let text = fs::read_to_string(&cluster.kubeconfig).expect("it was written");
    let (before, rest) = text.split_once("token: ").expect("it has a token");
    let (_, after) = rest.split_once('\n').expect("it is a line");
    let path = cluster.directory().join("token-file.kubeconfig");
    let text = format!("{before}tokenFile: {token_file:?}\n{after}");
    fs::write(&path, text).expect("we own the directory");
    path
}

/// Client certificates do not pass the proxy, so this daemon is connected directly.
pub fn replaced_client_certificate_is_used() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let kubeconfig = with_client_certificate(cluster);
    write_client_certificate(cluster, CERTIFICATE);
    let started = Instant::now();
    let mut daemon = cluster.daemon("certificate", &DaemonFlags::new(&kubeconfig));
    let ns = web(cluster.api(), "rotated-certificate", 2);
    write_client_certificate(cluster, Duration::from_secs(3600));
    let mut is_ready = true;
    while started.elapsed() < CERTIFICATE + Duration::from_secs(5) {
        is_ready = !is_ready;
        toggle(&ns, 1, is_ready, RECOVERY_MAX);
    }
    toggle_both(&ns);
    assert!(daemon.is_running(), "{}", daemon.log());
}

fn toggle_both(ns: &TestNamespace<'_>) {
    for is_ready in [false, true] {
        toggle(ns, 2, is_ready, RECOVERY_MAX);
    }
}

fn write_client_certificate(cluster: &ProxiedCluster, valid_for: Duration) {
    let directory = cluster.directory();
    let client = certificates::client(directory, "endpointd", "system:masters", valid_for);
    let client = client.expect("the authority has a key");
    let write = |name: &str, text: &str| {
        // Like the kubelet and cert-manager: a reader never finds half a file.
        let new = directory.join(format!("{name}.new"));
        fs::write(&new, text).expect("we own the directory");
        fs::rename(new, directory.join(name)).expect("we own the directory");
    };
    write("client.key", &client.key);
    write("client.crt", &client.certificate);
}

fn with_client_certificate(cluster: &ProxiedCluster) -> PathBuf {
    let text = fs::read_to_string(&cluster.under_test.kubeconfig).expect("it was written");
    let (before, rest) = text.split_once("    token: ").expect("it has a token");
    let (_, after) = rest.split_once('\n').expect("it is a line");
    let file = |name: &str| cluster.directory().join(name);
    let user = format!(
        "    client-certificate: {:?}\n    client-key: {:?}\n",
        file("client.crt"),
        file("client.key")
    );
    let path = file("client-certificate.kubeconfig");
    fs::write(&path, format!("{before}{user}{after}")).expect("we own the directory");
    path
}

/// As an operator does it: the file has both authorities before the server uses the new one.
pub fn replaced_authority_is_trusted() {
    let Some(turn) = GROUP.turn() else { return };
    let cluster = turn.cluster;
    let trusted = cluster.directory().join("trusted.crt");
    let old = cluster.authority();
    fs::write(&trusted, &old).expect("we own the directory");
    let text = fs::read_to_string(&cluster.kubeconfig).expect("it was written");
    let ca_file = cluster.directory().join(certificates::CA_FILE);
    let kubeconfig = cluster.directory().join("trusted.kubeconfig");
    let text = text.replace(&format!("{ca_file:?}"), &format!("{trusted:?}"));
    fs::write(&kubeconfig, text).expect("we own the directory");
    let _daemon = cluster.daemon("authority", &DaemonFlags::new(&kubeconfig));
    let ns = web(cluster.api(), "rotated-authority", 2);

    let replaced = cluster.directory().join("replaced");
    fs::create_dir(&replaced).expect("we own the directory");
    let new = certificates::create(&replaced).expect("certificates can be written");
    fs::write(&trusted, format!("{old}{new}")).expect("we own the directory");
    cluster.proxy.use_serving_certificate(&replaced).expect("it was just written");
    cluster.proxy.close_connections();
    toggle_both(&ns);
    fs::write(&trusted, new).expect("we own the directory");
    cluster.proxy.close_connections();
    toggle_both(&ns);

    cluster.proxy.use_serving_certificate(cluster.directory()).expect("the certificate of before");
    cluster.proxy.close_connections();
}
