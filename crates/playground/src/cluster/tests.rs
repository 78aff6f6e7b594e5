//! The stand-ins on the real API server, under a clock that jumps from one due time to the next.

use std::collections::BTreeMap;

use endpointd_apiserver::{
    CountedStamps, DeleteOptions, Kind, Server, Settings, Target, WriteOptions, kinds,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::perform;
use crate::reader::{News, Reader};
use crate::story::Move;
use crate::world::{NAMESPACE, NodePlan, ServicePlan, Size, World};

struct Rig {
    server: Server,
    cluster: Cluster,
    reader: Reader,
    now: Duration,
    /// The extremes of a rollout, if somebody counts.
    is_counting: bool,
    least_ready: usize,
    most_told: u64,
}

const ACTS_MAX: usize = 7; // Few, so that every decision is interrupted once.

fn kind(group: &str, resource: &str) -> &'static Kind {
    kinds::find(group, resource).expect("it is served")
}

impl Rig {
    fn new(world: &World, seed: u64) -> Self {
        let stamps = CountedStamps::starting_at(Timestamp::UNIX_EPOCH);
        let mut server = Server::new(Box::new(stamps), Settings::default());
        perform::create_world(&mut server, world).expect("a valid world");
        let watched =
            [("", "nodes"), ("", "pods"), ("apps", "replicasets"), ("apps", "deployments")];
        let (reader, news) = Reader::start(&server, &watched.map(|(group, it)| kind(group, it)));
        let (cluster, now) = (Cluster::new(seed), Duration::ZERO);
        let mut rig = Self {
            server,
            cluster,
            reader,
            now,
            is_counting: false,
            least_ready: usize::MAX,
            most_told: 0,
        };
        rig.show(&news);
        rig.settle();
        rig
    }

    fn show(&mut self, news: &[News]) {
        for News { shelf, key, object } in news {
            self.cluster.see(shelf, key, object.as_deref(), self.now);
        }
    }

    /// Until nothing is due any more.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            loop {
                let news = self.reader.read(&self.server).expect("the past is kept");
                if news.is_empty() {
                    break;
                }
                self.show(&news);
            }
            if self.is_counting {
                self.count();
            }
            let acts = self.cluster.decide(self.now, ACTS_MAX);
            for act in &acts {
                let done = perform::act(&mut self.server, act, Timestamp::UNIX_EPOCH);
                done.unwrap_or_else(|refusal| panic!("{act:?}: {}", refusal.message));
            }
            if acts.is_empty() {
                match self.cluster.wake_at() {
                    Some(due) => self.now = self.now.max(due),
                    None => return,
                }
            }
        }
        panic!("it does not come to rest");
    }

    /// Pods of `web` that serve, and pods its ReplicaSets may have.
    fn count(&mut self) {
        let pods = self.pods("web");
        let n_ready = pods.iter().filter(|pod| is_ready(pod) && !is_deleting(pod)).count();
        self.least_ready = self.least_ready.min(n_ready);
        let sets = self.server.store().list("replicasets", None).objects;
        let told = sets.iter().map(|set| set.value()["spec"]["replicas"].as_u64().unwrap_or(0));
        self.most_told = self.most_told.max(told.sum());
    }

    fn pods(&self, app: &str) -> Vec<Value> {
        let all = self.server.store().list("pods", None).objects;
        let of_app = all.iter().filter(|pod| pod.labels.get("app").is_some_and(|it| it == app));
        of_app.map(|pod| pod.value()).collect()
    }

    fn places(&self, app: &str) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pods = self.pods(app);
        let placed =
            pods.iter().map(|pod| (text(&pod["metadata"]["name"]), text(&pod["spec"]["nodeName"])));
        placed.collect()
    }

    fn make(&mut self, made: &Move) {
        perform::make(&mut self.server, &self.cluster, made).expect("it can be done");
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
fn world() -> World {
    let mut world = World::generate(Size { n_nodes: 6, n_services: 1, n_pods: 10 }, 1);
    world.services[0].n_replicas = 10;
    world
}

#[test]
fn a_deployment_comes_up_spread_over_the_zones() {
    let rig = Rig::new(&world(), 1);
    let places = rig.places("web");
    assert_eq!(places.len(), 10);
    assert!(rig.pods("web").iter().all(is_ready));
    let mut n_by_zone: BTreeMap<usize, usize> = BTreeMap::new();
    for node in places.values() {
        let number: usize = node.trim_start_matches("node-").parse().expect("a number");
        *n_by_zone.entry(number % 3).or_default() += 1;
    }
    assert!(n_by_zone.values().all(|n| (3..=4).contains(n)), "{n_by_zone:?}");
}

#[test]
fn the_same_seed_gives_the_same_pods_in_the_same_places() {
    let places = |seed| Rig::new(&world(), seed).places("web");
    assert_eq!(places(5), places(5));
    assert_ne!(places(5), places(6));
}

#[test]
fn pods_have_both_families_and_no_two_the_same_address() {
    let rig = Rig::new(&world(), 1);
    let pods = rig.pods("web");
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
fn a_rollout_keeps_its_promise_and_ends_with_new_pods() {
    let mut rig = Rig::new(&world(), 1);
    let before = rig.places("web");
    rig.is_counting = true;
    rig.make(&Move::NewImage { deployment: "web".to_owned(), version: 2 });
    rig.settle();
    let after = rig.places("web");
    assert_eq!(after.len(), 10);
    assert!(after.keys().all(|name| !before.contains_key(name)));
    assert_eq!((rig.least_ready, rig.most_told), (8, 13));
    let deployment = rig.server.store().get("deployments", &Key::new(NAMESPACE, "web"));
    let deployment = deployment.expect("it is there").value();
    assert_eq!(deployment["status"]["updatedReplicas"], 10);
    assert_eq!(deployment["status"]["availableReplicas"], 10);
    assert_eq!(deployment["status"]["observedGeneration"], deployment["metadata"]["generation"]);
    assert_eq!(deployment["metadata"]["annotations"][facts::REVISION_ANNOTATION], "2");
}

#[test]
fn many_rollouts_leave_a_bounded_past() {
    let mut rig = Rig::new(&world(), 1);
    for version in 2..14 {
        rig.make(&Move::NewImage { deployment: "web".to_owned(), version });
        rig.settle();
    }
    assert_eq!(rig.server.store().n_objects("replicasets"), 11, "one, and ten to go back to");
}

#[test]
fn a_lost_node_takes_its_pods_and_they_come_up_elsewhere() {
    let mut rig = Rig::new(&world(), 1);
    rig.make(&Move::DeleteNode { node: "node-01".to_owned() });
    rig.settle();
    let places = rig.places("web");
    assert_eq!(places.len(), 10);
    assert!(places.values().all(|node| node != "node-01"));
    assert!(rig.pods("web").iter().all(is_ready));
}

#[test]
fn pods_of_a_silent_node_are_not_ready_until_it_is_back() {
    let mut rig = Rig::new(&world(), 1);
    let on_it = rig.places("web").values().filter(|node| *node == "node-02").count();
    assert!(on_it > 0);
    rig.make(&Move::StopNode { node: "node-02".to_owned() });
    rig.settle();
    assert_eq!(rig.pods("web").iter().filter(|pod| is_ready(pod)).count(), 10 - on_it);
    rig.make(&Move::StartNode { node: "node-02".to_owned() });
    rig.settle();
    assert!(rig.pods("web").iter().all(is_ready));
}

#[test]
fn probes_fail_on_as_many_pods_as_asked_for() {
    let mut rig = Rig::new(&world(), 1);
    let fail = |n_pods| Move::FailProbes { deployment: "web".to_owned(), n_pods };
    rig.make(&fail(3));
    rig.settle();
    assert_eq!(rig.pods("web").iter().filter(|pod| is_ready(pod)).count(), 7);
    rig.make(&fail(0));
    rig.settle();
    assert_eq!(rig.pods("web").iter().filter(|pod| is_ready(pod)).count(), 10);
}

#[test]
fn a_pod_made_by_hand_runs_and_stops() {
    let mut rig = Rig::new(&world(), 1);
    let containers = json!([{"name": "c", "image": "i"}]);
    let labels = json!({"app": "mine"});
    let spec = json!({"containers": containers, "terminationGracePeriodSeconds": 1});
    rig.create("pods", json!({"metadata": {"name": "mine", "labels": labels}, "spec": spec}));
    rig.settle();
    assert!(rig.pods("mine").iter().all(is_ready) && rig.pods("mine").len() == 1);
    let target = Target::object(kind("", "pods"), NAMESPACE, "mine");
    rig.server.delete(&target, &DeleteOptions::default()).expect("it is there");
    let asked = rig.now;
    rig.settle();
    assert_eq!(rig.pods("mine").len(), 0);
    let took = rig.now - asked;
    // With so few pods a round is shorter than a millisecond.
    assert!(!took.is_zero() && took <= Duration::from_millis(1001), "{took:?}");
}

#[test]
fn what_finds_no_room_waits_for_a_node() {
    let mut rig = Rig::new(&world(), 1);
    let selector = json!({"disk": "fast"});
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "nodeSelector": selector});
    let labels = json!({"app": "picky"});
    rig.create("pods", json!({"metadata": {"name": "picky", "labels": labels}, "spec": spec}));
    rig.settle();
    let pod = &rig.pods("picky")[0];
    assert_eq!(pod["status"]["conditions"][0]["reason"], "Unschedulable");
    let target = Target::object(kind("", "nodes"), "", "node-03");
    let mut node = rig.server.get(&target).expect("it is there").value();
    node["metadata"]["labels"]["disk"] = json!("fast");
    rig.server.update(&target, node, &WriteOptions::default()).expect("valid");
    rig.settle();
    assert_eq!(rig.places("picky")["picky"], "node-03");
    assert!(rig.pods("picky").iter().all(is_ready));
}

#[test]
fn a_cordoned_node_gets_nothing_new() {
    let mut rig = Rig::new(&world(), 1);
    let target = Target::object(kind("", "nodes"), "", "node-01");
    let mut node = rig.server.get(&target).expect("it is there").value();
    node["spec"]["unschedulable"] = json!(true);
    rig.server.update(&target, node, &WriteOptions::default()).expect("valid");
    let before = rig.places("web").values().filter(|node| *node == "node-01").count();
    rig.make(&Move::Scale { deployment: "web".to_owned(), n_replicas: 40 });
    rig.settle();
    let places = rig.places("web");
    assert_eq!(places.len(), 40);
    assert_eq!(places.values().filter(|node| *node == "node-01").count(), before);
}

#[test]
fn a_deleted_deployment_leaves_nothing_behind() {
    let mut rig = Rig::new(&world(), 1);
    let target = Target::object(kind("apps", "deployments"), NAMESPACE, "web");
    rig.server.delete(&target, &DeleteOptions::default()).expect("it is there");
    rig.settle();
    assert_eq!(rig.pods("web").len(), 0);
    assert_eq!(rig.server.store().n_objects("replicasets"), 0);
}

#[test]
fn a_world_that_is_too_large_fills_its_nodes_and_no_more() {
    let node = NodePlan { name: "node-01".to_owned(), zone: "zone-a", cpus: 4 };
    let flavour = crate::world::Flavour::Plain;
    let service = ServicePlan { name: "web".to_owned(), flavour, n_replicas: 130 };
    let mut rig = Rig::new(&World { nodes: vec![node], services: vec![service] }, 1);
    let n_ready = |rig: &Rig| rig.pods("web").iter().filter(|pod| is_ready(pod)).count();
    assert_eq!((n_ready(&rig), rig.pods("web").len()), (110, 130));
    rig.make(&Move::Scale { deployment: "web".to_owned(), n_replicas: 100 });
    rig.settle();
    assert_eq!(
        (n_ready(&rig), rig.pods("web").len()),
        (100, 100),
        "those without a place went first"
    );
}
