//! One Lease for each other cluster: when it was in contact last. The age of what is known of a cluster
//! goes on after a restart, and `kubectl get leases` shows it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use endpointd_client::election::{LeaderElectionRecord, Lease};
use endpointd_engine::{SourceState, SourceStatus};
use endpointd_model::{ClusterId, Key, Timestamp, names};
use tokio::time::{sleep, timeout};

use super::Shared;

const RENEWAL_SECS: i64 = 60;
const DURATION_SECS: u32 = 120;
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// A cluster is watched without its Lease if that cannot be read.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes the last contact of each cluster that is in sync, once a minute.
pub async fn run(shared: Arc<Shared>) {
    let mut renewed: BTreeMap<ClusterId, Timestamp> = BTreeMap::new();
    loop {
        sleep(LOOK_INTERVAL).await;
        if !shared.permit.may_write() {
            continue;
        }
        let statuses = shared.statuses.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for SourceStatus { cluster, state, last_contact, .. } in statuses {
            let Some(at) = last_contact.filter(|_| state == SourceState::InSync) else { continue };
            let is_due = |last: &Timestamp| at.as_second() - last.as_second() >= RENEWAL_SECS;
            if renewed.get(&cluster).is_none_or(is_due) {
                renew(&shared, &cluster, at).await;
                renewed.insert(cluster, at);
            }
        }
    }
}

/// None if it was never in contact, or if nobody knows.
pub async fn last_contact(shared: &Shared, cluster: &ClusterId) -> Option<Timestamp> {
    let read = timeout(READ_TIMEOUT, shared.home.read_lease(&key(shared, cluster))).await;
    read.ok()?.ok()??.record.renewed
}

async fn renew(shared: &Shared, cluster: &ClusterId, at: Timestamp) {
    let key = key(shared, cluster);
    let record = LeaderElectionRecord {
        holder: cluster.to_string(),
        duration_secs: DURATION_SECS,
        acquired: None,
        renewed: Some(at),
        n_transitions: 0,
    };
    let written = match shared.home.read_lease(&key).await {
        Ok(Some(lease)) => shared.home.replace_lease(&lease.with(record)).await,
        Ok(None) => {
            let lease = Lease::new(key, record);
            let lease = lease.labelled(names::SOURCE_CLUSTER, cluster.as_str());
            shared.home.create_lease(&lease).await
        }
        Err(failure) => {
            tracing::debug!(%cluster, reason = %failure, "cannot read the Lease of a cluster");
            return;
        }
    };
    if let Err(error) = written {
        tracing::debug!(%cluster, reason = ?error, "cannot write the Lease of a cluster");
    }
}

fn key(shared: &Shared, cluster: &ClusterId) -> Key {
    Key::new(shared.options.lease_namespace.clone(), format!("endpointd-source-{cluster}"))
}
