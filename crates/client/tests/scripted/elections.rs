//! Leader election against scripted responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use endpointd_client::election::{ElectionOptions, LeaderElector, LeadershipState};
use endpointd_model::Key;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::server::{Reply, Request, Server, status, whole};

const WAIT_MAX: Duration = Duration::from_secs(20);

fn options() -> ElectionOptions {
    ElectionOptions {
        lease: Key::new("kube-system", "endpointd"),
        identity: "a".to_owned(),
        lease_duration: Duration::from_secs(3),
        renew_deadline: Duration::from_secs(2),
        retry_period: Duration::from_millis(200),
        release_on_exit: true,
    }
}

fn lease(holder: &str) -> Value {
    json!({
        "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"namespace": "kube-system", "name": "endpointd", "resourceVersion": "1"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3},
    })
}

async fn wait_for(state: &mut watch::Receiver<LeadershipState>, wanted: &LeadershipState) {
    let reached = state.wait_for(|state| state == wanted);
    tokio::time::timeout(WAIT_MAX, reached).await.expect("in time").expect("the task runs");
}

/// The Lease is free; then another process takes it; then it is free again.
#[tokio::test]
async fn lost_candidate_joins_again_and_keeps_its_handles() {
    let is_stolen = Arc::new(AtomicBool::new(false));
    let script = {
        let is_stolen = is_stolen.clone();
        move |_: usize, request: &Request| -> Reply {
            match (request.method.as_str(), is_stolen.load(Ordering::Relaxed)) {
                ("GET", true) => whole(200, &lease("b")),
                ("PUT", true) => status(409, "Conflict", "the object has been modified"),
                ("GET", false) => whole(200, &lease("")),
                (_, false) => whole(200, &lease("a")),
                (method, true) => panic!("{method}"),
            }
        }
    };
    let server = Server::start(script).await;
    let (elector, task) = LeaderElector::new(server.client().await, options()).unwrap();
    tokio::spawn(task);
    let (mut state, guard) = (elector.state(), elector.guard());
    wait_for(&mut state, &LeadershipState::Leading).await;
    assert!(guard.may_write());

    is_stolen.store(true, Ordering::Relaxed);
    wait_for(&mut state, &LeadershipState::Lost).await;
    assert!(!guard.may_write());
    wait_for(&mut state, &LeadershipState::Standby { holder: Some("b".to_owned()) }).await;

    is_stolen.store(false, Ordering::Relaxed);
    wait_for(&mut state, &LeadershipState::Leading).await;
    assert!(guard.may_write());
}

/// The Lease is ours, and then it is as it was before our last renewals.
#[tokio::test]
async fn older_version_of_the_lease_is_a_rollback() {
    let version = Arc::new(AtomicU64::new(10));
    let script = {
        let version = version.clone();
        move |_: usize, _: &Request| -> Reply {
            let mut lease = lease("a");
            let version = version.fetch_add(1, Ordering::Relaxed);
            lease["metadata"]["resourceVersion"] = json!(version.to_string());
            whole(200, &lease)
        }
    };
    let server = Server::start(script).await;
    let client = server.client().await;
    let mut rollbacks = client.rollbacks();
    let (elector, task) = LeaderElector::new(client, options()).unwrap();
    tokio::spawn(task);
    wait_for(&mut elector.state(), &LeadershipState::Leading).await;
    assert!(!rollbacks.has_changed().unwrap());
    version.store(4, Ordering::Relaxed);
    tokio::time::timeout(WAIT_MAX, rollbacks.changed()).await.expect("in time").unwrap();
}

#[tokio::test]
async fn dropped_elector_ends_its_task_without_releasing_the_lease() {
    let server = Server::start(|_, _| whole(200, &lease("b"))).await;
    let (elector, task) = LeaderElector::new(server.client().await, options()).unwrap();
    let running = tokio::spawn(task);
    wait_for(&mut elector.state(), &LeadershipState::Standby { holder: Some("b".to_owned()) })
        .await;
    drop(elector);
    tokio::time::timeout(WAIT_MAX, running).await.expect("it ends").expect("without a panic");
    assert!(server.requests().iter().all(|request| request.method == "GET"));
}
