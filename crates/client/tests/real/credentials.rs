//! Credentials that change while the client runs.

use std::fs;

use endpointd_control_plane::Cluster;
use endpointd_model::{FailureKind, LiveRead, LiveReadResult};

use crate::connect;

#[tokio::test(flavor = "multi_thread")]
async fn rejected_token_is_reloaded_from_its_file() {
    let Some(cluster) = Cluster::shared() else { return };
    let directory = tempfile::tempdir().unwrap();
    let token_file = directory.path().join("token");
    let kubeconfig = directory.path().join("kubeconfig");
    let text = fs::read_to_string(cluster.kubeconfig()).unwrap();
    let (before, rest) = text.split_once("token: ").unwrap();
    let (token, after) = rest.split_once('\n').unwrap();
    fs::write(&kubeconfig, format!("{before}tokenFile: {token_file:?}\n{after}")).unwrap();

    fs::write(&token_file, "rejected").unwrap();
    let client = connect(kubeconfig).await;
    fs::write(&token_file, token).unwrap();
    // `kube` caches the file for a minute; a rejected request reloads it at once.
    assert_eq!(client.live_read(&LiveRead::Node("missing".into())).await, LiveReadResult::Absent);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_credentials_are_unauthorized() {
    let Some(cluster) = Cluster::shared() else { return };
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let text = fs::read_to_string(cluster.kubeconfig()).unwrap();
    fs::write(&kubeconfig, text.replace("token: ", "token: wrong")).unwrap();
    let client = connect(kubeconfig).await;
    for _ in 0..2 {
        let found = client.live_read(&LiveRead::Node("a".into())).await;
        let LiveReadResult::Failed(failure) = found else { panic!("{found:?}") };
        assert_eq!(failure.kind, FailureKind::Unauthorized);
    }
    let n_requests: u64 = client.stats().snapshot().values().sum();
    assert_eq!(n_requests, 3, "one retry, and then none for ten seconds");
}
