//! Random changes of pods, Services, and Endpoints, and what must be published after them. A change
//! may fail, because the API server is down at times.

use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Api, ApiError};
use endpointd_rng::SplitMix64;
use serde_json::{Value, json};

use crate::convergence::Expected;
use crate::pods::web_ip;
use crate::proxied_cluster::{ProxiedCluster, wait_until, web_unpublished};
use crate::test_namespace::Kind;

const N_NAMESPACES: usize = 8;
const N_PODS: usize = 20;
const N_MIRRORED_ADDRESSES: u64 = 30;
const INTERVAL: Duration = Duration::from_millis(60);
const REPAIR_MAX: Duration = Duration::from_secs(60);

pub struct Changes<'a> {
    api: &'a Api,
    namespaces: Vec<String>,
    rng: SplitMix64,
    n_made: usize,
}

impl<'a> Changes<'a> {
    pub fn set_up(cluster: &'a ProxiedCluster, seed: u64) -> Self {
        let api = cluster.under_test.cluster.api();
        let namespaces: Vec<String> = (0..N_NAMESPACES).map(|n| format!("soak-{n}")).collect();
        for namespace in &namespaces {
            let ns = web_unpublished(api, namespace, N_PODS);
            ns.service("db", &json!({"ports": [{"port": 5432}]}));
            ns.create(Kind::Endpoints, &mirrored(1));
        }
        Self { api, namespaces, rng: SplitMix64::new(seed), n_made: 0 }
    }

    pub fn n_made(&self) -> usize {
        self.n_made
    }

    pub fn make_for(&mut self, time: Duration) {
        let started = Instant::now();
        while started.elapsed() < time {
            self.n_made += usize::from(self.make_one().is_ok());
            thread::sleep(INTERVAL);
        }
    }

    fn make_one(&mut self) -> Result<(), ApiError> {
        let namespace = self.namespaces[self.rng.index(N_NAMESPACES)].clone();
        let n_pod = 1 + self.rng.index(N_PODS);
        let core = format!("/api/v1/namespaces/{namespace}");
        match self.rng.below(100) {
            0..70 => {
                let is_ready = self.rng.below(4) > 0;
                let status = json!({"status": {"conditions": conditions(is_ready)}});
                self.api.merge(&format!("{core}/pods/web-{n_pod}/status"), &status)?;
            }
            70..88 => {
                let pod = format!("{core}/pods/web-{n_pod}?gracePeriodSeconds=0");
                self.api.delete(&pod)?;
                create_pod(self.api, &namespace, n_pod)?;
            }
            88..92 => {
                let label = format!("v{}", self.rng.below(1000));
                let labels = json!({"metadata": {"labels": {"version": label}}});
                self.api.merge(&format!("{core}/services/web"), &labels)?;
            }
            92..94 => {
                self.api.delete(&format!("{core}/services/web"))?;
                self.api.create(&format!("{core}/services"), &web_service())?;
            }
            _ => {
                let n = 1 + self.rng.below(N_MIRRORED_ADDRESSES);
                self.api.merge(&format!("{core}/endpoints/db"), &mirrored(n))?;
            }
        }
        Ok(())
    }

    /// What must be published in each namespace, computed from the objects that are stored. Objects
    /// that a failed change left out are created first.
    pub fn expected(&self) -> Vec<(String, Vec<Expected>)> {
        let of = |namespace: &String| {
            let mut expected = None;
            wait_until("objects can be read and created", REPAIR_MAX, || {
                expected = self.repaired(namespace).ok();
                expected.is_some()
            });
            (namespace.clone(), expected.unwrap_or_default())
        };
        self.namespaces.iter().map(of).collect()
    }

    fn repaired(&self, namespace: &str) -> Result<Vec<Expected>, ApiError> {
        let core = format!("/api/v1/namespaces/{namespace}");
        match self.api.create(&format!("{core}/services"), &web_service()) {
            Ok(_) | Err(ApiError::Refused { status: 409, .. }) => {}
            Err(error) => return Err(error),
        }
        let pods = self.api.get(&format!("{core}/pods"))?;
        let words: Vec<String> = items(&pods).iter().filter_map(word_of_pod).collect();
        let db = self.api.get(&format!("{core}/endpoints/db"))?;
        let addresses = db["subsets"][0]["addresses"].as_array().cloned().unwrap_or_default();
        let addresses: Vec<&str> = addresses.iter().filter_map(|one| one["ip"].as_str()).collect();
        Ok(vec![
            Expected::slices("web", &words.join(" ")),
            Expected::endpoints("web", &words.join(" ")),
            Expected::slices("db", &addresses.join(" ")),
        ])
    }
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map_or(&[], Vec::as_slice)
}

/// `None` for a pod that is not published.
fn word_of_pod(pod: &Value) -> Option<String> {
    let ip = pod["status"]["podIP"].as_str()?;
    let conditions = pod["status"]["conditions"].as_array()?;
    let is_ready = conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
    Some(if is_ready { ip.to_owned() } else { format!("{ip}!") })
}

fn create_pod(api: &Api, namespace: &str, n: usize) -> Result<(), ApiError> {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let ports = json!([{"name": "http", "containerPort": 8080}]);
    let container = json!({"name": "web", "image": "web", "ports": ports});
    let pod = json!({
        "metadata": {"name": format!("web-{n}"), "labels": {"app": "web"}},
        "spec": {"nodeName": format!("{namespace}-a"), "containers": [container]},
    });
    api.create(&pods, &pod)?;
    let ip = web_ip(n);
    let status = json!({"status": {
        "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": conditions(true),
    }});
    api.merge(&format!("{pods}/web-{n}/status"), &status)?;
    Ok(())
}

fn web_service() -> Value {
    let ports = json!([{"name": "http", "port": 80, "targetPort": "http"}]);
    json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}})
}

fn mirrored(n: u64) -> Value {
    let addresses: Vec<Value> = (1..=n).map(|n| json!({"ip": format!("192.168.0.{n}")})).collect();
    let subset = json!({"addresses": addresses, "ports": [{"port": 5432}]});
    json!({"metadata": {"name": "db"}, "subsets": [subset]})
}

fn conditions(is_ready: bool) -> Value {
    let status = if is_ready { "True" } else { "False" };
    json!([{"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
}
