//! Candidates on a Lease of a real API server.

use std::time::Duration;

use endpointd_client::Client;
use endpointd_client::election::{ElectionOptions, LeaderElector, LeadershipState};
use endpointd_control_plane::Cluster;
use endpointd_model::Key;
use tokio::sync::watch;

use crate::connect;

const WAIT_MAX: Duration = Duration::from_secs(30);

pub fn options(namespace: &str, identity: &str) -> ElectionOptions {
    ElectionOptions {
        lease: Key::new(namespace, "endpointd"),
        identity: identity.to_owned(),
        lease_duration: Duration::from_secs(4),
        renew_deadline: Duration::from_secs(3),
        retry_period: Duration::from_millis(500),
        release_on_exit: true,
    }
}

/// A candidate whose task runs.
pub fn join(client: &Client, options: ElectionOptions) -> LeaderElector {
    let (elector, task) = LeaderElector::new(client.clone(), options).expect("valid options");
    tokio::spawn(task);
    elector
}

pub async fn wait_for(state: &mut watch::Receiver<LeadershipState>, wanted: &LeadershipState) {
    let reached = state.wait_for(|state| state == wanted);
    tokio::time::timeout(WAIT_MAX, reached).await.expect("in time").expect("the task runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn released_lease_is_acquired_by_the_standby() {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = cluster.namespace("election").unwrap();
    let client = connect(cluster.kubeconfig()).await;
    let a = join(&client, options(&namespace, "a"));
    wait_for(&mut a.state(), &LeadershipState::Leading).await;
    assert!(a.guard().may_write());
    let b = join(&client, options(&namespace, "b"));
    wait_for(&mut b.state(), &LeadershipState::Standby { holder: Some("a".to_owned()) }).await;

    // Longer than a lease lasts without renewal.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(a.guard().may_write() && !b.guard().may_write());
    let lease = client.read_lease(&Key::new(&*namespace, "endpointd")).await.unwrap().unwrap();
    assert_eq!((lease.record.holder.as_str(), lease.record.n_transitions), ("a", 0));
    assert!(lease.record.renewed > lease.record.acquired);

    let mut state = a.state();
    let guard = a.guard();
    a.release().await;
    assert_eq!(*state.borrow_and_update(), LeadershipState::Lost);
    assert!(!guard.may_write());
    wait_for(&mut b.state(), &LeadershipState::Leading).await;
    let lease = client.read_lease(&Key::new(&*namespace, "endpointd")).await.unwrap().unwrap();
    assert_eq!((lease.record.holder.as_str(), lease.record.n_transitions), ("b", 1));
    assert_eq!(lease.record.duration_secs, 4);
}
