//! The fake controllers on the embedded API server, with a clock that jumps to the next due time.

use std::collections::BTreeMap;

use endpointd_apiserver::{
    CountedClockAndIds, DeleteOptions, Kind, Server, Settings, Target, WriteOptions, kinds,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::apply;
use crate::cluster_spec::{ClusterSpec, NAMESPACE, NodeSpec, ServiceSpec, Size};
use crate::scenario::ScenarioAction;
use crate::store_reader::{StoreChange, StoreReader};

struct TestCluster {
    server: Server,
    cluster: Cluster,
    reader: StoreReader,
    now: Duration,
    /// Whether to record the extremes of a rollout.
    is_counting: bool,
    n_ready_min: usize,
    n_requested_max: u64,
}

const ACTIONS_MAX: usize = 7; // Few, so that every decision is interrupted once.

fn kind(group: &str, resource: &str) -> &'static Kind {
    kinds::find(group, resource).expect("it is served")
}

impl TestCluster {
    fn new(spec: &ClusterSpec, seed: u64) -> Self {
        let clock_and_ids = CountedClockAndIds::starting_at(Timestamp::UNIX_EPOCH);
        let mut server = Server::new(Box::new(clock_and_ids), Settings::default());
        apply::create_objects(&mut server, spec, &[]).expect("valid objects");
        let watched =
            [("", "nodes"), ("", "pods"), ("apps", "replicasets"), ("apps", "deployments")];
        let (reader, changes) =
            StoreReader::start(&server, &watched.map(|(group, it)| kind(group, it)));
        let (cluster, now) = (Cluster::numbered_from(seed, 0), Duration::ZERO);
        let mut cluster = Self {
            server,
            cluster,
            reader,
            now,
            is_counting: false,
            n_ready_min: usize::MAX,
            n_requested_max: 0,
        };
        cluster.apply_changes(&changes);
        cluster.run_until_idle();
        cluster
    }

    fn apply_changes(&mut self, changes: &[StoreChange]) {
        for StoreChange { resource, key, object } in changes {
            self.cluster.apply(resource, key, object.as_deref(), self.now);
        }
    }

    /// Runs until no action is due.
    fn run_until_idle(&mut self) {
        for _ in 0..100_000 {
            loop {
                let changes = self.reader.read(&self.server).expect("the past is kept");
                if changes.is_empty() {
                    break;
                }
                self.apply_changes(&changes);
            }
            if self.is_counting {
                self.count();
            }
            let actions = self.cluster.decide(self.now, ACTIONS_MAX);
            for act in &actions {
                let done = apply::controller_action(&mut self.server, act, Timestamp::UNIX_EPOCH);
                done.unwrap_or_else(|error| panic!("{act:?}: {}", error.message));
            }
            if actions.is_empty() {
                match self.cluster.wake_at() {
                    Some(due) => self.now = self.now.max(due),
                    None => return,
                }
            }
        }
        panic!("the cluster does not converge");
    }

    /// Records the ready pods of `web` and the replicas that its ReplicaSets request.
    fn count(&mut self) {
        let pods = self.pods("web");
        let n_ready = pods.iter().filter(|pod| is_ready(pod) && !is_deleting(pod)).count();
        self.n_ready_min = self.n_ready_min.min(n_ready);
        let sets = self.server.store().list("replicasets", None).objects;
        let requested =
            sets.iter().map(|set| set.value()["spec"]["replicas"].as_u64().unwrap_or(0));
        self.n_requested_max = self.n_requested_max.max(requested.sum());
    }

    fn pods(&self, app: &str) -> Vec<Value> {
        let all = self.server.store().list("pods", None).objects;
        let of_app = all.iter().filter(|pod| pod.labels.get("app").is_some_and(|it| it == app));
        of_app.map(|pod| pod.value()).collect()
    }

    fn nodes_by_pod(&self, app: &str) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pods = self.pods(app);
        let placed =
            pods.iter().map(|pod| (text(&pod["metadata"]["name"]), text(&pod["spec"]["nodeName"])));
        placed.collect()
    }

    fn run(&mut self, action: &ScenarioAction) {
        apply::scenario_action(&mut self.server, &self.cluster, action).expect("it can be done");
    }

    fn create(&mut self, resource: &str, object: Value) {
        let target = Target::collection(kind("", resource), NAMESPACE);
        self.server.create(&target, object, &WriteOptions::default()).expect("valid");
    }
}

fn is_deleting(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().find(|one| one["type"] == "Ready");
    ready.is_some_and(|one| one["status"] == "True")
}

/// `web` with ten pods on nodes in three zones.
fn spec() -> ClusterSpec {
    let mut spec = ClusterSpec::generate(Size { n_nodes: 6, n_services: 1, n_pods: 10 }, 1);
    spec.services[0].n_replicas = 10;
    spec
}

#[test]
fn a_deployment_is_spread_over_the_zones() {
    let cluster = TestCluster::new(&spec(), 1);
    let nodes_by_pod = cluster.nodes_by_pod("web");
    assert_eq!(nodes_by_pod.len(), 10);
    assert!(cluster.pods("web").iter().all(is_ready));
    let mut n_by_zone: BTreeMap<usize, usize> = BTreeMap::new();
    for node in nodes_by_pod.values() {
        let number: usize = node.trim_start_matches("node-").parse().expect("a number");
        *n_by_zone.entry(number % 3).or_default() += 1;
    }
    assert!(n_by_zone.values().all(|n| (3..=4).contains(n)), "{n_by_zone:?}");
}

#[test]
fn the_same_seed_gives_the_same_pods_on_the_same_nodes() {
    let nodes_by_pod = |seed| TestCluster::new(&spec(), seed).nodes_by_pod("web");
    assert_eq!(nodes_by_pod(5), nodes_by_pod(5));
    assert_ne!(nodes_by_pod(5), nodes_by_pod(6));
}

#[test]
fn pods_have_unique_addresses_of_both_families() {
    let cluster = TestCluster::new(&spec(), 1);
    let pods = cluster.pods("web");
    let mut ips: Vec<String> = Vec::new();
    for pod in &pods {
        let listed = pod["status"]["podIPs"].as_array().expect("addresses");
        assert_eq!(listed.len(), 2);
        ips.extend(listed.iter().map(|one| one["ip"].to_string()));
    }
    let n_ips = ips.len();
    ips.sort();
    ips.dedup();
    assert_eq!((ips.len(), n_ips), (20, 20));
}

#[test]
fn a_rollout_respects_its_limits_and_replaces_all_pods() {
    let mut cluster = TestCluster::new(&spec(), 1);
    let before = cluster.nodes_by_pod("web");
    cluster.is_counting = true;
    cluster.run(&ScenarioAction::NewImage { deployment: "web".to_owned(), version: 2 });
    cluster.run_until_idle();
    let after = cluster.nodes_by_pod("web");
    assert_eq!(after.len(), 10);
    assert!(after.keys().all(|name| !before.contains_key(name)));
    assert_eq!((cluster.n_ready_min, cluster.n_requested_max), (8, 13));
    let deployment = cluster.server.store().get("deployments", &Key::new(NAMESPACE, "web"));
    let deployment = deployment.expect("it is there").value();
    assert_eq!(deployment["status"]["updatedReplicas"], 10);
    assert_eq!(deployment["status"]["availableReplicas"], 10);
    assert_eq!(deployment["status"]["observedGeneration"], deployment["metadata"]["generation"]);
    assert_eq!(deployment["metadata"]["annotations"][facts::REVISION_ANNOTATION], "2");
}

#[test]
fn old_replica_sets_are_deleted_beyond_the_history_limit() {
    let mut cluster = TestCluster::new(&spec(), 1);
    for version in 2..14 {
        cluster.run(&ScenarioAction::NewImage { deployment: "web".to_owned(), version });
        cluster.run_until_idle();
    }
    assert_eq!(cluster.server.store().n_objects("replicasets"), 11, "one, and ten to go back to");
}

#[test]
fn pods_of_a_deleted_node_are_replaced_on_other_nodes() {
    let mut cluster = TestCluster::new(&spec(), 1);
    cluster.run(&ScenarioAction::DeleteNode { node: "node-01".to_owned() });
    cluster.run_until_idle();
    let nodes_by_pod = cluster.nodes_by_pod("web");
    assert_eq!(nodes_by_pod.len(), 10);
    assert!(nodes_by_pod.values().all(|node| node != "node-01"));
    assert!(cluster.pods("web").iter().all(is_ready));
}

#[test]
fn pods_of_an_unreachable_node_are_unready_until_it_returns() {
    let mut cluster = TestCluster::new(&spec(), 1);
    let on_it = cluster.nodes_by_pod("web").values().filter(|node| *node == "node-02").count();
    assert!(on_it > 0);
    cluster.run(&ScenarioAction::StopNode { node: "node-02".to_owned() });
    cluster.run_until_idle();
    assert_eq!(cluster.pods("web").iter().filter(|pod| is_ready(pod)).count(), 10 - on_it);
    cluster.run(&ScenarioAction::StartNode { node: "node-02".to_owned() });
    cluster.run_until_idle();
    assert!(cluster.pods("web").iter().all(is_ready));
}

#[test]
fn probes_fail_on_the_requested_number_of_pods() {
    let mut cluster = TestCluster::new(&spec(), 1);
    let fail = |n_pods| ScenarioAction::FailProbes { deployment: "web".to_owned(), n_pods };
    cluster.run(&fail(3));
    cluster.run_until_idle();
    assert_eq!(cluster.pods("web").iter().filter(|pod| is_ready(pod)).count(), 7);
    cluster.run(&fail(0));
    cluster.run_until_idle();
    assert_eq!(cluster.pods("web").iter().filter(|pod| is_ready(pod)).count(), 10);
}

#[test]
fn a_pod_without_an_owner_runs_and_stops() {
    let mut cluster = TestCluster::new(&spec(), 1);
    let containers = json!([{"name": "c", "image": "i"}]);
    let labels = json!({"app": "mine"});
    let spec = json!({"containers": containers, "terminationGracePeriodSeconds": 1});
    cluster.create("pods", json!({"metadata": {"name": "mine", "labels": labels}, "spec": spec}));
    cluster.run_until_idle();
    assert!(cluster.pods("mine").iter().all(is_ready) && cluster.pods("mine").len() == 1);
    let target = Target::object(kind("", "pods"), NAMESPACE, "mine");
    cluster.server.delete(&target, &DeleteOptions::default()).expect("it is there");
    let asked = cluster.now;
    cluster.run_until_idle();
    assert_eq!(cluster.pods("mine").len(), 0);
    let took = cluster.now - asked;
    // With one pod a round is shorter than a millisecond.
    assert!(!took.is_zero() && took <= Duration::from_millis(1001), "{took:?}");
}

#[test]
fn an_unschedulable_pod_is_scheduled_when_a_node_matches() {
    let mut cluster = TestCluster::new(&spec(), 1);
    let selector = json!({"disk": "fast"});
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "nodeSelector": selector});
    let labels = json!({"app": "picky"});
    cluster.create("pods", json!({"metadata": {"name": "picky", "labels": labels}, "spec": spec}));
    cluster.run_until_idle();
    let pod = &cluster.pods("picky")[0];
    assert_eq!(pod["status"]["conditions"][0]["reason"], "Unschedulable");
    let target = Target::object(kind("", "nodes"), "", "node-03");
    let mut node = cluster.server.get(&target).expect("it is there").value();
    node["metadata"]["labels"]["disk"] = json!("fast");
    cluster.server.update(&target, node, &WriteOptions::default()).expect("valid");
    cluster.run_until_idle();
    assert_eq!(cluster.nodes_by_pod("picky")["picky"], "node-03");
    assert!(cluster.pods("picky").iter().all(is_ready));
}

#[test]
fn a_cordoned_node_gets_no_new_pods() {
    let mut cluster = TestCluster::new(&spec(), 1);
    let target = Target::object(kind("", "nodes"), "", "node-01");
    let mut node = cluster.server.get(&target).expect("it is there").value();
    node["spec"]["unschedulable"] = json!(true);
    cluster.server.update(&target, node, &WriteOptions::default()).expect("valid");
    let before = cluster.nodes_by_pod("web").values().filter(|node| *node == "node-01").count();
    cluster.run(&ScenarioAction::Scale { deployment: "web".to_owned(), n_replicas: 40 });
    cluster.run_until_idle();
    let nodes_by_pod = cluster.nodes_by_pod("web");
    assert_eq!(nodes_by_pod.len(), 40);
    assert_eq!(nodes_by_pod.values().filter(|node| *node == "node-01").count(), before);
}

#[test]
fn a_deleted_deployment_leaves_no_pods_and_no_replica_sets() {
    let mut cluster = TestCluster::new(&spec(), 1);
    let target = Target::object(kind("apps", "deployments"), NAMESPACE, "web");
    cluster.server.delete(&target, &DeleteOptions::default()).expect("it is there");
    cluster.run_until_idle();
    assert_eq!(cluster.pods("web").len(), 0);
    assert_eq!(cluster.server.store().n_objects("replicasets"), 0);
}

#[test]
fn pods_beyond_the_capacity_stay_unscheduled_and_are_deleted_first() {
    let node = NodeSpec { name: "node-01".to_owned(), zone: "zone-a", cpus: 4 };
    let kind = crate::cluster_spec::ServiceKind::Plain;
    let service = ServiceSpec { name: "web".to_owned(), kind, n_replicas: 130 };
    let mut cluster =
        TestCluster::new(&ClusterSpec { nodes: vec![node], services: vec![service] }, 1);
    let n_ready =
        |cluster: &TestCluster| cluster.pods("web").iter().filter(|pod| is_ready(pod)).count();
    assert_eq!((n_ready(&cluster), cluster.pods("web").len()), (110, 130));
    cluster.run(&ScenarioAction::Scale { deployment: "web".to_owned(), n_replicas: 100 });
    cluster.run_until_idle();
    assert_eq!(
        (n_ready(&cluster), cluster.pods("web").len()),
        (100, 100),
        "those without a place went first"
    );
}
