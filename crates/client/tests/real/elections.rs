//! Candidates on a real lease.

use std::time::Duration;

use endpointd_client::election::{ElectionOptions, LeaderElector, LeadershipState};
use endpointd_control_plane::Cluster;
use endpointd_model::Key;
use tokio::sync::watch;

use crate::connect;

const ECHO_WAIT_MAX: Duration = Duration::from_secs(30);

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

pub async fn until(standing: &mut watch::Receiver<LeadershipState>, wanted: &LeadershipState) {
    let reached = standing.wait_for(|standing| standing == wanted);
    tokio::time::timeout(ECHO_WAIT_MAX, reached).await.expect("in time").expect("it goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_goes_to_the_next_when_it_is_released() {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = cluster.namespace("election").unwrap();
    let client = connect(cluster.kubeconfig()).await;
    let a = LeaderElector::start(client.clone(), options(&namespace, "a")).unwrap();
    until(&mut a.standing(), &LeadershipState::Leading).await;
    assert!(a.may_write());
    let b = LeaderElector::start(client.clone(), options(&namespace, "b")).unwrap();
    until(&mut b.standing(), &LeadershipState::Standby { holder: Some("a".to_owned()) }).await;

    // Long enough for a lease that is not renewed to run out.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(a.may_write() && !b.may_write());
    let lease = client.read_lease(&Key::new(&*namespace, "endpointd")).await.unwrap().unwrap();
    assert_eq!((lease.record.holder.as_str(), lease.record.n_transitions), ("a", 0));
    assert!(lease.record.renewed > lease.record.acquired);

    let mut standing = a.standing();
    let term = a.term();
    a.release().await;
    assert_eq!(*standing.borrow_and_update(), LeadershipState::Lost);
    assert!(!term.may_write());
    until(&mut b.standing(), &LeadershipState::Leading).await;
    let lease = client.read_lease(&Key::new(&*namespace, "endpointd")).await.unwrap().unwrap();
    assert_eq!((lease.record.holder.as_str(), lease.record.n_transitions), ("b", 1));
    assert_eq!(lease.record.duration_secs, 4);
}
