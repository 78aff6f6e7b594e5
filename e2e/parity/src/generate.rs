//! Generates small, difficult cases; seed and index determine a case.
//!
//! A case is made in the order in which a cluster changes: first a cluster, then the objects that
//! our plan would write for it, then changes of the cluster and edits by other clients. So most
//! published objects are nearly correct, where decisions are hardest.

mod nodes;
mod pods;
mod rng;
mod service;
mod slices;
mod subsets;

use endpointd_model::{Controller, Object, names};
use endpointd_plan::CarriedState;
use endpointd_wire::to_json_value;
use serde_json::{Value, json};

use self::pods::PodParams;
pub use self::rng::Rng;
use self::slices::Owner;
use crate::case::{Case, CaseSettings, ClusterObjects, Expected, Then};

const NAMESPACE: &str = "ns1";

/// The controllers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All three; the index decides which one a case is for.
    All,
    One(Controller),
}

/// The case of an index, without upstream's answer.
pub fn generated_case(seed: u64, index: u64, scope: Scope) -> Case {
    let mut rng = Rng::new(seed, index);
    // The slice controller has the most rules.
    let by_index =
        [Controller::Slices, Controller::Endpoints, Controller::Slices, Controller::Mirror];
    let controller = match scope {
        Scope::All => by_index[(index % 4) as usize],
        Scope::One(controller) => controller,
    };
    let size = SizeClass::of(index);
    let mut case = match controller {
        Controller::Slices => of_slices(&mut rng, size),
        Controller::Endpoints => of_endpoints(&mut rng, size),
        Controller::Mirror => of_mirror(&mut rng, size),
        Controller::Import | Controller::MultiCluster => {
            unreachable!("upstream has no such controller to compare with")
        }
    };
    case.id = format!("{}-{seed}-{index}", case.controller);
    case
}

/// Sets a field of the first item of a list, if there is one.
fn set_first(object: &mut Value, list: &str, field: &str, value: impl Into<Value>) {
    if let Some(first) = object.get_mut(list).and_then(|list| list.get_mut(0)) {
        first[field] = value.into();
    }
}

/// The number of pods or addresses. Nearly always few, because large cases are slow and seldom find
/// more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SizeClass {
    Small,
    /// `n` pods or addresses, some of them not ready.
    Large {
        n: usize,
        percent_not_ready: usize,
    },
}

impl SizeClass {
    /// Large at fixed indexes, so that every larger run has large cases of each controller.
    fn of(index: u64) -> Self {
        const EVERY: u64 = 512;
        if index % EVERY >= 4 {
            return Self::Small;
        }
        // The slice controller has the even indexes.
        let is_huge = index % 2 == 1 || index % (4 * EVERY) == 2;
        match (index / EVERY % 2, is_huge) {
            (0, true) => Self::Large { n: 1300, percent_not_ready: 15 },
            (_, true) => Self::Large { n: 1200, percent_not_ready: 40 },
            (_, false) => Self::Large { n: 120, percent_not_ready: 5 },
        }
    }
}

fn n_pods(rng: &mut Rng, size: SizeClass) -> usize {
    match size {
        SizeClass::Large { n, .. } => n,
        SizeClass::Small => {
            rng.weighted(&[(6, 0), (14, 1), (20, 2), (20, 4), (20, 6), (10, 9), (8, 14), (2, 25)])
        }
    }
}

fn settings(rng: &mut Rng, n: usize) -> usize {
    if n > 100 {
        return rng.pick(&[100, 100, 64, 1000]);
    }
    rng.weighted(&[(2, 1), (4, 2), (5, 3), (4, 4), (3, 5), (2, 8), (3, 100)])
}

/// A Service, its pods, and their nodes.
#[derive(Clone)]
struct Cluster {
    services: Vec<Value>,
    pods: Vec<Value>,
    nodes: Vec<Value>,
    service_name: String,
    n_pods: usize,
    n_nodes: usize,
    percent_plain: usize,
}

impl Cluster {
    fn new(rng: &mut Rng, size: SizeClass) -> Self {
        let mut service = service::service(rng);
        let n_pods = n_pods(rng, size);
        let nodes = nodes::nodes(rng);
        let name = service["metadata"]["name"].as_str().unwrap_or("").to_owned();
        let mut cluster = Self {
            pods: Vec::new(),
            n_nodes: nodes.len(),
            nodes,
            service_name: name,
            n_pods,
            percent_plain: match size {
                SizeClass::Large { .. } => 100,
                SizeClass::Small => rng.weighted(&[(70, 0), (30, 90)]),
            },
            services: Vec::new(),
        };
        if let SizeClass::Large { .. } = size {
            service::make_plain(&mut service);
        }
        cluster.pods = (0..n_pods).map(|at| pods::pod(rng, at, cluster.pod_params())).collect();
        if let SizeClass::Large { percent_not_ready, .. } = size {
            for pod in cluster.pods.iter_mut().filter(|_| rng.percent(percent_not_ready)) {
                pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
            }
        }
        cluster.services.push(service);
        cluster
    }

    fn pod_params(&self) -> PodParams<'_> {
        let Self { service_name, n_nodes, percent_plain, .. } = self;
        PodParams { service_name, n_nodes: *n_nodes, percent_plain: *percent_plain }
    }

    /// Changes the cluster.
    fn drift(&mut self, rng: &mut Rng) {
        for _ in 0..rng.weighted(&[(40, 1), (25, 2), (15, 3), (10, 6)]) {
            match rng.below(10) {
                0..2 => self.services.iter_mut().for_each(|one| service::change(rng, one)),
                2..4 => nodes::change(rng, &mut self.nodes),
                4 => {
                    let n_new = rng.between(1, 4);
                    let new: Vec<Value> = (self.n_pods..self.n_pods + n_new)
                        .map(|at| pods::pod(rng, at, self.pod_params()))
                        .collect();
                    self.n_pods += n_new;
                    self.pods.extend(new);
                }
                5 => self.lose_pods(rng),
                _ => self.change_pod(rng),
            }
        }
    }

    fn lose_pods(&mut self, rng: &mut Rng) {
        if rng.percent(10) {
            self.pods.clear();
        }
        for _ in 0..rng.between(1, 3) {
            if !self.pods.is_empty() {
                let at = rng.below(self.pods.len());
                self.pods.remove(at);
            }
        }
    }

    fn change_pod(&mut self, rng: &mut Rng) {
        if self.pods.is_empty() {
            return;
        }
        let at = rng.below(self.pods.len());
        let mut pod = self.pods[at].take();
        let name = pod["metadata"]["name"].as_str().unwrap_or("");
        let number = name.trim_start_matches("pod-").parse().unwrap_or(0);
        pods::change(rng, number, self.pod_params(), &mut pod);
        self.pods[at] = pod;
    }

    /// Removes the Service.
    fn lose_service(&mut self, rng: &mut Rng) {
        if rng.percent(3) {
            self.services.clear();
        }
    }

    fn text(&self) -> ClusterObjects {
        ClusterObjects {
            services: self.services.clone(),
            pods: self.pods.clone(),
            nodes: self.nodes.clone(),
            ..ClusterObjects::default()
        }
    }

    fn key(&self) -> String {
        format!("{NAMESPACE}/{}", self.service_name)
    }
}

/// Adds the objects that our plan writes for the case.
fn publish(case: &mut Case) {
    let controller = case.controller().expect("the generator knows the controllers");
    let key = case.key().expect("the generator makes keys");
    let mut state =
        case.objects.to_cluster_state().expect("the generator makes objects we can read");
    let plan = state.plan(controller, &key, &CarriedState::default(), &case.settings());
    plan.writes.iter().for_each(|write| state.apply(write));
    let slices = state.slices.into_values().map(Object::Slice);
    case.objects.endpointslices = slices.map(|slice| to_json_value(&slice)).collect();
    if controller == Controller::Endpoints {
        let endpoints = state.endpoints.into_values().map(Object::Endpoints);
        case.objects.endpoints = endpoints.map(|one| to_json_value(&one)).collect();
    }
}

fn new_case(controller: &str, key: String, objects: ClusterObjects) -> Case {
    Case {
        id: String::new(),
        controller: controller.to_owned(),
        tags: Vec::new(),
        settings: CaseSettings::default(),
        key,
        objects,
        expect: Expected::default(),
        then: None,
    }
}

fn then(objects: ClusterObjects) -> Option<Then> {
    Some(Then { objects, expect: Expected::default() })
}

fn of_slices(rng: &mut Rng, size: SizeClass) -> Case {
    let mut cluster = Cluster::new(rng, size);
    let mut case = new_case("endpointslice", cluster.key(), cluster.text());
    case.settings.max_endpoints_per_slice = Some(settings(rng, cluster.n_pods));
    let owner = |cluster: &Cluster| {
        let service = cluster.services.first().cloned().unwrap_or_default();
        json!({"apiVersion": "v1", "kind": "Service", "name": cluster.service_name,
               "uid": service["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true})
    };
    let reference = owner(&cluster);
    if rng.percent(82) {
        publish(&mut case);
    }
    if rng.percent(72) {
        cluster.drift(rng);
    }
    cluster.lose_service(rng);
    let ClusterObjects { services, pods, nodes, .. } = cluster.text();
    case.objects = ClusterObjects { services, pods, nodes, ..case.objects };
    let name = cluster.service_name.clone();
    let owner = Owner { name: &name, manager: names::MANAGED_BY_SLICES, reference: &reference };
    if rng.percent(50) {
        slices::edit(rng, &mut case.objects.endpointslices, owner);
    }
    let is_auto = cluster.services.iter().any(service::is_auto);
    if rng.percent(if is_auto { 40 } else { 12 }) {
        let first_node = cluster.nodes.first().cloned();
        if is_auto && rng.percent(50) {
            cluster.services.iter_mut().for_each(service::turn_off);
        } else {
            cluster.drift(rng);
        }
        // Upstream remembers that nodes once existed; a cluster state does not.
        if cluster.nodes.is_empty() {
            cluster.nodes.extend(first_node);
        }
        case.then = then(cluster.text());
    }
    case
}

fn of_endpoints(rng: &mut Rng, size: SizeClass) -> Case {
    let mut cluster = Cluster::new(rng, size);
    cluster.nodes.clear(); // The endpoints controller does not read nodes.
    let mut case = new_case("endpoints", cluster.key(), cluster.text());
    // Large cases test truncation, which happens when the object is written.
    if size == SizeClass::Small && rng.percent(80) {
        publish(&mut case);
    }
    if size == SizeClass::Small {
        if rng.percent(65) {
            cluster.drift(rng);
            cluster.nodes.clear();
        }
        cluster.lose_service(rng);
    }
    let ClusterObjects { services, pods, .. } = cluster.text();
    case.objects = ClusterObjects { services, pods, ..case.objects };
    if rng.percent(50) {
        for _ in 0..rng.between(1, 3) {
            case.objects.endpoints.iter_mut().for_each(|one| subsets::edit(rng, one));
        }
    }
    if rng.percent(15) {
        cluster.drift(rng);
        cluster.nodes.clear();
        case.then = then(cluster.text());
    }
    case
}

fn of_mirror(rng: &mut Rng, size: SizeClass) -> Case {
    let mut service = service::service(rng);
    if rng.percent(94) {
        service::drop_selector(&mut service);
    }
    let name = service["metadata"]["name"].as_str().unwrap_or("").to_owned();
    let mut endpoints = subsets::endpoints(rng, &name);
    if let SizeClass::Large { n, .. } = size {
        let addresses =
            (0..n).map(|at| json!({"ip": format!("10.2.{}.{}", at / 250, at % 250 + 1)}));
        set_first(&mut endpoints, "subsets", "addresses", addresses.collect::<Value>());
    }
    let objects = ClusterObjects {
        services: vec![service],
        endpoints: vec![endpoints],
        ..ClusterObjects::default()
    };
    let mut case = new_case("mirroring", format!("{NAMESPACE}/{name}"), objects);
    case.settings.max_endpoints_per_subset =
        rng.weighted(&[(1, Some(1)), (2, Some(2)), (2, Some(3)), (2, Some(5)), (9, None)]);
    if rng.percent(80) {
        publish(&mut case);
    }
    let reference = json!({
        "apiVersion": "v1", "kind": "Endpoints", "name": name,
        "uid": case.objects.endpoints[0]["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    let next = |rng: &mut Rng, objects: &mut ClusterObjects| {
        for _ in 0..rng.between(1, 3) {
            objects.endpoints.iter_mut().for_each(|one| subsets::change(rng, one));
        }
        objects.endpoints.iter_mut().for_each(subsets::drop_port_zero);
        match rng.below(60) {
            0 => objects.endpoints.clear(),
            1 => objects.services.clear(),
            2 => objects.services.iter_mut().for_each(|one| {
                one["spec"]["selector"] = json!({"app": "web"});
            }),
            _ => {}
        }
    };
    if rng.percent(60) {
        next(rng, &mut case.objects);
    }
    let owner = Owner { name: &name, manager: names::MANAGED_BY_MIRROR, reference: &reference };
    if rng.percent(50) {
        slices::edit(rng, &mut case.objects.endpointslices, owner);
    }
    if rng.percent(15) {
        let mut later = ClusterObjects {
            services: case.objects.services.clone(),
            endpoints: case.objects.endpoints.clone(),
            ..ClusterObjects::default()
        };
        next(rng, &mut later);
        case.then = then(later);
    }
    case
}
