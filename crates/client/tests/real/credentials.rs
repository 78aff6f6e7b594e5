//! Credentials that change while we run.

use std::fs;

use endpointd_control_plane::Cluster;
use endpointd_model::{FailureKind, LiveRead, LiveReadResult};

use crate::connect;

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_replaced_is_read_again_when_the_old_one_is_refused() {
    let Some(cluster) = Cluster::shared() else { return };
    let directory = tempfile::tempdir().unwrap();
    let token_file = directory.path().join("token");
    let kubeconfig = directory.path().join("kubeconfig");
    let text = fs::read_to_string(cluster.kubeconfig()).unwrap();
    let (before, rest) = text.split_once("token: ").unwrap();
    let (token, after) = rest.split_once('\n').unwrap();
    fs::write(&kubeconfig, format!("{before}tokenFile: {token_file:?}\n{after}")).unwrap();

    fs::write(&token_file, "refused").unwrap();
    let client = connect(kubeconfig).await;
    fs::write(&token_file, token).unwrap();
    // `kube` keeps what it has read for a minute; a refusal does not wait for that.
    assert_eq!(client.look(&LiveRead::Node("nobody".into())).await, LiveReadResult::Absent);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_stay_wrong_are_unauthorized() {
    let Some(cluster) = Cluster::shared() else { return };
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let text = fs::read_to_string(cluster.kubeconfig()).unwrap();
    fs::write(&kubeconfig, text.replace("token: ", "token: wrong")).unwrap();
    let client = connect(kubeconfig).await;
    for _ in 0..2 {
        let found = client.look(&LiveRead::Node("a".into())).await;
        let LiveReadResult::Failed(failure) = found else { panic!("{found:?}") };
        assert_eq!(failure.kind, FailureKind::Unauthorized);
    }
    let n_requests: u64 = client.stats().snapshot().values().map(|count| count.n_requests).sum();
    assert_eq!(n_requests, 3, "asked again once, and then not for a while");
}
