//! A Service that never changes must be published at all times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use endpointd_control_plane::Api;

use crate::observed_state::ObservedState;
use crate::pods::web_ips;
use crate::proxied_cluster::{ProxiedCluster, web};

const NAMESPACE: &str = "soak-steady";
const N_PODS: usize = 3;
const INTERVAL: Duration = Duration::from_millis(200);

pub struct SteadyService {
    is_over: Arc<AtomicBool>,
    watching: JoinHandle<Vec<String>>,
}

impl SteadyService {
    pub fn start(cluster: &ProxiedCluster) -> Self {
        let api = cluster.under_test.cluster.api().clone();
        web(&api, NAMESPACE, N_PODS);
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        Self { is_over, watching: thread::spawn(move || observe(&api, &ends)) }
    }

    /// The states in which endpoints were missing.
    pub fn stop(self) -> Vec<String> {
        self.is_over.store(true, Ordering::SeqCst);
        self.watching.join().unwrap_or_else(|_| vec!["the observer panicked".to_owned()])
    }
}

fn observe(api: &Api, is_over: &AtomicBool) -> Vec<String> {
    let expected = Some(web_ips(1..=N_PODS));
    let mut missing = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        // The API server is down at times.
        if let Ok(state) = ObservedState::without_pods(api, NAMESPACE) {
            let published = state.slice_summary("web");
            if published != expected {
                missing.push(format!("instead of {expected:?}: {published:?}"));
            }
        }
        thread::sleep(INTERVAL);
    }
    missing
}
